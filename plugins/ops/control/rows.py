"""``Rows``: what the steps of a loop return, stacked."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ....core.extend import COUNTS, Graph

__all__ = ["Rows"]

Array = NDArray[Any]

#: From so many bytes on, the system gives and takes back the memory of each array.
_LARGE = 1 << 16
#: How many bytes are kept for the next runs of a loop.
_MOST = 1 << 26


class Rows:
    """What the steps of a loop return, to be stacked.

    NumPy's arrays are put where they belong at once: a step's memory is in the cache, and the next
    one uses it again. So do stacks that nobody has any more: new memory takes longer to get, page
    by page, than to fill.

    Parameters
    ----------
    length
        The number of steps.
    body
        The graph of a step.
    """

    __slots__ = ("_length", "_lists", "_spare", "_wholes")

    def __init__(self, length: int, body: Graph) -> None:
        self._length = length
        self._spare = _spare_of(body)
        self._wholes: list[Any] = []
        self._lists: list[list[Any]] = []

    def put(self, i: int, found: Sequence[Any]) -> None:
        """Take what step ``i`` returned."""
        if not self._lists:
            self._lists = [[None] * self._length for _ in found]
            self._wholes = [
                self._spare.array((self._length, *x.shape), x.dtype)
                if type(x) is np.ndarray
                else None
                for x in found
            ]
        for x, whole, rows in zip(found, self._wholes, self._lists, strict=True):
            if whole is None:
                rows[i] = x
            else:
                whole[i] = x

    def stacked(self, xp: Any) -> list[Any]:
        """Return the stacks."""
        return [
            xp.stack(rows, axis=0) if whole is None else whole
            for rows, whole in zip(self._lists, self._wholes, strict=True)
        ]


class _Spare:
    """Arrays of earlier runs."""

    def __init__(self) -> None:
        self._held: list[Array] = []
        self._bytes = 0
        self._lock = Lock()

    def array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """Return an array that nobody else has."""
        with self._lock:  # nobody else can find one alone, until it is held
            for k in range(len(self._held)):
                if _count(self._held, k) == _ALONE:
                    array = self._held[k]
                    if array.shape == shape and array.dtype == dtype:
                        return array
            array = np.empty(shape, dtype)
            if COUNTS and array.nbytes >= _LARGE and self._bytes + array.nbytes <= _MOST:
                self._held.append(array)
                self._bytes += array.nbytes
            return array


def _count(arrays: list[Array], k: int) -> int:
    return sys.getrefcount(arrays[k])


_ALONE = _count([np.empty(0)], 0) if COUNTS else -1
_SPARES: WeakKeyDictionary[Graph, _Spare] = WeakKeyDictionary()


def _spare_of(body: Graph) -> _Spare:
    found = _SPARES.get(body)
    return _SPARES.setdefault(body, _Spare()) if found is None else found
