"""Order statistics, and reductions that skip nan, made of other ops.

Gradients are those of the ops underneath. An order statistic's goes to the elements that it was
interpolated from; nan that is skipped has none.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from ...core.convert import as_tensor, beside
from ...core.dtypes import as_dtype
from ...core.extend import NONDIFF, F, ops
from ...core.tensor import Operators
from . import reductions
from .batching import flattened, leading, shape_only
from .counted import kept_by
from .families import Axis, as_axis, named, op, reduced_axes, reduced_shape
from .indexing import sort, take_along_axis
from .ranks import known_rank
from .scans import cumprod, cumsum
from .shape import one_axis

__all__ = [
    "median",
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
    "percentile",
    "ptp",
    "quantile",
]

# -- order statistics ------------------------------------------------------------------------------


def _flat_last_spec(x: Any, *, count: int) -> tuple[Any, Any]:
    if x.shape is None:
        return None, x.dtype
    kept = len(x.shape) - count
    last = x.shape[kept:]
    return (*x.shape[:kept], None if None in last else prod(last)), x.dtype


_flat_last = op(
    "flatten_last",
    lambda xp, x, *, count: xp.reshape(
        x, (*x.shape[: x.ndim - count], prod(x.shape[x.ndim - count :]))
    ),
    gradients={"x": lambda g, x_like: F.reshape_like(g, x_like)},
    infer=_flat_last_spec,
    holomorphic=True,
    batch=leading,
    jvp="linear",
    doc="Join the last ``count`` axes into one.",
)


@lru_cache(maxsize=1024)
def _places(size: int, q: Any, method: str) -> Any:
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
        _places(x.shape[-1], q, method), dtype=xp.float64
    ),
    gradients={"x": NONDIFF},
    infer=lambda x, q, method: (np.shape(q), np.dtype(np.float64)),
    batch=shape_only,
    doc="Return the places, in the sorted last axis of ``x``, from which quantiles are taken.",
)


def _lines(x: Any, axis: Axis, name: str) -> tuple[Any, Axis]:
    """Return ``x`` with the axes to reduce as its last one, and these axes."""
    if axis is None:
        return ops["reshape"](x, shape=(-1,)), None
    axes = axis if isinstance(axis, tuple) else (axis,)
    if x.shape is not None:
        reduced_axes(axes, len(x.shape), name)
    if axes != (-1,):
        x = ops["moveaxis"](x, source=axes, destination=tuple(range(-len(axes), 0)))
    return (x if len(axes) == 1 else _flat_last(x, count=len(axes))), axis


def _kept(result: Any, x: Any, axis: Axis, extra: int, name: str) -> Any:
    """Put back the axes that were reduced, with size 1; ``extra`` new ones come first."""
    if axis is not None:
        axes = axis if isinstance(axis, tuple) else (axis,)
        places = tuple(n + extra if n >= 0 else n for n in axes)
    else:
        places = tuple(range(extra, extra + known_rank(x, name)))
    return ops["expand_dims"](result, axis=places) if places else result


def _fractions(q: Any, name: str, scale: float = 1.0) -> Any:
    values = np.asarray(q, np.float64) / scale
    if not ((values >= 0.0) & (values <= 1.0)).all():
        what = "Percentiles" if scale != 1.0 else "Quantiles"
        raise ValueError(f"{name}: {what.lower()} must be in the range [0, {scale:g}], got {q!r}")
    return values


def _slid(lines: Any, moving: Any) -> Any:
    """Return quantiles of sorted lines, for fractions that are a tensor and get gradients.

    On an element the slope is that towards the next one.
    """
    steps = ops["size_over"](ops["cast"](lines, dtype="float64"), axis=-1) - 1
    place = ops["cast"](moving, dtype="float64") * steps
    lower = ops["maximum"](ops["minimum"](ops["floor"](place), steps - 1), 0)
    upper = ops["minimum"](lower + 1, steps)
    share = _like_float(place - lower, lines)
    below, above = (_element(lines, ops["cast"](i, dtype="int64")) for i in (lower, upper))
    return _between(below, above, share)


def _picked(lines: Any, q: Any, method: str, halves: bool) -> Any:
    """Return quantiles of sorted lines: elements, or what is between two of them."""
    size = None if lines.shape is None else lines.shape[-1]
    if size is None:
        place = _rank(lines, q=q, method=method)
        lower, upper = (ops["cast"](ops[f](place), dtype="int64") for f in ("floor", "ceil"))
        share = place - ops["floor"](place)
    else:
        known = _places(size, q, method)
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
        share = _like_float(share, lines)
    return _between(below, above, share)


def _between(below: Any, above: Any, share: Any) -> Any:
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


def _like_float(x: Any, like: Any) -> Any:
    return ops["cast_like"](x, like) if like.dtype.kind in "fc" else x


def _quantiles(
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
    lines, axis = _lines(x, axis, name)
    if lines.shape is not None and lines.shape[-1] == 0:
        if not halves:
            raise ValueError(f"{name}: there are no elements, got shape {x.shape}")
        return ops["mean"](x, axis=axis, keepdims=keepdims)  # nan, as for a mean
    lines = sort(lines, axis=-1)
    if moving is None or method != "linear":
        result = _picked(lines, _nested(q), method, halves)
    else:
        result = _slid(lines, moving)
    if x.dtype.kind in "fc":  # nan is sorted to the end, and makes every quantile nan
        last = _element(lines, np.full((1,) * q.ndim, -1))
        result = ops["where"](ops["isnan"](last), last, result)
    if q.ndim:
        places = tuple(range(q.ndim))
        result = ops["moveaxis"](
            result, source=tuple(n - q.ndim for n in places), destination=places
        )
    return _kept(result, x, axis, q.ndim, name) if keepdims else result


_DISCRETE = ("lower", "higher", "nearest", "inverted_cdf", "closest_observation")


def _nested(q: Any) -> Any:
    return tuple(_nested(row) for row in q) if q.ndim else q.item()


@named
def median(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Return the median: the middle element, or the mean of the two in the middle.

    Parameters
    ----------
    x
        A tensor; complex numbers are in the order of their real parts, then imaginary parts.
    axis, keepdims
        As for :func:`gradtape.sum`.

    Returns
    -------
    A tensor of the dtype of ``x``, ``float64`` for integers; nan if there is nan, or nothing.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of bounds.
    """
    half = np.asarray(0.5)
    return _quantiles(x, half, as_axis(axis, "median"), keepdims, "median", "linear", halves=True)


