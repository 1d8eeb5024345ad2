"""Order statistics and reductions that skip nan."""

from __future__ import annotations

import numpy as np

import gradtape as gt

from .family import Family, each

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 4))
Y = RNG.standard_normal((2, 3, 4))
HOLES = np.array([[1.5, np.nan, 0.3, -2.0], [np.nan, 4.0, 1.0, 2.5], [0.5, 0.25, 3.0, np.nan]])
METHODS = (
    "inverted_cdf averaged_inverted_cdf closest_observation interpolated_inverted_cdf hazen "
    "weibull linear median_unbiased normal_unbiased lower higher midpoint nearest"
).split()


ORDER = {
    "median": (*each("median"), [X]),
    "median axis": (*each("median", axis=1), [X]),
    "median axes": (*each("median", axis=(0, -1), keepdims=True), [Y]),
    "median odd": (*each("median", axis=0, keepdims=True), [X]),
    "quantile": (*each("quantile", 0.3), [X]),
    "quantile ends": (*each("quantile", 1.0, axis=0), [X]),
    "quantile axes": (*each("quantile", 0.61, axis=(1, 0)), [Y]),
    "quantile several": (*each("quantile", [0.0, 0.45, 0.9], axis=-2), [Y]),
    "quantile matrix": (
        *each("quantile", np.array([[0.1, 0.2], [0.3, 0.9]]), axis=1, keepdims=True),
        [X],
    ),
    "quantile keepdims": (*each("quantile", [0.25, 0.5], keepdims=True), [X]),
    "percentile": (*each("percentile", 42.0, axis=0), [X]),
    **{m: (*each("quantile", 0.37, axis=-1, method=m), [X]) for m in METHODS},
    "ptp": (*each("ptp"), [X]),
    "ptp axis": (*each("ptp", axis=1, keepdims=True), [X]),
}
NAN = {
    f"{name} {params}": (*each(name, **params), [HOLES])
    for name in "nansum nanprod nanmax nanmin nanmean nanvar nanstd nanmedian".split()
    for params in ({}, {"axis": 0}, {"axis": (0, 1), "keepdims": True}, {"axis": -1})
}
NAN["nanvar ddof"] = (*each("nanvar", axis=0, ddof=1), [HOLES])
NAN["nancumsum"] = (*each("nancumsum", axis=1), [HOLES])
NAN["nancumprod"] = (*each("nancumprod"), [HOLES])
NAN["nanquantile"] = (*each("nanquantile", 0.3, axis=0), [HOLES])
NAN["nanquantile several"] = (*each("nanquantile", [0.3, 0.9], axis=1, keepdims=True), [HOLES])
NAN["nanpercentile"] = (*each("nanpercentile", [30.0]), [HOLES])
SAMPLES = {**ORDER, **NAN}


def filled(sample):
    """The same functions of the values that are not nan."""
    ours, theirs, _ = sample
    hole = np.isnan(HOLES)
    return (
        lambda x: ours(gt.where(hole, np.nan, x)),
        lambda x: theirs(np.where(hole, np.nan, x)),
        [np.where(hole, 7.0, HOLES)],
    )


ERRORS = [
    (lambda x: gt.median(x, axis=2), ValueError, "median.*axis 2"),
    (lambda x: gt.median(x, axis=(0, 0)), ValueError, "median.*duplicate"),
    (lambda x: gt.quantile(x[:0], 0.5), IndexError, r"quantile.*no elements.*\(0, 4\)"),
    (lambda x: gt.median(x, axis="a"), TypeError, "median.*'a'"),
    (lambda x: gt.quantile(x, 1.5), ValueError, r"quantile.*\[0, 1\].*1.5"),
    (lambda x: gt.percentile(x, -1), ValueError, r"percentile.*\[0, 100\].*-1"),
    (lambda x: gt.quantile(x, 0.5, method="best"), ValueError, "best"),
    (lambda x: gt.nanmax(x, axis=2), ValueError, "max.*axis 2"),
    (lambda x: gt.nanargmax(x, axis=0.5), TypeError, "nanargmax.*0.5"),
    (lambda x: gt.ptp(x, axis=5), ValueError, "axis 5"),
]

SMOOTH = {**ORDER, **{name: filled(sample) for name, sample in NAN.items()}}
RANKLESS = ("median", "median axis", "quantile several", "percentile")
OF_ANY_DTYPE = (
    *("median", "quantile", "ptp axis", "nanmean {}", "nanstd {}", "nanmax {}", "nansum {}"),
)

FAMILY = Family(
    samples=SAMPLES,
    errors=ERRORS,
    given=[X],
    values={"rtol": 1e-13},
    smooth=SMOOTH,
    squared=True,
    traces=[
        *((name, sample, "sizes") for name, sample in SMOOTH.items()),
        *((name, SAMPLES[name], "rank") for name in RANKLESS),
    ],
    dtypes=[
        (name, (*SAMPLES[name][:2], [X]), ("float32", "float16", "int32")) for name in OF_ANY_DTYPE
    ],
)
