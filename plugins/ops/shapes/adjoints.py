"""Ops of gradient rules that take a shape or a dtype from another tensor.

They come in adjoint pairs: ``unbroadcast_like`` with ``broadcast_like``, ``unreduce_like`` with
``sum``. Each is the gradient rule of the other.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ....core.extend import (
    NONDIFF,
    F,
    Op,
    Shared,
    as_batched,
    kind_of,
    numpy_dtype,
    rank_of,
    row_of,
    same_shape,
    shapes_differ,
)
from ..common.axes import Axis, aligned, batch_axes, reduced_axes
from ..common.kernels import SCALARS, cast_to, summed
from ..common.op_builders import op


def _unbroadcast(xp: Any, x: Any, like: Any) -> Any:
    shape, extra = like.shape, x.ndim - like.ndim
    if x.shape != shape:
        axes = tuple(
            i for i, n in enumerate(x.shape) if i < extra or (shape[i - extra] == 1 and n != 1)
        )
        if axes:
            x = summed(xp, x, axis=axes, keepdims=True)
        x = xp.reshape(x, shape)
    return cast_to(xp, x, like.dtype)


def _broadcast(xp: Any, x: Any, like: Any) -> Any:
    if type(x) in SCALARS:
        return xp.full(like.shape, x, dtype=like.dtype)
    return cast_to(xp, xp.broadcast_to(x, like.shape), like.dtype)


def _unreduce(xp: Any, x: Any, like: Any, *, axis: Axis = None, keepdims: bool = False) -> Any:
    x = cast_to(xp, x, like.dtype)
    if axis is not None and not keepdims:
        axes = reduced_axes(axis, like.ndim, "unreduce_like")
        x = xp.reshape(x, tuple(1 if i in axes else n for i, n in enumerate(like.shape)))
    return xp.broadcast_to(x, like.shape)


def size_over(xp: Any, x: Any, *, axis: Axis = None) -> Any:
    """Return the number of elements of ``x`` along ``axis`` as an array; a kernel."""
    count = prod(x.shape[i] for i in reduced_axes(axis, x.ndim, "size_over"))
    dtype = x.dtype if kind_of(x.dtype) != "c" else xp.real(x).dtype
    # a count above 65504 is infinite in float16
    return xp.asarray(count, dtype=xp.float32 if numpy_dtype(dtype) == np.float16 else dtype)


def _check_shape(xp: Any, x: Any, like: Any, *, what: str) -> Any:
    if x.shape != like.shape:
        raise ValueError(f"{what} has shape {x.shape}, but it must have shape {like.shape}")
    return x


def _check_shape_spec(x: Any, like: Any, what: str) -> tuple[Any, Any]:
    if shapes_differ(x.shape, like.shape):
        raise ValueError(f"{what} has shape {x.shape}, but it must have shape {like.shape}")
    return x.shape if like.shape is None else like.shape, x.dtype


def _like_spec(x: Any, like: Any, **params: Any) -> tuple[Any, Any]:
    return like.shape, like.dtype


def _spread_shape(shape: Any, like: Any) -> Any:
    if like == ():
        raise ValueError("spread_like: like has no axis to take a size from")
    return None if shape is None else (None if like is None else like[0], *shape)


def like_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ops of ``x`` and the shape of ``like``, which both have the hidden axis."""
    (x, like), (x_batched, like_batched) = xs, batched
    if not x_batched:
        return Shared(op.raw(x, row_of(like), **params))
    like = like if like_batched else as_batched(like, x)
    if op.name == "broadcast_like":
        return op.raw(aligned(x, rank_of(like, op) - 1, op), like)
    if op.name == "unbroadcast_like":
        if same_shape(x.shape, like.shape):
            return op.raw(x, like)
        wide = aligned(like, rank_of(x, op) - 1, op)
        return op.raw(x, wide) if wide is like else F.reshape_like(op.raw(x, wide), like)
    if "axis" in params:
        params["axis"] = batch_axes(params["axis"], rank_of(like, op) - 1, op.name)
    return op.raw(x, like, **params)