@named
def quantile(
    x: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False
) -> Any:
    """Return the values below which fractions ``q`` of the elements are.

    Parameters
    ----------
    x
        A real tensor.
    q
        A number from 0 to 1, or an array of them, of known value. Gradients reach a tensor, with
        the method ``"linear"``.
    axis, keepdims
        As for :func:`gradtape.sum`.
    method
        How to choose between two elements, by NumPy's names.

    Returns
    -------
    A tensor of the dtype of ``x``, ``float64`` for integers; the axes of ``q`` come first. It is
    nan if there is nan.

    Raises
    ------
    ValueError
        If ``q`` is out of range, the method is unknown, or there are no elements.
    numpy.exceptions.AxisError
        If an axis is out of bounds.
    """
    values, along = _fractions(q, "quantile"), as_axis(axis, "quantile")
    moving = q if isinstance(q, Operators) else None
    return _quantiles(x, values, along, keepdims, "quantile", method, moving=moving)


@named
def percentile(
    x: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False
) -> Any:
    """Return the values below which ``q`` percent of the elements are: see :func:`quantile`."""
    values, along = _fractions(q, "percentile", 100.0), as_axis(axis, "percentile")
    moving = q / 100.0 if isinstance(q, Operators) else None
    return _quantiles(x, values, along, keepdims, "percentile", method, moving=moving)


