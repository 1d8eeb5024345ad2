"""Reductions and order statistics that skip nan, which has no gradient; made of other ops."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.extend import NONDIFF, Tensor, as_dtype, as_tensor, beside, ops
from ..common.axes import Axis, as_axis, one_axis, reduced_shape
from ..common.batching import flattened
from ..common.op_builders import named, op
from ..indexing.sorting import sort
from ..indexing.take import take_along_axis
from ..statistics.statistics import (
    as_lines,
    between,
    fractions,
    like_float,
    places_among,
    quantiles,
    with_kept_axes,
)
from . import reductions
from .options import kept_by
from .scans import cumprod, cumsum

__all__ = [
    "nanargmax",
    "nanargmin",
    "nancumprod",
    "nancumsum",
    "nanmax",
    "nanmean",
    "nanmedian",
    "nanmin",
    "nanpercentile",
    "nanprod",
    "nanquantile",
    "nanstd",
    "nansum",
    "nanvar",
]


def _skipping(x: Any, fill: float) -> tuple[Any, Any]:
    """Return where ``x`` is nan (None if it cannot be), and ``x`` with ``fill`` there."""
    x = as_tensor(x)
    if x.dtype.kind not in "fc":
        return None, x
    missing = ops["isnan"](x)
    return missing, ops["where"](missing, fill, x)


@named
def nansum(
    x: Any,
    axis: Any = None,
    keepdims: bool = False,
    *,
    dtype: Any = None,
    initial: Any = None,
    where: Any = None,
) -> Tensor:
    """Return the sum of the elements that are not nan; as :func:`gradtape.sum`.

    Parameters
    ----------
    x
        A tensor of any shape and dtype.
    axis
        The axis or axes to sum over; all by default.
    keepdims
        Leave the axes in the result, with size 1.
    dtype
        The dtype to sum in, and of the result.
    initial
        What the sum starts from, a number or a tensor; gradients reach it.
    where
        Which elements count: booleans that broadcast to the shape of ``x``; all by default.

    Returns
    -------
    A tensor of the shape of ``x`` without the axes, of the dtype of ``x``; small integers and
    booleans give NumPy's default integer. It is 0 where all elements are nan.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of bounds.
    ValueError
        If an axis is given twice, or ``where`` does not broadcast to the shape of ``x``.

    Notes
    -----
    Elements that are nan have the gradient 0.

    Examples
    --------
    >>> gt.nansum(gt.constant([1.0, np.nan, 3.0])).item()
    4.0
    """
    _, filled = _skipping(x, 0.0)
    return reductions.sum(filled, axis, keepdims, dtype=dtype, initial=initial, where=where)


@named
def nanprod(
    x: Any,
    axis: Any = None,
    keepdims: bool = False,
    *,
    dtype: Any = None,
    initial: Any = None,
    where: Any = None,
) -> Tensor:
    """Return the product of the elements that are not nan; as :func:`gradtape.prod`.

    Parameters
    ----------
    x
        A tensor of any shape and dtype.
    axis
        The axis or axes to multiply over; all by default.
    keepdims
        Leave the axes in the result, with size 1.
    dtype
        The dtype to multiply in, and of the result.
    initial
        What the product starts from, a number or a tensor; gradients reach it.
    where
        Which elements count: booleans that broadcast to the shape of ``x``; all by default.

    Returns
    -------
    A tensor of the shape of ``x`` without the axes, of the dtype of ``x``; small integers and
    booleans give NumPy's default integer. It is 1 where all elements are nan.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of bounds.
    ValueError
        If an axis is given twice, or ``where`` does not broadcast to the shape of ``x``.

    Notes
    -----
    Elements that are nan have the gradient 0.

    Examples
    --------
    >>> gt.nanprod(gt.constant([2.0, np.nan, 3.0])).item()
    6.0
    """
    _, filled = _skipping(x, 1.0)
    return reductions.prod(filled, axis, keepdims, dtype=dtype, initial=initial, where=where)


@named
def nancumsum(x: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Return the running sum, nan taken as 0; as :func:`gradtape.cumsum`.

    Parameters
    ----------
    x
        A tensor of any shape and dtype.
    axis
        The axis to sum along; by default the flattened tensor is summed.
    dtype
        The dtype to sum in, and of the result.

    Returns
    -------
    A tensor of the shape and dtype of ``x``, or one-dimensional if ``axis`` is None; small integers
    give NumPy's default integer.

    Raises
    ------
    numpy.exceptions.AxisError
        If the axis is out of bounds.
    TypeError
        If ``axis`` is neither None nor one integer.

    Examples
    --------
    >>> gt.nancumsum(gt.constant([1.0, np.nan, 3.0])).tolist()
    [1.0, 1.0, 4.0]
    """
    return cumsum(_skipping(x, 0.0)[1], axis, dtype)


