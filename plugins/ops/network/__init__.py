"""Ops of neural networks: activations, losses, convolution, pooling, normalisation, dropout.

Images have their channels last. ``windows`` computes the positions of windows on their axes, for
convolutions and pooling.
"""
