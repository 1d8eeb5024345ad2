"""Measures of images and of pairs of them: edges, variation, PSNR and SSIM."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.extend import Tensor, as_tensor, floats
from ..common.op_builders import named_in
from ..elementwise.arithmetic import abs
from ..elementwise.conversion import cast
from ..elementwise.powers import log10, square
from ..network.convolution import depthwise_conv
from ..reductions.sums import mean, sum
from ..shapes.creation import zeros_like
from ..shapes.joining import concatenate, stack
from ..shapes.padding import pad
from ..shapes.reshaping import reshape
from .colours import convert_image_dtype
from .resizing import images_of


def _pair(a: Any, b: Any, max_val: Any, name: str) -> tuple[Tensor, Tensor, Any]:
    """Return two images as floats of one dtype, and the range of their values."""
    a, b = images_of(a, name), images_of(b, name)
    if a.dtype.kind == b.dtype.kind == "f":
        b = cast(b, a.dtype)
    elif a.dtype != b.dtype:  # their ranges differ: 255 is 1.0
        raise TypeError(
            f"{name}: the images have dtypes {a.dtype} and {b.dtype}; convert one with "
            "gradtape.image.convert_image_dtype"
        )
    if a.dtype.kind != "f":
        top = float(np.iinfo(a.dtype).max)
        a, b = convert_image_dtype(a, "float32"), convert_image_dtype(b, "float32")
        max_val = max_val / top
    return a, b, max_val


@named_in("image")
def psnr(a: Any, b: Any, max_val: Any) -> Tensor:
    """Return the peak signal-to-noise ratio of pairs of images, in decibels.

    Parameters
    ----------
    a, b
        Images of shape ``(..., height, width, channels)``.
    max_val
        The distance between the smallest and the largest value that a pixel may have.

    Returns
    -------
    Tensor
        ``20 log10(max_val) - 10 log10(mean((a - b)**2))`` for each pair of images.

    Raises
    ------
    TypeError
        If their dtypes differ, and one is no float.
    ValueError
        If they have fewer than three axes.

    Examples
    --------
    >>> round(gt.image.psnr(gt.zeros((2, 2, 1)), gt.full((2, 2, 1), 0.1), 1.0).item(), 4)
    20.0
    """
    a, b, max_val = _pair(a, b, max_val, "psnr")
    error = mean(square(a - b), (-3, -2, -1))
    return 20.0 * log10(cast(as_tensor(max_val), a.dtype)) - 10.0 * log10(error)


@named_in("image")
def ssim(
    img1: Any,
    img2: Any,
    max_val: Any,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
    return_index_map: bool = False,
) -> Tensor:
    """Return the structural similarity of pairs of images.

    Parameters
    ----------
    img1, img2
        Images of shape ``(..., height, width, channels)``, at least as large as the window.
    max_val
        The distance between the smallest and the largest value that a pixel may have.
    filter_size, filter_sigma
        The size of the window, and the deviation of the Gaussian weights in it.
    k1, k2
        Constants that keep quotients finite, as fractions of ``max_val``.
    return_index_map
        Whether to return the similarity at each position.

    Returns
    -------
    Tensor
        A number for each pair of images, at most 1; or a map for each pair.

    Raises
    ------
    TypeError
        If their dtypes differ, and one is no float.
    ValueError
        If the images are smaller than the window.

    References
    ----------
    Z. Wang et al., Image quality assessment: from error visibility to structural similarity, 2004.

    Examples
    --------
    >>> gt.image.ssim(gt.ones((12, 12, 1)), gt.ones((12, 12, 1)), 1.0).item()
    1.0
    """
    a, b, max_val = _pair(img1, img2, max_val, "ssim")
    if any((n < filter_size) is True for n in a.shape[-3:-1]):
        raise ValueError(
            f"ssim: images of shape {a.shape} are smaller than the window of size {filter_size}"
        )
    places = np.arange(filter_size) - (filter_size - 1) / 2
    weights = np.exp(-(places**2) / (2 * filter_sigma**2))
    window = np.outer(weights, weights) / np.sum(weights) ** 2
    channels = a.shape[-1]
    kernel = as_tensor(
        np.broadcast_to(window[:, :, None, None], (*window.shape, channels, 1)), a.dtype
    )

    def around(x: Any) -> Any:
        flat = reshape(x, (-1, *x.shape[-3:]))
        found = depthwise_conv(flat, kernel, 1, "valid")
        return reshape(found, (*x.shape[:-3], *found.shape[1:]))

    c1, c2 = (k1 * max_val) ** 2, (k2 * max_val) ** 2
    mean_a, mean_b = around(a), around(b)
    both, each = mean_a * mean_b * 2.0, square(mean_a) + square(mean_b)
    luminance = (both + c1) / (each + c1)
    structure = (around(a * b) * 2.0 - both + c2) / (around(square(a) + square(b)) - each + c2)
    found = luminance * structure
    return mean(found, -1) if return_index_map else mean(found, (-3, -2, -1))


def _differences(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the differences of pixels to their neighbours below, and to the right."""
    return x[..., 1:, :, :] - x[..., :-1, :, :], x[..., :, 1:, :] - x[..., :, :-1, :]


