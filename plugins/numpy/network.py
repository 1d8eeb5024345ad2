"""Activations, losses and batch normalisation, where NumPy is faster than the portable kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ...core.extend import ScalarTable
from ..ops.network import (
    normalization,
    rectifiers,
    sigmoids,
    softmax_cross_entropy,
)
from ..ops.network.sigmoids import sigmoid_kernel
from ..summing import sum_columns
from .reductions import add_reduce, max_reduce

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[Any]"


# -- activations, losses, normalisation ------------------------------------------------------------


_NUMBERS = ScalarTable(np.array)
_ZEROS = {char: np.zeros((), char) for char in "fd"}
#: The largest number of channels that are repeated for longer rows.
_FEW = 128


def relu_on_numpy(x: Array) -> Array:
    zero = _ZEROS.get(x.dtype.char)
    result: Array = rectifiers.relu_kernel(np, x) if zero is None else np.maximum(x, zero)
    return result


def _exponentials(x: Array, axis: int) -> Array:
    """Return exponentials of ``x`` minus its maximum, as a new array."""
    e: Array = np.subtract(x, max_reduce(x, axis, None, None, True))
    return np.exp(e, e)


def softmax_on_numpy(x: Array, *, axis: int = -1) -> Array:
    if not x.size or x.dtype.char not in "fd":
        return sigmoids.softmax_kernel(np, x, axis=axis)
    e = _exponentials(x, axis)
    e /= add_reduce(e, axis, None, None, True)
    return e


def _quick(logits: Array, labels: Array) -> bool:
    return logits.shape == labels.shape and logits.size > 0 and logits.dtype == labels.dtype


def softmax_cross_entropy_on_numpy(logits: Array, labels: Array, *, axis: int = -1) -> Array:
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


def softmax_less_shares_on_numpy(logits: Array, labels: Array, *, axis: int = -1) -> Array:
    if not _quick(logits, labels) or logits.dtype.char not in "fd":
        return softmax_cross_entropy.softmax_less_shares_kernel(np, logits, labels, axis=axis)
    e = _exponentials(logits, axis)
    e *= add_reduce(labels, axis, None, None, True) / add_reduce(e, axis, None, None, True)
    e -= labels
    return e


def sparse_softmax_cross_entropy_on_numpy(logits: Array, labels: Array) -> Array:
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


def softmax_less_labels_on_numpy(logits: Array, labels: Array) -> Array:
    if logits.ndim != 2 or not logits.size or logits.dtype.char not in "fd":
        return softmax_cross_entropy.softmax_less_labels_kernel(np, logits, labels)
    p = softmax_on_numpy(logits, axis=1)
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


def _in_long_rows(x: Array, *channels: Array) -> tuple[Array, ...]:
    """Return rows of channels, and numbers per channel, as longer rows: NumPy prefers long axes."""
    times = x.shape[-2] if x.ndim > 2 and x.shape[-1] <= _FEW else 1
    if times == 1:
        return x.reshape(-1, x.shape[-1]), *channels
    return x.reshape(-1, times * x.shape[-1]), *[np.tile(c, times) for c in channels]


def batch_norm_training_on_numpy(
    x: Array, gamma: Array, beta: Array, *, axis: int = -1, epsilon: float = 1e-3
) -> tuple[Array, Array, Array]:
    rows = _as_rows(x, axis, gamma, beta)
    if rows is None:
        return normalization.batch_norm_kernel(np, x, gamma, beta, axis=axis, epsilon=epsilon)
    share = _NUMBERS[1 / len(rows), x.dtype]
    mean = sum_columns(rows, 0)
    mean *= share
    y, shift = _in_long_rows(x, mean)
    y = y - shift
    centred = y.reshape(rows.shape)
    variance = np.einsum("ij,ij->j", centred, centred)
    variance *= share
    factor = variance + _NUMBERS[epsilon, x.dtype]
    np.sqrt(factor, factor)
    np.divide(gamma, factor, factor)
    _, factor, beta = _in_long_rows(x, factor, beta)
    y *= factor
    y += beta
    return y.reshape(x.shape), mean, variance


def batch_norm_gradient_on_numpy(
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
    channels = gamma, mean, variance, gmean, gvariance
    rows = _as_rows(x, axis, gy, *channels) if gy.ndim == 1 else _as_rows(x, axis, *channels)
    if rows is None or gy.dtype != x.dtype:
        return normalization.batch_norm_gradient_kernel(
            np, gy, gmean, gvariance, x, gamma, mean, variance, axis=axis, epsilon=epsilon
        )
    upstream = gy.reshape(rows.shape)
    centred, origin = _in_long_rows(x, mean)
    centred = centred - origin
    gbeta = sum_columns(upstream, 0)
    ggamma = np.einsum("ij,ij->j", upstream, centred.reshape(rows.shape))
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
    gx, factor, slope, shift = _in_long_rows(gy.reshape(x.shape), factor, slope, shift)
    gx = gx * factor
    centred *= slope
    gx += centred
    gx += shift
    return gx.reshape(x.shape), ggamma, gbeta


def sigmoid_on_numpy(x: Array) -> Array:
    if x.ndim == 0 or x.dtype.kind != "f":
        return sigmoid_kernel(np, x)
    e = np.absolute(x)
    np.exp(np.negative(e, e), e)  # at most 1
    below = e + _NUMBERS[1.0, e.dtype]
    np.maximum(e, x >= 0, out=e)  # 1 for positive x; a choice by condition takes longer
    return np.divide(e, below, e)


#: Kernels by op.
