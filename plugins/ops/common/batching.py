"""Batching rules that families of ops share: how an op runs on a hidden leading axis.

A rule is called with the op, the arrays inside the batch, which of them have the hidden axis, and
the op's parameters; its result has the hidden axis first.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, NoReturn

import numpy as np

from ....core.errors import TraceError
from ....core.extend import F, Op, Shared, as_batched, rank_of, row_of
from .axes import reduced_axes
from .dtypes import SCALARS

__all__ = [
    "aligned",
    "along",
    "cast_rule",
    "flattened",
    "keyed",
    "leading",
    "like_rule",
    "refused",
    "shape_only",
    "size_rule",
    "spread_rule",
    "stacked",
    "together",
    "widths_past",
]


Rule = Callable[[Op, list[Any], list[bool], dict[str, Any]], Any]


def together(xs: list[Any], batched: list[bool]) -> list[Any]:
    """Return all arrays with the hidden axis; those without it are repeated, at no cost."""
    if all(batched):
        return xs
    like = xs[batched.index(True)]
    return [
        x if b or type(x) in SCALARS else as_batched(x, like)
        for x, b in zip(xs, batched, strict=True)
    ]


def batch_axes(axis: Any, rank: int, name: str) -> Any:
    """Return axes of one example (all, if None) as axes of the batch."""
    moved = tuple(n + 1 for n in reduced_axes(axis, rank, name))
    return moved[0] if isinstance(axis, int) else moved


def along(*names: str, extra: int = 0) -> Rule:
    """Return the rule of an op with axes for parameters; ``extra`` axes come with its result."""

    def rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
        xs = together(xs, batched)
        rank = rank_of(xs[0], op) - 1 + extra
        for name in names:
            params[name] = batch_axes(params[name], rank, op.name)
        return op.raw(*xs, **params)

    return rule


def flattened(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Run an op that has one axis, or none and then works on the flattened example."""
    xs = together(xs, batched)
    rank = rank_of(xs[0], op) - 1
    if params["axis"] is not None:
        params["axis"] = batch_axes(params["axis"], rank, op.name)
        return op.raw(*xs, **params)
    keepdims = params.pop("keepdims", None)
    flat = [F.flatten_last(x, count=rank_of(x, op) - 1) for x in xs]
    result = op.raw(*flat, **{**params, "axis": 1}, **({} if keepdims is None else {"keepdims": 0}))
    if keepdims:
        return F.expand_dims(result, axis=tuple(range(1, rank + 1)))
    return result


