"""Images flipped, rotated, cropped and padded."""

from __future__ import annotations

from typing import Any

from ....core.extend import Tensor, as_size, as_tensor, sizes_differ
from ..common.op_builders import named_in
from ..elementwise.comparison import where
from ..random import functions
from ..shapes.padding import pad
from ..shapes.rearrangement import flip, swapaxes
from ..shapes.rearrangement import rot90 as _rot90
from .resizing import images_of


@named_in("image")
def flip_left_right(image: Any) -> Tensor:
    """Return images flipped from left to right.

    Returns
    -------
    Tensor
        Images of the same shape.

    Raises
    ------
    ValueError
        If they have fewer than three axes.

    Examples
    --------
    >>> gt.image.flip_left_right(gt.constant([[[1.0], [2.0]]])).tolist()
    [[[2.0], [1.0]]]
    """
    return flip(images_of(image, "flip_left_right"), -2)


@named_in("image")
def flip_up_down(image: Any) -> Tensor:
    """Return images flipped upside down.

    Returns
    -------
    Tensor
        Images of the same shape.

    Raises
    ------
    ValueError
        If they have fewer than three axes.

    Examples
    --------
    >>> gt.image.flip_up_down(gt.constant([[[1.0]], [[2.0]]])).tolist()
    [[[2.0]], [[1.0]]]
    """
    return flip(images_of(image, "flip_up_down"), -3)


@named_in("image")
def random_flip_left_right(image: Any, generator: Any = None) -> Tensor:
    """Return each image unchanged or flipped from left to right, with equal probability.

    Returns
    -------
    Tensor
        Images of the same shape.

    Raises
    ------
    ValueError
        If they have fewer than three axes.

    Examples
    --------
    >>> gt.image.random_flip_left_right(gt.ones((2, 2, 3)), gt.random.Generator(0)).shape
    (2, 2, 3)
    """
    return _by_chance(image, -2, generator, "random_flip_left_right")


@named_in("image")
def random_flip_up_down(image: Any, generator: Any = None) -> Tensor:
    """Return each image unchanged or flipped upside down, with equal probability.

    Returns
    -------
    Tensor
        Images of the same shape.

    Raises
    ------
    ValueError
        If they have fewer than three axes.

    Examples
    --------
    >>> gt.image.random_flip_up_down(gt.ones((2, 2, 3)), gt.random.Generator(0)).shape
    (2, 2, 3)
    """
    return _by_chance(image, -3, generator, "random_flip_up_down")


def _by_chance(image: Any, axis: int, generator: Any, name: str) -> Tensor:
    x = images_of(image, name)
    chances = (generator or functions).uniform((*x.shape[:-3], 1, 1, 1))
    return where(chances < 0.5, flip(x, axis), x)


@named_in("image")
def rot90(image: Any, k: int = 1) -> Tensor:
    """Return images rotated counter-clockwise by ``k`` quarter turns.

    Parameters
    ----------
    k
        The number of quarter turns; negative ones are clockwise.

    Returns
    -------
    Tensor
        The images.

    Raises
    ------
    ValueError
        If they have fewer than three axes.

    Examples
    --------
    >>> gt.image.rot90(gt.constant([[[1.0], [2.0]]]))[:, 0, 0].tolist()
    [2.0, 1.0]
    """
    return _rot90(images_of(image, "rot90"), k, (-3, -2))


@named_in("image")
def transpose(image: Any) -> Tensor:
    """Return images with rows and columns exchanged.

    Returns
    -------
    Tensor
        Images of shape ``(..., width, height, channels)``.

    Raises
    ------
    ValueError
        If they have fewer than three axes.

    Examples
    --------
    >>> gt.image.transpose(gt.ones((2, 3, 1))).shape
    (3, 2, 1)
    """
    return swapaxes(images_of(image, "transpose"), -3, -2)


@named_in("image")
def crop_to_bounding_box(
    image: Any, offset_height: int, offset_width: int, target_height: int, target_width: int
) -> Tensor:
    """Return a rectangular part of images.

    Parameters
    ----------
    offset_height, offset_width
        The first row and column of the part.
    target_height, target_width
        The size of the part.

    Returns
    -------
    Tensor
        Images of that size.

    Raises
    ------
    ValueError
        If the part extends beyond the images.

    Examples
    --------
    >>> gt.image.crop_to_bounding_box(gt.ones((4, 4, 1)), 1, 1, 2, 3).shape
    (2, 3, 1)
    """
    x = images_of(image, "crop_to_bounding_box")
    given = (offset_height, offset_width, target_height, target_width)
    top, left, height, width = (as_size(n, "crop_to_bounding_box") for n in given)
    outside = [(n < 0) is True for n in (top, left, height, width)]
    for begin, size, whole in ((top, height, x.shape[-3]), (left, width, x.shape[-2])):
        outside.append((begin + size > whole) is True)
    if any(outside):
        raise ValueError(f"crop_to_bounding_box: {given} extends beyond images of {x.shape}")
    return x[..., top : top + height, left : left + width, :]


