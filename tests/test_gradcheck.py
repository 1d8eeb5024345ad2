"""The gradient checker: trusted because it finds what is planted."""

import numpy as np
import pytest
from gradcheck import check_gradients

import gradtape as gt

X = np.array([0.5, 1.25, 2.0])


def cube_with_slope(factor):
    """x**3 with its gradient off by a factor at first order."""

    @gt.custom_gradient
    def cube(x):
        return x * x * x, lambda g: g * (3.0 * factor) * x * x

    return cube


def cube_with_curvature(factor):
    """x**3 with a right gradient, whose own gradient is off by a factor."""

    @gt.custom_gradient
    def slope(x):
        return 3.0 * x * x, lambda g: g * (6.0 * factor) * x

    @gt.custom_gradient
    def cube(x):
        return x * x * x, lambda g: g * slope(x)

    return cube


def test_it_accepts_what_is_right():
    check_gradients(cube_with_slope(1.0), X, order=3)
    check_gradients(cube_with_curvature(1.0), X, order=3)


@pytest.mark.parametrize("factor", [1.001, 0.999])
def test_it_finds_an_error_of_a_thousandth_at_first_order(factor):
    with pytest.raises(AssertionError, match="order 1, input 0"):
        check_gradients(cube_with_slope(factor), X, order=1)


@pytest.mark.parametrize("factor", [1.001, 0.999])
def test_it_finds_an_error_of_a_thousandth_at_second_order(factor):
    check_gradients(cube_with_curvature(factor), X, order=1)
    with pytest.raises(AssertionError, match="order 2, input 0"):
        check_gradients(cube_with_curvature(factor), X, order=2)


def test_it_finds_an_error_in_one_element_of_one_input():
    off = np.array([1.0, 1.0, 1.001])

    @gt.custom_gradient
    def product(x, y):
        return x * y, lambda g: (g * y, g * x * off)

    with pytest.raises(AssertionError, match=r"input 1, element \(2,\)"):
        check_gradients(product, X, X + 1.0, order=1)


def test_it_finds_a_missing_gradient():
    with pytest.raises(AssertionError, match="the tape says"):
        check_gradients(lambda x: gt.stop_gradient(x) * x, X, order=1)


def test_it_finds_a_gradient_that_is_not_conjugated():
    @gt.custom_gradient
    def square(z):
        return z * z, lambda g: 2.0 * g * z

    z = np.array([1.0 + 2.0j, -0.5 + 0.25j])
    check_gradients(lambda z: z * z, z)
    with pytest.raises(AssertionError, match="order 1"):
        check_gradients(square, z, order=1)


def test_it_refuses_a_kink():
    with pytest.raises(ValueError, match="kink"):
        check_gradients(gt.abs, np.array([1e-4]), order=1)


def test_it_refuses_inputs_without_gradients():
    with pytest.raises(ValueError, match="no input"):
        check_gradients(gt.abs, np.array([1, 2]))


def test_several_results_and_constant_inputs():
    check_gradients(lambda x, n: [x * n, gt.sin(x), x > 0.0], X, np.array([1, 2, 3]))
