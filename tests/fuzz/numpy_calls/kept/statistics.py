"""Intended differences in statistics and in ranges of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuzz.numpy_calls.compare import Answer
from fuzz.numpy_calls.differences import (
    Difference,
    accepted,
    as_vectors,
    dtype_differs,
    in_double,
    leaf,
    nan_filled,
    of,
    one_apart,
    same_values,
    saying,
    shapes_differ,
    values_differ,
)
from fuzz.numpy_calls.targets import Call

__all__ = ["STATISTICS"]

QUANTILES = (
    "quantile",
    "percentile",
    "nanquantile",
    "nanpercentile",
    "median",
    "nanmedian",
)


def ascending(call: Call) -> bool:
    """Return whether the points of ``interp`` ascend or, with a period, do not coincide."""
    points, period = call.argument("xp").values, call.argument("period")
    if period is not None:
        points = np.sort(points % period)
    return bool((np.diff(points) > 0).all())


def _finite(x: Any) -> bool:
    return bool(np.isfinite(x.astype("complex128")).all())


def _lacking(answer: Answer) -> Any:
    """Return where there is nan, or the integer that nan becomes."""
    x = leaf(answer)
    return ~np.isfinite(x) if x.dtype.kind in "fc" else x == np.iinfo(x.dtype).min


STATISTICS = (
    Difference(
        "`cov`, `corrcoef`: weights and `dtype`",
        of(
            "cov",
            "corrcoef",
            where=lambda call, theirs, ours: (
                dtype_differs(call, theirs, ours)
                or (values_differ(call, theirs, ours) and same_values(call, theirs, ours))
            ),
        ),
        "Everything is computed in `dtype`, including weights, which promote it in NumPy.",
        "xp.cov(array([0.0, 1.0]), aweights=array([1.0, 2.0]), dtype='float32')",
    ),
    Difference(
        "`quantile` and related functions, `median`: integers and half precision",
        of(*QUANTILES, where=in_double),
        "They do not overflow: the difference of two elements is computed in double precision.",
        "xp.quantile(array([-100, 100], 'int8'), 0.5)",
    ),
    Difference(
        "`quantile` and related functions next to an infinity",
        of(*QUANTILES, where=nan_filled),
        "The quantile between a number and an infinity is the infinity, and a quantile at an "
        "infinite element is that element; NumPy's is nan.",
        "xp.quantile(array([1.0, float('inf')]), 0.75)",
    ),
    Difference(
        "`nanquantile`, `nanpercentile` of empty arrays",
        of(
            "nanquantile",
            "nanpercentile",
            where=lambda call, theirs, ours: (
                shapes_differ(theirs, ours)
                and call.arrays[0].values.size == 0
                and bool(np.isnan(leaf(ours)).all() and np.isnan(leaf(theirs)).all())
            ),
        ),
        "The result is one nan for each of `q`.",
        "xp.nanquantile(array([]), array([0.5]))",
    ),
    Difference(
        "`quantile` and related functions: `q` and dtype",
        of(*QUANTILES, where=dtype_differs),
        "A list of fractions is weak, like a number, and nan has the dtype of other results.",
        "xp.percentile(array([1.0], 'float32'), [50.0])",
    ),
    Difference(
        "`median` and related functions: `overwrite_input`",
        of(
            *QUANTILES,
            where=lambda call, theirs, ours: "read-only" in str(theirs.error),
        ),
        "A tensor never changes, and a read-only one is not an error.",
        "np.median((lambda x: x.setflags(write=False) or x)(np.ones(2)) if xp is np else "
        "array([1.0, 1.0]), overwrite_input=True)",
    ),
    Difference(
        "`median` and related functions over no axes",
        of(
            *QUANTILES,
            where=lambda call, theirs, ours: (
                accepted(call, theirs, ours)
                and type(call.argument("axis")) is tuple
                and call.arrays[0].values.size == 0
            ),
        ),
        "The result has the shape of the array, even if it is empty, as in NumPy 2.5.",
        "xp.median(array([]), axis=())",
        varies=True,
    ),
    Difference(
        "`interp`, `geomspace`, `logspace`: precision",
        of("interp", "geomspace", "logspace", "linspace", "arange", where=dtype_differs),
        "Tensors keep single precision, even when combined with Python numbers.",
        "xp.interp(array([0.5], 'float32'), array([0.0, 1.0], 'float32'), array([0.0, 1.0], "
        "'float32'))",
    ),
    Difference(
        "`geomspace`, `logspace`, `linspace`: half precision, integers",
        of(
            "geomspace",
            "logspace",
            "linspace",
            where=lambda call, theirs, ours: (
                values_differ(call, theirs, ours)
                and (
                    in_double(call, theirs, ours)
                    or same_values(call, theirs, ours)
                    or one_apart(call, theirs, ours)
                )
            ),
        ),
        "Half precision and floats that become integers are rounded at other points of the "
        "computation.",
        "xp.linspace(array(0.0, 'float16'), array(1.0, 'float16'), dtype='float32')",
        varies=True,
    ),
    Difference(
        "`interp` at nan, and next to infinities",
        of(
            "interp",
            where=lambda call, theirs, ours: (
                theirs.error is None
                and ours.error is None
                and leaf(theirs).shape == leaf(ours).shape
                and bool((_lacking(ours) | _lacking(theirs) | (leaf(ours) == leaf(theirs))).all())
                and any(not _finite(x.values) for x in call.arrays)
            ),
        ),
        "The result is nan, for one point or several.",
        "xp.interp(array([float('nan')]), array([0.0]), array([1.0]))",
    ),
    Difference(
        "`geomspace` from or to nan or complex infinities",
        of(
            "geomspace",
            where=lambda call, theirs, ours: (
                theirs.error is None
                and ours.error is None
                and any(not _finite(x.values) for x in call.arrays)
                and bool((leaf(ours) == leaf(theirs))[~_lacking(theirs) & ~_lacking(ours)].all())
            ),
        ),
        "The ends are the given numbers.",
        "xp.geomspace(array(float('nan')), 1.0, 2)",
    ),
    Difference(
        "`quantile` and related functions of empty arrays: `method`",
        of(*QUANTILES, where=saying("is not a valid method")),
        "It is checked before the elements.",
        "xp.nanquantile(array([]), 0.5, method='no such')",
    ),
    Difference(
        "`quantile` of empty arrays",
        of(
            *QUANTILES,
            where=lambda call, theirs, ours: "there are no elements" in str(ours.error),
        ),
        "An empty array has no quantiles, even for an empty `q`.",
        "xp.quantile(array([]), array([]))",
    ),
    Difference(
        "`nanstd`, `nanvar`: `mean`",
        of(
            "nanstd",
            "nanvar",
            where=lambda call, theirs, ours: (
                accepted(call, theirs, ours) and "non-broadcastable output" in str(theirs.error)
            ),
        ),
        "It broadcasts with the elements, whichever of the two has more axes.",
        "xp.nanstd(1.0, mean=array([[0.0]]))",
    ),
    Difference(
        "`interp` of points that do not ascend",
        of(
            "interp",
            where=lambda call, theirs, ours: (
                theirs.error is None
                and ours.error is None
                and leaf(theirs).shape == leaf(ours).shape
                and not ascending(call)
            ),
        ),
        "NumPy requires ascending points and leaves others undefined; so are coinciding points "
        "with a `period`.",
        "xp.interp(0.0, array([1.0, 1.0, 2.25, 4.25, 1.0]), array([0.0, 0.0, 0.0, 1.0, 0.0]), "
        "period=2.0)",
        varies=True,
    ),
    Difference(
        "`interp` of complex coordinates",
        of("interp", where=saying("coordinates must be real")),
        "Complex numbers have no order; NumPy drops imaginary parts if there is a `period`.",
        "xp.interp(array([1j]), array([0.0, 1.0]), array([0.0, 1.0]), period=2.0)",
    ),
    Difference(
        "`trapezoid` of integers",
        of("trapezoid", where=in_double),
        "Their sums do not overflow.",
        "xp.trapezoid(array([100, 100], 'int8'))",
    ),
    Difference(
        "`histogram` of complex numbers",
        of("histogram", "histogram_bin_edges", where=saying("complex numbers have no order")),
        "Complex numbers belong to no bin.",
        "xp.histogram(array([1j]))",
    ),
    Difference(
        "`histogram`: precision",
        of(
            "histogram",
            "histogram_bin_edges",
            where=lambda call, theirs, ours: (
                values_differ(call, theirs, ours) and same_values(call, theirs, ours)
            ),
        ),
        "Weights of single precision are summed in double precision, and edges of half precision "
        "are rounded once.",
        "xp.histogram(array([0.0, 0.0, 1.0]), 2, density=True, weights=array([1.0, 1.0, "
        "2.7], 'float32'))",
        varies=True,
    ),
    Difference(
        "`histogram` weighted by booleans",
        of(
            "histogram",
            where=lambda call, theirs, ours: (
                accepted(call, theirs, ours)
                and "Cannot cast ufunc 'add'" in str(theirs.error)
                and call.argument("weights").values.dtype == bool
            ),
        ),
        "Booleans are weights like other numbers.",
        "xp.histogram(array([1]), [1], weights=array([True]))",
    ),
    Difference(
        "`fill_diagonal` with an empty array",
        of("fill_diagonal", where=saying("val has no elements")),
        "There must be at least one element for the diagonal.",
        "xp.fill_diagonal(np.ones((2, 2)), array([]))",
    ),
    Difference(
        "`indices` of a number",
        of("indices", where=as_vectors),
        "A shape of one axis may be a number, as in other functions.",
        "xp.indices(3)",
    ),
    Difference(
        "`average` of empty arrays",
        of(
            "average",
            where=lambda call, theirs, ours: accepted(call, theirs, ours) and leaf(ours).size == 0,
        ),
        "Its shape is that of the mean.",
        "xp.average(np.zeros((0, 1)), axis=1)",
    ),
    Difference(
        "`polydiv`: precision",
        of("polydiv", where=same_values),
        "Both are promoted first.",
        "xp.polydiv(array([1]), array([1.5], 'float32'))",
        varies=True,
    ),
)
