"""Reductions and scans that are quicker on NumPy than the portable kernels: bare ufuncs.

On small arrays, NumPy's Python wrappers (``np.sum``, ``np.mean``) take several times as long as the
work. These kernels give the same results, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..ops.common.axes import Axis
from ..ops.reductions import cumulative
from ..ops.reductions.variance import std_kernel
from ..ops.shapes.adjoints import size_over

__all__ = ["KERNELS"]

Array = NDArray[Any]


# NumPy's stubs know neither positional keepdims nor an axis that may be anything
add_reduce: Callable[..., Any] = np.add.reduce
max_reduce: Callable[..., Any] = np.maximum.reduce


def _reduction(ufunc: np.ufunc) -> Callable[..., Any]:
    reduce: Callable[..., Any] = ufunc.reduce

    def kernel(x: Array, *, axis: Axis = None, keepdims: bool = False) -> Any:
        return reduce(x, axis, None, None, keepdims)

    return kernel


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
    total = add_reduce(x, axis, None, None, keepdims)
    return total / dtype.type(_count(x, axis))


def _var(x: Array, *, axis: Axis = None, ddof: float = 0, keepdims: bool = False) -> Any:
    dtype = x.dtype
    if dtype.char == "e":  # NumPy sums float16 in float16 here, and soon overflows
        wide = _var(x.astype(np.float32), axis=axis, ddof=ddof, keepdims=keepdims)
        return wide.astype(dtype)
    if dtype.char not in "fd":
        return np.var(x, axis=axis, ddof=ddof, keepdims=keepdims)
    total = add_reduce(x, axis, None, None, True)
    count = _count(x, axis)
    d = x - total / dtype.type(count)
    d *= d
    return add_reduce(d, axis, None, None, keepdims) / dtype.type(max(count - ddof, 0))


def _std(x: Array, *, axis: Axis = None, ddof: float = 0, keepdims: bool = False) -> Any:
    return std_kernel(np, x, _var, axis=axis, ddof=ddof, keepdims=keepdims)


def _size_over(x: Array, *, axis: Axis = None) -> Array:
    dtype = x.dtype
    if dtype.char not in "fd":
        count: Array = size_over(np, x, axis=axis)
        return count
    return np.array(_count(x, axis), dtype)


# -- scans -----------------------------------------------------------------------------------------


def _scan(name: str) -> Callable[..., Any]:
    portable = cumulative.scan(name)

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
        return cumulative.shift(np, x, axis=axis, fill=fill, reverse=reverse)
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
    "cumprod": _scan("cumprod"),
    "cumsum": _scan("cumsum"),
    "max": _reduction(np.maximum),
    "mean": _mean,
    "min": _reduction(np.minimum),
    "prod": _reduction(np.multiply),
    "shift": _shift,
    "size_over": _size_over,
    "std": _std,
    "sum": _reduction(np.add),
    "var": _var,
}
