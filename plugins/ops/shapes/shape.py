"""Ops that move elements without computing: reshaping, reordering, repeating."""

from __future__ import annotations

import operator
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ....core.extend import NONDIFF, F, Tensor, as_shape, as_tensor, beside, broadcast_shapes, ops
from ..common.axes import as_axis, one_axis, reduced_axes
from ..common.batching import (
    along,
    broadcast,
    expanded,
    repeated,
    reshaped,
    rolled,
    squeezed,
    tiled,
    transposed,
)
from ..common.op_builders import named, op

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = [
    "broadcast_to",
    "expand_dims",
    "flip",
    "matrix_transpose",
    "moveaxis",
    "permute_dims",
    "ravel",
    "repeat",
    "reshape",
    "roll",
    "squeeze",
    "swapaxes",
    "tile",
    "transpose",
]

Shape = tuple[int | None, ...] | None

# -- reshaping -------------------------------------------------------------------------------------


def _reshape_spec(x: Any, *, shape: tuple[int, ...]) -> tuple[Any, Any]:
    unknown = [i for i, n in enumerate(shape) if n == -1]
    known = prod(n for n in shape if n != -1)
    if len(unknown) > 1 or any(n < -1 for n in shape):
        raise ValueError(f"reshape: at most one dimension may be -1, none below it, got {shape}")
    if x.shape is None or None in x.shape:
        return tuple(None if n == -1 else n for n in shape), x.dtype
    size = prod(x.shape)
    if size % known if unknown and known else size != known:
        raise ValueError(f"reshape: {size} elements of shape {x.shape} do not fill shape {shape}")
    return tuple(size // known if n == -1 and known else n for n in shape), x.dtype


_reshape = op(
    "reshape",
    lambda xp, x, *, shape: xp.reshape(x, shape),
    gradients={"x": lambda g, x_like: F.reshape_like(g, x_like)},
    infer=_reshape_spec,
    holomorphic=True,
    batch=reshaped,
    jvp="linear",
    doc="Give ``x`` another shape; one dimension may be -1.",
)


def reshape(x: Any, shape: int | Sequence[int]) -> Tensor:
    """Return the same elements in another shape.

    Parameters
    ----------
    x
        A tensor of any shape and dtype.
    shape
        The new shape, a size or a sequence of them; one may be -1, and takes what is left.

    Returns
    -------
    Tensor
        The elements of ``x`` in row-major order, in the new shape; the dtype of ``x``.

    Raises
    ------
    ValueError
        If the elements do not fill the shape, or more than one size is -1.
    TypeError
        If a size is not an integer.

    Examples
    --------
    >>> gt.reshape(gt.arange(6), (2, -1)).tolist()
    [[0, 1, 2], [3, 4, 5]]
    """
    return _reshape(x, shape=as_shape(shape, "reshape"))


@named
def ravel(x: Any) -> Tensor:
    """Return the elements of ``x`` along one axis.

    Parameters
    ----------
    x
        A tensor of any shape and dtype.

    Returns
    -------
    Tensor
        The elements in row-major order, of shape ``(x.size,)`` and the dtype of ``x``.

    Raises
    ------
    TypeError
        If ``x`` does not convert to a tensor.

    Examples
    --------
    >>> gt.ravel(gt.constant([[1, 2], [3, 4]])).tolist()
    [1, 2, 3, 4]
    """
    return _reshape(x, shape=(-1,))


def _broadcast_spec(x: Any, *, shape: tuple[int, ...]) -> tuple[Any, Any]:
    if x.shape is not None:
        result: Any = broadcast_shapes(x.shape, shape, op="broadcast_to")
        if len(result) > len(shape) or any(
            n not in (m, None) for n, m in zip(result, shape, strict=True)
        ):
            raise ValueError(f"broadcast_to: shape {x.shape} does not broadcast to {shape}")
    return shape, x.dtype


_broadcast_to = op(
    "broadcast_to",
    lambda xp, x, *, shape: xp.broadcast_to(x, shape),
    gradients={"x": lambda g, x_like: F.unbroadcast_like(g, x_like)},
    infer=_broadcast_spec,
    holomorphic=True,
    batch=broadcast,
    jvp="linear",
    doc="Repeat ``x`` along new axes and axes of size 1, so that it has a given shape.",
)


def broadcast_to(x: Any, shape: int | Sequence[int]) -> Tensor:
    """Return ``x`` repeated along new axes and axes of size 1, so that it has ``shape``.

    Parameters
    ----------
    x
        A tensor of any dtype whose shape broadcasts to ``shape``.
    shape
        The shape of the result: a size or a sequence of them.

    Returns
    -------
    Tensor
        A tensor of shape ``shape`` and the dtype of ``x``.

    Raises
    ------
    ValueError
        If the shape of ``x`` does not broadcast to ``shape``.
    TypeError
        If a size is not an integer.

    Notes
    -----
    The gradient is summed over the copies of each element.

    Examples
    --------
    >>> gt.broadcast_to(gt.constant([1, 2]), (3, 2)).tolist()
    [[1, 2], [1, 2], [1, 2]]
    """
    return _broadcast_to(x, shape=as_shape(shape, "broadcast_to"))


def _expand_kernel(xp: Any, x: Any, *, axis: Any) -> Any:
    return xp.reshape(x, _expanded(x.shape, axis))


def _expanded(shape: Any, axis: Any) -> Any:
    rank = len(shape) + (len(axis) if isinstance(axis, tuple) else 1)
    if rank > 64:  # NumPy's limit too
        raise ValueError(f"expand_dims: the result would have {rank} dimensions, the most are 64")
    new = reduced_axes(axis, rank, "expand_dims")
    sizes = iter(shape)
    return tuple(1 if i in new else next(sizes) for i in range(rank))


def _squeezed(shape: Any, axis: Any) -> Any:
    if axis is None:
        return None if None in shape else tuple(n for n in shape if n != 1)
    gone = reduced_axes(axis, len(shape), "squeeze")
    for i in gone:
        if shape[i] not in (1, None):
            raise ValueError(
                f"squeeze: axis {i} of shape {shape} has size {shape[i]}; only size 1 can go"
            )
    return tuple(n for i, n in enumerate(shape) if i not in gone)


_expand_dims = op(
    "expand_dims",
    _expand_kernel,
    gradients={"x": lambda g, axis: F.squeeze(g, axis=axis)},
    infer=lambda x, axis: (None if x.shape is None else _expanded(x.shape, axis), x.dtype),
    holomorphic=True,
    batch=expanded,
    jvp="linear",
    doc="Insert axes of size 1, at the positions ``axis`` of the result.",
)
_squeeze = op(
    "squeeze",
    lambda xp, x, *, axis=None: xp.reshape(x, _squeezed(x.shape, axis)),
    gradients={"x": lambda g, x_like: F.reshape_like(g, x_like)},
    infer=lambda x, axis: (None if x.shape is None else _squeezed(x.shape, axis), x.dtype),
    holomorphic=True,
    batch=squeezed,
    jvp="linear",
    doc="Remove axes of size 1.",
)


def expand_dims(x: Any, axis: int | Sequence[int]) -> Tensor:
    """Return ``x`` with axes of size 1 inserted at the positions ``axis`` of the result.

    Parameters
    ----------
    x
        A tensor of any shape and dtype.
    axis
        One position or several, as axes of the result; negative ones count from its end.

    Returns
    -------
    Tensor
        The elements of ``x``, with as many more axes as ``axis`` names; the dtype of ``x``.

    Raises
    ------
    numpy.exceptions.AxisError
        If a position is out of bounds for the result.
    ValueError
        If a position is named twice, or the result would have more than 64 axes.

    Examples
    --------
    >>> gt.expand_dims(gt.ones((2, 3)), axis=(0, -1)).shape
    (1, 2, 3, 1)
    """
    return _expand_dims(x, axis=as_axis(axis, "expand_dims"))


def squeeze(x: Any, axis: int | Sequence[int] | None = None) -> Tensor:
    """Return ``x`` without axes of size 1: those of ``axis``, or all.

    Parameters
    ----------
    x
        A tensor of any shape and dtype.
    axis
        The axis or axes to remove; by default all of size 1.

    Returns
    -------
    Tensor
        The elements of ``x`` with fewer axes; the dtype of ``x``.

    Raises
    ------
    ValueError
        If an axis to remove has another size, or is named twice.
    numpy.exceptions.AxisError
        If an axis is out of bounds.

    Examples
    --------
    >>> gt.squeeze(gt.ones((1, 3, 1))).shape
    (3,)
    >>> gt.squeeze(gt.ones((1, 3, 1)), axis=0).shape
    (3, 1)
    """
    return _squeeze(x, axis=as_axis(axis, "squeeze"))


# -- reordering ------------------------------------------------------------------------------------


def _order(axes: tuple[int, ...] | None, rank: int) -> tuple[int, ...]:
    if axes is None:
        return tuple(range(rank))[::-1]
    if len(axes) != rank:
        raise ValueError(f"transpose: axes {axes} do not match an array of dimension {rank}")
    return reduced_axes(axes, rank, "transpose")


def _inverse(axes: tuple[int, ...] | None) -> tuple[int, ...] | None:
    if axes is None:
        return None
    order = _order(axes, len(axes))
    return tuple(order.index(i) for i in range(len(order)))


def _transpose_spec(x: Any, *, axes: tuple[int, ...] | None) -> tuple[Any, Any]:
    if x.shape is None:
        return (None if axes is None else (None,) * len(axes)), x.dtype
    return tuple(x.shape[i] for i in _order(axes, len(x.shape))), x.dtype


_transpose = op(
    "transpose",
    lambda xp, x, *, axes=None: xp.permute_dims(x, _order(axes, x.ndim)),
    gradients={"x": lambda g, axes: F.transpose(g, axes=_inverse(axes))},
    infer=_transpose_spec,
    holomorphic=True,
    batch=transposed,
    jvp="linear",
    doc="Permute the axes, or reverse their order.",
)


def transpose(x: Any, axes: Sequence[int] | None = None) -> Tensor:
    """Return ``x`` with its axes in the order ``axes``; in reverse order by default.

    Parameters
    ----------
    x
        A tensor of any shape and dtype.
    axes
        Every axis of ``x`` once: axis ``i`` of the result is axis ``axes[i]`` of ``x``.

    Returns
    -------
    Tensor
        A tensor of shape ``tuple(x.shape[i] for i in axes)`` and the dtype of ``x``.

    Raises
    ------
    ValueError
        If ``axes`` does not name every axis once.
    numpy.exceptions.AxisError
        If an axis is out of bounds.

    Examples
    --------
    >>> gt.transpose(gt.ones((2, 3, 4))).shape
    (4, 3, 2)
    >>> gt.transpose(gt.ones((2, 3, 4)), (0, 2, 1)).shape
    (2, 4, 3)
    """
    return _transpose(x, axes=None if axes is None else as_shape(axes, "transpose"))


@named
def permute_dims(x: Any, axes: Sequence[int]) -> Tensor:
    """Return ``x`` with its axes in the order ``axes``: the array API's name for transpose.

    Parameters
    ----------
    x
        A tensor of any shape and dtype.
    axes
        Every axis of ``x`` once: axis ``i`` of the result is axis ``axes[i]`` of ``x``.

    Returns
    -------
    Tensor
        A tensor of shape ``tuple(x.shape[i] for i in axes)`` and the dtype of ``x``.

    Raises
    ------
    ValueError
        If ``axes`` does not name every axis once.
    numpy.exceptions.AxisError
        If an axis is out of bounds.

    Examples
    --------
    >>> gt.permute_dims(gt.ones((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    return _transpose(x, axes=as_shape(axes, "permute_dims"))


def _moved(rank: int, source: tuple[int, ...], destination: tuple[int, ...]) -> tuple[int, ...]:
    taken = reduced_axes(source, rank, "moveaxis")
    places = reduced_axes(destination, rank, "moveaxis")
    if len(taken) != len(places):
        raise ValueError(f"moveaxis: {len(taken)} axes do not go to {len(places)} places")
    order = [i for i in range(rank) if i not in taken]
    for place, axis in sorted(zip(places, taken, strict=True)):
        order.insert(place, axis)
    return tuple(order)


_moveaxis = op(
    "moveaxis",
    lambda xp, x, *, source, destination: xp.permute_dims(x, _moved(x.ndim, source, destination)),
    gradients={
        "x": lambda g, source, destination: F.moveaxis(g, source=destination, destination=source)
    },
    infer=lambda x, source, destination: _permuted(x, lambda n: _moved(n, source, destination)),
    holomorphic=True,
    batch=along("source", "destination"),
    jvp="linear",
    doc="Move axes to other places; the rest stay in order.",
)


def _permuted(x: Any, order: Callable[[int], tuple[int, ...]]) -> tuple[Any, Any]:
    return None if x.shape is None else tuple(x.shape[i] for i in order(len(x.shape))), x.dtype


def moveaxis(x: Any, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """Return ``x`` with the axes ``source`` moved to the places ``destination``.

    Parameters
    ----------
    x
        A tensor of any shape and dtype.
    source
        The axis or axes to move; the others keep their order.
    destination
        Where each goes in the result; as many as in ``source``.

    Returns
    -------
    Tensor
        The tensor with its axes in the new order; the dtype of ``x``.

    Raises
    ------
    ValueError
        If there are not as many places as axes, or one is named twice.
    numpy.exceptions.AxisError
        If an axis is out of bounds.

    Examples
    --------
    >>> gt.moveaxis(gt.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    return _moveaxis(
        x, source=as_shape(source, "moveaxis"), destination=as_shape(destination, "moveaxis")
    )


def _swapped(rank: int, axis1: int, axis2: int) -> tuple[int, ...]:
    order = list(range(rank))
    (i,), (j,) = (reduced_axes(axis, rank, "swapaxes") for axis in (axis1, axis2))
    order[i], order[j] = j, i
    return tuple(order)


_swapaxes = op(
    "swapaxes",
    lambda xp, x, *, axis1, axis2: xp.permute_dims(x, _swapped(x.ndim, axis1, axis2)),
    gradients={"x": lambda g, axis1, axis2: F.swapaxes(g, axis1=axis1, axis2=axis2)},
    infer=lambda x, axis1, axis2: _permuted(x, lambda n: _swapped(n, axis1, axis2)),
    holomorphic=True,
    batch=along("axis1", "axis2"),
    jvp="linear",
    doc="Exchange two axes.",
)


def swapaxes(x: Any, axis1: int, axis2: int) -> Tensor:
    """Return ``x`` with two axes exchanged.

    Parameters
    ----------
    x
        A tensor of any dtype.
    axis1, axis2
        The axes to exchange.

    Returns
    -------
    Tensor
        The tensor with the two axes in each other's place; the dtype of ``x``.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of bounds.
    TypeError
        If an axis is not an integer.

    Examples
    --------
    >>> gt.swapaxes(gt.ones((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    return _swapaxes(x, axis1=one_axis(axis1, "swapaxes"), axis2=one_axis(axis2, "swapaxes"))


@named
def matrix_transpose(x: Any) -> Tensor:
    """Return ``x`` with its last two axes exchanged.

    Parameters
    ----------
    x
        Matrices of any dtype, of shape ``(..., m, n)``.

    Returns
    -------
    Tensor
        The transposed matrices, of shape ``(..., n, m)``; complex elements are not conjugated.

    Raises
    ------
    numpy.exceptions.AxisError
        If ``x`` has fewer than two axes.

    Examples
    --------
    >>> gt.matrix_transpose(gt.constant([[1, 2], [3, 4]])).tolist()
    [[1, 3], [2, 4]]
    """
    return _swapaxes(x, axis1=-1, axis2=-2)


def _axis_spec(name: str) -> Callable[..., tuple[Any, Any]]:
    """Return the shape rule of an op that keeps the shape and takes an axis that must exist."""

    def infer(x: Any, *, axis: Any, **params: Any) -> tuple[Any, Any]:
        if x.shape is not None and axis is not None:
            reduced_axes(axis, len(x.shape), name)
        return x.shape, x.dtype

    return infer


_flip = op(
    "flip",
    lambda xp, x, *, axis=None: xp.flip(x, axis=axis),
    gradients={"x": lambda g, axis: F.flip(g, axis=axis)},
    infer=_axis_spec("flip"),
    holomorphic=True,
    batch=along("axis"),
    jvp="linear",
    doc="Reverse the order of elements along axes.",
)


def flip(x: Any, axis: int | Sequence[int] | None = None) -> Tensor:
    """Return ``x`` with the order of elements reversed along ``axis`` (all axes by default).

    Parameters
    ----------
    x
        A tensor of any shape and dtype.
    axis
        The axis or axes to reverse.

    Returns
    -------
    Tensor
        A tensor of the shape and dtype of ``x``.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of bounds.
    ValueError
        If an axis is named twice.

    Examples
    --------
    >>> gt.flip(gt.constant([[1, 2], [3, 4]]), axis=1).tolist()
    [[2, 1], [4, 3]]
    """
    return _flip(x, axis=as_axis(axis, "flip"))


def _roll_spec(x: Any, *, shift: Any, axis: Any) -> tuple[Any, Any]:
    if x.shape is not None and axis is not None:
        for n in axis if isinstance(axis, tuple) else (axis,):  # one may come twice
            reduced_axes(n, len(x.shape), "roll")
    return x.shape, x.dtype


_roll = op(
    "roll",
    lambda xp, x, *, shift, axis=None: xp.roll(x, shift, axis=axis),
    gradients={"x": lambda g, shift, axis: F.roll(g, shift=_negative(shift), axis=axis)},
    infer=_roll_spec,
    holomorphic=True,
    batch=rolled,
    jvp="linear",
    doc="Shift elements along axes; what leaves at the end comes back at the start.",
)


def _negative(shift: int | tuple[int, ...]) -> int | tuple[int, ...]:
    return tuple(-n for n in shift) if isinstance(shift, tuple) else -shift


def roll(x: Any, shift: int | Sequence[int], axis: int | Sequence[int] | None = None) -> Tensor:
    """Return ``x`` shifted along ``axis``; what leaves at the end comes back at the start.

    Parameters
    ----------
    x
        A tensor of any shape and dtype.
    shift
        How many places elements move towards higher indices: one number, or one for each axis.
    axis
        The axis or axes to shift along. Without it, the flattened tensor is shifted, and keeps its
        shape.

    Returns
    -------
    Tensor
        A tensor of the shape and dtype of ``x``.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of bounds.
    TypeError
        If a shift or an axis is not an integer.

    Examples
    --------
    >>> gt.roll(gt.arange(5), 2).tolist()
    [3, 4, 0, 1, 2]
    """
    return _roll(x, shift=as_axis(shift, "roll"), axis=as_axis(axis, "roll"))


# -- repeating -------------------------------------------------------------------------------------


def _tiling(shape: Any, reps: tuple[int, ...]) -> tuple[list[int], list[int]]:
    """Return ``reps`` and ``shape`` at the same length."""
    rank = max(len(shape), len(reps))
    return [1] * (rank - len(reps)) + list(reps), [1] * (rank - len(shape)) + list(shape)


def _tile_spec(x: Any, *, reps: tuple[int, ...]) -> tuple[Any, Any]:
    if x.shape is None:
        return None, x.dtype
    times, sizes = _tiling(x.shape, reps)
    # a file may say anything: a size times a tuple would be a tuple of that size
    times = [operator.index(t) for t in times]
    return tuple(None if n is None else n * t for t, n in zip(times, sizes, strict=True)), x.dtype


def _untile(xp: Any, x: Any, like: Any, *, reps: tuple[int, ...]) -> Any:
    times, sizes = _tiling(like.shape, reps)
    blocks = [n for pair in zip(times, sizes, strict=True) for n in pair]
    summed = xp.sum(
        xp.reshape(x, tuple(blocks)), axis=tuple(range(0, len(blocks), 2)), dtype=x.dtype
    )
    return xp.reshape(summed, like.shape)


_tile = op(
    "tile",
    lambda xp, x, *, reps: xp.tile(x, reps),
    gradients={"x": lambda g, x_like, reps: F.untile_like(g, x_like, reps=reps)},
    infer=_tile_spec,
    holomorphic=True,
    batch=tiled,
    jvp="linear",
    doc="Repeat the whole of ``x`` along each axis.",
)
op(
    "untile_like",
    _untile,
    gradients={"x": lambda g, reps: F.tile(g, reps=reps), "like": NONDIFF},
    infer=lambda x, like, reps: (like.shape, x.dtype),
    holomorphic=True,
    batch=tiled,
    jvp="linear",
    doc="Sum the copies of ``like`` that ``tile`` made.",
)


def tile(x: Any, reps: int | Sequence[int]) -> Tensor:
    """Return copies of ``x`` side by side: ``reps`` of them along each of the last axes.

    Parameters
    ----------
    x
        A tensor of any shape and dtype.
    reps
        The number of copies: one for the last axis, or one for each of the last axes. If there are
        more than axes, ``x`` gets axes of size 1 in front.

    Returns
    -------
    Tensor
        A tensor of the dtype of ``x``, each axis as many times longer.

    Raises
    ------
    TypeError
        If a number of copies is not an integer.
    ValueError
        If a number of copies is negative.

    Notes
    -----
    The gradient is summed over the copies.

    Examples
    --------
    >>> gt.tile(gt.constant([1, 2]), (2, 2)).tolist()
    [[1, 2, 1, 2], [1, 2, 1, 2]]
    """
    return _tile(x, reps=as_shape(reps, "tile"))


def _repeat_spec(x: Any, *, repeats: int, axis: int | None) -> tuple[Any, Any]:
    repeats = operator.index(repeats)  # a size times a tuple would be a tuple of that size
    if x.shape is None:
        return (None if axis is not None else (None,)), x.dtype
    if axis is None:
        return (None if None in x.shape else prod(x.shape) * repeats,), x.dtype
    (along,) = reduced_axes(axis, len(x.shape), "repeat")
    sizes = list(x.shape)
    sizes[along] = None if sizes[along] is None else sizes[along] * repeats
    return tuple(sizes), x.dtype


def _unrepeat(xp: Any, x: Any, like: Any, *, repeats: int, axis: int | None) -> Any:
    shape = like.shape if axis is not None else (prod(like.shape),)
    along = axis % len(shape) if axis is not None else 0
    blocks = (*shape[: along + 1], repeats, *shape[along + 1 :])
    return xp.reshape(xp.sum(xp.reshape(x, blocks), axis=along + 1, dtype=x.dtype), like.shape)


_repeat = op(
    "repeat",
    lambda xp, x, *, repeats, axis=None: xp.repeat(x, repeats, axis=axis),
    gradients={
        "x": lambda g, x_like, repeats, axis: F.unrepeat_like(g, x_like, repeats=repeats, axis=axis)
    },
    infer=_repeat_spec,
    holomorphic=True,
    batch=repeated,
    jvp="linear",
    doc="Repeat each element along an axis.",
)
op(
    "unrepeat_like",
    _unrepeat,
    gradients={
        "x": lambda g, repeats, axis: F.repeat(g, repeats=repeats, axis=axis),
        "like": NONDIFF,
    },
    infer=lambda x, like, repeats, axis: (like.shape, x.dtype),
    holomorphic=True,
    batch=repeated,
    jvp="linear",
    doc="Sum the copies of each element of ``like`` that ``repeat`` made.",
)


@named
def repeat(x: Any, repeats: int | Sequence[int], axis: int | None = None) -> Tensor:
    """Return ``x`` with each element ``repeats`` times in a row.

    Parameters
    ----------
    x
        A tensor of any dtype.
    repeats
        One integer; or one for each entry along ``axis``, as a list or an array of known value.
    axis
        The axis to repeat along; without it, the flattened tensor is repeated.

    Returns
    -------
    Tensor
        A tensor of the dtype of ``x``; the size of the axis is the sum of the repeats.

    Raises
    ------
    TypeError
        If ``repeats`` does not hold integers.
    ValueError
        If one is negative, or their number is not the size of the axis.
    numpy.exceptions.AxisError
        If the axis is out of bounds.

    Notes
    -----
    The gradient is summed over the copies of each element.

    Examples
    --------
    >>> gt.repeat(gt.constant([1, 2]), 2).tolist()
    [1, 1, 2, 2]
    >>> gt.repeat(gt.constant([1, 2]), [0, 3]).tolist()
    [2, 2, 2]
    """
    along = as_axis(axis, "repeat")
    counts = np.asarray(repeats)
    if counts.dtype.kind not in "iu" or counts.ndim > 1:
        raise TypeError(f"repeat: repeats must be one integer or a list of them, got {repeats!r}")
    if (counts < 0).any():
        raise ValueError(f"repeat: repeats must be at least 0, got {repeats!r}")
    if counts.size == 1:
        return _repeat(x, repeats=int(counts.reshape(())), axis=along)
    x = as_tensor(x)
    if along is None:
        x, along = _reshape(x, shape=(-1,)), 0
    if x.shape is not None:
        size = x.shape[reduced_axes(along, len(x.shape), "repeat")[0]]
        if size not in (counts.size, None):
            raise ValueError(f"repeat: {counts.size} repeats do not fit an axis of size {size}")
    return ops["take"](x, beside(np.repeat(np.arange(counts.size), counts), x), axis=along)
