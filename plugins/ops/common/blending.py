"""What lies between two numbers, infinite ones included."""

from __future__ import annotations

from typing import Any

from ....core.extend import ops

__all__ = ["blended"]


def blended(start: Any, end: Any, share: Any) -> Any:
    """Return ``start + (end - start) * share``, for tensors of floating or complex numbers.

    An infinite end beside a finite one is the result, unless the share is that of the other end
    alone: the formula itself would give nan for differences of infinities, and for 0 times one.
    """
    gap = end - start
    alone = ops["logical_and"](ops["isinf"](start), end != -start)
    stays = ops["logical_and"](
        ops["logical_or"](alone, share == 0), ops["logical_not"](ops["isfinite"](gap))
    )
    return start + ops["where"](stays, 0.0, gap) * share
