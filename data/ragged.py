"""``RaggedTensor``: rows of different lengths, as one tensor of values and where rows begin."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import numpy as np

from ..core.extend import NUMPY, Tensor, as_tensor, ops

__all__ = ["RaggedTensor"]


class RaggedTensor:
    """Rows of different lengths: row ``i`` is ``values[row_splits[i]:row_splits[i + 1]]``.

    The values of several levels of rows are a ragged tensor again. Gradients reach the values.
    Operators take numbers, tensors of one element, and ragged tensors with rows of the same
    lengths. Other functions take :attr:`flat_values` or :meth:`to_tensor`.

    Parameters
    ----------
    values
        A tensor of the elements of all rows, or a ragged tensor of inner rows.
    row_splits
        Integers that do not fall, from 0 to the number of values: where each row begins, and where
        the last one ends.

    Raises
    ------
    ValueError
        If the splits do not divide the values.

    Examples
    --------
    >>> x = gt.data.RaggedTensor.from_lists([[1.0, 2.0], [], [3.0]])
    >>> x.row_lengths().tolist(), x.to_tensor().tolist()
    ([2, 0, 1], [[1.0, 2.0], [0.0, 0.0], [3.0, 0.0]])
    """

    def __init__(self, values: Any, row_splits: Any) -> None:
        self.values = values if isinstance(values, (RaggedTensor, Tensor)) else as_tensor(values)
        splits = np.asarray(row_splits)
        kind = np.int32 if splits.dtype == np.int32 else np.int64
        count = len(self.values)
        if splits.ndim != 1 or not len(splits) or splits[0] != 0 or splits[-1] != count:
            raise ValueError(
                f"RaggedTensor: row_splits begin with 0 and end with {count}, the number of "
                f"values, got {splits.tolist()}"
            )
        if np.any(np.diff(splits) < 0):
            raise ValueError(f"RaggedTensor: row_splits fall: {splits.tolist()}")
        self._splits = splits.astype(kind)

    # -- construction ------------------------------------------------------------------------------

    @classmethod
    def from_row_splits(cls, values: Any, row_splits: Any) -> Self:
        """Return rows that begin and end at ``row_splits``."""
        return cls(values, row_splits)

    @classmethod
    def from_row_lengths(cls, values: Any, row_lengths: Any) -> Self:
        """Return rows of these lengths."""
        lengths = np.asarray(row_lengths)
        return cls(values, np.concatenate([np.zeros(1, lengths.dtype), np.cumsum(lengths)]))

    @classmethod
    def from_row_starts(cls, values: Any, row_starts: Any) -> Self:
        """Return rows that begin at these places."""
        held = values if isinstance(values, RaggedTensor) else as_tensor(values)
        return cls(held, [*np.asarray(row_starts).tolist(), len(held)])

    @classmethod
    def from_row_limits(cls, values: Any, row_limits: Any) -> Self:
        """Return rows that end at these places."""
        return cls(values, [0, *np.asarray(row_limits).tolist()])

    @classmethod
    def from_value_rowids(cls, values: Any, value_rowids: Any, nrows: int | None = None) -> Self:
        """Return rows from the number of the row of each value; the numbers do not fall."""
        rows = np.asarray(value_rowids, "int64")
        if np.any(np.diff(rows) < 0):
            raise ValueError(f"from_value_rowids: the numbers of rows fall: {rows.tolist()}")
        least = int(rows[-1]) + 1 if len(rows) else 0
        count = least if nrows is None else int(nrows)
        if count < least or (least and rows[0] < 0):
            raise ValueError(f"from_value_rowids: {rows.tolist()} are not all rows of {count}")
        return cls.from_row_lengths(values, NUMPY.bincount(rows, minlength=count))

    @classmethod
    def from_tensor(cls, tensor: Any, lengths: Any = None, padding: Any = None) -> Self:
        """Return the rows of a tensor, as far as ``lengths``, or without ``padding`` at the end."""
        if lengths is not None and padding is not None:
            raise ValueError("RaggedTensor.from_tensor: pass lengths or padding, got both")
        x = as_tensor(tensor)
        size = x.shape[1]
        if padding is not None:
            kept = np.asarray(x.numpy()) != np.asarray(padding)
            kept = kept.reshape(*kept.shape[:2], -1).any(-1)
            last = np.where(kept, np.arange(1, size + 1), 0)
            lengths = last.max(1, initial=0)
        counts = np.full(len(x), size) if lengths is None else np.asarray(lengths, "int64")
        mask = np.arange(size) < counts[:, None]
        flat = ops["reshape"](x, shape=(-1, *x.shape[2:]))
        return cls.from_row_lengths(_picked(flat, np.flatnonzero(mask)), np.minimum(counts, size))

    @classmethod
    def from_lists(
        cls,
        lists: Sequence[Any],
        convert: Callable[[Any], Any] = as_tensor,
        rank: int | None = None,
    ) -> Any:
        """Return nested lists of different lengths; ``convert`` makes the tensor of their values.

        ``rank`` is the number of levels of rows: by default, all levels of lists but one.
        """
        depth = _depth(lists) - 1 if rank is None else rank
        if depth < 1:
            return convert(lists)
        flat = next((row for row in lists if not np.iterable(row)), None)
        if flat is not None:
            raise ValueError(f"RaggedTensor: {flat!r} is not in as many lists as other values")
        inner = [item for row in lists for item in row]
        made = cls.from_lists(inner, convert, depth - 1) if depth > 1 else convert(inner)
        return cls.from_row_lengths(made, np.array([len(row) for row in lists], "int64"))

    # -- structure ---------------------------------------------------------------------------------

    @property
    def row_splits(self) -> Tensor:
        """Where each row begins, and where the last one ends."""
        return as_tensor(self._splits)

    @property
    def flat_values(self) -> Any:
        """The tensor of the innermost values."""
        inner = self.values
        return inner.flat_values if isinstance(inner, RaggedTensor) else inner

    @property
    def nested_row_splits(self) -> tuple[Tensor, ...]:
        """The row splits of each level, from the outermost."""
        inner = self.values
        rest = inner.nested_row_splits if isinstance(inner, RaggedTensor) else ()
        return (self.row_splits, *rest)

    @property
    def ragged_rank(self) -> int:
        """The number of levels of rows."""
        return len(self.nested_row_splits)

    @property
    def dtype(self) -> Any:
        """The dtype of the values."""
        return self.flat_values.dtype

    @property
    def shape(self) -> tuple[int | None, ...]:
        """The shape, with None for rows of different lengths."""
        return (len(self), None, *self.values.shape[1:])

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def __len__(self) -> int:
        return len(self._splits) - 1

    def nrows(self) -> Tensor:
        """Return the number of rows."""
        return as_tensor(self._splits.dtype.type(len(self)))

    def row_lengths(self, axis: int = 1) -> Any:
        """Return the lengths of the rows along an axis."""
        if axis == 1:
            return as_tensor(np.diff(self._splits))
        if axis < 1 or not isinstance(self.values, RaggedTensor):
            raise ValueError(f"row_lengths: axis {axis} is not ragged")
        return type(self)(self.values.row_lengths(axis - 1), self._splits)

    def row_starts(self) -> Tensor:
        """Return where each row begins."""
        return as_tensor(self._splits[:-1])

    def row_limits(self) -> Tensor:
        """Return where each row ends."""
        return as_tensor(self._splits[1:])

    def value_rowids(self) -> Tensor:
        """Return the number of the row of each value."""
        return as_tensor(
            NUMPY.repeat(np.arange(len(self), dtype=self._splits.dtype), self._lengths)
        )

    @property
    def _lengths(self) -> Any:
        return np.diff(self._splits)

    def bounding_shape(self) -> Tensor:
        """Return the shape of :meth:`to_tensor`."""
        inner = self.values
        rest = inner.bounding_shape().tolist() if isinstance(inner, RaggedTensor) else inner.shape
        return as_tensor(np.array([len(self), max(self._lengths, default=0), *rest[1:]], "int64"))

    # -- values ------------------------------------------------------------------------------------

    def with_values(self, values: Any) -> Self:
        """Return rows of the same lengths with other values."""
        return type(self)(values, self._splits)

    def with_flat_values(self, values: Any) -> Self:
        """Return rows of the same lengths, on all levels, with other innermost values."""
        inner = self.values
        own = inner.with_flat_values(values) if isinstance(inner, RaggedTensor) else values
        return self.with_values(own)

    def to_tensor(self, default_value: Any = None, shape: Any = None) -> Any:
        """Return a tensor of rows with equal lengths, padded with ``default_value``, 0 by default.

        ``shape`` holds sizes to pad or truncate to, with None for those of :meth:`bounding_shape`.
        """
        wanted = [*(shape or ()), *[None] * self.ndim]
        inner = self.values
        if isinstance(inner, RaggedTensor):
            rest = inner.bounding_shape().tolist()[1:] if wanted[2] is None else wanted[2:]
            inner = inner.to_tensor(default_value, [None, *rest[: inner.ndim - 1]])
        width = max(self._lengths, default=0) if wanted[1] is None else wanted[1]
        count = len(self) if wanted[0] is None else wanted[0]
        places = self._splits[:-1, None] + np.arange(width)
        real = np.arange(width) < self._lengths[:, None]
        places, real = (x[:count] for x in (np.where(real, places, len(inner)), real))
        missing = ((0, count - len(places)), (0, 0))
        places = np.pad(places, missing, constant_values=len(inner))
        usual = b"" if inner.dtype.kind == "O" else 0
        filler = np.full((1, *inner.shape[1:]), usual if default_value is None else default_value)
        if inner.dtype.kind == "O":
            return Tensor(np.concatenate([np.asarray(inner), filler.astype(object)])[places])
        filled = ops["concatenate"](inner, as_tensor(filler.astype(inner.dtype)), axis=0)
        return _picked(filled, places)

    @classmethod
    def masked(cls, data: Any, mask: Any) -> Any:
        """Return the elements of rows for which a mask is true, in as many rows.

        A vector and a mask of one axis give a tensor.
        """
        chosen = mask if isinstance(mask, RaggedTensor) else np.asarray(mask, bool)
        if not isinstance(chosen, RaggedTensor) and chosen.ndim == 1:
            return _picked(
                as_tensor(data) if not hasattr(data, "shape") else data, chosen.nonzero()[0]
            )
        rows = [cls.masked(row, kept) for row, kept in zip(data, chosen, strict=True)]
        return cls.stacked(rows)

    @classmethod
    def stacked(cls, rows: Sequence[Any]) -> Self:
        """Return tensors, or ragged tensors, of different lengths as rows."""
        return cls.from_row_lengths(cls.joined(rows), np.array([len(row) for row in rows], "int64"))

    @classmethod
    def joined(cls, parts: Sequence[Any], axis: int = 0) -> Any:
        """Return ragged tensors, or tensors, joined along axis 0, or row by row along axis 1."""
        ragged = [part for part in parts if isinstance(part, RaggedTensor)]
        if not ragged:
            if any(part.dtype.kind == "O" for part in parts):
                return Tensor(np.concatenate([np.asarray(part) for part in parts]))
            return ops["concatenate"](*parts, axis=axis)
        rows = [x if isinstance(x, RaggedTensor) else cls.from_tensor(x) for x in parts]
        if axis == 0:
            lengths = np.concatenate([part._lengths for part in rows])
            return cls.from_row_lengths(cls.joined([part.values for part in rows]), lengths)
        if axis != 1 or len({len(part) for part in rows}) != 1:
            raise ValueError("RaggedTensor: join along axis 0, or as many rows along axis 1")
        return ragged[0].stacked([cls.joined(same) for same in zip(*rows)])

    def __array__(self, *args: Any, **options: Any) -> Any:
        """Raise: rows of different lengths are not an array."""
        raise TypeError(
            "a RaggedTensor is neither an array nor a tensor: use to_tensor(), flat_values or "
            "numpy(), which returns rows"
        )

    def to_list(self) -> list[Any]:
        """Return nested lists."""
        inner = self.values
        whole = inner.to_list() if isinstance(inner, RaggedTensor) else inner.numpy().tolist()
        return [whole[start:end] for start, end in zip(self._splits, self._splits[1:])]

    def numpy(self) -> Any:
        """Return an array of arrays; rows of equal lengths are one array."""
        rows = [row.numpy() for row in self]
        if len({row.shape for row in rows}) < 2:
            return np.array(rows)
        found = np.empty(len(rows), object)
        found[:] = rows
        return found

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        """Return a row by its number, rows by a slice, and with more indices parts of them."""
        first, *rest = index if isinstance(index, tuple) else (index,)
        if isinstance(first, slice):
            chosen = np.arange(len(self))[first]
            places = [np.arange(self._splits[i], self._splits[i + 1]) for i in chosen]
            inner = _picked(self.values, np.concatenate([np.zeros(0, "int64"), *places]))
            found: Any = self.from_row_lengths(inner, self._lengths[chosen])
            if not rest or not len(found):
                return found
            if isinstance(rest[0], slice):
                return self.stacked([row[tuple(rest)] for row in found])
            return ops["stack"](*[row[tuple(rest)] for row in found], axis=0)
        i = operator.index(first)
        if not -len(self) <= i < len(self):
            raise IndexError(f"row {i} of a ragged tensor of {len(self)} rows")
        start, end = self._splits[i % len(self)], self._splits[i % len(self) + 1]
        row = _picked(self.values, np.arange(start, end))
        return row[tuple(rest)] if rest else row

    def __repr__(self) -> str:
        return f"<RaggedTensor {self.to_list()}>"

    # -- arithmetic --------------------------------------------------------------------------------

    def map_values(self, function: Callable[..., Any], *others: Any) -> Self:
        """Apply an elementwise function to the innermost values, and to those of ``others``."""
        given = []
        for x in others:
            if isinstance(x, RaggedTensor):
                same = zip(self.nested_row_splits, x.nested_row_splits)
                if x.ragged_rank != self.ragged_rank or not all(map(_are_equal, same)):
                    raise ValueError("RaggedTensor: the rows have different lengths")
                x = x.flat_values
            elif np.ndim(x) and np.size(x) != 1:
                raise ValueError(
                    "RaggedTensor: operators take a number or rows of the same lengths; use "
                    "flat_values or to_tensor()"
                )
            given.append(x)
        return self.with_flat_values(function(self.flat_values, *given))

    def reduced(self, function: Callable[..., Any], axis: int = 1) -> Any:
        """Return what a function of a tensor returns for each row, stacked."""
        if axis != 1:
            raise ValueError(f"RaggedTensor: rows are reduced along axis 1, got {axis!r}")
        return ops["stack"](*[function(row) for row in self], axis=0)


def _are_equal(pair: Any) -> bool:
    first, second = pair
    return np.array_equal(np.asarray(first), np.asarray(second))


def _depth(lists: Any) -> int:
    if not isinstance(lists, (list, tuple)):
        return np.ndim(lists) if hasattr(lists, "ndim") else 0
    return 1 + max(map(_depth, lists), default=0)


def _picked(values: Any, places: Any) -> Any:
    """Return the values at places along the first axis."""
    if isinstance(values, RaggedTensor):
        return values.stacked([values[int(i)] for i in places]) if len(places) else values[:0]
    if values.dtype.kind == "O":
        return Tensor(np.asarray(values)[places])
    return ops["take"](values, as_tensor(places.astype("int64")), axis=0)


def _add_operators() -> None:
    compared = ("lt", "le", "gt", "ge", "eq", "ne")
    for name in (*"add sub mul truediv floordiv mod pow".split(), *compared):
        function = getattr(operator, name)
        setattr(RaggedTensor, f"__{name}__", _binary(function))
        if name not in compared:
            setattr(RaggedTensor, f"__r{name}__", _binary(lambda x, y, of=function: of(y, x)))
    for name, unary in (("neg", operator.neg), ("abs", abs)):
        setattr(RaggedTensor, f"__{name}__", _unary(unary))


def _binary(function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any, other: Any) -> Any:
        return NotImplemented if other is None else self.map_values(function, other)

    return method


def _unary(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self: self.map_values(function)


_add_operators()
