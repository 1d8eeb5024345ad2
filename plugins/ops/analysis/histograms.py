"""Counts of values in bins. Counts have no gradient; weights and edges do."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.errors import TraceError
from ....core.extend import (
    NONDIFF,
    F,
    Op,
    Tensor,
    as_size,
    as_tensor,
    is_open,
    is_transformed,
    kind_of,
    on_device_of,
    ops,
    row_of,
    shapes_differ,
)
from ..common.axes import refused
from ..common.dynamic_shapes import empty
from ..common.kernels import as_floating, cast_to
from ..common.op_builders import named, op
from ..indexing.sorting import searchsorted
from ..shapes.ranges import even_steps


def _bin_count(xp: Any, x: Any, minlength: int) -> int:
    """Return the number of bins, after a check of the numbers to count."""
    if kind_of(x.dtype) not in "biu":
        raise TypeError(f"expected integers to count, got dtype {x.dtype}")
    if x.ndim != 1:
        raise ValueError(f"expected a vector to count, got shape {x.shape}")
    if not x.shape[0]:
        return minlength
    if int(xp.min(x)) < 0:
        raise ValueError("numbers to count must be at least 0")
    return max(int(xp.max(x)) + 1, minlength)


def _bincount_kernel(xp: Any, x: Any, *, minlength: int = 0) -> Any:
    size = _bin_count(xp, x, minlength)
    if hasattr(xp, "bincount"):
        return xp.bincount(x, minlength=minlength)
    hits = xp.reshape(x, (-1, 1)) == xp.arange(size, dtype=x.dtype)
    return xp.sum(xp.astype(hits, xp.int64), axis=0)


def _weighted_kernel(xp: Any, x: Any, weights: Any, *, minlength: int = 0) -> Any:
    if kind_of(weights.dtype) == "c":
        raise TypeError(f"expected real weights, got dtype {weights.dtype}")
    if x.shape != weights.shape:
        raise ValueError(f"a weight per number is needed, got shapes {x.shape} and {weights.shape}")
    size = _bin_count(xp, x, minlength)
    if hasattr(xp, "bincount"):
        return xp.asarray(xp.bincount(x, weights, minlength), dtype=xp.float64)
    hits = xp.reshape(x, (-1, 1)) == xp.arange(size, dtype=x.dtype)
    wide = xp.reshape(cast_to(xp, weights, np.float64), (-1, 1))
    return xp.sum(xp.where(hits, wide, xp.zeros_like(wide)), axis=0)


_SIZE = (
    "the number of bins differs from example to example, and the examples of a vmap have one "
    "shape; use gradtape.nn.segment_sum, which is told it"
)


def _weighted_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    if batched[0]:
        return refused(_SIZE)(op, xs, batched, params)
    numbers, weights = xs
    (size,) = op.raw(numbers, row_of(weights), **params).shape
    wide = F.cast(F.swapaxes(weights, axis1=0, axis2=1), dtype="float64")
    return F.swapaxes(F.segment_sum(wide, numbers, num=size), axis1=0, axis2=1)


_bincount = op(
    "bincount",
    _bincount_kernel,
    gradients={"x": NONDIFF},
    infer=lambda x, minlength: ((None,), np.dtype(np.int64)),
    batch=refused(_SIZE),
    doc="Count how often each integer from 0 occurs.",
)
_bincount_weighted = op(
    "bincount_weighted",
    _weighted_kernel,
    gradients={
        "x": NONDIFF,
        "weights": lambda g, x, weights_like: F.cast_like(F.take(g, x, axis=0), weights_like),
    },
    infer=lambda x, weights, minlength: ((None,), np.dtype(np.float64)),
    batch=_weighted_rule,
    jvp="linear",
    doc="Sum the weights of each integer from 0.",
)


@named
def bincount(x: Any, weights: Any = None, minlength: int = 0) -> Tensor:
    """Return how often each integer from 0 occurs, or the sum of its weights.

    Parameters
    ----------
    x
        A vector of integers of at least 0.
    weights
        A real vector of the shape of ``x``; gradients reach it.
    minlength
        The minimum size of the result.

    Returns
    -------
    A vector of size ``max(x) + 1``, or ``minlength`` if that is more: ``int64`` counts, or
    ``float64`` sums of weights.

    Raises
    ------
    TypeError
        If ``x`` does not hold integers, or weights are complex.
    ValueError
        If a number or ``minlength`` is negative, ``x`` is not a vector, or the number of weights
        differs.

    Notes
    -----
    Its size depends on the values; :func:`gradtape.nn.segment_sum` takes the size.

    Examples
    --------
    >>> gt.bincount(gt.constant([0, 2, 2])).tolist()
    [1, 0, 2]
    >>> gt.bincount(gt.constant([0, 2, 2]), weights=gt.constant([0.5, 1.0, 2.0])).tolist()
    [0.5, 0.0, 3.0]
    """
    least = as_size(minlength, "bincount")
    if (least < 0) is True:
        raise ValueError(f"bincount: minlength must be at least 0, got {minlength}")
    x = as_tensor(np.zeros(0, np.int64) if isinstance(x, list) and not x else x)
    if weights is None:
        return _bincount(x, minlength=least)
    return _bincount_weighted(x, on_device_of(weights, x), minlength=least)


def _edges(x: Any, bins: Any, span: Any) -> Any:
    """Return the bins' edges, as a tensor; inner edges may be traced."""
    if isinstance(bins, str):
        if is_transformed(x.array):
            raise TraceError(
                f"histogram: how many bins the rule {bins!r} chooses depends on values, which are "
                "not known here; give their number"
            )
        # the rule says how many; where they are depends on the least and the largest element
        bins = len(np.histogram_bin_edges(x.to("numpy").numpy(), bins, span)) - 1
    if np.ndim(bins) > 1:
        raise ValueError(f"histogram: bins must be a number or a vector, got {bins!r}")
    if np.ndim(bins) == 1:
        edges = on_device_of(np.asarray(bins) if isinstance(bins, (list, tuple)) else bins, x)
        _real(edges)
        if not is_transformed(edges.array) and bool((edges[1:] < edges[:-1]).any()):
            raise ValueError(f"histogram: bins must increase, got {bins!r}")
        return edges
    count = as_size(bins, "histogram")
    if (count < 1) is True:
        raise ValueError(f"histogram: at least one bin is needed, got {bins}")
    edges = even_steps(*_outer_edges(x, span), count + 1, True)
    edges = ops["cast_like"](edges, x) if x.dtype.kind == "f" else edges
    if not is_transformed(edges.array) and bool((edges[1:] <= edges[:-1]).any()):
        raise ValueError(f"histogram: {count} bins are too many for values so close together")
    return edges


