"""Functions through points: piecewise linear ones, and polynomials and their roots."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.extend import (
    Tensor,
    as_operands,
    as_size,
    as_tensor,
    broadcast_shapes,
    is_transformed,
    on_device_of,
    ops,
    shapes_differ,
    sizes_differ,
)
from ..common.axes import axis_of, part_of
from ..common.dynamic_shapes import empty, ensured, ensured_alike, fixed, known_rank, needs_axes
from ..common.kernels import as_floating, inexact
from ..common.op_builders import named
from ..indexing.sorting import searchsorted
from ..linalg.eigenvalues import eigvals
from ..linalg.least_squares import lstsq
from ..shapes.splitting import unstack
from .differences import EARLIER, LATER, steps_between
from .polynomials import polymul, vander


def blended(start: Any, end: Any, share: Any) -> Any:
    """Return ``start + (end - start) * share``, for tensors of floating or complex numbers.

    If one end is infinite, the result is infinite, unless the share selects the other end alone.
    The formula itself would give nan for differences of infinities, and for 0 times infinity.
    """
    gap = end - start
    finite = ops["isfinite"](gap)
    alone = ops["logical_and"](ops["isinf"](start), end != -start)
    stays = ops["logical_and"](ops["logical_or"](alone, share == 0), ops["logical_not"](finite))
    from_start = start + ops["where"](stays, 0.0, gap) * share
    # from the nearer end: each end is exact, even if the other one is far larger
    from_end = end - ops["where"](finite, gap, 0.0) * (1.0 - share)
    near_end = ops["logical_or"](ops["logical_and"](finite, share >= 0.5), share == 1)
    return ops["where"](near_end, from_end, from_start)


@named
def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: float | None = None
) -> Tensor:
    """Return linear interpolations between sampled values.

    Parameters
    ----------
    x
        The points to interpolate at, of any shape.
    xp
        The coordinates of the samples, a vector in ascending order (in any order with ``period``).
    fp
        The samples, a vector of the same size.
    left, right
        The values beyond the first and last coordinate; by default those of the ends.
    period
        The period of the coordinates, if the values repeat.

    Returns
    -------
    A tensor of the shape of ``x``, of the promoted dtype; ``float64`` for integers.

    Raises
    ------
    ValueError
        If ``xp`` and ``fp`` are not vectors of the same size, have no elements, or the period is 0.
    TypeError
        If ``x`` or ``xp`` is complex.

    Notes
    -----
    Gradients reach ``x``, ``xp`` and ``fp``. At a coordinate, the slope of ``x`` is that of the
    next piece. It is not checked that ``xp`` ascends.

    Examples
    --------
    >>> x, y = gt.constant([0.0, 1.0, 2.0]), gt.constant([10.0, 20.0, 40.0])
    >>> gt.interp(gt.constant([0.5, 1.5, 3.0]), x, y).tolist()
    [15.0, 30.0, 40.0]
    """
    fp = as_floating(as_operands((fp, x, xp))[0])
    like = ops["real"](fp) if fp.dtype.kind == "c" else fp
    x, xp = map(as_floating, as_operands((x, xp, like))[:2])
    if "c" in (x.dtype.kind, xp.dtype.kind):
        raise TypeError(
            f"interp: coordinates must be real, got dtypes {x.dtype} for x and {xp.dtype} for xp"
        )
    shapes = (xp.shape, fp.shape)
    if any(shape is not None and (len(shape) != 1 or empty(shape)) for shape in shapes):
        raise ValueError(f"interp: xp and fp must be vectors of samples, got {shapes}")
    broadcast_shapes(*shapes, op="interp")
    fp = ensured_alike(
        fp, xp.shape, f"interp: xp and fp must have one size, got shapes {xp.shape} and {fp.shape}"
    )
    # in double precision: coordinates near to each other, or many periods away, lose it all else
    dtype = np.result_type(x.dtype, xp.dtype, fp.dtype)
    x, xp = (ops["cast"](v, dtype="float64") for v in (x, xp))
    fp = ops["cast"](fp, dtype=np.result_type(fp.dtype, np.float64).name)
    if period is not None:
        if period == 0:
            raise ValueError("interp: the period must not be 0")
        x, xp, fp = _unrolled(x, xp, fp, abs(period))
        left = right = None
    result = _between_samples(x, xp, fp)
    result = ops["where"](x < xp[0], fp[0] if left is None else left, result)
    result = ops["where"](x > xp[-1], fp[-1] if right is None else right, result)
    return ops["cast"](result, dtype=np.result_type(dtype, result.dtype.kind + dtype.str[2:]).name)


def _unrolled(x: Any, xp: Any, fp: Any, period: Any) -> tuple[Any, Any, Any]:
    """Return coordinates within a period, and samples in order with another one at each end."""
    x, xp = ops["remainder"](x, period), ops["remainder"](xp, period)
    order = ops["argsort"](xp, axis=-1)
    xp, fp = (ops["take"](v, order, axis=0) for v in (xp, fp))
    ends = [(part_of(v, 0, slice(-1, None)), part_of(v, 0, slice(0, 1))) for v in (xp, fp)]
    xp = ops["concatenate"](ends[0][0] - period, xp, ends[0][1] + period, axis=0)
    return x, xp, ops["concatenate"](ends[1][0], fp, ends[1][1], axis=0)


def _between_samples(x: Any, xp: Any, fp: Any) -> Any:
    inside = ops["clip"](x, xp[0], xp[-1])
    # the end of the piece; the last piece for the last coordinate, the only sample for one alone
    last = ops["size_over"](xp, axis=0)
    after = ops["cast"](ops["minimum"](searchsorted(xp, inside, "right"), last - 1), dtype="int64")
    before = ops["maximum"](after - 1, 0)
    x0, x1, f0, f1 = (
        ops["take"](v, i, axis=0) for v, i in ((xp, before), (xp, after), (fp, before), (fp, after))
    )
    width = x1 - x0
    single = width == 0  # of coordinates that are the same, the last
    share = (inside - x0) / ops["where"](single, 1.0, width)
    result = blended(f0, f1, ops["cast_like"](share, f0))
    ends = ops["logical_and"](inside == x1, ops["logical_not"](ops["isfinite"](result)))
    ends = ops["logical_or"](ends, ops["logical_and"](single, inside == x0))
    return ops["where"](ends, f1, result)


@named
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Tensor:
    """Return the integral of sampled values, by the trapezoidal rule.

    Parameters
    ----------
    y
        The samples, a tensor of at least one axis.
    x
        The points: a vector, or a tensor that broadcasts with ``y``; gradients reach it.
    dx
        Their distance, if ``x`` is not given; 1 by default.
    axis
        The axis to integrate along; the last by default.

    Returns
    -------
    A tensor of the shape of ``y`` without the axis, of its dtype; ``float64`` for integers.

    Raises
    ------
    ValueError
        If ``y`` has no axes, or ``x`` does not match it.

    Notes
    -----
    The result is the sum of ``(x[i + 1] - x[i]) * (y[i + 1] + y[i]) / 2``.

    Examples
    --------
    >>> gt.trapezoid(gt.constant([1.0, 2.0, 3.0])).item()
    4.0
    >>> gt.trapezoid(gt.constant([1.0, 2.0, 3.0]), x=gt.constant([0.0, 1.0, 3.0])).item()
    6.5
    """
    y = needs_axes(y, 1, "trapezoid")
    along = axis_of(y, axis, "trapezoid")
    if x is not None:
        x = on_device_of(x, y)
    # integers would wrap: unsigned ones in differences, small ones in sums
    kind = inexact(np.result_type(y.dtype, y.dtype if x is None else x.dtype)).name
    y, width = ops["cast"](y, dtype=kind), dx
    if x is not None:
        x = ops["cast"](x, dtype=kind)
        if known_rank(x, "trapezoid") == 1:
            width = steps_between(x, 0)
            if known_rank(y, "trapezoid") > 1:
                shape = [1] * y.ndim
                shape[along] = -1
                width = ops["reshape"](width, shape=tuple(shape))
        else:
            width = steps_between(x, along)
    middle = (part_of(y, along, LATER) + part_of(y, along, EARLIER)) * 0.5
    return ops["sum"](width * middle, axis=along, keepdims=False)


# -- polynomials -----------------------------------------------------------------------------------


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
    y = on_device_of(y, x)
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
        w = on_device_of(w, x)
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
    below = on_device_of(np.eye(size, k=-1, dtype=p.dtype), p)
    first = ops["expand_dims"](-p[1:] / p[0], axis=0)
    rest = below[1:]
    return eigvals(ops["concatenate"](first, rest, axis=0))
