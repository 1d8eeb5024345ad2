"""Gradient rules that call their own function, directly or through others, transformed."""

from __future__ import annotations

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import GradientError

POINT = 0.7


@gt.custom_gradient
def root(x):
    y = gt.stop_gradient(x)
    for _ in range(30):
        y = 0.5 * (y + x / y)
    return y, lambda u: u / (2.0 * root(x))


@gt.custom_gradient
def sine(x):
    return gt.sin(x), lambda u: u * cosine(x)


@gt.custom_gradient
def cosine(x):
    return gt.cos(x), lambda u: -u * sine(x)


@gt.custom_gradient
def first(x):
    return gt.exp(x), lambda u: u * second(x)


@gt.custom_gradient
def second(x):
    return gt.exp(x), lambda u: u * third(x)


@gt.custom_gradient
def third(x):
    return gt.exp(x), lambda u: u * first(x)


@gt.custom_gradient
def chosen(x):
    """exp for positive x, sin otherwise; the rule calls it inside cond."""

    def rule(u):
        return gt.cond(x > 0.0, lambda: u * chosen(x), lambda: u * gt.cos(x))

    return gt.where(x > 0.0, gt.exp(x), gt.sin(x)), rule


@gt.custom_gradient
def counted(x, n):
    """The n-th derivative of sin; the rule passes another number every time."""
    shifted = x + n * (np.pi / 2)
    return gt.sin(shifted), lambda u: u * counted(x, n + 1)


@gt.custom_gradient
def pair(x):
    """Two results, each with the other's derivative: cosh and sinh."""

    def rule(u, v):
        c, s = pair(x)
        return u * s + v * c

    return (gt.cosh(x), gt.sinh(x)), rule


scale = gt.Variable(np.array(1.5))


@gt.custom_gradient
def scaled(x):
    """exp(scale x), with a rule for x and for the variable."""

    def rule(u, variables):
        return u * scale * scaled(x), [u * x * scaled(x)]

    return gt.exp(scale * x), rule


def by_new_function(x):
    """exp, with a rule that defines the function again each time."""

    @gt.custom_gradient
    def inner(x):
        return gt.exp(x), lambda u: u * by_new_function(x)

    return inner(x)


def of_parts(x):
    """exp of the sum of x, with a rule that calls the function of shorter arrays."""

    @gt.custom_gradient
    def inner(x):
        def rule(u):
            rest = of_parts_sum(x[1:]) if x.shape[0] > 1 else 1.0
            return gt.ones_like(x) * u * gt.exp(x[0]) * rest

        return gt.exp(gt.sum(x)), rule

    return inner(gt.stack([x, x]) * 0.5)


@gt.custom_gradient
def of_parts_sum(x):
    def rule(u):
        rest = of_parts_sum(x[1:]) if x.shape[0] > 1 else 1.0
        return gt.ones_like(x) * u * gt.exp(x[0]) * rest

    return gt.exp(gt.sum(x)), rule


FUNCTIONS = {
    "itself": root,
    "two": sine,
    "three": first,
    "in cond": chosen,
    "other numbers": lambda x: counted(x, 0),
    "results": lambda x: gt.sum(gt.stack(pair(x)) * np.array([1.0, 0.5])),
    "variable": scaled,
    "new function": by_new_function,
    "composed": lambda x: sine(root(x)) * root(cosine(x)),
    "nested": lambda x: root(root(root(x))),
    "shorter arrays": of_parts,
}

TRUE = {
    "itself": lambda x: x**0.5,
    "two": gt.sin,
    "three": gt.exp,
    "in cond": gt.exp,
    "other numbers": gt.sin,
    "results": lambda x: gt.cosh(x) + 0.5 * gt.sinh(x),
    "variable": lambda x: gt.exp(1.5 * x),
    "new function": gt.exp,
    "composed": lambda x: gt.sin(x**0.5) * gt.cos(x) ** 0.5,
    "nested": lambda x: x**0.125,
    "shorter arrays": gt.exp,
}


def _one(h):
    """Return ``h`` of one number, from ``h`` of arrays of one axis."""
    return lambda x: h(gt.reshape(x, [1]))[0]


def _scanned(f):
    return lambda x: gt.scan(lambda kept, each: (f(kept), None), x, gt.constant([1.0]))[0]


