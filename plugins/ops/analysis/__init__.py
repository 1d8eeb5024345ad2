"""Functions of samples and coefficients, in one dimension or along axes.

They are differences, polynomials and curves through points, convolution, Fourier transforms
(``gradtape.fft``), and statistics beyond reductions: quantiles, covariance, histograms.
"""
