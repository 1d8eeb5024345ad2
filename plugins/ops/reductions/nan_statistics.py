"""Reductions and order statistics that skip nan, which has no gradient; made of other ops."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.base.dtypes import as_dtype
from ....core.extend import NONDIFF, ops
from ....core.tensors.convert import as_tensor, beside
from ....core.tensors.tensor import Tensor
from ..common.batching import flattened
from ..common.families import Axis, as_axis, named, op, reduced_shape
from ..indexing.indexing import sort, take_along_axis
from ..shapes.shape import one_axis
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
    """Sum the elements that are not nan; as :func:`gradtape.sum`."""
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
    """Multiply the elements that are not nan; as :func:`gradtape.prod`."""
    _, filled = _skipping(x, 1.0)
    return reductions.prod(filled, axis, keepdims, dtype=dtype, initial=initial, where=where)


@named
def nancumsum(x: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Return the running sum, nan taken as 0; as :func:`gradtape.cumsum`."""
    return cumsum(_skipping(x, 0.0)[1], axis, dtype)


@named
def nancumprod(x: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Return the running product, nan taken as 1; as :func:`gradtape.cumprod`."""
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
    """Return the largest element that is not nan, nan if there is none; as :func:`gradtape.max`."""
    return _nan_extreme("max", x, axis, keepdims, -float("inf"), initial, where)


@named
def nanmin(
    x: Any, axis: Any = None, keepdims: bool = False, *, initial: Any = None, where: Any = None
) -> Tensor:
    """Return the smallest element that is not nan, nan if there is none; as
    :func:`gradtape.min`.
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

    Raises
    ------
    ValueError
        If all of the elements to choose from are nan.
    """
    x = as_tensor(x)
    along = None if axis is None else one_axis(axis, "nanargmax")
    known = ops["argmax"] if x.dtype.kind != "f" else _nanargmax
    return known(x, axis=along, keepdims=bool(keepdims))


@named
def nanargmin(x: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return the index of the smallest element that is not nan; as :func:`nanargmax`."""
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
    """Average the elements that are not nan, nan if there are none; as :func:`gradtape.mean`.

    Raises
    ------
    TypeError
        If ``x`` is floating or complex, and ``dtype`` neither.
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

    It is nan where there are no more than ``ddof`` of them.

    Raises
    ------
    TypeError
        If ``x`` is floating or complex, and ``dtype`` neither.
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
    """Return the standard deviation of the elements that are not nan; as :func:`gradtape.std`."""
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
    """Return the median of the elements that are not nan; as :func:`median`."""
    return _nan_quantiles(x, np.asarray(0.5), as_axis(axis, "nanmedian"), keepdims, "nanmedian")


@named
def nanquantile(
    x: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False
) -> Tensor:
    """Return quantiles of the elements that are not nan; as :func:`quantile`."""
    values = fractions(q, "nanquantile")
    return _nan_quantiles(x, values, as_axis(axis, "nanquantile"), keepdims, "nanquantile", method)


@named
def nanpercentile(
    x: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False
) -> Tensor:
    """Return percentiles of the elements that are not nan; see :func:`nanquantile`."""
    values = fractions(q, "nanpercentile", 100.0)
    along = as_axis(axis, "nanpercentile")
    return _nan_quantiles(x, values, along, keepdims, "nanpercentile", method)
