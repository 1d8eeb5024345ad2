"""Sources of elements: each yields its elements in every pass, or returns them by index."""

from __future__ import annotations

import csv
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..core.extend import flatten, map_structure, warn_user
from .arrays import arrays_of, gathered, owned, read_only, rows_of, unmasked

__all__ = [
    "ArrayRows",
    "Columns",
    "Indexed",
    "Items",
    "Pass",
    "Source",
    "SourceStep",
    "StoredElements",
    "Stream",
    "length_of",
]

#: The number of bytes of a file to read at a time.
_BLOCK = 2**22


def length_of(source: Any) -> int | None:
    """Return the number of elements of an iterable; None if it is unknown."""
    try:
        return len(source)
    except TypeError:  # no __len__, or one that raises because the length is unknown
        return None


class Pass(Iterator[Any]):
    """The elements of a pass, each of which goes to one of the threads that share the iterator."""

    _gradtape_unrolled = True

    def __init__(
        self,
        elements: Iterator[Any],
        again: Callable[[], Iterator[Any]] | None = None,
        data: Any = None,
    ) -> None:
        self._elements, self._again, self._data = elements, again, data
        self._following: Callable[[], Any] = self._first
        self._lock = threading.RLock()
        self._done, self._begun = 0, None

    def __next__(self) -> Any:
        lock = self._lock
        lock.acquire()  # faster than with
        try:
            found = self._following()
            self._done += 1
            return found
        finally:
            lock.release()

    def _first(self) -> Any:
        """Note the state that this pass depends on, and return its first element."""
        if self._data is not None:
            self._begun = self._data.state_dict()
        self._following = self._elements.__next__
        return self._following()

    def state_dict(self) -> dict[str, Any]:
        """Return the number of elements that were read, and the order of all."""
        begun = self._begun
        if not self._done and self._data is not None:  # the order of the pass that will begin
            begun = self._data.state_dict()
        return {"done": self._done, "data": begun}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go to the place of another pass of the same pipeline; elements before it are read again.

        Parameters
        ----------
        state
            What :meth:`state_dict` returned.
        """
        if self._again is None:
            raise TypeError("this iterator has no state: only those of a Dataset have one")
        with self._lock:
            self.close()
            if state["data"] is not None:
                self._data.load_state_dict(state["data"])
            self._elements, self._following = self._again(), self._first
            self._done = 0
            for _ in range(state["done"]):
                next(self)

    def close(self) -> None:
        """End the pass, and the threads that read ahead."""
        with self._lock:
            getattr(self._elements, "close", list)()


class Source:
    """Something that elements are read from.

    Attributes
    ----------
    length : int or None
        The number of elements; None if unknown or infinite.
    shard : tuple of int, or None
        The number of shards and the index of this one; None if it is not a shard.
    skipped : int
        The number of its parent's elements that it leaves out at the start.
    one_order : bool
        Whether all passes have the same elements in the same order, whatever its parents do.
    """

    length: int | None = None
    shard: tuple[int, int] | None = None
    skipped: int = 0
    one_order: bool = False

    def elements(self, keep: bool = False) -> Iterator[Any]:
        """Yield the elements, starting with the first.

        Parameters
        ----------
        keep
            Whether elements must stay as they are while later ones are read. By default, a
            user's function or object may reuse their memory for the next one.
        """
        raise NotImplementedError

    def parents(self) -> tuple[Source, ...]:
        """Return the sources that this one reads from."""
        return ()

    def endless(self) -> bool:
        """Return whether the source is infinite."""
        return any(source.endless() for source in self.parents())

    def seed_pass(self, numbers: tuple[int, ...]) -> None:
        """Seed the next pass with numbers, if the user gave no seed."""

    def state(self) -> Any:
        """Return the state that the next pass depends on; ``None`` if there is none."""
        return None

    def load(self, state: Any) -> None:
        """Restore a state that :meth:`state` returned."""


class SourceStep(Source):
    """A step that reads from one other source."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def parents(self) -> tuple[Source, ...]:
        """Return the sources that this one reads from."""
        return (self.source,)


