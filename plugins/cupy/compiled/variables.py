"""Variables that one kernel updates: parts of flat arrays, which each update makes anew."""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import Any

from ...packing import FlatArrays
from ...planned import FlatUpdate, Packed


class State(Packed):
    """Variables in flat arrays, which each update makes anew."""

    def __init__(self, pack: FlatUpdate, xp: Any) -> None:
        super().__init__(pack)
        self._xp = xp

    def begin(self) -> list[Any]:
        """Return the flat arrays to read, and new ones to write to."""
        new = self.empty()
        self.adopt(new)
        return self.of(self.current(), new)

    def of(self, old: Sequence[Any], new: Sequence[Any]) -> list[Any]:
        """Return the flat arrays that an update reads, then those that it writes."""
        return [*old[: self._reads], *[new[k] for k in self._places]]

    def current(self) -> list[Any]:
        """Return flat arrays of the variables' values."""
        now = self._now
        held = [v.array for v in self.variables]
        if now is None or not all(map(is_, held, now.parts)):
            arrays = [self._xp.concatenate([v.array.ravel() for v in c]) for c in self.columns]
            now = self._now = self._made(arrays)
        return now.arrays

    def adopt(self, arrays: list[Any]) -> None:
        """Assign parts of these arrays to the variables on commit."""
        self._new = self._made(arrays)

    def parts(self, arrays: list[Any]) -> list[Any]:
        """Return each variable's part of flat arrays."""
        return self._made(arrays).parts

    def empty(self) -> list[Any]:
        """Return an uninitialised flat array for each column."""
        return [self._xp.empty(self._size, column[0].dtype) for column in self.columns]

    def end(self) -> None:
        """Record that the variables have received the new values."""
        super().end()
        self._spare = None

    @property
    def last(self) -> FlatArrays | None:
        """The flat arrays of which variables hold parts, unless something else was assigned."""
        return self._now

    def hold(self, flats: FlatArrays) -> None:
        """Record that the variables hold parts of other flat arrays."""
        self._now, self._new = flats, None
