"""Medians and quantiles, made of other ops.

Their gradients go to the elements that they interpolate.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ....core.extend import (
    NONDIFF,
    Operators,
    Tensor,
    as_tensor,
    is_open,
    known_size,
    largest,
    on_device_of,
    ops,
)
from ..common.axes import Axis, as_axis, reduced_axes, shape_only
from ..common.dynamic_shapes import empty, known_rank
from ..common.op_builders import named, op
from ..indexing.sorting import sort
from ..shapes.reshaping import flatten_last
from .curve_fitting import blended


@lru_cache(maxsize=1024)
def quantile_positions(size: int, q: Any, method: str, precision: str = "float64") -> Any:
    """Return the positions, in ``size`` sorted elements, that quantiles are taken from.

    NumPy computes them for every method, applied to numbers that equal their positions.
    """
    if size == 0:
        raise IndexError("a quantile of no elements is not defined")
    numbers = np.arange(float(size))
    return np.asarray(np.quantile(numbers, np.asarray(q, precision), method=method))  # type: ignore[call-overload]


_rank = op(
    "quantile_rank",
    lambda xp, x, *, q, method="linear", precision="float64": xp.asarray(
        quantile_positions(x.shape[-1], q, method, precision), dtype=xp.float64
    ),
    gradients={"x": NONDIFF},
    infer=lambda x, q, method, precision: (np.shape(q), np.dtype(np.float64)),
    batch=shape_only,
    doc="Return the positions, in the sorted last axis of ``x``, that quantiles are taken from.",
)


_DISCRETE = ("lower", "higher", "nearest", "inverted_cdf", "closest_observation")


class Fractions:
    """The requested fractions, and their effect on the dtype in NumPy.

    Python numbers, and lists of them, are weak: quantiles have the dtype of the elements. Integer
    fractions select elements unchanged, with the method ``"linear"``.
    """

    __slots__ = ("moving", "values", "weak", "whole")

    def __init__(self, q: Any, name: str, scale: float = 1.0) -> None:
        values = np.asarray(q)
        if values.dtype.kind not in "biuf":
            raise TypeError(f"{name}: q must be a real number or an array of them, got {q!r}")
        self.weak = not hasattr(q, "dtype")
        self.whole = values.dtype.kind != "f" and scale == 1.0 and values.size > 0
        if values.dtype.kind == "f":
            moving = q if isinstance(q, Operators) else None
        else:
            values, moving = values.astype(np.float64), None
        values = values if scale == 1.0 else values / values.dtype.type(scale)
        if not ((values >= 0.0) & (values <= 1.0)).all():
            what = "Percentiles" if scale != 1.0 else "Quantiles"
            raise ValueError(
                f"{name}: {what.lower()} must be in the range [0, {scale:g}], got {q!r}"
            )
        if values.ndim > 2:
            raise ValueError(f"{name}: q must be a number or a vector, got shape {values.shape}")
        self.values = values
        self.moving: Any = moving if moving is None or scale == 1.0 else moving / scale

    @property
    def ndim(self) -> int:
        return self.values.ndim

    def picks(self, method: str) -> bool:
        """Return whether quantiles are unchanged elements, whatever is next to them."""
        return method in _DISCRETE or (self.whole and method == "linear")

    def moves(self, method: str) -> bool:
        """Return whether quantiles change continuously with the fractions."""
        return self.moving is not None and method in ("linear", *INTERPOLATING)

    def result_dtype(self, dtype: Any, method: str) -> Any:
        """Return the dtype of the quantiles of elements of ``dtype``."""
        if self.picks(method):
            return dtype
        if not self.weak:
            return np.result_type(dtype, self.values.dtype)
        return dtype if dtype.kind in "fc" else np.dtype(np.float64)

    def parameters(self) -> dict[str, Any]:
        """Return the fractions as parameters of an op."""
        return {"q": _nested(self.values), "precision": self.values.dtype.name}


HALF = Fractions(0.5, "median")


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


def with_nan_for_nothing(lines: Any) -> Any:
    """Return lines of a trace, with nan in the runs in which they have no elements."""
    if lines.shape is None or not is_open(lines.shape[-1]) or lines.dtype.kind not in "fc":
        return lines
    size = lines.shape[-1]
    widths = ((0, 0),) * (len(lines.shape) - 1) + ((0, largest(1, size) - size),)
    return ops["pad"](lines, pad_width=widths, value=np.nan)


def with_kept_axes(result: Any, x: Any, axis: Axis, extra: int, name: str) -> Any:
    """Restore the reduced axes, with size 1; ``extra`` new ones come first."""
    if axis is not None:
        axes = axis if isinstance(axis, tuple) else (axis,)
        places = tuple(n + extra if n >= 0 else n for n in axes)
    else:
        places = tuple(range(extra, extra + known_rank(x, name)))
    return ops["expand_dims"](result, axis=places) if places else result


#: Methods that interpolate, by the alpha and beta of Hyndman and Fan
INTERPOLATING = {
    "interpolated_inverted_cdf": (0, 1),
    "hazen": (0.5, 0.5),
    "weibull": (0, 0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}


def place_between(size: Any, q: Any, method: str) -> Any:
    """Return the position, from 0, that an interpolating method uses among so many elements."""
    alpha, beta = INTERPOLATING[method]
    place = size * q + (alpha + q * (1 - alpha - beta)) - 1
    return ops["maximum"](ops["minimum"](place, size - 1), 0)


def neighbours(place: Any, last: Any) -> tuple[Any, Any]:
    """Return the positions of the elements around a position; for an element, its own and the next.

    The slope at an element is therefore that towards the next one.
    """
    lower = ops["maximum"](ops["minimum"](ops["floor"](place), last - 1), 0)
    return lower, ops["maximum"](ops["minimum"](lower + 1, last), 0)


def _slid(lines: Any, q: Fractions, method: str) -> Any:
    """Return quantiles of sorted lines, for tensor fractions that get gradients."""
    size = ops["size_over"](ops["cast"](lines, dtype="float64"), axis=-1)
    steps, moving = size - 1, ops["cast"](q.moving, dtype="float64")
    place = place_between(size, moving, method) if method in INTERPOLATING else moving * steps
    lower, upper = neighbours(place, steps)
    below, above = (_element(lines, ops["cast"](i, dtype="int64")) for i in (lower, upper))
    return between(below, above, place - lower, q.result_dtype(lines.dtype, method))


def _picked(lines: Any, q: Fractions, method: str, halves: bool) -> Any:
    """Return quantiles of sorted lines: elements, or interpolations between two of them."""
    size = None if lines.shape is None else lines.shape[-1]
    share: Any
    if not known_size(size):
        place = _rank(lines, method=method, **q.parameters())
        lower, upper = (ops["cast"](ops[f](place), dtype="int64") for f in ("floor", "ceil"))
        share = place - ops["floor"](place)
    else:
        known = quantile_positions(size, method=method, **q.parameters())
        lower, upper = (f(known).astype(np.int64) for f in (np.floor, np.ceil))
        share = known - lower
        if (lower == upper).all():
            upper = None
    below = _element(lines, lower)
    dtype = q.result_dtype(lines.dtype, method)
    if upper is None or q.picks(method):
        return _narrowed(below, dtype)
    above = _element(lines, upper)
    return middle(below, above, dtype) if halves else between(below, above, share, dtype)


def middle(below: Any, above: Any, dtype: Any) -> Any:
    """Return the mean of two elements, in the precision of :func:`between`."""
    below, above = (_widened(x, dtype) for x in (below, above))
    return _narrowed((below + above) * 0.5, dtype)


def between(below: Any, above: Any, share: Any, dtype: Any) -> Any:
    """Return the interpolation between two elements, in ``dtype``.

    If one element is infinite and the other finite, the result is the infinite one, unless its
    share is 0. NumPy's formula gives nan for some shares. Differences may overflow half precision,
    so single precision is used.
    """
    below, above = (_widened(x, dtype) for x in (below, above))
    if not isinstance(share, Tensor):
        share = on_device_of(np.asarray(share), below)
    share = ops["cast_like"](share, below)
    return _narrowed(blended(below, above, share), dtype)


def _widened(x: Any, dtype: Any) -> Any:
    wide = "float32" if dtype == np.float16 else dtype.name
    return x if x.dtype == wide else ops["cast"](x, dtype=wide)


def _narrowed(x: Any, dtype: Any) -> Any:
    return x if x.dtype == dtype else ops["cast"](x, dtype=dtype.name)


def _element(lines: Any, place: Any) -> Any:
    """Return the elements of lines at positions; a single position is faster as a plain index."""
    if isinstance(place, np.ndarray) and not place.ndim:
        return lines[..., int(place)]
    return ops["take"](lines, on_device_of(place, lines), axis=-1)


def checked(x: Any, method: str, name: str) -> Any:
    """Return the argument as a tensor; refuse tensors that have no quantiles."""
    x = as_tensor(x)
    quantile_positions(1, 0.5, method)  # which knows the methods' names
    return x


def checked_kind(x: Any, name: str) -> Any:
    """Return ``x`` as a tensor; refuse complex numbers."""
    x = as_tensor(x)
    if x.dtype.kind == "c":
        raise TypeError(f"{name}: complex numbers have no order, got dtype {x.dtype}")
    return x


def quantiles(x: Any, q: Fractions, axis: Axis, keepdims: bool, name: str, method: str) -> Any:
    x = checked(x, method, name)
    halves = "median" in name
    lines, axis = as_lines(x, axis, name)
    if lines.shape is not None and empty(lines.shape[-1:]):
        if not halves:
            raise IndexError(f"{name}: there are no elements, got shape {x.shape}")
        return ops["mean"](x, axis=axis, keepdims=keepdims)  # nan, as for a mean
    if x.dtype.kind == "b" and not (halves or q.picks(method)):
        raise TypeError(
            f"{name}: there is nothing between False and True; cast x to numbers, or choose a "
            f"method that picks elements, such as 'nearest', not {method!r}"
        )
    lines = sort(with_nan_for_nothing(lines) if halves else lines, axis=-1)
    result = _slid(lines, q, method) if q.moves(method) else _picked(lines, q, method, halves)
    if x.dtype.kind in "fc":  # nan is sorted to the end, and makes every quantile nan
        last = _element(lines, np.full((1,) * q.ndim, -1))
        last = last if last.dtype == result.dtype else ops["cast_like"](last, result)
        result = ops["where"](ops["isnan"](last), last, result)
    if q.ndim:
        places = tuple(range(q.ndim))
        result = ops["moveaxis"](
            result, source=tuple(n - q.ndim for n in places), destination=places
        )
    return with_kept_axes(result, x, axis, q.ndim, name) if keepdims else result


def _nested(q: Any) -> Any:
    return tuple(_nested(row) for row in q) if q.ndim else q.item()


@named
def median(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the median: the middle element, or the mean of the two in the middle.

    Parameters
    ----------
    x
        A tensor; complex numbers are in the order of their real parts, then imaginary parts.

    Returns
    -------
    A tensor of the shape of ``x`` without the axes, of the dtype of ``x``; ``float64`` for
    integers. It is nan if there are nan, or no elements.

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
    return quantiles(x, HALF, as_axis(axis, "median"), keepdims, "median", "linear")


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
        A number from 0 to 1, or an array of them, of known value. A tensor gets gradients, where
        the method interpolates.
    method
        How to choose between two elements, by NumPy's names: ``"linear"`` (the default),
        ``"lower"``, ``"higher"``, ``"midpoint"``, ``"nearest"``, and the nine methods of Hyndman
        and Fan: ``"inverted_cdf"``, ``"averaged_inverted_cdf"``, ``"closest_observation"``,
        ``"interpolated_inverted_cdf"``, ``"hazen"``, ``"weibull"``, ``"linear"``,
        ``"median_unbiased"`` and ``"normal_unbiased"``.

    Returns
    -------
    A tensor of the dtype of ``x``. Integers give ``float64``, or integers for a method that does
    not interpolate. An array ``q`` (not a number or list) promotes the dtype. The axes of ``q``
    come first. It is nan if there are nan.

    Raises
    ------
    ValueError
        If ``q`` is out of range or has more than two axes, or the method is unknown.
    IndexError
        If there are no elements.
    TypeError
        If ``x`` is complex, or boolean and the method interpolates, or ``q`` is not real.

    Notes
    -----
    Gradients go to the elements that a quantile interpolates. With respect to ``q``, the slope at
    an element is that towards the next one.

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
    along = as_axis(axis, "quantile")
    x = checked_kind(x, "quantile")
    return quantiles(x, Fractions(q, "quantile"), along, keepdims, "quantile", method)


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
        A number from 0 to 100, or an array of them, of known value. A tensor gets gradients, where
        the method interpolates.
    method
        How to choose between two elements, by NumPy's names; see :func:`quantile`.

    Returns
    -------
    A tensor of the dtype of ``x``; of integers ``float64``, but an element itself by a method that
    does not interpolate. A ``q`` that is an array, and no number or list, promotes it. The axes of
    ``q`` come first. It is nan if there is nan.

    Raises
    ------
    ValueError
        If ``q`` is out of range or has more than two axes, or the method is unknown.
    IndexError
        If there are no elements.
    TypeError
        If ``x`` is complex, or boolean and the method interpolates, or ``q`` is not real.

    References
    ----------
    Hyndman and Fan, "Sample quantiles in statistical packages", The American Statistician 50, 1996.

    Examples
    --------
    >>> gt.percentile(gt.constant([0.0, 2.0, 4.0]), 75).item()
    3.0
    """
    along = as_axis(axis, "percentile")
    x = checked_kind(x, "percentile")
    return quantiles(x, Fractions(q, "percentile", 100.0), along, keepdims, "percentile", method)
