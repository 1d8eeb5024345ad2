"""NumPy's helpers for arranging arrays, made of other ops: stacking, splitting, turning, gridding.

Nothing here is an op of its own, so traces and saved files hold the few ops underneath.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from ....core.extend import Tensor, among, as_shape, as_tensor, broadcast_shapes, ops
from ..common.families import named, reduced_axes
from ..common.ranks import known_rank, with_axes
from .joining import concatenate, split
from .shape import moveaxis, one_axis, swapaxes

__all__ = [
    "append",
    "array_split",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "block",
    "broadcast_arrays",
    "column_stack",
    "dsplit",
    "dstack",
    "fliplr",
    "flipud",
    "hsplit",
    "hstack",
    "meshgrid",
    "rollaxis",
    "rot90",
    "vsplit",
    "vstack",
]


def axis_of(x: Any, axis: Any, name: str) -> int:
    """Return a single axis of ``x`` as an int, checked as far as the rank is known.

    Raises
    ------
    numpy.exceptions.AxisError
        If it is out of bounds.
    """
    axis = one_axis(axis, name)
    if x.shape is not None:
        reduced_axes(axis, len(x.shape), name)
    return axis


def part_of(x: Any, axis: int, part: Any) -> Any:
    """Return ``x`` with an index applied along one axis, whatever the rank."""
    if axis >= 0:
        return x[(*(slice(None),) * axis, part)]
    return x[(Ellipsis, part, *(slice(None),) * (-axis - 1))]


def _needs(x: Any, rank: int, name: str) -> Any:
    x = as_tensor(x)
    if x.shape is not None and len(x.shape) < rank:
        raise ValueError(f"{name}: at least {rank} axes are needed, got shape {x.shape}")
    return x


# -- at least so many axes -------------------------------------------------------------------------


def _at_least(places: tuple[tuple[int, ...], ...], arrays: tuple[Any, ...]) -> Any:
    """Insert the axes that each rank in ``places`` lacks."""
    results = [with_axes(as_tensor(x), places) for x in arrays]
    return results[0] if len(results) == 1 else tuple(results)


@named
def atleast_1d(*arrays: Any) -> Any:
    """Return tensors with one axis at least: a tuple of them, or one if one was given.

    Parameters
    ----------
    arrays
        Tensors of any shape and dtype.

    Returns
    -------
    Tensor or tuple of Tensor
        Numbers become vectors of size 1; what has axes stays as it is.

    Raises
    ------
    TypeError
        If an argument does not convert to a tensor.

    Examples
    --------
    >>> gt.atleast_1d(gt.constant(3)).tolist()
    [3]
    """
    return _at_least(((0,),), arrays)


@named
def atleast_2d(*arrays: Any) -> Any:
    """Return tensors with two axes at least, new ones first; a vector becomes a row.

    Parameters
    ----------
    arrays
        Tensors of any shape and dtype.

    Returns
    -------
    Tensor or tuple of Tensor
        A tuple, or one tensor if one was given. A vector of size n has shape ``(1, n)``.

    Raises
    ------
    TypeError
        If an argument does not convert to a tensor.

    Examples
    --------
    >>> gt.atleast_2d(gt.constant([1, 2])).tolist()
    [[1, 2]]
    """
    return _at_least(((0, 1), (0,)), arrays)


@named
def atleast_3d(*arrays: Any) -> Any:
    """Return tensors with three axes at least: a matrix gets a last one, a vector both others.

    Parameters
    ----------
    arrays
        Tensors of any shape and dtype.

    Returns
    -------
    Tensor or tuple of Tensor
        A tuple, or one tensor if one was given. A vector of size n has shape ``(1, n, 1)``, a
        matrix ``(m, n, 1)``.

    Raises
    ------
    TypeError
        If an argument does not convert to a tensor.

    Examples
    --------
    >>> gt.atleast_3d(gt.ones((2, 3))).shape
    (2, 3, 1)
    """
    return _at_least(((0, 1, 2), (0, 2), (2,)), arrays)


# -- joining ---------------------------------------------------------------------------------------


def _items(arrays: Any, name: str) -> list[Any]:
    items = among(arrays if isinstance(arrays, (list, tuple)) else list(as_tensor(arrays)))
    if not items:
        raise ValueError(f"{name}: at least one array is needed, got none")
    return items


@named
def hstack(arrays: Sequence[Any]) -> Tensor:
    """Join tensors side by side: along axis 1, vectors along their only axis.

    Parameters
    ----------
    arrays
        Tensors of as many axes, equal in shape but for the joined axis; dtypes promote. A number is
        a vector of size 1.

    Returns
    -------
    Tensor
        The joined tensor.

    Raises
    ------
    ValueError
        If there are no arrays, or shapes differ elsewhere.

    Examples
    --------
    >>> gt.hstack([gt.constant([1, 2]), gt.constant([3])]).tolist()
    [1, 2, 3]
    >>> gt.hstack([gt.ones((2, 1)), gt.zeros((2, 1))]).tolist()
    [[1.0, 0.0], [1.0, 0.0]]
    """
    items = [atleast_1d(x) for x in _items(arrays, "hstack")]
    return concatenate(items, axis=0 if known_rank(items[0], "hstack") == 1 else 1)


@named
def vstack(arrays: Sequence[Any]) -> Tensor:
    """Join tensors on top of each other, along axis 0; vectors are rows.

    Parameters
    ----------
    arrays
        Tensors of as many axes, equal in shape but for axis 0; dtypes promote.

    Returns
    -------
    Tensor
        The joined tensor, of two axes at least.

    Raises
    ------
    ValueError
        If there are no arrays, or shapes differ elsewhere.

    Examples
    --------
    >>> gt.vstack([gt.constant([1, 2]), gt.constant([3, 4])]).tolist()
    [[1, 2], [3, 4]]
    """
    return concatenate([atleast_2d(x) for x in _items(arrays, "vstack")], axis=0)


@named
def dstack(arrays: Sequence[Any]) -> Tensor:
    """Join tensors behind each other, along axis 2; matrices and vectors are layers.

    Parameters
    ----------
    arrays
        Tensors of as many axes, equal in shape but for axis 2; dtypes promote. A vector of size n
        counts as shape ``(1, n, 1)``, a matrix as ``(m, n, 1)``.

    Returns
    -------
    Tensor
        The joined tensor, of three axes at least.

    Raises
    ------
    ValueError
        If there are no arrays, or shapes differ elsewhere.

    Examples
    --------
    >>> gt.dstack([gt.constant([1, 2]), gt.constant([3, 4])]).tolist()
    [[[1, 3], [2, 4]]]
    """
    return concatenate([atleast_3d(x) for x in _items(arrays, "dstack")], axis=2)


@named
def column_stack(arrays: Sequence[Any]) -> Tensor:
    """Join vectors as the columns of a matrix; matrices are taken as they are.

    Parameters
    ----------
    arrays
        Vectors of size m, and matrices of m rows; dtypes promote.

    Returns
    -------
    Tensor
        A matrix of m rows.

    Raises
    ------
    ValueError
        If there are no arrays, or they have different numbers of rows.

    Examples
    --------
    >>> gt.column_stack([gt.constant([1, 2]), gt.constant([3, 4])]).tolist()
    [[1, 3], [2, 4]]
    """
    items = _items(arrays, "column_stack")
    return concatenate([with_axes(x, ((0, 1), (1,))) for x in items], axis=1)


@named
def append(x: Any, values: Any, axis: int | None = None) -> Tensor:
    """Return ``x`` with ``values`` joined at its end; without ``axis``, both are flattened.

    Parameters
    ----------
    x
        A tensor of any shape and dtype.
    values
        What to join to it: of its shape but for the size of ``axis``; dtypes promote.
    axis
        The axis to join along.

    Returns
    -------
    Tensor
        The joined tensor; a vector without ``axis``.

    Raises
    ------
    ValueError
        If shapes differ elsewhere than along ``axis``.
    numpy.exceptions.AxisError
        If the axis is out of bounds.

    Examples
    --------
    >>> gt.append(gt.constant([1, 2]), [[3], [4]]).tolist()
    [1, 2, 3, 4]
    """
    return concatenate([x, values], axis=axis)


@named
def block(arrays: Any) -> Tensor:
    """Join nested lists of tensors: the innermost along the last axis, the next one axis before.

    Parameters
    ----------
    arrays
        Lists of lists (of any depth) of tensors; dtypes promote. Tensors of fewer axes than the
        depth, or than the others, get axes of size 1 in front.

    Returns
    -------
    Tensor
        The joined tensor, of as many axes as the lists are deep, or as a tensor has.

    Raises
    ------
    ValueError
        If the lists are nested to different depths, one is empty, or shapes do not fit.

    Examples
    --------
    >>> a, b = gt.constant([[1, 2]]), gt.constant([[3]])
    >>> gt.block([[a, b], [b, a]]).tolist()
    [[1, 2, 3], [3, 1, 2]]
    """
    depth = _depth(arrays)
    leaves: list[Any] = []
    _leaves(arrays, leaves)
    rank = max([depth, *(known_rank(x, "block") for x in leaves)])
    return _block(arrays, depth, rank)


def _depth(arrays: Any) -> int:
    if not isinstance(arrays, list):
        return 0
    depths = {_depth(item) for item in arrays}
    if len(depths) != 1:
        what = "is empty" if not depths else f"nests to depths {sorted(depths)}"
        raise ValueError(f"block: lists must nest evenly and hold arrays; one {what}")
    return 1 + depths.pop()


def _leaves(arrays: Any, found: list[Any]) -> None:
    if isinstance(arrays, list):
        for item in arrays:
            _leaves(item, found)
    else:
        found.append(as_tensor(arrays))


def _block(arrays: Any, depth: int, rank: int) -> Any:
    if depth:
        return concatenate([_block(item, depth - 1, rank) for item in arrays], axis=-depth)
    x = as_tensor(arrays)
    missing = rank - x.ndim
    return ops["expand_dims"](x, axis=tuple(range(missing))) if missing else x


# -- splitting -------------------------------------------------------------------------------------


@named
def array_split(x: Any, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Tensor]:
    """Cut a tensor along an axis into parts whose sizes may differ by one.

    Parameters
    ----------
    x
        A tensor of any dtype, with at least one axis.
    indices_or_sections
        The number of parts, the first of which are the larger; or where to cut.
    axis
        The axis to cut; for a number of parts its size must be known in a trace.

    Returns
    -------
    list of Tensor
        The parts in order, of the dtype of ``x``.

    Raises
    ------
    ValueError
        If the number of parts is below 1.
    numpy.exceptions.AxisError
        If the axis is out of bounds.

    Examples
    --------
    >>> [part.tolist() for part in gt.array_split(gt.arange(5), 2)]
    [[0, 1, 2], [3, 4]]
    """
    x = as_tensor(x)
    if np.ndim(indices_or_sections):
        return split(x, indices_or_sections, axis)
    (count,) = as_shape(indices_or_sections, "array_split")
    if count < 1:
        raise ValueError(f"array_split: the number of parts must be at least 1, got {count}")
    along = axis_of(x, axis, "array_split")
    size = None if x.shape is None else x.shape[along]
    if size is None:
        raise ValueError(
            f"array_split: the size of axis {axis} is unknown in this trace; pass where to cut"
        )
    least, larger = divmod(size, count)
    cuts = [least * i + min(i, larger) for i in range(1, count)]
    return split(x, cuts, axis)


@named
def hsplit(x: Any, indices_or_sections: int | Sequence[int]) -> list[Tensor]:
    """Cut a tensor along axis 1, a vector along its only axis; as :func:`gradtape.split`.

    Parameters
    ----------
    x
        A tensor of any dtype, with at least one axis.
    indices_or_sections
        The number of equal parts, or where to cut.

    Returns
    -------
    list of Tensor
        The parts in order, of the dtype of ``x``.

    Raises
    ------
    ValueError
        If ``x`` has no axes, the parts would not be equal, or the indices do not ascend.

    Examples
    --------
    >>> [part.tolist() for part in gt.hsplit(gt.constant([[1, 2], [3, 4]]), 2)]
    [[[1], [3]], [[2], [4]]]
    """
    x = _needs(x, 1, "hsplit")
    return split(x, indices_or_sections, axis=0 if known_rank(x, "hsplit") == 1 else 1)


@named
def vsplit(x: Any, indices_or_sections: int | Sequence[int]) -> list[Tensor]:
    """Cut a tensor of at least two axes along axis 0; as :func:`gradtape.split`.

    Parameters
    ----------
    x
        A tensor of any dtype.
    indices_or_sections
        The number of equal parts, or where to cut.

    Returns
    -------
    list of Tensor
        The parts in order, of the dtype of ``x``.

    Raises
    ------
    ValueError
        If ``x`` has fewer than two axes, the parts would not be equal, or the indices do not
        ascend.

    Examples
    --------
    >>> [part.tolist() for part in gt.vsplit(gt.constant([[1, 2], [3, 4]]), 2)]
    [[[1, 2]], [[3, 4]]]
    """
    return split(_needs(x, 2, "vsplit"), indices_or_sections, axis=0)


@named
def dsplit(x: Any, indices_or_sections: int | Sequence[int]) -> list[Tensor]:
    """Cut a tensor of at least three axes along axis 2; as :func:`gradtape.split`.

    Parameters
    ----------
    x
        A tensor of any dtype.
    indices_or_sections
        The number of equal parts, or where to cut.

    Returns
    -------
    list of Tensor
        The parts in order, of the dtype of ``x``.

    Raises
    ------
    ValueError
        If ``x`` has fewer than three axes, the parts would not be equal, or the indices do not
        ascend.

    Examples
    --------
    >>> [part.shape for part in gt.dsplit(gt.ones((2, 3, 4)), [1])]
    [(2, 3, 1), (2, 3, 3)]
    """
    return split(_needs(x, 3, "dsplit"), indices_or_sections, axis=2)


# -- turning ---------------------------------------------------------------------------------------


@named
def fliplr(x: Any) -> Tensor:
    """Return ``x`` with the order of its columns (axis 1) reversed.

    Parameters
    ----------
    x
        A tensor of any dtype, with at least two axes.

    Returns
    -------
    Tensor
        A tensor of the shape and dtype of ``x``.

    Raises
    ------
    ValueError
        If ``x`` has fewer than two axes.

    Examples
    --------
    >>> gt.fliplr(gt.constant([[1, 2], [3, 4]])).tolist()
    [[2, 1], [4, 3]]
    """
    return ops["flip"](_needs(x, 2, "fliplr"), axis=1)


@named
def flipud(x: Any) -> Tensor:
    """Return ``x`` with the order of its rows (axis 0) reversed.

    Parameters
    ----------
    x
        A tensor of any dtype, with at least one axis.

    Returns
    -------
    Tensor
        A tensor of the shape and dtype of ``x``.

    Raises
    ------
    ValueError
        If ``x`` has no axes.

    Examples
    --------
    >>> gt.flipud(gt.constant([[1, 2], [3, 4]])).tolist()
    [[3, 4], [1, 2]]
    """
    return ops["flip"](_needs(x, 1, "flipud"), axis=0)


@named
def rot90(x: Any, k: int = 1, axes: Sequence[int] = (0, 1)) -> Tensor:
    """Turn a tensor by right angles in the plane of two axes.

    Parameters
    ----------
    x
        A tensor of at least two axes.
    k
        How many right angles, from the first of the axes towards the second.
    axes
        The two axes of the plane; the first two by default.

    Returns
    -------
    Tensor
        The turned tensor, of the dtype of ``x``; an odd ``k`` exchanges the sizes of the axes.

    Raises
    ------
    ValueError
        If there are not two different axes.
    numpy.exceptions.AxisError
        If an axis is out of bounds.

    Examples
    --------
    >>> gt.rot90(gt.constant([[1, 2], [3, 4]])).tolist()
    [[2, 4], [1, 3]]
    """
    x = as_tensor(x)
    plane = as_shape(axes, "rot90")
    if len(plane) != 2:
        raise ValueError(f"rot90: two axes are needed, got {plane}")
    first, second = plane if x.shape is None else reduced_axes(plane, len(x.shape), "rot90")
    turns = operator.index(k) % 4
    if turns == 0:
        return x
    if turns == 2:
        return ops["flip"](x, axis=(first, second))
    if turns == 1:
        return swapaxes(ops["flip"](x, axis=second), first, second)
    return ops["flip"](swapaxes(x, first, second), axis=second)


@named
def rollaxis(x: Any, axis: int, start: int = 0) -> Tensor:
    """Return ``x`` with an axis moved back until it is before axis ``start``.

    :func:`gradtape.moveaxis` says the same more plainly.

    Parameters
    ----------
    x
        A tensor of any shape and dtype.
    axis
        The axis to move.
    start
        The axis that it comes to stand before; the first by default.

    Returns
    -------
    Tensor
        The tensor with its axes in the new order; the dtype of ``x``.

    Raises
    ------
    numpy.exceptions.AxisError
        If ``axis`` or ``start`` is out of bounds.

    Examples
    --------
    >>> gt.rollaxis(gt.ones((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    x = as_tensor(x)
    rank = known_rank(x, "rollaxis")
    along = axis_of(x, axis, "rollaxis") % rank
    before = start + rank if start < 0 else start
    if not 0 <= before <= rank:
        raise np.exceptions.AxisError(
            f"rollaxis: start {start} is out of bounds for an array of dimension {rank}"
        )
    return moveaxis(x, along, before - 1 if along < before else before)


# -- grids -----------------------------------------------------------------------------------------


@named
def broadcast_arrays(*arrays: Any) -> tuple[Tensor, ...]:
    """Return tensors broadcast to the shape that they have together.

    Parameters
    ----------
    arrays
        Tensors of any dtype, whose shapes broadcast.

    Returns
    -------
    tuple of Tensor
        The tensors, each of its own dtype, in the common shape.

    Raises
    ------
    ValueError
        If the shapes do not broadcast.

    Examples
    --------
    >>> a, b = gt.broadcast_arrays(gt.constant([1, 2]), gt.constant([[3], [4]]))
    >>> b.tolist()
    [[3, 3], [4, 4]]
    """
    items = among(arrays if isinstance(arrays, (list, tuple)) else list(as_tensor(arrays)))
    shape = broadcast_shapes(*(x.shape for x in items), op="broadcast_arrays")
    if shape is not None and None not in shape:
        return tuple(x if x.shape == shape else ops["broadcast_to"](x, shape=shape) for x in items)
    # a trace knows no shape to name: take that of a sum, in which each array has its own dtype
    empty = [ops["equal"](x, x) for x in items]
    whole = reduce(ops["logical_and"], empty)
    return tuple(ops["broadcast_like"](x, ops["cast"](whole, dtype=x.dtype.name)) for x in items)


@named
def meshgrid(
    *arrays: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> tuple[Tensor, ...]:
    """Return the coordinates of a grid from those along each of its axes.

    Parameters
    ----------
    arrays
        Vectors of coordinates; a number is one of size 1.
    copy
        Only for NumPy's signature: tensors never change.
    sparse
        Leave each result with size 1 along the other axes, to be broadcast.
    indexing
        ``"ij"``: result axis i belongs to array i; ``"xy"`` (the default): the first two are
        exchanged, as in a picture.

    Returns
    -------
    tuple of Tensor
        A tensor per array, of its dtype, with as many axes as there are arrays.

    Raises
    ------
    ValueError
        If ``indexing`` is another word.

    Examples
    --------
    >>> x, y = gt.meshgrid(gt.arange(3), gt.arange(2))
    >>> x.tolist()
    [[0, 1, 2], [0, 1, 2]]
    >>> y.tolist()
    [[0, 0, 0], [1, 1, 1]]
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing must be 'xy' or 'ij', got {indexing!r}")
    rank = len(arrays)
    order = list(range(rank))
    if indexing == "xy" and rank > 1:
        order[:2] = [1, 0]
    grids = []
    for place, x in zip(order, arrays, strict=True):
        shape = tuple(-1 if i == place else 1 for i in range(rank))
        grids.append(ops["reshape"](as_tensor(x), shape=shape))
    return tuple(grids) if sparse else broadcast_arrays(*grids)
