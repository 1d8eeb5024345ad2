"""Interpolation between two numbers, including infinite ones."""

from __future__ import annotations

from typing import Any

from ....core.extend import ops


def blended(start: Any, end: Any, share: Any) -> Any:
    """Return ``start + (end - start) * share``, for tensors of floating or complex numbers.

    If one end is infinite, the result is infinite, unless the share selects the other end alone.
    The formula itself would give nan for differences of infinities, and for 0 times infinity.
    """
    gap = end - start
    finite = ops["isfinite"](gap)
    alone = ops["logical_and"](ops["isinf"](start), end != -start)
    stays = ops["logical_and"](ops["logical_or"](alone, share == 0), ops["logical_not"](finite))
    from_start = start + ops["where"](stays, 0.0, gap) * share
    # from the nearer end: each end is exact, even if the other one is far larger
    from_end = end - ops["where"](finite, gap, 0.0) * (1.0 - share)
    near_end = ops["logical_or"](ops["logical_and"](finite, share >= 0.5), share == 1)
    return ops["where"](near_end, from_end, from_start)
