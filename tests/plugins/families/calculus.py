"""Differences, integrals, interpolation, weighted means."""

from __future__ import annotations

import numpy as np

import gradtape as gt

from .family import Family, each

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 4))
V = RNG.standard_normal(5)
STEPS3, STEPS4 = np.array([0.0, 0.5, 2.0]), np.array([1.0, 1.5, 3.0, 3.25])
WEIGHTS = np.array([0.5, 2.0, 1.0, 0.25])
AT = np.array([[-1.0, 0.2], [1.1, 9.0]])
SAMPLED, SAMPLES_OF = np.array([0.0, 0.7, 1.5, 3.0]), np.array([1.0, -1.0, 2.0, 0.5])


def weighted(axis, **kwargs):
    return [lambda x, w, m=m: m.average(x, axis, weights=w, **kwargs) for m in (gt, np)]


SAMPLES = {
    "diff": (*each("diff"), [X]),
    "diff twice": (*each("diff", n=2, axis=0), [X]),
    "diff none": (*each("diff", n=0), [X]),
    "diff prepend": (
        lambda x, y: gt.diff(x, axis=0, prepend=y, append=y),
        lambda x, y: np.diff(x, axis=0, prepend=y, append=y),
        [X, X[:1]],
    ),
    "diff prepend number": (*each("diff", prepend=np.float64(3.0)), [X]),
    "cumulative_sum": (*each("cumulative_sum", axis=1, include_initial=True), [X]),
    "cumulative_sum of a vector": (*each("cumulative_sum"), [V]),
    "cumulative_prod": (*each("cumulative_prod", axis=-2, include_initial=True), [X]),
    "ediff1d": (*each("ediff1d"), [X]),
    "ediff1d ends": (
        lambda x, y: gt.ediff1d(x, to_end=y, to_begin=y),
        lambda x, y: np.ediff1d(x, to_end=y, to_begin=y),
        [X, V],
    ),
    "gradient": (*each("gradient"), [X]),
    "gradient vector": (*each("gradient"), [V]),
    "gradient axis": (*each("gradient", 0.5, axis=-1), [X]),
    "gradient order": (*each("gradient", edge_order=2), [X]),
    "gradient axes": (*each("gradient", 2.0, 0.5, axis=(1, 0)), [X]),
    "gradient uneven": (
        lambda x, a, b: gt.gradient(x, a, b),
        lambda x, a, b: np.gradient(x, a, b),
        [X, STEPS3, STEPS4],
    ),
    "gradient uneven order": (
        lambda x, a: gt.gradient(x, a, axis=1, edge_order=2),
        lambda x, a: np.gradient(x, a, axis=1, edge_order=2),
        [X, STEPS4],
    ),
    "trapezoid": (*each("trapezoid"), [X]),
    "trapezoid dx": (*each("trapezoid", dx=0.25, axis=0), [X]),
    "trapezoid x": (*each("trapezoid"), [X, STEPS4]),
    "trapezoid x axis": (*each("trapezoid", axis=0), [X, STEPS3]),
    "trapezoid full x": (*each("trapezoid", axis=1), [X, X + np.arange(4)]),
    "average": (*each("average"), [X]),
    "average axis": (*each("average", axis=0, keepdims=True), [X]),
    "average returned": (*each("average", axis=0, returned=True), [X]),
    "average weights": (*weighted(1), [X, WEIGHTS]),
    "average all weights": (*weighted(None), [X, X * X + 0.5]),
    "average weights returned": (*weighted(-1, returned=True), [X, WEIGHTS]),
    "average weights keepdims": (*weighted((1, 0), keepdims=True), [X, (X * X + 0.5).T]),
    "interp": (*each("interp"), [AT, SAMPLED, SAMPLES_OF]),
    "interp ends": (*each("interp", left=-5.0, right=7.0), [AT, SAMPLED, SAMPLES_OF]),
    "interp period": (*each("interp", period=2.0), [AT, SAMPLED[[2, 0, 1]], SAMPLES_OF[:3]]),
    "interp of one": (*each("interp"), [AT, SAMPLED[:1], SAMPLES_OF[:1]]),
    "cov": (*each("cov"), [X]),
    "cov columns": (*each("cov", rowvar=False, bias=True), [X]),
    "cov vector": (*each("cov", ddof=2), [V]),
    "cov two": (*each("cov"), [V, V**2]),
    "corrcoef": (*each("corrcoef"), [X]),
    "corrcoef two": (*each("corrcoef"), [V, V**2]),
}

ERRORS = [
    (lambda x: gt.diff(x[0, 0]), ValueError, r"diff.*\(\)"),
    (lambda x: gt.diff(x, axis=2), ValueError, "diff.*axis 2"),
    (lambda x: gt.diff(x, n=-1), ValueError, "diff.*-1"),
    (lambda x: gt.cumulative_sum(x), ValueError, r"cumulative_sum.*\(3, 4\)"),
    (lambda x: gt.cumulative_prod(x, axis=2), ValueError, "cumulative_prod.*axis 2"),
    (lambda x: gt.gradient(x[:1]), ValueError, r"gradient.*2 samples.*\(1, 4\)"),
    (lambda x: gt.gradient(x, 1.0, 1.0, 1.0), TypeError, "gradient.*3 spacings"),
    (lambda x: gt.gradient(x, edge_order=3), ValueError, "gradient.*edge_order.*3"),
    (lambda x: gt.gradient(x, STEPS3, axis=1), ValueError, "gradient.*3 coordinates"),
    (lambda x: gt.gradient(x, STEPS3), TypeError, "gradient.*coordinates"),
    (lambda x: gt.trapezoid(x, axis=2), ValueError, "trapezoid.*axis 2"),
    (lambda x: gt.trapezoid(x, STEPS3), ValueError, "broadcast"),
    (lambda x: gt.average(x, weights=[1.0, 2.0]), TypeError, r"average.*\(2,\)"),
    (lambda x: gt.average(x, 1, weights=[1.0, 2.0]), ValueError, r"average.*\(2,\)"),
    (lambda x: gt.interp(x, [0.0, 1.0], [1.0]), ValueError, r"interp.*\(2,\).*\(1,\)"),
    (lambda x: gt.interp(x, x, x), ValueError, "interp.*vectors"),
    (lambda x: gt.interp(x, [0.0], [1.0], period=0), ValueError, "interp.*period"),
    (lambda x: gt.cov(gt.ones((1, 2, 3))), ValueError, r"cov.*\(1, 2, 3\)"),
]

# where variables are not counted, nothing says whether a matrix is one number
COUNTED = ("cov", "corrcoef", "average weights", "average all weights")
RANKLESS = ("diff", "trapezoid", "trapezoid dx", "average", "ediff1d")
OF_ANY_DTYPE = ("diff", "gradient", "average axis", "ediff1d", "cumulative_sum")

FAMILY = Family(
    samples=SAMPLES,
    errors=ERRORS,
    given=[X],
    values={"rtol": 1e-12},
    squared=True,
    traces=[
        *((k, x, "nothing" if k.startswith(COUNTED) else "sizes") for k, x in SAMPLES.items()),
        *((name, SAMPLES[name], "rank") for name in RANKLESS),
    ],
    dtypes=[(name, SAMPLES[name], ("float32", "int32")) for name in OF_ANY_DTYPE],
)
