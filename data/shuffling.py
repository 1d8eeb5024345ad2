"""The steps that shuffle elements and that keep them in memory.

A step that keeps elements keeps their order, so it warns about what is shuffled anew in each pass.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import numpy as np

from ..core.extend import map_structure, warn_user
from .arrays import read_only
from .sources import Indexed, Source, SourceStep

__all__ = ["Cache", "Shuffle", "note_part", "ordering", "shuffles_before"]

#: A cache's function of a shuffle and what decides its next order: what decides it instead.
ordering: ContextVar[Callable[[Shuffle, list[int]], list[int]] | None] = ContextVar(
    "gradtape_ordering", default=None
)


class Shuffle(SourceStep):
    """Yields elements in a random order, drawn from a buffer.

    Attributes
    ----------
    whole : Indexed or None
        The source, if it has access by index and fits into the buffer. In this case, only indices
        are shuffled.
    """

    def __init__(self, source: Source, buffer: int, seed: int, drawn: bool, anew: bool) -> None:
        super().__init__(source)
        self.buffer, self.seed, self.drawn, self.anew = buffer, seed, drawn, anew
        self.length, self.passes = source.length, 0
        self._epoch_seed: tuple[int, ...] | None = None
        #: The sides of each cut through the elements that datasets were made of.
        self._cuts: dict[tuple[str, int], set[int]] = {}
        self._warned = False
        fits = isinstance(source, Indexed) and source.length <= buffer
        self.whole: Indexed | None = source if fits and isinstance(source, Indexed) else None
        if self.whole is not None and self.whole.scattered:
            warn_user(
                "shuffle: reading the rows of a compressed file in a random order is slow, because "
                "each read decompresses all chunks that contain its rows; a smaller buffer_size "
                "reads in order",
                UserWarning,
            )

    @property
    def by_number(self) -> bool:
        """Whether batches should be read from the source by the indices of their elements."""
        return self.whole is not None and self.whole.block == 1

    def _generator(self) -> np.random.Generator:
        order = [*(self._epoch_seed or (self.seed,)), self.passes if self.anew else 0]
        again = ordering.get()
        found = order if again is None else again(self, order)
        self.passes += found is order
        return np.random.default_rng(found)

    def seed_pass(self, numbers: tuple[int, ...]) -> None:
        """Seed the next passes with these numbers, unless the user gave a seed.

        An order that stays the same does so for all runs from the first pass on, because parts of
        it may have been held out.
        """
        if self.drawn and self.anew:
            self._epoch_seed, self.passes = numbers, 0
        elif self.drawn and not self.passes:
            self.seed = numbers[0]

    def ordered(self) -> tuple[Indexed, Any]:
        """Return the source and the order of its elements in the next pass."""
        assert self.whole is not None
        return self.whole, self._generator().permutation(self.whole.length)

    def elements(self, keep: bool = False) -> Iterator[Any]:
        """Yield elements in a random order."""
        if self.whole is not None:
            source, order = self.ordered()
            yield from source.rows(order, keep)
            return
        generator, elements = self._generator(), self.source.elements(True)
        held = list(itertools.islice(elements, self.buffer))
        for element in elements:
            i = int(generator.integers(len(held)))
            found, held[i] = held[i], element
            yield found
        generator.shuffle(held)
        yield from held

    def state(self) -> Any:
        """Return the number of passes so far, and the seed if it was drawn."""
        return [self.seed, self.passes] if self.drawn else self.passes

    def load(self, state: Any) -> None:
        """Restore a state that :meth:`state` returned."""
        if isinstance(state, (list, tuple)):
            self.seed, state = int(state[0]), state[1]
        self.passes = int(state)

    def cut(self, cut: tuple[str, int], side: int, who: str) -> None:
        """Note that a dataset is made of the elements on one side of a cut.

        Warn, once, if another one is made of those on another side: they are not the same elements
        in the next pass.
        """
        sides = self._cuts.setdefault(cut, set())
        sides.add(side)
        if self.anew and len(sides) > 1 and not self._warned:
            self._warned = True
            warn_user(
                f"Dataset.{who}: two parts are made of a dataset that is shuffled anew in each "
                "pass, so they share elements: what is held out in one pass is trained on in the "
                "next; pass reshuffle_each_iteration=False to shuffle(), or make the parts first "
                "and shuffle one of them",
                UserWarning,
            )


def shuffles_before(source: Source) -> Iterator[Shuffle]:
    """Yield the shuffles that decide the order of a source's next pass."""
    waiting = [*source.parents()]
    while waiting:
        source = waiting.pop()
        if isinstance(source, Shuffle):
            yield source
        if not source.one_order:
            waiting += source.parents()


def note_part(source: Source, cut: tuple[str, int], side: int, who: str) -> None:
    """Tell the shuffles of a pipeline that a dataset is made of a part of it.

    Parameters
    ----------
    source
        The pipeline's last step.
    cut
        Where it is cut: ``("at", index)`` or ``("shards", number)``.
    side
        Which of the parts it is.
    who
        The method that makes it, for a warning.
    """
    waiting = [(source, cut)]
    while waiting:
        source, (kind, at) = waiting.pop()
        if isinstance(source, Shuffle):
            source.cut((kind, at), side, who)
        elif not source.one_order:
            if kind == "at":  # counted from the start of what the shuffle yields
                at += source.skipped
            waiting += [(parent, (kind, at)) for parent in source.parents()]


# -- keeping elements ------------------------------------------------------------------------------


class Cache(SourceStep):
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
