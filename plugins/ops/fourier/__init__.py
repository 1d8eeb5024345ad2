"""Discrete Fourier transforms: ``gradtape.fft``.

``primitives`` holds the linear ops. The public functions are made of them, and grouped by their
numbers of axes.
"""
