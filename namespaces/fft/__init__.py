"""Discrete Fourier transforms under NumPy's names."""

from __future__ import annotations

# the whole package before its parts: threads that start with different parts would deadlock
from ..plugins import ops  # noqa: F401
from ..plugins.ops.analysis.fourier import fft, hfft, ifft, ihfft, irfft, rfft
from ..plugins.ops.analysis.fourier_nd import (
    fft2,
    fftfreq,
    fftn,
    fftshift,
    ifft2,
    ifftn,
    ifftshift,
    irfft2,
    irfftn,
    rfft2,
    rfftfreq,
    rfftn,
)
from ..public import publish

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]

publish(__name__)
