"""Pooling on NumPy: windows that adjoin are copied so that each position is one contiguous array.

A function of strided images would run over the channels of one element at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..ops.network import pooling
from ..ops.network.windows import Windows
from .reductions import add_reduce, max_reduce
from .scratch import placed, scratch

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[Any]"

#: How many bytes of images are copied at a time.
_BLOCK = 1 << 20


def _adjoining(where: Windows, *arrays: Array) -> bool:
    """Return whether windows are adjacent and have no padding, and arrays have numbers."""
    if where.strides != where.kernel or any(map(any, where.pads)) or 0 in where.out:
        return False
    return all(x.size and x.dtype.char in "fd" for x in arrays)


def _by_position(x: Array, where: Windows) -> Array:
    """Return images as (*places, images, *windows), with all channels as one element."""
    elements = x.view(f"V{x.itemsize * x.shape[-1]}")[..., 0]
    inside = tuple(slice(n * k) for n, k in zip(where.out, where.kernel, strict=True))
    pairs = [n for both in zip(where.out, where.kernel, strict=True) for n in both]
    split = elements[(slice(None), *inside)].reshape(len(x), *pairs)
    return split.transpose(*range(2, split.ndim, 2), 0, *range(1, split.ndim, 2))


def _blocks(x: Array) -> Iterator[slice]:
    """Yield the images of each block."""
    count = max(1, _BLOCK // x[0].nbytes)
    for i in range(0, len(x), count):
        yield slice(i, min(i + count, len(x)))


def _planes(x: Array, where: Windows, images: slice, memory: Array) -> Array:
    """Return images of a block, in ``memory``, as (places, images, *windows, channels)."""
    view = _by_position(x[images], where)
    found = memory[: view.nbytes]
    np.copyto(found.view(view.dtype).reshape(view.shape), view)
    shape = (prod(where.kernel), *view.shape[len(where.kernel) :], x.shape[-1])
    return found.view(x.dtype).reshape(shape)


def _empty(shape: tuple[int, ...], dtype: Any, out: Array | None, where: Windows) -> Array:
    """Return an array for gradients of images; elements that no window sees are 0."""
    result = np.empty(shape, dtype) if out is None else out
    if any(n % k for n, k in zip(where.sizes, where.kernel, strict=True)):
        result[...] = 0
    return result


def _pooled(
    x: Array, where: Windows, reduce: Callable[[Array, int, None, Array], Any], out: Array | None
) -> Array:
    """Return what a reduction makes of the elements of each window."""
    x = np.ascontiguousarray(x)
    result = np.empty((len(x), *where.out, x.shape[-1]), x.dtype) if out is None else out
    with scratch(min(x.nbytes, max(_BLOCK, x[0].nbytes))) as memory:
        for images in _blocks(x):
            reduce(_planes(x, where, images, memory), 0, None, result[images])
    return result


def max_pool_on_numpy(x: Array, *, out: Array | None = None, **settings: Any) -> Array:
    where = pooling.checked_windows("max_pool", x, **settings)
    if not _adjoining(where, x):
        return placed(pooling.max_pool_kernel(np, x, **settings), out)
    return _pooled(x, where, max_reduce, out)


def max_pool_scatter_on_numpy(
    g: Array, x: Array, largest: Array, *, out: Array | None = None, **settings: Any
) -> Array:
    where = pooling.pool_windows(x, **settings)
    # nan is the largest in its windows, and equals nothing
    if not _adjoining(where, g, x, largest) or np.isnan(max_reduce(largest, None)):
        return placed(pooling.max_scatter_kernel(np, g, x, largest, **settings), out)
    x, bits = np.ascontiguousarray(x), np.ascontiguousarray(g).view(f"i{g.itemsize}")
    result = _empty(x.shape, g.dtype, out, where)
    count = min(x.size, max(_BLOCK // x.itemsize, x[0].size))
    with scratch(count * (max(x.itemsize, g.itemsize) + 1)) as memory:
        marks = memory[-count:].view(bool)
        for images in _blocks(x):
            seen = _planes(x, where, images, memory)
            hits = np.equal(seen, largest[images], out=marks[: seen.size].reshape(seen.shape))
            taken = hits[0].copy()
            for hit in hits[1:]:  # among equal elements, the first one gets the gradient
                np.greater(hit, taken, hit)
                np.logical_or(hit, taken, taken)
            # multiplied as an integer, an infinite gradient becomes 0 where there is no hit
            shares = memory[: hits.size * g.itemsize].view(bits.dtype).reshape(hits.shape)
            np.copyto(shares, hits)
            shares *= bits[images]
            view = _by_position(result[images], where)
            np.copyto(view, shares.view(view.dtype)[..., 0].reshape(view.shape))
    return result


def avg_pool_on_numpy(x: Array, *, out: Array | None = None, **settings: Any) -> Array:
    where = pooling.checked_windows("avg_pool", x, **settings)
    if not _adjoining(where, x):
        return placed(pooling.avg_pool_kernel(np, x, **settings), out)
    result = _pooled(x, where, add_reduce, out)
    result /= x.dtype.type(prod(where.kernel))
    return result


def avg_pool_scatter_on_numpy(
    g: Array, like: Array, *, out: Array | None = None, **settings: Any
) -> Array:
    where = pooling.pool_windows(like, **settings)
    if not _adjoining(where, g) or not like.size:
        return placed(pooling.avg_scatter_kernel(np, g, like, **settings), out)
    result = _empty(like.shape, g.dtype, out, where)
    view = _by_position(result, where)
    share = np.divide(g, g.dtype.type(prod(where.kernel)), order="C")
    np.copyto(view, share.view(view.dtype)[..., 0])
    return result


#: Kernels by op.
