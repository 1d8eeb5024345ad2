"""Quantiles that skip nan, which has no gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.extend import Tensor, on_device_of, ops
from ..common.axes import Axis, as_axis
from ..common.dynamic_shapes import empty, known_rank
from ..common.op_builders import named
from ..indexing.sorting import sort
from ..indexing.take import take_along_axis
from .quantiles import (
    HALF,
    INTERPOLATING,
    Fractions,
    as_lines,
    between,
    checked,
    checked_kind,
    middle,
    neighbours,
    place_between,
    quantiles,
    with_kept_axes,
    with_nan_for_nothing,
)


def _count(missing: Any, like: Any, axis: Axis, keepdims: bool) -> Any:
    """Return how many elements are not missing, in the real dtype of ``like``."""
    present = ops["cast"](ops["logical_not"](missing), dtype=_real_name(like.dtype))
    return ops["sum"](present, axis=axis, keepdims=keepdims)


def _real_name(dtype: Any) -> str:
    name = np.empty(0, dtype).real.dtype.name
    return "float32" if name == "float16" else name  # counts above 65504 are infinite in that


def _nan_places(q: Any, count: Any, method: str) -> Any:
    """Return the positions of quantiles among ``count`` sorted elements.

    Hyndman and Fan, "Sample quantiles in statistical packages" (1996), as NumPy implements it.
    """
    steps, floor, ceil = (count - 1) * q, ops["floor"], ops["ceil"]
    if method in INTERPOLATING:
        return place_between(count, q, method)
    if method == "linear":
        place = steps
    elif method == "lower":
        place = floor(steps)
    elif method == "higher":
        place = ceil(steps)
    elif method == "midpoint":
        place = (floor(steps) + ceil(steps)) * 0.5
    elif method == "nearest":
        place = ops["round"](steps)
    elif method == "closest_observation":
        place = count * q - 1.5
        low = floor(place)
        even = ops["logical_and"](place == low, ops["remainder"](low, 2) == 1)
        place = ops["where"](even, low, low + 1)
    else:
        place = count * q - 1
        half = 0.5 if method == "averaged_inverted_cdf" else 0.0
        place = ops["where"](place == floor(place), place + half, ceil(place))
    return ops["maximum"](ops["minimum"](place, count - 1), 0)


def _nan_quantiles(
    x: Any, q: Fractions, axis: Axis, keepdims: bool, name: str, method: str = "linear"
) -> Any:
    x = checked(x, method, name)
    if empty(x.shape):
        return _of_nothing(ops["mean"](x, axis=axis, keepdims=keepdims), q)
    if x.dtype.kind not in "fc":
        return quantiles(x, q, axis, keepdims, name, method)
    dtype = q.result_dtype(x.dtype, method)
    lines, axis = as_lines(x, axis, name)
    lines = sort(with_nan_for_nothing(lines), axis=-1)  # nan last
    count = _count(ops["isnan"](lines), lines, -1, True)
    moves = q.moves(method)
    at = ops["cast"](q.moving, dtype="float64") if moves else on_device_of(q.values, lines)
    count = ops["cast"](count, dtype="float64")
    place = _nan_places(ops["reshape"](on_device_of(at, count), shape=(-1,)), count, method)
    lower, upper = ops["floor"](place), ops["ceil"](place)
    if moves:
        lower, upper = neighbours(place, count - 1)
    below, above = (
        take_along_axis(lines, ops["cast"](i, dtype="int64"), -1) for i in (lower, upper)
    )
    if name == "nanmedian":
        result = middle(below, above, dtype)
    else:
        result = between(below, above, place - lower, dtype)
    if q.ndim == 0:
        result = ops["squeeze"](result, axis=-1)
    else:
        result = ops["moveaxis"](result, source=(-1,), destination=(0,))
    if q.ndim == 2:
        rows, size = q.values.shape
        result = ops["stack"](*(result[i * size : (i + 1) * size] for i in range(rows)), axis=0)
    return with_kept_axes(result, x, axis, q.ndim, name) if keepdims else result


def _of_nothing(mean: Any, q: Fractions) -> Any:
    """Return nan, as for the mean of no elements, for each of the fractions."""
    if not q.ndim:
        return mean
    zeros = np.zeros((*q.values.shape, *[1] * known_rank(mean, "nanquantile")), mean.dtype)
    return mean + on_device_of(zeros, mean)


@named
def nanmedian(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the median of the elements that are not nan, nan if there are none.

    Parameters
    ----------
    x
        A tensor; complex numbers are in the order of their real parts, then imaginary parts.

    Returns
    -------
    A tensor of the shape of ``x`` without the axes, of the dtype of ``x``; ``float64`` for
    integers.

    Notes
    -----
    Gradients go to the middle element, or half to each of the two middle elements.

    Examples
    --------
    >>> gt.nanmedian(gt.constant([5.0, np.nan, 1.0, 2.0])).item()
    2.0
    """
    return _nan_quantiles(x, HALF, as_axis(axis, "nanmedian"), keepdims, "nanmedian")


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
        A number from 0 to 1, or an array of them, of known value. A tensor gets gradients if the
        method interpolates.
    method
        How to choose between two elements, by NumPy's names; see :func:`quantile`.

    Returns
    -------
    A tensor of the dtype of ``x``, ``float64`` for integers; an array ``q`` (not a number or list)
    promotes it. The axes of ``q`` come first. It is nan where all elements are nan, or there are
    none.

    Raises
    ------
    ValueError
        If ``q`` is out of range or has more than two axes, or the method is unknown.
    TypeError
        If ``x`` is complex, or boolean and the method interpolates, or ``q`` is not real.

    References
    ----------
    Hyndman and Fan, "Sample quantiles in statistical packages", The American Statistician 50, 1996.

    Examples
    --------
    >>> gt.nanquantile(gt.constant([0.0, np.nan, 2.0, 4.0]), 0.25).item()
    1.0
    """
    along = as_axis(axis, "nanquantile")
    x = checked_kind(x, "nanquantile")
    return _nan_quantiles(x, Fractions(q, "nanquantile"), along, keepdims, "nanquantile", method)


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
        A number from 0 to 100, or an array of them, of known value. A tensor gets gradients if the
        method interpolates.
    method
        How to choose between two elements, by NumPy's names; see :func:`quantile`.

    Returns
    -------
    A tensor of the dtype of ``x``, ``float64`` for integers; a ``q`` that is an array, and no
    number or list, promotes it. The axes of ``q`` come first. It is nan where all elements are nan,
    or there are none.

    Raises
    ------
    ValueError
        If ``q`` is out of range or has more than two axes, or the method is unknown.
    TypeError
        If ``x`` is complex, or boolean and the method interpolates, or ``q`` is not real.

    References
    ----------
    Hyndman and Fan, "Sample quantiles in statistical packages", The American Statistician 50, 1996.

    Examples
    --------
    >>> gt.nanpercentile(gt.constant([0.0, np.nan, 2.0, 4.0]), [50, 100]).tolist()
    [2.0, 4.0]
    """
    x = checked_kind(x, "nanpercentile")
    values = Fractions(q, "nanpercentile", 100.0)
    along = as_axis(axis, "nanpercentile")
    return _nan_quantiles(x, values, along, keepdims, "nanpercentile", method)
