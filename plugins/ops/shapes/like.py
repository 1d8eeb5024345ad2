"""Ops that take a shape from another tensor: what gradient rules use instead of reading shapes.

They come in adjoint pairs: ``unbroadcast_like`` with ``broadcast_like``, ``unreduce_like`` with
``sum``. Each is the gradient rule of the other.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ....core.extend import NONDIFF, F, Tensor, UnaryOp, ops
from ..common.axes import Axis, reduced_axes
from ..common.batching import cast_rule, like_rule, size_rule, spread_rule
from ..common.dtypes import SCALARS
from ..common.kernels import cast_to
from ..common.op_builders import named, op, same_spec

__all__ = ["full_like", "ones_like", "zeros_like"]


def _unbroadcast(xp: Any, x: Any, like: Any) -> Any:
    shape, extra = like.shape, x.ndim - like.ndim
    if x.shape != shape:
        axes = tuple(
            i for i, n in enumerate(x.shape) if i < extra or (shape[i - extra] == 1 and n != 1)
        )
        x = xp.sum(x, axis=axes, keepdims=True, dtype=x.dtype) if axes else x
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
    dtype = x.dtype if x.dtype.kind != "c" else xp.real(x).dtype
    # a count above 65504 is infinite in float16
    return xp.asarray(count, dtype=xp.float32 if dtype.name == "float16" else dtype)


def _like_spec(x: Any, like: Any, **params: Any) -> tuple[Any, Any]:
    return like.shape, like.dtype


def _spread_shape(shape: Any, like: Any) -> Any:
    if like == ():
        raise ValueError("spread_like: like has no axis to take a size from")
    return None if shape is None else (None if like is None else like[0], *shape)


op(
    "unbroadcast_like",
    _unbroadcast,
    gradients={"x": lambda g, x_like: F.broadcast_like(g, x_like), "like": NONDIFF},
    infer=_like_spec,
    batch=like_rule,
    jvp="linear",
    doc="Sum ``x`` over the axes along which ``like`` was broadcast; take its shape and dtype.",
)
op(
    "broadcast_like",
    _broadcast,
    gradients={"x": lambda g, x_like: F.unbroadcast_like(g, x_like), "like": NONDIFF},
    infer=_like_spec,
    batch=like_rule,
    jvp="linear",
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
    doc="Repeat ``x``, a reduction of ``like`` over ``axis``, along the axes that it lost.",
)
op(
    "reshape_like",
    lambda xp, x, like: xp.reshape(x, like.shape),
    gradients={"x": lambda g, x_like: F.reshape_like(g, x_like), "like": NONDIFF},
    infer=lambda x, like: (like.shape, x.dtype),
    batch=like_rule,
    jvp="linear",
    doc="Reshape ``x`` to the shape of ``like``; it keeps its dtype.",
)
op(
    "cast_like",
    lambda xp, x, like: cast_to(xp, x, like.dtype),
    gradients={"x": lambda g, x_like: F.cast_like(g, x_like), "like": NONDIFF},
    infer=lambda x, like: (x.shape, like.dtype),
    batch=cast_rule,
    jvp="linear",
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
    doc="Repeat ``x`` along a new first axis, as long as the first axis of ``like``.",
)
op(
    "size_over",
    size_over,
    gradients={"x": NONDIFF},
    infer=lambda x, axis: ((), size_over(np, np.empty(0, x.dtype)).dtype),
    batch=size_rule,
    doc="Return how many elements a reduction of ``x`` over ``axis`` joins, in its real dtype.",
)
_zeros = op(
    "zeros_like",
    lambda xp, x: xp.zeros_like(x),
    UnaryOp,
    gradients={"x": NONDIFF},
    infer=same_spec,
    batch="elementwise",
    doc="Return zeros of the shape and dtype of ``x``.",
)
_ones = op(
    "ones_like",
    lambda xp, x: xp.ones_like(x),
    UnaryOp,
    gradients={"x": NONDIFF},
    infer=same_spec,
    batch="elementwise",
    doc="Return ones of the shape and dtype of ``x``.",
)


def _made_like(like: Any, dtype: Any) -> Any:
    return like if dtype is None else ops["cast"](like, dtype=np.dtype(dtype).name)


@named
def zeros_like(x: Any, dtype: Any = None) -> Tensor:
    """Return zeros of the shape of ``x``.

    Parameters
    ----------
    x
        A tensor, variable or array of any shape and dtype.
    dtype
        The result's dtype; that of ``x`` if not given.

    Returns
    -------
    A tensor, not connected to ``x``: its gradient is ``None``.

    Raises
    ------
    TypeError
        If ``x`` holds no numbers, or ``dtype`` is no dtype.

    Examples
    --------
    >>> gt.zeros_like(gt.constant([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [[0.0, 0.0], [0.0, 0.0]]
    """
    return _made_like(_zeros(x), dtype)


@named
def ones_like(x: Any, dtype: Any = None) -> Tensor:
    """Return ones of the shape of ``x``.

    Parameters
    ----------
    x
        A tensor, variable or array of any shape and dtype.
    dtype
        The result's dtype; that of ``x`` if not given.

    Returns
    -------
    A tensor, not connected to ``x``: its gradient is ``None``.

    Raises
    ------
    TypeError
        If ``x`` holds no numbers, or ``dtype`` is no dtype.

    Examples
    --------
    >>> gt.ones_like(gt.constant([2.0, 3.0]), dtype="int32").tolist()
    [1, 1]
    """
    return _made_like(_ones(x), dtype)


@named
def full_like(x: Any, fill_value: Any, dtype: Any = None) -> Tensor:
    """Return a tensor of the shape of ``x`` filled with one value.

    Parameters
    ----------
    x
        A tensor, variable or array of any shape and dtype.
    fill_value
        A number, or a tensor that broadcasts to the shape of ``x``; gradients reach it. It is cast
        to the result's dtype.
    dtype
        The result's dtype; that of ``x`` if not given.

    Returns
    -------
    A tensor of the shape of ``x``, not connected to it.

    Raises
    ------
    ValueError
        If ``fill_value`` does not broadcast to the shape of ``x``.
    TypeError
        If ``x`` holds no numbers, or ``dtype`` is no dtype.

    Examples
    --------
    >>> gt.full_like(gt.constant([1.0, 2.0]), 7.5).tolist()
    [7.5, 7.5]
    """
    return ops["broadcast_like"](fill_value, _made_like(_zeros(x), dtype))
