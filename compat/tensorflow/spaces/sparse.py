"""``tf.sparse``: tensors by their elements, which become dense ones to be computed with."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import gradtape

from ..names import adapts
from ..tensors import convert_to_tensor, sizes

__all__ = (
    "SparseTensor add expand_dims eye from_dense reduce_max reduce_sum reorder reshape "
    "sparse_dense_matmul to_dense transpose"
).split()


class SparseTensor(NamedTuple):
    """Elements with their indices ``(n, rank)`` and values ``(n,)``; the others are 0."""

    indices: Any
    values: Any
    dense_shape: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the dense tensor."""
        return sizes(self.dense_shape, "SparseTensor")

    @property
    def dtype(self) -> Any:
        """The dtype of the values."""
        return convert_to_tensor(self.values).dtype


@adapts("at")
def to_dense(
    sp_input: Any, default_value: Any = None, validate_indices: bool = True, name: Any = None
) -> Any:
    """Return the dense tensor, with ``default_value`` (0) where there is no element."""
    values = convert_to_tensor(sp_input.values)
    empty = gradtape.full(
        sp_input.shape, 0 if default_value is None else default_value, values.dtype
    )
    places = tuple(gradtape.unstack(convert_to_tensor(sp_input.indices), -1))
    return empty.at[places].set(values)


@adapts("argwhere")
def from_dense(tensor: Any, name: Any = None) -> SparseTensor:
    """Return the elements that are not 0."""
    x = convert_to_tensor(tensor)
    places = gradtape.argwhere(gradtape.not_equal(x, 0))
    return SparseTensor(places, x[tuple(gradtape.unstack(places, -1))], np.array(x.shape))


def _dense(x: Any) -> Any:
    return to_dense(x) if isinstance(x, SparseTensor) else convert_to_tensor(x)


@adapts("matmul")
def sparse_dense_matmul(
    sp_a: Any, b: Any, adjoint_a: bool = False, adjoint_b: bool = False, name: Any = None
) -> Any:
    """Return the product of two matrices, of which one or both are sparse: a dense one."""
    from ..linalg import matmul

    return matmul(_dense(sp_a), _dense(b), adjoint_a=adjoint_a, adjoint_b=adjoint_b)


def _rows(function: str) -> Any:
    def reduced(sp_input: Any, axis: Any = None, keepdims: bool = False, name: Any = None) -> Any:
        return getattr(gradtape, function)(_dense(sp_input), axis, bool(keepdims))

    reduced.__name__ = reduced.__qualname__ = f"reduce_{function}"
    reduced.__doc__ = f"Return the ``{function}`` of the dense tensor: a dense one."
    return adapts(function)(reduced)


reduce_sum, reduce_max = _rows("sum"), _rows("max")


def add(a: Any, b: Any, threshold: float = 0) -> Any:
    """Return the sum: sparse of two sparse tensors, else dense."""
    found = _dense(a) + _dense(b)
    both = isinstance(a, SparseTensor) and isinstance(b, SparseTensor)
    return from_dense(found) if both else found


def reorder(sp_input: Any, name: Any = None) -> SparseTensor:
    """Return the elements in the order of their indices."""
    return from_dense(to_dense(sp_input))


def reshape(sp_input: Any, shape: Any, name: Any = None) -> SparseTensor:
    """Return the elements in another shape."""
    return from_dense(gradtape.reshape(to_dense(sp_input), sizes(shape, "reshape")))


def transpose(sp_input: Any, perm: Any = None, name: Any = None) -> SparseTensor:
    """Return the elements with the axes in another order."""
    return from_dense(gradtape.transpose(to_dense(sp_input), perm))


def expand_dims(sp_input: Any, axis: int = -1, name: Any = None) -> SparseTensor:
    """Return the elements with an axis of size 1 more."""
    return from_dense(gradtape.expand_dims(to_dense(sp_input), axis))


def eye(
    num_rows: int, num_columns: int | None = None, dtype: Any = "float32", name: Any = None
) -> SparseTensor:
    """Return an identity matrix."""
    return from_dense(gradtape.eye(num_rows, num_columns, dtype=dtype))
