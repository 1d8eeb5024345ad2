"""Quantiles that skip nan, which has no gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.extend import Operators, Tensor, as_tensor, beside, ops
from ..common.axes import Axis, as_axis
from ..common.op_builders import named
from ..common.ranks import as_vector
from ..indexing.sorting import sort
from ..indexing.take import take_along_axis
from .quantiles import (
    INTERPOLATING,
    as_lines,
    between,
    fractions,
    like_float,
    neighbours,
    place_between,
    places_among,
    quantiles,
    with_kept_axes,
)

__all__ = ["nanmedian", "nanpercentile", "nanquantile"]


def _count(missing: Any, like: Any, axis: Axis, keepdims: bool) -> Any:
    """Return how many are not missing, in the real dtype of ``like``."""
    present = ops["cast"](ops["logical_not"](missing), dtype=_real_name(like.dtype))
    return ops["sum"](present, axis=axis, keepdims=keepdims)


def _real_name(dtype: Any) -> str:
    name = np.empty(0, dtype).real.dtype.name
    return "float32" if name == "float16" else name  # counts above 65504 are infinite in that


def _nan_places(q: Any, count: Any, method: str) -> Any:
    """Return the places of quantiles among ``count`` sorted elements.

    Hyndman and Fan, "Sample quantiles in statistical packages" (1996), as NumPy reads it.
    """
    if method == "linear":
        return ops["maximum"](count - 1, 0) * ops["cast_like"](q, count)
    n = ops["cast"](count, dtype="float64")
    steps, floor, ceil = (n - 1) * q, ops["floor"], ops["ceil"]
    if method in INTERPOLATING:
        return place_between(n, q, method)
    if method == "lower":
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


def _nan_quantiles(
    x: Any,
    q: Any,
    axis: Axis,
    keepdims: bool,
    name: str,
    method: str = "linear",
    moving: Any = None,
) -> Any:
    x = as_tensor(x)
    places_among(1, 0.5, method)  # which knows the methods' names
    if x.dtype.kind not in "fc":
        return quantiles(x, q, axis, keepdims, name, method, moving=moving)
    if x.dtype.kind == "c" and name != "nanmedian":
        raise TypeError(f"{name}: complex numbers have no order, got dtype {x.dtype}")
    if q.ndim > 1:
        parts = [None if moving is None else moving[i] for i in range(len(q))]
        rows = [
            _nan_quantiles(x, row, axis, keepdims, name, method, part)
            for row, part in zip(q, parts, strict=True)
        ]
        return ops["stack"](*rows, axis=0)
    lines, axis = as_lines(x, axis, name)
    if lines.shape is not None and lines.shape[-1] == 0:
        if q.ndim:
            raise ValueError(f"{name}: there are no elements, got shape {x.shape}")
        return ops["mean"](x, axis=axis, keepdims=keepdims)  # nan, as for a mean
    lines = sort(lines, axis=-1)  # nan last
    count = _count(ops["isnan"](lines), lines, -1, True)
    known = beside(np.atleast_1d(q), count)
    place = _nan_places(known if moving is None else as_vector(moving), count, method)
    around = ops["floor"](place), ops["ceil"](place)
    if moving is not None and method in ("linear", *INTERPOLATING):  # the others jump
        around = neighbours(place, count - 1)
    below, above = (take_along_axis(lines, ops["cast"](i, dtype="int64"), -1) for i in around)
    result = between(below, above, like_float(place - around[0], lines))
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
        A number from 0 to 1, or an array of them, of known value. A tensor gets gradients, where
        the method interpolates.
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
    along = as_axis(axis, "nanquantile")
    moving = q if isinstance(q, Operators) else None
    return _nan_quantiles(x, values, along, keepdims, "nanquantile", method, moving)


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
        A number from 0 to 100, or an array of them, of known value. A tensor gets gradients, where
        the method interpolates.
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
    moving = q / 100.0 if isinstance(q, Operators) else None
    return _nan_quantiles(x, values, along, keepdims, "nanpercentile", method, moving)
