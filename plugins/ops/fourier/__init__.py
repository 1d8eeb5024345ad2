"""Discrete Fourier transforms: ``gradtape.fft``.

``primitives`` holds the linear ops; the public functions are made of them, by numbers of axes.
"""
