"""Batching rules of picking elements and of its adjoints.

An index of one example becomes an index of the batch: a slice in front, or, where index arrays
differ from example to example, one more index array that counts the examples.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.errors import TraceError
from ....core.extend import (
    Batched,
    F,
    Op,
    Shared,
    Symbol,
    as_batched,
    is_transformed,
    rank_of,
    row_of,
)
from ..common.axes import reduced_axes
from ..common.batching import aligned, together

__all__ = [
    "diag_rule",
    "getitem_rule",
    "put_rule",
    "searchsorted_rule",
    "take_adjoint_rule",
    "take_rule",
]

EVERYTHING = ("slice", None, None, None)


class _Plan:
    """How an index of one example is applied to a batch.

    Attributes
    ----------
    index, arrays
        The index of the batch, as a parameter, and the arrays in it.
    source, destination
        Axes of ``x[index]`` to move, so that the hidden axis comes first and the rest is in the
        order that one example has; empty if nothing moves.
    """

    def __init__(
        self, op: Op, index: tuple[Any, ...], arrays: list[Any], batched: list[bool], like: Any
    ) -> None:
        self.source: tuple[int, ...] = ()
        self.destination: tuple[int, ...] = ()
        self.index: tuple[Any, ...] = (EVERYTHING, *index)
        self.arrays = arrays
        if not arrays:
            return
        masks = [x.dtype.kind == "b" for x in arrays]
        ranks = [
            1 if mask else rank_of(x, op) - b
            for x, mask, b in zip(arrays, masks, batched, strict=True)
        ]
        picked = max(ranks)
        together_, front = _layout(index)
        if not any(batched):
            if not together_:  # what is picked goes first, before the hidden axis
                self.source, self.destination = (picked,), (0,)
            return
        if any(masks):
            raise TraceError(
                f"{op.name}: a mask that differs from example to example picks different numbers "
                "of elements; use gradtape.where, which keeps the shape"
            )
        numbers = example_numbers(like)
        numbers = F.expand_dims(numbers, axis=tuple(range(1, picked + 1))) if picked else numbers
        self.arrays = [
            numbers,
            *(aligned(x, picked, op) if b else x for x, b in zip(arrays, batched, strict=True)),
        ]
        shifted = (("array", p[1] + 1) if _is_array(p) else p for p in index)
        self.index = (("array", 0), *shifted)
        place = front if together_ else 0
        if place:
            self.source = tuple(range(1, picked + 1))
            self.destination = tuple(range(place + 1, place + picked + 1))

    def out(self, result: Any) -> Any:
        """Put the axes of a result in order."""
        if not self.source:
            return result
        return F.moveaxis(result, source=self.source, destination=self.destination)

    def back(self, g: Any) -> Any:
        """Put ordered axes where the index of the batch has them."""
        if not self.source:
            return g
        return F.moveaxis(g, source=self.destination, destination=self.source)


def example_numbers(x: Any) -> Any:
    """Return the numbers of the examples, from 0, where ``x`` is."""
    inside = x
    while type(inside) is Batched:
        inside = inside.array
    if isinstance(inside, (np.ndarray, Symbol)) and x.shape[0] is not None:
        return np.arange(x.shape[0])
    column = F.getitem(x, index=(EVERYTHING, *(0,) * (len(x.shape) - 1)))
    count = F.cumsum(F.cast(F.ones_like(column), dtype="int64"), axis=0, reverse=False)
    return F.subtract(count, 1)


def _is_array(part: Any) -> bool:
    return isinstance(part, tuple) and part[0] == "array"


def _layout(index: tuple[Any, ...]) -> tuple[bool, int]:
    """Return whether advanced indices are next to each other, and how many axes precede them."""
    places = [i for i, p in enumerate(index) if isinstance(p, int) or _is_array(p)]
    adjacent = places == list(range(places[0], places[-1] + 1))
    before = index[: places[0]]
    if "..." in [p for p in before if isinstance(p, str)]:
        return adjacent, -1
    return adjacent, len(before)


def _spelt(index: tuple[Any, ...], rank: int, arrays: list[Any], batched: list[bool]) -> Any:
    """Return an index in which slices stand for ``...``, so that axes can be counted."""
    used = 0
    for p in index:
        if isinstance(p, int) or (isinstance(p, tuple) and p[0] == "slice"):
            used += 1
        elif _is_array(p):
            x, b = arrays[p[1]], batched[p[1]]
            used += len(x.shape) - b if x.dtype.kind == "b" else 1
    spelt: list[Any] = []
    for p in index:
        spelt += [EVERYTHING] * (rank - used) if p == "..." else [p]
    return tuple(spelt)


def _without_masks(
    index: tuple[Any, ...], arrays: list[Any], batched: list[bool]
) -> tuple[tuple[Any, ...], list[Any], list[bool]]:
    """Return an index with positions in place of masks whose values are known."""
    parts: list[Any] = []
    found: list[Any] = []
    flags: list[bool] = []
    for part in index:
        if not _is_array(part):
            parts.append(part)
            continue
        x, b = arrays[part[1]], batched[part[1]]
        known = x.dtype.kind == "b" and x.shape and not b and not is_transformed(x)
        for array in F.nonzero(x) if known else [x]:
            parts.append(("array", len(found)))
            found.append(array)
            flags.append(b)
    return tuple(parts), found, flags


def _plan(op: Op, index: tuple[Any, ...], x: Any, arrays: list[Any], batched: list[bool]) -> _Plan:
    if any(batched):
        index, arrays, batched = _without_masks(index, arrays, batched)
    if arrays:
        index = _spelt(index, rank_of(x, op) - 1, arrays, batched)
    return _Plan(op, index, arrays, batched, x)


def getitem_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``getitem``."""
    x, *arrays = xs
    if not batched[0]:
        x = as_batched(x, xs[batched.index(True)])
    plan = _plan(op, params["index"], x, arrays, batched[1:])
    return plan.out(op.raw(x, *plan.arrays, index=plan.index))


