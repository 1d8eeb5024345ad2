"""Examples of a batch as channels: how a convolution runs with filters for each example.

Batched images are more images, and batched filters are more filters; where both are batched, each
example is a group of channels of its own.
"""

from __future__ import annotations

import functools
from typing import Any

from ....core.extend import F, Op, Shared, exact_quotient, is_open, rank_of
from ..common.batching import Rule
from ..common.sizes import at_least

__all__: list[str] = []


def with_examples(rule: Rule) -> Rule:
    """Return a batching rule that is never given an empty batch, by whose size it divides.

    It runs on one example of zeros instead, whose result is left out.
    """

    @functools.wraps(rule)
    def run(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
        some = xs[batched.index(True)]
        rank_of(some, op)
        size = some.shape[0]
        missing = at_least(0, 1 - size)
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


def as_channels(x: Any, op: Op, groups: int = 1) -> Any:
    """Return a batch of ``(..., groups * c)`` as ``(..., groups * batch * c)``."""
    rank_of(x, op)
    size, *rest, c = x.shape
    x = F.reshape(x, shape=(size, *rest, groups, exact_quotient(c, groups)))
    x = F.moveaxis(x, source=(0,), destination=(-2,))
    return F.reshape(x, shape=(*rest, size * c))


def as_examples(x: Any, size: int, groups: int = 1) -> Any:
    """Return ``(..., groups * batch * c)`` as a batch of ``(..., groups * c)``."""
    *rest, total = x.shape
    each = exact_quotient(total, size * groups)
    x = F.reshape(x, shape=(*rest, groups, size, each))
    x = F.moveaxis(x, source=(-2,), destination=(0,))
    return F.reshape(x, shape=(size, *rest, groups * each))


def side_by_side(x: Any, op: Op) -> Any:
    """Return a batch of ``(..., c)`` as ``(..., batch * c)``, examples outermost."""
    rank_of(x, op)
    size, *rest, c = x.shape
    return F.reshape(F.moveaxis(x, source=(0,), destination=(-2,)), shape=(*rest, size * c))


def apart(x: Any, size: int) -> Any:
    """Undo :func:`side_by_side`."""
    *rest, total = x.shape
    x = F.reshape(x, shape=(*rest, size, exact_quotient(total, size)))
    return F.moveaxis(x, source=(-2,), destination=(0,))
