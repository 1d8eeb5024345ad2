"""Equal eigenvalues and singular values, where derivatives are limits.

The vectors of equal values may be any basis of their space. A function that does not depend on it
has a derivative, but not one that follows from the upstream gradients of values and vectors: the
logarithm of the identity has a gradient of 0 for the vectors, and for the values only the diagonal
of its own upstream gradient. A step away, where the values are separate and the vectors are the
same, the rules are right. Kernels return such values while derivatives are computed there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....core.extend import F, deriving, numpy_dtype, tell_lacking
from ..common.batching import leading
from ..common.gradients import as_like
from ..common.op_builders import op

__all__ = ["apart", "takes_none"]

_MET = "values are equal or nearly so"
_LACKING = (
    "eigenvalues or singular values are equal or nearly so: the gradient of a function of both "
    "values and vectors is then a limit, which a tape and a traced gradient cannot compute; "
    "gradtape.grad and the other transforms can, if they are called outside of traces"
)
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
        size = float(np.abs(values).max(axis=-1).min()) or 1.0
        derivation.meet(float(np.finfo(values.dtype).eps), size, f"{what}: {_MET}")
    return values


def _close(values: Any) -> tuple[Any, Any]:
    """Return which pairs of values are equal or nearly so, and which values are nearly 0."""
    eps, sizes = np.finfo(values.dtype).eps, np.abs(values)
    rounding = _ROUNDING * eps * values.shape[-1] * sizes.max(axis=-1, keepdims=True)
    # the error of a rule is that of rounding over the gap, to the power of the order
    relative = min(np.cbrt(eps), 1e-3) * np.maximum(sizes[..., :, None], sizes[..., None, :])
    gaps = np.abs(values[..., :, None] - values[..., None, :])
    return gaps <= np.maximum(relative, rounding[..., None]), sizes <= rounding


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


# -- quotients in rules ----------------------------------------------------------------------------


def _over_gaps_kernel(xp: Any, x: Any, s: Any, *, reported: bool = False) -> Any:
    if 0 in s.shape:
        return x
    eps = float(np.finfo(numpy_dtype(s.dtype)).eps)
    gaps = s[..., None, :] - s[..., :, None]
    sizes, top = xp.abs(gaps), xp.max(xp.abs(s), axis=-1)[..., None, None]
    if (
        reported
        and type(s) is np.ndarray
        and deriving.get() is None
        and np.count_nonzero(sizes <= eps**0.75 * top) > s.size  # which loses most digits
    ):
        tell_lacking(_LACKING)
    equal = sizes <= _ROUNDING * eps * s.shape[-1] * top
    return xp.where(equal, 0, x / xp.where(equal, 1, gaps))


def _values_rule(g: Any, x: Any, s: Any) -> Any:
    s = F.conj(s) if s.dtype.kind == "c" else s
    turned = g * (F.conj(x) if x.dtype.kind == "c" else x)
    each = F.over_gaps(F.over_gaps(turned, s), s)
    slopes = F.sum(each, axis=-1) - F.sum(each, axis=-2)
    of_real = slopes.dtype.kind == "c" and s.dtype.kind != "c"
    return as_like(F.real(slopes) if of_real else slopes, s)


_over_gaps = op(
    "over_gaps",
    _over_gaps_kernel,
    gradients={
        "x": lambda g, s: F.over_gaps(g, F.conj(s) if s.dtype.kind == "c" else s),
        "s": _values_rule,
    },
    infer=lambda x, s, reported=False: (x.shape, np.result_type(x.dtype, s.dtype)),
    batch=leading,
    doc="Divide each element of matrices, in row i and column j, by s[j] - s[i]; 0 if that is 0.",
)


def takes_none(vjp: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a gradient rule that is given None for an output without an upstream gradient."""
    vjp.takes_none = True  # type: ignore[attr-defined]
    return vjp
