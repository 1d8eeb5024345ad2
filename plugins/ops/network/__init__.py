"""Ops of neural networks: activations, losses, convolution, pooling, normalisation, dropout.

Each activation is one op, with one forward kernel and one gradient rule; those with names of
NumPy's (``tanh``) are among the elementwise ops. Images have their channels last. ``windows``
computes the positions of windows on their axes, for convolutions and pooling.
"""
