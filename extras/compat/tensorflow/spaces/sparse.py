"""``tf.sparse``: lists of elements, which become dense tensors for computing."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import gradtape

from ..names import adapts
from ..tensors import convert_to_tensor, sizes

__all__ = ["SparseTensor", "dense", "from_dense", "to_dense"]


class SparseTensor(NamedTuple):
    """Elements with indices ``(n, rank)`` and values ``(n,)``; all others are 0."""

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
def to_dense(sp_input: Any, default_value: Any = 0, *options: Any, name: Any = None) -> Any:
    """Return a dense tensor, with ``default_value`` for missing elements."""
    empty = gradtape.full(sp_input.shape, default_value or 0, sp_input.dtype)
    places = tuple(gradtape.unstack(convert_to_tensor(sp_input.indices), -1))
    return empty.at[places].set(sp_input.values)


@adapts("argwhere")
def from_dense(tensor: Any, name: Any = None) -> SparseTensor:
    """Return the nonzero elements as a sparse tensor."""
    x = convert_to_tensor(tensor)
    places = gradtape.argwhere(gradtape.not_equal(x, 0))
    return SparseTensor(places, x[tuple(gradtape.unstack(places, -1))], np.array(x.shape))


def dense(x: Any) -> Any:
    """Return a sparse or dense tensor as a dense one."""
    return to_dense(x) if isinstance(x, SparseTensor) else convert_to_tensor(x)
