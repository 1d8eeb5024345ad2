"""Medians and quantiles, made of other ops.

Their gradients go to the elements that they were interpolated from.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ....core.extend import NONDIFF, Operators, Tensor, as_tensor, beside, ops
from ..common.axes import Axis, as_axis, reduced_axes
from ..common.batching import shape_only
from ..common.op_builders import named, op
from ..common.ranks import known_rank
from ..indexing.sorting import sort
from ..shapes.reshaping import flatten_last

__all__ = ["median", "percentile", "quantile"]


@lru_cache(maxsize=1024)
def places_among(size: int, q: Any, method: str) -> Any:
    """Return the places, in ``size`` sorted elements, from which quantiles are taken.

    NumPy's own rule for every method, read off from numbers that are their own places.
    """
    if size == 0:
        raise ValueError("a quantile of no elements is not defined")
    numbers = np.arange(float(size))
    return np.asarray(np.quantile(numbers, np.asarray(q), method=method))  # type: ignore[call-overload]


_rank = op(
    "quantile_rank",
    lambda xp, x, *, q, method="linear": xp.asarray(
        places_among(x.shape[-1], q, method), dtype=xp.float64
    ),
    gradients={"x": NONDIFF},
    infer=lambda x, q, method: (np.shape(q), np.dtype(np.float64)),
    batch=shape_only,
    doc="Return the places, in the sorted last axis of ``x``, from which quantiles are taken.",
)


def as_lines(x: Any, axis: Axis, name: str) -> tuple[Any, Axis]:
    """Return ``x`` with the axes to reduce as its last one, and these axes."""
    if axis is None:
        return ops["reshape"](x, shape=(-1,)), None
    axes = axis if isinstance(axis, tuple) else (axis,)
    if x.shape is not None:
        reduced_axes(axes, len(x.shape), name)
    if axes != (-1,):
        x = ops["moveaxis"](x, source=axes, destination=tuple(range(-len(axes), 0)))
    return (x if len(axes) == 1 else flatten_last(x, count=len(axes))), axis


def with_kept_axes(result: Any, x: Any, axis: Axis, extra: int, name: str) -> Any:
    """Put back the axes that were reduced, with size 1; ``extra`` new ones come first."""
    if axis is not None:
        axes = axis if isinstance(axis, tuple) else (axis,)
        places = tuple(n + extra if n >= 0 else n for n in axes)
    else:
        places = tuple(range(extra, extra + known_rank(x, name)))
    return ops["expand_dims"](result, axis=places) if places else result


def fractions(q: Any, name: str, scale: float = 1.0) -> Any:
    values = np.asarray(q, np.float64) / scale
    if not ((values >= 0.0) & (values <= 1.0)).all():
        what = "Percentiles" if scale != 1.0 else "Quantiles"
        raise ValueError(f"{name}: {what.lower()} must be in the range [0, {scale:g}], got {q!r}")
    return values


#: Methods that interpolate, by the alpha and beta of Hyndman and Fan
INTERPOLATING = {
    "interpolated_inverted_cdf": (0, 1),
    "hazen": (0.5, 0.5),
    "weibull": (0, 0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}


def place_between(size: Any, q: Any, method: str) -> Any:
    """Return where, from 0, a method that interpolates looks among so many elements."""
    alpha, beta = INTERPOLATING[method]
    place = size * q + (alpha + q * (1 - alpha - beta)) - 1
    return ops["maximum"](ops["minimum"](place, size - 1), 0)


def neighbours(place: Any, last: Any) -> tuple[Any, Any]:
    """Return the places of the elements around a place; of an element itself, and the next one.

    So the slope on an element is that towards the next one.
    """
    lower = ops["maximum"](ops["minimum"](ops["floor"](place), last - 1), 0)
    return lower, ops["maximum"](ops["minimum"](lower + 1, last), 0)


def _slid(lines: Any, moving: Any, method: str) -> Any:
    """Return quantiles of sorted lines, for fractions that are a tensor and get gradients."""
    size = ops["size_over"](ops["cast"](lines, dtype="float64"), axis=-1)
    steps, q = size - 1, ops["cast"](moving, dtype="float64")
    place = q * steps
    if method in INTERPOLATING:
        place = place_between(size, q, method)
    lower, upper = neighbours(place, steps)
    share = like_float(place - lower, lines)
    below, above = (_element(lines, ops["cast"](i, dtype="int64")) for i in (lower, upper))
    return between(below, above, share)


def _picked(lines: Any, q: Any, method: str, halves: bool) -> Any:
    """Return quantiles of sorted lines: elements, or what is between two of them."""
    size = None if lines.shape is None else lines.shape[-1]
    if size is None:
        place = _rank(lines, q=q, method=method)
        lower, upper = (ops["cast"](ops[f](place), dtype="int64") for f in ("floor", "ceil"))
        share = place - ops["floor"](place)
    else:
        known = places_among(size, q, method)
        lower, upper = (f(known).astype(np.int64) for f in (np.floor, np.ceil))
        if (lower == upper).all():
            element = _element(lines, lower)
            exact = method in _DISCRETE or lines.dtype.kind in "fc"
            return element if exact else ops["cast"](element, dtype="float64")
        share = beside(known - lower, lines) if known.ndim else float(known - lower)
    below, above = (_element(lines, i) for i in (lower, upper))
    if method in _DISCRETE:
        return below
    if halves:
        return (below + above) * 0.5
    if type(share) is not float:
        share = like_float(share, lines)
    return between(below, above, share)


def between(below: Any, above: Any, share: Any) -> Any:
    """Return what lies between two elements, an element itself where it is infinite."""
    step = (above - below) * share
    if step.dtype.kind in "fc":  # an infinite gap times 0, or one between equal infinities
        step = ops["where"](ops["isnan"](step), 0.0, step)
    return below + step


def _element(lines: Any, place: Any) -> Any:
    """Return the elements of lines at places; one place is quicker as a plain index."""
    if isinstance(place, np.ndarray) and not place.ndim:
        return lines[..., int(place)]
    return ops["take"](lines, beside(place, lines), axis=-1)


def like_float(x: Any, like: Any) -> Any:
    return ops["cast_like"](x, like) if like.dtype.kind in "fc" else x


def quantiles(
    x: Any,
    q: Any,
    axis: Axis,
    keepdims: bool,
    name: str,
    method: str,
    halves: bool = False,
    moving: Any = None,
) -> Any:
    x = as_tensor(x)
    if x.dtype.kind == "c" and "median" not in name:  # which sorts them by real, then imaginary
        raise TypeError(f"{name}: complex numbers have no order, got dtype {x.dtype}")
    lines, axis = as_lines(x, axis, name)
    if lines.shape is not None and lines.shape[-1] == 0:
        if not halves:
            raise ValueError(f"{name}: there are no elements, got shape {x.shape}")
        return ops["mean"](x, axis=axis, keepdims=keepdims)  # nan, as for a mean
    lines = sort(lines, axis=-1)
    if moving is None or method not in ("linear", *INTERPOLATING):  # the others jump
        result = _picked(lines, _nested(q), method, halves)
    else:
        result = _slid(lines, moving, method)
    if x.dtype.kind in "fc":  # nan is sorted to the end, and makes every quantile nan
        last = _element(lines, np.full((1,) * q.ndim, -1))
        result = ops["where"](ops["isnan"](last), last, result)
    if q.ndim:
        places = tuple(range(q.ndim))
        result = ops["moveaxis"](
            result, source=tuple(n - q.ndim for n in places), destination=places
        )
    return with_kept_axes(result, x, axis, q.ndim, name) if keepdims else result


_DISCRETE = ("lower", "higher", "nearest", "inverted_cdf", "closest_observation")


def _nested(q: Any) -> Any:
    return tuple(_nested(row) for row in q) if q.ndim else q.item()


@named
def median(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the median: the middle element, or the mean of the two in the middle.

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
    integers. It is nan if there is nan, or nothing.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of bounds.
    ValueError
        If an axis is given twice.

    Notes
    -----
    Gradients go to the element in the middle, or half to each of the two in the middle.

    Examples
    --------
    >>> gt.median(gt.constant([7.0, 1.0, 3.0])).item()
    3.0
    >>> gt.median(gt.constant([[4, 1], [2, 8]]), axis=0).tolist()
    [3.0, 4.5]
    """
    half = np.asarray(0.5)
    return quantiles(x, half, as_axis(axis, "median"), keepdims, "median", "linear", halves=True)


