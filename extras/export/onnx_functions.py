"""Functions of the array API that ndonnx lacks, or for which ONNX has a single node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import ndonnx as ndx
import numpy as np
import spox.opset.ai.onnx.v21 as onnx

from ..core.extend import known_size
from .onnx_arrays import Array

# dtypes for which runtimes have matrix products and extremes
_NUMBERS = frozenset({"float16", "float32", "float64", "int32", "int64"})


class Functions:
    """The functions of a namespace that do not come from ndonnx."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def take(self, x: Array, indices: Any, *, axis: int | None = None) -> Array:
        if axis is None:
            x, axis = self.reshape(x, (-1,)), 0
        places = self.astype(self.asarray(indices), np.int64)
        return self.of(onnx.gather(x.var, places.var, axis=axis))

    def permute_dims(self, x: Array, axes: Sequence[int]) -> Array:
        """Transpose an array; a transpose of a transpose becomes one node, or none."""
        axes = [axis % x.ndim for axis in axes]
        if x.turned is not None:
            x, before = x.turned
            axes = [before[axis] for axis in axes]
        if axes == sorted(axes):
            return x
        found = self.of(onnx.transpose(x.var, perm=axes))
        found.turned = Array(self, x.inner), axes  # a copy that nobody writes to
        return found

    def matmul(self, x: Any, y: Any) -> Array:
        x, y = self._alike(x, y)
        if x.dtype.name in _NUMBERS and _never_empty(x) and _never_empty(y):
            if x.ndim > 1 and y.ndim > 1:
                return self.of(onnx.matmul(x.var, y.var))
            # onnxruntime ignores the transpose of a matrix that is multiplied by a vector
            row = self.expand_dims(x, axis=0) if x.ndim == 1 else x
            column = self.expand_dims(y, axis=-1) if y.ndim == 1 else y
            flat = (-2,) * (x.ndim == 1) + (-1,) * (y.ndim == 1)
            return self.squeeze(self.of(onnx.matmul(row.var, column.var)), axis=flat)
        return Array(self, ndx.matmul(x.inner, y.inner))  # handles empty arrays

    def max(self, x: Array, *, axis: Any = None, keepdims: bool = False) -> Array:
        return self._extreme(x, onnx.reduce_max, ndx.max, axis, keepdims)

    def min(self, x: Array, *, axis: Any = None, keepdims: bool = False) -> Array:
        return self._extreme(x, onnx.reduce_min, ndx.min, axis, keepdims)

    def _extreme(self, x: Array, node: Any, function: Any, axis: Any, keepdims: bool) -> Array:
        if x.dtype.kind == "b":
            found = self._extreme(self.astype(x, np.int32), node, function, axis, keepdims)
            return self.astype(found, bool)
        if x.dtype.name not in _NUMBERS or not _never_empty(x):
            return Array(self, function(x.inner, axis=axis, keepdims=keepdims))
        if axis == ():
            return x
        axes = None if axis is None else onnx.const(np.atleast_1d(np.asarray(axis, np.int64)))
        found = self.of(node(x.var, axes, keepdims=int(keepdims)))
        if x.dtype.kind != "f":
            return found
        return self.where(self._lost(x, axes, keepdims), np.nan, found)

    def _lost(self, x: Array, axes: Any, keepdims: bool) -> Array:
        """Return where NaN are, which runtimes leave out of extremes."""
        missing = self.astype(self.isnan(x), np.float32)
        return self.of(onnx.reduce_max(missing.var, axes, keepdims=int(keepdims))) > 0

    def argmax(self, x: Array, *, axis: int | None = None, keepdims: bool = False) -> Array:
        return self._position(x, ndx.argmax, axis, keepdims)

    def argmin(self, x: Array, *, axis: int | None = None, keepdims: bool = False) -> Array:
        return self._position(x, ndx.argmin, axis, keepdims)

    def _position(self, x: Array, function: Any, axis: int | None, keepdims: bool) -> Array:
        """Return the position of an extreme: that of the first NaN if there is one, as in NumPy."""
        x = self.astype(x, np.int32) if x.dtype.kind == "b" else x
        found = Array(self, function(x.inner, axis=axis, keepdims=keepdims))
        if x.dtype.kind != "f" or not _never_empty(x):
            return found
        missing = self.astype(self.isnan(x), np.float32)
        axes = None if axis is None else onnx.const(np.asarray([axis], np.int64))
        first = Array(self, ndx.argmax(missing.inner, axis=axis, keepdims=keepdims))
        return self.where(self._lost(x, axes, keepdims), first, found)

    def searchsorted(self, x: Array, values: Array, *, side: str = "left") -> Array:
        """Count the elements before each value; NaN is after all numbers."""
        x, values = self._alike(x[:, None], values[None, :])
        before = self._in_order(x, values) if side == "left" else ~self._in_order(values, x)
        return self.sum(self.astype(before, np.int64), axis=0)

    def _in_order(self, x: Array, y: Array) -> Array:
        return (x < y) | (~self.isnan(x) & self.isnan(y)) if x.dtype.kind == "f" else x < y

    def fmod(self, x: Any, y: Any) -> Array:
        x, y = self._alike(x, y)
        return self.of(onnx.mod(x.var, y.var, fmod=1))

    def floor_divide(self, x: Any, y: Any) -> Array:
        """Return NumPy's quotient: it is not the rounded ``x / y``, which may be rounded up."""
        x, y = self._alike(x, y)
        if x.dtype.kind != "f":
            return Array(self, ndx.floor_divide(x.inner, y.inner))
        rest = self.fmod(x, y)
        exact = (x - rest) / y
        turned = (rest != 0) & ((rest < 0) != (y < 0))
        exact = self.where(turned, exact - 1, exact)
        below = self.floor(exact)
        found = self.where(exact - below > 0.5, below + 1, below)
        found = self.where(exact == 0, self.copysign(self.zeros_like(x), x / y), found)
        return self.where(y == 0, x / y, found)

    def pow(self, x: Any, y: Any) -> Array:
        """Return a power; that of integers by products, as runtimes compute it in ``float64``."""
        x, y = self._alike(x, y)
        if x.dtype.kind not in "iu":
            return Array(self, ndx.pow(x.inner, y.inner))
        # in 64 bits: products wrap around alike in fewer ones
        base, exponent = (self.astype(v, np.int64) for v in self.broadcast_arrays(x, y))

        def step(_: Any, on: Any, found: Any, base: Any, left: Any) -> list[Any]:
            two = onnx.const(np.int64(2))
            odd = onnx.equal(onnx.mod(left, two), onnx.const(np.int64(1)))
            more = onnx.where(odd, onnx.mul(found, base), found)
            return [on, more, onnx.mul(base, base), onnx.div(left, two)]

        try:
            bits = int(y.inner.unwrap_numpy().max(initial=0)).bit_length()
        except ValueError:  # the exponent is not a constant
            bits = 63
        start = [self.ones_like(base).var, base.var, exponent.var]
        found = onnx.loop(
            onnx.const(np.full(1, bits)), onnx.const(np.full(1, True)), start, body=step
        )[0]
        return self.astype(self.of(found), x.dtype)

    def logaddexp(self, x: Any, y: Any) -> Array:
        dtype = np.result_type(self.result_type(x, y), np.float16)
        x, y = (self.asarray(v, dtype=dtype) for v in (x, y))
        apart = self.where(x == y, self.zeros_like(x), x - y)
        return self.maximum(x, y) + self.log1p(self.exp(-self.abs(apart)))

    @property
    def linalg(self) -> _Linalg:
        return _Linalg(self)

    def einsum(self, subscripts: str, *arrays: Array, optimize: Any = None) -> Array:
        dtype = self.result_type(*arrays)
        # in other integers the sums wrap around at the end
        usual = dtype if dtype.name in _NUMBERS or dtype.kind not in "iu" else np.int64
        found = onnx.einsum([self.astype(x, usual).var for x in arrays], equation=subscripts)
        return self.astype(self.of(found), dtype)

    def sum(self, x: Array, **options: Any) -> Array:
        return self._counted(ndx.sum, x, **options)

    def prod(self, x: Array, **options: Any) -> Array:
        return self._counted(ndx.prod, x, **options)

    def cumulative_sum(self, x: Array, **options: Any) -> Array:
        return self._counted(ndx.cumulative_sum, x, **options)

    def mean(self, x: Array, *, axis: Any = None, keepdims: bool = False) -> Array:
        x = self.astype(x, np.float64) if x.dtype.kind in "biu" else x
        return Array(self, ndx.mean(x.inner, axis=axis, keepdims=keepdims))

    def _counted(self, function: Any, x: Array, *, dtype: Any = None, **options: Any) -> Array:
        """Run a function that widens integers as NumPy does; runtimes have it for ``int64``."""
        if dtype is not None:
            return self.astype(self._counted(function, self.astype(x, dtype), **options), dtype)
        if x.dtype.kind not in "biu":
            return Array(self, function(x.inner, **options))
        wide = np.dtype(np.uint64 if x.dtype.kind == "u" else np.int64)
        found = Array(self, function(self.astype(x, np.int64).inner, **options))
        return self.astype(found, wide)

    def cumulative_prod(
        self, x: Array, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
    ) -> Array:
        """Return running products; ndonnx supports them only for positive numbers."""
        if include_initial or axis is None or not known_size(x.shape[axis]):
            raise TypeError("it is a running product over an axis of unknown size")
        if dtype is None and x.dtype.kind in "biu":
            dtype = np.uint64 if x.dtype.kind == "u" else np.int64
        x = x if dtype is None else self.astype(x, dtype)
        x, step = self.moveaxis(x, axis, 0), 1
        while step < x.shape[0]:
            x = self.concat([x[:step], x[step:] * x[:-step]], axis=0)
            step *= 2
        return self.moveaxis(x, 0, axis)

    def signbit(self, x: Array) -> Array:
        return (x < 0) | ((x == 0) & (1 / x < 0)) if x.dtype.kind == "f" else x < 0

    def copysign(self, x: Any, y: Any) -> Array:
        dtype = np.result_type(self.result_type(x, y), np.float16)
        size = self.abs(self.asarray(x, dtype=dtype))
        return self.where(self.signbit(self.asarray(y, dtype=dtype)), -size, size)

    def hypot(self, x: Any, y: Any) -> Array:
        dtype = np.result_type(self.result_type(x, y), np.float16)
        x, y = (self.abs(self.asarray(v, dtype=dtype)) for v in (x, y))
        large, small = self.maximum(x, y), self.minimum(x, y)
        ratio = small / self.where((large > 0) & self.isfinite(large), large, self.ones_like(large))
        found = large * self.sqrt(1 + ratio * ratio)
        return self.where(self.isinf(x) | self.isinf(y), np.inf, found)

    def atan2(self, y: Any, x: Any) -> Array:
        dtype = np.result_type(self.result_type(x, y), np.float16)
        x, y = (self.asarray(v, dtype=dtype) for v in (x, y))
        both = self.isinf(x) & self.isinf(y)
        x, y = (self.where(both, self.copysign(self.ones_like(v), v), v) for v in (x, y))
        none = (x == 0) & (y == 0)
        # divide the smaller by the larger, so that no quotient overflows
        steep = self.abs(y) > self.abs(x)
        top, bottom = self.where(steep, x, y), self.where(steep, y, x)
        angle = self.atan(self.abs(top) / self.where(none, self.ones_like(x), self.abs(bottom)))
        angle = self.where(steep, np.pi / 2 - angle, angle)
        angle = self.where(self.signbit(x), np.pi - angle, angle)
        return self.copysign(angle, y)

    def where(self, condition: Any, x: Any, y: Any) -> Array:
        a, b = self._alike(x, y)
        return Array(self, ndx.where(self.asarray(condition).inner, a.inner, b.inner))

    def bitwise_right_shift(self, x: Any, y: Any) -> Array:
        """Shift the bits directly: ndonnx divides by powers of two, which may overflow."""
        x, y = self._alike(x, y)
        if x.dtype.kind == "u":
            return self._shifted(x, y, "RIGHT")
        flipped = self._shifted(self.where(x < 0, ~x, x), y, "RIGHT")
        return self.where(x < 0, ~flipped, flipped)

    def bitwise_left_shift(self, x: Any, y: Any) -> Array:
        x, y = self._alike(x, y)
        return self._shifted(x, y, "LEFT")

    def _alike(self, *xs: Any) -> list[Array]:
        dtype = self.result_type(*xs)
        return [self.asarray(x, dtype=dtype) for x in xs]

    def _shifted(self, x: Array, y: Array, direction: str) -> Array:
        unsigned = np.dtype(f"uint{8 * x.dtype.itemsize}")
        width = 8 * x.dtype.itemsize
        inside = (y >= 0) & (y < width)
        count = self.astype(self.where(inside, y, self.zeros_like(y)), unsigned)
        found = onnx.bit_shift(self.astype(x, unsigned).var, count.var, direction=direction)
        return self.where(inside, self.astype(self.of(found), x.dtype), self.zeros_like(x))

    def logical_not(self, x: Any) -> Array:
        return Array(self, ndx.logical_not(self._truth(x).inner))

    def logical_and(self, x: Any, y: Any) -> Array:
        return Array(self, ndx.logical_and(self._truth(x).inner, self._truth(y).inner))

    def logical_or(self, x: Any, y: Any) -> Array:
        return Array(self, ndx.logical_or(self._truth(x).inner, self._truth(y).inner))

    def logical_xor(self, x: Any, y: Any) -> Array:
        return Array(self, ndx.logical_xor(self._truth(x).inner, self._truth(y).inner))

    def _truth(self, x: Any) -> Array:
        x = self.asarray(x)
        return x if x.dtype.kind == "b" else x != 0


def _never_empty(x: Array) -> bool:
    """Return whether it is provable that no size is 0."""
    return all((n == 0) is False for n in x.shape)


class _Linalg:
    """The functions of linear algebra that ONNX supports."""

    def __init__(self, xp: Functions) -> None:
        self._xp = xp

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"its kernel needs 'linalg.{name}', which ONNX lacks")

    def matrix_transpose(self, x: Array) -> Array:
        return x.mT

    def diagonal(self, x: Array, *, offset: int = 0) -> Array:
        rows, columns = x.shape[-2:]
        count = max(min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns), 0)
        places = np.arange(count)
        return x[..., places + max(-offset, 0), places + max(offset, 0)]
