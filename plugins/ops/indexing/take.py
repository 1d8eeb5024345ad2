"""Elements and rows by index, along an axis or for each position of the other axes."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ....core.extend import (
    NONDIFF,
    F,
    Op,
    Shared,
    Tensor,
    TensorSpec,
    as_batched,
    as_tensor,
    broadcast_shapes,
    ops,
    rank_of,
    row_of,
    same_size,
)
from ..common.axes import along, one_axis, reduced_axes
from ..common.dynamic_shapes import as_vector, empty
from ..common.kernels import along_axis, index_along_axis, scatter_add
from ..common.op_builders import named, op
from .batched_index import EVERYTHING, batched_index
from .getitem import gradients_together, take_kernel


def _take_spec(x: TensorSpec, indices: TensorSpec, *, axis: int | None) -> tuple[Any, Any]:
    if axis is None:
        return indices.shape, x.dtype
    if x.shape is None or indices.shape is None:
        return None, x.dtype
    (along,) = reduced_axes(axis, len(x.shape), "take")
    return (*x.shape[:along], *indices.shape, *x.shape[along + 1 :]), x.dtype


def take_adjoint_kernel(
    xp: Any, g: Any, indices: Any, like: Any, *, axis: int | None = None
) -> Any:
    flat = axis is None or not like.shape  # one number is taken as the only one of a line
    shape = (prod(like.shape),) if flat else like.shape
    along = 0 if axis is None or flat else axis % len(shape)
    out = xp.zeros(shape, dtype=g.dtype)
    if not prod(g.shape):  # of rows that are none, NumPy takes what an empty axis does not have
        return xp.reshape(out, like.shape)
    where = (*(slice(None),) * along, indices)

    def pick(x: Any) -> Any:
        return take_kernel(xp, x, indices, axis=along)

    return xp.reshape(scatter_add(xp, out, where, g, pick), like.shape)


def _take_index(axis: int) -> tuple[Any, ...]:
    if axis < 0:
        return ("...", ("array", 0), *(EVERYTHING,) * (-axis - 1))
    return (*(EVERYTHING,) * axis, ("array", 0))


def take_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``take``."""
    (x, indices), (bx, bi) = xs, batched
    rank, axis = rank_of(x, op) - bx, params["axis"]
    if axis is None:
        x = F.flatten_last(x, count=rank)
        rank, axis = 1, 0
    (axis,) = reduced_axes(axis, rank, "take")
    if not bi:
        return op.raw(x, indices, axis=axis + 1)
    if not bx:
        picked = op.raw(x, indices, axis=axis)
        return F.moveaxis(picked, source=(axis,), destination=(0,)) if axis else picked
    plan = batched_index(op, _take_index(axis), x, [indices], [True])
    return plan.out(F.getitem(x, *plan.arrays, index=plan.index))


