"""The public gradient checker: its bounds, its complex step, and what it says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.testing import check_gradients


def test_bounds_can_be_widened_and_narrowed() -> None:
    @gt.custom_gradient
    def square(x: Any) -> Any:
        return x * x, lambda g: 2.002 * g * x

    with pytest.raises(AssertionError, match="differences say"):
        check_gradients(square, [0.5, 2.0], order=1)
    check_gradients(square, [0.5, 2.0], order=1, rtol=1e-2)
    check_gradients(square, [0.5, 2.0], order=1, atol=1e-1)


def test_a_complex_step_sees_what_differences_cannot() -> None:
    @gt.custom_gradient
    def off(x: Any) -> Any:
        return gt.exp(x), lambda g: g * gt.exp(x) * (1.0 + 1e-11)

    x = [0.5, 1.5]
    check_gradients(gt.exp, x, order=1, rtol=1e-13, atol=0.0)
    with pytest.raises(AssertionError, match="order 1, input 0"):
        check_gradients(off, x, order=1, rtol=1e-13, atol=0.0)


@pytest.mark.parametrize("fn", [gt.abs, gt.nn.relu, gt.erf])
def test_functions_without_a_complex_step_are_measured_by_differences(fn: Any) -> None:
    check_gradients(fn, [0.5, -1.5])


def test_a_gradient_of_another_shape_is_named_with_what_was_expected() -> None:
    bad = gt.custom_gradient(lambda x: (x * 2.0, lambda g: g * np.ones((2, 2))))
    with pytest.raises((AssertionError, ValueError), match=r"\(2,\)|\[2\]"):
        check_gradients(bad, [1.0, 2.0], order=1)
