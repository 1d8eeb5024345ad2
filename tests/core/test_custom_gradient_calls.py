"""Custom gradients called in every form: by position, by keyword, with defaults and containers."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import gradtape as gt

# every rule is wrong on purpose, so that a gradient which does not use it differs:
# the value is x² y, and the gradients are said to be 10 x y and 100 x²
X, Y = 1.5, 0.5
FIRST = (10 * X * Y, 100 * X * X)
# gradients of the first gradient: with respect to x and y
SECOND = (10 * Y, 10 * X)


def _rule(x, y):
    return lambda u: (10.0 * u * x * y, 100.0 * u * x * x)


@gt.custom_gradient
def plain(x, y):
    return x * x * y, _rule(x, y)


@gt.custom_gradient
def with_defaults(x, y, scale=1.0, *, power=2, name="f"):
    return scale * x**power * y, _rule(x, y)


@gt.custom_gradient
def all_gradients(x, y, scale=1.0):
    """Its rule also returns a gradient for the argument with a default."""
    return scale * x * x * y, lambda u: (*_rule(x, y)(u), u * 0.0)


@gt.custom_gradient
def keyword_only(x, *, y):
    return x * x * y, _rule(x, y)


@gt.custom_gradient
def keywords(x, **others):
    return x * x * others["y"], _rule(x, others["y"])


@gt.custom_gradient
def star(*xs):
    return xs[0] * xs[0] * xs[1], _rule(*xs)


@gt.custom_gradient
def star_and_keywords(x, *rest, **others):
    y = rest[0] if rest else others["y"]
    return x * x * y, _rule(x, y)


@gt.custom_gradient
def positional_only(x, /, y):
    return x * x * y, _rule(x, y)


@gt.custom_gradient
def container(pair, scale=1.0):
    x, y = pair["x"], pair["y"]
    return scale * x * x * y, lambda u: dict(zip("xy", _rule(x, y)(u), strict=True))


@gt.custom_gradient
def number_first(n, x, y):
    return x**n * y, _rule(x, y)


class Owner:
    @gt.custom_gradient
    def method(self, x, y):
        # a rule may leave out what is no tensor
        return x * x * y, _rule(x, y)


CALLS = {
    "positional": lambda x, y: plain(x, y),
    "by keyword": lambda x, y: plain(x=x, y=y),
    "mixed": lambda x, y: plain(x, y=y),
    "in another order": lambda x, y: plain(y=y, x=x),
    "a default left out": lambda x, y: with_defaults(x, y),
    "a default left out, by keyword": lambda x, y: with_defaults(y=y, x=x),
    "a default given": lambda x, y: with_defaults(x, y, 1.0),
    "a default by keyword": lambda x, y: with_defaults(x, scale=1.0, y=y),
    "settings by keyword": lambda x, y: with_defaults(x, y, power=2, name="g"),
    "a gradient for a default": lambda x, y: all_gradients(x, y=y),
    "a gradient for a default, by position": lambda x, y: all_gradients(x, y, 1.0),
    "keyword-only": lambda x, y: keyword_only(x, y=y),
    "keyword-only, both by keyword": lambda x, y: keyword_only(y=y, x=x),
    "**": lambda x, y: keywords(x, y=y),
    "** and a keyword": lambda x, y: keywords(y=y, x=x),
    "*": lambda x, y: star(x, y),
    "* and **, by position": lambda x, y: star_and_keywords(x, y),
    "* and **, by keyword": lambda x, y: star_and_keywords(x, y=y),
    "positional-only": lambda x, y: positional_only(x, y=y),
    "container": lambda x, y: container({"x": x, "y": y}),
    "container by keyword": lambda x, y: container(scale=1.0, pair={"y": y, "x": x}),
    "number first": lambda x, y: number_first(2, x, y),
    "number by keyword": lambda x, y: number_first(x=x, y=y, n=2),
    "method": lambda x, y: Owner().method(x, y),
    "method by keyword": lambda x, y: Owner().method(y=y, x=x),
}

WRAPS = {
    "eager": lambda f: f,
    "traced": gt.function,
    "in cond": lambda f: gt.function(
        lambda x, y: gt.cond(x > 0.0, lambda: f(x, y), lambda: x * 0.0)
    ),
    "vmapped": lambda f: lambda x, y: gt.vmap(f)(gt.reshape(x, [1]), gt.reshape(y, [1]))[0],
    "vmapped over one": lambda f: (
        lambda x, y: gt.vmap(f, in_axes=(0, None))(gt.reshape(x, [1]), y)[0]
    ),
    "vmapped in a trace": lambda f: gt.function(
        lambda x, y: gt.vmap(f)(gt.reshape(x, [1]), gt.reshape(y, [1]))[0]
    ),
    "recomputed": gt.recompute_grad,
}


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("call", CALLS)
def test_gradients_follow_the_parameters_whatever_the_call_form(call: str, wrap: str) -> None:
    f = WRAPS[wrap](CALLS[call])
    x, y = (gt.constant(np.array(value)) for value in (X, Y))
    np.testing.assert_allclose(f(x, y), X * X * Y)
    np.testing.assert_allclose(gt.grad(f, argnums=(0, 1))(x, y), FIRST)
    second = gt.grad(gt.grad(f), argnums=(0, 1))
    np.testing.assert_allclose(second(x, y), SECOND)


@pytest.mark.parametrize("call", CALLS)
def test_forward_mode_uses_the_rule(call: str) -> None:
    x, y = (gt.constant(np.array(value)) for value in (X, Y))
    for wrap in (lambda f: f, gt.function):
        _, tangent = gt.jvp(wrap(CALLS[call]), (x, y), (gt.ones_like(x), 2 * gt.ones_like(y)))
        np.testing.assert_allclose(tangent, FIRST[0] + 2 * FIRST[1])


@pytest.mark.parametrize("call", CALLS)
def test_files_keep_the_rule(call: str, tmp_path) -> None:
    class Model(gt.Module):
        @gt.function(input_signature=[gt.TensorSpec([], "float64")] * 2)
        def run(self, x, y):
            return CALLS[call](x, y)

    gt.save(Model(), tmp_path / "calls.h5")
    f = gt.load(tmp_path / "calls.h5").run
    x, y = (gt.constant(np.array(value)) for value in (X, Y))
    np.testing.assert_allclose(gt.grad(f, argnums=(0, 1))(x, y), FIRST)
    np.testing.assert_allclose(gt.grad(gt.grad(f), argnums=(0, 1))(x, y), SECOND)


@pytest.mark.parametrize("wrap", ["eager", "traced", "in cond"])
@pytest.mark.parametrize(
    "call",
    [
        lambda v, x: plain(v, x),
        lambda v, x: plain(x=v, y=x),
        lambda v, x: plain(y=x, x=v),
        lambda v, x: keyword_only(v, y=x),
        lambda v, x: keywords(y=x, x=v),
        lambda v, x: container(pair={"x": v, "y": x}),
    ],
)
def test_a_variable_is_an_argument_in_every_form(call, wrap: str) -> None:
    v = gt.Variable(np.array(X))
    f = WRAPS[wrap](lambda x, y: call(v, y))
    y = gt.constant(np.array(Y))
    with gt.GradientTape() as outer:
        outer.watch(y)
        with gt.GradientTape() as tape:
            tape.watch(y)
            result = f(y, y)
        grads = tape.gradient(result, [v, y])
    np.testing.assert_allclose(grads, FIRST)
    np.testing.assert_allclose(outer.gradient(grads[0], [v, y]), SECOND)


def test_arrays_by_keyword_become_tensors() -> None:
    seen = []

    @gt.custom_gradient
    def f(x, y):
        seen.append((type(x), type(y)))
        return x * y, lambda u: (u, u)

    f(np.ones(2), y=np.ones(2))
    f(y=np.float32(1.0), x=gt.Variable(1.0))
    assert seen == [(gt.Tensor, gt.Tensor)] * 2


def test_arguments_that_do_not_fit_are_refused_by_name() -> None:
    with pytest.raises(TypeError, match=r"plain: missing a required argument: 'y'"):
        plain(x=1.0)
    with pytest.raises(TypeError, match=r"plain: got an unexpected keyword argument 'z'"):
        plain(1.0, 2.0, z=3.0)
    with pytest.raises(TypeError, match=r"plain: multiple values for argument 'x'"):
        plain(1.0, x=2.0)


def test_functions_whose_parameters_are_those_of_another_one() -> None:
    import functools

    def of(f):
        @functools.wraps(f)
        def wrapped(*args, **kwargs):
            return f(*args, **kwargs)

        return wrapped

    def first_filled(f):
        """A decorator that takes fewer parameters than it says."""

        @functools.wraps(f)
        def wrapped(**kwargs):
            return f(2.0, **kwargs)

        return wrapped

    def scaled(x, y):
        return x * y, lambda u: (u * 10.0, u * 100.0)

    f = gt.custom_gradient(of(scaled))
    assert [g.item() for g in gt.grad(lambda x, y: f(y=y, x=x), argnums=(0, 1))(1.0, 2.0)] == [
        10.0,
        100.0,
    ]
    g = gt.custom_gradient(first_filled(lambda x, y: (x * y, lambda u: u * 100.0)))
    assert gt.grad(lambda y: g(y=y))(3.0).item() == 100.0
    partial = gt.custom_gradient(functools.partial(scaled, y=2.0))
    assert gt.grad(partial)(3.0).item() == 10.0
    assert gt.grad(lambda x: partial(x=x))(3.0).item() == 10.0


def test_the_number_of_gradients_still_has_to_fit() -> None:
    @gt.custom_gradient
    def three(x, y):
        return x * y, lambda u: (u, u, u)

    with pytest.raises(ValueError, match=r"three has 2 arguments, but .* returned 3 gradients"):
        gt.grad(lambda x: three(y=x, x=x))(1.0)


def test_the_decorated_function_keeps_its_signature() -> None:
    assert str(inspect.signature(with_defaults)) == "(x, y, scale=1.0, *, power=2, name='f')"
