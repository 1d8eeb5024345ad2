"""Where the elements of a dataset come from: arrays, functions, files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .sources import Columns, Rows, Stream, arrays_of

__all__ = ["Made"]


class Made:
    """What makes a dataset; the rest of it is in :class:`Dataset`."""

    if TYPE_CHECKING:

        def __init__(self, source: Any) -> None: ...

        def map(self, map_func: Callable[..., Any]) -> Self: ...

    @classmethod
    def from_tensor_slices(cls, tensors: Any) -> Self:
        """Return the rows of arrays.

        Parameters
        ----------
        tensors
            Arrays, memory maps or tensors with one length, in tuples and dictionaries.

        Raises
        ------
        ValueError
            If their lengths differ, or one has no axes.

        Examples
        --------
        >>> data = gt.data.Dataset.from_tensor_slices(([1, 2], [3, 4]))
        >>> [(int(a), int(b)) for a, b in data]
        [(1, 3), (2, 4)]
        """
        return cls(Rows(arrays_of(tensors), "from_tensor_slices"))

    @classmethod
    def from_tensors(cls, tensors: Any) -> Self:
        """Return one element.

        Parameters
        ----------
        tensors
            What the element is.
        """
        held = arrays_of(tensors)
        return cls(Stream(lambda: [held], 1))

    @classmethod
    def from_generator(cls, generator: Callable[[], Iterable[Any]], *args: Any) -> Self:
        """Return what a function yields, which is called at each pass.

        Parameters
        ----------
        generator
            A function that returns an iterable.
        args
            Its arguments.

        Raises
        ------
        TypeError
            If it is no function.

        Examples
        --------
        >>> data = gt.data.Dataset.from_generator(lambda: (i * i for i in range(3)))
        >>> data.to_list(), data.to_list()
        ([0, 1, 4], [0, 1, 4])
        """
        if not callable(generator):
            raise TypeError(f"from_generator: expected a function, got {generator!r}")
        return cls(Stream(lambda: generator(*args)))

    @classmethod
    def range(cls, *args: int) -> Self:
        """Return integers, as Python's ``range``.

        Parameters
        ----------
        args
            As for ``range``.
        """
        return cls(Rows(np.arange(*args, dtype="int64"), "range"))

    @classmethod
    def from_csv(
        cls,
        path: Any,
        label: str | None = None,
        *,
        columns: Sequence[str] | None = None,
        names: Sequence[str] | None = None,
        dtypes: Mapping[str, Any] | None = None,
        vocabulary: Mapping[str, Sequence[str]] | None = None,
        delimiter: str = ",",
        header: bool = True,
        missing: float | None = None,
        encoding: str = "utf-8",
    ) -> Self:
        """Return the lines of a CSV file, read at each pass.

        Parameters
        ----------
        path
            The file.
        label
            The column of labels: elements are then pairs of features and label.
        columns
            Which columns to take, the label included; all by default.
        names
            The columns' names, if the file has no header or others.
        dtypes
            By column, the dtype; ``float32`` by default.
        vocabulary
            By column, the words that may stand in it: each becomes its number.
        delimiter
            What is between values, a comma by default.
        header
            Whether the first line has names.
        missing
            What stands for an empty value in columns of floats; by default that is an error.
        encoding
            How the file's text is encoded.

        Returns
        -------
        Dataset
            Dictionaries by column, or pairs of one and a label.

        Raises
        ------
        ValueError
            If there is no header and no names; at a pass, if a column is missing or a value is no
            number, with the line.
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
        """Return the rows of datasets of an HDF5 file, read as they are needed.

        Parameters
        ----------
        path
            The file; it stays open as long as the dataset is used.
        names
            The datasets' names: one, or several for tuples.

        Raises
        ------
        ValueError
            If a name is missing, or the lengths differ.
        """
        import h5py

        file = h5py.File(path, "r")
        for name in names:
            if name not in file or not isinstance(file[name], h5py.Dataset):
                raise ValueError(f"{path}: no dataset {name!r}; there are {list(file)}")
        if not names:
            raise ValueError(f"{path}: say which of its datasets: {list(file)}")
        arrays = tuple(file[name] for name in names)
        return cls(Rows(arrays[0] if len(arrays) == 1 else arrays, str(path)))
