"""Kernels of networks that are faster on NumPy than the portable ones.

A convolution is one product for all positions. Others are ReLU, softmax, cross-entropies and batch
normalisation.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ...core.extend import ScalarTable
from ..ops.common.kernels import in_float32
from ..ops.network import (
    convolution,
    normalization,
    rectifiers,
    sigmoids,
    softmax_cross_entropy,
    transposed_convolution,
)
from ..ops.network.sigmoids import sigmoid_kernel
from ..ops.network.windows import Windows
from .reductions import add_reduce, max_reduce

if TYPE_CHECKING:
    from numpy.typing import NDArray

# -- convolutions ----------------------------------------------------------------------------------


Array: TypeAlias = "NDArray[Any]"
#: A slice of the images, and a slice of the positions along their first axis.
Block = tuple[slice, slice]

#: How many bytes are laid out at a time.
_BLOCK = 1 << 21


def _windows(x: Array, where: Windows, groups: int) -> Array:
    """Return the elements of windows: a view ([groups,] images, *windows, *places, channels)."""
    x = np.ascontiguousarray(where.padded(np, x))
    shape, strides = where.view_layout(x.shape, x.strides)
    if groups > 1:
        channels = x.shape[-1] // groups
        shape = (groups, *shape[:-1], channels)
        strides = (strides[-1] * channels, *strides)
    return as_strided(x, shape, strides, writeable=False)


def _in_float32(kernel: Callable[..., Array]) -> Callable[..., Array]:
    """Return a kernel that convolves float16 as float32, which BLAS supports."""
    wide = in_float32(lambda xp, *arrays, **params: kernel(*arrays, **params))

    @functools.wraps(kernel)
    def run(x: Array, *others: Array, **params: Any) -> Array:
        found: Array = (
            wide(np, x, *others, **params) if x.dtype.char == "e" else kernel(x, *others, **params)
        )
        return found

    return run


def _seen(x: Array, where: Windows, groups: int) -> Array:
    """Return the elements of windows, as (groups, windows, places * channels)."""
    view = _windows(x, where, groups)
    return view.reshape(groups, len(x) * prod(where.out), -1)


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


def _window_rows(x: Array, where: Windows) -> Iterator[tuple[Block, Array]]:
    """Yield the elements of windows, as (windows, places * channels), block by block."""
    view = _windows(x, where, 1)
    width = prod(where.kernel) * x.shape[-1]
    memory = np.empty(0, x.dtype)
    for block in _blocks(len(x), where, width * x.itemsize):
        part = view[block]
        if memory.size < part.size:
            memory = np.empty(part.size, x.dtype)
        rows = memory[: part.size]
        np.copyto(rows.reshape(part.shape), part)
        yield block, rows.reshape(-1, width)


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
    view = _windows(x, where, 1)
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


@_in_float32
def _conv(x: Array, w: Array, *, groups: int = 1, **settings: Any) -> Array:
    fits = x.ndim == w.ndim and x.shape[-1] == w.shape[-2] * groups and not w.shape[-1] % groups
    if not fits or not x.size or not w.size:
        return convolution.conv_kernel(np, x, w, groups=groups, **settings)
    where = convolution.conv_windows(x, w, settings)
    shape = (len(x), *where.out, w.shape[-1])
    if groups == 1:
        result, filters = np.empty(shape, np.result_type(x, w)), w.reshape(-1, w.shape[-1])
        if not result.size:
            return result
        for block, rows in _window_rows(x, where):
            np.matmul(rows, filters, out=result[block].reshape(-1, w.shape[-1]))
        return result
    if w.shape[-2] == 1:
        if w.shape[-1] == groups:
            return _depthwise_products(x, w[..., 0, :], where)
        result = np.empty(shape, np.result_type(x, w))
        for which in _single(w.shape[-1], groups):
            result[which] = _depthwise_products(x, w[..., 0, :][which], where)
        return result
    result = _seen(x, where, groups) @ _by_group(w, groups)
    return np.ascontiguousarray(result.transpose(1, 0, 2)).reshape(shape)


@_in_float32
def _to_filters(g: Array, x: Array, like: Array, *, groups: int = 1, **settings: Any) -> Array:
    if not x.size or not g.size:
        return convolution.conv_to_filters_kernel(np, g, x, like, groups=groups, **settings)
    where = convolution.conv_windows(x, like, settings)
    filters, g = like.shape[-1], np.ascontiguousarray(g)  # a sum's gradient is a view of one number
    if groups == 1:
        shares = (rows.T @ g[block].reshape(-1, filters) for block, rows in _window_rows(x, where))
        total = next(shares)
        for share in shares:
            total += share
        return total.reshape(like.shape)
    if like.shape[-2] == 1:
        view, total = _in_rows(x, where), np.empty(like.shape, np.result_type(g, x))
        axes = list(range(view.ndim - len(where.kernel)))
        before = (slice(None),) * (len(axes) - 1)
        for which in _single(filters, groups):
            one = np.ascontiguousarray(g[which]).reshape(*view.shape[: len(before)], -1)
            for place in np.ndindex(*where.kernel):
                found = np.einsum(view[(*before, *place)], axes, one, axes, axes[-1:])
                total[(*place, 0)][which] = np.add.reduce(found.reshape(-1, groups), 0)
        return total
    upstream = g.reshape(-1, groups, filters // groups)
    result = _seen(x, where, groups).transpose(0, 2, 1) @ upstream.transpose(1, 0, 2)
    return result.transpose(1, 0, 2).reshape(like.shape)


def _images(g: Array, w: Array, shape: tuple[int, ...], groups: int, settings: Any) -> Array:
    if (groups != 1 and w.shape[-2] != 1) or not g.size or not w.size:
        return convolution.images_of(np, g, w, shape, settings, groups)
    where = Windows(shape[1:-1], w.shape[:-2], **settings)
    total = np.zeros((shape[0], *where.padded_sizes, shape[-1]), np.result_type(g, w))
    g = np.ascontiguousarray(g)
    if groups == 1:
        _add_up(total, g, w, where)
        return total[where.inside]
    for which in _single(g.shape[-1], groups):
        one, weights = np.ascontiguousarray(g[which]), w[..., 0, :][which]
        if set(where.strides) == {1}:  # the windows around each element, with filters flipped
            around = tuple([((n - 1) * d,) * 2 for n, d in zip(where.kernel, where.dilations)])
            back = Windows(where.out, where.kernel, where.strides, around, where.dilations)
            total += _depthwise_products(
                one, np.flip(weights, tuple(range(len(where.kernel)))), back
            )
            continue
        for place, part in where.parts():
            total[(slice(None), *part)] += one * _row(weights[place], where)
    return total[where.inside]


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
def _to_images(g: Array, w: Array, like: Array, *, groups: int = 1, **settings: Any) -> Array:
    return _images(g, w, like.shape, groups, settings)


@_in_float32
def _conv_transpose(x: Array, w: Array, **settings: Any) -> Array:
    return _images(
        x, w, transposed_convolution.transpose_shape(x.shape, w.shape, settings), 1, settings
    )


# -- activations, losses, normalisation ------------------------------------------------------------


_NUMBERS = ScalarTable(np.array)
_ZEROS = {char: np.zeros((), char) for char in "fd"}


def _relu(x: Array) -> Array:
    zero = _ZEROS.get(x.dtype.char)
    result: Array = rectifiers.relu_kernel(np, x) if zero is None else np.maximum(x, zero)
    return result


def _exponentials(x: Array, axis: int) -> Array:
    """Return exponentials of ``x`` minus its maximum, as a new array."""
    e: Array = np.subtract(x, max_reduce(x, axis, None, None, True))
    return np.exp(e, e)


def _softmax(x: Array, *, axis: int = -1) -> Array:
    if not x.size or x.dtype.char not in "fd":
        return sigmoids.softmax_kernel(np, x, axis=axis)
    e = _exponentials(x, axis)
    e /= add_reduce(e, axis, None, None, True)
    return e


def _quick(logits: Array, labels: Array) -> bool:
    return logits.shape == labels.shape and logits.size > 0 and logits.dtype == labels.dtype


def _softmax_cross_entropy(logits: Array, labels: Array, *, axis: int = -1) -> Array:
    if not _quick(logits, labels) or logits.dtype.char not in "fd":
        return softmax_cross_entropy.dense_kernel(np, logits, labels, axis=axis)
    terms = np.subtract(logits, max_reduce(logits, axis, None, None, True))
    terms -= np.log(add_reduce(np.exp(terms), axis, None, None, True))
    with np.errstate(invalid="ignore"):
        terms *= labels
    losses = add_reduce(terms, axis)
    if (losses != losses).any():  # nan: a class of probability 0 may have the label 0
        terms[labels == 0] = 0
        losses = add_reduce(terms, axis)
    return -losses


def _softmax_less_shares(logits: Array, labels: Array, *, axis: int = -1) -> Array:
    if not _quick(logits, labels) or logits.dtype.char not in "fd":
        return softmax_cross_entropy.softmax_less_shares_kernel(np, logits, labels, axis=axis)
    e = _exponentials(logits, axis)
    e *= add_reduce(labels, axis, None, None, True) / add_reduce(e, axis, None, None, True)
    e -= labels
    return e


def _sparse_softmax_cross_entropy(logits: Array, labels: Array) -> Array:
    if (
        logits.ndim != 2
        or not logits.size
        or logits.dtype.char not in "fd"
        or labels.dtype.kind not in "iu"
    ):
        return softmax_cross_entropy.sparse_cross_entropy_kernel(np, logits, labels)
    classes = logits.shape[1]
    # one test for both bounds: as an unsigned number, a negative label is a very large one
    unsigned = f"u{labels.dtype.itemsize}"
    if labels.shape != logits.shape[:1] or not max_reduce(labels.view(unsigned)) < classes:
        softmax_cross_entropy.check_labels(np, logits, labels)
    shifted = logits - max_reduce(logits, 1, None, None, True)
    losses = np.log(add_reduce(np.exp(shifted), 1))
    losses -= shifted[np.arange(len(labels)), labels]
    return losses


def _softmax_less_labels(logits: Array, labels: Array) -> Array:
    if logits.ndim != 2 or not logits.size or logits.dtype.char not in "fd":
        return softmax_cross_entropy.softmax_less_labels_kernel(np, logits, labels)
    p = _softmax(logits, axis=1)
    p[np.arange(len(labels)), labels] -= 1
    return p


# -- batch normalisation ---------------------------------------------------------------------------


def _as_rows(x: Array, axis: int, *channels: Array) -> Array | None:
    """Return ``x`` as rows of channels; None where the fused kernels do not apply."""
    rank = x.ndim
    if axis not in (-1, rank - 1) or not x.size or x.dtype.char not in "fd":
        return None
    # equal, not identical: h5py, for example, makes dtypes of its own
    for c in channels:
        if c.dtype != x.dtype or c.ndim != 1:
            return None
    return x if rank == 2 else x.reshape(-1, x.shape[-1])


def _batch_norm_training(
    x: Array, gamma: Array, beta: Array, *, axis: int = -1, epsilon: float = 1e-3
) -> tuple[Array, Array, Array]:
    rows = _as_rows(x, axis, gamma, beta)
    if rows is None:
        return normalization.batch_norm_kernel(np, x, gamma, beta, axis=axis, epsilon=epsilon)
    share = _NUMBERS[1 / len(rows), x.dtype]
    mean = add_reduce(rows, 0)
    mean *= share
    y = rows - mean
    variance = np.einsum("ij,ij->j", y, y)
    variance *= share
    factor = variance + _NUMBERS[epsilon, x.dtype]
    np.sqrt(factor, factor)
    np.divide(gamma, factor, factor)
    y *= factor
    y += beta
    return y.reshape(x.shape), mean, variance


def _batch_norm_gradient(
    gy: Array,
    gmean: Array,
    gvariance: Array,
    x: Array,
    gamma: Array,
    mean: Array,
    variance: Array,
    *,
    axis: int = -1,
    epsilon: float = 1e-3,
) -> tuple[Array, Array, Array]:
    rows = _as_rows(x, axis, gy, gamma, mean) if gy.ndim == 1 else _as_rows(x, axis, gamma, mean)
    if rows is None or gy.dtype != x.dtype:
        return normalization.batch_norm_gradient_kernel(
            np, gy, gmean, gvariance, x, gamma, mean, variance, axis=axis, epsilon=epsilon
        )
    upstream = gy.reshape(rows.shape)
    centred = rows - mean
    gbeta = add_reduce(upstream, 0)
    ggamma = np.einsum("ij,ij->j", upstream, centred)
    root = variance + _NUMBERS[epsilon, x.dtype]
    np.sqrt(root, root)
    np.reciprocal(root, root)
    ggamma *= root
    factor = gamma * root
    # gx = factor * gy + slope * centred + shift; see the portable kernel
    share = _NUMBERS[1 / len(rows), x.dtype]
    slope = gvariance + gvariance
    root *= factor
    root *= ggamma
    slope -= root
    slope *= share
    shift = gmean - factor * gbeta
    shift *= share
    gx = upstream * factor
    centred *= slope
    gx += centred
    gx += shift
    return gx.reshape(x.shape), ggamma, gbeta


def _sigmoid(x: Array) -> Array:
    if x.ndim == 0 or x.dtype.kind != "f":
        return sigmoid_kernel(np, x)
    e = np.absolute(x)
    np.exp(np.negative(e, e), e)  # at most 1
    below = e + _NUMBERS[1.0, e.dtype]
    np.maximum(e, x >= 0, out=e)  # 1 for positive x; a choice by condition takes longer
    return np.divide(e, below, e)


#: Kernels by op.
KERNELS: dict[str, Callable[..., Any]] = {
    "batch_norm_gradient": _batch_norm_gradient,
    "batch_norm_training": _batch_norm_training,
    "relu": _relu,
    "sigmoid": _sigmoid,
    "softmax": _softmax,
    "softmax_cross_entropy": _softmax_cross_entropy,
    "softmax_less_labels": _softmax_less_labels,
    "softmax_less_shares": _softmax_less_shares,
    "sparse_softmax_cross_entropy": _sparse_softmax_cross_entropy,
    "conv": _conv,
    "conv_to_filters": _to_filters,
    "conv_to_images": _to_images,
    "conv_transpose": _conv_transpose,
}
