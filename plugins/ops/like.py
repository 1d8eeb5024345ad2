"""Ops that take a shape from another tensor: what gradient rules use instead of reading shapes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.extend import NONDIFF, F
from .families import op


def _cast_to(x: Any, like: Any) -> Any:
    if x.dtype == like.dtype:
        return x
    if x.dtype.kind == "c" and like.dtype.kind != "c":
        x = x.real
    return x.astype(like.dtype)


def _unbroadcast(xp: Any, x: Any, like: Any) -> Any:
    shape, extra = like.shape, x.ndim - like.ndim
    if x.shape != shape:
        axes = tuple(
            i for i, n in enumerate(x.shape) if i < extra or (shape[i - extra] == 1 and n != 1)
        )
        x = xp.sum(x, axis=axes, keepdims=True, dtype=x.dtype) if axes else x
        x = xp.reshape(x, shape)
    return _cast_to(x, like)


def _like_spec(x: Any, like: Any) -> tuple[Any, Any]:
    return like.shape, like.dtype


unbroadcast_like = op(
    "unbroadcast_like",
    _unbroadcast,
    gradients={"x": lambda g, x_like: F.broadcast_like(g, x_like), "like": NONDIFF},
    infer=_like_spec,
    doc="Sum ``x`` over the axes along which ``like`` was broadcast; take its shape and dtype.",
)
broadcast_like = op(
    "broadcast_like",
    lambda xp, x, like: _cast_to(xp.broadcast_to(x, like.shape), like),
    gradients={"x": lambda g, x_like: F.unbroadcast_like(g, x_like), "like": NONDIFF},
    infer=_like_spec,
    doc="Broadcast ``x`` to the shape and dtype of ``like``.",
)
zeros_like = op(
    "zeros_like",
    lambda xp, x: xp.zeros_like(x),
    gradients={"x": NONDIFF},
    infer=lambda x: (x.shape, x.dtype),
    doc="Return zeros of the shape and dtype of ``x``.",
)
ones_like = op(
    "ones_like",
    lambda xp, x: xp.ones_like(x),
    gradients={"x": NONDIFF},
    infer=lambda x: (x.shape, x.dtype),
    doc="Return ones of the shape and dtype of ``x``.",
)
