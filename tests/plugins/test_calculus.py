"""Differences, integrals, interpolation: complex values, booleans, slopes at coordinates."""

from __future__ import annotations

import numpy as np
import pytest
from families.calculus import SAMPLED, SAMPLES, SAMPLES_OF
from samples import check_two_orders, check_values

import gradtape as gt


@pytest.mark.parametrize(
    "case", ["diff twice", "gradient", "trapezoid", "cumulative_prod", "average weights", "cov"]
)
def test_complex_values(case):
    ours, theirs, (x, *rest) = SAMPLES[case]
    sample = ours, theirs, [x + 1j * x[::-1], *rest]
    check_values(sample, rtol=1e-12)
    check_two_orders(sample)


def test_booleans_differ_or_not():
    x = np.array([True, False, False])
    np.testing.assert_array_equal(gt.diff(x).numpy(), np.diff(x))


def test_interpolation_on_a_coordinate_has_the_slope_after_it():
    x = gt.constant(np.array([0.7]))
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = gt.interp(x, SAMPLED, SAMPLES_OF)
    assert tape.gradient(y, x).numpy() == pytest.approx(3.0 / 0.8)