class Stream(Source):
    """The elements of an iterable that a function returns."""

    def __init__(self, make: Callable[[], Iterable[Any]], length: int | None = None) -> None:
        self._make, self.length = make, length
        self._last: Callable[[], Any] = _nothing

    def elements(self, keep: bool = False) -> Iterator[Any]:
        """Call the function and yield its elements."""
        elements = iter(self._make())
        again = elements is self._last()
        try:
            self._last = weakref.ref(elements)
        except TypeError:  # of built-in types
            self._last = lambda: elements
        return self._converted(elements, again, keep)

    def _converted(self, elements: Iterator[Any], again: bool, keep: bool) -> Iterator[Any]:
        for element in elements:
            again = False
            if keep:
                box = [element]
                del element  # so that nobody else holds what the user does not
                yield owned(box)
            else:
                yield arrays_of(element)
        if again:
            warn_user(
                "Dataset: this pass has no elements, because it got the iterator of the pass "
                "before, which is exhausted; return a new iterator for each pass, such as that of "
                "a generator function: Dataset.from_generator(function)",
                UserWarning,
            )


def _nothing() -> None:
    """Take the place of a weak reference to an iterator."""


class Indexed(Source):
    """A source with access by index, to one element or to several at once."""

    length: int
    #: See :class:`ArrayRows`.
    block: int = 1
    scattered: bool = False

    def elements(self, keep: bool = False) -> Iterator[Any]:
        """Yield the elements in order."""
        return self.rows(None, keep)

    def rows(self, order: Any, keep: bool = False) -> Iterator[Any]:
        """Yield elements one by one.

        Parameters
        ----------
        order
            An array of their indices; ``None`` for all elements in order.
        keep
            As for :meth:`elements`.
        """
        return (self.item(int(i), keep) for i in (range(self.length) if order is None else order))

    def item(self, i: int, keep: bool = False) -> Any:
        """Return one element."""
        raise NotImplementedError

    def several(self, chosen: Any) -> Any:
        """Return elements as one batch.

        Parameters
        ----------
        chosen
            A slice or an array of indices.
        """
        numbers = range(self.length)[chosen] if isinstance(chosen, slice) else chosen
        return gathered((self.item(int(i)) for i in numbers), len(numbers))[0]


