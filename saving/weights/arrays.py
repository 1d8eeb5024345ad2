"""What a file of weights offers: arrays by name, read when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Arrays", "Entry", "of_arrays"]


class Entry(NamedTuple):
    """An array that is not read yet.

    ``stored`` says how its numbers are stored, if not in its dtype: ``"bfloat16"``.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    read: Callable[[], np.ndarray[Any, Any]]
    stored: str = ""


class Arrays:
    """The arrays of a file.

    Attributes
    ----------
    path
        The file, as messages call it.
    entries
        The arrays by name.
    aliases
        Further names of arrays, with the name in ``entries`` of each.
    left_out
        What is in the file but not a weight of a model, with the reason.
    layout
        Whose names and axes these are; ``""`` if names must tell.
    close
        To be called when all is read.
    """

    def __init__(
        self,
        path: str,
        entries: Mapping[str, Entry],
        aliases: Mapping[str, str] | None = None,
        left_out: Mapping[str, str] | None = None,
        layout: str = "",
        close: Callable[[], Any] = lambda: None,
        together: Callable[[list[str]], dict[str, np.ndarray[Any, Any]]] | None = None,
    ) -> None:
        self.path = path
        self.entries = dict(entries)
        self.aliases = dict(aliases or {})
        self.left_out = dict(left_out or {})
        self.layout = layout
        self.close = close
        self._together = together
        self._kept: dict[str, np.ndarray[Any, Any]] = {}

    def read(self, names: Iterable[str]) -> dict[str, np.ndarray[Any, Any]]:
        """Return arrays by name; read together, where that is quicker."""
        unique = list(dict.fromkeys(names))
        unread = [name for name in unique if name not in self._kept]
        if self._together is not None:
            found = self._together(unread)
        else:
            found = {name: self.entries[name].read() for name in unread}
        return {name: found[name] if name in found else self._kept[name] for name in unique}

    def look_at(self, name: str) -> np.ndarray[Any, Any]:
        """Return an array, and keep it: a file's arrays are read once."""
        if name not in self._kept:
            self._kept.update(self.read([name]))
        return self._kept[name]

    def __enter__(self) -> Arrays:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def of_arrays(arrays: Mapping[str, Any]) -> Arrays:
    """Return arrays in memory as a file's."""
    entries = {}
    for name, value in arrays.items():
        array = np.asarray(value)
        if array.dtype.kind not in "biufc":
            raise TypeError(
                f"load_weights: {name!r} is not an array of numbers: its dtype is {array.dtype}"
            )
        entries[str(name)] = Entry(array.shape, array.dtype, array.copy)
    return Arrays("the given arrays", entries)
