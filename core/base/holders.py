"""Whether reference counts say who else has an object, and arrays that are used again by them."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["COUNTS", "Kept"]


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


class Kept:
    """Makes flat arrays, and gives one again when nobody has it, or a part of it, any longer.

    Fresh memory costs more than a pass over memory that was used before: the system clears it.
    """

    #: How many arrays of a size it keeps: while somebody has the last result, the next has another.
    _EACH = 2
    #: Of how many sizes.
    _SIZES = 16

    def __init__(self) -> None:
        self._held: dict[tuple[Any, int], list[NDArray[Any]]] = {}
        for array in [np.empty(1)]:  # as in empty: a list has it, and a loop
            self._alone = self._count(array)

    @staticmethod
    def _count(array: NDArray[Any]) -> int:
        return sys.getrefcount(array) if COUNTS else 0

    def empty(self, size: int, dtype: Any) -> NDArray[Any]:
        """Return an array of any values."""
        if not COUNTS:
            return np.empty(size, dtype)
        held = self._held.pop((dtype, size), [])  # one step for all threads: another finds none
        for array in held:
            if self._count(array) == self._alone:
                break
        else:
            array = np.empty(size, dtype)
            held = [array, *held[: self._EACH - 1]]
        self._held[dtype, size] = held  # behind all others
        while len(self._held) > self._SIZES:
            self._held.pop(next(iter(self._held)), None)
        return array