@named_in("image")
def pad_to_bounding_box(
    image: Any, offset_height: int, offset_width: int, target_height: int, target_width: int
) -> Tensor:
    """Return images padded with zeros to a size, at a given position.

    Parameters
    ----------
    offset_height, offset_width
        The number of rows of zeros above, and of columns to the left.
    target_height, target_width
        The new size.

    Returns
    -------
    Tensor
        Images of that size.

    Raises
    ------
    ValueError
        If the images do not fit into that size.

    Examples
    --------
    >>> gt.image.pad_to_bounding_box(gt.ones((1, 1, 1)), 1, 0, 3, 1)[:, 0, 0].tolist()
    [0.0, 1.0, 0.0]
    """
    x = images_of(image, "pad_to_bounding_box")
    below = target_height - offset_height - x.shape[-3]
    right = target_width - offset_width - x.shape[-2]
    if any((n < 0) is True for n in (offset_height, offset_width, below, right)):
        raise ValueError(
            f"pad_to_bounding_box: images of shape {x.shape} at {(offset_height, offset_width)} do "
            f"not fit into {(target_height, target_width)}"
        )
    widths = [(offset_height, below), (offset_width, right), (0, 0)]
    return pad(x, [(0, 0)] * (x.ndim - 3) + widths)


@named_in("image")
def central_crop(image: Any, central_fraction: float) -> Tensor:
    """Return the middle of images.

    Parameters
    ----------
    central_fraction
        The fraction of the height and of the width to keep, above 0 and at most 1.

    Returns
    -------
    Tensor
        The middle parts.

    Raises
    ------
    ValueError
        If the fraction is outside that range.

    Examples
    --------
    >>> gt.image.central_crop(gt.ones((4, 8, 3)), 0.5).shape
    (2, 4, 3)
    """
    x = images_of(image, "central_crop")
    if not 0.0 < central_fraction <= 1.0:
        raise ValueError(f"central_crop: the fraction must be in (0, 1], got {central_fraction!r}")
    begins = [int((n - n * central_fraction) / 2) for n in x.shape[-3:-1]]
    ends = [n - begin for n, begin in zip(x.shape[-3:-1], begins)]
    return x[..., begins[0] : ends[0], begins[1] : ends[1], :]


@named_in("image")
def resize_with_crop_or_pad(image: Any, target_height: int, target_width: int) -> Tensor:
    """Return images of a given size, cropped or padded with zeros around their centre.

    Parameters
    ----------
    target_height, target_width
        The new size.

    Returns
    -------
    Tensor
        Images of that size.

    Raises
    ------
    ValueError
        If they have fewer than three axes.

    Examples
    --------
    >>> gt.image.resize_with_crop_or_pad(gt.ones((4, 1, 1)), 2, 3).shape
    (2, 3, 1)
    """
    x = images_of(image, "resize_with_crop_or_pad")
    rows, columns = x.shape[-3:-1]
    height, width = min(rows, target_height), min(columns, target_width)
    x = crop_to_bounding_box(x, (rows - height) // 2, (columns - width) // 2, height, width)
    above, left = (target_height - height) // 2, (target_width - width) // 2
    return pad_to_bounding_box(x, above, left, target_height, target_width)


@named_in("image")
def random_crop(value: Any, size: Any, generator: Any = None) -> Tensor:
    """Return a part of a given size, at a random position.

    Parameters
    ----------
    value
        A tensor of any shape.
    size
        The size along each axis.

    Returns
    -------
    Tensor
        The part.

    Raises
    ------
    ValueError
        If ``size`` does not fit the shape.

    Examples
    --------
    >>> gt.image.random_crop(gt.ones((8, 8, 3)), (4, 4, 3), gt.random.Generator(0)).shape
    (4, 4, 3)
    """
    x = as_tensor(value)
    wanted = [as_size(n, "random_crop") for n in size]
    small = [(n > m) is True for n, m in zip(wanted, x.shape)]
    if len(wanted) != x.ndim or any(small):
        raise ValueError(f"random_crop: size {tuple(wanted)} does not fit into shape {x.shape}")
    draw = (generator or functions).randint
    begins = [
        as_size(draw((), 0, whole - n + 1), "random_crop") if sizes_differ(n, whole) else 0
        for n, whole in zip(wanted, x.shape)
    ]
    return x[tuple(slice(begin, begin + n) for begin, n in zip(begins, wanted))]
