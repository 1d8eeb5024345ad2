"""Broadcasting, minimum numbers of axes, and arrays and elements repeated.

The adjoints sum over the copies.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import prod
from typing import Any

import numpy as np

from ....core.errors import TraceError
from ....core.extend import (
    NONDIFF,
    F,
    Op,
    Tensor,
    as_batched,
    as_operands,
    as_shape,
    as_size,
    as_tensor,
    broadcast_shapes,
    ops,
    rank_of,
    same_shape,
    sizes_differ,
    with_each_other,
)
from ..common.axes import aligned, as_axis, batch_axes, reduced_axes, together
from ..common.dynamic_shapes import (
    any_unknown,
    as_sizes,
    as_vector,
    elements,
    ensured,
    table,
    with_axes,
)
from ..common.kernels import in_float32
from ..common.op_builders import named, op


def _broadcast_spec(x: Any, *, shape: tuple[int, ...]) -> tuple[Any, Any]:
    if x.shape is not None:
        missing = len(shape) - len(x.shape)
        if missing < 0 or any(
            sizes_differ(n, m) and sizes_differ(n, 1)
            for n, m in zip(x.shape, shape[missing:], strict=True)
        ):
            raise ValueError(f"broadcast_to: shape {x.shape} does not broadcast to {shape}")
    return shape, x.dtype


def broadcast(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``broadcast_to``."""
    (x,), shape = xs, params["shape"]
    batch = x.shape[0] if x.shape else None
    x = aligned(x, len(shape), op)
    if batch is not None:
        return op.raw(x, shape=(batch, *shape))
    return F.broadcast_like(x, as_batched(np.broadcast_to(np.zeros((), x.dtype), shape), x))


