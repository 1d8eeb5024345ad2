"""How long objects live: who holds them, what lives with them, and what the plugins' changes end.

Reference counts show whether an array can be reused. What is made from plugins, such as compiled
graphs, is forgotten when the plugins change.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakSet, ref

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

T = TypeVar("T")


def _counts() -> bool:
    if not hasattr(sys, "getrefcount"):
        return False
    # without a global lock, a count may be stale when it is read
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return False
    things = [object()]
    once = sys.getrefcount(things[0])
    others = things[0], [things[0]]
    return sys.getrefcount(things[0]) == once + len(others)


#: Whether each further reference adds exactly one to the count.
COUNTS = _counts()


class ReusedArrays:
    """Makes flat arrays, and reuses each one when nothing refers to it, or to a part of it.

    New memory costs more than a pass over memory that was used before: the system clears it.
    """

    #: How many arrays of each size it keeps: while the last result is in use, the next call needs
    #: another one.
    _EACH = 2
    #: How many sizes it keeps arrays of.
    _SIZES = 16

    def __init__(self) -> None:
        self._held: dict[tuple[Any, int], list[NDArray[Any]]] = {}
        for array in [np.empty(1)]:  # as in empty: a list and a loop refer to it
            self._alone = self._count(array)

    @staticmethod
    def _count(array: NDArray[Any]) -> int:
        return sys.getrefcount(array) if COUNTS else 0

    def empty(self, size: int, dtype: Any) -> NDArray[Any]:
        """Return an uninitialised array."""
        if not COUNTS:
            return np.empty(size, dtype)
        held = self._held.pop((dtype, size), [])  # atomic: another thread finds none
        for array in held:
            if self._count(array) == self._alone:
                break
        else:
            array = np.empty(size, dtype)
            held = [array, *held[: self._EACH - 1]]
        self._held[dtype, size] = held  # now the most recently used
        while len(self._held) > self._SIZES:
            self._held.pop(next(iter(self._held)), None)
        return array


class WeakIdentityDict(MutableMapping[Any, T]):
    """A dictionary whose keys are objects themselves, each as long as it lives.

    Unlike in ``WeakKeyDictionary``, objects that are equal remain apart, and those of classes
    without a hash, such as dataclasses, are keys too.
    """

    def __init__(self) -> None:
        self._held: dict[int, tuple[ref[Any], T]] = {}

    def __getitem__(self, key: Any) -> T:
        return self._held[id(key)][1]

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the value of a key, or the default, without the cost of a KeyError."""
        found = self._held.get(id(key))
        return default if found is None else found[1]

    def __setitem__(self, key: Any, value: T) -> None:
        number, held = id(key), self._held
        held[number] = ref(key, lambda _: held.pop(number, None)), value

    def __delitem__(self, key: Any) -> None:
        del self._held[id(key)]

    def __contains__(self, key: Any) -> bool:
        return id(key) in self._held

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[Any]:
        keys = [held() for held, _ in self._held.values()]
        return iter([key for key in keys if key is not None])


class Replaced:
    """The objects that attributes of modules held and no longer do, in the order of time.

    Attributes
    ----------
    count
        The number of replacements until now.
    """

    def __init__(self) -> None:
        self.count = 0
        self._lock = RLock()
        self._last: WeakIdentityDict[int] = WeakIdentityDict()

    def note(self, objects: Iterable[Any]) -> None:
        """Note that other objects were set instead of these."""
        found = list(objects)
        with self._lock:
            for x in found:
                self._last[x] = self.count + 1
            self.count += 1  # now: who sees the number must find the objects

    def since(self, count: int, objects: Iterable[Any]) -> bool:
        """Return whether any of the objects was replaced after the first ``count`` times."""
        return any(self._last.get(x, 0) > count for x in objects)


#: The variables that modules no longer hold: traces with them may be outdated.
REPLACED = Replaced()


# -- what is made from plugins ---------------------------------------------------------------------


class KernelCaches:
    """Objects that keep what was made from the kernels and executors of plugins.

    A look-up costs nothing more for it: the method ``forget_made`` of an object empties its tables
    when the plugins change. What Python code made, such as a trace, is compared instead by
    ``meanings``, since only running the code again can make it anew.

    Attributes
    ----------
    count
        How often the plugins have changed.
    meanings
        How often an op, a kernel or a gradient rule that was in use has changed. A trace holds
        gradients, and the values of constants, as they were.
    """

    def __init__(self) -> None:
        self.count = self.meanings = 0
        self._lock = RLock()
        self._objects: WeakSet[Any] = WeakSet()

    def keep(self, holder: Any, table: dict[Any, Any], key: Any, make: Callable[[], Any]) -> Any:
        """Make something from plugins, and keep it in a table until the plugins change.

        Parameters
        ----------
        holder
            An object with a method ``forget_made``, which empties the table.
        table, key
            Where to keep it.
        make
            Makes it.

        Returns
        -------
        object
            What was made. It is not kept if the plugins changed meanwhile.
        """
        before = self.count
        made = make()
        with self._lock:
            if before == self.count:
                table[key] = made
                self._objects.add(holder)
        return made

    def forget(self) -> None:
        """Make all holders forget what was made from plugins, since these change."""
        with self._lock:
            self.count += 1
            holders = list(self._objects)
            self._objects.clear()
            for holder in holders:
                holder.forget_made()
        REPLACED.note(())  # what was traced looks whether it is outdated

    def meaning_changed(self) -> None:
        """Have Python code traced again when it is next called, and all made anew."""
        self.meanings += 1
        self.forget()


#: What is made from the plugins of this process.
KERNEL_CACHES = KernelCaches()
