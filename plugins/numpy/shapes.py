"""Changes of shape that are faster on NumPy than the portable kernels: methods and strides.

They avoid NumPy's Python wrappers, such as ``np.broadcast_to``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..ops.common.axes import Axis, reduced_axes
from ..ops.common.kernels import cast_to
from ..ops.shapes.splitting import split_kernel
from .reductions import add_reduce

Array = NDArray[Any]


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
        wide = np.float32 if x.dtype.char == "e" else x.dtype  # float16 cannot count beyond 2048
        if shape == x.shape[extra:]:  # by far the most common: a bias, a scalar
            x = add_reduce(x, 0 if extra == 1 else tuple(range(extra)), wide)
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
    "concatenate": _concatenate,
    "expand_dims": _expand_dims,
    "ones_like": _ones_like,
    "reshape": _reshape,
    "reshape_like": _reshape_like,
    "split": _split,
    "transpose": _transpose,
    "unbroadcast_like": _unbroadcast_like,
    "unreduce_like": _unreduce_like,
    "zeros_like": _zeros_like,
}