FORMS = {
    "eager": lambda f: f,
    "function": gt.function,
    "function of function": lambda f: gt.function(gt.function(f)),
    "cond": lambda f: gt.function(lambda x: gt.cond(x > 0.0, lambda: f(x), lambda: x)),
    "scan": _scanned,
    "function of scan": lambda f: gt.function(_scanned(f)),
    "while": lambda f: gt.function(
        lambda x: gt.while_loop(
            lambda i, k: i < 1, lambda i, k: (i + 1, f(k)), (gt.constant(0), x), 1
        )[1]
    ),
    "map": lambda f: _one(gt.function(lambda xs: gt.map(f, xs))),
    "vmap": lambda f: _one(gt.vmap(f)),
    "function of vmap": lambda f: _one(gt.function(gt.vmap(f))),
    "vmap of function": lambda f: _one(gt.vmap(gt.function(f))),
    "vmap of cond": lambda f: _one(
        gt.vmap(lambda x: gt.cond(x > 0.0, lambda: f(x), lambda: x * 1.0))
    ),
    "function of vmap of cond": lambda f: _one(
        gt.function(gt.vmap(lambda x: gt.cond(x > 0.0, lambda: f(x), lambda: x * 1.0)))
    ),
    "recomputed": gt.recompute_grad,
    "recomputed in a function": lambda f: gt.function(gt.recompute_grad(f)),
}


def orders(f, x: float, n: int) -> list[float]:
    """Return the derivatives of orders 0 to n at a number of float64."""
    found = []
    for _ in range(n + 1):
        found.append(f(gt.constant(np.array(x))).item())
        f = gt.grad(f)
    return found


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_of_orders_one_to_three(name: str, form: str) -> None:
    expected = orders(TRUE[name], POINT, 3)
    np.testing.assert_allclose(orders(FORMS[form](FUNCTIONS[name]), POINT, 3), expected, rtol=1e-9)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_forward_mode_of_each_order(name: str) -> None:
    f, true = FUNCTIONS[name], TRUE[name]
    for wrap in (lambda f: f, gt.function):
        x = gt.constant(np.array(POINT))
        one = gt.ones_like(x)
        g = wrap(f)
        second = gt.jvp(lambda x, g=g: gt.jvp(g, x, gt.ones_like(x))[1], x, one)[1]
        np.testing.assert_allclose(second, orders(true, POINT, 2)[2], rtol=1e-9)
        np.testing.assert_allclose(gt.hessian(g)(x), orders(true, POINT, 2)[2], rtol=1e-9)


def test_derivatives_with_respect_to_a_variable_that_a_recursive_rule_reads() -> None:
    x = gt.constant(np.array(POINT))
    for f in (scaled, gt.function(scaled)):
        with gt.GradientTape() as outer:
            with gt.GradientTape() as tape:
                y = f(x)
            slope = tape.gradient(y, scale)
        np.testing.assert_allclose(slope, POINT * np.exp(1.5 * POINT), rtol=1e-12)
        np.testing.assert_allclose(
            outer.gradient(slope, scale), POINT**2 * np.exp(1.5 * POINT), rtol=1e-12
        )


def test_values_from_outside_that_a_recursive_rule_captures() -> None:
    """The shared rule receives them; in a branch too, where a tape may follow them."""

    def through(wrap):
        def f(x, c):
            @gt.custom_gradient
            def power(x):  # its rule is c times that of exp, at every order
                return gt.exp(x), lambda u: u * c * power(x)

            return wrap(power, x)

        return f

    plain = through(lambda power, x: power(x))
    branch = through(lambda power, x: gt.cond(x > 0.0, lambda: power(x), lambda: x))
    loop = through(
        lambda power, x: gt.scan(lambda k, _: (power(k), None), x, gt.constant([1.0]))[0]
    )
    x, c = gt.constant(np.array(POINT)), gt.constant(np.array(2.0))
    for f in (plain, gt.function(plain), gt.function(branch), loop, gt.function(loop)):
        np.testing.assert_allclose(gt.grad(f)(x, c), 2.0 * np.exp(POINT), rtol=1e-12)
        twice = gt.grad(gt.grad(f))
        np.testing.assert_allclose(twice(x, c), 4.0 * np.exp(POINT), rtol=1e-12)
        np.testing.assert_allclose(gt.grad(twice)(x, c), 8.0 * np.exp(POINT), rtol=1e-12)
        mixed = gt.grad(lambda c, f=f: gt.grad(f)(x, c))
        np.testing.assert_allclose(mixed(c), np.exp(POINT), rtol=1e-12)
        mixed = gt.grad(lambda c, twice=twice: twice(x, c))
        np.testing.assert_allclose(mixed(c), 4.0 * np.exp(POINT), rtol=1e-12)

    def inside(c):
        @gt.custom_gradient
        def power(x):
            return gt.exp(x), lambda u: u * c * power(x)

        f = gt.vmap(lambda x: gt.cond(x > 0.0, lambda: power(x), lambda: x * 1.0))
        return lambda xs: gt.sum(f(xs))

    xs = gt.constant([POINT, -1.0], dtype="float64")
    for wrap in (lambda f: f, gt.function):
        slope = wrap(lambda c: gt.grad(lambda xs: gt.sum(gt.grad(inside(c))(xs)))(xs))
        np.testing.assert_allclose(slope(c), [4.0 * np.exp(POINT), 0.0], rtol=1e-12)
        mixed = gt.grad(lambda c, slope=slope: gt.sum(slope(c)))
        np.testing.assert_allclose(mixed(c), 4.0 * np.exp(POINT), rtol=1e-12)


