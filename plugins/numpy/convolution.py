"""Convolutions on NumPy: products of matrices, block by block.

The elements of the windows are laid out as a matrix. A block of it is small enough to be in the
processor's cache still when the product reads it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ..ops.common.kernels import in_float32
from ..ops.network import convolution, transposed_convolution
from ..ops.network.windows import Windows
from .scratch import placed, scratch

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[Any]"
#: A slice of the images, and a slice of the positions along their first axis.
Block = tuple[slice, slice]

#: How many bytes are laid out at a time.
_BLOCK = 1 << 20
#: Runs of at most so many bytes are copied as planes.
_SHORT = 64
#: From this number of filters per channel, a gradient is added to images position by position.
_MANY = 8


def _in_float32(kernel: Callable[..., Array]) -> Callable[..., Array]:
    """Return a kernel that convolves float16 as float32, which BLAS supports."""

    def portable(xp: Any, *arrays: Array, **params: Any) -> Array:
        return kernel(*arrays, **params)

    own = inspect.signature(kernel)  # which array is only looked at, its name says
    first = inspect.Parameter("xp", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    portable.__signature__ = own.replace(  # type: ignore[attr-defined]
        parameters=[first, *own.parameters.values()]
    )
    wide = in_float32(portable)

    @functools.wraps(kernel)
    def run(x: Array, *others: Array, out: Array | None = None, **params: Any) -> Array:
        if x.dtype.char != "e":
            return kernel(x, *others, out=out, **params)
        return placed(wide(np, x, *others, **params), out)

    return run


# -- windows as the rows of a matrix ---------------------------------------------------------------


def _blocks(images: int, where: Windows, size: int) -> Iterator[Block]:
    """Yield parts of the windows, ``size`` bytes each, that are small enough to lay out."""
    rows = max(1, _BLOCK // max(1, prod(where.out[1:]) * size))
    count = where.out[0]
    if rows < count:
        for i in range(images):
            for at in range(0, count, rows):
                yield slice(i, i + 1), slice(at, min(at + rows, count))
        return
    for i in range(0, images, rows // count):
        yield slice(i, min(i + rows // count, images)), slice(0, count)


def _windows(x: Array, where: Windows) -> Array:
    """Return the elements of windows: a view (images, *windows, *places, channels)."""
    return as_strided(x, *where.view_layout(x.shape, x.strides), writeable=False)


def _views(
    x: Array, where: Windows, blocks: Sequence[Block], stage: Array | None
) -> Iterator[tuple[Block, Array]]:
    """Yield the windows of each block, of images that are copied to ``stage`` if it is given."""
    if stage is None:
        view = _windows(x, where)
        for block in blocks:
            yield block, view[block]
        return
    stage[...] = 0  # the padding; what is inside changes
    inside, view, staged = stage[where.inside], _windows(stage, where), None
    for images, lines in blocks:
        count = images.stop - images.start
        if images != staged:
            inside[:count] = x[images]
            staged = images
        yield (images, lines), view[:count, lines]


def _window_rows(x: Array, where: Windows) -> Iterator[tuple[Block, Array]]:
    """Yield the elements of windows, as (windows, places * channels), block by block."""
    channels, padded = x.shape[-1], any(map(any, where.pads))
    if {*where.kernel, *where.strides} == {1} and not padded:
        yield (slice(None), slice(None)), x.reshape(-1, channels)
        return
    width, last = prod(where.kernel) * channels, len(where.out) + 1
    # NumPy copies long runs fast: those of a window's last axis and its channels or, if these are
    # few, those along the last axis of images with channels first
    run = where.kernel[-1] * channels
    planar = run < where.out[-1] and run * x.itemsize <= _SHORT
    blocks = list(_blocks(len(x), where, width * x.itemsize))
    images = max(a.stop - a.start for a, _ in blocks)
    largest = images * max(b.stop - b.start for _, b in blocks) * prod(where.out[1:]) * width
    shape = (images, *where.padded_sizes, channels)
    copied = prod(shape) if padded or planar or not x.flags.c_contiguous else 0
    with scratch((copied + largest) * x.itemsize) as memory:
        numbers = memory[: (copied + largest) * x.itemsize].view(x.dtype)
        stage, matrix = None, numbers[copied:]
        if planar:
            planes = numbers[:copied].reshape(channels, *shape[:-1])
            stage = planes.transpose(*range(1, planes.ndim), 0)
        elif copied:
            stage = numbers[:copied].reshape(shape)
        for block, view in _views(x, where, blocks, stage):
            count = view.size // width
            if planar:
                view = view.transpose(*range(last, view.ndim), *range(last))
            np.copyto(matrix[: view.size].reshape(view.shape), view)
            rows = matrix[: view.size]
            yield block, rows.reshape(width, count).T if planar else rows.reshape(count, width)


def _convolved(x: Array, w: Array, where: Windows, out: Array) -> Array:
    """Write the sum over positions in the windows, of images times filters, to ``out``."""
    filters = w.reshape(-1, w.shape[-1])
    for block, rows in _window_rows(x, where):
        np.matmul(rows, filters, out=out[block].reshape(-1, w.shape[-1]))
    return out


# -- groups of channels ----------------------------------------------------------------------------


def _grouped_windows(x: Array, where: Windows, groups: int) -> Array:
    """Return the elements of windows: a view ([groups,] images, *windows, *places, channels)."""
    x = np.ascontiguousarray(where.padded(np, x))
    shape, strides = where.view_layout(x.shape, x.strides)
    if groups > 1:
        channels = x.shape[-1] // groups
        shape = (groups, *shape[:-1], channels)
        strides = (strides[-1] * channels, *strides)
    return as_strided(x, shape, strides, writeable=False)


def _seen(x: Array, where: Windows, groups: int) -> Array:
    """Return the elements of windows, as (groups, windows, places * channels)."""
    view = _grouped_windows(x, where, groups)
    return view.reshape(groups, len(x) * prod(where.out), -1)


def _single(filters: int, channels: int) -> Iterator[Any]:
    """Yield the positions of one filter of each channel, for each filter that channels have."""
    times = filters // channels
    for k in range(times):
        yield (..., slice(k, None, times) if times > 1 else slice(None))


def _in_rows(x: Array, where: Windows) -> Array:
    """Return the elements of windows, of shape (images, *windows, *places, channels).

    Where windows are adjacent, the last axis of windows and that of channels are merged, because
    NumPy is faster on long axes.
    """
    view = _grouped_windows(x, where, 1)
    if where.strides[-1] != 1:
        return view
    n = len(where.out)
    shape, strides = view.shape, view.strides
    shape = (*shape[:n], *shape[n + 1 : -1], where.out[-1] * shape[-1])
    return as_strided(view, shape, (*strides[:n], *strides[n + 1 :]), writeable=False)


def _depthwise_products(x: Array, w: Array, where: Windows) -> Array:
    """Return the products of filters (*places, channels) and the windows of their own channel."""
    view, joint = _in_rows(x, where), where.strides[-1] == 1
    result = np.empty((len(x), *where.out, w.shape[-1]), np.result_type(x, w))
    if joint:
        w = np.broadcast_to(w[..., None, :], (*where.kernel, *result.shape[-2:]))
        w = w.reshape(*where.kernel, view.shape[-1])
    *axes, last = range(view.ndim)
    windows = axes[: len(axes) - len(where.kernel)]
    found = result.reshape(*view.shape[: len(windows)], view.shape[-1])
    np.einsum(view, [*axes, last], w, [*axes[len(windows) :], last], [*windows, last], out=found)
    return result


def _row(w: Array, where: Windows) -> Array:
    """Return the weights of all filters, repeated along an axis, as NumPy prefers long axes."""
    return np.broadcast_to(w, (where.out[-1], len(w))).copy()


def _by_group(w: Array, groups: int) -> Array:
    """Return filters as (groups, places * channels / groups, filters / groups)."""
    return w.reshape(-1, groups, w.shape[-1] // groups).transpose(1, 0, 2)


# -- kernels ---------------------------------------------------------------------------------------


@_in_float32
def conv_on_numpy(
    x: Array, w: Array, *, groups: int = 1, out: Array | None = None, **settings: Any
) -> Array:
    fits = x.ndim == w.ndim and x.shape[-1] == w.shape[-2] * groups and not w.shape[-1] % groups
    if not fits or not x.size or not w.size:
        return placed(convolution.conv_kernel(np, x, w, groups=groups, **settings), out)
    where = convolution.conv_windows(x, w, settings)
    shape = (len(x), *where.out, w.shape[-1])
    if groups == 1:
        result = np.empty(shape, np.result_type(x, w)) if out is None else out
        return _convolved(x, w, where, result) if result.size else result
    if w.shape[-2] == 1:
        if w.shape[-1] == groups:
            return placed(_depthwise_products(x, w[..., 0, :], where), out)
        result = np.empty(shape, np.result_type(x, w)) if out is None else out
        for which in _single(w.shape[-1], groups):
            result[which] = _depthwise_products(x, w[..., 0, :][which], where)
        return result
    result = _seen(x, where, groups) @ _by_group(w, groups)
    return placed(np.ascontiguousarray(result.transpose(1, 0, 2)).reshape(shape), out)


@_in_float32
def conv_to_filters_on_numpy(
    g: Array,
    x: Array,
    like: Array,
    *,
    groups: int = 1,
    out: Array | None = None,
    **settings: Any,
) -> Array:
    if not x.size or not g.size:
        found = convolution.conv_to_filters_kernel(np, g, x, like, groups=groups, **settings)
        return placed(found, out)
    where = convolution.conv_windows(x, like, settings)
    filters, g = like.shape[-1], np.ascontiguousarray(g)  # a sum's gradient is a view of one number
    if groups == 1:
        shares = (rows.T @ g[block].reshape(-1, filters) for block, rows in _window_rows(x, where))
        total = next(shares)
        for share in shares:
            total += share
        return placed(total.reshape(like.shape), out)
    if like.shape[-2] == 1:
        view, total = _in_rows(x, where), np.empty(like.shape, np.result_type(g, x))
        axes = list(range(view.ndim - len(where.kernel)))
        before = (slice(None),) * (len(axes) - 1)
        for which in _single(filters, groups):
            one = np.ascontiguousarray(g[which]).reshape(*view.shape[: len(before)], -1)
            for place in np.ndindex(*where.kernel):
                found = np.einsum(view[(*before, *place)], axes, one, axes, axes[-1:])
                total[(*place, 0)][which] = np.add.reduce(found.reshape(-1, groups), 0)
        return placed(total, out)
    upstream = g.reshape(-1, groups, filters // groups)
    result = _seen(x, where, groups).transpose(0, 2, 1) @ upstream.transpose(1, 0, 2)
    return placed(result.transpose(1, 0, 2).reshape(like.shape), out)


def _along(n: int, axis: int, where: Windows) -> list[tuple[slice, slice, int, tuple[int, int]]]:
    """Return where along one axis each of several sets of elements lies, and who sees it.

    The windows that see an element and the next one are adjacent if these are a stride apart.

    Returns
    -------
    list of tuple
        The elements, the places in windows that see them, the number of places, and the padding of
        the windows' positions with which each element has a window of positions.
    """
    k, s, d = where.kernel[axis], where.strides[axis], where.dilations[axis]
    found = []
    for start in range(min(s, n)):
        first, place = divmod(start + where.pads[axis][0], s)
        last, count = first + (n - 1 - start) // s, len(range(place, k, s))
        pads = (count - 1) * d - first, last - where.out[axis] + 1
        found.append((slice(start, None, s), slice(place, None, s), count, pads))
    return found


def _sent_back(g: Array, w: Array, where: Windows, out: Array) -> bool:
    """Send a gradient to images by convolutions with the positions; return False if they cannot."""
    if any(s != 1 != d for s, d in zip(where.strides, where.dilations, strict=True)):
        return False
    axes = [_along(n, i, where) for i, n in enumerate(where.sizes)]
    if any(count < 1 or min(pads) < 0 for sets in axes for _, _, count, pads in sets):
        return False
    spatial = tuple(range(len(axes)))
    for elements, places, kernel, pads in (zip(*sets, strict=True) for sets in product(*axes)):
        part = out[(slice(None), *elements)]
        back = Windows(where.out, kernel, (1,) * len(axes), pads, where.dilations)
        turned = np.flip(w[places], spatial).swapaxes(-1, -2)
        if part.flags.c_contiguous:
            _convolved(g, turned, back, part)
        else:
            part[...] = _convolved(g, turned, back, np.empty(part.shape, part.dtype))
    return True


def _images(
    g: Array,
    w: Array,
    shape: tuple[int, ...],
    groups: int,
    settings: Any,
    out: Array | None = None,
) -> Array:
    if (groups != 1 and w.shape[-2] != 1) or not g.size or not w.size:
        return placed(convolution.images_of(np, g, w, shape, settings, groups), out)
    where, dtype = Windows(shape[1:-1], w.shape[:-2], **settings), np.result_type(g, w)
    g = np.ascontiguousarray(g)
    # convolutions with the positions multiply the zeros around them, by infinity too
    finite = bool(np.isfinite(w).all())
    if finite and groups == 1 and w.shape[-1] <= _MANY * w.shape[-2]:
        result = np.empty(shape, dtype) if out is None else out
        if _sent_back(g, w, where, result):
            return result
    if finite and groups != 1 and {*where.strides} == {1}:
        around = tuple(_along(n, i, where)[0][-1] for i, n in enumerate(where.sizes))
        if min(map(min, around)) >= 0:
            back = Windows(where.out, where.kernel, where.strides, around, where.dilations)
            return placed(_depthwise_images(g, w[..., 0, :], back, groups), out)
    total = np.zeros((shape[0], *where.padded_sizes, shape[-1]), dtype)
    if groups == 1:
        _add_up(total, g, w, where)
        return placed(total[where.inside], out)
    for which in _single(g.shape[-1], groups):
        one, weights = np.ascontiguousarray(g[which]), w[..., 0, :][which]
        for place, part in where.parts():
            total[(slice(None), *part)] += one * _row(weights[place], where)
    return placed(total[where.inside], out)


def _depthwise_images(g: Array, w: Array, back: Windows, groups: int) -> Array:
    """Return the sum over the filters of a channel, of their gradient's products with them."""
    turned = np.flip(w, tuple(range(len(back.kernel))))
    shares = (
        _depthwise_products(np.ascontiguousarray(g[which]), turned[which], back)
        for which in _single(g.shape[-1], groups)
    )
    total = next(shares)
    for share in shares:
        total += share
    return total


