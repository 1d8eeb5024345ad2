"""Methods of datasets: those that create one, and those that combine several elements."""

from __future__ import annotations

import itertools
import operator
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..core.extend import flatten, map_structure, outline, pack_like
from .arrays import arrays_of, columns_of, copied, lists_stacked, of_one_dtype, owned
from .sources import ArrayRows, Columns, Source, SourceStep, StoredElements, Stream
from .steps import positive, reading, true_of

__all__ = ["CreatingMethods", "GroupingMethods"]


class CreatingMethods:
    """The methods of :class:`Dataset` that create datasets."""

    if TYPE_CHECKING:

        def __init__(self, source: Any) -> None: ...

        def map(self, map_func: Callable[..., Any]) -> Self: ...

    @classmethod
    def from_tensor_slices(cls, tensors: Any) -> Self:
        """Return a dataset of the rows of arrays.

        Parameters
        ----------
        tensors
            Arrays, memory maps or tensors of the same length, in tuples and dictionaries. A list
            is one array, and so is a list of arrays of one shape: its rows are these.

        Raises
        ------
        ValueError
            If the lengths differ, an array has shape ``()``, or a list has arrays of several
            shapes.

        Examples
        --------
        >>> data = gt.data.Dataset.from_tensor_slices(([1, 2], [3, 4]))
        >>> [(int(a), int(b)) for a, b in data]
        [(1, 3), (2, 4)]
        """
        return cls(ArrayRows(lists_stacked("from_tensor_slices", tensors), "from_tensor_slices"))

    @classmethod
    def from_tensors(cls, tensors: Any) -> Self:
        """Return a dataset with a single element.

        Parameters
        ----------
        tensors
            The element, in tuples and dictionaries. A list is one array.
        """
        return cls(StoredElements([map_structure(copied, lists_stacked("from_tensors", tensors))]))

    @classmethod
    def from_generator(cls, generator: Callable[[], Iterable[Any]], *args: Any) -> Self:
        """Return a dataset of the elements that a function yields; each pass calls the function.

        Parameters
        ----------
        generator
            A function that returns an iterable.
        args
            Its arguments.

        Raises
        ------
        TypeError
            If ``generator`` is not callable.

        Examples
        --------
        >>> data = gt.data.Dataset.from_generator(lambda: (i * i for i in range(3)))
        >>> data.to_list(), data.to_list()
        ([0, 1, 4], [0, 1, 4])
        """
        if not callable(generator):
            raise TypeError(
                f"from_generator: expected a function that returns an iterable, got {generator!r}"
            )

        def elements() -> Iterable[Any]:
            found = generator(*args)
            if not (hasattr(found, "__iter__") or hasattr(found, "__getitem__")):
                raise TypeError(
                    f"from_generator: the function returned {found!r:.80} instead of an iterable; "
                    "write yield in it, or return a list"
                )
            return found

        return cls(Stream(elements))

    @classmethod
    def range(cls, *args: int) -> Self:
        """Return a dataset of integers, like Python's ``range``.

        Parameters
        ----------
        args
            The arguments of ``range``.

        Raises
        ------
        TypeError
            If one of them is not an integer.
        """
        try:
            found = range(*map(operator.index, args))
        except TypeError as error:
            raise TypeError(
                f"Dataset.range takes one to three integers, got {', '.join(map(repr, args))}; for "
                "floats, use Dataset.from_tensor_slices(numpy.arange(start, stop, step))"
            ) from error
        return cls(
            ArrayRows(np.arange(found.start, found.stop, found.step, dtype="int64"), "range")
        )

    @classmethod
    def from_csv(
        cls,
        path: Any,
        label: str | None = None,
        *,
        columns: Sequence[str] | None = None,
        names: Sequence[str] | None = None,
        dtypes: Mapping[str, Any] | None = None,
        vocabulary: Mapping[str, Sequence[str] | Mapping[str, int]] | None = None,
        delimiter: str = ",",
        header: bool = True,
        missing: float | None = None,
        encoding: str = "utf-8",
    ) -> Self:
        """Return a dataset of the lines of a CSV file, which each pass reads.

        Parameters
        ----------
        path
            The file.
        label
            The column of labels. If given, elements are pairs of features and a label.
        columns
            The columns to read, including the label. All by default.
        names
            The columns' names, if the file has no header or you want other names.
        dtypes
            Maps columns to dtypes. ``float32`` by default.
        vocabulary
            Maps a column to its possible words, in a list. Each word is converted to its index. Or
            to a dictionary with the number of each word.
        delimiter
            The character between values, a comma by default.
        header
            Whether the first line has the columns' names. True by default.
        missing
            The number to use for empty values in columns of floats. By default, they raise an
            error. Empty labels always raise an error.
        encoding
            The encoding of the file. ``"utf-8"`` by default.

        Returns
        -------
        Dataset
            Dictionaries with a value for each column, or pairs of such a dictionary and a label.

        Raises
        ------
        ValueError
            If there is neither a header nor ``names``, a vocabulary has no order or a word twice,
            or ``missing`` is not a number. During a pass, if a column is missing or a
            value is not a number; the message has the line number.
        """
        given = (names, dtypes or {}, vocabulary or {}, delimiter, header, columns, missing)
        data = cls(Columns(path, *given, encoding, label))
        if label is None:
            return data

        def without_label(row: Any) -> Any:
            if label not in row:
                raise ValueError(f"{path}: no column {label!r}; there are {list(row)}")
            return {name: x for name, x in row.items() if name != label}, row[label]

        return data.map(without_label)

    @classmethod
    def from_hdf5(cls, path: Any, *names: str) -> Self:
        """Return a dataset of the rows of datasets in an HDF5 file, read as they are needed.

        Parameters
        ----------
        path
            The file. It stays open while this dataset exists.
        names
            The name of a dataset in the file. With several names, elements are tuples.

        Raises
        ------
        ValueError
            If the file has no dataset of a name, or the lengths differ.
        """
        import h5py

        try:
            file = h5py.File(path, "r")
        except FileNotFoundError:
            raise FileNotFoundError(f"{path}: there is no such file") from None
        except OSError as error:
            raise OSError(f"{path}: this is not an HDF5 file that can be read ({error})") from None
        for name in names:
            if name not in file or not isinstance(file[name], h5py.Dataset):
                raise ValueError(f"{path}: no dataset {name!r}; there are {list(file)}")
        if not names:
            raise ValueError(f"{path}: name at least one of its datasets: {list(file)}")
        arrays = tuple(file[name] for name in names)
        return cls(ArrayRows(arrays[0] if len(arrays) == 1 else arrays, str(path)))


