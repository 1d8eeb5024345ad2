"""Indexing and changes of shape that are faster on NumPy: by bits, methods and strides."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import accumulate, pairwise
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ...core.extend import NARROW, NUMPY, decode_index, in_parallel, narrowed, parts
from ..ops.common.axes import Axis, reduced_axes
from ..ops.common.kernels import cast_to
from ..ops.indexing.getitem import index_add_kernel
from ..ops.indexing.take import along_axis_adjoint, take_adjoint_kernel
from ..ops.shapes.diagonals import tril_kernel, triu_kernel
from ..ops.shapes.splitting import split_kernel
from ..summing import sum_columns
from .reductions import add_reduce

if TYPE_CHECKING:
    from numpy.typing import NDArray

# -- selection -------------------------------------------------------------------------------------


Array: TypeAlias = "NDArray[Any]"

#: From this number of elements, a second pass costs less than the branches.
_MANY = 1024
_BITS: dict[str, np.dtype[Any]] = {"f": np.dtype(np.int32), "d": np.dtype(np.int64)}
_WHOLE = ("slice", None, None, None)


def _where(condition: Array, x: Any, y: Any) -> Any:
    if type(condition) is np.ndarray and condition.size >= _MANY and condition.dtype.char == "?":
        chosen = _by_bits(condition, x, y)
        if chosen is not None:
            return chosen
    return np.where(condition, x, y)


def _by_bits(condition: Array, x: Any, y: Any) -> Array | None:
    """Return ``where(condition, x, y)`` for floats of one layout, or for floats and 0."""
    array, other = (x, y) if type(x) is np.ndarray else (y, x)
    bits = _BITS.get(array.dtype.char) if type(array) is np.ndarray else None
    if bits is None or not _is_like(array, condition):
        return None
    if type(other) is np.ndarray:
        if other.dtype is not array.dtype or not _is_like(other, condition):
            return None
    elif type(other) not in (int, float) or other != 0 or np.signbit(other):
        return None
    yes = condition if array is x else ~condition
    found: Array = np.negative(yes.view(np.int8), dtype=bits)  # all bits or none
    if type(other) is not np.ndarray:
        found &= array.view(bits)
    else:
        theirs = other.view(bits)
        found &= array.view(bits) ^ theirs
        found ^= theirs
    return found.view(array.dtype)


def _is_like(array: Array, condition: Array) -> bool:
    return (
        array.shape == condition.shape and array.flags.c_contiguous and condition.flags.c_contiguous
    )


def _is_mask(arrays: tuple[Array, ...], index: tuple[Any, ...], x: Array) -> bool:
    """Return whether an index is one large mask of all elements."""
    return (
        len(arrays) == 1 == len(index)
        and arrays[0].dtype.char == "?"
        and arrays[0].size >= _MANY
        and arrays[0].shape == x.shape
    )


def _getitem(x: Array, *arrays: Array, index: tuple[Any, ...]) -> Array:
    if arrays and _is_mask(arrays, index, x):
        return x.reshape(-1).take(np.flatnonzero(arrays[0]))
    found = x[decode_index(index, arrays)]
    return np.asarray(found, object) if type(found) is bytes else found  # of an array of text


def _index_add_like(g: Array, like: Array, *arrays: Array, index: tuple[Any, ...]) -> Array:
    if arrays:
        if _is_mask(arrays, index, like):
            out = np.zeros(like.size, g.dtype)
            out[np.flatnonzero(arrays[0])] = g
            return out.reshape(like.shape)
        rows = index[-1] == ("array", 0) and all(part == _WHOLE for part in index[:-1])
        if rows and g.size >= _MANY and arrays[0].dtype.char != "?":
            return _take_adjoint(g, arrays[0], like, axis=len(index) - 1)
    found: Array = index_add_kernel(np, g, like, *arrays, index=index)
    return found


def _take(x: Array, indices: Array, *, axis: int | None = None) -> Array:
    if axis == 0 and indices.size >= _MANY:
        rows = _taken_rows(x, indices)
        if rows is not None:
            return rows
    return x.take(narrowed(indices), axis)


def _taken_rows(x: Array, indices: Array) -> Array | None:
    """Return rows that threads copy at once; None if that does not pay, or an index is wrong."""
    count, shape = indices.size, x.shape[1:]
    pieces = parts(count, 2 * count * prod(shape) * x.itemsize)
    if len(pieces) == 1 or indices.dtype.kind != "i":
        return None
    numbers = indices.reshape(-1)
    if numbers.min() < -len(x) or numbers.max() >= len(x):
        return None
    numbers = narrowed(numbers)
    rows = np.empty((count, *shape), x.dtype)
    # indices are in range, so they need not be checked again: "wrap" is for the negative ones
    in_parallel(lambda a, z: x.take(numbers[a:z], 0, rows[a:z], "wrap"), pieces)
    return rows.reshape(*indices.shape, *shape)


def _take_adjoint(g: Array, indices: Array, like: Array, *, axis: int | None = None) -> Array:
    if g.dtype.char == "e":  # which counts up to 2048
        return _take_adjoint(g.astype(np.float32), indices, like, axis=axis).astype(g.dtype)
    if (g.size < _MANY and indices.size != 1) or not (g.size and like.shape):
        portable: Array = take_adjoint_kernel(np, g, indices, like, axis=axis)
        return portable
    shape = like.shape if axis is not None else (like.size,)
    axis = 0 if axis is None else axis % len(shape)
    size, after = shape[axis], prod(shape[axis + 1 :])
    out = np.zeros(shape, g.dtype)
    if indices.size == 1:
        out[(slice(None),) * axis + (indices.reshape(-1),)] = g.reshape(
            (*shape[:axis], 1, *shape[axis + 1 :])
        )
        return out.reshape(like.shape)
    numbers = indices.reshape(-1).astype(np.int64, copy=False)
    if numbers.size and numbers.min() < 0:
        numbers = numbers % size
    # as one vector, to which NumPy adds several times as fast as to rows
    if axis:
        numbers = np.arange(prod(shape[:axis]))[:, None] * size + numbers
    if after > 1:
        numbers = numbers.reshape(-1, 1) * after + np.arange(after)
    np.add.at(out.reshape(-1), numbers.reshape(-1), g.reshape(-1))
    return out.reshape(like.shape)


def _places(shape: tuple[int, ...], indices: Array, axis: int) -> Array | None:
    """Return the flat positions that ``take_along_axis`` picks; None if it is an error."""
    rank, size = len(shape), shape[axis] if -len(shape) <= axis < len(shape) else 0
    if indices.ndim != rank or indices.dtype.kind not in "iu":
        return None
    low = int(indices.min())
    if low < -size or int(indices.max()) >= size:
        return None
    places = indices.astype(np.int64, copy=False)
    if low < 0:
        places = places % size
    axis %= rank
    places = places * prod(shape[axis + 1 :])
    for i, n in enumerate(shape):
        if i != axis:
            if indices.shape[i] not in (1, n):
                return None
            steps = np.arange(n) * prod(shape[i + 1 :])
            places = places + steps.reshape((-1,) + (1,) * (rank - i - 1))
    return places


def _take_along_axis(x: Array, indices: Array, *, axis: int) -> Array:
    places = None if indices.size < _MANY else _places(x.shape, indices, axis)
    if places is None:
        return np.take_along_axis(x, indices, axis=axis)
    return x.reshape(-1).take(narrowed(places))


def _take_along_axis_adjoint(g: Array, indices: Array, like: Array, *, axis: int) -> Array:
    if g.dtype.char == "e":
        wide = g.astype(np.float32)
        return _take_along_axis_adjoint(wide, indices, like, axis=axis).astype(g.dtype)
    places = None if indices.size < _MANY else _places(like.shape, indices, axis)
    if places is None:
        portable: Array = along_axis_adjoint(np, g, indices, like, axis=axis)
        return portable
    out = np.zeros(like.size, g.dtype)
    np.add.at(out, places.reshape(-1), g.reshape(-1))
    return out.reshape(like.shape)


def _isin(x: Array, values: Array) -> Array:
    return np.isin(x, values)


def _unique(x: Array, *, axis: int | None = None, equal_nan: bool = True) -> tuple[Array, ...]:
    if not NARROW and axis is None and x.size and x.dtype.kind in "fiu":
        flat = x.reshape(-1)
        order = flat.argsort()  # NumPy's own sort is stable, and takes several times as long
        ordered = flat[order]
        if ordered[-1] == ordered[-1]:  # there is no nan
            new = np.concatenate(([True], ordered[1:] != ordered[:-1]))
            starts = np.flatnonzero(new)
            first = np.minimum.reduceat(order, starts)
            inverse = np.empty(x.size, np.intp)
            inverse[order] = np.cumsum(new) - 1
            counts = np.diff(starts, append=x.size)
            return flat[first], first, inverse.reshape(x.shape), counts
    values, first, inverse, counts = NUMPY.unique(x, True, True, True, axis, equal_nan=equal_nan)
    shape = x.shape if axis is None else (x.shape[axis],)
    return values, first, inverse.reshape(shape), counts


# -- changes of shape ------------------------------------------------------------------------------


def _zeros_like(x: Array) -> Array:
    return np.zeros(x.shape, x.dtype)


def _ones_like(x: Array) -> Array:
    result: Array = np.empty(x.shape, x.dtype)
    result.fill(1)
    return result


def _diagonal_adjoint(g: Array, like: Array, *, offset: int = 0) -> Array:
    rows, columns = like.shape[-2:]
    out = np.zeros((*g.shape[:-1], rows, columns), g.dtype)
    if g.size:
        first = offset if offset > 0 else -offset * columns
        places = out.reshape(*g.shape[:-1], rows * columns)[..., first :: columns + 1]
        places[..., : g.shape[-1]] = g
    return out


#: The maximum number of elements of a matrix whose triangles are kept as bits.
_LARGEST_TRIANGLE = 2**16


@lru_cache(maxsize=8)
def _triangle_bits(rows: int, columns: int, k: int, kind: str) -> tuple[Array, Array]:
    """Return integers with all bits set on and below a diagonal, and those above it."""
    below: Array = -np.tri(rows, columns, k, dtype=_BITS[kind])
    return below, ~below


def _triangle(x: Array, k: int, part: int) -> Array | None:
    """Return a triangle of real matrices, by bits: many times as fast as a choice."""
    if x.ndim < 2 or x.dtype.char not in "fd" or type(k) is not int:
        return None
    rows, columns = x.shape[-2:]
    if rows * columns > _LARGEST_TRIANGLE:
        return None
    bits = _triangle_bits(rows, columns, k, x.dtype.char)[part]
    found: Array = np.bitwise_and(x.view(bits.dtype), bits)
    return found.view(x.dtype)


def _tril(x: Array, *, k: int = 0) -> Array:
    found: Array = tril_kernel(np, x, k=k) if (part := _triangle(x, k, 0)) is None else part
    return found


def _triu(x: Array, *, k: int = 0) -> Array:
    part = _triangle(x, k - 1, 1) if type(k) is int else None
    found: Array = triu_kernel(np, x, k=k) if part is None else part
    return found


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
        wide = np.float32 if x.dtype.char == "e" else x.dtype  # float16 cannot count beyond 2048
        if shape == x.shape[extra:]:  # by far the most common: a bias, a scalar
            axis = 0 if extra == 1 else tuple(range(extra))
            x = sum_columns(x, axis, wide)
        else:
            axes = tuple(
                i for i, n in enumerate(x.shape) if i < extra or (n != 1 and shape[i - extra] == 1)
            )
            x = add_reduce(x, axes, wide).reshape(shape)
    return x if x.dtype is like.dtype else cast_to(np, x, like.dtype)


def _transpose(x: Array, *, axes: tuple[int, ...] | None = None) -> Array:
    return x.transpose(axes)


def _reshape(x: Array, *, shape: tuple[int, ...]) -> Array:
    return x.reshape(shape)


def _expand_dims(x: Array, *, axis: int | tuple[int, ...]) -> Array:
    return x[..., None] if axis == -1 else np.expand_dims(x, axis)


def _concatenate(*arrays: Array, axis: int = 0) -> Array:
    return np.concatenate(arrays, axis)


@lru_cache(256)
def _parts(size: int, sections: int | tuple[int, ...]) -> tuple[tuple[Any, slice], ...]:
    """Return the indices of the parts of a last axis."""
    whole = np.broadcast_to(np.int8(0), size)
    ends = list(accumulate(len(part) for part in split_kernel(np, whole, sections=sections)))
    return tuple([(..., slice(a, b)) for a, b in pairwise([0, *ends])])


def _split(x: Array, *, sections: Any, axis: int = 0) -> tuple[Array, ...]:
    if axis != -1 or not x.ndim:
        return split_kernel(np, x, sections=sections, axis=axis)
    return tuple([x[part] for part in _parts(x.shape[-1], sections)])


#: Kernels by op.
KERNELS: dict[str, Callable[..., Any]] = {
    "getitem": _getitem,
    "index_add_like": _index_add_like,
    "isin": _isin,
    "take": _take,
    "take_adjoint": _take_adjoint,
    "take_along_axis": _take_along_axis,
    "take_along_axis_adjoint": _take_along_axis_adjoint,
    "unique": _unique,
    "where": _where,
    "concatenate": _concatenate,
    "diagonal_adjoint": _diagonal_adjoint,
    "expand_dims": _expand_dims,
    "ones_like": _ones_like,
    "reshape": _reshape,
    "reshape_like": _reshape_like,
    "split": _split,
    "transpose": _transpose,
    "tril": _tril,
    "triu": _triu,
    "unbroadcast_like": _unbroadcast_like,
    "unreduce_like": _unreduce_like,
    "zeros_like": _zeros_like,
}
