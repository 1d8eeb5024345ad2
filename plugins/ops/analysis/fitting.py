"""Polynomials from points and from roots, and the roots of polynomials."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.extend import (
    Tensor,
    as_size,
    as_tensor,
    beside,
    is_transformed,
    ops,
    shapes_differ,
    sizes_differ,
)
from ..common.op_builders import named
from ..common.sizes import empty, ensured, fixed
from ..linalg.eigenvalues import eigvals
from ..linalg.least_squares import lstsq
from ..shapes.splitting import unstack
from .polynomials import polymul, vander


def _vector(x: Any, name: str) -> Any:
    x = as_tensor(x)
    x = ops["reshape"](x, shape=(1,)) if x.shape == () else x
    if x.shape is None or len(x.shape) != 1:
        raise ValueError(f"{name}: a vector is needed, got shape {x.shape}")
    fixed(x.shape[0], name, "the vector's size")
    return x if x.dtype.kind in "fc" else ops["cast"](x, dtype="float64")


@named
def polyfit(x: Any, y: Any, deg: int, rcond: float | None = None, w: Any = None) -> Tensor:
    """Return the least-squares polynomial through points.

    Parameters
    ----------
    x
        The points: a vector of shape ``(n,)``, ``n`` known.
    y
        Their values ``(n,)``, or those of several fits ``(n, k)``. Gradients reach ``x``, ``y`` and
        ``w``.
    deg
        The polynomial's degree.
    rcond
        Singular values below this fraction of the largest count as 0; by default ``n`` times the
        precision of ``x``.
    w
        A vector of weights ``(n,)``, which multiply the residuals.

    Returns
    -------
    Coefficients ``(deg + 1,)`` or ``(deg + 1, k)``, highest power first, in double precision.

    Raises
    ------
    ValueError
        If the degree is negative.
    TypeError
        If ``x`` is not a vector with elements, or shapes do not match.

    Notes
    -----
    The coefficients minimise ``sum((w * (y - polyval(p, x))) ** 2)``: see
    :func:`gradtape.linalg.lstsq`, here applied to :func:`vander` with columns scaled to length 1.

    References
    ----------
    Golub and Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares problems
    whose variables separate", SIAM Journal on Numerical Analysis 10, 1973.

    Examples
    --------
    >>> x, y = gt.constant([0.0, 1.0, 2.0]), gt.constant([1.0, 3.0, 5.0])
    >>> gt.polyfit(x, y, 1).numpy().round(4).tolist()
    [2.0, 1.0]
    """
    count = as_size(deg, "polyfit") + 1
    if (count < 1) is True:
        raise ValueError(f"polyfit: deg must be at least 0, got {deg}")
    x = as_tensor(x)
    y = beside(y, x)
    if x.ndim != 1 or empty(x.shape):
        raise TypeError(f"polyfit: x must be a vector with elements, got shape {x.shape}")
    if y.ndim not in (1, 2) or shapes_differ(y.shape[:1], x.shape):
        raise TypeError(f"polyfit: y of shape {y.shape} does not fit x of shape {x.shape}")
    x, y = (v if v.dtype.kind in "fc" else ops["cast"](v, dtype="float64") for v in (x, y))
    if rcond is None:
        rcond = x.shape[0] * float(np.finfo(x.dtype).eps)
    x = ensured(x, x.shape[0] > 0, "polyfit: x must be a vector with elements")
    matrix = vander(x, count)
    if w is not None:
        w = beside(w, x)
        if shapes_differ(w.shape, x.shape):
            raise TypeError(f"polyfit: w of shape {w.shape} does not fit x of shape {x.shape}")
        column = ops["expand_dims"](w, axis=1)
        matrix, y = matrix * column, y * (w if y.ndim == 1 else column)
    # columns of equal length make the problem better conditioned
    scale = ops["norm"](matrix, axis=0)
    solution = lstsq(matrix / scale, y, rcond)[0]
    return solution / (scale if y.ndim == 1 else ops["expand_dims"](scale, axis=1))


@named
def poly(seq_of_zeros: Any) -> Tensor:
    """Return the coefficients of the polynomial with given roots, highest power first.

    Parameters
    ----------
    seq_of_zeros
        The roots, a vector; or a square matrix, whose characteristic polynomial is returned. The
        result for complex roots is complex, even for conjugate pairs.

    Returns
    -------
    A vector with one more element; integers give ``float64``.

    Raises
    ------
    ValueError
        If it is neither a vector nor a square matrix.

    Notes
    -----
    The factors ``(x - root)`` are multiplied one after another. The first coefficient is 1.

    Examples
    --------
    >>> gt.poly(gt.constant([1.0, 2.0])).tolist()
    [1.0, -3.0, 2.0]
    """
    given: Any = as_tensor(seq_of_zeros)
    real_matrix = given.ndim == 2 and given.dtype.kind != "c"
    if given.ndim == 2:
        if sizes_differ(*given.shape) or empty(given.shape):
            raise ValueError(f"poly: a square matrix is needed, got shape {given.shape}")
        given = eigvals(given)
    zeros = _vector(given, "poly")
    one = ops["ones_like"](ops["sum"](zeros, axis=0, keepdims=True))
    found = one
    for zero in unstack(zeros):
        factor = ops["concatenate"](one, ops["reshape"](-zero, shape=(1,)), axis=0)
        found = polymul(found, factor)
    return ops["real"](found) if real_matrix else found


@named
def roots(p: Any) -> Tensor:
    """Return the roots of a polynomial, as the eigenvalues of its companion matrix.

    Parameters
    ----------
    p
        The coefficients, highest power first: a vector. In a trace, where values are unknown, the
        first must not be 0.

    Returns
    -------
    A complex vector with as many roots as the degree, in no particular order. Gradients assume
    simple roots.

    Raises
    ------
    ValueError
        If ``p`` is not a vector.
    TraceError
        If a trace does not know its size.

    References
    ----------
    Edelman and Murakami, "Polynomial roots from companion matrix eigenvalues", Mathematics of
    Computation 64, 1995.

    Examples
    --------
    >>> found = gt.roots(gt.constant([1.0, -3.0, 2.0]))
    >>> sorted(found.numpy().real.round(4).tolist())
    [1.0, 2.0]
    """
    p = _vector(p, "roots")
    if not is_transformed(p.array):
        places = np.flatnonzero(np.asarray(p.to("numpy").numpy()))
        p = p[int(places[0]) :] if places.size else p[:0]
    if p.shape[0] < 2:
        complex_dtype = np.result_type(p.dtype, np.complex64)
        return ops["cast"](p[:0], dtype=complex_dtype.name)
    size = p.shape[0] - 1
    below = beside(np.eye(size, k=-1, dtype=p.dtype), p)
    first = ops["expand_dims"](-p[1:] / p[0], axis=0)
    rest = below[1:]
    return eigvals(ops["concatenate"](first, rest, axis=0))
