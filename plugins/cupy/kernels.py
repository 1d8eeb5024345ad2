"""Kernels for ops that CuPy lacks or does otherwise: convolutions and indices.

*Convolutions*: the elements of each window are copied to a row of one matrix product. The portable
kernels compute a product for each position in a window, and between them a GPU waits for Python.
Where the rows would take too much memory, a part of the batch is processed at a time. Groups of
channels use the portable kernels.

*Indices*: CuPy wraps those out of range, and assigns any of several values to a position. A kernel
that checked them would make the host wait for the GPU. So an index out of range gives nan, the
lowest integer, the highest unsigned integer, or true, and assignments find the last value for each
position.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from ...core.extend import decode_index, kind_of, numpy_dtype
from ..ops.common.kernels import in_float32
from ..ops.network.convolution import conv_windows
from ..ops.network.windows import Windows
from .fused.sources import portable, whole
from .launching import PreparedKernel
from .writing.formulas import memory_type
from .writing.source import blocks_for

# -- convolutions ----------------------------------------------------------------------------------


#: The maximum size of the rows at a time, in bytes.
_MOST = 2**28


def _parts(x: Any, where: Windows) -> Iterator[slice]:
    """Give parts of a batch whose rows fit into the maximum memory."""
    each = prod(where.out) * prod(where.kernel) * x.shape[-1] * x.dtype.itemsize
    count = max(1, _MOST // max(1, each))
    return (slice(a, a + count) for a in range(0, x.shape[0], count))


def _rows(xp: Any, x: Any, where: Windows) -> Any:
    """Return a matrix with a row for each window on padded images."""
    seen = xp.lib.stride_tricks.as_strided(x, *where.view_layout(x.shape, x.strides))
    return seen.reshape(x.shape[0] * prod(where.out), prod(where.kernel) * x.shape[-1])


def _is_plain(groups: int, *shapes: tuple[int, ...]) -> bool:
    return groups == 1 and all(map(prod, shapes))


def _convolved(xp: Any, x: Any, w: Any, where: Windows) -> Any:
    filters = xp.reshape(w, (-1, w.shape[-1]))
    found = [
        xp.matmul(_rows(xp, x[part], where), filters).reshape(-1, *where.out, w.shape[-1])
        for part in _parts(x, where)
    ]
    return found[0] if len(found) == 1 else xp.concatenate(found)


def _conv(xp: Any, x: Any, w: Any, **params: Any) -> Any:
    where = conv_windows(x, w, params) if x.ndim == w.ndim == len(params["strides"]) + 2 else None
    plain = where is not None and _is_plain(params.get("groups", 1), x.shape, w.shape, where.out)
    if where is None or not plain or x.shape[-1] != w.shape[-2]:
        return portable("conv")(xp, x, w, **params)
    return _convolved(xp, where.padded(xp, x), w, where)


def _conv_to_filters(xp: Any, g: Any, x: Any, like: Any, **params: Any) -> Any:
    where = conv_windows(x, like, params)
    if not _is_plain(params.get("groups", 1), g.shape, x.shape, like.shape):
        return portable("conv_to_filters")(xp, g, x, like, **params)
    x, total = where.padded(xp, x), None
    for part in _parts(x, where):
        slopes = xp.reshape(g[part], (-1, g.shape[-1]))
        share = xp.matmul(_rows(xp, x[part], where).T, slopes)
        total = share if total is None else total + share
    return xp.reshape(total, like.shape)


def _conv_to_images(xp: Any, g: Any, w: Any, like: Any, **params: Any) -> Any:
    """Convolve gradients, spaced apart by the strides, with flipped filters."""
    if not _is_plain(params.get("groups", 1), g.shape, w.shape, like.shape):
        return portable("conv_to_images")(xp, g, w, like, **params)
    where, window = conv_windows(like, w, params), w.shape[:-2]
    spans = [(k - 1) * d for k, d in zip(window, where.dilations, strict=True)]
    sizes = tuple(n + span for n, span in zip(where.sizes, spans, strict=True))
    into, of = [], []
    axes = zip(spans, where.pads, where.strides, sizes, g.shape[1:-1], strict=True)
    for span, (before, _), stride, size, count in axes:
        first = span - before  # the position of the first gradient, which may be outside
        a = max(0, -(first // stride)) if first < 0 else 0
        b = max(a, min(count, (size - 1 - first) // stride + 1))
        into.append(slice(first + a * stride, max(0, first + (b - 1) * stride + 1), stride))
        of.append(slice(a, b))
    apart = xp.zeros((g.shape[0], *sizes, g.shape[-1]), dtype=g.dtype)
    if all(part.stop > part.start for part in of):
        apart[(slice(None), *into, slice(None))] = g[(slice(None), *of, slice(None))]
    turned = w[(*(slice(None, None, -1) for _ in window), ...)].swapaxes(-1, -2)
    there = Windows(sizes, window, (1,) * len(window), "valid", where.dilations)
    return _convolved(xp, apart, turned, there)


# -- indices ---------------------------------------------------------------------------------------


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


#: Elements, which move as words of their size, at indices of an axis.
_READING = """\
typedef {word} T;
extern "C" __global__ void KERNEL(const T* x, const {index}* at, T* out, long long total,
        long long count, long long size, long long inner) {{
    for (long long t = blockIdx.x * (long long)blockDim.x + threadIdx.x; t < total;
            t += (long long)gridDim.x * blockDim.x) {{
        long long row = t / inner;
        {index} given = at[row % count];
        bool below = {below}, inside;
        long long k = (long long)given + (below ? size : 0);
        inside = below ? k >= 0 : (unsigned long long)given < (unsigned long long)size;
        out[t] = inside ? x[(row / count * size + k) * inner + t % inner] : (T){nothing}ull;
    }}
}}
"""
_WORDS = {
    1: "unsigned char",
    2: "unsigned short",
    4: "unsigned int",
    8: "unsigned long long",
}


@lru_cache(maxsize=256)
def _reading(xp: Any, dtype: Any, index: Any) -> PreparedKernel | None:
    """Return the kernel that reads numbers of a dtype at integers; None if there is none."""
    word = _WORDS.get(dtype.itemsize)
    if word is None or getattr(xp, "RawKernel", None) is None:
        return None
    nothing = int.from_bytes(np.array(_nothing(dtype), dtype).tobytes(), sys.byteorder)
    text = _READING.format(
        word=word,
        index=memory_type(index),
        below="given < 0" if index.kind == "i" else "false",
        nothing=nothing,
    )
    return PreparedKernel(xp, "take", text)


def _read(xp: Any, x: Any, indices: Any, axis: int) -> Any:
    """Return the elements at indices of an axis, by one launch; None if there is no kernel."""
    shape, size = x.shape, x.shape[axis]
    new = (*shape[:axis], *indices.shape, *shape[axis + 1 :])
    if not prod(new) or not size or kind_of(indices.dtype) not in "iu":
        return None
    kernel = _reading(xp, x.dtype, indices.dtype)
    if kernel is None:
        return None
    out, inner = xp.empty(new, x.dtype), prod(shape[axis + 1 :])
    arrays = whole(xp, x), whole(xp, indices), out
    numbers = prod(new), prod(indices.shape), size, inner
    kernel.launch(blocks_for(prod(new)), (*arrays, *numbers))
    return out


def _only_axis(ndim: int, where: tuple[Any, ...]) -> int | None:
    """Return the axis that the only array of an index is for, if all other parts are ``:``."""
    rest = [part for part in where if not hasattr(part, "dtype")]
    if len(where) - len(rest) != 1 or any(p is not Ellipsis and p != slice(None) for p in rest):
        return None
    place = next(i for i, part in enumerate(where) if hasattr(part, "dtype"))
    return place if Ellipsis not in rest[:place] else place - len(where) + ndim


def _take(xp: Any, x: Any, indices: Any, *, axis: int | None = None) -> Any:
    found = None
    if axis is not None and -x.ndim <= axis < x.ndim:
        found = _read(xp, x, indices, axis % x.ndim)
    if found is not None:
        return found
    found = portable("take")(xp, x, indices, axis=axis)
    if axis is None:
        return _marked(xp, found, _outside(indices, prod(x.shape)), 0)
    axis %= x.ndim
    return _marked(xp, found, _outside(indices, x.shape[axis]), axis)


def _take_along_axis(xp: Any, x: Any, indices: Any, *, axis: int) -> Any:
    found = portable("take_along_axis")(xp, x, indices, axis=axis)
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
    if len(arrays) == 1 and _by_numbers(arrays):
        axis = _only_axis(x.ndim, decode_index(index, arrays))
        found = None if axis is None or axis >= x.ndim else _read(xp, x, arrays[0], axis)
        if found is not None:
            return found
    found = portable("getitem")(xp, x, *arrays, index=index)
    if not _by_numbers(arrays) or _mixed(arrays):
        return found
    return _marked(xp, found, *_picked(xp, x.shape, decode_index(index, arrays)))


def _index_add_like(xp: Any, g: Any, like: Any, *arrays: Any, index: Any) -> Any:
    return portable("index_add_like")(
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
        return portable("index_set")(xp, x, values, *arrays, index=index)
    where = decode_index(index, arrays)
    if not prod(values.shape):
        return x
    numbers = xp.arange(1, prod(values.shape) + 1, dtype=np.uint64)  # a dtype with CUDA atomics
    last = xp.zeros(x.shape, dtype=np.uint64)
    xp.maximum.at(last, where, xp.reshape(numbers, values.shape))
    last = last.astype(np.int64)
    values = xp.reshape(_checked(xp, values, x.shape, arrays, index), (-1,))
    return xp.where(last == 0, x, xp.take(values, xp.maximum(last - 1, 0)))


# -- tables ----------------------------------------------------------------------------------------


def _size_table(xp: Any, like: Any, *, kind: str, arguments: tuple[Any, ...], dtype: str) -> Any:
    """Return a table; those that may be large and have simple numbers are made on the device."""
    if kind == "eye":
        n, m, k = arguments
        return xp.eye(n, m, k, dtype=np.dtype(dtype))
    if (
        kind == "arange"
        and np.dtype(dtype).kind in "iu"
        and all(type(x) is int for x in arguments[:3])
    ):
        return xp.arange(*arguments[:3], dtype=np.dtype(dtype))
    return portable("size_table")(xp, like, kind=kind, arguments=arguments, dtype=dtype)


KERNELS: dict[str, Callable[..., Any]] = {
    "size_table": _size_table,
    "getitem": _getitem,
    "index_add_like": _index_add_like,
    "index_set": _index_set,
    "take": _take,
    "take_along_axis": _take_along_axis,
    "conv": in_float32(_conv),
    "conv_to_filters": in_float32(_conv_to_filters),
    "conv_to_images": in_float32(_conv_to_images),
}
