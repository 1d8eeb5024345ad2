"""Indices on CuPy, which wraps those out of range, and assigns any of several values to a position.

A kernel that checked them would make the host wait for the GPU. So an index out of range gives nan,
the lowest integer, the highest unsigned integer, or true, and assignments find the last value for
each position.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ...core.extend import decode_index, kind_of, numpy_dtype, registry


def _portable(name: str) -> Callable[..., Any]:
    found: Callable[..., Any] = registry().op(name).kernel  # type: ignore[assignment]
    return found


def _nothing(dtype: Any) -> Any:
    """Return the value of an element that does not exist."""
    kind = kind_of(dtype)
    if kind in "fc":
        return math.nan
    if kind == "b":
        return True
    limits = np.iinfo(numpy_dtype(dtype))
    return limits.min if kind == "i" else limits.max


def _outside(indices: Any, size: int) -> Any:
    """Return where indices are out of range; None if no index of their dtype can be."""
    limits = np.iinfo(numpy_dtype(indices.dtype))
    above = indices >= size if size <= limits.max else None
    below = indices < -size if -size > limits.min else None
    return above if below is None else below if above is None else above | below


def _marked(xp: Any, found: Any, wrong: Any, axis: int) -> Any:
    """Return ``found`` with wrong elements marked; axes of ``wrong`` start at axis ``axis``."""
    if wrong is None or not prod(found.shape):
        return found
    wrong = xp.reshape(wrong, (*wrong.shape, *(1,) * (found.ndim - axis - wrong.ndim)))
    xp.copyto(found, _nothing(found.dtype), where=xp.broadcast_to(wrong, found.shape))
    return found


def _take(xp: Any, x: Any, indices: Any, *, axis: int | None = None) -> Any:
    found = _portable("take")(xp, x, indices, axis=axis)
    if axis is None:
        return _marked(xp, found, _outside(indices, prod(x.shape)), 0)
    axis %= x.ndim
    return _marked(xp, found, _outside(indices, x.shape[axis]), axis)


def _take_along_axis(xp: Any, x: Any, indices: Any, *, axis: int) -> Any:
    found = _portable("take_along_axis")(xp, x, indices, axis=axis)
    return _marked(xp, found, _outside(indices, x.shape[axis]), 0)


def _picked(xp: Any, shape: Sequence[int], where: tuple[Any, ...]) -> tuple[Any, int]:
    """Return which of an index's elements are out of range, and the first of their axes."""
    used = sum(_axes(part) for part in where)
    axis = axes = 0  # of the array, and of the result
    places: list[int] = []
    wrong, front = None, 0
    for place, part in enumerate(where):
        if part is Ellipsis:
            axis, axes = axis + len(shape) - used, axes + len(shape) - used
            continue
        if hasattr(part, "dtype") or isinstance(part, int):  # together they make one set of axes
            front = front if places else axes
            places.append(place)
        if part is None or isinstance(part, slice):
            axes += 1
        elif hasattr(part, "dtype") and kind_of(part.dtype) in "iu":
            here = _outside(part, shape[axis])
            if here is not None:
                wrong = here if wrong is None else wrong | here
        axis += _axes(part)
    together = places == list(range(places[0], places[-1] + 1))
    return wrong, front if together else 0


def _axes(part: Any) -> int:
    if part is None or part is Ellipsis:
        return 0
    return part.ndim if hasattr(part, "dtype") and kind_of(part.dtype) == "b" else 1


def _by_numbers(arrays: Sequence[Any]) -> bool:
    return any(kind_of(array.dtype) in "iu" for array in arrays)


def _mixed(arrays: Sequence[Any]) -> bool:
    return any(kind_of(array.dtype) == "b" for array in arrays)


def _getitem(xp: Any, x: Any, *arrays: Any, index: Any) -> Any:
    found = _portable("getitem")(xp, x, *arrays, index=index)
    if not _by_numbers(arrays) or _mixed(arrays):
        return found
    return _marked(xp, found, *_picked(xp, x.shape, decode_index(index, arrays)))


def _index_add_like(xp: Any, g: Any, like: Any, *arrays: Any, index: Any) -> Any:
    return _portable("index_add_like")(
        xp, _checked(xp, g, like.shape, arrays, index), like, *arrays, index=index
    )


def _checked(xp: Any, values: Any, shape: Any, arrays: tuple[Any, ...], index: Any) -> Any:
    """Return values to write, with those marked whose index is out of range."""
    if not _by_numbers(arrays) or _mixed(arrays):
        return values
    wrong, front = _picked(xp, shape, decode_index(index, arrays))
    return values if wrong is None else _marked(xp, values.copy(), wrong, front)


def _index_set(xp: Any, x: Any, values: Any, *arrays: Any, index: Any) -> Any:
    if not _by_numbers(arrays):
        return _portable("index_set")(xp, x, values, *arrays, index=index)
    where = decode_index(index, arrays)
    if not prod(values.shape):
        return x
    numbers = xp.arange(1, prod(values.shape) + 1, dtype=np.uint64)  # a dtype with CUDA atomics
    last = xp.zeros(x.shape, dtype=np.uint64)
    xp.maximum.at(last, where, xp.reshape(numbers, values.shape))
    last = last.astype(np.int64)
    values = xp.reshape(_checked(xp, values, x.shape, arrays, index), (-1,))
    return xp.where(last == 0, x, xp.take(values, xp.maximum(last - 1, 0)))


KERNELS: dict[str, Callable[..., Any]] = {
    "getitem": _getitem,
    "index_add_like": _index_add_like,
    "index_set": _index_set,
    "take": _take,
    "take_along_axis": _take_along_axis,
}
