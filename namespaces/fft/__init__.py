"""Discrete Fourier transforms under NumPy's names."""

from __future__ import annotations

# the whole package before its parts: threads that start with different parts would deadlock
from ..plugins import ops  # noqa: F401
from ..plugins.ops.fourier.frequencies import fftfreq, fftshift, ifftshift, rfftfreq
from ..plugins.ops.fourier.multi_dimensional import (
    fft2,
    fftn,
    ifft2,
    ifftn,
    irfft2,
    irfftn,
    rfft2,
    rfftn,
)
from ..plugins.ops.fourier.one_dimensional import fft, hfft, ifft, ihfft, irfft, rfft
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
