"""Values and gradients where a formula that looks right is not."""

from __future__ import annotations

import numpy as np
import pytest

import gradtape as gt


@pytest.mark.parametrize("base", [0.5, 2.0, 3.0])
def test_the_slope_of_a_power_in_its_base_changes_with_an_exponent_of_zero(base: float) -> None:
    x, y = gt.constant(np.float64(base)), gt.constant(np.float64(0.0))
    with gt.GradientTape() as outer:
        outer.watch([x, y])
        with gt.GradientTape() as inner:
            inner.watch(x)
            z = x**y
        slope = inner.gradient(z, x)
    # d/dy (y * x**(y - 1)) at y = 0
    assert slope.item() == 0.0
    assert outer.gradient(slope, y).item() == pytest.approx(1 / base)


def test_zero_to_the_power_of_zero_has_no_slope() -> None:
    x, y = gt.constant([0.0, 0.0, 2.0]), gt.constant([0.0, 1.0, 0.0])
    with gt.GradientTape() as tape:
        tape.watch(x)
        z = x**y
    np.testing.assert_array_equal(tape.gradient(z, x), [0.0, 1.0, 0.0])


def test_ranges_of_python_floats_have_the_default_dtype() -> None:
    assert gt.arange(3.0).dtype == np.float32
    assert gt.arange(0, 1, 0.25).dtype == np.float32
    assert gt.arange(3).dtype == np.int64
    assert gt.arange(np.float64(3.0)).dtype == np.float64