def leading(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Run an op that works on the last axes, and takes any number of axes before them."""
    return op.raw(*together(xs, batched), **params)


def shape_only(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Run an op whose result depends on its input's shape alone: one for all examples."""
    return Shared(op.raw(row_of(xs[0]), **params))


def refused(why: str) -> Rule:
    """Return the rule of an op that no batch can run."""

    def rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> NoReturn:
        raise TraceError(f"{op.name}: {why}")

    return rule


def merged(x: Any, op: Op) -> Any:
    """Return ``x`` with its first two axes, the hidden one and the examples' first, as one."""
    shape = x.shape
    if shape is None or None in shape[2:]:
        raise TraceError(f"{op.name}: vmap needs the sizes of {x!r}, but for the first two")
    first = -1 if None in shape[:2] else shape[0] * shape[1]
    return F.reshape(x, shape=(first, *shape[2:]))


def split_first(x: Any, like: Any, op: Op) -> Any:
    """Return ``x`` with its first axis cut into the first two of ``like``."""
    first = like.shape[:2]
    if first.count(None) > 1:
        raise TraceError(f"{op.name}: vmap needs to know the batch size or the first size of x")
    return F.reshape(x, shape=(*(-1 if n is None else n for n in first), *x.shape[1:]))


# -- shapes ----------------------------------------------------------------------------------------


def aligned(x: Any, rank: int, op: Op) -> Any:
    """Return a batch of examples with axes of size 1 in front, so that they have ``rank`` axes."""
    missing = rank - (rank_of(x, op) - 1)
    return F.expand_dims(x, axis=tuple(range(1, 1 + missing))) if missing > 0 else x


def reshaped(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``reshape``."""
    (x,), shape = xs, params["shape"]
    batch, *sizes = x.shape if x.shape is not None else (None, None)
    if batch is not None:
        if -1 in shape and 0 not in (batch, *sizes):
            return op.raw(x, shape=(batch, *shape))
        if -1 in shape:  # NumPy cannot tell what is left of nothing
            known = prod(n for n in shape if n != -1)
            shape = tuple(prod(sizes) // max(known, 1) if n == -1 else n for n in shape)
        return op.raw(x, shape=(batch, *shape))
    if -1 in shape:
        if None in sizes:
            raise TraceError(
                "reshape: vmap needs to know either the batch size or the example's shape "
                f"to reshape {x!r} to {shape}"
            )
        known = prod(n for n in shape if n != -1)
        shape = tuple(prod(sizes) // max(known, 1) if n == -1 else n for n in shape)
    return op.raw(x, shape=(-1, *shape))


def broadcast(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``broadcast_to``."""
    (x,), shape = xs, params["shape"]
    batch = x.shape[0] if x.shape else None
    x = aligned(x, len(shape), op)
    if batch is not None:
        return op.raw(x, shape=(batch, *shape))
    return F.broadcast_like(x, as_batched(np.broadcast_to(np.zeros((), x.dtype), shape), x))


def expanded(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``expand_dims``."""
    axis = params["axis"]
    new = len(axis) if isinstance(axis, tuple) else 1
    return op.raw(xs[0], axis=batch_axes(axis, rank_of(xs[0], op) - 1 + new, op.name))


def pairs(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``merge_pairs``: the hidden axis makes a pair with one of size 1."""
    return op.raw(F.expand_dims(xs[0], axis=1))


def keyed(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of random numbers: a batch of keys gives each example its own."""
    if batched[0]:
        return op.raw(*together(xs, batched), **params)
    rows = [row_of(x) if b else x for x, b in zip(xs, batched, strict=True)]
    return Shared(op.raw(*rows, **params))


def squeezed(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``squeeze``."""
    (x,), axis = xs, params["axis"]
    rank = rank_of(x, op) - 1
    if axis is None:
        if None in x.shape[1:]:
            raise TraceError(f"squeeze: which sizes of {x!r} are 1 is unknown; name the axes")
        return op.raw(x, axis=tuple(i for i, n in enumerate(x.shape) if i and n == 1))
    return op.raw(x, axis=batch_axes(axis, rank, op.name))


def transposed(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``transpose``."""
    (x,), axes = xs, params["axes"]
    rank = rank_of(x, op) - 1
    order = tuple(range(rank))[::-1] if axes is None else axes
    if len(order) != rank:
        raise ValueError(f"transpose: axes {axes} do not match an array of dimension {rank}")
    return op.raw(x, axes=(0, *batch_axes(tuple(order), rank, op.name)))


def rolled(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``roll``."""
    (x,), axis = xs, params["axis"]
    rank = rank_of(x, op) - 1
    if axis is not None:
        return op.raw(x, shift=params["shift"], axis=batch_axes(axis, rank, op.name))
    flat = F.flatten_last(x, count=rank)
    return F.reshape_like(op.raw(flat, shift=params["shift"], axis=1), x)


def tiled(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``tile`` and of its adjoint."""
    x, *like = together(xs, batched)
    reps = params["reps"]
    rank = max(rank_of(like[0] if like else x, op) - 1, len(reps))
    reps = (1, *(1,) * (rank - len(reps)), *reps)
    if not like:
        return op.raw(aligned(x, rank, op), reps=reps)
    return F.reshape_like(op.raw(x, aligned(like[0], rank, op), reps=reps), like[0])


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


def widths_past(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ops with widths by which each axis is padded."""
    xs = together(xs, batched)
    widths = params["pad_width"]
    if len(widths) == 1:  # one pair stands for all axes
        widths = widths * (rank_of(xs[0], op) - 1)
    return op.raw(*xs, **{**params, "pad_width": ((0, 0), *widths)})


def stacked(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``stack``."""
    xs = together(xs, batched)
    rank = max(rank_of(x, op) for x in xs if type(x) not in SCALARS)
    xs = [F.zeros_like(xs[batched.index(True)]) + x if type(x) in SCALARS else x for x in xs]
    return op.raw(*xs, axis=batch_axes(params["axis"], rank, op.name))


# -- shapes taken from another tensor --------------------------------------------------------------


def spread_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``spread_like``: the new axis goes behind the hidden one."""
    (x, like), (x_batched, like_batched) = xs, batched
    if like_batched:
        like = row_of(like)
    result = op.raw(x, like)
    return F.swapaxes(result, axis1=0, axis2=1) if x_batched else Shared(result)


def like_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ops of ``x`` and the shape of ``like``, which both have the hidden axis."""
    (x, like), (x_batched, like_batched) = xs, batched
    if not x_batched:
        return Shared(op.raw(x, row_of(like), **params))
    like = like if like_batched else as_batched(like, x)
    if op.name == "broadcast_like":
        return op.raw(aligned(x, rank_of(like, op) - 1, op), like)
    if op.name == "unbroadcast_like":
        if x.shape is not None and x.shape == like.shape:
            return op.raw(x, like)
        wide = aligned(like, rank_of(x, op) - 1, op)
        return op.raw(x, wide) if wide is like else F.reshape_like(op.raw(x, wide), like)
    if "axis" in params:
        params["axis"] = batch_axes(params["axis"], rank_of(like, op) - 1, op.name)
    return op.raw(x, like, **params)


def cast_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``cast_like``: of ``like`` only the dtype matters."""
    result = op.raw(*xs)
    return result if batched[0] else Shared(result)


def size_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``size_over``: a number, the same for all examples."""
    axis = batch_axes(params["axis"], rank_of(xs[0], op) - 1, op.name)
    return Shared(op.raw(xs[0], axis=axis))