def _outer_edges(x: Any, span: Any) -> tuple[Any, Any]:
    """Return the first and the last edge, taken from the values if there is no range."""
    if span is None and not empty(x.shape):
        low, high = as_floating(ops["min"](x, axis=None)), as_floating(ops["max"](x, axis=None))
        if not is_transformed(low.array) and not bool(ops["isfinite"](high - low).all()):
            raise ValueError(f"histogram: values from {low.item()} to {high.item()} need a range")
    else:
        low, high = (v if is_open(v) else float(v) for v in (span or (0.0, 1.0)))
        finite = all(is_open(v) or np.isfinite(v) for v in (low, high))
        if (low > high) is True or not finite:
            raise ValueError(f"histogram: range must be finite and increase, got {span!r}")
        low, high = (
            as_tensor(v, "float64") if is_open(v) else on_device_of(np.float64(v), x)
            for v in (low, high)
        )
    flat = low == high
    return ops["where"](flat, low - 0.5, low), ops["where"](flat, high + 0.5, high)


def _real(x: Any) -> Any:
    if x.dtype.kind == "c":
        raise TypeError(f"histogram: complex numbers have no order, got dtype {x.dtype}")
    return x


@named
def histogram_bin_edges(x: Any, bins: Any = 10, range: Any = None) -> Tensor:
    """Return the edges of a histogram's bins; see :func:`histogram`.

    Parameters
    ----------
    x
        A real tensor of any shape.
    bins
        The number of bins of equal width, 10 by default; or their increasing edges; or the name of
        one of NumPy's rules to choose them, such as ``"auto"``, for known values.
    range
        The outer edges of bins of equal width; by default the smallest and the largest value.

    Returns
    -------
    A vector with one more element than there are bins, of the dtype of ``x`` if that is floating.
    Gradients go to the smallest and the largest element, unless a range or edges are given.

    Raises
    ------
    ValueError
        If there are no bins, the edges or the range do not increase, values are infinite or nan and
        there is no range, or the rule is unknown.
    TypeError
        If ``x`` is complex.

    Examples
    --------
    >>> gt.histogram_bin_edges(gt.constant([1.0, 2.0, 2.0, 5.0]), bins=4).tolist()
    [1.0, 2.0, 3.0, 4.0, 5.0]
    """
    return _edges(_flat(_real(as_tensor(x))), bins, range)