@named
def quantile(
    x: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False
) -> Tensor:
    """Return the values below which fractions ``q`` of the elements are.

    Parameters
    ----------
    x
        A real tensor.
    q
        A number from 0 to 1, or an array of them, of known value. Gradients reach a tensor, with
        the method ``"linear"``.
    axis
        The axis or axes to reduce; all by default.
    method
        How to choose between two elements, by NumPy's names: ``"linear"`` (the default),
        ``"lower"``, ``"higher"``, ``"midpoint"``, ``"nearest"``, and the nine of Hyndman and Fan,
        which are ``"inverted_cdf"``, ``"averaged_inverted_cdf"``, ``"closest_observation"``,
        ``"interpolated_inverted_cdf"``, ``"hazen"``, ``"weibull"``, ``"linear"``,
        ``"median_unbiased"`` and ``"normal_unbiased"``.
    keepdims
        Leave the axes in the result, with size 1.

    Returns
    -------
    A tensor of the dtype of ``x``; of integers ``float64``, but an element itself by a method that
    does not interpolate. The axes of ``q`` come first. It is nan if there is nan.

    Raises
    ------
    ValueError
        If ``q`` is out of range, the method is unknown, or there are no elements.
    TypeError
        If ``x`` is complex.
    numpy.exceptions.AxisError
        If an axis is out of bounds.

    Notes
    -----
    Gradients go to the elements that a quantile is interpolated from. With respect to ``q`` the
    slope on an element is that towards the next one.

    References
    ----------
    Hyndman and Fan, "Sample quantiles in statistical packages", The American Statistician 50, 1996.

    Examples
    --------
    >>> gt.quantile(gt.constant([0.0, 2.0, 4.0]), 0.25).item()
    1.0
    >>> gt.quantile(gt.constant([0.0, 2.0, 4.0]), [0.5, 1.0]).tolist()
    [2.0, 4.0]
    """
    values, along = fractions(q, "quantile"), as_axis(axis, "quantile")
    moving = q if isinstance(q, Operators) else None
    return quantiles(x, values, along, keepdims, "quantile", method, moving=moving)


