"""Lifetimes: how long values are needed, and which of them leave the function."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...core.extend import Symbol
from .steps import Kind, Step


def lifetimes(
    moments: Sequence[Any], needed: Iterable[Symbol], given: Iterable[Symbol]
) -> tuple[set[Symbol], dict[Symbol, int]]:
    """Return the values that need their own arrays, and the last moment at which each is read.

    A value that leaves the function needs its own array, and so does a value with a view that
    leaves it. A read of a view is a read of its source. A call may return a view of an argument,
    unless the op's record says otherwise; to assume one keeps its inputs for longer, and is safe.

    Parameters
    ----------
    moments
        Steps, and objects with ``members``, in the order in which they run.
    needed
        The values that other code holds after the last moment.
    given
        The values that are read once more after the last moment.
    """
    fresh = set(needed)
    last: dict[Symbol, int] = dict.fromkeys(given, len(moments))
    for moment in range(len(moments) - 1, -1, -1):
        item = moments[moment]
        for step in [item] if isinstance(item, Step) else item.members:
            views = step.kind is Kind.VIEW or (step.kind is Kind.CALL and step.view is not False)
            until = max((last.setdefault(x, moment) for x in step.outputs), default=moment)
            for x in step.inputs:
                if type(x) is not Symbol:
                    continue
                last[x] = max(last.get(x, moment), until if views else moment)
                if views and any(y in fresh for y in step.outputs):
                    fresh.add(x)
    return fresh, last