# -- steps that combine several elements ----------------------------------------------------------


class _Padded(SourceStep):
    """Stacks elements of different sizes into batches and pads the smaller ones."""

    def __init__(self, source: Source, size: int, shapes: Any, values: Any, drop: bool) -> None:
        super().__init__(source)
        self.size, self.shapes, self.values, self.drop = size, shapes, values, drop
        if source.length is not None:
            self.length = source.length // size if drop else -(-source.length // size)

    def elements(self, keep: bool = False) -> Iterator[Any]:
        """Yield batches."""
        elements = self.source.elements(True)
        while part := list(itertools.islice(elements, self.size)):
            if len(part) < self.size and self.drop:
                return
            columns = columns_of("padded_batch", part)
            shapes = _for_each("padded_shapes", self.shapes, part[0])
            values = _for_each("padding_values", self.values, part[0])
            padded = [_filled(*given) for given in zip(columns, shapes, values, strict=True)]
            batch = pack_like(part[0], padded)
            del part, columns, padded  # which would take memory while the next ones are read
            yield batch


def _for_each(what: str, given: Any, element: Any) -> list[Any]:
    """Return a setting for each array of an element, given once or in the element's structure."""
    if not isinstance(element, (tuple, dict)) or not isinstance(given, (tuple, list, dict)):
        return [given] * len(flatten(element))
    keys = list(element) if isinstance(element, dict) else list(range(len(element)))
    if isinstance(given, dict) != isinstance(element, dict) or (
        set(given) != set(element) if isinstance(given, dict) else len(given) != len(element)
    ):
        raise ValueError(
            f"padded_batch: {what}={given!r:.80} does not have the structure of the elements, "
            f"which is {outline(element)}, where * is an array"
        )
    found = {key: _for_each(what, given[key], element[key]) for key in keys}
    order = flatten({key: i for i, key in enumerate(keys)})  # as flatten() sorts the arrays
    return [setting for i in order for setting in found[keys[i]]]


