"""Colours of images: brightness, contrast, hue, and colour spaces."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.extend import Tensor, as_dtype, as_tensor, floats
from ..common.op_builders import named_in
from ..elementwise.arithmetic import clip, maximum, remainder
from ..elementwise.comparison import where
from ..elementwise.conversion import cast
from ..elementwise.floating_point import floor
from ..elementwise.powers import power
from ..random import functions
from ..reductions.extrema import max, min
from ..reductions.sums import mean, sum
from ..reductions.variance import std
from ..shapes.joining import concatenate, stack
from .resizing import images_of

# how bright red, green and blue look to the eye
_LUMA = (0.2989, 0.5870, 0.1140)


def convert_image_dtype(image: Any, dtype: Any, saturate: bool = False) -> Tensor:
    """Return images in another dtype, scaled: floats go from 0 to 1, integers over their range.

    Parameters
    ----------
    image
        Images of any shape.
    dtype
        The new dtype.
    saturate
        Whether values out of range become the nearest value in range.

    Returns
    -------
    Tensor
        The images.

    Raises
    ------
    TypeError
        If a dtype is complex or boolean.

    Examples
    --------
    >>> gt.image.convert_image_dtype(np.uint8([0, 255]), "float32").tolist()
    [0.0, 1.0]
    """
    x, wanted = as_tensor(image), as_dtype(dtype)
    if x.dtype.kind not in "fiu" or wanted.kind not in "fiu":
        raise TypeError(f"convert_image_dtype: images of {x.dtype} do not convert to {wanted}")
    if x.dtype == wanted:
        return x
    if x.dtype.kind == "f":
        if wanted.kind == "f":
            return cast(x, wanted)
        top = np.iinfo(wanted).max
        scaled = x * (float(top) + 0.5)
        return cast(clip(scaled, np.iinfo(wanted).min, top) if saturate else scaled, wanted)
    top = np.iinfo(x.dtype).max
    if wanted.kind == "f":
        return cast(x, wanted) * (1.0 / top)
    new = np.iinfo(wanted).max
    if top > new:
        return cast(x // ((int(top) + 1) // (int(new) + 1)), wanted)
    return cast(x, wanted) * ((int(new) + 1) // (int(top) + 1))


def _as_floats(image: Any, name: str, channels: int | None = None) -> tuple[Tensor, Any]:
    """Return images as floats from 0 to 1, and their original dtype."""
    x = images_of(image, name, channels)
    return (x if x.dtype.kind == "f" else convert_image_dtype(x, "float32")), x.dtype


def _number(value: Any, x: Tensor) -> Any:
    """Return a number in the dtype of images; Python numbers take it automatically."""
    return value if isinstance(value, (int, float)) else cast(as_tensor(value), x.dtype)


def _back(x: Tensor, dtype: Any) -> Tensor:
    return convert_image_dtype(x, dtype, True)


@named_in("image")
def adjust_brightness(image: Any, delta: Any) -> Tensor:
    """Return images with a number added to each pixel.

    Parameters
    ----------
    image
        Images of shape ``(..., height, width, channels)``; integers count as fractions of the
        largest one.
    delta
        The number to add, in the range of floats from 0 to 1.

    Returns
    -------
    Tensor
        Images of the same shape and dtype.

    Raises
    ------
    ValueError
        If they have fewer than three axes.

    Examples
    --------
    >>> gt.image.adjust_brightness(np.uint8([[[100]]]), 0.2).item()
    151
    """
    x, dtype = _as_floats(image, "adjust_brightness")
    return _back(x + _number(delta, x), dtype)


@named_in("image")
def random_brightness(image: Any, max_delta: float, generator: Any = None) -> Tensor:
    """Return images with one random number added to all pixels.

    Parameters
    ----------
    image
        As for :func:`adjust_brightness`.
    max_delta
        The bound of the random number: it is from ``-max_delta`` to ``max_delta``.

    Returns
    -------
    Tensor
        Images of the same shape and dtype.

    Raises
    ------
    ValueError
        If ``max_delta`` is negative.

    Examples
    --------
    >>> gt.image.random_brightness(gt.ones((2, 2, 3)), 0.1, gt.random.Generator(0)).shape
    (2, 2, 3)
    """
    if max_delta < 0:
        raise ValueError(f"random_brightness: max_delta must not be negative, got {max_delta}")
    return adjust_brightness(image, (generator or functions).uniform((), -max_delta, max_delta))


@named_in("image")
def adjust_contrast(images: Any, contrast_factor: Any) -> Tensor:
    """Return images in which each channel's distance from its mean is scaled.

    Parameters
    ----------
    images
        Images of shape ``(..., height, width, channels)``.
    contrast_factor
        The factor.

    Returns
    -------
    Tensor
        Images of the same shape and dtype.

    Raises
    ------
    ValueError
        If they have fewer than three axes.

    Examples
    --------
    >>> gt.image.adjust_contrast(gt.constant([[[0.0], [1.0]]]), 2.0)[0, :, 0].tolist()
    [-0.5, 1.5]
    """
    x, dtype = _as_floats(images, "adjust_contrast")
    middle = mean(x, (-3, -2), True)
    return _back((x - middle) * _number(contrast_factor, x) + middle, dtype)


@named_in("image")
def random_contrast(image: Any, lower: float, upper: float, generator: Any = None) -> Tensor:
    """Return images whose contrast is scaled by one random factor.

    Parameters
    ----------
    image
        As for :func:`adjust_contrast`.
    lower, upper
        The bounds of the factor.

    Returns
    -------
    Tensor
        Images of the same shape and dtype.

    Raises
    ------
    ValueError
        If ``lower`` is negative, or not below ``upper``.

    Examples
    --------
    >>> gt.image.random_contrast(gt.ones((2, 2, 3)), 0.5, 1.5, gt.random.Generator(0)).shape
    (2, 2, 3)
    """
    if lower < 0 or upper <= lower:
        raise ValueError(f"random_contrast: expected 0 <= lower < upper, got {lower}, {upper}")
    return adjust_contrast(image, (generator or functions).uniform((), lower, upper))


@named_in("image")
def adjust_gamma(image: Any, gamma: Any = 1.0, gain: Any = 1.0) -> Tensor:
    """Return ``gain * image**gamma``.

    Parameters
    ----------
    image
        Images of shape ``(..., height, width, channels)``, from 0 to 1 if they are floats.
    gamma
        The power; above 1, images become darker.
    gain
        The factor.

    Returns
    -------
    Tensor
        Images of the same shape and dtype.

    Raises
    ------
    ValueError
        If they have fewer than three axes.

    Examples
    --------
    >>> gt.image.adjust_gamma(gt.constant([[[0.5]]]), 2.0).item()
    0.25
    """
    x, dtype = _as_floats(image, "adjust_gamma")
    return _back(power(x, gamma) * gain, dtype)


@named_in("image")
def rgb_to_grayscale(images: Any) -> Tensor:
    """Return images of one channel: the perceived brightness of red, green and blue.

    Parameters
    ----------
    images
        Images of shape ``(..., height, width, 3)``.

    Returns
    -------
    Tensor
        Images of shape ``(..., height, width, 1)`` and the same dtype.

    Raises
    ------
    ValueError
        If they have fewer than three axes, or other than three channels.

    Examples
    --------
    >>> round(gt.image.rgb_to_grayscale(gt.constant([[[1.0, 0.0, 0.0]]])).item(), 4)
    0.2989
    """
    x, dtype = _as_floats(images, "rgb_to_grayscale", 3)
    return _back(sum(x * as_tensor(_LUMA, x.dtype), -1, True), dtype)


@named_in("image")
def grayscale_to_rgb(images: Any) -> Tensor:
    """Return images with their one channel repeated three times.

    Parameters
    ----------
    images
        Images of shape ``(..., height, width, 1)``.

    Returns
    -------
    Tensor
        Images of shape ``(..., height, width, 3)``.

    Raises
    ------
    ValueError
        If they have fewer than three axes, or more than one channel.

    Examples
    --------
    >>> gt.image.grayscale_to_rgb(gt.ones((2, 2, 1))).shape
    (2, 2, 3)
    """
    x = images_of(images, "grayscale_to_rgb", 1)
    return concatenate([x, x, x], -1)


@named_in("image")
def rgb_to_hsv(images: Any) -> Tensor:
    """Return hue, saturation and value of images, each from 0 to 1.

    Parameters
    ----------
    images
        Floats from 0 to 1 of shape ``(..., height, width, 3)``: red, green and blue.

    Returns
    -------
    Tensor
        Images of the same shape.

    Raises
    ------
    ValueError
        If they have fewer than three axes, or other than three channels.

    Examples
    --------
    >>> gt.image.rgb_to_hsv(gt.constant([[[0.0, 1.0, 0.0]]])).tolist()
    [[[0.3333333432674408, 1.0, 1.0]]]
    """
    (x,) = floats(images_of(images, "rgb_to_hsv", 3))
    red, green, blue = x[..., 0], x[..., 1], x[..., 2]
    value = max(x, -1)
    spread = value - min(x, -1)
    safe = where(spread == 0, 1.0, spread)
    by_green = where(value == green, (blue - red) / safe + 2.0, (red - green) / safe + 4.0)
    sixths = where(value == red, (green - blue) / safe, by_green)
    hue = where(spread == 0, 0.0, remainder(sixths / 6.0, 1.0))
    saturation = where(value > 0, spread / where(value == 0, 1.0, value), 0.0)
    return stack([hue, saturation, value], -1)


@named_in("image")
def hsv_to_rgb(images: Any) -> Tensor:
    """Return red, green and blue of images, from hue, saturation and value.

    Parameters
    ----------
    images
        Floats from 0 to 1 of shape ``(..., height, width, 3)``.

    Returns
    -------
    Tensor
        Images of the same shape.

    Raises
    ------
    ValueError
        If they have fewer than three axes, or other than three channels.

    Examples
    --------
    >>> gt.image.hsv_to_rgb(gt.constant([[[0.0, 1.0, 0.5]]])).tolist()
    [[[0.5, 0.0, 0.0]]]
    """
    (x,) = floats(images_of(images, "hsv_to_rgb", 3))
    hue, saturation, value = x[..., 0], x[..., 1], x[..., 2]

    def channel(n: float) -> Any:
        k = remainder(hue * 6.0 + n, 6.0)
        share = clip(where(k < 4.0 - k, k, 4.0 - k), 0.0, 1.0)
        return value - value * saturation * share

    return stack([channel(5.0), channel(3.0), channel(1.0)], -1)


@named_in("image")
def adjust_hue(image: Any, delta: Any) -> Tensor:
    """Return images whose colours are rotated around the circle of hues.

    Parameters
    ----------
    image
        Images of shape ``(..., height, width, 3)``.
    delta
        The rotation, from -1 to 1; 1 is a full turn.

    Returns
    -------
    Tensor
        Images of the same shape and dtype.

    Raises
    ------
    ValueError
        If they have fewer than three axes, or other than three channels.

    Examples
    --------
    >>> gt.image.adjust_hue(gt.constant([[[1.0, 0.0, 0.0]]]), 0.5).tolist()
    [[[0.0, 1.0, 1.0]]]
    """
    x, dtype = _as_floats(image, "adjust_hue", 3)
    hsv = rgb_to_hsv(x)
    hue = hsv[..., :1] + _number(delta, x)
    return _back(hsv_to_rgb(concatenate([hue - floor(hue), hsv[..., 1:]], -1)), dtype)


@named_in("image")
def adjust_saturation(image: Any, saturation_factor: Any) -> Tensor:
    """Return images whose colours are stronger or weaker.

    Parameters
    ----------
    image
        Images of shape ``(..., height, width, 3)``.
    saturation_factor
        The factor of the saturation; the result is limited to 1.

    Returns
    -------
    Tensor
        Images of the same shape and dtype.

    Raises
    ------
    ValueError
        If they have fewer than three axes, or other than three channels.

    Examples
    --------
    >>> gt.image.adjust_saturation(gt.constant([[[1.0, 0.5, 0.5]]]), 2.0).tolist()
    [[[1.0, 0.0, 0.0]]]
    """
    x, dtype = _as_floats(image, "adjust_saturation", 3)
    hsv = rgb_to_hsv(x)
    saturation = clip(hsv[..., 1:2] * _number(saturation_factor, x), 0.0, 1.0)
    return _back(hsv_to_rgb(concatenate([hsv[..., :1], saturation, hsv[..., 2:]], -1)), dtype)


@named_in("image")
def per_image_standardization(image: Any) -> Tensor:
    """Return each image with mean 0 and variance 1.

    Returns
    -------
    Tensor
        Images of the same shape. The deviation is at least ``1 / sqrt(n)``, where ``n`` is the
        number of values in an image.

    Raises
    ------
    ValueError
        If they have fewer than three axes.

    Examples
    --------
    >>> gt.image.per_image_standardization(gt.constant([[[1.0], [3.0]]]))[0, :, 0].tolist()
    [-1.0, 1.0]
    """
    x = images_of(image, "per_image_standardization")
    x = x if x.dtype.kind == "f" else cast(x, "float32")
    count = 1
    for n in x.shape[-3:]:
        count = count * n
    least = power(cast(as_tensor(count), x.dtype), -0.5)
    deviation = maximum(std(x, (-3, -2, -1), keepdims=True), least)
    return (x - mean(x, (-3, -2, -1), True)) / deviation
