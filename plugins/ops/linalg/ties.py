"""Equal eigenvalues and singular values, where derivatives are limits.

The vectors of equal values may be any basis of their space. A function that does not depend on it
has a derivative, but not one that follows from the upstream gradients of values and vectors: the
logarithm of the identity has a gradient of 0 for the vectors, and of only the diagonal of its own
upstream gradient for the values. A step away, where the values are separate and the vectors are
the same, the rules are right. Kernels return such values while derivatives are computed there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.extend import deriving

__all__ = ["apart"]

#: Differences below this number of rounding errors of the largest value are rounding.
_ROUNDING = 8


def apart(values: Any, what: str, with_zero: bool = False) -> Any:
    """Return a kernel's values, moved apart where derivatives at separate ones are wanted.

    Parameters
    ----------
    values
        Eigenvalues or singular values, in the last axis.
    what
        The op, for messages.
    with_zero
        Whether values must be apart from 0 too, and from the negatives of the others.
    """
    derivation = deriving.get()
    if derivation is None or type(values) is not np.ndarray or not values.size:
        return values
    close, zero = _close(values)
    if derivation.step is not None:
        return values + derivation.step * _direction(values, close, zero, with_zero)
    if close.sum() > values.size or (with_zero and zero.any()):
        name = "singular values" if with_zero else "eigenvalues"
        derivation.meet(float(np.finfo(values.dtype).eps), f"{what}: {name} are equal")
    return values


def _close(values: Any) -> tuple[Any, Any]:
    """Return which pairs of values are equal or nearly so, and which values are nearly 0."""
    eps = np.finfo(values.dtype).eps
    sizes = np.abs(values)
    rounding = _ROUNDING * eps * values.shape[-1] * sizes.max(axis=-1, keepdims=True)
    # a rule's error is the rounding error over the gap: half of the digits remain
    near = 2 * np.sqrt(eps) * np.maximum(sizes[..., :, None], sizes[..., None, :])
    gaps = np.abs(values[..., :, None] - values[..., None, :])
    return gaps <= np.maximum(near, rounding[..., None]), sizes <= rounding


def _direction(values: Any, close: Any, zero: Any, with_zero: bool) -> Any:
    """Return by how much each value moves in a step of length 1: differently if they are close."""
    sizes = np.abs(values)
    count = close.sum(axis=-1)
    place = np.tril(close, -1).sum(axis=-1)
    turn = np.where(count > 1, 2 * place / np.maximum(count - 1, 1) - 1, 0)
    if with_zero:
        turn = np.where(zero, (place + 1) / count, turn)
    # not as far as the next value or 0, where functions may be singular
    gaps = np.abs(values[..., :, None] - values[..., None, :])
    reach = np.where(close, np.inf, gaps).min(axis=-1)
    reach = np.minimum(reach, np.where(zero, np.inf, sizes))
    reach = np.where(close, reach[..., None, :], np.inf).min(axis=-1)
    reach = np.where(np.isfinite(reach), reach, 1)
    return (turn * reach).astype(sizes.dtype)
