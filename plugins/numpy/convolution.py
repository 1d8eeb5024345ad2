"""Convolutions that are quicker on NumPy than the portable ones: one matrix product for all places.

What each window sees is laid out as a row (a copy that takes as much memory as the windows overlap)
and multiplied by all filters at once. Filters of single channels are multiplied place by place.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from ..ops.common.kernels import in_float32
from ..ops.network import convolution, transposed_convolution
from ..ops.network.windows import Windows

__all__ = ["KERNELS"]

Array = NDArray[Any]


def _in_float32(kernel: Callable[..., Array]) -> Callable[..., Array]:
    """Return a kernel that convolves float16 as float32, which BLAS has."""
    wide = in_float32(lambda xp, *arrays, **params: kernel(*arrays, **params))

    @functools.wraps(kernel)
    def run(x: Array, *others: Array, **params: Any) -> Array:
        found: Array = (
            wide(np, x, *others, **params) if x.dtype.char == "e" else kernel(x, *others, **params)
        )
        return found

    return run


def _seen(x: Array, where: Windows, groups: int) -> Array:
    """Return what windows see, as (windows, places * channels); per group if there are several."""
    x = np.ascontiguousarray(where.padded(np, x))
    batch, *inner, each = x.strides
    channels, places = x.shape[-1] // groups, len(where.kernel)
    steps = [s * n for s, n in zip(inner, where.strides)]
    apart = [s * n for s, n in zip(inner, where.dilations)]
    rows = len(x) * prod(where.out)
    if groups == 1:
        shape = (len(x), *where.out, *where.kernel, channels)
        view = as_strided(x, shape, (batch, *steps, *apart, each), writeable=False)
        return view.reshape(rows, prod(where.kernel) * channels)
    shape = (groups, len(x), *where.out, *where.kernel, channels)
    strides = (each * channels, batch, *steps, *apart, each)
    view = as_strided(x, shape, strides, writeable=False)
    return view.reshape(groups, rows, prod(shape[-1 - places :]))


def _repeated(x: Array, filters: int) -> Array:
    """Return images with each channel repeated for each of its filters."""
    times = filters // x.shape[-1]
    return x if times == 1 else x.repeat(times, -1)


def _row(w: Array, where: Windows) -> Array:
    """Return the weights of all filters, repeated along an axis so that NumPy has longer loops."""
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
        return (_seen(x, where, 1) @ w.reshape(-1, w.shape[-1])).reshape(shape)
    if w.shape[-2] == 1:
        x = _repeated(where.padded(np, x), w.shape[-1])
        total = np.zeros(shape, np.result_type(x, w))
        product = np.empty_like(total)
        for place, part in where.parts():
            total += np.multiply(x[(slice(None), *part)], _row(w[(*place, 0)], where), product)
        return total
    result = _seen(x, where, groups) @ _by_group(w, groups)
    return np.ascontiguousarray(result.transpose(1, 0, 2)).reshape(shape)


@_in_float32
def _to_filters(g: Array, x: Array, like: Array, *, groups: int = 1, **settings: Any) -> Array:
    if not x.size or not g.size:
        return convolution.conv_to_filters_kernel(np, g, x, like, groups=groups, **settings)
    where = convolution.conv_windows(x, like, settings)
    filters, g = like.shape[-1], np.ascontiguousarray(g)  # gradients of sums are views of a number
    if groups == 1:
        return (_seen(x, where, 1).T @ g.reshape(-1, filters)).reshape(like.shape)
    if like.shape[-2] == 1:
        x = _repeated(where.padded(np, x), filters)
        total = np.empty(like.shape, np.result_type(g, x))
        product = np.empty(g.shape, total.dtype)
        rows = product.reshape(-1, where.out[-1] * filters)
        for place, part in where.parts():
            np.multiply(x[(slice(None), *part)], g, product)
            np.add.reduce(np.add.reduce(rows, 0).reshape(-1, filters), 0, None, total[(*place, 0)])
        return total
    upstream = g.reshape(-1, groups, filters // groups)
    result = _seen(x, where, groups).transpose(0, 2, 1) @ upstream.transpose(1, 0, 2)
    return result.transpose(1, 0, 2).reshape(like.shape)


def _images(g: Array, w: Array, shape: tuple[int, ...], groups: int, settings: Any) -> Array:
    if (groups != 1 and w.shape[-2] != 1) or not g.size:
        return convolution.images_of(np, g, w, shape, settings, groups)
    where = Windows(shape[1:-1], w.shape[:-2], **settings)
    total = np.zeros((shape[0], *where.padded_sizes, shape[-1]), np.result_type(g, w))
    g = np.ascontiguousarray(g)
    rows = g.reshape(-1, g.shape[-1])
    for place, part in where.parts():
        if groups == 1:
            back = (rows @ w[place].T.copy()).reshape(*g.shape[:-1], shape[-1])
        else:
            back = g * _row(w[(*place, 0)], where)
            if g.shape[-1] != groups:  # several filters for each channel
                back = np.add.reduce(back.reshape(*g.shape[:-1], groups, -1), -1)
        total[(slice(None), *part)] += back
    return total[where.inside]


@_in_float32
def _to_images(g: Array, w: Array, like: Array, *, groups: int = 1, **settings: Any) -> Array:
    return _images(g, w, like.shape, groups, settings)


@_in_float32
def _conv_transpose(x: Array, w: Array, **settings: Any) -> Array:
    return _images(
        x, w, transposed_convolution.transpose_shape(x.shape, w.shape, settings), 1, settings
    )


#: Kernels by op.
KERNELS: dict[str, Callable[..., Any]] = {
    "conv": _conv,
    "conv_to_filters": _to_filters,
    "conv_to_images": _to_images,
    "conv_transpose": _conv_transpose,
}
