"""``tf.signal``: Fourier transforms over the last axes."""

from __future__ import annotations

from typing import Any

import gradtape

from .names import adapts, lookup
from .tensors import axes, convert_to_tensor, sizes

__all__ = [
    "fft",
    "fft2d",
    "fft3d",
    "fftshift",
    "ifft",
    "ifft2d",
    "ifft3d",
    "ifftshift",
    "irfft",
    "irfft2d",
    "rfft",
    "rfft2d",
]


@adapts("fft.fft")
def fft(input: Any, name: str | None = None) -> Any:
    """Return the transform along the last axis."""
    return gradtape.fft.fft(convert_to_tensor(input))


@adapts("fft.ifft")
def ifft(input: Any, name: str | None = None) -> Any:
    """Return the inverse transform along the last axis."""
    return gradtape.fft.ifft(convert_to_tensor(input))


@adapts("fft.fft2")
def fft2d(input: Any, name: str | None = None) -> Any:
    """Return the transform along the last two axes."""
    return gradtape.fft.fft2(convert_to_tensor(input))


@adapts("fft.ifft2")
def ifft2d(input: Any, name: str | None = None) -> Any:
    """Return the inverse transform along the last two axes."""
    return gradtape.fft.ifft2(convert_to_tensor(input))


@adapts("fft.fftn")
def fft3d(input: Any, name: str | None = None) -> Any:
    """Return the transform along the last three axes."""
    return gradtape.fft.fftn(convert_to_tensor(input), axes=(-3, -2, -1))


@adapts("fft.ifftn")
def ifft3d(input: Any, name: str | None = None) -> Any:
    """Return the inverse transform along the last three axes."""
    return gradtape.fft.ifftn(convert_to_tensor(input), axes=(-3, -2, -1))


@adapts("fft.rfft")
def rfft(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Any:
    """Return the half of the transform of real values that the other half follows from."""
    return gradtape.fft.rfft(convert_to_tensor(input_tensor), _length(fft_length))


@adapts("fft.irfft")
def irfft(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Any:
    """Return the real values with this half of a transform."""
    return gradtape.fft.irfft(convert_to_tensor(input_tensor), _length(fft_length))


@adapts("fft.rfft2")
def rfft2d(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Any:
    """Return the half of the transform of real images that the other half follows from."""
    return gradtape.fft.rfft2(convert_to_tensor(input_tensor), _lengths(fft_length))


@adapts("fft.irfft2")
def irfft2d(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Any:
    """Return the real images with this half of a transform."""
    return gradtape.fft.irfft2(convert_to_tensor(input_tensor), _lengths(fft_length))


@adapts("fft.fftshift")
def fftshift(x: Any, axes: Any = None, name: str | None = None) -> Any:
    """Return ``x`` with frequency 0 in the middle."""
    return gradtape.fft.fftshift(convert_to_tensor(x), _axes(axes))


@adapts("fft.ifftshift")
def ifftshift(x: Any, axes: Any = None, name: str | None = None) -> Any:
    """Return what :func:`fftshift` was given."""
    return gradtape.fft.ifftshift(convert_to_tensor(x), _axes(axes))


_axes = axes


def _length(fft_length: Any) -> int | None:
    return None if fft_length is None else sizes(fft_length, "rfft")[0]


def _lengths(fft_length: Any) -> tuple[int, ...] | None:
    return None if fft_length is None else sizes(fft_length, "rfft2d")


__getattr__ = lookup(__name__)
