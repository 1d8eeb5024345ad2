"""Functions that take shapes, in which sizes may be unknown, for arrays that build ONNX."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from math import prod
from typing import Any

import ndonnx as ndx
import numpy as np
import spox.opset.ai.onnx.v21 as onnx

from ..core.extend import Open, broadcast_shapes, known_size, same_size
from .onnx_arrays import Array


class Shapes:
    """The functions of a namespace that take a shape."""

    asarray: Any
    astype: Any
    arange: Any
    expand_dims: Any
    of: Any
    sizes: Any

    def reshape(self, x: Array, shape: Any, *, copy: Any = None) -> Array:
        """Return an array of another shape; use -1 for a single unknown size if possible."""
        shape = _without_guess(x.shape, _sizes(shape))
        target = shape
        if not all(map(known_size, shape)):
            free = [axis for axis, n in enumerate(shape) if not known_size(n)]
            if len(free) == 1 and 0 not in shape and same_size(prod(x.shape), prod(shape)):
                target = tuple([-1 if axis == free[0] else n for axis, n in enumerate(shape)])
            else:
                target = self.sizes.vector(shape)
        found = Array(self, ndx.reshape(x.inner, target))
        self.sizes.tell(found.inner, [None if type(n) is int and n < 0 else n for n in shape])
        return found

    def broadcast_to(self, x: Any, shape: Any) -> Array:
        x, shape = self.asarray(x), _sizes(shape)
        known = all(map(known_size, shape))
        x = _emptied(x, shape)
        found = ndx.broadcast_to(x.inner, shape if known else self.sizes.vector(shape))
        self.sizes.tell(found, shape)
        return Array(self, found)

    def padded(self, x: Array, before: Sequence[Any], after: Sequence[Any]) -> Array:
        """Return an array padded with zeros; a negative number cuts instead."""
        if x.dtype.name in ("int16", "uint16"):  # for which runtimes have no padding
            wide = self.padded(self.astype(x, np.int32), before, after)
            return self.astype(wide, x.dtype)
        pads = self.sizes.vector((*before, *after)).unwrap_spox()
        found = self.of(onnx.pad(x.var, pads, onnx.const(0, x.dtype)))
        shape = [a + n + b for n, a, b in zip(x.shape, before, after, strict=True)]
        self.sizes.tell(found.inner, shape)
        return found

    def broadcast_arrays(self, *xs: Any) -> list[Array]:
        arrays = [self.asarray(x) for x in xs]
        shape = broadcast_shapes(*[x.shape for x in arrays])
        return [self.broadcast_to(x, shape) for x in arrays]

    def full(self, shape: Any, value: Any, *, dtype: Any = None, device: Any = None) -> Array:
        return self.broadcast_to(self.asarray(value, dtype=dtype), shape)

    def zeros(self, shape: Any, *, dtype: Any = np.float64, device: Any = None) -> Array:
        return self.full(shape, 0, dtype=dtype)

    def ones(self, shape: Any, *, dtype: Any = np.float64, device: Any = None) -> Array:
        return self.full(shape, 1, dtype=dtype)

    empty = zeros

    def full_like(self, x: Array, value: Any, *, dtype: Any = None, device: Any = None) -> Array:
        return self.full(x.shape, value, dtype=x.dtype if dtype is None else dtype)

    def zeros_like(self, x: Array, *, dtype: Any = None, device: Any = None) -> Array:
        return self.full_like(x, 0, dtype=dtype)

    def ones_like(self, x: Array, *, dtype: Any = None, device: Any = None) -> Array:
        return self.full_like(x, 1, dtype=dtype)

    empty_like = zeros_like

    def eye(
        self,
        rows: Any,
        columns: Any = None,
        *,
        k: int = 0,
        dtype: Any = np.float64,
        device: Any = None,
    ) -> Array:
        columns = rows if columns is None else columns
        if known_size(rows) and known_size(columns):
            return self.asarray(np.eye(int(rows), int(columns), k, dtype=dtype))
        down, right = self.arange(rows), self.arange(columns)
        return self.astype(self.expand_dims(down, axis=1) + k == right, dtype)


def _sizes(shape: Any) -> tuple[Any, ...]:
    """Return a shape of integers and unknown sizes."""
    given = shape if isinstance(shape, (tuple, list)) else (shape,)
    return tuple([n if isinstance(n, Open) else operator.index(n) for n in given])


def _emptied(x: Array, shape: Sequence[Any]) -> Array:
    """Return an empty array if the result of broadcasting will be empty.

    Runtimes wrongly fold an Expand of one element to an empty array.
    """
    for axis, n in enumerate(shape[len(shape) - x.ndim :]):
        if type(n) is int and n == 0 and x.shape[axis] == 1:
            x = x[(*[slice(None)] * axis, slice(0, 0), ...)]
    return x


def _without_guess(old: Sequence[Any], new: Sequence[Any]) -> Any:
    """Return a shape with -1 replaced by an expression, if some sizes are unknown."""
    if not any(type(n) is int and n < 0 for n in new):
        return new
    rest = prod([n for n in new if not (type(n) is int and n == -1)])
    total = prod(old)
    if known_size(total) and known_size(rest):
        return new
    quotient = total // rest if not same_size(rest, total) else 1
    return tuple([quotient if type(n) is int and n == -1 else n for n in new])
