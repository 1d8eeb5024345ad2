"""What is made from plugins, such as compiled graphs: forgotten when the plugins change."""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import Any
from weakref import WeakSet

from .holders import REPLACED


class Made:
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
MADE = Made()
