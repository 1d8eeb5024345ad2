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


def scaled(factor: Any, off: float = 1.0) -> Any:
    """x times a factor, with its gradient off by another."""
    return gt.custom_gradient(lambda x: (x * factor, lambda g: g * factor * off))


@pytest.mark.parametrize("factor", [1e-12, 1e-30, 1e-3, 1e9])
def test_small_and_large_results_are_measured_by_their_own_scale(factor: float) -> None:
    check_gradients(scaled(factor), [0.5, -2.0])
    with pytest.raises(AssertionError, match=r"order 1, input 0, element \(0,\): the tape says"):
        check_gradients(scaled(factor, 2.0), [0.5, -2.0])
    with pytest.raises(AssertionError, match="order 1"):
        check_gradients(lambda x: scaled(factor, 1.001)(x) - 0.5 * factor, [0.5, -2.0])


def test_a_small_result_shows_beside_a_large_one() -> None:
    def both(x: Any, off: float = 1.0) -> Any:
        return scaled(1e6)(x), scaled(1e-6, off)(x)

    check_gradients(both, [0.5, -2.0])
    with pytest.raises(
        AssertionError, match=r"says 2e-06, differences say 1e-06, of result 1's element \(0,\)"
    ):
        check_gradients(lambda x: both(x, 2.0), [0.5, -2.0])


def test_a_small_element_shows_beside_a_large_one() -> None:
    factor = np.array([1e6, 1.0, 1e-12])
    check_gradients(scaled(factor), [0.5, -2.0, 3.0])
    off = np.array([1.0, 1.0, 2.0])
    with pytest.raises(AssertionError, match=r"element \(2,\): .*the result's element \(2,"):
        check_gradients(scaled(factor, off), [0.5, -2.0, 3.0])


def test_rounding_noise_is_no_scale() -> None:
    x = np.array([0.5, 1.5, -2.0])
    check_gradients(lambda x: gt.sum(gt.nn.softmax(x)), x)
    check_gradients(lambda x: (x + 1e3) - 1e3 - x, x)
    check_gradients(lambda x: gt.exp(x) * gt.exp(-x) - 1.0, x)
    check_gradients(lambda x: gt.sin(x) ** 2 + gt.cos(x) ** 2, x, order=3)


@pytest.mark.parametrize(
    ("fn", "x"),
    [
        (gt.abs, [0.0, 1.0]),
        (gt.nn.relu, [1.0, 0.0]),
        (gt.max, [2.0, 2.0, 1.0]),
        (lambda x: gt.maximum(x, 0.5), [0.5]),
        (lambda x: gt.abs(x) ** 1.5, [0.0]),
        (lambda x: gt.abs(x - 1e-4), [0.0]),
    ],
)
def test_a_kink_is_refused_at_it_and_beside_it(fn: Any, x: list[float]) -> None:
    with pytest.raises(ValueError, match=r"element \(.*kinks"):
        check_gradients(fn, x, order=1)


def test_a_kink_of_the_gradient_is_refused_too() -> None:
    for order in (1, 2):
        with pytest.raises(ValueError, match="kinks"):
            check_gradients(lambda x: x * gt.abs(x), [0.0], order=order)


def test_where_a_function_bends_much_a_smaller_step_is_taken() -> None:
    check_gradients(lambda x: 1.0 / x, [1e-2])
    with pytest.raises(AssertionError, match="order 1"):
        check_gradients(
            gt.custom_gradient(lambda x: (1.0 / x, lambda g: -1.01 * g / (x * x))), [1e-2]
        )


def test_a_function_that_draws_numbers_is_called_so() -> None:
    generator = gt.random.Generator(0)
    with pytest.raises(ValueError, match=r"not deterministic.*seed or key"):
        check_gradients(lambda x: x * generator.normal(2), [0.5, 1.0])
    check_gradients(lambda x: x * gt.random.Generator(0).normal(2), [0.5, 1.0])