def put_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``index_add_like`` and ``index_set``."""
    adding = op.name == "index_add_like"
    first, second, *arrays = xs
    if adding and not batched[0] and not any(batched[2:]):
        row = row_of(second)
        return Shared(op.raw(first, row, *arrays, index=params["index"]))
    like = xs[batched.index(True)]
    first, second = (
        x if b else as_batched(x, like) for x, b in zip(xs[:2], batched[:2], strict=True)
    )
    whole = second if adding else first
    plan = _plan(op, params["index"], whole, arrays, batched[2:])
    if adding:
        return op.raw(plan.back(first), whole, *plan.arrays, index=plan.index)
    return op.raw(whole, plan.back(second), *plan.arrays, index=plan.index)


def _take_index(axis: int) -> tuple[Any, ...]:
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
    plan = _plan(op, _take_index(axis), x, [indices], [True])
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
        plan = _plan(op, _take_index(axis), whole, [indices], [True])
        result = F.index_add_like(plan.back(g), whole, *plan.arrays, index=plan.index)
    return result if whole is like else F.reshape_like(result, like)


def searchsorted_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``searchsorted``: sorted vectors that differ are compared element by one."""
    (x, values), (bx, _) = xs, batched
    if not bx:
        return op.raw(x, values, **params)
    x, values = together(xs, batched)
    values = F.expand_dims(values, axis=-1)
    x = aligned(x, rank_of(values, op) - 1, op)
    before = F.less(x, values) if params["side"] == "left" else F.less_equal(x, values)
    return F.sum(F.cast(before, dtype="int64"), axis=-1, keepdims=False)


def diag_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``diagonal_adjoint``: matrices are in the last two axes."""
    if not batched[0]:
        return Shared(op.raw(xs[0], row_of(xs[1]), **params))
    return op.raw(*together(xs, batched), **params)