def _flat(x: Any) -> Any:
    x = ops["reshape"](x, shape=(-1,))
    return ops["cast"](x, dtype="uint8") if x.dtype.kind == "b" else x


@named
def histogram(
    x: Any, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None
) -> tuple[Tensor, Tensor]:
    """Return how many elements are in each bin, and the bins' edges.

    Parameters
    ----------
    x
        A real tensor of any shape.
    bins
        How many bins of equal width, 10 by default; or their edges, increasing; or the name of one
        of NumPy's rules to choose them, such as ``"auto"``, for known values.
    range
        The outer edges of bins of equal width; by default the smallest and the largest value.
        Elements outside are not counted.
    density
        Normalise the histogram so that its integral is 1.
    weights
        A tensor of the shape of ``x``, which is summed instead of counting. Gradients reach it.
        Counts have no gradient with respect to ``x``, because they are piecewise constant. Edges
        and densities, which depend on the smallest and the largest element, do.

    Returns
    -------
    hist
        A vector of dtype ``int64``, or the dtype of ``weights``; double precision for a density.
    edges
        A vector with one more element. Each bin except the last excludes its upper edge.

    Raises
    ------
    ValueError
        If there are no bins, the edges or the range do not increase, values are infinite or nan and
        there is no range, the rule is unknown, or the shapes of ``x`` and ``weights`` differ.
    TypeError
        If ``x`` is complex, or a rule should choose the bins of weighted values.

    Examples
    --------
    >>> counts, edges = gt.histogram(gt.constant([1.0, 2.0, 2.0, 4.0]), bins=2)
    >>> counts.tolist(), edges.tolist()
    ([3, 1], [1.0, 2.5, 4.0])
    """
    x = _real(as_tensor(x))
    if weights is not None:
        weights = on_device_of(weights, x)
        if shapes_differ(weights.shape, x.shape):
            raise ValueError(
                f"histogram: a weight per element is needed, got shapes {x.shape} and "
                f"{weights.shape}"
            )
        if isinstance(bins, str):
            raise TypeError(f"histogram: the rule {bins!r} cannot choose bins for weighted values")
        weights = ops["reshape"](weights, shape=(-1,))
    flat = _flat(x)
    edges = given = _edges(flat, bins, range)
    if edges.shape is None:
        raise ValueError(f"histogram: the number of bins must be known, got shape {edges.shape}")
    count = edges.shape[0] - 1
    if (count < 1) is True:
        counts = np.int64 if weights is None else weights.dtype
        empty = np.zeros(0, np.float64 if density else counts)
        return on_device_of(empty, flat), given
    kind = np.result_type(flat.dtype, edges.dtype)
    flat, edges = (y if y.dtype == kind else ops["cast"](y, dtype=kind.name) for y in (flat, edges))
    place = searchsorted(edges, flat, side="right") - 1
    place = ops["where"](flat == edges[-1], count - 1, place)
    place = ops["where"]((flat >= edges[0]) & (flat <= edges[-1]), place, count)  # one bin for none
    found = _summed(place, weights, count + 1)
    found = ops["reshape"](found[:count], shape=(count,))  # a size that a trace knows
    if density:
        widths = ops["cast"](ops["difference"](given, axis=0), dtype="float64")
        total = ops["sum"](found, axis=None)  # in the dtype of the weights, as NumPy's
        wide = "complex128" if found.dtype.kind == "c" else "float64"
        found, total = (ops["cast"](y, dtype=wide) for y in (found, total))
        found = found / widths / total
    return found, given


def _summed(place: Any, weights: Any, count: int) -> Any:
    if weights is None:
        return bincount(place, minlength=count)
    if weights.dtype.kind != "c":
        return ops["cast_like"](bincount(place, weights, count), weights)
    real, imag = (bincount(place, ops[part](weights), count) for part in ("real", "imag"))
    return ops["cast_like"](real + imag * 1j, weights)