def _filled(arrays: Any, shape: Any, value: Any) -> Any:
    arrays = of_one_dtype("padded_batch", arrays)
    if len({x.ndim for x in arrays}) > 1:
        shapes = ", ".join(sorted({str(x.shape) for x in arrays})[:4])
        raise ValueError(f"padded_batch: arrays have different numbers of axes: shapes {shapes}")
    largest = np.max([x.shape for x in arrays], 0) if arrays[0].ndim else ()
    if shape is not None:
        wanted = [m if n in (None, -1) else n for n, m in zip(shape, largest)]
        if len(wanted) != len(largest) or any(n < m for n, m in zip(wanted, largest)):
            raise ValueError(
                f"padded_batch: arrays of shapes up to {tuple(map(int, largest))} do not fit into "
                f"the padded shape {tuple(shape)}; use None for an axis's largest size in the batch"
            )
        largest = wanted
    dtype = arrays[0].dtype.newbyteorder("=")
    fill = np.zeros((), dtype) if value is None else np.asarray(value)
    if fill.dtype.kind == dtype.kind and dtype.kind in "US":
        dtype = np.result_type(dtype, fill.dtype)
    if value is not None and not _fits(fill, dtype):
        raise ValueError(
            f"padded_batch: the padding value {value!r} does not fit into {dtype}; give another, "
            "or convert the elements with map()"
        )
    found = np.full((len(arrays), *largest), fill.astype(dtype), dtype)
    full = found.shape[1:]
    for i, x in enumerate(arrays):
        place: Any = i if x.shape == full else (i, *map(slice, x.shape))
        found[place] = x
    return found


def _fits(value: Any, dtype: Any) -> bool:
    """Return whether an array of a dtype can hold a number, to the precision of floats."""
    if value.dtype.kind == "c" and dtype.kind != "c":
        return False
    with np.errstate(all="ignore"):
        cast = value.astype(dtype)
    if dtype.kind in "fc" and np.isfinite(value):
        return bool(np.isfinite(cast))
    return bool(np.array_equal(cast, value, equal_nan=value.dtype.kind in "fc"))


class _Windows(SourceStep):
    """Groups consecutive elements into datasets."""

    def __init__(
        self, source: Source, size: int, shift: int, stride: int, drop: bool, make: Any
    ) -> None:
        super().__init__(source)
        self.size, self.shift, self.stride, self.drop, self.make = size, shift, stride, drop, make

    def elements(self, keep: bool = False) -> Iterator[Any]:
        """Yield a dataset for each window."""
        elements, held = self.source.elements(True), deque[Any]()
        span = (self.size - 1) * self.stride + 1
        while True:
            held.extend(itertools.islice(elements, span - len(held)))
            found = list(held)[:: self.stride]
            if not found or (len(found) < self.size and self.drop):
                return
            columns = columns_of("window", found)
            yield pack_like(
                found[0], [self.make(StoredElements(list(column))) for column in columns]
            )
            for _ in range(self.shift):
                if held:
                    held.popleft()
                elif next(elements, None) is None:
                    return


class _While(SourceStep):
    """The elements before the first one for which a function returns False."""

    def __init__(self, source: Source, fn: Callable[..., Any]) -> None:
        super().__init__(source)
        self.fn = fn

    def endless(self) -> bool:
        """Return whether the source is known to be infinite: never."""
        return False

    def elements(self, keep: bool = False) -> Iterator[Any]:
        """Yield the elements."""
        for element in self.source.elements(keep):
            if not true_of("take_while", self.fn, element):
                return
            yield element