@named
def nancumprod(x: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Return the running product, nan taken as 1; as :func:`gradtape.cumprod`.

    Parameters
    ----------
    x
        A tensor of any shape and dtype.
    axis
        The axis to multiply along; by default the flattened tensor.
    dtype
        The dtype to multiply in, and of the result.

    Returns
    -------
    A tensor of the shape and dtype of ``x``, or one-dimensional if ``axis`` is None; small integers
    give NumPy's default integer.

    Raises
    ------
    numpy.exceptions.AxisError
        If the axis is out of bounds.
    TypeError
        If ``axis`` is neither None nor one integer.

    Examples
    --------
    >>> gt.nancumprod(gt.constant([2.0, np.nan, 3.0])).tolist()
    [2.0, 2.0, 6.0]
    """
    return cumprod(_skipping(x, 1.0)[1], axis, dtype)


def _nan_extreme(
    name: str, x: Any, axis: Any, keepdims: bool, fill: float, initial: Any, where: Any
) -> Any:
    missing, filled = _skipping(x, fill)
    function = getattr(reductions, name)
    result = function(filled, axis, keepdims, initial=initial, where=where)
    if missing is None or initial is not None:  # which is what there is at the least
        return result
    nothing = ops["all"](missing, axis=as_axis(axis, f"nan{name}"), keepdims=keepdims)
    return ops["where"](nothing, float("nan"), result)


@named
def nanmax(
    x: Any, axis: Any = None, keepdims: bool = False, *, initial: Any = None, where: Any = None
) -> Tensor:
    """Return the largest element that is not nan, nan if there is none; as :func:`gradtape.max`.

    Parameters
    ----------
    x
        A real tensor of any shape.
    axis
        The axis or axes to search; all by default.
    keepdims
        Leave the axes in the result, with size 1.
    initial
        A bound of the result; it is needed with ``where``, and where there may be no elements.
    where
        Which elements count: booleans that broadcast to the shape of ``x``; all by default.

    Returns
    -------
    A tensor of the shape of ``x`` without the axes, of the dtype of ``x``.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of bounds.
    ValueError
        If there are no elements at all, or ``where`` comes without ``initial``.

    Notes
    -----
    Elements that tie share the gradient evenly.

    Examples
    --------
    >>> gt.nanmax(gt.constant([[1.0, np.nan], [3.0, 2.0]]), axis=1).tolist()
    [1.0, 3.0]
    """
    return _nan_extreme("max", x, axis, keepdims, -float("inf"), initial, where)


@named
def nanmin(
    x: Any, axis: Any = None, keepdims: bool = False, *, initial: Any = None, where: Any = None
) -> Tensor:
    """Return the smallest element that is not nan, nan if there is none; as :func:`gradtape.min`.

    Parameters
    ----------
    x
        A real tensor of any shape.
    axis
        The axis or axes to search; all by default.
    keepdims
        Leave the axes in the result, with size 1.
    initial
        A bound of the result; it is needed with ``where``, and where there may be no elements.
    where
        Which elements count: booleans that broadcast to the shape of ``x``; all by default.

    Returns
    -------
    A tensor of the shape of ``x`` without the axes, of the dtype of ``x``.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of bounds.
    ValueError
        If there are no elements at all, or ``where`` comes without ``initial``.

    Notes
    -----
    Elements that tie share the gradient evenly.

    Examples
    --------
    >>> gt.nanmin(gt.constant([[1.0, np.nan], [3.0, 2.0]]), axis=1).tolist()
    [1.0, 2.0]
    """
    return _nan_extreme("min", x, axis, keepdims, float("inf"), initial, where)


def _nan_position(name: str, fill: float) -> Any:
    def kernel(xp: Any, x: Any, *, axis: int | None = None, keepdims: bool = False) -> Any:
        missing = xp.isnan(x)
        if xp.any(xp.all(missing, axis=axis)):
            raise ValueError("there are only nan to choose from")
        filled = xp.where(missing, xp.asarray(fill, dtype=x.dtype), x)
        return xp.asarray(getattr(xp, name)(filled, axis=axis, keepdims=keepdims))

    return op(
        f"nan{name}",
        kernel,
        gradients={"x": NONDIFF},
        infer=lambda x, axis, keepdims: (
            reduced_shape(x.shape, axis, keepdims, f"nan{name}"),
            np.dtype(np.intp),
        ),
        batch=flattened,
        doc=f"Return the {name} of the elements that are not nan.",
    )


_nanargmax = _nan_position("argmax", -float("inf"))
_nanargmin = _nan_position("argmin", float("inf"))


@named
def nanargmax(x: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return the index of the largest element that is not nan; it has no gradient.

    Parameters
    ----------
    x
        A real tensor.
    axis
        The axis to search along; by default the index is that in the flattened tensor.
    keepdims
        Leave the axis in the result, with size 1.

    Returns
    -------
    An integer tensor of the shape of ``x`` without the axis; the first index if several tie.

    Raises
    ------
    ValueError
        If all of the elements to choose from are nan, or there are none.
    numpy.exceptions.AxisError
        If the axis is out of bounds.
    TypeError
        If ``axis`` is neither None nor one integer.

    Examples
    --------
    >>> gt.nanargmax(gt.constant([np.nan, 2.0, 3.0])).item()
    2
    """
    x = as_tensor(x)
    along = None if axis is None else one_axis(axis, "nanargmax")
    known = ops["argmax"] if x.dtype.kind != "f" else _nanargmax
    return known(x, axis=along, keepdims=bool(keepdims))


@named
def nanargmin(x: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return the index of the smallest element that is not nan; it has no gradient.

    Parameters
    ----------
    x
        A real tensor.
    axis
        The axis to search along; by default the index is that in the flattened tensor.
    keepdims
        Leave the axis in the result, with size 1.

    Returns
    -------
    An integer tensor of the shape of ``x`` without the axis; the first index if several tie.

    Raises
    ------
    ValueError
        If all of the elements to choose from are nan, or there are none.
    numpy.exceptions.AxisError
        If the axis is out of bounds.
    TypeError
        If ``axis`` is neither None nor one integer.

    Examples
    --------
    >>> gt.nanargmin(gt.constant([np.nan, 2.0, 3.0])).item()
    1
    """
    x = as_tensor(x)
    along = None if axis is None else one_axis(axis, "nanargmin")
    known = ops["argmin"] if x.dtype.kind != "f" else _nanargmin
    return known(x, axis=along, keepdims=bool(keepdims))


def _count(missing: Any, like: Any, axis: Axis, keepdims: bool) -> Any:
    """Return how many are not missing, in the real dtype of ``like``."""
    present = ops["cast"](ops["logical_not"](missing), dtype=_real_name(like.dtype))
    return ops["sum"](present, axis=axis, keepdims=keepdims)


def _real_name(dtype: Any) -> str:
    name = np.empty(0, dtype).real.dtype.name
    return "float32" if name == "float16" else name  # counts above 65504 are infinite in that


def _present(missing: Any, filled: Any, where: Any, name: str) -> Any:
    """Return which elements count, of those that are not nan."""
    present, kept = ops["logical_not"](missing), kept_by(filled, where, name)
    return present if kept is None else ops["logical_and"](present, kept)


def _check_inexact(dtype: Any) -> None:
    if dtype is not None and as_dtype(dtype).kind not in "fc":
        raise TypeError(f"of floating numbers the dtype must be one, too, got {as_dtype(dtype)}")


@named
def nanmean(
    x: Any, axis: Any = None, keepdims: bool = False, *, dtype: Any = None, where: Any = None
) -> Tensor:
    """Return the average of the elements that are not nan, nan if there are none.

    Parameters
    ----------
    x
        A tensor of any shape and dtype.
    axis
        The axis or axes to average over; all by default.
    keepdims
        Leave the axes in the result, with size 1.
    dtype
        The dtype of the result, in which the mean is computed.
    where
        Which elements count: booleans that broadcast to the shape of ``x``; all by default.

    Returns
    -------
    A tensor of the shape of ``x`` without the axes, of the dtype of ``x``; ``float64`` for
    integers.

    Raises
    ------
    TypeError
        If ``x`` is floating or complex, and ``dtype`` neither.
    numpy.exceptions.AxisError
        If an axis is out of bounds.
    ValueError
        If an axis is given twice, or ``where`` does not broadcast to the shape of ``x``.

    Notes
    -----
    Elements that are nan have the gradient 0.

    Examples
    --------
    >>> gt.nanmean(gt.constant([1.0, np.nan, 4.0])).item()
    2.5
    """
    missing, filled = _skipping(x, 0.0)
    if missing is None:
        return reductions.mean(filled, axis, keepdims, dtype=dtype, where=where)
    _check_inexact(dtype)
    kept = _present(missing, filled, where, "nanmean")
    return reductions.mean(filled, axis, keepdims, dtype=dtype, where=kept)


@named
def nanvar(
    x: Any,
    axis: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    dtype: Any = None,
    where: Any = None,
    mean: Any = None,
) -> Tensor:
    """Return the variance of the elements that are not nan; as :func:`gradtape.var`.

    Parameters
    ----------
    x
        A tensor of any shape and dtype.
    axis
        The axis or axes to reduce; all by default.
    ddof
        The sum of squares is divided by ``n - ddof``, for ``n`` elements that are not nan; 0 by
        default.
    keepdims
        Leave the axes in the result, with size 1.
    dtype
        The dtype to compute in.
    where
        Which elements count: booleans that broadcast to the shape of ``x``; all by default.
    mean
        The mean, of a shape that broadcasts with ``x``, if it is known already. Gradients reach it.

    Returns
    -------
    A tensor of the shape of ``x`` without the axes, of the real dtype of ``x``; ``float64`` for
    integers. It is nan where there are no more than ``ddof`` elements.

    Raises
    ------
    TypeError
        If ``x`` is floating or complex, and ``dtype`` neither.
    numpy.exceptions.AxisError
        If an axis is out of bounds.
    ValueError
        If an axis is given twice, or ``where`` does not broadcast to the shape of ``x``.

    Examples
    --------
    >>> gt.nanvar(gt.constant([1.0, np.nan, 3.0])).item()
    1.0
    """
    along, options = as_axis(axis, "nanvar"), {"dtype": dtype, "mean": mean}
    missing, filled = _skipping(x, 0.0)
    if missing is None:
        return reductions.var(filled, along, ddof, keepdims, where=where, **options)
    _check_inexact(dtype)
    kept = _present(missing, filled, where, "nanvar")
    variance = reductions.var(filled, along, ddof, keepdims, where=kept, **options)
    enough = ops["count_nonzero"](kept, axis=along, keepdims=bool(keepdims)) > ddof
    return ops["where"](enough, variance, float("nan"))


@named
def nanstd(
    x: Any,
    axis: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    dtype: Any = None,
    where: Any = None,
    mean: Any = None,
) -> Tensor:
    """Return the standard deviation of the elements that are not nan; as :func:`gradtape.std`.

    Parameters
    ----------
    x
        A tensor of any shape and dtype.
    axis
        The axis or axes to reduce; all by default.
    ddof
        The sum of squares is divided by ``n - ddof``, for ``n`` elements that are not nan; 0 by
        default.
    keepdims
        Leave the axes in the result, with size 1.
    dtype
        The dtype to compute in.
    where
        Which elements count: booleans that broadcast to the shape of ``x``; all by default.
    mean
        The mean, of a shape that broadcasts with ``x``, if it is known already. Gradients reach it.

    Returns
    -------
    A tensor of the shape of ``x`` without the axes, of the real dtype of ``x``; ``float64`` for
    integers. It is nan where there are no more than ``ddof`` elements.

    Raises
    ------
    TypeError
        If ``x`` is floating or complex, and ``dtype`` neither.
    numpy.exceptions.AxisError
        If an axis is out of bounds.
    ValueError
        If an axis is given twice, or ``where`` does not broadcast to the shape of ``x``.

    Notes
    -----
    Where all elements are equal the gradient is 0, a subgradient.

    Examples
    --------
    >>> gt.nanstd(gt.constant([1.0, np.nan, 5.0])).item()
    2.0
    """
    variance = nanvar(x, axis, ddof, keepdims, dtype=dtype, where=where, mean=mean)
    return reductions.root_of_variance(variance)


def _nan_places(q: Any, count: Any, method: str) -> Any:
    """Return the places of quantiles among ``count`` sorted elements.

    Hyndman and Fan, "Sample quantiles in statistical packages" (1996), as NumPy reads it.
    """
    if method == "linear":
        return ops["maximum"](count - 1, 0) * beside(np.atleast_1d(q).astype(count.dtype), count)
    n, q = ops["cast"](count, dtype="float64"), beside(np.atleast_1d(q), count)
    steps, floor, ceil = (n - 1) * q, ops["floor"], ops["ceil"]
    if method in _BETWEEN:
        alpha, beta = _BETWEEN[method]
        place = n * q + (alpha + q * (1 - alpha - beta)) - 1
    elif method == "lower":
        place = floor(steps)
    elif method == "higher":
        place = ceil(steps)
    elif method == "midpoint":
        place = (floor(steps) + ceil(steps)) * 0.5
    elif method == "nearest":
        place = ops["round"](steps)
    elif method == "closest_observation":
        place = n * q - 1.5
        low = floor(place)
        even = ops["logical_and"](place == low, ops["remainder"](low, 2) == 1)
        place = ops["where"](even, low, low + 1)
    else:
        place = n * q - 1
        half = 0.5 if method == "averaged_inverted_cdf" else 0.0
        place = ops["where"](place == floor(place), place + half, ceil(place))
    return ops["maximum"](ops["minimum"](place, n - 1), 0)


# methods that interpolate, by the alpha and beta of Hyndman and Fan
_BETWEEN = {
    "interpolated_inverted_cdf": (0, 1),
    "hazen": (0.5, 0.5),
    "weibull": (0, 0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}


def _nan_quantiles(
    x: Any, q: Any, axis: Axis, keepdims: bool, name: str, method: str = "linear"
) -> Any:
    x = as_tensor(x)
    places_among(1, 0.5, method)  # which knows the methods' names
    if x.dtype.kind not in "fc":
        return quantiles(x, q, axis, keepdims, name, method)
    if x.dtype.kind == "c" and name != "nanmedian":
        raise TypeError(f"{name}: complex numbers have no order, got dtype {x.dtype}")
    if q.ndim > 1:
        rows = [_nan_quantiles(x, row, axis, keepdims, name, method) for row in q]
        return ops["stack"](*rows, axis=0)
    lines, axis = as_lines(x, axis, name)
    if lines.shape is not None and lines.shape[-1] == 0:
        if q.ndim:
            raise ValueError(f"{name}: there are no elements, got shape {x.shape}")
        return ops["mean"](x, axis=axis, keepdims=keepdims)  # nan, as for a mean
    lines = sort(lines, axis=-1)  # nan last
    count = _count(ops["isnan"](lines), lines, -1, True)
    place = _nan_places(q, count, method)
    lower, upper = (ops["cast"](ops[f](place), dtype="int64") for f in ("floor", "ceil"))
    below, above = (take_along_axis(lines, i, -1) for i in (lower, upper))
    result = between(below, above, like_float(place - ops["floor"](place), lines))
    if q.ndim:
        result = ops["moveaxis"](result, source=(-1,), destination=(0,))
    else:
        result = ops["squeeze"](result, axis=-1)
    return with_kept_axes(result, x, axis, q.ndim, name) if keepdims else result


@named
def nanmedian(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the median of the elements that are not nan, nan if there are none.

    Parameters
    ----------
    x
        A tensor; complex numbers are in the order of their real parts, then imaginary parts.
    axis
        The axis or axes to reduce; all by default.
    keepdims
        Leave the axes in the result, with size 1.

    Returns
    -------
    A tensor of the shape of ``x`` without the axes, of the dtype of ``x``; ``float64`` for
    integers.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of bounds.

    Notes
    -----
    Gradients go to the element in the middle, or half to each of the two in the middle.

    Examples
    --------
    >>> gt.nanmedian(gt.constant([5.0, np.nan, 1.0, 2.0])).item()
    2.0
    """
    return _nan_quantiles(x, np.asarray(0.5), as_axis(axis, "nanmedian"), keepdims, "nanmedian")


@named
def nanquantile(
    x: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False
) -> Tensor:
    """Return the values below which fractions ``q`` of the elements that are not nan are.

    Parameters
    ----------
    x
        A real tensor.
    q
        A number from 0 to 1, or an array of them, of known value. It gets no gradient.
    axis
        The axis or axes to reduce; all by default.
    method
        How to choose between two elements, by NumPy's names; see :func:`quantile`.
    keepdims
        Leave the axes in the result, with size 1.

    Returns
    -------
    A tensor of the dtype of ``x``, ``float64`` for integers; the axes of ``q`` come first. It is
    nan where all elements are nan.

    Raises
    ------
    ValueError
        If ``q`` is out of range, the method is unknown, or there are no elements for several ``q``.
    TypeError
        If ``x`` is complex.
    numpy.exceptions.AxisError
        If an axis is out of bounds.

    References
    ----------
    Hyndman and Fan, "Sample quantiles in statistical packages", The American Statistician 50, 1996.

    Examples
    --------
    >>> gt.nanquantile(gt.constant([0.0, np.nan, 2.0, 4.0]), 0.25).item()
    1.0
    """
    values = fractions(q, "nanquantile")
    return _nan_quantiles(x, values, as_axis(axis, "nanquantile"), keepdims, "nanquantile", method)


@named
def nanpercentile(
    x: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False
) -> Tensor:
    """Return the values below which ``q`` percent of the elements that are not nan are.

    Parameters
    ----------
    x
        A real tensor.
    q
        A number from 0 to 100, or an array of them, of known value. It gets no gradient.
    axis
        The axis or axes to reduce; all by default.
    method
        How to choose between two elements, by NumPy's names; see :func:`quantile`.
    keepdims
        Leave the axes in the result, with size 1.

    Returns
    -------
    A tensor of the dtype of ``x``, ``float64`` for integers; the axes of ``q`` come first. It is
    nan where all elements are nan.

    Raises
    ------
    ValueError
        If ``q`` is out of range, the method is unknown, or there are no elements for several ``q``.
    TypeError
        If ``x`` is complex.
    numpy.exceptions.AxisError
        If an axis is out of bounds.

    References
    ----------
    Hyndman and Fan, "Sample quantiles in statistical packages", The American Statistician 50, 1996.

    Examples
    --------
    >>> gt.nanpercentile(gt.constant([0.0, np.nan, 2.0, 4.0]), [50, 100]).tolist()
    [2.0, 4.0]
    """
    values = fractions(q, "nanpercentile", 100.0)
    along = as_axis(axis, "nanpercentile")
    return _nan_quantiles(x, values, along, keepdims, "nanpercentile", method)