def test_unknown_sizes() -> None:
    f = gt.function(lambda x: gt.sum(root(x) * root(x + 1.0)))
    concrete = f.get_concrete_function(gt.TensorSpec([None, "n"], "float64"))
    for shape in ((2, 3), (1, 1), (0, 2)):
        x = gt.constant(np.full(shape, 0.5))
        expected = gt.hvp(lambda x: gt.sum((x * (x + 1.0)) ** 0.5), x, gt.ones_like(x))
        np.testing.assert_allclose(gt.hvp(concrete, x, gt.ones_like(x)), expected, rtol=1e-9)
    whole = gt.function(lambda x: gt.sum(root(x)), input_signature=[gt.TensorSpec(None, "float64")])
    np.testing.assert_allclose(gt.grad(gt.grad(whole))(np.array(4.0)), -1 / 32)


def test_one_rule_serves_all_calls_of_a_trace() -> None:
    concrete = gt.function(lambda x: root(x) + root(2.0 * x) + root(root(x))).get_concrete_function(
        gt.TensorSpec([3])
    )
    text = str(concrete.graph)
    assert "rule 0, the gradient of root" in text
    assert "rule 1" not in text


def test_a_rule_is_traced_a_few_times_and_not_more_for_higher_orders() -> None:
    calls = []

    @gt.custom_gradient
    def noted(x):
        def rule(u):
            calls.append(1)
            return u * noted(x)

        return gt.exp(x), rule

    f = gt.function(noted)
    orders(f, POINT, 5)
    assert len(calls) == 2


def test_a_trace_keeps_many_orders_of_a_rule_that_passes_other_numbers_each_time() -> None:
    f = gt.function(lambda x: counted(x, 0))
    x = gt.constant(np.array(POINT))
    slope = f
    for _ in range(20):
        slope = gt.grad(slope)
    np.testing.assert_allclose(slope(x), np.sin(POINT), rtol=1e-9)
    for _ in range(20):
        slope = gt.grad(slope)
    with pytest.raises(GradientError, match="'counted' calls the function itself, each time with"):
        slope(x)


def test_functions_without_end_are_refused_and_not_a_recursion_error() -> None:
    def make(k):
        @gt.custom_gradient
        def endless(x):
            return gt.exp(x) * k, lambda u: u * make(k + 0.5)(x) + u * make(k - 0.5)(x)

        return endless

    f = gt.function(lambda x: make(1.0)(x))
    x = gt.constant(np.array(POINT))
    np.testing.assert_allclose(f(x), np.exp(POINT))
    with pytest.raises(GradientError, match=r"'endless' as a new function each time"):
        gt.grad(f)(x)


def test_a_recursive_rule_that_cannot_be_traced_says_so() -> None:
    @gt.custom_gradient
    def reads(x):
        return gt.exp(x), lambda u: u * reads(x) * float(u)

    f = gt.function(reads)
    assert f(gt.constant(1.0)).item() == pytest.approx(np.e)
    with pytest.raises(GradientError, match="'reads'"):
        gt.grad(f)(gt.constant(1.0))


def test_random_numbers_in_a_recursive_function_are_those_of_its_result_or_refused() -> None:
    stream = gt.random.Generator(1)

    @gt.custom_gradient
    def noisy(x):
        noise = stream.normal(x.shape)
        return x * noise, lambda u: u * noise + 0.0 * noisy(x)

    x = gt.ones([4])
    value, slope = gt.value_and_grad(lambda x: gt.sum(noisy(x)))(x)
    np.testing.assert_allclose(value, gt.sum(slope), rtol=1e-6)
    f = gt.function(lambda x: gt.sum(noisy(x)))
    f(x)
    with pytest.raises(GradientError):
        gt.grad(f)(x)
