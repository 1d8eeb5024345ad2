"""Resizing of images: a product with a matrix of weights along each axis, or a choice of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....core.extend import Tensor, as_size, as_tensor, known_size
from ..common.op_builders import named_in
from ..elementwise.arithmetic import abs, clip, maximum, minimum
from ..elementwise.comparison import where
from ..elementwise.conversion import cast
from ..elementwise.floating_point import floor, round
from ..elementwise.powers import exp
from ..elementwise.special import sinc
from ..indexing.take import take
from ..linalg.matmul import matmul
from ..reductions.sums import sum
from ..shapes.padding import pad
from ..shapes.ranges import arange
from ..shapes.rearrangement import moveaxis
from ..shapes.reshaping import expand_dims


def _triangle(x: Any) -> Any:
    return maximum(0.0, 1.0 - x)


def _keys(x: Any) -> Any:
    near = ((1.5 * x - 2.5) * x) * x + 1.0
    far = ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0
    return where(x >= 2.0, 0.0, where(x >= 1.0, far, near))


def _mitchell(x: Any) -> Any:
    near = ((7.0 / 6.0 * x - 2.0) * x) * x + 8.0 / 9.0
    far = ((-7.0 / 18.0 * x + 2.0) * x - 10.0 / 3.0) * x + 16.0 / 9.0
    return where(x >= 2.0, 0.0, where(x >= 1.0, far, near))


def _lanczos(radius: float) -> Callable[[Any], Any]:
    return lambda x: where(x > radius, 0.0, sinc(x) * sinc(x / radius))


def _gaussian(x: Any) -> Any:
    return where(x >= 1.5, 0.0, exp(x * x * -2.0))


_KERNELS = {
    "bicubic": _keys,
    "bilinear": _triangle,
    "gaussian": _gaussian,
    "lanczos3": _lanczos(3.0),
    "lanczos5": _lanczos(5.0),
    "mitchellcubic": _mitchell,
}
#: The names of the interpolation methods.
METHODS = ("area", *_KERNELS, "nearest")


def images_of(images: Any, name: str, channels: int | None = None) -> Tensor:
    """Return images as a tensor with axes for height, width and channels, and any before them.

    Raises
    ------
    ValueError
        If the tensor has fewer axes, or another number of channels.
    """
    x = as_tensor(images)
    shape = x.array.shape
    last = "channels" if channels is None else channels
    wrong = shape is not None and (
        len(shape) < 3 or (channels is not None and known_size(shape[-1]) and shape[-1] != channels)
    )
    if wrong:
        raise ValueError(
            f"{name}: images must have shape (..., height, width, {last}), got {x.shape}"
        )
    return x


def _in_floats(x: Tensor) -> Tensor:
    return x if x.dtype.kind == "f" else cast(x, "float32")


@named_in("image")
def resize(
    images: Any,
    size: Any,
    method: str = "bilinear",
    preserve_aspect_ratio: bool = False,
    antialias: bool = False,
) -> Tensor:
    """Return images of another size.

    Parameters
    ----------
    images
        Images of shape ``(..., height, width, channels)``.
    size
        The new height and width.
    method
        ``"bilinear"``, ``"nearest"``, ``"bicubic"``, ``"area"``, ``"lanczos3"``, ``"lanczos5"``,
        ``"gaussian"`` or ``"mitchellcubic"``. Pixels are squares, and positions are their centres.
    preserve_aspect_ratio
        Whether images keep their proportions; ``size`` is then the maximum of both sizes.
    antialias
        Whether smaller images use all pixels, rather than only those next to the new centres.

    Returns
    -------
    Tensor
        The images, in ``float32`` if they were not floats; ``"nearest"`` keeps the dtype.

    Raises
    ------
    ValueError
        If the method is unknown, there are too few axes, or ``size`` is not a pair of sizes.

    Examples
    --------
    >>> x = gt.reshape(gt.arange(4.0), (2, 2, 1))
    >>> gt.image.resize(x, (1, 4))[0, :, 0].tolist()
    [1.0, 1.25, 1.75, 2.0]
    """
    x = images_of(images, "resize")
    if method not in METHODS:
        raise ValueError(f"resize: method must be one of {METHODS}, got {method!r}")
    height, width = _both(size)
    rows, columns = x.shape[-3:-1]
    if preserve_aspect_ratio:
        height, width = _largest_inside(rows, columns, height, width)
    for axis, old, new in ((-3, rows, height), (-2, columns, width)):
        x = _resized(x, axis, old, new, method, antialias)
    return x if method == "nearest" else _in_floats(x)


def _both(size: Any) -> tuple[Any, Any]:
    sizes = [as_size(n, "resize: size") for n in size]
    if len(sizes) != 2:
        raise ValueError(f"resize: size must be the new height and width, got {size!r}")
    return sizes[0], sizes[1]


def _largest_inside(rows: Any, columns: Any, height: Any, width: Any) -> tuple[Any, Any]:
    """Return the largest size within another that keeps the proportions."""
    old, new = as_tensor([rows, columns]), as_tensor([height, width])
    scale = min(cast(new, "float32") / cast(old, "float32"))
    found = cast(round(scale * cast(old, "float32")), "int64")
    return as_size(found[0], "resize: size"), as_size(found[1], "resize: size")


def _resized(x: Tensor, axis: int, old: Any, new: Any, method: str, antialias: bool) -> Tensor:
    if (old == new) is True:
        return x
    scale = cast(as_tensor(old), "float64") / cast(as_tensor(new), "float64")
    centres = (cast(arange(new), "float64") + 0.5) * scale
    if method == "nearest":
        places = minimum(cast(floor(centres), "int64"), as_tensor(old) - 1)
        return take(x, places, axis)
    x = _in_floats(x)
    if method == "area":
        weights = _overlaps(centres, old, scale)
    else:
        wide = maximum(scale, 1.0) if antialias else 1.0
        distance = abs(expand_dims(centres, -1) - (cast(arange(old), "float64") + 0.5))
        weights = _KERNELS[method](distance / wide)
        weights = weights / sum(weights, -1, True)
    return moveaxis(matmul(moveaxis(x, axis, -1), cast(weights, x.dtype).T), -1, axis)


def _overlaps(centres: Tensor, old: Any, scale: Any) -> Tensor:
    """Return the fraction of each new pixel that each old one covers."""
    begin = expand_dims(centres - scale / 2.0, -1)
    pixels = cast(arange(old), "float64")
    common = minimum(begin + scale, pixels + 1.0) - maximum(begin, pixels)
    return clip(common, 0.0, None) / scale


@named_in("image")
def resize_with_pad(
    image: Any,
    target_height: int,
    target_width: int,
    method: str = "bilinear",
    antialias: bool = False,
) -> Tensor:
    """Return images of another size that keep their proportions, padded with zeros.

    Parameters
    ----------
    target_height, target_width
        The new size.
    method, antialias
        As for :func:`resize`.

    Returns
    -------
    Tensor
        The images in the centre of the new size.

    Raises
    ------
    ValueError
        If they have fewer than three axes.

    Examples
    --------
    >>> gt.image.resize_with_pad(gt.ones((2, 4, 1)), 4, 4)[:, 0, 0].tolist()
    [0.0, 1.0, 1.0, 0.0]
    """
    x = resize(image, (target_height, target_width), method, True, antialias)
    above, left = (target_height - x.shape[-3]) // 2, (target_width - x.shape[-2]) // 2
    below, right = target_height - x.shape[-3] - above, target_width - x.shape[-2] - left
    return pad(x, [(0, 0)] * (x.ndim - 3) + [(above, below), (left, right), (0, 0)])
