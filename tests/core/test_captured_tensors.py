"""Tensors that a function with a custom gradient captures: no derivative is lost without a word."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import BrokenPathWarning, GradientError

LEAVES_OUT = "custom gradient of 'scaled' leaves out a tensor that 'scaled' uses"


def captures(c, x=2.0):
    """x c, with a rule for x alone."""

    @gt.custom_gradient
    def scaled(x):
        return c * x, lambda u: u * c

    return scaled(gt.constant(x) if isinstance(x, float) else x)


def captures_a_derived_tensor(c, x=2.0):
    h = gt.sin(c) * 2.0

    @gt.custom_gradient
    def scaled(x):
        return gt.exp(h) * x, lambda u: u * gt.exp(h)

    return scaled(gt.constant(x) if isinstance(x, float) else x)


def returns_it(c, x=2.0):
    @gt.custom_gradient
    def scaled(x):
        return c, lambda u: u * 0.0

    return scaled(gt.constant(x) if isinstance(x, float) else x)


def nested(c, x=2.0):
    @gt.custom_gradient
    def scaled(x):
        return captures(c, x), lambda u: u * c

    return scaled(gt.constant(x) if isinstance(x, float) else x)


def keyword_only(c, x=2.0):
    @gt.custom_gradient
    def scaled(x, *, factor):
        return x * factor, lambda u: u * factor

    return scaled(gt.constant(x) if isinstance(x, float) else x, factor=c)


def default(c, x=2.0):
    @gt.custom_gradient
    def scaled(x, factor=c):
        return x * factor, lambda u: u * factor

    return scaled(gt.constant(x) if isinstance(x, float) else x)


def in_a_traced_part(c, x=2.0):
    @gt.custom_gradient
    def scaled(x):
        return gt.function(lambda x, c: c * x)(x, c), lambda u: u * c

    return scaled(gt.constant(x) if isinstance(x, float) else x)


CAPTURES = [
    captures,
    captures_a_derived_tensor,
    returns_it,
    nested,
    keyword_only,
    default,
    in_a_traced_part,
]

WRAPS = {
    "eager": lambda f: f,
    "another path": lambda f: lambda c: c * c + f(c),
    "an argument of it too": lambda f: lambda c: f(c, c * 2.0),
    "traced": gt.function,
    "traced around": lambda f: lambda c: gt.function(lambda x: f(c, x))(gt.constant(2.0)),
    "cond": lambda f: lambda c: gt.cond(c > 0.0, lambda: f(c), lambda: c),
    "traced cond": lambda f: gt.function(lambda c: gt.cond(c > 0.0, lambda: f(c) + c, lambda: c)),
    "scan": lambda f: (
        lambda c: gt.scan(lambda k, _: (f(c, k), None), gt.constant(1.0), gt.constant([1.0, 2.0]))[
            0
        ]
    ),
    "traced scan": lambda f: gt.function(
        lambda c: gt.scan(lambda k, _: (f(c, k), None), gt.constant(1.0), gt.constant([1.0, 2.0]))[
            0
        ]
    ),
    "vmap": lambda f: lambda c: gt.sum(gt.vmap(lambda x: f(c, x))(gt.constant([1.0, 2.0]))),
    "traced vmap": lambda f: gt.function(
        lambda c: gt.sum(gt.vmap(lambda x: f(c, x))(gt.constant([1.0, 2.0])))
    ),
    "vmapped cond": lambda f: (
        lambda c: gt.sum(
            gt.vmap(lambda x: gt.cond(x > 0.0, lambda: f(c, x), lambda: x))(
                gt.constant([1.0, -2.0])
            )
        )
    ),
}

POINT = 3.0


@pytest.mark.filterwarnings("ignore:.*function was traced")
@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("f", CAPTURES, ids=lambda f: f.__name__)
def test_a_lost_derivative_is_a_warning_and_strict_an_error(f, wrap: str) -> None:
    g = WRAPS[wrap](f)
    c = gt.constant(POINT)
    with pytest.warns(BrokenPathWarning, match=LEAVES_OUT):
        gt.grad(g)(c)
    with pytest.raises(GradientError, match=LEAVES_OUT):
        gt.grad(g, strict=True)(c)


@pytest.mark.parametrize("wrap", ["eager", "another path", "traced", "traced around", "cond"])
@pytest.mark.parametrize("f", [captures, captures_a_derived_tensor, nested])
def test_every_derivative_tells(f, wrap: str) -> None:
    g = WRAPS[wrap](f)
    c, one = gt.constant(POINT), gt.constant(1.0)
    for derivative in (
        lambda strict: gt.jvp(g, c, one, strict=strict),
        lambda strict: gt.vjp(g, c, strict=strict)[1](one),
        lambda strict: gt.jacrev(g, strict=strict)(c),
        lambda strict: gt.jacfwd(g, strict=strict)(c),
        lambda strict: gt.value_and_grad(g, strict=strict)(c),
    ):
        with pytest.warns(BrokenPathWarning, match=LEAVES_OUT):
            derivative(False)
        with pytest.raises(GradientError, match=LEAVES_OUT):
            derivative(True)


def test_a_tape_warns_once_for_a_line_and_explains() -> None:
    c = gt.constant(POINT)
    with gt.GradientTape(persistent=True) as tape:
        tape.watch(c)
        y = captures(c)
        z = y + c
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")
        for _ in range(3):
            tape.gradient(y, c)
    assert [w.category for w in told] == [BrokenPathWarning]
    assert told[0].filename == __file__
    assert tape.explain(y, c).startswith("None: a path from the source ends: the custom gradient")
    assert "Other paths from the source end: the custom gradient of" in tape.explain(z, c)


def test_what_is_meant_is_silent() -> None:
    """Values that no recorder follows, stopped values, values that only the rule uses."""
    c, x = gt.constant(POINT), gt.constant(2.0)
    table = gt.constant([1.0, 2.0])

    @gt.custom_gradient
    def of_a_table(x):
        return gt.sum(x * table), lambda u: u * gt.sum(table)

    def stopped(c):
        @gt.custom_gradient
        def scaled(x):
            return gt.stop_gradient(c) * x, lambda u: u * c

        return scaled(c)

    def stopped_outside(c):
        return captures(gt.stop_gradient(c), c)

    def in_the_rule_alone(c):
        @gt.custom_gradient
        def scaled(x):
            return x * x, lambda u: u * c * x

        return scaled(c)

    def by_comparison(c):
        @gt.custom_gradient
        def scaled(x):
            return gt.where(c > 0.0, x, -x), lambda u: u * gt.sign(c)

        return scaled(c)

    def of_shape_alone(c):
        @gt.custom_gradient
        def scaled(x):
            return x + gt.zeros_like(c), lambda u: u

        return scaled(c)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for wrap in (lambda f: f, gt.function):
            gt.grad(wrap(of_a_table), strict=True)(x)
            gt.grad(wrap(lambda x, c: captures(c, x)), strict=True)(x, c)
            for f in (stopped, stopped_outside, in_the_rule_alone, by_comparison, of_shape_alone):
                gt.grad(wrap(f), strict=True)(c)
                gt.jvp(wrap(f), c, x, strict=True)
            captures(c)
            wrap(captures)(c)
        gt.grad(gt.function(gt.recompute_grad(lambda x: gt.sin(x) * c)), strict=True)(x)


def test_a_variable_that_does_not_train_is_a_captured_tensor() -> None:
    v = gt.Variable(2.0, trainable=False)

    @gt.custom_gradient
    def scaled(x):
        return v * x, lambda u: u * v

    with gt.GradientTape(persistent=True) as tape:
        tape.watch(v)
        y = scaled(gt.constant(1.0))
    with pytest.warns(BrokenPathWarning, match=LEAVES_OUT):
        assert tape.gradient(y, v) is None


def test_second_derivatives_through_the_rule_are_whole() -> None:
    """The rule's own use of the tensor has a gradient."""
    c = gt.constant(POINT)
    for wrap in (lambda f: f, gt.function):
        slope = gt.grad(wrap(lambda x, c: captures(c, x)))
        np.testing.assert_allclose(gt.grad(lambda c, s=slope: s(gt.constant(2.0), c))(c), 1.0)


def test_a_loaded_function_warns_too(tmp_path) -> None:
    class Model(gt.Module):
        @gt.function(input_signature=[gt.TensorSpec([])])
        def run(self, c):
            return captures(gt.sin(c))

    gt.save(Model(), tmp_path / "model.h5")
    loaded = gt.load(tmp_path / "model.h5")
    with pytest.warns(BrokenPathWarning, match=LEAVES_OUT):
        gt.grad(loaded.run)(gt.constant(POINT))
