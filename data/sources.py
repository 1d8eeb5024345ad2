"""Where elements come from: each source yields them anew at each pass, or gives them by number."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..core.extend import Tensor, Variable, as_tensor, flatten, map_structure, to_numpy

__all__ = ["Columns", "Indexed", "Items", "Rows", "Source", "Stream", "arrays_of", "length_of"]

#: How many bytes of a file are read at a time.
_BLOCK = 2**22


def arrays_of(value: Any) -> Any:
    """Return nested containers with arrays of NumPy in place of tensors, arrays and numbers.

    A list of numbers, or of lists of them, is one array; numbers of Python have the dtypes that
    tensors of them have.
    """
    if isinstance(value, (tuple, dict)) or (isinstance(value, list) and not _is_array(value)):
        return _each(value, arrays_of)
    if isinstance(value, np.ndarray):
        return value
    if type(value) in (float, complex, list):  # and not numbers of NumPy, which are both
        value = as_tensor(value)
    if isinstance(value, (Tensor, Variable)):
        return np.asarray(to_numpy(value.array))
    found = np.asarray(value)
    if found.dtype.kind == "O" and found.ndim == 2:  # a data frame of several dtypes
        found = np.asarray(to_numpy(as_tensor(value).array))
    return found


def _each(value: Any, function: Callable[[Any], Any]) -> Any:
    if isinstance(value, dict):
        return {key: function(part) for key, part in value.items()}
    parts = [function(part) for part in value]
    if isinstance(value, list):
        return parts
    return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)


def _is_array(value: list[Any]) -> bool:
    """Return whether a list has numbers alone, in any depth of lists."""
    return all(
        _is_array(x) if isinstance(x, list) else isinstance(x, (int, float, complex, np.generic))
        for x in value
    )


def length_of(source: Any) -> int | None:
    """Return how many elements an iterable has, if it tells."""
    try:
        return len(source)
    except TypeError:  # also of one that has __len__, and does not know
        return None


def read_only(array: Any) -> Any:
    """Return a view of an array that a function cannot write to; another library's as it is."""
    if not isinstance(array, np.ndarray):
        return array
    view = array.view()
    view.flags.writeable = False
    return view


class Source:
    """Something that is gone through.

    Attributes
    ----------
    length : int or None
        How many elements there are, if that is known.
    shard : tuple of int, or None
        Of how many shards it is one, and which.
    """

    length: int | None = None
    shard: tuple[int, int] | None = None

    def elements(self) -> Iterator[Any]:
        """Yield the elements, from the first on."""
        raise NotImplementedError

    def parents(self) -> tuple[Source, ...]:
        """Return what this takes its elements from."""
        return ()

    def endless(self) -> bool:
        """Return whether there is always another element."""
        return any(source.endless() for source in self.parents())

    def seed_pass(self, numbers: tuple[int, ...]) -> None:
        """Set what the next pass depends on, if nobody has said it: numbers for a seed."""

    def state(self) -> Any:
        """Return what a pass depends on beside the data; ``None`` if on nothing."""
        return None

    def load(self, state: Any) -> None:
        """Set what a pass depends on."""


class Stream(Source):
    """What a function yields."""

    def __init__(self, make: Callable[[], Iterable[Any]], length: int | None = None) -> None:
        self._make, self.length = make, length

    def elements(self) -> Iterator[Any]:
        """Yield what the function gives."""
        return (arrays_of(x) for x in self._make())


class Indexed(Source):
    """A source that gives any of its elements by number, and several of them at once."""

    length: int
    #: See :class:`Rows`.
    block: int = 1
    scattered: bool = False

    def elements(self) -> Iterator[Any]:
        """Yield the elements in order."""
        return self.rows(None)

    def rows(self, order: Any) -> Iterator[Any]:
        """Yield elements one by one.

        Parameters
        ----------
        order
            An array of their numbers; ``None`` for all.
        """
        return (self.item(int(i)) for i in (range(self.length) if order is None else order))

    def item(self, i: int) -> Any:
        """Return one element."""
        raise NotImplementedError

    def several(self, chosen: Any) -> Any:
        """Return elements as one batch.

        Parameters
        ----------
        chosen
            A slice, or an array of numbers.
        """
        numbers = range(self.length)[chosen] if isinstance(chosen, slice) else chosen
        return stacked([self.item(int(i)) for i in numbers])


def stacked(elements: Sequence[Any]) -> Any:
    """Return elements as one batch: each leaf's arrays in one.

    Raises
    ------
    ValueError
        If their shapes differ.
    """
    first = elements[0]
    leaves = [flatten(element) for element in elements]
    try:
        columns = iter([np.stack(column) for column in zip(*leaves, strict=True)])
    except ValueError as error:
        shapes = sorted({str(tuple(np.shape(x) for x in part)) for part in leaves})
        raise ValueError(
            f"batch: elements of different shapes do not make one array: {', '.join(shapes[:4])}; "
            "make them alike with map(), or give batch size 1"
        ) from error
    return map_structure(lambda _: next(columns), first)