@named
def ptp(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Return the range ("peak to peak"): the largest element less the smallest."""
    along = as_axis(axis, "ptp")
    return ops["max"](x, axis=along, keepdims=keepdims) - ops["min"](
        x, axis=along, keepdims=keepdims
    )


# -- skipping nan ----------------------------------------------------------------------------------


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
) -> Any:
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
) -> Any:
    """Multiply the elements that are not nan; as :func:`gradtape.prod`."""
    _, filled = _skipping(x, 1.0)
    return reductions.prod(filled, axis, keepdims, dtype=dtype, initial=initial, where=where)


@named
def nancumsum(x: Any, axis: int | None = None, dtype: Any = None) -> Any:
    """Return the running sum, nan taken as 0; as :func:`gradtape.cumsum`."""
    return cumsum(_skipping(x, 0.0)[1], axis, dtype)


@named
def nancumprod(x: Any, axis: int | None = None, dtype: Any = None) -> Any:
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
) -> Any:
    """Return the largest element that is not nan, nan if there is none; as :func:`gradtape.max`."""
    return _nan_extreme("max", x, axis, keepdims, -float("inf"), initial, where)


@named
def nanmin(
    x: Any, axis: Any = None, keepdims: bool = False, *, initial: Any = None, where: Any = None
) -> Any:
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
def nanargmax(x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
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
def nanargmin(x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
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
) -> Any:
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
) -> Any:
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
) -> Any:
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
    _places(1, 0.5, method)  # which knows the methods' names
    if x.dtype.kind not in "fc":
        return _quantiles(x, q, axis, keepdims, name, method)
    if x.dtype.kind == "c" and name != "nanmedian":
        raise TypeError(f"{name}: complex numbers have no order, got dtype {x.dtype}")
    if q.ndim > 1:
        rows = [_nan_quantiles(x, row, axis, keepdims, name, method) for row in q]
        return ops["stack"](*rows, axis=0)
    lines, axis = _lines(x, axis, name)
    if lines.shape is not None and lines.shape[-1] == 0:
        if q.ndim:
            raise ValueError(f"{name}: there are no elements, got shape {x.shape}")
        return ops["mean"](x, axis=axis, keepdims=keepdims)  # nan, as for a mean
    lines = sort(lines, axis=-1)  # nan last
    count = _count(ops["isnan"](lines), lines, -1, True)
    place = _nan_places(q, count, method)
    lower, upper = (ops["cast"](ops[f](place), dtype="int64") for f in ("floor", "ceil"))
    below, above = (take_along_axis(lines, i, -1) for i in (lower, upper))
    result = _between(below, above, _like_float(place - ops["floor"](place), lines))
    if q.ndim:
        result = ops["moveaxis"](result, source=(-1,), destination=(0,))
    else:
        result = ops["squeeze"](result, axis=-1)
    return _kept(result, x, axis, q.ndim, name) if keepdims else result


@named
def nanmedian(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Return the median of the elements that are not nan; as :func:`median`."""
    return _nan_quantiles(x, np.asarray(0.5), as_axis(axis, "nanmedian"), keepdims, "nanmedian")


@named
def nanquantile(
    x: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False
) -> Any:
    """Return quantiles of the elements that are not nan; as :func:`quantile`."""
    values = _fractions(q, "nanquantile")
    return _nan_quantiles(x, values, as_axis(axis, "nanquantile"), keepdims, "nanquantile", method)


@named
def nanpercentile(
    x: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False
) -> Any:
    """Return percentiles of the elements that are not nan; see :func:`nanquantile`."""
    values = _fractions(q, "nanpercentile", 100.0)
    along = as_axis(axis, "nanpercentile")
    return _nan_quantiles(x, values, along, keepdims, "nanpercentile", method)
