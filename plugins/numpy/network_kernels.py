"""Kernels for the ops of layers that are quicker on NumPy than the portable ones.

A layer on a small batch takes as long as the calls that NumPy makes on the way, so these avoid
NumPy's Python wrappers and temporary arrays. What is not the common case goes to the portable
kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.extend import decode_index
from ..ops.linalg import matmul
from ..ops.network import normalization, softmax_cross_entropy
from ..ops.network.activations import softmax

__all__ = ["KERNELS"]

Array = NDArray[Any]

_sum: Any = np.add.reduce
_max: Any = np.maximum.reduce


def _matmul(x: Array, y: Array) -> Array:
    try:
        if y.ndim == 2 < x.ndim and x.size:  # one product of all rows, not one for each matrix
            rows: Array = x.reshape(-1, x.shape[-1]) @ y
            return rows.reshape(*x.shape[:-1], y.shape[1])
        product: Array = np.matmul(x, y)
        return product
    except (AttributeError, TypeError, ValueError):
        return matmul.matmul_kernel(np, x, y)  # which says what does not fit


def _matmul_adjoint_x(g: Array, y: Array, like: Array) -> Array:
    if y.ndim == 2 == like.ndim:
        return g @ y.T
    if y.ndim == 2 < g.ndim == like.ndim:
        return _matmul(g, y.T)
    return matmul.adjoint_x_kernel(np, g, y, like)


def _matmul_adjoint_y(g: Array, x: Array, like: Array) -> Array:
    if x.ndim == 2 == like.ndim:
        return x.T @ g
    return matmul.adjoint_y_kernel(np, g, x, like)


def _transpose(x: Array, *, axes: tuple[int, ...] | None = None) -> Array:
    return x.transpose(axes)


def _reshape(x: Array, *, shape: tuple[int, ...]) -> Array:
    return x.reshape(shape)


def _expand_dims(x: Array, *, axis: int | tuple[int, ...]) -> Array:
    return x[..., None] if axis == -1 else np.expand_dims(x, axis)


def _getitem(x: Array, *arrays: Array, index: tuple[Any, ...]) -> Array:
    return x[decode_index(index, arrays)]


def _take(x: Array, indices: Array, *, axis: int | None = None) -> Array:
    return x.take(indices, axis)


def _concatenate(*arrays: Array, axis: int = 0) -> Array:
    return np.concatenate(arrays, axis)


def _exponentials(x: Array, axis: int) -> Array:
    """Return exponentials of ``x`` less its maximum, as an array of their own."""
    e: Array = np.subtract(x, _max(x, axis, None, None, True))
    return np.exp(e, e)


def _softmax(x: Array, *, axis: int = -1) -> Array:
    if not x.size or x.dtype.kind != "f":
        return softmax.softmax_kernel(np, x, axis=axis)
    e = _exponentials(x, axis)
    e /= _sum(e, axis, None, None, True)
    return e


def _sparse_softmax_cross_entropy(logits: Array, labels: Array) -> Array:
    if (
        logits.ndim != 2
        or not logits.size
        or logits.dtype.kind != "f"
        or labels.dtype.kind not in "iu"
    ):
        return softmax_cross_entropy.sparse_cross_entropy_kernel(np, logits, labels)
    classes = logits.shape[1]
    # one test for both bounds: seen as unsigned, a negative label is a very large one
    unsigned = f"u{labels.dtype.itemsize}"
    if labels.shape != logits.shape[:1] or not _max(labels.view(unsigned)) < classes:
        softmax_cross_entropy.check_labels(np, logits, labels)
    shifted = logits - _max(logits, 1, None, None, True)
    losses = np.log(_sum(np.exp(shifted), 1))
    losses -= shifted[np.arange(len(labels)), labels]
    return losses


def _softmax_less_labels(logits: Array, labels: Array) -> Array:
    if logits.ndim != 2 or not logits.size or logits.dtype.kind != "f":
        return softmax_cross_entropy.softmax_less_labels_kernel(np, logits, labels)
    p = _softmax(logits, axis=1)
    p[np.arange(len(labels)), labels] -= 1
    return p


def _as_rows(x: Array, axis: int, *channels: Array) -> Array | None:
    """Return ``x`` as rows of channels; None where the fused kernels do not apply."""
    rank = x.ndim
    if axis not in (-1, rank - 1) or not x.size or x.dtype.char not in "fd":
        return None
    # equal, not identical: h5py, for one, makes dtypes of its own
    if any(c.dtype != x.dtype or c.ndim != 1 for c in channels):
        return None
    return x if rank == 2 else x.reshape(-1, x.shape[-1])


def _batch_norm_training(
    x: Array, gamma: Array, beta: Array, *, axis: int = -1, epsilon: float = 1e-3
) -> tuple[Array, Array, Array]:
    rows = _as_rows(x, axis, gamma, beta)
    if rows is None:
        return normalization.batch_norm_kernel(np, x, gamma, beta, axis=axis, epsilon=epsilon)
    share = x.dtype.type(1 / len(rows))
    mean = _sum(rows, 0)
    mean *= share
    y = rows - mean
    variance = np.einsum("ij,ij->j", y, y)
    variance *= share
    factor = variance + epsilon
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
    gbeta = _sum(upstream, 0)
    ggamma = np.einsum("ij,ij->j", upstream, centred)
    root = variance + epsilon
    np.sqrt(root, root)
    np.divide(1, root, root)
    ggamma *= root
    factor = gamma * root
    # gx = factor * gy + slope * centred + shift; see the portable kernel
    share = x.dtype.type(1 / len(rows))
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


#: Kernels by op.
KERNELS: dict[str, Callable[..., Any]] = {
    "batch_norm_gradient": _batch_norm_gradient,
    "batch_norm_training": _batch_norm_training,
    "concatenate": _concatenate,
    "expand_dims": _expand_dims,
    "getitem": _getitem,
    "matmul": _matmul,
    "matmul_adjoint_x": _matmul_adjoint_x,
    "matmul_adjoint_y": _matmul_adjoint_y,
    "reshape": _reshape,
    "softmax": _softmax,
    "softmax_less_labels": _softmax_less_labels,
    "sparse_softmax_cross_entropy": _sparse_softmax_cross_entropy,
    "take": _take,
    "transpose": _transpose,
}