class Rows(Indexed):
    """The rows of arrays: in memory, memory maps, or datasets of an HDF5 file.

    Attributes
    ----------
    block : int
        How many rows are read at a time where reading one takes long; else 1.
    scattered : bool
        Whether rows in a random order take much longer than in their own: the file is compressed.
    """

    def __init__(self, arrays: Any, name: str) -> None:
        leaves = flatten(arrays)
        for leaf in leaves:
            if not np.ndim(leaf) if isinstance(leaf, np.ndarray) else not leaf.shape:
                raise ValueError(f"{name}: an array without axes has no rows")
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

    def rows(self, order: Any) -> Iterator[Any]:
        """Yield rows one by one, read in blocks from a file."""
        if self.block == 1:
            yield from super().rows(order)
            return
        count = self.length if order is None else len(order)
        for start in range(0, count, self.block):
            stop = min(start + self.block, count)
            part = self.several(slice(start, stop) if order is None else order[start:stop])
            yield from rows_of(part, stop - start)

    def item(self, i: int) -> Any:
        """Return one row of each array."""
        return map_structure(lambda x: np.asarray(x[i]), self.arrays)

    def several(self, chosen: Any) -> Any:
        """Return rows of each array."""
        return map_structure(lambda x: _rows(x, chosen), self.arrays)


def rows_of(batch: Any, count: int) -> Iterator[Any]:
    """Yield the rows of a batch, copied: who keeps a row is not to keep the batch."""
    for i in range(count):
        yield map_structure(partial(_row_copied, i=i), batch)


def _row_copied(array: Any, i: int) -> Any:
    return np.array(array[i])


def _rows(array: Any, chosen: Any) -> Any:
    if isinstance(chosen, slice) or isinstance(array, np.ndarray):
        return np.asarray(array[chosen])
    # HDF5 takes numbers in increasing order, each once
    numbers, places = np.unique(chosen, return_inverse=True)
    if len(numbers) and numbers[-1] - numbers[0] + 1 == len(numbers):
        return np.asarray(array[int(numbers[0]) : int(numbers[-1]) + 1])[places]
    return np.asarray(array[numbers])[places]


class Items(Indexed):
    """Anything with ``__len__`` and ``__getitem__``."""

    def __init__(self, items: Any) -> None:
        self.items, self.length = items, len(items)

    def item(self, i: int) -> Any:
        """Return one item."""
        return arrays_of(self.items[i])


class Columns(Source):
    """The lines of a CSV file, as dictionaries of numbers."""

    def __init__(
        self,
        path: Any,
        names: Sequence[str] | None,
        dtypes: Mapping[str, Any],
        vocabulary: Mapping[str, Sequence[str]],
        delimiter: str,
        header: bool,
        columns: Sequence[str] | None,
        missing: float | None,
        encoding: str,
    ) -> None:
        self.path, self.delimiter, self.header = Path(path), delimiter, header
        # a mark that some programs put before the text is no part of the first name
        self.encoding = "utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding
        self.missing = missing
        self.names = list(names) if names is not None else None
        if not header and self.names is None:
            raise ValueError(f"{path}: without a header, give the columns' names=[...]")
        self.dtypes = {name: np.dtype(dtype) for name, dtype in dtypes.items()}
        self.vocabulary = {
            name: {word: i for i, word in enumerate(words)} for name, words in vocabulary.items()
        }
        self.columns = columns

    def elements(self) -> Iterator[Any]:
        """Yield a dictionary for each line."""
        try:
            yield from self._lines()
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{self.path}: {error.object[error.start : error.end]!r} is no text in "
                f"{error.encoding}; give its encoding=, such as 'latin-1'"
            ) from None

    def _lines(self) -> Iterator[dict[str, Any]]:
        with self.path.open(newline="", encoding=self.encoding) as stream:
            lines = csv.reader(stream, delimiter=self.delimiter, skipinitialspace=True)
            names = [name.strip() for name in next(lines, [])] if self.header else self.names
            names = self.names or names or []
            wanted = names if self.columns is None else list(self.columns)
            for name in (*wanted, *self.dtypes, *self.vocabulary):
                if name not in names:
                    raise ValueError(f"{self.path}: no column {name!r}; there are {names}")
            places = [(name, names.index(name)) for name in wanted]
            for line in lines:
                if not line:
                    continue
                if len(line) != len(names):
                    raise ValueError(
                        f"{self.path}, line {lines.line_num}: {len(line)} values for "
                        f"{len(names)} columns"
                    )
                yield {name: self._value(name, line[i], lines.line_num) for name, i in places}

    def _value(self, name: str, text: str, line: int) -> Any:
        words = self.vocabulary.get(name)
        if words is not None:
            if text not in words:
                raise ValueError(
                    f"{self.path}, line {line}: {text!r} in column {name!r} is not in its "
                    "vocabulary"
                )
            return np.asarray(words[text])
        dtype = self.dtypes.get(name, np.dtype("float32"))
        if not text.strip() and (self.missing is None or dtype.kind not in "f"):
            raise ValueError(
                f"{self.path}, line {line}: column {name!r} is empty; give missing=, the number "
                "that stands for it in columns of floats, such as 0.0 or nan"
            )
        try:
            text = text if text.strip() else str(self.missing)
            return np.asarray(int(text) if dtype.kind in "iu" else float(text), dtype)
        except ValueError:
            raise ValueError(
                f"{self.path}, line {line}: {text!r} in column {name!r} is no number; for words, "
                f"give vocabulary={{{name!r}: [...]}}"
            ) from None
