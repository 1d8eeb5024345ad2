"""What neural networks add: activations, losses, convolution, pooling, normalisation, dropout.

Images have their channels last. Where windows lie on their axes is worked out in ``windows``, for
convolutions and pooling alike.
"""
