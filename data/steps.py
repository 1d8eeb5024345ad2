"""What a pipeline does with its elements, one class for each step."""

from __future__ import annotations

import itertools
import queue
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..core.extend import flatten, map_structure
from .sources import Indexed, Source, arrays_of, read_only, rows_of, stacked

__all__ = [
    "Batch",
    "Cache",
    "Chain",
    "Chosen",
    "Every",
    "Filter",
    "FlatMap",
    "Interleave",
    "Map",
    "Numbers",
    "Prefetch",
    "Repeat",
    "Shuffle",
    "Skip",
    "Take",
    "Unbatch",
    "Zip",
    "sharded",
]


class Step(Source):
    """A step after another."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def parents(self) -> tuple[Source, ...]:
        """Return what this takes its elements from."""
        return (self.source,)


class Map(Step):
    """Apply a function to each element; tuples are its arguments."""

    def __init__(self, source: Source, fn: Callable[..., Any], threads: int) -> None:
        super().__init__(source)
        self.fn, self.threads, self.length = fn, threads, source.length

    def _one(self, element: Any) -> Any:
        return arrays_of(self.fn(*element) if isinstance(element, tuple) else self.fn(element))

    def elements(self) -> Iterator[Any]:
        """Yield what the function returns, in order."""
        if self.threads < 2:
            for element in self.source.elements():  # map() would end at a StopIteration
                yield self._one(element)
            return
        # slow to import, and rarely wanted
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(self.threads) as pool:
            waiting: deque[Any] = deque()
            elements, error = self.source.elements(), None
            try:
                while error is None:
                    try:
                        waiting.append(pool.submit(self._one, next(elements)))
                    except Exception as found:  # StopIteration too: after those before it
                        error = found
                    if len(waiting) >= 2 * self.threads:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
                if not isinstance(error, StopIteration):
                    raise error
            finally:
                for future in waiting:
                    future.cancel()


class Filter(Step):
    """Leave out the elements for which a function is false."""

    def __init__(self, source: Source, fn: Callable[..., Any]) -> None:
        super().__init__(source)
        self.fn = fn

    def elements(self) -> Iterator[Any]:
        """Yield the elements for which it is true."""
        for element in self.source.elements():
            found = self.fn(*element) if isinstance(element, tuple) else self.fn(element)
            if found is None or np.ndim(found):
                told = "None" if found is None else f"an array of shape {np.shape(found)}"
                raise TypeError(f"filter: the function returns {told}; return True or False")
            if found:
                yield element


class Batch(Step):
    """Put elements together, several at a time."""

    def __init__(self, source: Source, size: int, drop: bool) -> None:
        super().__init__(source)
        self.size, self.drop = size, drop
        if source.length is not None:
            self.length = source.length // size if drop else -(-source.length // size)

    def elements(self) -> Iterator[Any]:
        """Yield batches."""
        if isinstance(self.source, Shuffle) and self.source.by_number:
            yield from self._rows(*self.source.ordered())
        elif isinstance(self.source, Indexed):
            yield from self._rows(self.source, None)
        else:
            elements = self.source.elements()
            while part := list(itertools.islice(elements, self.size)):
                if len(part) < self.size and self.drop:
                    return
                yield stacked(part)

    def _rows(self, source: Indexed, order: Any) -> Iterator[Any]:
        """Yield batches of rows, without going through each of them."""
        for start in range(0, source.length, self.size):
            stop = min(start + self.size, source.length)
            if stop - start < self.size and self.drop:
                return
            chosen = slice(start, stop) if order is None else order[start:stop]
            yield source.several(chosen)


class Unbatch(Step):
    """Take batches apart."""

    def elements(self) -> Iterator[Any]:
        """Yield the rows of each element."""
        for element in self.source.elements():
            shapes = [x.shape for x in flatten(element)]
            lengths = {shape[0] if shape else -1 for shape in shapes}
            if len(lengths) != 1 or -1 in lengths:
                raise ValueError(
                    f"unbatch: arrays of shapes {' and '.join(map(str, shapes))} have no rows in "
                    "common"
                )
            yield from rows_of(element, lengths.pop())


class Shuffle(Step):
    """Yield elements in a random order, out of a buffer.

    Attributes
    ----------
    whole : Indexed or None
        The source, if all of it fits into the buffer and it gives its elements by number: what is
        shuffled is numbers then.
    """

    def __init__(self, source: Source, buffer: int, seed: int, drawn: bool, anew: bool) -> None:
        super().__init__(source)
        self.buffer, self.seed, self.drawn, self.anew = buffer, seed, drawn, anew
        self.length, self.passes = source.length, 0
        self._told: tuple[int, ...] | None = None
        fits = isinstance(source, Indexed) and source.length <= buffer
        self.whole: Indexed | None = source if fits and isinstance(source, Indexed) else None
        if self.whole is not None and self.whole.scattered:
            warnings.warn(
                "shuffle: the rows of a compressed file are read in a random order, and each read "
                "unpacks all chunks that its rows lie in; a smaller buffer_size reads in order",
                stacklevel=4,
            )

    @property
    def by_number(self) -> bool:
        """Whether batches are best taken from the source by the numbers of their elements."""
        return self.whole is not None and self.whole.block == 1

    def _generator(self) -> np.random.Generator:
        number = self.passes if self.anew else 0
        self.passes += 1
        return np.random.default_rng([*(self._told or (self.seed,)), number])

    def seed_pass(self, numbers: tuple[int, ...]) -> None:
        """Let the next passes depend on these numbers, unless the user gave a seed."""
        if self.drawn:
            self._told, self.passes = numbers if self.anew else numbers[:1], 0

    def ordered(self) -> tuple[Indexed, Any]:
        """Return the source and the order of its elements in the next pass."""
        assert self.whole is not None
        return self.whole, self._generator().permutation(self.whole.length)

    def elements(self) -> Iterator[Any]:
        """Yield elements in a random order."""
        if self.whole is not None:
            source, order = self.ordered()
            yield from source.rows(order)
            return
        generator, elements = self._generator(), self.source.elements()
        held = list(itertools.islice(elements, self.buffer))
        for element in elements:
            i = int(generator.integers(len(held)))
            found, held[i] = held[i], element
            yield found
        generator.shuffle(held)
        yield from held

    def state(self) -> Any:
        """Return how many passes there were, and a seed that nobody gave."""
        return [self.seed, self.passes] if self.drawn else self.passes

    def load(self, state: Any) -> None:
        """Set what :meth:`state` returned."""
        if isinstance(state, (list, tuple)):
            self.seed, state = int(state[0]), state[1]
        self.passes = int(state)


class Repeat(Step):
    """Go through elements several times, or for ever."""

    def __init__(self, source: Source, count: int | None) -> None:
        super().__init__(source)
        self.count = count
        if source.length is not None and count is not None:
            self.length = source.length * count

    def endless(self) -> bool:
        """Return whether it goes on for ever: it does not where the source is empty."""
        return (self.count is None and self.source.length != 0) or super().endless()

    def elements(self) -> Iterator[Any]:
        """Yield the elements, pass after pass."""
        for _ in itertools.count() if self.count is None else range(self.count):
            empty = True
            for element in self.source.elements():
                empty = False
                yield element
            if empty:
                return


class Take(Step):
    """The first elements."""

    def __init__(self, source: Source, count: int) -> None:
        super().__init__(source)
        self.count = count
        if source.length is not None:
            self.length = min(source.length, count)
        elif source.endless():
            self.length = count

    def endless(self) -> bool:
        """Return whether they never end: they do."""
        return False

    def elements(self) -> Iterator[Any]:
        """Yield them."""
        return itertools.islice(self.source.elements(), self.count)


class Skip(Step):
    """All but the first elements."""

    def __init__(self, source: Source, count: int) -> None:
        super().__init__(source)
        self.count = count
        if source.length is not None:
            self.length = max(source.length - count, 0)

    def elements(self) -> Iterator[Any]:
        """Yield them."""
        return itertools.islice(self.source.elements(), self.count, None)


class Chosen(Indexed):
    """Some of the elements of a source that gives them by number."""

    def __init__(self, source: Indexed, numbers: range) -> None:
        self.source, self.numbers, self.length = source, numbers, len(numbers)
        self.block, self.scattered = source.block, source.scattered

    def parents(self) -> tuple[Source, ...]:
        """Return what this takes its elements from."""
        return (self.source,)

    def item(self, i: int) -> Any:
        """Return one element."""
        return self.source.item(self.numbers[i])

    def rows(self, order: Any) -> Iterator[Any]:
        """Yield elements one by one."""
        chosen = np.arange(self.length) if order is None else np.asarray(order)
        return self.source.rows(self.numbers.start + chosen * self.numbers.step)

    def several(self, chosen: Any) -> Any:
        """Return elements as one batch."""
        if isinstance(chosen, slice):
            part = self.numbers[chosen]
            return self.source.several(slice(part.start, part.stop, part.step))
        return self.source.several(self.numbers.start + np.asarray(chosen) * self.numbers.step)


class Every(Step):
    """Some of the elements of a source that gives them in order: every so many."""

    def __init__(self, source: Source, first: int, step: int) -> None:
        super().__init__(source)
        self.first, self.step = first, step
        if source.length is not None:
            self.length = len(range(first, source.length, step))

    def elements(self) -> Iterator[Any]:
        """Yield those elements."""
        return itertools.islice(self.source.elements(), self.first, None, self.step)


def sharded(source: Source, shards: int, index: int) -> Source:
    """Return every so many elements of a source, from a number on."""
    found: Source = Every(source, index, shards)
    if isinstance(source, Indexed):
        found = Chosen(source, range(index, source.length, shards))
    found.shard = shards, index
    return found


class Cache(Step):
    """Keep the elements of the first whole pass in memory."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.length = source.length
        self.held: list[Any] | None = None

    def elements(self) -> Iterator[Any]:
        """Yield the elements, from memory if they are there."""
        if self.held is not None:
            yield from self.held
            return
        held = []
        for element in self.source.elements():
            held.append(map_structure(read_only, element))
            yield held[-1]
        self.held = held


