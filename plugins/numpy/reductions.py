"""Reductions and scans that are faster on NumPy than the portable kernels: bare ufuncs.

On small arrays, NumPy's Python wrappers (``np.sum``, ``np.mean``) take several times as long as the
work. These kernels give the same results, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt, prod
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..ops.common.axes import Axis
from ..ops.reductions import cumulative
from ..ops.reductions.variance import std_kernel
from ..ops.shapes.adjoints import size_over
from ..summing import sum_columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[Any]"

#: From this number of elements, it pays to compute the products of whole lines first.
_MANY = 1024
#: A recurrence goes step by step if it is this short, or has this many parallel lines.
_SHORT, _WIDE = 64, 512


# NumPy's stubs do not know positional keepdims, or an axis of any type
add_reduce: Callable[..., Any] = np.add.reduce
max_reduce: Callable[..., Any] = np.maximum.reduce
min_reduce: Callable[..., Any] = np.minimum.reduce
multiply_reduce: Callable[..., Any] = np.multiply.reduce
#: Squares below this have lost digits.
SMALLEST_SQUARE = {c: float(np.finfo(c).smallest_normal / np.finfo(c).eps) for c in "fd"}


def _reduction(ufunc: np.ufunc) -> Callable[..., Any]:
    reduce: Callable[..., Any] = ufunc.reduce

    def kernel(x: Array, *, axis: Axis = None, keepdims: bool = False) -> Any:
        return reduce(x, axis, None, None, keepdims)

    return kernel


def _sum(x: Array, *, axis: Axis = None, keepdims: bool = False) -> Any:
    if x.dtype.char == "e":  # along most axes NumPy sums it in float16, which counts up to 2048
        return add_reduce(x, axis, np.float32, None, keepdims).astype(np.float16)
    return sum_columns(x, axis, None, None, keepdims)


def _prod(x: Array, *, axis: Axis = None, keepdims: bool = False) -> Any:
    if x.dtype.char == "e":
        return multiply_reduce(x, axis, np.float32, None, keepdims).astype(np.float16)
    return multiply_reduce(x, axis, None, None, keepdims)


def _count(x: Array, axis: Axis) -> int:
    if axis is None:
        return x.size
    shape = x.shape
    try:
        return shape[axis] if isinstance(axis, int) else prod([shape[i] for i in axis])
    except IndexError:  # NumPy also reduces an array without axes over axis 0
        raise np.exceptions.AxisError(axis if isinstance(axis, int) else 0, x.ndim) from None


def _mean(x: Array, *, axis: Axis = None, keepdims: bool = False) -> Any:
    dtype = x.dtype
    if dtype.char not in "fdFD":  # NumPy sums the others in a wider dtype
        return np.mean(x, axis=axis, keepdims=keepdims)
    total = add_reduce(x, axis, None, None, keepdims)
    return total / dtype.type(_count(x, axis))


def _var(x: Array, *, axis: Axis = None, ddof: float = 0, keepdims: bool = False) -> Any:
    dtype = x.dtype
    if dtype.char == "e":  # NumPy sums float16 in float16 here, and overflows soon
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
    smallest = SMALLEST_SQUARE.get(x.dtype.char)
    if smallest is not None and x.size:
        with np.errstate(over="ignore"):
            squared = _var(x, axis=axis, ddof=ddof, keepdims=keepdims)
        if type(squared) is not np.ndarray:
            least = largest = squared
        else:
            least, largest = min_reduce(squared, None), max_reduce(squared, None)
        if smallest <= least and largest < np.inf:
            return np.sqrt(squared)
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
        # NumPy runs through float16 in float16, which counts up to 2048
        if type(axis) is not int or not -x.ndim <= axis < x.ndim or x.dtype.char == "e":
            return portable(np, x, axis=axis, reverse=reverse)
        if not reverse:
            return getattr(x, name)(axis)
        back = _along(x, axis, slice(None, None, -1))
        return getattr(x[back], name)(axis)[back]

    return kernel


_cumprod = _scan("cumprod")


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


def _product_of_others(x: Array, *, axis: Axis) -> Array:
    if x.dtype.char not in "fdFD" or x.size < _MANY:
        found: Array = _cumprod(_shift(x, axis=axis, fill=1), axis=axis)
        found *= _cumprod(_shift(x, axis=axis, fill=1, reverse=True), axis=axis, reverse=True)
        return found
    lines, back = cumulative.lines_of(np, x, axis, "prod")
    tiny = np.finfo(x.dtype).tiny
    with np.errstate(all="ignore"):
        whole = np.multiply.reduce(lines, -1, keepdims=True)
        size = np.abs(whole[..., 0])
        # a line with a zero, or whose product is out of range, cannot be divided
        divides = (tiny < size) & (size < 1 / tiny)
        others = np.asarray(whole / lines)
    if not divides.all():
        others[~divides] = cumulative.product_of_others(np, lines[~divides], axis=-1)
    result: Array = back(others)
    return result


def _recurrence(a: Array, b: Array, *, axis: Axis, reverse: bool = False) -> Array:
    """Solve the recurrence in blocks: within all blocks at once, then from block to block."""
    # with few elements, a few rounds over all of them take less time than many steps
    few = b.ndim > 0 and b.size < 4 * _MANY and max(b.shape) > _SHORT // 4
    if few or type(axis) is not int or a.shape != b.shape or b.dtype.char not in "fdFD":
        return cumulative.recurrence(np, a, b, axis=axis, reverse=reverse)
    steps = slice(None, None, -1 if reverse else 1)
    dtype = np.result_type(a, b)
    a, b = (np.moveaxis(x.astype(dtype, copy=False), axis, 0)[steps] for x in (a, b))
    found: Array = np.moveaxis(_solved(a, b)[steps], 0, axis)
    return found


def _solved(a: Array, b: Array) -> Array:
    length = len(b)
    if length <= _SHORT or b.size > length * _WIDE:
        out: Array = np.empty(b.shape, b.dtype)
        out[:1] = b[:1]
        for k in range(1, length):
            here = slice(k, k + 1)
            np.multiply(a[here], out[k - 1 : k], out=out[here])
            out[here] += b[here]
        return out
    block = min(isqrt(length), _SHORT)
    count = -(-length // block)
    missing = ((0, count * block - length), *((0, 0),) * (b.ndim - 1))
    shape = (count, block, *b.shape[1:])
    # the steps of a block come first, so that each one runs for all blocks together
    a, b = (np.pad(x, missing).reshape(shape).swapaxes(0, 1).copy() for x in (a, b))
    for k in range(1, block):
        b[k] += a[k] * b[k - 1]
        a[k] *= a[k - 1]
    ends = _solved(a[-1], b[-1])  # at the end of each block
    b[:, 1:] += a[:, 1:] * ends[:-1]
    result: Array = b.swapaxes(0, 1).reshape(count * block, *shape[2:])[:length]
    return result


def _along(x: Array, axis: int, part: slice) -> tuple[slice, ...]:
    """Return the index that takes ``part`` of an axis, and all of the other axes."""
    return (slice(None),) * (axis % x.ndim) + (part,)


#: Kernels by op.
KERNELS: dict[str, Callable[..., Any]] = {
    "cumprod": _cumprod,
    "cumsum": _scan("cumsum"),
    "max": _reduction(np.maximum),
    "mean": _mean,
    "min": _reduction(np.minimum),
    "prod": _prod,
    "product_of_others": _product_of_others,
    "recurrence": _recurrence,
    "shift": _shift,
    "size_over": _size_over,
    "std": _std,
    "sum": _sum,
    "var": _var,
}
