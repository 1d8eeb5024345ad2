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
    finite = ops["isfinite"](gap)
    alone = ops["logical_and"](ops["isinf"](start), end != -start)
    stays = ops["logical_and"](ops["logical_or"](alone, share == 0), ops["logical_not"](finite))
    from_start = start + ops["where"](stays, 0.0, gap) * share
    # from the nearer end, so that either end is exact where the other one is far greater
    from_end = end - ops["where"](finite, gap, 0.0) * (1.0 - share)
    near_end = ops["logical_or"](ops["logical_and"](finite, share >= 0.5), share == 1)
    return ops["where"](near_end, from_end, from_start)