class Numbers(Source):
    """Whole numbers from one on, for ever."""

    def __init__(self, start: int) -> None:
        self.start = start

    def elements(self) -> Iterator[Any]:
        """Yield them."""
        return map(np.asarray, itertools.count(self.start))

    def endless(self) -> bool:
        """Return whether they never end: they do not."""
        return True


class Zip(Source):
    """Elements of several sources, side by side."""

    def __init__(self, sources: tuple[Source, ...], packed: Any) -> None:
        self.sources, self.packed = sources, packed
        lengths = [source.length for source in sources]
        open_ = [s for s, n in zip(sources, lengths) if n is None]
        if len(open_) < len(sources) and all(source.endless() for source in open_):
            self.length = min(n for n in lengths if n is not None)

    def endless(self) -> bool:
        """Return whether none of them ends."""
        return all(source.endless() for source in self.sources)

    def parents(self) -> tuple[Source, ...]:
        """Return what this takes its elements from."""
        return self.sources

    def elements(self) -> Iterator[Any]:
        """Yield elements in the structure of the sources."""
        for parts in zip(*(source.elements() for source in self.sources)):
            values = iter(parts)
            yield _filled(self.packed, values)


def _filled(packed: Any, values: Iterator[Any]) -> Any:
    if isinstance(packed, dict):
        return {key: _filled(packed[key], values) for key in packed}
    if isinstance(packed, (tuple, list)):
        return tuple(_filled(part, values) for part in packed)
    return next(values)


