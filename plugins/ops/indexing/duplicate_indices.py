"""Helpers for repeated indices in ``x.at[index].multiply``."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ....core.extend import NONDIFF, F, Op, Shared, row_of
from ..common.op_builders import op
from ..common.sizes import elements

__all__: list[str] = []


def _occurrences(xp: Any, places: Any) -> Any:
    order = xp.argsort(places, stable=True)
    ordered = xp.take(places, order, axis=0)
    first = xp.searchsorted(ordered, ordered)
    return xp.take(xp.arange(places.shape[0]) - first, xp.argsort(order), axis=0)


def _one_per_occurrence(xp: Any, x: Any, occurrences: Any) -> Any:
    most = int(xp.max(occurrences)) + 1 if occurrences.shape[0] else 0
    return xp.ones((most, prod(x.shape)), dtype=x.dtype)


def _occurrences_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    # as one vector, in which the places of each example are others
    (places,) = xs
    example = F.cumsum(F.ones_like(places), axis=0, reverse=False)
    others = places + example * (F.sum(places) + 1)
    return F.reshape_like(op.raw(F.reshape(others, shape=(-1,))), places)


def _ones_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    x, occurrences = xs
    if batched[1]:
        occurrences = F.reshape(occurrences, shape=(-1,))
    return Shared(op.raw(row_of(x) if batched[0] else x, occurrences))


op(
    "occurrences",
    _occurrences,
    gradients={"places": NONDIFF},
    infer=lambda places: (places.shape, np.dtype(np.int64)),
    batch=_occurrences_rule,
    doc="Count, for each element of a vector, the equal ones before it.",
)
op(
    "one_per_occurrence",
    _one_per_occurrence,
    gradients={"x": NONDIFF, "occurrences": NONDIFF},
    infer=lambda x, occurrences: ((None, elements(x.shape)), x.dtype),
    batch=_ones_rule,
    doc="Return ones of the dtype of ``x``, one row per occurrence and one column per element.",
)
