"""How an index of one example is applied to a batch.

An index of one example becomes an index of the batch, with a slice in front. If index arrays differ
between examples, one more index array counts the examples.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core import extend  # for what a first op does not need
from ....core.errors import TraceError
from ....core.extend import (
    Batched,
    F,
    Op,
    Size,
    Tensor,
    is_transformed,
    kind_of,
    known_size,
    rank_of,
)
from ..common.axes import aligned

EVERYTHING = ("slice", None, None, None)


_MASK_DIFFERS = (
    "a mask that differs from example to example picks different numbers of elements; use "
    "gradtape.where, which keeps the shape"
)


class BatchedIndex:
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
        masks = [kind_of(x.dtype) == "b" for x in arrays]
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
            raise TraceError(f"{op.name}: {_MASK_DIFFERS}")
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
        """Move ordered axes to their positions in the index of the batch."""
        if not self.source:
            return g
        return F.moveaxis(g, source=self.destination, destination=self.source)


def example_numbers(x: Any) -> Any:
    """Return the numbers of the examples, from 0, on the device of ``x``."""
    inside = x
    while type(inside) is Batched or type(inside) is Tensor:
        inside = inside.array
    if isinstance(inside, (np.ndarray, extend.Symbol)) and known_size(x.shape[0]):
        return np.arange(x.shape[0])
    column, others = x, tuple(range(1, len(x.shape)))
    if others:  # slices, since the other axes may be empty
        thin = F.getitem(x, index=(EVERYTHING, *(("slice", 0, 1, None),) * len(others)))
        column = F.sum(thin, axis=others, keepdims=False)
    count = F.cumsum(F.cast(F.ones_like(column), dtype="int64"), axis=0, reverse=False)
    return F.subtract(count, 1)


def _is_array(part: Any) -> bool:
    return isinstance(part, tuple) and part[0] == "array"


def _layout(index: tuple[Any, ...]) -> tuple[bool, int]:
    """Return whether advanced indices are next to each other, and how many axes precede them."""
    places = [i for i, p in enumerate(index) if isinstance(p, (int, Size)) or _is_array(p)]
    adjacent = places == list(range(places[0], places[-1] + 1))
    before = index[: places[0]]
    if "..." in [p for p in before if isinstance(p, str)]:
        return adjacent, -1
    return adjacent, len(before)


def _spelt(index: tuple[Any, ...], rank: int, arrays: list[Any], batched: list[bool]) -> Any:
    """Return an index with slices instead of ``...``, so that axes can be counted."""
    used = 0
    for p in index:
        if isinstance(p, (int, Size)) or (isinstance(p, tuple) and p[0] == "slice"):
            used += 1
        elif _is_array(p):
            x, b = arrays[p[1]], batched[p[1]]
            used += len(x.shape) - b if kind_of(x.dtype) == "b" else 1
    spelt: list[Any] = []
    for p in index:
        spelt += [EVERYTHING] * (rank - used) if p == "..." else [p]
    return tuple(spelt)


def _without_masks(
    index: tuple[Any, ...], arrays: list[Any], batched: list[bool]
) -> tuple[tuple[Any, ...], list[Any], list[bool]]:
    """Return an index with positions instead of masks of known values."""
    parts: list[Any] = []
    found: list[Any] = []
    flags: list[bool] = []
    for part in index:
        if not _is_array(part):
            parts.append(part)
            continue
        x, b = arrays[part[1]], batched[part[1]]
        inside = x.array if type(x) is Tensor else x
        known = kind_of(x.dtype) == "b" and x.shape and not b and not is_transformed(inside)
        for array in F.nonzero(x) if known else [x]:
            parts.append(("array", len(found)))
            found.append(array)
            flags.append(b)
    return tuple(parts), found, flags


def batched_index(
    op: Op, index: tuple[Any, ...], x: Any, arrays: list[Any], batched: list[bool]
) -> BatchedIndex:
    if any(batched):
        index, arrays, batched = _without_masks(index, arrays, batched)
    if arrays:
        index = _spelt(index, rank_of(x, op) - 1, arrays, batched)
    return BatchedIndex(op, index, arrays, batched, x)


def picked_from_shared(
    op: Op, x: Any, arrays: list[Any], batched: list[bool], index: tuple[Any, ...]
) -> Any:
    """Return ``x[index]``, hidden axis first, of an ``x`` that all examples share.

    The index arrays pick for all examples at once, so the gradient is one array like ``x``.
    """
    index, arrays, batched = _without_masks(index, arrays, batched)
    if any(kind_of(a.dtype) == "b" for a in arrays):
        raise TraceError(f"{op.name}: {_MASK_DIFFERS}")
    index = _spelt(index, rank_of(x, op), arrays, batched)
    picked = max(rank_of(a, op) - b for a, b in zip(arrays, batched, strict=True))
    given = [aligned(a, picked, op) if b else a for a, b in zip(arrays, batched, strict=True)]
    result = op.raw(x, *given, index=index)
    adjacent, front = _layout(index)
    return F.moveaxis(result, source=(front,), destination=(0,)) if adjacent and front else result
