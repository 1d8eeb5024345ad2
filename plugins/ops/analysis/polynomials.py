"""Polynomials by their coefficients, the highest power first."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.extend import (
    Tensor,
    as_operands,
    as_size,
    as_tensor,
    is_transformed,
    known_size,
    largest,
    on_device_of,
    ops,
    same_size,
    shapes_differ,
    sizes_differ,
)
from ..common.dynamic_shapes import as_vector, fixed, table
from ..common.op_builders import named
from ..shapes.padding import pad
from ..shapes.splitting import unstack
from .signals import as_vectors, convolved, vector_size


@named
def polyval(p: Any, x: Any) -> Tensor:
    """Return a polynomial's values, by Horner's scheme.

    Parameters
    ----------
    p
        The coefficients, highest power first: a vector, or a list of tensors.
    x
        The points: a tensor of any shape.

    Returns
    -------
    A tensor of the shape of ``x``, of the promoted dtype. Gradients reach both.

    Raises
    ------
    ValueError
        If ``p`` is not a vector, or has no elements.
    TraceError
        If a trace does not know the number of coefficients.

    Examples
    --------
    >>> gt.polyval(gt.constant([1.0, 2.0, 3.0]), gt.constant([0.0, 2.0])).tolist()
    [3.0, 11.0]
    """
    x, p = as_operands((x, p))
    p = as_vector(on_device_of(p, x))
    count = fixed(vector_size(p, "polyval"), "polyval", "the number of coefficients")
    first, *rest = unstack(p, num=count)
    value = ops["zeros_like"](x) + first
    for coefficient in rest:
        value = value * x + coefficient
    return value


def _of_equal_size(p: Any, q: Any, name: str) -> tuple[Any, Any]:
    p, q = as_vectors(p, q)
    missing = vector_size(p, name) - vector_size(q, name)
    return _longer(p, largest(0, -missing)), _longer(q, largest(0, missing))


def _longer(p: Any, missing: Any) -> Any:
    """Return a polynomial with some zeros before its coefficients."""
    return p if same_size(missing, 0) else pad(p, (missing, 0))


@named
def polyadd(a1: Any, a2: Any) -> Tensor:
    """Return the coefficients of a sum of polynomials.

    Parameters
    ----------
    a1, a2
        The coefficients of each, highest power first: vectors.

    Returns
    -------
    A vector of the size of the longer one, of the promoted dtype; leading zeros are kept.

    Raises
    ------
    ValueError
        If they are not vectors, or have no elements.

    Examples
    --------
    >>> gt.polyadd(gt.constant([1.0, 2.0]), gt.constant([1.0, 0.0, 3.0])).tolist()
    [1.0, 1.0, 5.0]
    """
    return ops["add"](*_of_equal_size(a1, a2, "polyadd"))


@named
def polysub(a1: Any, a2: Any) -> Tensor:
    """Return the coefficients of a difference of polynomials.

    Parameters
    ----------
    a1, a2
        The coefficients of each, highest power first: vectors.

    Returns
    -------
    A vector of the size of the longer one, of the dtypes' promotion; leading zeros are left in.

    Raises
    ------
    ValueError
        If they are not vectors, or have no elements.

    Examples
    --------
    >>> gt.polysub(gt.constant([1.0, 2.0]), gt.constant([1.0, 0.0, 3.0])).tolist()
    [-1.0, 1.0, -1.0]
    """
    return ops["subtract"](*_of_equal_size(a1, a2, "polysub"))


@named
def polymul(a1: Any, a2: Any) -> Tensor:
    """Return the coefficients of a product of polynomials, including leading zeros.

    Parameters
    ----------
    a1, a2
        The coefficients of each, highest power first: vectors of ``n`` and ``k`` elements.

    Returns
    -------
    A vector of ``n + k - 1`` elements, of the promoted dtype.

    Raises
    ------
    ValueError
        If they are not vectors, or have no elements.

    Examples
    --------
    >>> gt.polymul(gt.constant([1.0, 2.0]), gt.constant([1.0, -2.0])).tolist()
    [1.0, 0.0, -4.0]
    """
    return convolved(*as_vectors(a1, a2), "full", "polymul")


@named
def polydiv(u: Any, v: Any) -> tuple[Tensor, Tensor]:
    """Return the quotient and the remainder of a division of polynomials, by long division.

    Parameters
    ----------
    u, v
        The coefficients of dividend and divisor, highest power first, of known values: leading
        zeros of the remainder are removed. Gradients reach both. The first coefficient of ``v``
        must not be 0.

    Returns
    -------
    Two vectors, with ``u == polyadd(polymul(quotient, v), remainder)``; integers give ``float64``.

    Raises
    ------
    ValueError
        If they are not vectors, or have no elements. Also in a trace, where the remainder's size
        would depend on unknown values.

    References
    ----------
    Knuth, "The art of computer programming", volume 2, section 4.6.1, algorithm D.

    Examples
    --------
    >>> quotient, remainder = gt.polydiv(gt.constant([1.0, 0.0, -3.0]), gt.constant([1.0, 2.0]))
    >>> quotient.tolist(), remainder.tolist()
    ([1.0, -2.0], [1.0])
    """
    u, v = as_vectors(u, v)
    if is_transformed(u.array) or is_transformed(v.array):
        raise ValueError(
            "polydiv: the remainder's size depends on values, which are not known here; call it "
            "outside gradtape.function and vmap"
        )
    u, v = (x if x.dtype.kind in "fc" else ops["cast"](x, dtype="float64") for x in (u, v))
    n, k = vector_size(u, "polydiv"), vector_size(v, "polydiv")
    terms, rest = [], u
    for i in range(n - k + 1):
        terms.append(rest[i] / v[0])
        taken = pad(ops["multiply"](terms[-1], v), (i, n - k - i))
        rest = ops["subtract"](rest, taken)
    quotient = ops["stack"](*terms, axis=0) if terms else ops["zeros_like"](u[:1])
    rest = rest[len(terms) :] if n > len(terms) else rest[-1:]
    sizes = np.abs(np.asarray(rest.to("numpy").numpy()))
    large = np.flatnonzero(sizes[:-1] > 1e-8)  # NumPy's bound
    return quotient, rest[int(large[0]) if large.size else sizes.size - 1 :]


def _times(m: Any, name: str) -> int:
    times: int = fixed(m, name, "m")
    if times < 0:
        raise ValueError(f"{name}: m must be at least 0, got {m}")
    return times


@named
def polyder(p: Any, m: int = 1) -> Tensor:
    """Return the coefficients of a polynomial's derivative of order ``m``.

    Parameters
    ----------
    p
        A vector, highest power first.
    m
        How often to differentiate, once by default.

    Returns
    -------
    A vector with ``m`` elements less, at least 0, of the dtype of ``p``.

    Raises
    ------
    ValueError
        If ``m`` is negative, or ``p`` is not a vector.

    Examples
    --------
    >>> gt.polyder(gt.constant([1.0, 2.0, 3.0])).tolist()
    [2.0, 2.0]
    """
    times, p = _times(m, "polyder"), as_tensor(p)
    size = vector_size(p, "polyder")
    if not times:
        return p
    left = largest(0, size - times)
    return p[:left] * _factors(size - 1, left, times, p)


def _factors(first: Any, count: Any, times: int, like: Any) -> Any:
    """Return integers on the device of ``like``, in its dtype if that is inexact."""
    whole = like.dtype.kind not in "fc"
    kind = np.dtype(np.int64) if whole else np.empty(0, like.dtype).real.dtype
    return table("falling", first, count, times, whole, dtype=kind, like=like)


@named
def polyint(p: Any, m: int = 1, k: Any = None) -> Tensor:
    """Return the coefficients of a polynomial's integral of order ``m``.

    Parameters
    ----------
    p
        A vector, highest power first.
    m
        How often to integrate, once by default.
    k
        The ``m`` constants of integration, that of the first integral first; one number is used for
        all, 0 by default. Gradients reach them.

    Returns
    -------
    A vector with ``m`` elements more; integers give ``float64``.

    Raises
    ------
    ValueError
        If ``m`` is negative, there are not ``m`` constants, or ``p`` is not a vector.

    Examples
    --------
    >>> gt.polyint(gt.constant([3.0, 2.0]), k=5.0).tolist()
    [1.5, 2.0, 5.0]
    """
    times, p = _times(m, "polyint"), as_tensor(p)
    size = vector_size(p, "polyint")
    if not times:
        return p
    if p.dtype.kind not in "fc":
        p = ops["cast"](p, dtype="float64")
    constants = on_device_of(0 if k is None else k, p)
    if constants.ndim == 0 or (constants.ndim == 1 and not sizes_differ(constants.shape[0], 1)):
        constants = ops["broadcast_to"](constants, shape=(times,))
    if shapes_differ(constants.shape, (times,)):
        raise ValueError(f"polyint: {times} constants are needed, got shape {constants.shape}")
    for i in range(times):
        last = ops["cast_like"](constants[i : i + 1], p)
        p = ops["concatenate"](p / _factors(size + i, size + i, 1, p), last, axis=0)
    return p


@named
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Tensor:
    """Return the matrix of the powers of ``x``, one row per element.

    Parameters
    ----------
    x
        A vector of shape ``(n,)``.
    N
        The number of powers, from 0; by default the number of elements.
    increasing
        Whether the power 0 is the first column; otherwise it is the last.

    Returns
    -------
    A tensor of shape ``(n, N)``; in double precision, as in NumPy, even if ``x`` is in single.

    Raises
    ------
    ValueError
        If ``x`` is not a vector, or ``N`` is negative.

    Examples
    --------
    >>> gt.vander(gt.constant([2.0, 3.0]), 3).tolist()
    [[4.0, 2.0, 1.0], [9.0, 3.0, 1.0]]
    """
    x = as_tensor(x)
    if x.ndim != 1:
        raise ValueError(f"vander: a vector is needed, got shape {x.shape}")
    count = as_size(x.shape[0] if N is None else N, "vander")
    if (count < 0) is True:
        raise ValueError(f"vander: N must be at least 0, got {N}")
    wide = np.result_type(x.dtype, np.int64)
    x = x if x.dtype == wide else ops["cast"](x, dtype=wide.name)
    column = ops["expand_dims"](x, axis=1)
    if known_size(count):
        columns = [ops["ones_like"](column), *[column] * (count - 1)][:count]
        if not columns:
            return column[:, :0]
    else:
        rest = ops["broadcast_to"](column, shape=(x.shape[0], largest(0, count - 1)))
        columns = [ops["ones_like"](column)[:, :count], rest]
    powers = ops["concatenate"](*columns, axis=1)
    if (count <= 2) is not True:
        powers = ops["cumprod"](powers, axis=1, reverse=False)
    return powers if increasing else ops["flip"](powers, axis=1)
