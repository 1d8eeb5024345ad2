"""Examples of a batch as channels: how a convolution runs with filters for each example.

Batched images are more images, and batched filters are more filters. Where both are batched, each
example becomes a group of channels.
"""

from __future__ import annotations

from typing import Any

from ....core.extend import F, Op, exact_quotient, rank_of

__all__: list[str] = []


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
