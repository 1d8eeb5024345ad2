"""Helpers for rules about matrices, which are in the last two axes; equal eigenvalues.

Where eigenvalues or singular values are equal, derivatives are limits. The vectors of equal values
may be any basis of their space. A function that does not depend on it has a derivative, but not one
that follows from the upstream gradients of values and vectors: the logarithm of the identity has a
gradient of 0 for the vectors, and for the values only the diagonal of its own upstream gradient. A
step away, where the values are separate and the vectors are the same, the rules are right. Kernels
return such values while derivatives are computed there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

from ....core.extend import (
    F,
    TensorSpec,
    as_tensor,
    deriving,
    known_size,
    numpy_dtype,
    ops,
    report_missing_terms,
    sizes_differ,
    smallest,
)
from ..common.axes import leading
from ..common.kernels import as_like, at_hand, cast_to
from ..common.op_builders import op


def transposed(x: Any) -> Any:
    """Return the transpose of matrices."""
    return F.swapaxes(x, axis1=-1, axis2=-2)


def adjoint(x: Any) -> Any:
    """Return the conjugate transpose of matrices."""
    return F.conj(transposed(x)) if x.dtype.kind == "c" else transposed(x)


def over_matrix(g: Any) -> Any:
    """Return numbers, one per matrix, shaped to broadcast with the matrices."""
    return F.expand_dims(g, axis=(-2, -1))


def over_columns(s: Any) -> Any:
    """Return vectors shaped so that each element scales a column."""
    return F.expand_dims(s, axis=-2)


def over_rows(s: Any) -> Any:
    """Return vectors shaped so that each element scales a row."""
    return F.expand_dims(s, axis=-1)


def diagonals(x: Any) -> Any:
    """Return the diagonals of matrices, as the last axis."""
    return F.diagonal(x, offset=0)


def on_diagonal(s: Any, like: Any) -> Any:
    """Return square matrices of the shape of ``like`` with vectors ``s`` on their diagonals."""
    one = F.tril(F.triu(F.ones_like(like), k=0), k=0)
    return one * over_columns(s)


def hermitian_from_lower(x: Any) -> Any:
    """Return matrices with the lower triangle of ``x`` and its mirror; the diagonal is real."""
    lower = (F.tril(x, k=0) + F.tril(x, k=-1)) * 0.5
    return lower + adjoint(lower)


def inexact(dtype: Any) -> Any:
    """Return the floating or complex dtype in which matrices of ``dtype`` are factored."""
    return dtype if dtype.kind in "fc" else np.dtype(np.float64)


def real_of(dtype: Any) -> Any:
    """Return the real dtype of the same precision."""
    return np.empty(0, inexact(dtype)).real.dtype


def square_shape(x: TensorSpec, name: str) -> Any:
    """Return the shape of square matrices; raise if they are not."""
    shape = x.shape
    if shape is not None and (len(shape) < 2 or sizes_differ(*shape[-2:])):
        raise np.linalg.LinAlgError(f"{name}: square matrices are needed, got shape {shape}")
    return shape


def sizes_of_matrices(x: TensorSpec, name: str) -> tuple[Any, Any, Any]:
    """Return the batch shape, rows and columns of matrices; raise if there are no two axes."""
    if x.shape is None:
        return None, None, None
    if len(x.shape) < 2:
        raise np.linalg.LinAlgError(f"{name}: matrices are needed, got shape {x.shape}")
    return x.shape[:-2], x.shape[-2], x.shape[-1]


def smaller_size(rows: Any, columns: Any) -> Any:
    """Return the smaller of two sizes, None if one is unknown."""
    if rows is None or columns is None:
        return None
    both_known = known_size(rows) and known_size(columns)
    return min(rows, columns) if both_known else smallest(rows, columns)


def with_sizes(batch: Any, *sizes: Any) -> Any:
    """Return a batch shape with sizes added, None if it is unknown."""
    return None if batch is None else (*batch, *sizes)


# -- tensors to factor, recorded -------------------------------------------------------------------


def as_inexact(x: Any) -> Any:
    """Return a tensor to factor: integers become ``float64``."""
    x = as_tensor(x)
    return x if x.dtype.kind in "fc" else x.astype("float64")


def conjugate_transpose(x: Any) -> Any:
    """Return the conjugate transpose of tensors: :func:`adjoint`, recorded."""
    flipped = ops["swapaxes"](as_tensor(x), axis1=-1, axis2=-2)
    return ops["conj"](flipped) if flipped.dtype.kind == "c" else flipped


def hermitian_part(a: Any, name: str) -> Any:
    """Return the Hermitian matrices whose lower triangle is that of ``a``."""
    a = as_inexact(a)
    square_shape(a, name)
    lower = ops["tril"](a, k=-1)
    middle = ops["real"](a - lower) if a.dtype.kind == "c" else a - lower
    return lower + conjugate_transpose(lower) + ops["tril"](middle, k=0)


# -- equal eigenvalues and singular values ---------------------------------------------------------

_MET = "values are equal or nearly so"
_LACKING = (
    "eigenvalues or singular values are equal or nearly so: the gradient of a function of both "
    "values and vectors is then a limit, which a tape and a traced gradient cannot compute; "
    "gradtape.grad and the other transforms can, outside of traces and on NumPy's arrays"
)
#: Differences below this number of rounding errors of the largest value are rounding.
_ROUNDING = 8


def separated(values: Any, what: str, *vectors: Any, with_zero: bool = False) -> tuple[Any, ...]:
    """Return a kernel's outputs, moved apart while derivatives at separate values are computed.

    Parameters
    ----------
    values
        Eigenvalues or singular values, in the last axis.
    what
        The op, for messages.
    vectors
        Their vectors, in columns.
    with_zero
        Whether values must be apart from 0 too, and from the negatives of the others.

    Returns
    -------
    tuple
        The values and vectors.
    """
    derivation = deriving.get()
    if derivation is None or type(values) is not np.ndarray or not values.size:
        return values, *vectors
    if derivation.step is not None:
        close, zero = _close(values)
        reach = _reach(values, close, zero)
        if derivation.turned and vectors:
            turn = _turn(values, close, reach)
            vectors = tuple(_turned(v, turn) for v in vectors)
        return values + derivation.step * reach * _sides(close, zero, with_zero), *vectors
    sizes = np.abs(values)
    top = sizes.max(axis=-1, keepdims=True)
    if _are_tied(values, sizes, top, with_zero):
        size = float(top.min()) or 1.0
        derivation.note_limit(_precision(values.dtype)[0], size, f"{what}: {_MET}")
    return values, *vectors


@cache
def _precision(dtype: Any) -> tuple[float, float]:
    """Return the rounding error, and the relative difference below which values are close."""
    eps = float(np.finfo(dtype).eps)
    # the error of a rule is that of rounding over the gap, to the power of the order
    return eps, min(eps ** (1 / 3), 1e-3)


def _are_tied(values: Any, sizes: Any, top: Any, with_zero: bool) -> bool:
    """Return whether any values are close, or close to 0 where that matters."""
    eps, near = _precision(values.dtype)
    rounding = _ROUNDING * eps * values.shape[-1] * top
    if with_zero and (sizes[..., -1:] <= rounding).any():  # in descending order
        return True
    if values.dtype.kind == "c":
        return bool(_close(values)[0].sum() > values.size)
    gaps = np.abs(values[..., 1:] - values[..., :-1])  # real ones are sorted
    larger = np.maximum(sizes[..., 1:], sizes[..., :-1])
    return bool((gaps <= np.maximum(near * larger, rounding)).any())


def _close(values: Any) -> tuple[Any, Any]:
    """Return which pairs of values are equal or nearly so, and which values are nearly 0."""
    (eps, near), sizes = _precision(values.dtype), np.abs(values)
    rounding = _ROUNDING * eps * values.shape[-1] * sizes.max(axis=-1, keepdims=True)
    relative = near * np.maximum(sizes[..., :, None], sizes[..., None, :])
    close = _gaps(values) <= np.maximum(relative, rounding[..., None])
    while True:  # what is close to the same value is close
        wider = close @ close
        if (wider == close).all():
            return close, sizes <= rounding
        close = wider


def _gaps(values: Any) -> Any:
    return np.abs(values[..., :, None] - values[..., None, :])


def _reach(values: Any, close: Any, zero: Any) -> Any:
    """Return a part of the distance to the next value or 0, where functions may be singular."""
    sizes = np.abs(values)
    reach = np.where(close, np.inf, _gaps(values)).min(axis=-1)
    reach = np.minimum(reach, np.where(zero, np.inf, sizes))
    reach = np.where(close, reach[..., None, :], np.inf).min(axis=-1)
    return np.where(np.isfinite(reach), reach, 1).astype(sizes.dtype)


def _sides(close: Any, zero: Any, with_zero: bool) -> Any:
    """Return how far to move each value: from -1 to 1, differently if they are close."""
    count = close.sum(axis=-1)
    place = np.tril(close, -1).sum(axis=-1)
    sides = np.where(count > 1, 2 * place / np.maximum(count - 1, 1) - 1, 0)
    sides = np.where(zero, (place + 1) / count, sides) if with_zero else sides
    return sides.astype(np.float32)


def _turn(values: Any, close: Any, reach: Any) -> Any:
    """Return rotations that turn the vectors of equal values into another basis.

    Their angles are random ones: a function of the choice may be even or stationary at others.
    """
    spread = np.where(close, _gaps(values), 0).max(axis=-1, keepdims=True)
    spread = np.where(close, spread, 0).max(axis=-2)
    equal = (close.sum(axis=-1) > 1) & (spread <= 1e-3 * reach)
    count = values.shape[-1]
    drawn = np.triu(np.random.default_rng(0).uniform(0.2, 0.7, (count, count)), 1)
    skew = np.where(close & equal[..., None], drawn - drawn.T, 0)
    return np.linalg.solve(np.eye(count) + skew, np.eye(count) - skew)  # Cayley's formula


def _turned(vectors: Any, turn: Any) -> Any:
    count = turn.shape[-1]
    turned = vectors[..., :count] @ turn.astype(vectors.real.dtype)
    turned = turned / np.linalg.norm(turned, axis=-2, keepdims=True)
    return np.concatenate([turned, vectors[..., count:]], axis=-1)


@contextmanager
def of_values() -> Iterator[bool]:
    """Run a part of the rule of values alone, which have a subgradient with any vectors.

    Gives whether the vectors that were computed before are others than usual.
    """
    derivation = deriving.get()
    if derivation is None or not derivation.turned:
        yield False
        return
    derivation.turned = False
    try:
        yield True
    finally:
        derivation.turned = True


# -- quotients in rules ----------------------------------------------------------------------------


def _over_gaps_kernel(xp: Any, x: Any, s: Any, *, reported: bool = False) -> Any:
    if 0 in s.shape:
        return x
    eps, _ = _precision(numpy_dtype(s.dtype))
    gaps = s[..., None, :] - s[..., :, None]
    sizes, top = xp.abs(gaps), xp.max(xp.abs(s), axis=-1)[..., None, None]
    rounding = _ROUNDING * eps * s.shape[-1]
    if reported and not (type(s) is np.ndarray and deriving.get() is not None):
        # these lose most digits; kernels move only NumPy's arrays apart
        close = sizes <= max(eps**0.75, rounding) * top
        if at_hand(xp.sum(cast_to(xp, close, "int64")) > math.prod(s.shape), unknown=False):
            report_missing_terms(_LACKING)
    equal = sizes <= rounding * top
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
        "x": lambda g, x_like, s: as_like(
            F.over_gaps(g, F.conj(s) if s.dtype.kind == "c" else s), x_like
        ),
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
