"""Samples of reductions, scans, and of ops that rank, find, count or combine elements."""

from __future__ import annotations

import numpy as np

from ..samples import Sample
from .drawing import complexes, positive, real, spread_numbers

Params = dict[str, object]

X, A, P, Z = real(2, 3), spread_numbers(2, 3), positive(2, 3), complexes(2, 3)
CUBE = spread_numbers(2, 3, 2)
N = np.array([[3, 0, 5], [0, 4, -7]])
TRUTH = np.array([[True, False, True], [True, True, True]])
OVER: tuple[Params, ...] = ({}, {"axis": 0}, {"axis": -1, "keepdims": True}, {"axis": (0, 1)})
ONE: tuple[Params, ...] = ({}, {"axis": 0}, {"axis": -1, "keepdims": True})
HOLED = np.array([[1.0, np.nan, 3.0], [2.0, 5.0, np.nan]])
FOUND = "the size of the result depends on the values"
SINGLE = "numbers rounded to single precision may be in another order"


def over(names: str, *arrays: object, params: tuple[Params, ...] = OVER) -> dict[str, list[Sample]]:
    """Return samples of several ops: each array with each choice of axes."""
    return {name: [Sample(x, **p) for x in arrays for p in params] for name in names.split()}


COUNTED = "the size of the result depends on the values"
STEP = "the step depends on the dtype"
LONG, SHORT, COMPLEX = real(5), real(3), complexes(4)
NUMBERS = np.array([3, 0, 3, 1])


SAMPLES = {
    **over("sum mean prod", A, Z),
    **over("max min", A),
    **over("logsumexp", A),
    **over("norm", A, Z),
    **over("var std", A, Z, params=(*OVER, {"ddof": 1}, {"axis": 1, "ddof": 0.5})),
    **over("any all", TRUTH, N),
    **over("count_nonzero", N, A),
    **over("argmax argmin", A, N, params=ONE),
    **over("nanargmax nanargmin", HOLED, params=ONE),
    "size_over": [Sample(A), Sample(A, axis=0), Sample(CUBE, axis=(0, 2))],
    **over(
        "cumsum cumprod",
        A,
        Z,
        params=({"axis": 0}, {"axis": 1, "reverse": True}, {"axis": (0, 1)}),
    ),
    "shift": [Sample(A, axis=0, fill=1), Sample(Z, axis=1, fill=0, reverse=True)],
    "product_of_others": [
        Sample(A, axis=1),
        Sample(A, axis=None),
        Sample(A - A[:1], axis=1),
        Sample(A * (A.min() < A), axis=(0, 1)),
        Sample(Z, axis=0),
    ],
    "recurrence": [Sample(A, X, axis=1), Sample(Z, Z[::-1], axis=0, reverse=True)],
    "difference": [Sample(A, axis=1), Sample(Z, axis=0)],
    "difference_adjoint": [Sample(A[:, 1:], A, axis=1), Sample(Z[1:], Z, axis=0)],
    "sort": [Sample(A), Sample(CUBE, axis=1)],
    "argsort": [Sample(A), Sample(A, axis=0)],
    "sort_order": [Sample(A, axis=-1), Sample(CUBE, axis=0)],
    "argpartition": [Sample(A, kth=1), Sample(CUBE, kth=(0, 1), axis=1)],
    "unsort": [
        Sample(Z[:1], np.array([[2, 0, 1]]), axis=1),
        Sample(A, np.array([[2, 0, 1], [0, 2, 1]]), axis=1),
    ],
    "quantile_rank": [
        Sample(A, q=0.3),
        *(Sample(A, q=(0.2, 0.7), method=way) for way in ("linear", "lower", "midpoint")),
    ],
    "isin": [
        Sample(np.array([[3, 1], [7, 3]]), np.array([7, 3, 9])),
        Sample(np.array([0.5, np.nan, 2.0]), np.array([np.nan, 2.0])),
        Sample(np.array([True, False]), np.array([True])),
        Sample(np.array([1j, 2.0]), np.array([1j])),
        Sample(np.array([1.0, 9.0]), np.array([])),
    ],
    "searchsorted": [
        Sample(np.sort(A[0]), X),
        Sample(np.sort(A[0]), A[0], side="right").without("float32", reason=SINGLE),
    ],
    "nonzero": [Sample(x).without("known sizes", reason=FOUND) for x in (N, A[0])],
    "unique": [
        Sample(x, **params).without("known sizes", reason=FOUND)
        for x, params in (
            (np.array([3, 1, 3, 2]), {}),
            (spread_numbers(2, 3), {}),
            (complexes(2, 3), {}),
            (spread_numbers(3, 2), {"axis": 0}),
            (N, {"axis": 0, "equal_nan": False}),
        )
    ],
    "running_place": [Sample(A, axis=1), Sample(CUBE, axis=0, lowest=True), Sample(HOLED, axis=1)],
    "choose_checked": [Sample(np.array([0, 2, 1]), count=3)],
    "convolve": [
        *(Sample(LONG, SHORT, whole=whole) for whole in (True, False)),
        *(Sample(COMPLEX, complexes(2), whole=whole) for whole in (True, False)),
        *(Sample(COMPLEX, real(2), whole=whole) for whole in (True, False)),
        Sample(SHORT, LONG, whole=True),
    ],
    "bincount": [
        Sample(NUMBERS, minlength=least).without("known sizes", reason=COUNTED) for least in (0, 6)
    ],
    "bincount_weighted": [
        Sample(NUMBERS, real(4), minlength=least).without("known sizes", reason=COUNTED)
        for least in (0, 6)
    ],
    "frexp_exponent": [
        Sample(np.array([0.0, 0.3, -5.0, 4.0, np.inf])),
        Sample(np.array([3e-310])).without("float32", reason="out of range in single precision"),
    ],
    "spacing": [Sample(real(2, 3)).without("float32", reason=STEP)],
    "bessel_i": [
        *(Sample(3.0 * real(2, 3), order=order) for order in (0, 1, 2)),
        Sample(np.array([0.0, 1e-3, 3.0]), order=1),
        Sample(positive(3), order=0),
    ],
    "size_checked": [
        Sample(LONG, condition=True, message="nothing"),
        Sample(COMPLEX, condition=True, message="nothing"),
    ],
    "size_table": [
        Sample(LONG, kind="hamming", arguments=(4,), dtype="float32"),
        Sample(LONG, kind="eye", arguments=(2, 3, 1), dtype="float64"),
        Sample(LONG, kind="inserted", arguments=(3, ("slice", 0, 2, None), 2), dtype="int64"),
        Sample(LONG, kind="falling", arguments=(5, 3, 2, False), dtype="float64"),
    ],
    "spread_like": [Sample(LONG, real(2, 3)), Sample(COMPLEX, SHORT), Sample(real(2, 3), LONG)],
    "occurrences": [Sample(NUMBERS), Sample(np.array([2, 2, 2, 0]))],
    "one_per_occurrence": [
        Sample(LONG, np.array([0, 1, 0])).without("known sizes", reason=COUNTED),
        Sample(COMPLEX, np.array([0, 2, 1])).without("known sizes", reason=COUNTED),
    ],
}