class ArrayRows(Indexed):
    """The rows of arrays in memory, memory maps, or datasets of an HDF5 file.

    Attributes
    ----------
    block : int
        The number of rows to read at a time from a file; 1 for arrays in memory.
    scattered : bool
        Whether a random order of rows takes much longer to read, because the file is compressed.
    """

    def __init__(self, arrays: Any, name: str) -> None:
        leaves = flatten(arrays)
        if not leaves:
            raise ValueError(f"{name}: got no arrays, but {arrays!r}")
        for leaf in leaves:
            unmasked(name, leaf)
            if not np.ndim(leaf) if isinstance(leaf, np.ndarray) else not leaf.shape:
                if leaf.dtype.kind in "OUS":
                    raise TypeError(
                        f"{name}: expected arrays, got {leaf.item()!r:.80}; of words, pass a NumPy "
                        "array; for a generator function, use Dataset.from_generator"
                    )
                raise ValueError(f"{name}: an array of shape () has no rows; give it an axis")
        lengths = {int(leaf.shape[0]) for leaf in leaves}
        if len(lengths) != 1:
            shapes = " and ".join(str(tuple(leaf.shape)) for leaf in leaves)
            raise ValueError(f"{name}: arrays have different lengths: shapes {shapes}")
        self.arrays, self.length = map_structure(read_only, arrays), lengths.pop()
        files = [leaf for leaf in leaves if not isinstance(leaf, np.ndarray)]
        size = sum(int(leaf.nbytes) for leaf in files)
        self.block = max(1, min(self.length, _BLOCK * self.length // max(size, 1))) if files else 1
        packed = any(getattr(leaf, "compression", None) for leaf in files)
        self.scattered = packed and size > 8 * _BLOCK

    def rows(self, order: Any, keep: bool = False) -> Iterator[Any]:
        """Yield rows one by one; read a file in blocks."""
        if self.block == 1:
            yield from super().rows(order)
            return
        count = self.length if order is None else len(order)
        for start in range(0, count, self.block):
            stop = min(start + self.block, count)
            part = self.several(slice(start, stop) if order is None else order[start:stop])
            yield from rows_of(part, stop - start)

    def item(self, i: int, keep: bool = False) -> Any:
        """Return one row of each array."""
        return map_structure(lambda x: np.asarray(x[i]), self.arrays)

    def several(self, chosen: Any) -> Any:
        """Return rows of each array."""
        return map_structure(lambda x: _rows(x, chosen), self.arrays)


def _rows(array: Any, chosen: Any) -> Any:
    if isinstance(chosen, slice) or isinstance(array, np.ndarray):
        return np.asarray(array[chosen])
    # HDF5 takes distinct indices in increasing order
    numbers, places = np.unique(chosen, return_inverse=True)
    if len(numbers) and numbers[-1] - numbers[0] + 1 == len(numbers):
        return np.asarray(array[int(numbers[0]) : int(numbers[-1]) + 1])[places]
    return np.asarray(array[numbers])[places]


class Items(Indexed):
    """Anything with ``__len__`` and ``__getitem__``."""

    def __init__(self, items: Any) -> None:
        self.items, self.length = items, len(items)

    def item(self, i: int, keep: bool = False) -> Any:
        """Return one item."""
        return owned([self.items[i]]) if keep else arrays_of(self.items[i])


class StoredElements(Indexed):
    """Elements that a step keeps, in a list."""

    def __init__(self, held: list[Any]) -> None:
        self.held, self.length = [map_structure(read_only, element) for element in held], len(held)

    def item(self, i: int, keep: bool = False) -> Any:
        """Return one element."""
        return self.held[i]


class Columns(Source):
    """The lines of a CSV file, as dictionaries of numbers."""

    def __init__(
        self,
        path: Any,
        names: Sequence[str] | None,
        dtypes: Mapping[str, Any],
        vocabulary: Mapping[str, Sequence[str] | Mapping[str, int]],
        delimiter: str,
        header: bool,
        columns: Sequence[str] | None,
        missing: float | None,
        encoding: str,
        label: str | None = None,
    ) -> None:
        self.path, self.delimiter, self.header = Path(path), delimiter, header
        # the byte order mark that some programs write is not part of the first name
        self.encoding = "utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding
        if missing is not None and not isinstance(missing, (int, float, np.number)):
            raise ValueError(f"{path}: missing= is one number for empty values, got {missing!r}")
        self.missing = missing
        self.asked = () if label is None else (label,)
        self.names = list(names) if names is not None else None
        if not header and self.names is None:
            raise ValueError(f"{path}: without a header, pass the columns' names=[...]")
        self.dtypes = {name: np.dtype(dtype) for name, dtype in dtypes.items()}
        self.vocabulary = {
            name: _numbers_of(words, f"{path}: the vocabulary of column {name!r}")
            for name, words in vocabulary.items()
        }
        self.columns = columns
        self.told: set[str] = set()

    def elements(self, keep: bool = False) -> Iterator[Any]:
        """Yield a dictionary for each line."""
        try:
            yield from self._lines()
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{self.path}: cannot decode {error.object[error.start : error.end]!r} as "
                f"{error.encoding}; pass the file's encoding=, such as 'latin-1'"
            ) from None

    def _lines(self) -> Iterator[dict[str, Any]]:
        with self.path.open(newline="", encoding=self.encoding) as stream:
            lines = csv.reader(stream, delimiter=self.delimiter, skipinitialspace=True)
            head = next(lines, None) if self.header else []
            if head is None:
                raise ValueError(f"{self.path}: the file is empty, without even a header")
            names = [name.strip() for name in head]
            names = self.names or names or []
            wanted = names if self.columns is None else list(self.columns)
            counts = Counter(names)
            for name in (*wanted, *self.dtypes, *self.vocabulary, *self.asked):
                if counts[name] > 1:
                    raise ValueError(
                        f"{self.path}: {counts[name]} columns are called {name!r}; pass "
                        "names=[...] with a name for each"
                    )
                if name not in counts:
                    raise ValueError(f"{self.path}: no column {name!r}; there are {names}")
            places = [(name, names.index(name)) for name in wanted]
            for line in lines:
                if not line:
                    continue
                if len(line) != len(names):
                    raise ValueError(
                        f"{self.path}, line {lines.line_num}: got {len(line)} values for "
                        f"{len(names)} columns; check the line, and delimiter="
                    )
                yield {name: self._value(name, line[i], lines.line_num) for name, i in places}

    def _value(self, name: str, text: str, line: int) -> Any:
        words = self.vocabulary.get(name)
        if words is not None:
            if text not in words:
                raise ValueError(
                    f"{self.path}, line {line}: {text!r} in column {name!r} is not in the column's "
                    "vocabulary; add it to vocabulary="
                )
            return np.asarray(words[text])
        dtype = self.dtypes.get(name, np.dtype("float32"))
        if not text.strip() and name in self.asked and self.missing is not None:
            raise ValueError(
                f"{self.path}, line {line}: column {name!r} is empty, and missing= replaces no "
                "labels; remove the line, or read the file without label=, filter, and map"
            )
        if not text.strip() and (self.missing is None or dtype.kind not in "f"):
            raise ValueError(
                f"{self.path}, line {line}: column {name!r} is empty; for columns of floats, pass "
                "missing=, the number to use instead, such as 0.0 or nan"
            )
        try:
            text = text if text.strip() else str(self.missing)
            given = int(text) if dtype.kind in "iu" else float(text)
            with np.errstate(over="ignore"):
                found = np.asarray(given, dtype)
            if dtype.kind == "f" and np.isinf(found) and not np.isinf(given):
                raise OverflowError
            if abs(given) > 2**24 and name not in self.dtypes:
                self._report_rounded(name, text.strip(), found, line)
            return found
        except OverflowError:
            raise ValueError(
                f"{self.path}, line {line}: {text} in column {name!r} does not fit into {dtype}; "
                f"pass dtypes={{{name!r}: ...}}"
            ) from None
        except ValueError:
            raise ValueError(
                f"{self.path}, line {line}: {text!r} in column {name!r} is not a number; for "
                f"words, pass vocabulary={{{name!r}: [...]}}"
            ) from None

    def _report_rounded(self, name: str, text: str, found: Any, line: int) -> None:
        """Warn once of each column whose integers, such as times, lose digits."""
        if name in self.told or not text.lstrip("+-").isdecimal() or int(text) == int(found):
            return
        self.told.add(name)
        warn_user(
            f"{self.path}, line {line}: {text} in column {name!r} becomes {found:.0f} in "
            f"{found.dtype}; to keep all digits, pass dtypes={{{name!r}: 'int64'}}",
            UserWarning,
        )


def _numbers_of(words: Any, what: str) -> dict[str, int]:
    """Return the number of each word of a vocabulary.

    Raises
    ------
    ValueError
        If words have no order or come twice, or numbers are not integers.
    """
    if isinstance(words, Mapping):
        numbers = {str(word): number for word, number in words.items()}
        if not all(isinstance(x, (int, np.integer)) and x >= 0 for x in numbers.values()):
            raise ValueError(f"{what} is a dictionary, whose values must be integers from 0")
        return numbers
    if isinstance(words, (str, bytes, set, frozenset)) or not isinstance(words, Iterable):
        # the order of a set of words is another one in each process
        raise ValueError(f"{what} is a list of words in the order of their numbers, got {words!r}")
    listed = [str(word) for word in words]
    twice = [word for word, count in Counter(listed).items() if count > 1]
    if twice:
        raise ValueError(f"{what} has {twice[0]!r} more than once")
    return {word: number for number, word in enumerate(listed)}