@named_in("image")
def total_variation(images: Any) -> Tensor:
    """Return the sum of the absolute differences between pixels and their next neighbours.

    Parameters
    ----------
    images
        Images of shape ``(..., height, width, channels)``.

    Returns
    -------
    Tensor
        A number for each image.

    Raises
    ------
    ValueError
        If they have fewer than three axes.

    Examples
    --------
    >>> gt.image.total_variation(gt.constant([[[1.0], [3.0]], [[1.0], [4.0]]])).item()
    6.0
    """
    (x,) = floats(images_of(images, "total_variation"))
    down, right = _differences(x)
    return sum(abs(down), (-3, -2, -1)) + sum(abs(right), (-3, -2, -1))


@named_in("image")
def image_gradients(image: Any) -> tuple[Tensor, Tensor]:
    """Return the differences between pixels and their next neighbours.

    Returns
    -------
    tuple of Tensor
        Differences along the height, and along the width; 0 in the last row or column.

    Raises
    ------
    ValueError
        If they have fewer than three axes.

    Examples
    --------
    >>> dy, dx = gt.image.image_gradients(gt.constant([[[1.0], [3.0]], [[1.0], [4.0]]]))
    >>> dy[..., 0].tolist(), dx[..., 0].tolist()
    ([[0.0, 1.0], [0.0, 0.0]], [[2.0, 0.0], [3.0, 0.0]])
    """
    (x,) = floats(images_of(image, "image_gradients"))
    down, right = _differences(x)
    last_row, last_column = zeros_like(x[..., -1:, :, :]), zeros_like(x[..., :, -1:, :])
    return concatenate([down, last_row], -3), concatenate([right, last_column], -2)


@named_in("image")
def sobel_edges(image: Any) -> Tensor:
    """Return the edges of images found by Sobel filters, along the height and along the width.

    Returns
    -------
    Tensor
        Of shape ``(..., height, width, channels, 2)``; images are mirrored at their borders.

    Raises
    ------
    ValueError
        If they have fewer than three axes.

    Examples
    --------
    >>> gt.image.sobel_edges(gt.ones((4, 4, 3))).shape
    (4, 4, 3, 2)
    """
    (x,) = floats(images_of(image, "sobel_edges"))
    x = pad(x, [(0, 0)] * (x.ndim - 3) + [(1, 1), (1, 1), (0, 0)], mode="reflect")

    def part(rows: slice, columns: slice) -> Any:
        return x[..., rows, columns, :]

    first, middle, last = slice(None, -2), slice(1, -1), slice(2, None)
    down = [part(last, c) - part(first, c) for c in (first, middle, last)]
    right = [part(r, last) - part(r, first) for r in (first, middle, last)]
    return stack([a + b * 2.0 + c for a, b, c in (down, right)], -1)