class _Scan(SourceStep):
    """Updates a state with each element and yields outputs."""

    def __init__(self, source: Source, first: Any, fn: Callable[[Any, Any], Any]) -> None:
        super().__init__(source)
        self.first, self.fn, self.length = first, fn, source.length

    def elements(self, keep: bool = False) -> Iterator[Any]:
        """Yield the function's outputs."""
        state = self.first
        for element in self.source.elements(True):  # the state may hold it
            found = self.fn(state, element)
            if not isinstance(found, (tuple, list)) or len(found) != 2:
                raise TypeError(
                    f"scan: the function returned {found!r:.80}; return the next state and an "
                    "output, in a tuple"
                )
            state, output = found
            box = [output]
            del found, output
            yield owned(box) if keep else arrays_of(box[0])


class GroupingMethods:
    """The methods of :class:`Dataset` that combine several elements."""

    if TYPE_CHECKING:
        _source: Source

        def __init__(self, source: Any) -> None: ...

    def padded_batch(
        self,
        batch_size: int,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
    ) -> Self:
        """Stack elements of different sizes into batches, and pad the smaller ones.

        Parameters
        ----------
        batch_size
            The number of elements per batch.
        padded_shapes
            A shape for each array of an element. ``None`` or -1 in it means the largest size in the
            batch, which is the default for each axis.
        padding_values
            The value to pad with, one for all arrays or one for each. 0 by default.
        drop_remainder
            Whether to leave out a smaller last batch. False by default.

        Raises
        ------
        ValueError
            At a pass, if an array does not fit into its shape.

        Examples
        --------
        >>> data = gt.data.Dataset([np.ones(1), np.ones(3)])
        >>> [batch.tolist() for batch in data.padded_batch(2)]
        [[[1.0, 0.0, 0.0], [1.0, 1.0, 1.0]]]
        """
        size = positive("batch_size", batch_size)
        drop = bool(drop_remainder)
        return type(self)(_Padded(self._source, size, padded_shapes, padding_values, drop))

    def window(
        self, size: int, shift: int | None = None, stride: int = 1, drop_remainder: bool = False
    ) -> Self:
        """Group consecutive elements into windows, each of which is a dataset.

        Parameters
        ----------
        size
            The number of elements in a window.
        shift
            The distance between the starts of windows. ``size`` by default.
        stride
            The distance between the elements of a window. 1 by default.
        drop_remainder
            Whether to leave out smaller last windows. False by default.

        Examples
        --------
        >>> data = gt.data.Dataset.range(4).window(3, shift=1, drop_remainder=True)
        >>> data.flat_map(lambda window: window.batch(3)).to_list()
        [array([0, 1, 2]), array([1, 2, 3])]
        """
        size, stride = positive("size", size), positive("stride", stride)
        step = size if shift is None else positive("shift", shift)
        return type(self)(
            _Windows(self._source, size, step, stride, bool(drop_remainder), type(self))
        )

    def take_while(self, predicate: Callable[..., Any]) -> Self:
        """Keep the elements before the first one for which a function returns False.

        Parameters
        ----------
        predicate
            A function of an element. The parts of a tuple are separate arguments.

        Examples
        --------
        >>> gt.data.Dataset.range(5).take_while(lambda x: x < 2).to_list()
        [0, 1]
        """
        return type(self)(_While(self._source, reading(self, predicate)))

    def scan(self, initial_state: Any, scan_func: Callable[[Any, Any], Any]) -> Self:
        """Update a state with each element, and yield the function's outputs.

        Parameters
        ----------
        initial_state
            The first state.
        scan_func
            A function of a state and an element, which returns the next state and an output.

        Examples
        --------
        >>> gt.data.Dataset.range(4).scan(0, lambda s, x: (s + x, s + x)).to_list()
        [0, 1, 3, 6]
        """
        return type(self)(_Scan(self._source, initial_state, reading(self, scan_func)))

    def apply(self, transformation_func: Callable[[Any], Any]) -> Any:
        """Apply a function to the dataset and return its result.

        Parameters
        ----------
        transformation_func
            A function of a dataset.

        Examples
        --------
        >>> gt.data.Dataset.range(4).apply(lambda data: data.skip(2)).to_list()
        [2, 3]
        """
        return transformation_func(self)
