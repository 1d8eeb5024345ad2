"""Batching rules that families of ops share: how an op runs on a hidden leading axis.

A rule is called with the op, the arrays inside the batch, which of them have the hidden axis, and
the op's parameters; its result has the hidden axis first.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NoReturn

from ....core.errors import TraceError
from ....core.extend import F, Op, Shared, as_batched, is_open, largest, rank_of, row_of
from .axes import reduced_axes
from .dtypes import SCALARS

Rule = Callable[[Op, list[Any], list[bool], dict[str, Any]], Any]


def together(xs: list[Any], batched: list[bool]) -> list[Any]:
    """Return all arrays with the hidden axis; those without it are repeated, without copies."""
    if all(batched):
        return xs
    like = xs[batched.index(True)]
    return [
        x if b or type(x) in SCALARS else as_batched(x, like)
        for x, b in zip(xs, batched, strict=True)
    ]


def batch_axes(axis: Any, rank: int, name: str) -> Any:
    """Return axes of one example (all of them for None) as axes of the batch."""
    moved = tuple(n + 1 for n in reduced_axes(axis, rank, name))
    return moved[0] if isinstance(axis, int) else moved


def along(*names: str, extra: int = 0) -> Rule:
    """Return the rule of an op whose parameters ``names`` are axes; ``extra`` axes are new."""

    def rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
        xs = together(xs, batched)
        rank = rank_of(xs[0], op) - 1 + extra
        for name in names:
            params[name] = batch_axes(params[name], rank, op.name)
        return op.raw(*xs, **params)

    return rule


def flattened(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Run an op along one axis, or on the flattened example if the axis is None."""
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
    """Run an op whose result depends only on its input's shape: once for all examples."""
    return Shared(op.raw(row_of(xs[0]), **params))


def refused(why: str) -> Rule:
    """Return the rule of an op that cannot run in a batch."""

    def rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> NoReturn:
        raise TraceError(f"{op.name}: {why}")

    return rule


def merged(x: Any, op: Op) -> Any:
    """Return ``x`` with its first two axes merged: the hidden one and the examples' first."""
    rank_of(x, op)
    return F.reshape(x, shape=(x.shape[0] * x.shape[1], *x.shape[2:]))


def split_first(x: Any, like: Any, op: Op) -> Any:
    """Return ``x`` with its first axis split into the first two of ``like``."""
    return F.reshape(x, shape=(*like.shape[:2], *x.shape[1:]))


def aligned(x: Any, rank: int, op: Op) -> Any:
    """Return a batch of examples with axes of size 1 inserted, so that they have ``rank`` axes."""
    missing = rank - (rank_of(x, op) - 1)
    return F.expand_dims(x, axis=tuple(range(1, 1 + missing))) if missing > 0 else x


def with_examples(rule: Rule) -> Rule:
    """Return a batching rule that divides by the size of the batch, safe for an empty batch.

    An empty batch runs as one example of zeros, whose result is dropped.
    """

    @functools.wraps(rule)
    def run(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
        some = xs[batched.index(True)]
        rank_of(some, op)
        size = some.shape[0]
        missing = largest(0, 1 - size)
        if not is_open(size) and not missing:
            return rule(op, xs, batched, params)
        more = [
            F.pad(x, pad_width=((0, missing), *((0, 0),) * (rank_of(x, op) - 1)), value=0)
            if b
            else x
            for x, b in zip(xs, batched, strict=True)
        ]
        result = rule(op, more, batched, params)
        if isinstance(result, Shared):
            return result
        return F.getitem(result, index=(("slice", None, size, None),))

    return run
