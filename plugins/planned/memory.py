"""Memory: where values are while a program runs, and variables that lie side by side."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Sequence
from operator import attrgetter, is_
from typing import Any

import numpy as np

from ...core.extend import Variable
from .packing import Pack
from .steps import Shape

__all__ = ["Arena", "Packed"]

#: How many sets of buffers are kept for the next calls.
_KEPT = 4

_array_of = attrgetter("array")


class Arena:
    """The buffers of a running call; a call has a set of its own.

    Buffers share memory if the plan says so: each lies in a *slot*.
    """

    def __init__(self) -> None:
        self._slots: list[int] = []
        self._makers: list[Callable[[list[Any], list[Any]], Any]] = []
        self._numbers: dict[Any, int] = {}
        self._free: deque[tuple[Any, ...]] = deque(maxlen=_KEPT)

    @property
    def bytes(self) -> int:
        """How many bytes one set of buffers takes."""
        return sum(self._slots)

    @property
    def count(self) -> int:
        """How many arrays there are in a set."""
        return len(self._makers)

    def slot(self, size: int) -> int:
        """Add memory of ``size`` bytes; return its number."""
        self._slots.append(size)
        return len(self._slots) - 1

    def buffer(self, slot: int, shape: Shape, dtype: np.dtype[Any]) -> int:
        """Return the number of the array at the beginning of a slot, which is made if need be."""

        def make(memory: list[Any], arrays: list[Any]) -> Any:
            return np.ndarray(shape, dtype, memory[slot])

        return self._number((slot, shape, dtype), make)

    def view(self, source: int, of: Callable[[Any], Any]) -> int:
        """Return the number of a view of an array, which is made if need be."""
        return self._number((source, of), lambda memory, arrays: of(arrays[source]))

    def _number(self, key: Any, maker: Callable[[list[Any], list[Any]], Any]) -> int:
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._makers)
            self._makers.append(maker)
        return number

    def make(self) -> tuple[Any, ...]:
        """Return a new set of arrays."""
        memory = [np.empty(size, np.uint8) for size in self._slots]
        arrays: list[Any] = []
        for maker in self._makers:
            arrays.append(maker(memory, arrays))
        return tuple(arrays)

    def take(self) -> tuple[Any, ...]:
        """Return a set that no other call has."""
        try:
            return self._free.pop()
        except IndexError:
            return self.make()

    def give(self, arrays: tuple[Any, ...]) -> None:
        """Keep a set for another call."""
        self._free.append(arrays)


class _Flat:
    """A flat array and its parts, which are views."""

    __slots__ = ("array", "parts")

    def __init__(self, array: Any, parts: list[Any]) -> None:
        self.array = array
        self.parts = parts


def _holders(flat: _Flat) -> list[int]:
    """Return how many hold a flat array, but for its parts, and how many hold each part."""
    counts = list(map(sys.getrefcount, flat.parts))
    counts.append(sys.getrefcount(flat.array) - len(counts))
    return counts


def _calibrated() -> tuple[int, int] | None:
    """Return what ``_holders`` says of parts and a flat array that nobody else holds, if it can.

    References are counted in this very Python, which may count others than the one before. It has
    to see who holds a part, a part of a part, and memory without an array.
    """
    if not getattr(sys, "_is_gil_enabled", lambda: True)():  # counts of other threads come late
        return None
    array = np.zeros(4, np.float32)
    flat = _Flat(array, [array[:2].reshape(2), array[2:].reshape(2, 1)])
    del array
    part, other, whole = _holders(flat)
    holds: list[Callable[[], Any]] = [
        lambda: flat.parts[0],
        lambda: flat.parts[1][:1].view(np.int32),
        lambda: memoryview(flat.parts[1]),
        lambda: flat.array,
    ]
    for hold in holds:
        held = hold()
        if _holders(flat) == [part, other, whole]:
            return None
        del held
    return (part, whole) if part == other and _holders(flat) == [part, part, whole] else None


_ALONE = _calibrated()


class Packed:
    """Variables in flat arrays, of which they hold parts.

    There are two arrays for each column of variables: the new values are written to the one that
    variables do not hold. Whoever reads a variable meanwhile has the old values, and nothing has
    changed if the update fails. Where somebody else still holds a part of the array to write to, it
    is left to them, and a new one is made.
    """

    def __init__(self, pack: Pack) -> None:
        self.bounds = pack.bounds
        self.size = pack.group.shape[0]
        self.columns = [list(column) for column in pack.written.values()]
        places = {tuple(column): k for k, column in enumerate(self.columns)}
        self._read = [places[tuple(column)] for column in pack.held.values()]
        self._now: list[_Flat | None] = [None] * len(self.columns)
        self._spare: list[_Flat | None] = [None] * len(self.columns)
        self._new: list[Any] = []

    @property
    def bytes(self) -> int:
        """How many bytes both arrays of all columns take."""
        return 2 * sum(self.size * column[0].dtype.itemsize for column in self.columns)

    def begin(self) -> list[Any]:
        """Return the flat arrays to read, and those to write to."""
        for k in self._read:
            now = self._now[k]
            if now is None or not all(map(is_, map(_array_of, self.columns[k]), now.parts)):
                whole = np.concatenate([v.array for v in self.columns[k]], axis=None)
                self._now[k] = _Flat(whole, self._cut(whole))
        self._new = []
        for spare, column in zip(self._spare, self.columns):
            if spare is None or not self._alone(spare):
                whole = np.empty(self.size, column[0].dtype)
                spare = _Flat(whole, self._cut(whole))
            self._new.append(spare)
        return [*(self._now[k].array for k in self._read), *(flat.array for flat in self._new)]  # type: ignore[union-attr]

    def commit(self) -> None:
        """Give the variables their parts of what was written."""
        for k, flat in enumerate(self._new):
            for variable, part in zip(self.columns[k], flat.parts):
                variable.set_array(part)
            self._spare[k], self._now[k] = self._now[k], flat
        self._new = []

    def _cut(self, whole: Any) -> list[Any]:
        return [whole[a:b].reshape(shape) for a, b, shape in self.bounds]

    def _alone(self, flat: _Flat) -> bool:
        if _ALONE is None:
            return False
        part, whole = _ALONE
        counts = _holders(flat)
        return counts.pop() == whole and counts.count(part) == len(counts)


def held_by(variables: Sequence[Variable]) -> int:
    """Return how many bytes variables take."""
    return sum(v.size * v.dtype.itemsize for v in variables)
