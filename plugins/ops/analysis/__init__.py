"""Functions of samples and coefficients: differences, interpolation, convolution, polynomials."""