def _add_up(total: Array, g: Array, w: Array, where: Windows) -> None:
    """Add a gradient's products with the weights to images, for each position in the windows."""
    filters, channels = g.shape[-1], total.shape[-1]
    parts = [(total[(slice(None), *part)], w[place].T.copy()) for place, part in where.parts()]
    memory = np.empty(0, total.dtype)
    for block in _blocks(len(g), where, 4 * channels * total.itemsize):
        rows = g[block]
        size = rows.size // filters * channels
        if memory.size < size:
            memory = np.empty(size, total.dtype)
        back, flat = memory[:size], rows.reshape(-1, filters)
        for images, weights in parts:
            np.matmul(flat, weights, out=back.reshape(-1, channels))
            seen = images[block]
            np.add(seen, back.reshape(seen.shape), out=seen)


@_in_float32
def conv_to_images_on_numpy(
    g: Array,
    w: Array,
    like: Array,
    *,
    groups: int = 1,
    out: Array | None = None,
    **settings: Any,
) -> Array:
    return _images(g, w, like.shape, groups, settings, out)


@_in_float32
def conv_transpose_on_numpy(
    x: Array, w: Array, *, out: Array | None = None, **settings: Any
) -> Array:
    shape = transposed_convolution.transpose_shape(x.shape, w.shape, settings)
    return _images(x, w, shape, 1, settings, out)


#: Kernels by op.
