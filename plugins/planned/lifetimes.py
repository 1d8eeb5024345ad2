"""Lifetimes: how long values are read, and which of them go to somebody else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...core.extend import Symbol
from .steps import Kind, Step

__all__ = ["lifetimes"]

#: Ops that return arrays of their own, never a view of what they are given. One that is not named
#: here is taken for one that may: that is right for any op, and keeps its inputs for longer.
_OWN = frozenset(
    "argmax argmin check_labels conv conv_to_filters cumprod cumsum max mean min one_hot pick prod "
    "softmax softmax_cross_entropy softmax_less_labels softmax_less_shares std sum var "
    "sparse_softmax_cross_entropy".split()
)


def lifetimes(
    moments: Sequence[Any], needed: Iterable[Symbol], given: Iterable[Symbol]
) -> tuple[set[Symbol], dict[Symbol, int]]:
    """Return the values that must be in arrays of their own, and when each value is read last.

    What leaves the function must be an array of its own, and so must what a view of it leaves. A
    view is its source read later, and a call may return a view of what it is given.

    Parameters
    ----------
    moments
        Steps, and others that have ``members``, in the order in which they run.
    needed
        The values that somebody has after the last moment.
    given
        The values that are read once more after it.
    """
    fresh = set(needed)
    last: dict[Symbol, int] = dict.fromkeys(given, len(moments))
    for moment in range(len(moments) - 1, -1, -1):
        item = moments[moment]
        for step in [item] if isinstance(item, Step) else item.members:
            views = step.kind is Kind.VIEW or (step.kind is Kind.CALL and step.op not in _OWN)
            until = max((last.setdefault(x, moment) for x in step.outputs), default=moment)
            for x in step.inputs:
                if type(x) is not Symbol:
                    continue
                last[x] = max(last.get(x, moment), until if views else moment)
                if views and any(y in fresh for y in step.outputs):
                    fresh.add(x)
    return fresh, last
