"""Layers over images: convolution, pooling, padding and upsampling."""