def take_adjoint_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``take_adjoint``."""
    g, indices, like = xs
    bg, bi, bl = batched
    beside = xs[batched.index(True)]
    if not bg and not bi:
        return Shared(op.raw(g, indices, row_of(like), **params))
    g, like = (x if b else as_batched(x, beside) for x, b in ((g, bg), (like, bl)))
    rank, axis, whole = rank_of(like, op) - 1, params["axis"], like
    if axis is None:
        whole, rank, axis = F.flatten_last(like, count=rank), 1, 0
    (axis,) = reduced_axes(axis, rank, "take")
    if not bi:
        result = op.raw(g, indices, whole, axis=axis + 1)
    else:
        plan = batched_index(op, _take_index(axis), whole, [indices], [True])
        result = F.index_add_like(plan.back(g), whole, *plan.arrays, index=plan.index)
    return result if whole is like else F.reshape_like(result, like)


def _take_together(gs: list[Any], inputs: list[Any], params: list[dict[str, Any]]) -> Any:
    x = inputs[0][0]
    if len(gs) == 1:
        return F.take_adjoint(gs[0], inputs[0][1], x, axis=params[0]["axis"])
    total = None
    for flat in (False, True):
        calls = [i for i, settings in enumerate(params) if (settings["axis"] is None) is flat]
        if not calls:
            continue
        part = gradients_together(
            [gs[i] for i in calls],
            F.reshape(x, shape=(-1,)) if flat else x,
            [_take_index(params[i]["axis"] or 0) for i in calls],
            [inputs[i][1:] for i in calls],
        )
        part = F.reshape_like(part, x) if flat else part
        total = part if total is None else total + part
    return total


def _taken_integers(x: Any, indices: Any, *, axis: int = 0) -> Any:
    return np.take(x, indices.astype(int), axis=axis)


_take = op(
    "take",
    take_kernel,
    together=_take_together,
    infer=_take_spec,
    holomorphic=True,
    batch=take_rule,
    jvp="linear",
    integers=_taken_integers,
    doc="Select entries along an axis by index.",
)
op(
    "take_adjoint",
    take_adjoint_kernel,
    gradients={
        "g": lambda g, indices, axis: F.take(g, indices, axis=axis),
        "indices": NONDIFF,
        "like": NONDIFF,
    },
    infer=lambda g, indices, like, axis: (like.shape, g.dtype),
    holomorphic=True,
    batch=take_adjoint_rule,
    jvp="linear",
    doc="Add ``g`` to zeros of the shape of ``like``, at the positions that ``take`` selected.",
)


def _indices(indices: Any, name: str, refusal: type[Exception] = IndexError) -> Any:
    array = as_tensor(indices)
    if isinstance(indices, (list, tuple)) and empty(array.shape):
        array = array.astype(np.int64)  # a list of nothing
    if array.dtype.kind not in "iu":
        raise refusal(f"{name}: indices must be integers, got dtype {array.dtype}")
    return array


def _inside(shape: Any, indices: Any, axis: int | None, mode: str) -> Any:
    """Return indices mapped into bounds, by the mode of :func:`take`."""
    if shape is not None:
        sizes = shape if axis is None else (shape[reduced_axes(axis, len(shape), "take")[0]],)
    if shape is None:
        raise ValueError(f"take: mode={mode!r} needs a known rank in a trace")
    size = prod(sizes)
    if same_size(size, 0):
        if empty(indices.shape):
            return indices
        raise IndexError(f"take: cannot take from an empty axis, got shape {shape}")
    indices = indices.astype("int64")  # the size may be more than a narrow dtype holds
    return indices % size if mode == "wrap" else ops["clip"](indices, 0, size - 1)


@named
def take(x: Any, indices: Any, axis: int | None = None, mode: str = "raise") -> Tensor:
    """Return entries of ``x`` selected by index.

    Parameters
    ----------
    x
        A tensor of any dtype.
    indices
        Integers of any shape; negative ones count from the end. The gradients of repeated indices
        add up.
    axis
        The axis to select along; ``None`` selects from the flattened ``x``.
    mode
        How to treat an index out of bounds: ``"raise"``; ``"wrap"``, counted around the end; or
        ``"clip"``, the first or the last element (negative indices then mean the first one).

    Returns
    -------
    A tensor of the dtype of ``x``, of shape
    ``x.shape[:axis] + indices.shape + x.shape[axis + 1:]``.

    Raises
    ------
    IndexError
        If an index is out of bounds.
    TypeError
        If an index is not an integer.
    ValueError
        If the mode is unknown, or needs a rank that a trace does not know.

    Examples
    --------
    >>> x = gt.constant([[1.0, 2.0], [3.0, 4.0]])
    >>> gt.take(x, [1, 1, 0], axis=0).tolist()
    [[3.0, 4.0], [3.0, 4.0], [1.0, 2.0]]
    >>> gt.take(x, [0, -1]).tolist()
    [1.0, 4.0]
    """
    x, indices = as_vector(as_tensor(x)), _indices(indices, "take", TypeError)
    if mode != "raise":
        if mode not in ("wrap", "clip"):
            raise ValueError(f"take: mode must be 'raise', 'wrap' or 'clip', got {mode!r}")
        indices = _inside(x.shape, indices, axis, mode)
    return _take(x, indices, axis=None if axis is None else one_axis(axis, "take"))


@named
def gather(params: Any, indices: Any, axis: int = 0) -> Tensor:
    """Return slices of ``params`` along ``axis``: :func:`take` with TensorFlow's argument names.

    Parameters
    ----------
    params
        A tensor of any dtype.
    indices
        Integers of any shape; negative ones count from the end. The gradients of repeated indices
        add up.
    axis
        The axis to select along; the first by default.

    Returns
    -------
    A tensor of the dtype of ``params``, of shape
    ``params.shape[:axis] + indices.shape + params.shape[axis + 1:]``.

    Raises
    ------
    IndexError
        If an index is out of bounds.
    TypeError
        If an index is not an integer.

    Examples
    --------
    >>> table = gt.constant([[1.0, 2.0], [3.0, 4.0]])
    >>> gt.gather(table, [1, 1, 0]).tolist()
    [[3.0, 4.0], [3.0, 4.0], [1.0, 2.0]]
    """
    return take(params, indices, axis)


def _along_axis_spec(x: TensorSpec, indices: TensorSpec, *, axis: int) -> tuple[Any, Any]:
    if x.shape is None or indices.shape is None:
        return None, x.dtype
    (along,) = reduced_axes(axis, len(x.shape), "take_along_axis")
    if len(x.shape) != len(indices.shape):
        raise ValueError(
            "take_along_axis: x and indices must have the same number of axes, "
            f"got shapes {x.shape} and {indices.shape}"
        )
    other = tuple(1 if i == along else n for i, n in enumerate(x.shape))
    return broadcast_shapes(other, indices.shape, op="take_along_axis"), x.dtype


def along_axis_adjoint(xp: Any, g: Any, indices: Any, like: Any, *, axis: int) -> Any:
    out = xp.zeros(like.shape, dtype=g.dtype)
    return scatter_add(xp, out, index_along_axis(xp, like.shape, indices, axis), g)


def along_axis_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``take_along_axis``."""
    x, indices = xs
    if batched[0]:
        return along("axis")(op, xs, batched, params)
    (axis,) = reduced_axes(params["axis"], rank_of(x, op), op.name)
    # the examples' indices next to each other, so that the gradient is one array like x
    moved = F.moveaxis(indices, source=(0,), destination=(axis,))
    before, (size, count, *after) = moved.shape[:axis], moved.shape[axis:]
    result = op.raw(x, F.reshape(moved, shape=(*before, size * count, *after)), axis=axis)
    before, after = result.shape[:axis], result.shape[axis + 1 :]
    result = F.reshape(result, shape=(*before, size, count, *after))
    return F.moveaxis(result, source=(axis,), destination=(0,))


