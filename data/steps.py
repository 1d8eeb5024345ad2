"""The steps of a pipeline, one class each."""

from __future__ import annotations

import contextvars
import itertools
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..core.extend import can_start_threads, flatten, map_structure
from .arrays import arrays_of, gathered, owned, rows_of
from .shuffling import Shuffle
from .sources import Indexed, Source, SourceStep

__all__ = [
    "Batch",
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
    "Skip",
    "Take",
    "Unbatch",
    "Zip",
    "positive",
    "reading",
    "sharded",
    "true_of",
]


class Reading:
    """A user's function that gets tensors of text instead of arrays, which ``texts`` makes."""

    def __init__(self, fn: Callable[..., Any], texts: Callable[[Any], Any]) -> None:
        self.fn, self.texts = fn, texts

    def __call__(self, *parts: Any) -> Any:
        return self.fn(*self.read(parts))

    def read(self, element: Any) -> Any:
        """Return an element with tensors of text."""

        def leaf(x: Any) -> Any:
            return self.texts(x) if type(x) is np.ndarray and x.dtype.kind in "OSU" else x

        return map_structure(leaf, element)


def reading(data: Any, fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a user's function as a data set calls it, which may have tensors of text."""
    return fn if data._of_texts is None else Reading(fn, data._of_texts)


def called(who: str, fn: Callable[..., Any], element: Any) -> Any:
    """Return a user's function of an element; the parts of a tuple are its arguments."""
    if isinstance(fn, Reading):
        element, fn = fn.read(element), fn.fn
    parts = element if isinstance(element, tuple) else (element,)
    try:
        return fn(*parts)
    except TypeError as error:
        if error.__traceback__ is None or error.__traceback__.tb_next is not None:
            raise  # from inside the function
        raise TypeError(
            f"{who}: the function {_named(fn)} cannot be called with the {len(parts)} parts of an "
            f"element, which are separate arguments: {error}"
        ) from None


def _named(fn: Callable[..., Any]) -> str:
    fn = fn.fn if isinstance(fn, Reading) else fn
    return str(getattr(fn, "__name__", fn))


class Map(SourceStep):
    """Applies a function to each element; the parts of a tuple are its arguments."""

    def __init__(self, source: Source, fn: Callable[..., Any], threads: int) -> None:
        super().__init__(source)
        self.fn, self.threads, self.length = fn, threads, source.length

    def _one(self, element: Any, keep: bool) -> Any:
        found = [called("map", self.fn, element)]
        if found[0] is None:
            raise TypeError(
                f"map: the function {_named(self.fn)} returned None; return the new element"
            )
        return owned(found) if keep else arrays_of(found[0])

    def elements(self, keep: bool = False) -> Iterator[Any]:
        """Yield the function's results, in order."""
        if self.threads < 2 or not can_start_threads():
            for element in self.source.elements():  # map() would end at a StopIteration
                yield self._one(element, keep)
            return
        # slow to import and rarely needed
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(self.threads) as pool:
            waiting: deque[Any] = deque()
            elements, error = self.source.elements(True), None
            try:
                while error is None:
                    try:
                        waiting.append(pool.submit(self._one, next(elements), True))
                    except Exception as found:  # StopIteration too: raised after earlier results
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


def true_of(who: str, fn: Callable[..., Any], element: Any) -> bool:
    """Return whether a user's function of an element returns True."""
    found = called(who, fn, element)
    if found is None or np.ndim(found):
        told = "None" if found is None else f"an array of shape {np.shape(found)}"
        raise TypeError(f"{who}: the function returned {told}; return True or False")
    return bool(found)


class Filter(SourceStep):
    """Leaves out the elements for which a function returns False."""

    def __init__(self, source: Source, fn: Callable[..., Any]) -> None:
        super().__init__(source)
        self.fn = fn

    def elements(self, keep: bool = False) -> Iterator[Any]:
        """Yield the elements for which the function returns True."""
        for element in self.source.elements(keep):
            if true_of("filter", self.fn, element):
                yield element


class Batch(SourceStep):
    """Stacks elements into batches."""

    def __init__(self, source: Source, size: int, drop: bool) -> None:
        super().__init__(source)
        self.size, self.drop = size, drop
        if source.length is not None:
            self.length = source.length // size if drop else -(-source.length // size)

    def elements(self, keep: bool = False) -> Iterator[Any]:
        """Yield batches."""
        if isinstance(self.source, Shuffle) and self.source.by_number:
            yield from self._rows(*self.source.ordered())
        elif isinstance(self.source, Indexed):
            yield from self._rows(self.source, None)
        else:
            elements = self.source.elements()
            while True:
                batch, count = gathered(elements, self.size)
                if not count or (count < self.size and self.drop):
                    return
                yield batch

    def _rows(self, source: Indexed, order: Any) -> Iterator[Any]:
        """Yield batches of rows without iterating over single rows."""
        for start in range(0, source.length, self.size):
            stop = min(start + self.size, source.length)
            if stop - start < self.size and self.drop:
                return
            chosen = slice(start, stop) if order is None else order[start:stop]
            yield source.several(chosen)


class Unbatch(SourceStep):
    """Splits batches into their rows."""

    def elements(self, keep: bool = False) -> Iterator[Any]:
        """Yield the rows of each element."""
        for element in self.source.elements(True):
            shapes = [x.shape for x in flatten(element)]
            lengths = {shape[0] if shape else -1 for shape in shapes}
            if len(lengths) != 1 or -1 in lengths:
                raise ValueError(
                    f"unbatch: arrays of shapes {' and '.join(map(str, shapes))} do not have the "
                    "same number of rows"
                )
            yield from rows_of(element, lengths.pop())


class Repeat(SourceStep):
    """Repeats the elements several times, or forever."""

    def __init__(self, source: Source, count: int | None) -> None:
        super().__init__(source)
        self.count = count
        if source.length is not None and count is not None:
            self.length = source.length * count

    def endless(self) -> bool:
        """Return whether the source is infinite; repeating an empty one is not."""
        return (self.count is None and self.source.length != 0) or super().endless()

    def elements(self, keep: bool = False) -> Iterator[Any]:
        """Yield the elements, pass after pass."""
        for _ in itertools.count() if self.count is None else range(self.count):
            empty = True
            for element in self.source.elements(keep):
                empty = False
                yield element
            if empty:
                return


class Take(SourceStep):
    """The first elements."""

    def __init__(self, source: Source, count: int) -> None:
        super().__init__(source)
        self.count = count
        if source.length is not None:
            self.length = min(source.length, count)
        elif source.endless():
            self.length = count

    def endless(self) -> bool:
        """Return whether the source is infinite: never."""
        return False

    def elements(self, keep: bool = False) -> Iterator[Any]:
        """Yield the elements."""
        return itertools.islice(self.source.elements(keep), self.count)


class Skip(SourceStep):
    """All elements except the first ones."""

    def __init__(self, source: Source, count: int) -> None:
        super().__init__(source)
        self.skipped = count
        if source.length is not None:
            self.length = max(source.length - count, 0)

    def elements(self, keep: bool = False) -> Iterator[Any]:
        """Yield the elements."""
        return itertools.islice(self.source.elements(keep), self.skipped, None)


class Chosen(Indexed):
    """Some elements of a source with access by index."""

    def __init__(self, source: Indexed, numbers: range) -> None:
        self.source, self.numbers, self.length = source, numbers, len(numbers)
        self.block, self.scattered = source.block, source.scattered

    def parents(self) -> tuple[Source, ...]:
        """Return the sources that this one reads from."""
        return (self.source,)

    def item(self, i: int, keep: bool = False) -> Any:
        """Return one element."""
        return self.source.item(self.numbers[i], keep)

    def rows(self, order: Any, keep: bool = False) -> Iterator[Any]:
        """Yield elements one by one."""
        chosen = np.arange(self.length) if order is None else np.asarray(order)
        return self.source.rows(self.numbers.start + chosen * self.numbers.step, keep)

    def several(self, chosen: Any) -> Any:
        """Return elements as one batch."""
        if isinstance(chosen, slice):
            part = self.numbers[chosen]
            return self.source.several(slice(part.start, part.stop, part.step))
        return self.source.several(self.numbers.start + np.asarray(chosen) * self.numbers.step)


class Every(SourceStep):
    """Every ``step``-th element of a source without access by index."""

    def __init__(self, source: Source, first: int, step: int) -> None:
        super().__init__(source)
        self.first, self.step = first, step
        if source.length is not None:
            self.length = len(range(first, source.length, step))

    def elements(self, keep: bool = False) -> Iterator[Any]:
        """Yield these elements."""
        return itertools.islice(self.source.elements(keep), self.first, None, self.step)


def sharded(source: Source, shards: int, index: int) -> Source:
    """Return every ``shards``-th element of a source, starting with number ``index``."""
    found: Source = Every(source, index, shards)
    if isinstance(source, Indexed):
        found = Chosen(source, range(index, source.length, shards))
    found.shard = shards, index
    return found


class Numbers(Source):
    """Consecutive integers from ``start``, without end."""

    def __init__(self, start: int) -> None:
        self.start = start

    def elements(self, keep: bool = False) -> Iterator[Any]:
        """Yield the integers."""
        return map(np.asarray, itertools.count(self.start))

    def endless(self) -> bool:
        """Return whether the source is infinite: always."""
        return True


class Zip(Source):
    """Tuples or dictionaries of elements of several sources."""

    def __init__(self, sources: tuple[Source, ...], packed: Any) -> None:
        self.sources, self.packed = sources, packed
        lengths = [source.length for source in sources]
        open_ = [s for s, n in zip(sources, lengths) if n is None]
        if len(open_) < len(sources) and all(source.endless() for source in open_):
            self.length = min(n for n in lengths if n is not None)

    def endless(self) -> bool:
        """Return whether all sources are infinite."""
        return all(source.endless() for source in self.sources)

    def parents(self) -> tuple[Source, ...]:
        """Return the sources that this one reads from."""
        return self.sources

    def elements(self, keep: bool = False) -> Iterator[Any]:
        """Yield elements in the structure of the sources."""
        waits = [keep or i > 0 for i in reversed(range(len(self.sources)))]
        for parts in zip(*(s.elements(w) for s, w in zip(self.sources, waits))):
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
        """Return the sources that this one reads from."""
        return self.sources

    def elements(self, keep: bool = False) -> Iterator[Any]:
        """Yield the elements of the first source, then those of the second, and so on."""
        return itertools.chain.from_iterable(source.elements(keep) for source in self.sources)


class FlatMap(SourceStep):
    """One pipeline for each element, one after another."""

    def __init__(self, source: Source, fn: Callable[..., Source]) -> None:
        super().__init__(source)
        self.fn = fn

    def elements(self, keep: bool = False) -> Iterator[Any]:
        """Yield the elements of each pipeline."""
        for element in self.source.elements(True):
            yield from self.fn(element).elements(keep)


class Interleave(SourceStep):
    """Takes elements in turn from the pipelines of several elements."""

    def __init__(self, source: Source, fn: Callable[..., Source], cycle: int, block: int) -> None:
        super().__init__(source)
        self.fn, self.cycle, self.block = fn, cycle, block

    def elements(self, keep: bool = False) -> Iterator[Any]:
        """Yield blocks of elements in turn."""
        waiting = (self.fn(element).elements(True) for element in self.source.elements(True))
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


class Prefetch(SourceStep):
    """Prepares elements in advance in a thread; where no thread can start, one at a time."""

    def __init__(self, source: Source, count: int) -> None:
        super().__init__(source)
        self.count, self.length = count, source.length

    def elements(self, keep: bool = False) -> Iterator[Any]:
        """Yield the elements; raise an exception of the thread at the element that caused it."""
        if not can_start_threads():
            yield from self.source.elements(keep)
            return
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
                for element in self.source.elements(True):
                    if not put((True, element)):
                        return
                put((False, None))
            except BaseException as error:
                put((False, error))

        # of the same context: a cache may decide the orders of shuffles
        run = contextvars.copy_context().run
        thread = threading.Thread(target=run, args=(work,), name="gradtape-prefetch", daemon=True)
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


def positive(what: str, value: Any, least: int = 1) -> int:
    """Return an integer of at least ``least``.

    Raises
    ------
    ValueError
        If the value is not such an integer.
    """
    if not hasattr(value, "__index__") or value < least:
        kind = "positive" if least else "non-negative"
        raise ValueError(f"{what} must be a {kind} integer, got {value!r}")
    return int(value)
