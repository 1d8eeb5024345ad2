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


@pytest.mark.parametrize(
    ("fn", "given"),
    [
        (gt.argmax, r"int64\[\]"),
        (lambda x: [gt.argsort(x), x > 0.0], r"int64\[2\], bool\[2\]"),
        (lambda x: [], "none"),
    ],
)
def test_results_without_a_derivative_are_refused_in_words(fn: Any, given: str) -> None:
    with pytest.raises(ValueError, match=f"no result is floating or complex.* got {given}"):
        check_gradients(fn, [1.0, 2.0])


def test_an_integer_result_beside_a_floating_one_is_left_out() -> None:
    check_gradients(lambda x: [gt.argmax(x), gt.sin(x)], [1.0, 2.0])


@pytest.mark.parametrize("result", [1.0, np.ones(2), None, "x"])
def test_a_result_that_is_no_tensor_is_refused_in_words(result: Any) -> None:
    with pytest.raises(TypeError, match=r"result 0 of the function is \w+ instead of a tensor"):
        check_gradients(lambda x: result, [1.0, 2.0])


#: Rules of the identity that are right for moderate upstream gradients.
NOT_LINEAR: dict[str, Any] = {
    "clipped": lambda g: gt.clip(g, -20.0, 20.0),
    "clipped far away": lambda g: gt.clip(g, -1e9, 1e9),
    "small ones left out": lambda g: gt.where(gt.abs(g) > 1e-6, g, 0.0),
    "limited norm": lambda g: g / gt.maximum(1.0, gt.linalg.norm(g) / 100.0),
    "limited softly": lambda g: g / gt.sqrt(1.0 + 1e-20 * g * g),
}


@pytest.mark.parametrize("name", NOT_LINEAR)
def test_a_rule_that_is_not_linear_in_its_upstream_gradient_is_found(name: str) -> None:
    rule = NOT_LINEAR[name]
    fn = gt.custom_gradient(lambda x: (gt.copy(x), rule))
    with pytest.raises(AssertionError, match=r"order 1, input 0.* not linear in the upstream"):
        check_gradients(fn, [0.5, -1.5], order=1)
    check_gradients(fn, [0.5, -1.5], linear=False)


def test_a_second_rule_that_is_not_linear_is_found() -> None:
    @gt.custom_gradient
    def slope(g: Any, x: Any) -> Any:
        return 2.0 * g * x, lambda u: (gt.clip(2.0 * u * x, -50.0, 50.0), 2.0 * u * g)

    fn = gt.custom_gradient(lambda x: (x * x, lambda g: slope(g, x)))
    check_gradients(fn, [0.5, -1.5], order=1)
    with pytest.raises(AssertionError, match=r"order 2, input \d.* not linear in the upstream"):
        check_gradients(fn, [0.5, -1.5], order=2)


@pytest.mark.parametrize("factor", [1e-30, 1.0, 1e30])
@pytest.mark.parametrize("point", [[0.5, -2.0], [0.5 + 1.0j, -2.0 + 0.5j]])
def test_rules_of_any_size_are_linear(factor: float, point: Any) -> None:
    check_gradients(lambda x: gt.sin(x) * factor, point)
    check_gradients(lambda x: gt.conj(x) * x * factor, point)
