"""Axes from users and for rules, and the hidden axis of a batch.

A batching rule says how an op runs on a hidden leading axis; families of ops share those that are
here. A rule is called with the op, the arrays inside the batch, which of them have the hidden axis,
and the op's parameters; its result has the hidden axis first.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from ....core.errors import TraceError
from ....core.extend import F, Op, Shared, Tensor, as_batched, is_open, largest, rank_of, row_of
from .kernels import SCALARS

Axis = int | tuple[int, ...] | None


def _number(axis: Any) -> int:
    """Return an axis as an int; refuse a boolean, which was meant as another argument."""
    if axis is True or axis is False:
        raise TypeError
    return operator.index(axis)


def as_axis(axis: Any, name: str) -> Axis:
    """Return a user's ``axis`` as a parameter: None, an int, or a tuple of ints."""
    try:
        if axis is None:
            return None
        if isinstance(axis, (tuple, list)):
            return tuple(_number(n) for n in axis)
        return _number(axis)
    except TypeError:
        raise TypeError(
            f"{name}: axis must be None, an integer or a tuple of integers, got {axis!r}"
        ) from None


def axis_over(x: Any, axis: Any, name: str) -> Axis:
    """Return the axis or axes of a sum or an extremum of ``x``, as a parameter.

    As in NumPy, an array without axes may also be reduced over axis 0.
    """
    along = as_axis(axis, name)
    if along is None:
        return None
    shape = x.array.shape if type(x) is Tensor else getattr(x, "shape", None)
    if shape == () and along in (0, -1, (0,), (-1,)):
        return None
    return along


def one_axis(axis: Any, name: str) -> int:
    """Return a single axis as an int."""
    try:
        return _number(axis)
    except TypeError:
        raise TypeError(f"{name}: axis must be an integer, got {axis!r}") from None


def axis_of(x: Any, axis: Any, name: str) -> int:
    """Return a single axis of ``x`` as an int, checked if the rank is known.

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
    """Return ``x`` with an index applied along one axis, for any rank."""
    if axis >= 0:
        return x[(*(slice(None),) * axis, part)]
    return x[(Ellipsis, part, *(slice(None),) * (-axis - 1))]


def reduced_axes(axis: Axis, rank: int, name: str) -> tuple[int, ...]:
    """Return the axes selected by ``axis`` as numbers from 0.

    Raises
    ------
    numpy.exceptions.AxisError
        If one is out of bounds.
    ValueError
        If one is named twice.
    """
    if axis is None:
        return tuple(range(rank))
    given = axis if isinstance(axis, tuple) else (axis,)
    for n in given:
        if not -rank <= n < rank:
            raise np.exceptions.AxisError(
                f"{name}: axis {n} is out of bounds for an array of dimension {rank}"
            )
    axes = tuple(n % rank for n in given)
    if len(set(axes)) != len(axes):
        raise ValueError(f"{name}: duplicate value in axis {axis!r}")
    return axes


def reduced_shape(shape: Any, axis: Axis, keepdims: bool, name: str) -> Any:
    """Return the shape after a reduction of ``shape`` (unknown sizes and rank included)."""
    if shape is None:
        return () if axis is None and not keepdims else None
    axes = reduced_axes(axis, len(shape), name)
    if keepdims:
        return tuple(1 if i in axes else n for i, n in enumerate(shape))
    return tuple(n for i, n in enumerate(shape) if i not in axes)


def axis_number(shape: Any, axis: int, name: str) -> int:
    (along,) = reduced_axes(axis, len(shape), name)
    return along


def optional_axis(axis: Any, name: str) -> int | None:
    try:
        return None if axis is None else _number(axis)
    except TypeError:
        raise TypeError(f"{name}: axis must be None or one integer, got {axis!r}") from None


# -- batching rules --------------------------------------------------------------------------------

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