@named
def percentile(
    x: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False
) -> Tensor:
    """Return the values below which ``q`` percent of the elements are.

    Parameters
    ----------
    x
        A real tensor.
    q
        A number from 0 to 100, or an array of them, of known value. Gradients reach a tensor, with
        the method ``"linear"``.
    axis
        The axis or axes to reduce; all by default.
    method
        How to choose between two elements, by NumPy's names; see :func:`quantile`.
    keepdims
        Leave the axes in the result, with size 1.

    Returns
    -------
    A tensor of the dtype of ``x``; of integers ``float64``, but an element itself by a method that
    does not interpolate. The axes of ``q`` come first. It is nan if there is nan.

    Raises
    ------
    ValueError
        If ``q`` is out of range, the method is unknown, or there are no elements.
    TypeError
        If ``x`` is complex.
    numpy.exceptions.AxisError
        If an axis is out of bounds.

    References
    ----------
    Hyndman and Fan, "Sample quantiles in statistical packages", The American Statistician 50, 1996.

    Examples
    --------
    >>> gt.percentile(gt.constant([0.0, 2.0, 4.0]), 75).item()
    3.0
    """
    values, along = fractions(q, "percentile", 100.0), as_axis(axis, "percentile")
    moving = q / 100.0 if isinstance(q, Operators) else None
    return quantiles(x, values, along, keepdims, "percentile", method, moving=moving)
