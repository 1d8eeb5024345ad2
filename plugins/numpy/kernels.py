"""Kernels that are quicker on NumPy than the portable ones: bare ufuncs and strides.

On small arrays, NumPy's Python wrappers (``np.sum``, ``np.mean``, ``np.broadcast_to``) take several
times as long as the work. These kernels give the same results, bit for bit.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..ops.common.axes import reduced_axes
from ..ops.common.kernels import cast_to
from ..ops.reductions import scans
from ..ops.shapes.like import size_over

__all__ = ["KERNELS"]

Array = NDArray[Any]
Axis = int | tuple[int, ...] | None


def _reduction(ufunc: np.ufunc) -> Callable[..., Any]:
    reduce: Callable[..., Any] = ufunc.reduce

    def kernel(x: Array, *, axis: Axis = None, keepdims: bool = False) -> Any:
        return reduce(x, axis, None, None, keepdims)

    return kernel


# NumPy's stubs know neither positional keepdims nor an axis that may be anything
_add: Callable[..., Any] = np.add.reduce


def _count(x: Array, axis: Axis) -> int:
    if axis is None:
        return x.size
    shape = x.shape
    try:
        return shape[axis] if isinstance(axis, int) else prod([shape[i] for i in axis])
    except IndexError:  # NumPy reduces an array without axes over an axis 0 as well
        raise np.exceptions.AxisError(axis if isinstance(axis, int) else 0, x.ndim) from None


def _mean(x: Array, *, axis: Axis = None, keepdims: bool = False) -> Any:
    dtype = x.dtype
    if dtype.char not in "fdFD":  # NumPy sums the others in a wider type
        return np.mean(x, axis=axis, keepdims=keepdims)
    total = _add(x, axis, None, None, keepdims)
    return total / dtype.type(_count(x, axis))


def _var(x: Array, *, axis: Axis = None, ddof: float = 0, keepdims: bool = False) -> Any:
    dtype = x.dtype
    if dtype.char == "e":  # NumPy sums float16 in float16 here, and soon overflows
        wide = _var(x.astype(np.float32), axis=axis, ddof=ddof, keepdims=keepdims)
        return wide.astype(dtype)
    if dtype.char not in "fd":
        return np.var(x, axis=axis, ddof=ddof, keepdims=keepdims)
    total = _add(x, axis, None, None, True)
    count = _count(x, axis)
    d = x - total / dtype.type(count)
    d *= d
    return _add(d, axis, None, None, keepdims) / dtype.type(max(count - ddof, 0))


def _std(x: Array, *, axis: Axis = None, ddof: float = 0, keepdims: bool = False) -> Any:
    return np.sqrt(_var(x, axis=axis, ddof=ddof, keepdims=keepdims))


def _size_over(x: Array, *, axis: Axis = None) -> Array:
    dtype = x.dtype
    if dtype.char not in "fd":
        count: Array = size_over(np, x, axis=axis)
        return count
    return np.array(_count(x, axis), dtype)


def _zeros_like(x: Array) -> Array:
    return np.zeros(x.shape, x.dtype)


def _ones_like(x: Array) -> Array:
    result: Array = np.empty(x.shape, x.dtype)
    result.fill(1)
    return result


def _reshape_like(x: Array, like: Array) -> Array:
    return x.reshape(like.shape)


def _repeated(x: Array, shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    """Return a read-only view of contiguous ``x``, repeated along the axes of stride 0."""
    view: Array = np.ndarray(shape, x.dtype, x, 0, strides)
    view.flags.writeable = False
    return view


def _unreduce_like(x: Array, like: Array, *, axis: Axis = None, keepdims: bool = False) -> Array:
    shape = like.shape
    if x.dtype is not like.dtype:
        x = cast_to(np, x, like.dtype)
    if x.size == 1 and like.size:
        return _repeated(x, shape, (0,) * len(shape))
    if axis is None or 0 in shape or not x.flags.c_contiguous:
        if axis is not None and not keepdims:
            lost = reduced_axes(axis, len(shape), "unreduce_like")
            x = x.reshape([1 if i in lost else n for i, n in enumerate(shape)])
        return np.broadcast_to(x, shape)
    rank = len(shape)
    strides, step = [0] * rank, x.dtype.itemsize
    lost = (axis % rank,) if type(axis) is int else reduced_axes(axis, rank, "unreduce_like")
    for i in range(rank - 1, -1, -1):
        if i not in lost:
            strides[i] = step
            step *= shape[i]
    return _repeated(x, shape, tuple(strides))


def _unbroadcast_like(x: Array, like: Array) -> Array:
    shape = like.shape
    if x.shape != shape:
        extra = x.ndim - len(shape)
        if shape == x.shape[extra:]:  # by far the commonest: a bias, a scalar
            x = _add(x, 0 if extra == 1 else tuple(range(extra)), x.dtype)
        else:
            axes = tuple(
                i for i, n in enumerate(x.shape) if i < extra or (n != 1 and shape[i - extra] == 1)
            )
            x = _add(x, axes, x.dtype).reshape(shape)
    return x if x.dtype is like.dtype else cast_to(np, x, like.dtype)


def _scan(name: str) -> Callable[..., Any]:
    portable = scans.scan(name)

    def kernel(x: Array, *, axis: Axis, reverse: bool = False) -> Any:
        if type(axis) is not int or not -x.ndim <= axis < x.ndim:
            return portable(np, x, axis=axis, reverse=reverse)
        if not reverse:
            return getattr(x, name)(axis)
        back = _along(x, axis, slice(None, None, -1))
        return getattr(x[back], name)(axis)[back]

    return kernel


def _shift(x: Array, *, axis: Axis, fill: float, reverse: bool = False) -> Array:
    if type(axis) is not int or not x.size:
        return scans.shift(np, x, axis=axis, fill=fill, reverse=reverse)
    result: Array = np.empty(x.shape, x.dtype)
    edge, source, target = slice(None, 1), slice(None, -1), slice(1, None)
    if reverse:
        edge, source, target = slice(-1, None), target, source
    result[_along(x, axis, target)] = x[_along(x, axis, source)]
    result[_along(x, axis, edge)] = fill
    return result


def _along(x: Array, axis: int, part: slice) -> tuple[slice, ...]:
    """Return the index that takes ``part`` of an axis, and all of the others."""
    return (slice(None),) * (axis % x.ndim) + (part,)


#: Kernels by op.
KERNELS: dict[str, Callable[..., Any]] = {
    "arccos": np.arccos,
    "arccosh": np.arccosh,
    "arcsin": np.arcsin,
    "arcsinh": np.arcsinh,
    "arctan": np.arctan,
    "arctan2": np.arctan2,
    "arctanh": np.arctanh,
    "cumprod": _scan("cumprod"),
    "cumsum": _scan("cumsum"),
    "exp2": np.exp2,
    "max": _reduction(np.maximum),
    "mean": _mean,
    "min": _reduction(np.minimum),
    "ones_like": _ones_like,
    "power": operator.pow,
    "prod": _reduction(np.multiply),
    "reshape_like": _reshape_like,
    "shift": _shift,
    "size_over": _size_over,
    "std": _std,
    "sum": _reduction(np.add),
    "unbroadcast_like": _unbroadcast_like,
    "unreduce_like": _unreduce_like,
    "var": _var,
    "zeros_like": _zeros_like,
}
