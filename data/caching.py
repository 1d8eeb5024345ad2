"""The step that keeps elements in memory."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from typing import Any

from ..core.extend import map_structure
from .arrays import read_only
from .shuffling import Shuffle, ordering, shuffles_before
from .sources import Source, Step

__all__ = ["Cache"]


class Cache(Step):
    """Keeps elements in memory once they have been read.

    A pass that ends early leaves the rest to the next one, so that all passes have the elements,
    and the order, of the first: also those that read different parts.
    """

    one_order = True

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.length = source.length
        self.held: list[Any] = []
        self.whole = False  # whether all elements are in memory
        #: For each shuffle before it, what decided the orders that it drew, of which a repetition
        #: has several: a resumed run reads the elements in them again.
        self.orders: list[list[list[int]]] | None = None
        self._shuffles = [*dict.fromkeys(shuffles_before(self))]
        self._drawn = [0 for _ in self._shuffles]
        self._rest: Iterator[Any] | None = None
        self._lock = threading.RLock()

    def elements(self, keep: bool = False) -> Iterator[Any]:
        """Yield the elements, from memory as far as they were read before."""
        if self.whole:
            yield from self.held
            return
        for i in itertools.count():
            if i >= len(self.held) and not self._read(i):
                return
            yield self.held[i]

    def _read(self, i: int) -> bool:
        """Read elements up to number ``i``; return whether there is one."""
        with self._lock:
            token = ordering.set(self._order)
            try:
                while len(self.held) <= i and not self.whole:
                    if self._rest is None:
                        self.orders = self.orders or [[] for _ in self._shuffles]
                        self._drawn = [0 for _ in self._shuffles]
                        self._rest, self.held = self.source.elements(True), []
                    element = next(self._rest, self)
                    if element is self:
                        self.whole, self._rest = True, None
                    else:
                        self.held.append(map_structure(read_only, element))
            except BaseException:  # the source cannot go on after this: it starts again
                self._rest = self.orders = None
                raise
            finally:
                ordering.reset(token)
            return i < len(self.held)

    def _order(self, shuffle: Shuffle, order: list[int]) -> list[int]:
        """Return what decides a shuffle's next order: the same as before, if it drew it before."""
        if shuffle not in self._shuffles or self.orders is None:
            return order
        i = self._shuffles.index(shuffle)
        number, known = self._drawn[i], self.orders[i]
        self._drawn[i] += 1
        if number == len(known):
            known.append(order)
        return known[number]

    def state(self) -> Any:
        """Return what decided the order of the elements; ``False`` if no pass has begun."""
        return False if self.orders is None else [[*map(list, found)] for found in self.orders]

    def load(self, state: Any) -> None:
        """Restore a state that :meth:`state` returned, unless the elements are in its order."""
        orders = None if state is False else [[[*map(int, x)] for x in _several(y)] for y in state]
        if orders != self.orders:
            self.orders, self.held, self.whole, self._rest = orders, [], False, None

    def __getstate__(self) -> dict[str, Any]:
        """Return what copies and pickles have; one that is not whole starts again."""
        held = self.held if self.whole else []
        return {"source": self.source, "held": held, "whole": self.whole, "orders": self.orders}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["source"])  # type: ignore[misc]
        self.held, self.whole, self.orders = state["held"], state["whole"], state["orders"]


def _several(orders: Any) -> Any:
    """Return a list of orders; states of release 0.1 have the first one only."""
    return orders if orders and isinstance(orders[0], (list, tuple)) else [orders] if orders else []
