"""The methods that create datasets, from arrays, functions and files."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..core.extend import map_structure
from .arrays import copied, lists_stacked
from .sources import Columns, Held, Rows, Stream

__all__ = ["Made"]


class Made:
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
        return cls(Rows(lists_stacked("from_tensor_slices", tensors), "from_tensor_slices"))

    @classmethod
    def from_tensors(cls, tensors: Any) -> Self:
        """Return a dataset with a single element.

        Parameters
        ----------
        tensors
            The element, in tuples and dictionaries. A list is one array.
        """
        return cls(Held([map_structure(copied, lists_stacked("from_tensors", tensors))]))

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
        return cls(Rows(np.arange(found.start, found.stop, found.step, dtype="int64"), "range"))

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
            error.
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
        data = cls(
            Columns(
                path,
                names,
                dtypes or {},
                vocabulary or {},
                delimiter,
                header,
                columns,
                missing,
                encoding,
                label,
            )
        )
        if label is None:
            return data

        def parted(row: Any) -> Any:
            if label not in row:
                raise ValueError(f"{path}: no column {label!r}; there are {list(row)}")
            return {name: x for name, x in row.items() if name != label}, row[label]

        return data.map(parted)

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
        return cls(Rows(arrays[0] if len(arrays) == 1 else arrays, str(path)))
