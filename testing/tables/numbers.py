"""Samples of ops on vectors, on counts, and on parts of numbers."""

from __future__ import annotations

import numpy as np

from ..samples import Sample
from .drawing import complexes, positive, real

COUNTED = "the size of the result depends on the values"
STEP = "the step depends on the dtype"
LONG, SHORT, Z = real(5), real(3), complexes(4)
NUMBERS = np.array([3, 0, 3, 1])

SAMPLES = {
    "convolve": [
        *(Sample(LONG, SHORT, whole=whole) for whole in (True, False)),
        *(Sample(Z, complexes(2), whole=whole) for whole in (True, False)),
        *(Sample(Z, real(2), whole=whole) for whole in (True, False)),
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
        Sample(Z, condition=True, message="nothing"),
    ],
    "size_table": [
        Sample(LONG, kind="hamming", arguments=(4,), dtype="float32"),
        Sample(LONG, kind="eye", arguments=(2, 3, 1), dtype="float64"),
        Sample(LONG, kind="inserted", arguments=(3, ("slice", 0, 2, None), 2), dtype="int64"),
        Sample(LONG, kind="falling", arguments=(5, 3, 2, False), dtype="float64"),
    ],
    "spread_like": [Sample(LONG, real(2, 3)), Sample(Z, SHORT), Sample(real(2, 3), LONG)],
    "occurrences": [Sample(NUMBERS), Sample(np.array([2, 2, 2, 0]))],
    "one_per_occurrence": [
        Sample(LONG, np.array([0, 1, 0])).without("known sizes", reason=COUNTED),
        Sample(Z, np.array([0, 2, 1])).without("known sizes", reason=COUNTED),
    ],
}
