"""What a Python object holds, so that a change can be found, undone, and made in each run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import is_
from types import MappingProxyType
from typing import Any

#: Instead of a key: the object changed in a way that no key describes.
WHOLE = object()
_PLAIN = (str, bytes, int, float, complex, bool)


def is_same(a: Any, b: Any) -> bool:
    """Return whether two values are one object, or equal numbers or texts."""
    return a is b or (type(a) is type(b) and type(a) in _PLAIN and repr(a) == repr(b))


def _same_state(a: Any, b: Any) -> bool:
    if type(a) is list:
        return len(a) == len(b) and all(map(is_same, a, b))
    return bool(a == b)


class State:
    """An object whose changes are seen only as a whole, such as a set or a generator.

    Parameters
    ----------
    name
        How the user refers to it.
    of
        The object.
    read
        Returns its state.
    undo
        Gives it an earlier state; None if that is not possible.
    """

    def __init__(
        self,
        name: str,
        of: Any,
        read: Callable[[], Any],
        undo: Callable[[Any], None] | None = None,
    ) -> None:
        self.name, self.of, self.read, self._undo = name, of, read, undo
        self.before = read()

    def changed(self) -> list[Any]:
        """Return the keys under which it holds something else than before, or ``[WHOLE]``."""
        return [] if _same_state(self.read(), self.before) else [WHOLE]

    def accept(self, earlier: Any) -> None:
        """Count changes since it held ``earlier`` as made before."""
        if _same_state(self.before, earlier):
            self.before = self.read()

    def restore(self) -> None:
        """Give it what it held before, if that is possible."""
        if self._undo is not None:
            self._undo(self.before)


class _Unnamed:
    """Stands in texts for a key with a long text, or with one that only a run knows."""

    def __repr__(self) -> str:
        return "..."


class Entries(State):
    """An object that holds values under keys, which can be set one by one.

    Parameters
    ----------
    name
        How the user refers to the value under a key, with ``{}`` for the key.
    of
        The object.
    read
        Returns its values in a dict.
    put, drop
        Set the value under a key, and remove a key. Without ``drop``, the keys stay the same.
    inherited
        The values that reading keys gives which it does not hold itself.
    """

    def __init__(
        self,
        name: str,
        of: Any,
        read: Callable[[], dict[Any, Any]],
        put: Callable[[Any, Any], None],
        drop: Callable[[Any], None] | None = None,
        inherited: Mapping[Any, Any] = MappingProxyType({}),
    ) -> None:
        super().__init__(name, of, read)
        self.put, self._drop, self.inherited = put, drop, inherited

    def name_of(self, key: Any) -> str:
        """Return how the user refers to the value under a key."""
        return self.name.format(key if type(key) in _PLAIN else _Unnamed())

    def changed(self) -> list[Any]:
        now, was = self.read(), self.before
        if self._drop is None and len(now) != len(was):
            return [WHOLE]
        same = len(now) == len(was) and all(map(is_, now.values(), was.values()))
        if same and all(map(is_, now, was)):
            return []  # at once, since most objects hold what they held before
        found = [key for key, x in now.items() if key not in was or not is_same(x, was[key])]
        return [*found, *[key for key in was if key not in now]]

    def accept(self, earlier: Any) -> None:
        now, before = self.read(), dict(self.before)
        for key in {**earlier, **now}:
            if key in now and not (key in earlier and is_same(now[key], earlier[key])):
                before[key] = now[key]
            elif key not in now:
                before.pop(key, None)
        self.before = before

    def drop(self, key: Any) -> None:
        """Remove a key, if it is there."""
        if self._drop is not None and key in self.read():
            self._drop(key)

    def restore(self) -> None:
        if isinstance(self.of, list):
            self.of[:] = self.before.values()
            return
        now = list(self.read())
        if isinstance(self.of, dict) and now != list(self.before):  # in the order before
            for key in now:
                self.drop(key)
        for key in self.changed():
            if key in self.before:
                self.put(key, self.before[key])
            else:
                self.drop(key)