def cast_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``cast_like``: only the dtype of ``like`` matters."""
    result = op.raw(*xs)
    return result if batched[0] else Shared(result)


def spread_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``spread_like``: the new axis goes after the hidden one."""
    (x, like), (x_batched, like_batched) = xs, batched
    if like_batched:
        like = row_of(like)
    result = op.raw(x, like)
    return F.swapaxes(result, axis1=0, axis2=1) if x_batched else Shared(result)


def size_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``size_over``: a number, the same for all examples."""
    axis = batch_axes(params["axis"], rank_of(xs[0], op) - 1, op.name)
    return Shared(op.raw(xs[0], axis=axis))


op(
    "unbroadcast_like",
    _unbroadcast,
    gradients={"x": lambda g, x_like: F.broadcast_like(g, x_like), "like": NONDIFF},
    infer=_like_spec,
    batch=like_rule,
    jvp="linear",
    pointwise=True,
    doc="Sum ``x`` over the axes along which ``like`` was broadcast; take its shape and dtype.",
)
op(
    "broadcast_like",
    _broadcast,
    gradients={"x": lambda g, x_like: F.unbroadcast_like(g, x_like), "like": NONDIFF},
    infer=_like_spec,
    batch=like_rule,
    jvp="linear",
    view=True,
    pointwise=True,
    doc="Broadcast ``x`` to the shape and dtype of ``like``.",
)
op(
    "unreduce_like",
    _unreduce,
    gradients={
        "x": lambda g, x_like, axis, keepdims: F.cast_like(
            F.sum(g, axis=axis, keepdims=keepdims), x_like
        ),
        "like": NONDIFF,
    },
    infer=_like_spec,
    batch=like_rule,
    jvp="linear",
    view=True,
    doc="Repeat ``x``, a reduction of ``like`` over ``axis``, along the reduced axes.",
)
op(
    "reshape_like",
    lambda xp, x, like: xp.reshape(x, like.shape),
    gradients={"x": lambda g, x_like: F.reshape_like(g, x_like), "like": NONDIFF},
    infer=lambda x, like: (like.shape, x.dtype),
    batch=like_rule,
    jvp="linear",
    view="reshape",
    doc="Reshape ``x`` to the shape of ``like``; it keeps its dtype.",
)
op(
    "shaped_like",
    _check_shape,
    gradients={"x": lambda g, x_like, what: F.shaped_like(g, x_like, what=what), "like": NONDIFF},
    infer=_check_shape_spec,
    batch=like_rule,
    jvp="linear",
    view="reshape",
    doc="Return ``x`` if it has the shape of ``like``; otherwise, raise an error about ``what``.",
)
op(
    "cast_like",
    lambda xp, x, like: cast_to(xp, x, like.dtype),
    gradients={"x": lambda g, x_like: F.cast_like(g, x_like), "like": NONDIFF},
    infer=lambda x, like: (x.shape, like.dtype),
    batch=cast_rule,
    jvp="linear",
    pointwise=True,
    doc="Cast ``x`` to the dtype of ``like``; it keeps its shape.",
)
op(
    "spread_like",
    lambda xp, x, like: xp.broadcast_to(xp.asarray(x), (like.shape[0], *x.shape)),
    gradients={"x": lambda g: F.sum(g, axis=0, keepdims=False), "like": NONDIFF},
    infer=lambda x, like: (_spread_shape(x.shape, like.shape), x.dtype),
    holomorphic=True,
    batch=spread_rule,
    jvp="linear",
    view=True,
    doc="Repeat ``x`` along a new first axis, as long as the first axis of ``like``.",
)
op(
    "size_over",
    size_over,
    gradients={"x": NONDIFF},
    infer=lambda x, axis: ((), size_over(np, np.empty(0, x.dtype)).dtype),
    batch=size_rule,
    reads="shapes",
    doc="Return how many elements a reduction of ``x`` over ``axis`` combines, in its real dtype.",
)