class Chain(Source):
    """One source after another."""

    def __init__(self, sources: tuple[Source, ...]) -> None:
        self.sources = sources
        lengths = [source.length for source in sources]
        self.length = None if None in lengths else sum(n for n in lengths if n is not None)

    def parents(self) -> tuple[Source, ...]:
        """Return what this takes its elements from."""
        return self.sources

    def elements(self) -> Iterator[Any]:
        """Yield the elements of the first, of the second, and so on."""
        return itertools.chain.from_iterable(source.elements() for source in self.sources)


class FlatMap(Step):
    """One pipeline for each element, one after another."""

    def __init__(self, source: Source, fn: Callable[..., Source]) -> None:
        super().__init__(source)
        self.fn = fn

    def elements(self) -> Iterator[Any]:
        """Yield the elements of each pipeline."""
        for element in self.source.elements():
            yield from self.fn(element).elements()


class Interleave(Step):
    """Pipelines for several elements at a time, some of their elements in turn."""

    def __init__(self, source: Source, fn: Callable[..., Source], cycle: int, block: int) -> None:
        super().__init__(source)
        self.fn, self.cycle, self.block = fn, cycle, block

    def elements(self) -> Iterator[Any]:
        """Yield blocks of elements in turn."""
        waiting = (self.fn(element).elements() for element in self.source.elements())
        open_: list[Iterator[Any]] = list(itertools.islice(waiting, self.cycle))
        while open_:
            still = []
            for elements in open_:
                block = list(itertools.islice(elements, self.block))
                yield from block
                if len(block) == self.block:
                    still.append(elements)
                else:
                    still += itertools.islice(waiting, 1)
            open_ = still


class Prefetch(Step):
    """Make elements ahead, in a thread."""

    def __init__(self, source: Source, count: int) -> None:
        super().__init__(source)
        self.count, self.length = count, source.length

    def elements(self) -> Iterator[Any]:
        """Yield the elements; an exception comes where it arose."""
        made: queue.Queue[tuple[bool, Any]] = queue.Queue(self.count)
        ended = threading.Event()

        def put(item: tuple[bool, Any]) -> bool:
            while not ended.is_set():
                try:
                    made.put(item, timeout=0.05)
                    return True
                except queue.Full:
                    continue
            return False

        def work() -> None:
            try:
                for element in self.source.elements():
                    if not put((True, element)):
                        return
                put((False, None))
            except BaseException as error:
                put((False, error))

        thread = threading.Thread(target=work, name="gradtape-prefetch", daemon=True)
        thread.start()
        try:
            while True:
                more, found = made.get()
                if not more:
                    if found is not None:
                        raise found
                    return
                yield found
        finally:
            ended.set()
            thread.join()
