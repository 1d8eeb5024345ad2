"""Variables that are updated together, side by side in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....core.extend import Variable
from ...planned.memory import Packed
from ...planned.packing import Pack

__all__ = ["State"]


class State(Packed):
    """Variables in flat arrays, which are made anew by each update."""

    def __init__(self, pack: Pack, xp: Any) -> None:
        super().__init__(pack)
        self._xp = xp

    @property
    def latest(self) -> list[Any]:
        """The flat arrays that the last update has left."""
        assert self._now is not None
        return self._now.arrays

    def begin(self) -> list[Any]:
        """Return the flat arrays to read, and new ones to write to."""
        new = self.empty()
        self.adopt(new)
        return self.of(self.current(), new)

    def of(self, old: Sequence[Any], new: Sequence[Any]) -> list[Any]:
        """Return which flat arrays an update reads, and then which it writes."""
        return [*old[: self._reads], *[new[k] for k in self._places]]

    def current(self) -> list[Any]:
        """Return flat arrays of what the variables hold."""
        now = self._now
        if now is None or not all(map(_is_held, self.variables, now.parts)):
            arrays = [self._xp.concatenate([v.array.ravel() for v in c]) for c in self.columns]
            now = self._now = self._made(arrays)
        return now.arrays

    def adopt(self, arrays: list[Any]) -> None:
        """Let the variables have their parts of these arrays when it is committed."""
        self._new = self._made(arrays)

    def parts(self, arrays: list[Any]) -> list[Any]:
        """Return each variable's part of flat arrays."""
        return self._made(arrays).parts

    def empty(self) -> list[Any]:
        """Return a flat array for each column, of any values."""
        return [self._xp.empty(self._size, column[0].dtype) for column in self.columns]

    def end(self) -> None:
        """Say that the variables have been given what was written."""
        super().end()
        self._spare = None


def _is_held(variable: Variable, part: Any) -> bool:
    return variable.array is part