_take_along_axis = op(
    "take_along_axis",
    lambda xp, x, indices, *, axis: along_axis(xp, x, indices, axis),
    gradients={
        "x": lambda g, indices, x_like, axis: F.take_along_axis_adjoint(
            g, indices, x_like, axis=axis
        ),
        "indices": NONDIFF,
    },
    infer=_along_axis_spec,
    holomorphic=True,
    batch=along_axis_rule,
    jvp="linear",
    doc="Select entries along an axis, by an index for each position of the other axes.",
)
op(
    "take_along_axis_adjoint",
    along_axis_adjoint,
    gradients={
        "g": lambda g, indices, axis: F.take_along_axis(g, indices, axis=axis),
        "indices": NONDIFF,
        "like": NONDIFF,
    },
    infer=lambda g, indices, like, axis: (like.shape, g.dtype),
    holomorphic=True,
    batch=along("axis"),
    jvp="linear",
    doc="Add ``g`` to zeros of the shape of ``like``, where ``take_along_axis`` read.",
)


@named
def take_along_axis(x: Any, indices: Any, axis: int | None = -1) -> Tensor:
    """Return entries of ``x`` along ``axis``, by an index for each position of the other axes.

    Parameters
    ----------
    x
        A tensor of any dtype.
    indices
        Integers with as many axes as ``x``; the other axes broadcast.
    axis
        The axis to select along, the last by default; ``None`` selects from the flattened ``x``.

    Returns
    -------
    A tensor of the dtype of ``x`` and the shape of ``indices``, with the other axes broadcast.
    Gradients go back to the selected entries; those of repeated ones add up.

    Raises
    ------
    ValueError
        If ``indices`` has a different number of axes.
    IndexError
        If an index is out of bounds or not an integer, or another axis does not broadcast.

    Examples
    --------
    >>> x = gt.constant([[3.0, 1.0], [2.0, 4.0]])
    >>> gt.take_along_axis(x, gt.argsort(x, axis=1), axis=1).tolist()
    [[1.0, 3.0], [2.0, 4.0]]
    """
    x, indices = as_tensor(x), _indices(indices, "take_along_axis")
    if axis is None:
        x, axis = ops["reshape"](x, shape=(-1,)), 0
    return _take_along_axis(x, indices, axis=one_axis(axis, "take_along_axis"))


@named
def put_along_axis(x: Any, indices: Any, values: Any, axis: int | None) -> Tensor:
    """Return ``x`` with entries along ``axis`` replaced, by an index for each other position.

    Parameters
    ----------
    x
        A tensor of any dtype.
    indices
        Integers with as many axes as ``x``; the other axes broadcast.
    values
        The replacements: numbers or a tensor that broadcasts to the positions. If an index is
        repeated, the last value is kept.
    axis
        The axis of the indices; ``None`` means the flattened ``x``.

    Returns
    -------
    A new tensor of the shape and dtype of ``x``; unlike NumPy's function, this changes nothing in
    place. Gradients reach ``values`` and the entries that are kept.

    Raises
    ------
    IndexError
        If an index is out of bounds, or not an integer.
    ValueError
        If ``indices`` has a different number of axes, or ``values`` does not broadcast.
    TypeError
        If ``values`` is of a higher kind than ``x``, such as floats for integers.

    Examples
    --------
    >>> x = gt.constant([[1.0, 2.0], [3.0, 4.0]])
    >>> gt.put_along_axis(x, gt.constant([[0], [1]]), 9.0, axis=1).tolist()
    [[9.0, 2.0], [3.0, 9.0]]
    """
    x = as_tensor(x)
    places = take_along_axis(ops["numbered_like"](x), indices, axis)
    changed = ops["reshape"](x, shape=(-1,)).at[places].set(values)
    return ops["reshape_like"](changed, x)
