"""``SparseTensor``: the elements of a tensor that are not 0, and where they are."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ..core.extend import Tensor, as_shape, as_tensor, ops, sizes_differ

__all__ = ["SparseTensor"]


class SparseTensor:
    """Elements of a tensor with their indices; all others are 0.

    :meth:`to_dense` returns the tensor, with which functions compute. Gradients reach the values.

    Parameters
    ----------
    indices
        Integers of shape ``(n, rank)``.
    values
        A vector of ``n`` elements.
    dense_shape
        The shape of the tensor.

    Examples
    --------
    >>> x = gt.data.SparseTensor([[0, 1], [1, 0]], [2.0, 3.0], (2, 2))
    >>> (x * 10.0).to_dense().tolist()
    [[0.0, 20.0], [30.0, 0.0]]
    """

    def __init__(self, indices: Any, values: Any, dense_shape: Any) -> None:
        self.indices, self.values = as_tensor(indices), as_tensor(values)
        self.shape = sizes = as_shape(dense_shape, "SparseTensor")
        held = (self.values.shape[0] if self.values.ndim else 1, len(sizes))
        if self.values.ndim != 1 or any(map(sizes_differ, self.indices.shape, held)):
            raise ValueError(
                f"SparseTensor: {held[0]} values of a tensor of shape {sizes} have indices of "
                f"shape {held}, got {self.indices.shape}"
            )

    @property
    def dense_shape(self) -> Any:
        """The shape of the dense tensor, as a tensor."""
        return as_tensor(np.array(self.shape, "int64"))

    @property
    def dtype(self) -> Any:
        """The dtype of the values."""
        return self.values.dtype

    def to_dense(self, default_value: Any = 0) -> Any:
        """Return the tensor, with ``default_value`` for missing elements.

        Raises
        ------
        ValueError
            If an index is negative, or occurs twice.
        """
        if hasattr(self.indices.array, "__array__"):  # not in a trace
            places = np.asarray(self.indices.numpy())
            if np.any(places < 0) or len(np.unique(places, axis=0)) < len(places):
                raise ValueError(
                    f"SparseTensor: indices are not negative, and differ, got {places.tolist()}"
                )
        empty = as_tensor(np.full(self.shape, default_value or 0, self.dtype))
        return empty.at[self._places].set(self.values)

    def max(self, axis: Any = None, keepdims: bool = False) -> Tensor:
        """Return the largest of the given elements along axes; 0 where there are none."""
        least: Any = -np.inf if self.dtype.kind == "f" else np.iinfo(self.dtype).min
        found = ops["max"](self.to_dense(least), axis=axis, keepdims=keepdims)
        return ops["where"](found == least, ops["zeros_like"](found), found)

    @property
    def _places(self) -> tuple[Any, ...]:
        return tuple(self.indices[:, axis] for axis in range(len(self.shape)))

    def _scaled(self, op: str, other: Any) -> Self:
        factor = as_tensor(other) if hasattr(other, "dtype") else other
        if np.ndim(factor):
            whole = ops["broadcast_to"](factor, shape=self.shape)
            factor = whole[self._places]
        return type(self)(self.indices, ops[op](self.values, factor), self.shape)

    def __mul__(self, other: Any) -> Self:
        return self._scaled("multiply", other)

    def __truediv__(self, other: Any) -> Self:
        return self._scaled("divide", other)

    def rows(self) -> list[Any]:
        """Return the values of each index of all axes except the last, as sets."""
        found: list[Any] = [set() for _ in range(int(np.prod(self.shape[:-1])))]
        places = np.asarray(self.indices.numpy())[:, :-1].T
        where = np.ravel_multi_index(tuple(places), self.shape[:-1]) if len(places) else [0]
        for place, value in zip(np.broadcast_to(where, len(self.values)), self.values.tolist()):
            found[place].add(value)
        return found

    @classmethod
    def from_rows(cls, rows: Any, like: Self) -> Self:
        """Return sorted sets as the rows of a sparse tensor, for the axes of another."""
        outer = like.shape[:-1]
        ordered = [sorted(row) for row in rows]
        places = [
            (*np.unravel_index(i, outer), j)
            for i, row in enumerate(ordered)
            for j in range(len(row))
        ]
        width = max(map(len, ordered), default=0)
        indices = np.array(places, "int64").reshape(-1, len(outer) + 1)
        values = np.array([x for row in ordered for x in row], like.dtype)
        return cls(indices, values, (*outer, width))

    def __repr__(self) -> str:
        return (
            f"SparseTensor(indices={self.indices.tolist()}, values={self.values.tolist()}, "
            f"shape={self.shape})"
        )
