"""What a Python object holds, so that a change can be found, undone, and made in each run."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

__all__ = ["WHOLE", "Entries", "State", "is_same"]

#: Instead of a key: the object changed in a way that no key describes.
WHOLE = object()
_PLAIN = (str, bytes, int, float, complex, bool)


def is_same(a: Any, b: Any) -> bool:
    """Return whether two values are one object, or equal numbers or texts."""
    return a is b or (type(a) is type(b) and type(a) in _PLAIN and repr(a) == repr(b))


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
    """

    def __init__(self, name: str, of: Any, read: Callable[[], Any]) -> None:
        self.name, self.of, self.read = name, of, read
        self.before = read()

    def changed(self) -> list[Any]:
        """Return the keys under which it holds something else than before, or ``[WHOLE]``."""
        now, was = self.read(), self.before
        if type(now) is list:
            same = len(now) == len(was) and all(map(is_same, now, was))
        else:
            same = bool(now == was)
        return [] if same else [WHOLE]

    def restore(self) -> None:
        """Give it what it held before, if that is possible."""
        if isinstance(self.of, (set, deque, bytearray)):
            self.of.clear()
            (self.of.update if isinstance(self.of, set) else self.of.extend)(self.before)


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
        return self.name.format(key)

    def changed(self) -> list[Any]:
        now, was = self.read(), self.before
        if self._drop is None and len(now) != len(was):
            return [WHOLE]
        found = [key for key, x in now.items() if key not in was or not is_same(x, was[key])]
        return [*found, *[key for key in was if key not in now]]

    def drop(self, key: Any) -> None:
        """Remove a key, if it is there."""
        if self._drop is not None and key in self.read():
            self._drop(key)

    def restore(self) -> None:
        if isinstance(self.of, list):
            self.of[:] = self.before.values()
            return
        for key in self.changed():
            if key in self.before:
                self.put(key, self.before[key])
            else:
                self.drop(key)
