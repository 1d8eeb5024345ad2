"""Whether reference counts say who else has an object."""

from __future__ import annotations

import sys

__all__ = ["COUNTS"]


def _counts() -> bool:
    if not hasattr(sys, "getrefcount"):
        return False
    # without a global lock, a count may be old when it is read
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return False
    things = [object()]
    once = sys.getrefcount(things[0])
    others = things[0], [things[0]]
    return sys.getrefcount(things[0]) == once + len(others)


#: Whether a reference more is one more in the count.
COUNTS = _counts()