_broadcast_to = op(
    "broadcast_to",
    lambda xp, x, *, shape: xp.broadcast_to(x, shape),
    gradients={"x": lambda g, x_like: F.unbroadcast_like(g, x_like)},
    infer=_broadcast_spec,
    holomorphic=True,
    batch=broadcast,
    jvp="linear",
    view=True,
    integers="moves",
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

    Notes
    -----
    The gradient is summed over the copies of each element.

    Examples
    --------
    >>> gt.broadcast_to(gt.constant([1, 2]), (3, 2)).tolist()
    [[1, 2], [1, 2], [1, 2]]
    """
    if shape is None:
        raise TraceError(
            "broadcast_to: the rank is unknown in this trace; broadcast to the shape of a tensor y "
            "by broadcast_arrays(x, y)[0]"
        )
    return _broadcast_to(x, shape=as_shape(shape, "broadcast_to"))


@named
def broadcast_arrays(*arrays: Any) -> tuple[Tensor, ...]:
    """Return tensors broadcast to their common shape.

    Parameters
    ----------
    arrays
        Tensors of any dtype, whose shapes broadcast.

    Returns
    -------
    tuple of Tensor
        The tensors, each with its own dtype, in the common shape.

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
    items = as_operands(arrays if isinstance(arrays, (list, tuple)) else list(as_tensor(arrays)))
    shape = broadcast_shapes(*(x.shape for x in items), op="broadcast_arrays")
    if shape is not None and all(n is not None for n in shape):
        return tuple(
            x if same_shape(x.shape, shape) else ops["broadcast_to"](x, shape=shape) for x in items
        )
    # a trace knows no shape to name: take that of a sum, in which each array has its own dtype
    empty = [ops["equal"](x, x) for x in items]
    whole = reduce(ops["logical_and"], empty)
    return tuple(ops["broadcast_like"](x, ops["cast"](whole, dtype=x.dtype.name)) for x in items)


def _at_least(places: tuple[tuple[int, ...], ...], arrays: tuple[Any, ...]) -> Any:
    """Insert the axes that each rank in ``places`` lacks."""
    results = [with_axes(x, places) for x in with_each_other(arrays)]
    return results[0] if len(results) == 1 else tuple(results)


@named
def atleast_1d(*arrays: Any) -> Any:
    """Return tensors with at least one axis: a tuple of them, or a single one.

    Parameters
    ----------
    arrays
        Tensors of any shape and dtype.

    Returns
    -------
    Tensor or tuple of Tensor
        Numbers become vectors of size 1; tensors with axes are unchanged.

    Examples
    --------
    >>> gt.atleast_1d(gt.constant(3)).tolist()
    [3]
    """
    return _at_least(((0,),), arrays)


@named
def atleast_2d(*arrays: Any) -> Any:
    """Return tensors with at least two axes, adding axes in front; a vector becomes a row.

    Parameters
    ----------
    arrays
        Tensors of any shape and dtype.

    Returns
    -------
    Tensor or tuple of Tensor
        A tuple, or a single tensor for a single argument. A vector of size n has shape ``(1, n)``.

    Examples
    --------
    >>> gt.atleast_2d(gt.constant([1, 2])).tolist()
    [[1, 2]]
    """
    return _at_least(((0, 1), (0,)), arrays)


@named
def atleast_3d(*arrays: Any) -> Any:
    """Return tensors with at least three axes; a matrix gets one at the end, a vector two.

    Parameters
    ----------
    arrays
        Tensors of any shape and dtype.

    Returns
    -------
    Tensor or tuple of Tensor
        A tuple, or a single tensor for a single argument. A vector of size n has shape
        ``(1, n, 1)``, a matrix ``(m, n, 1)``.

    Examples
    --------
    >>> gt.atleast_3d(gt.ones((2, 3))).shape
    (2, 3, 1)
    """
    return _at_least(((0, 1, 2), (0, 2), (2,)), arrays)


# -- repetition ------------------------------------------------------------------------------------


def _tiling(shape: Any, reps: tuple[int, ...]) -> tuple[list[int], list[int]]:
    """Return ``reps`` and ``shape`` at the same length."""
    rank = max(len(shape), len(reps))
    return [1] * (rank - len(reps)) + list(reps), [1] * (rank - len(shape)) + list(shape)


def _tile_spec(x: Any, *, reps: tuple[int, ...]) -> tuple[Any, Any]:
    if x.shape is None:
        return None, x.dtype
    times, sizes = _tiling(x.shape, reps)
    # a file may say anything: a size times a tuple would be a tuple of that size
    times = [as_size(t, "tile") for t in times]
    return tuple(None if n is None else n * t for t, n in zip(times, sizes, strict=True)), x.dtype


@in_float32
def _untile(xp: Any, x: Any, like: Any, *, reps: tuple[int, ...]) -> Any:
    times, sizes = _tiling(like.shape, reps)
    blocks = [n for pair in zip(times, sizes, strict=True) for n in pair]
    summed = xp.sum(
        xp.reshape(x, tuple(blocks)), axis=tuple(range(0, len(blocks), 2)), dtype=x.dtype
    )
    return xp.reshape(summed, like.shape)


def tiled(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``tile`` and of its adjoint."""
    x, *like = together(xs, batched)
    reps = params["reps"]
    rank = max(rank_of(like[0] if like else x, op) - 1, len(reps))
    reps = (1, *(1,) * (rank - len(reps)), *reps)
    if not like:
        return op.raw(aligned(x, rank, op), reps=reps)
    return F.reshape_like(op.raw(x, aligned(like[0], rank, op), reps=reps), like[0])


_tile = op(
    "tile",
    lambda xp, x, *, reps: xp.tile(x, reps),
    gradients={"x": lambda g, x_like, reps: F.untile_like(g, x_like, reps=reps)},
    infer=_tile_spec,
    holomorphic=True,
    batch=tiled,
    jvp="linear",
    integers="moves",
    doc="Repeat all of ``x`` along each axis.",
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
    reps
        The number of copies: one for the last axis, or one for each of the last axes. If there are
        more than axes, ``x`` gets axes of size 1 in front.

    Returns
    -------
    Tensor
        A tensor of the dtype of ``x``, each axis longer by its number of copies.

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
    repeats = as_size(repeats, "repeat")  # a size times a tuple would be a tuple of that size
    if x.shape is None:
        return (None if axis is not None else (None,)), x.dtype
    if axis is None:
        size = elements(x.shape)
        return (None if size is None else size * repeats,), x.dtype
    (along,) = reduced_axes(axis, len(x.shape), "repeat")
    sizes = list(x.shape)
    sizes[along] = None if sizes[along] is None else sizes[along] * repeats
    return tuple(sizes), x.dtype


@in_float32
def _unrepeat(xp: Any, x: Any, like: Any, *, repeats: int, axis: int | None) -> Any:
    flat = axis is None or not like.shape  # one number is repeated as the only one of a line
    shape = (prod(like.shape),) if flat else like.shape
    along = 0 if axis is None or flat else axis % len(shape)
    blocks = (*shape[: along + 1], repeats, *shape[along + 1 :])
    x = xp.reshape(x, blocks)
    if 0 < repeats <= 8:  # a sum over so short an axis costs more than its additions
        before = (slice(None),) * (along + 1)
        total = x[(*before, 0, ...)]
        for k in range(1, repeats):
            total = total + x[(*before, k, ...)]
    else:
        total = xp.sum(x, axis=along + 1, dtype=x.dtype)
    return xp.reshape(total, like.shape)


def repeated(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``repeat`` and of its adjoint."""
    x, *like = together(xs, batched)
    axis, repeats = params["axis"], params["repeats"]
    rank = rank_of(like[0] if like else x, op) - 1
    if axis is not None:
        return op.raw(x, *like, repeats=repeats, axis=batch_axes(axis, rank, op.name))
    if not like:
        return op.raw(F.flatten_last(x, count=rank), repeats=repeats, axis=1)
    flat = op.raw(x, F.flatten_last(like[0], count=rank), repeats=repeats, axis=1)
    return F.reshape_like(flat, like[0])


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
    integers="moves",
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
    if isinstance(repeats, (list, tuple)) and len(repeats) == 1:
        (repeats,) = repeats
    if any_unknown(repeats):
        x, times = as_tensor(x), as_sizes(repeats, "repeat")
        if isinstance(times, tuple):
            return _repeat_each(x, times, along)
        return _repeat(x if along is None else as_vector(x), repeats=times, axis=along)
    counts = np.asarray(repeats)
    counts = counts if counts.size else counts.astype(np.int64)  # a list of nothing
    if counts.dtype.kind not in "iu" or counts.ndim > 1:
        raise TypeError(f"repeat: repeats must be one integer or a list of them, got {repeats!r}")
    if (counts < 0).any():
        raise ValueError(f"repeat: repeats must be at least 0, got {repeats!r}")
    if along is not None:
        x = as_vector(as_tensor(x))
    if counts.size == 1:
        return _repeat(x, repeats=int(counts.reshape(())), axis=along)
    return _repeat_each(as_tensor(x), counts.tolist(), along)


def _repeat_each(x: Any, counts: Any, axis: Any) -> Tensor:
    """Repeat each entry as often as its own count says."""
    if axis is None:
        x, axis = ops["reshape"](x, shape=(-1,)), 0
    counts = tuple(counts)
    count = len(counts)
    if x.shape is not None:
        (along,) = reduced_axes(axis, len(x.shape), "repeat")
        size = x.shape[along]
        why = f"repeat: {count} repeats do not fit an axis of size {size}"
        x = ensured(x, size == count, why)
    return ops["take"](x, table("repeated", counts, like=x), axis=axis)
