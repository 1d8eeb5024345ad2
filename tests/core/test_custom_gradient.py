"""``custom_gradient``, ``register_gradient`` and ``stop_gradient``, eagerly and in functions."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.extend import Op, hookimpl
from gradtape.errors import GradientError, PluginError

EAGER_AND_TRACED = pytest.mark.parametrize(
    "wrap", [lambda f: f, gt.function], ids=["eager", "traced"]
)


@gt.custom_gradient
def wrong_cube(x):
    """x³ whose gradient is said to be 10 x²: orders 1 to 3 at 2 are 40, 40 and 20."""
    return x * x * x, lambda g: 10.0 * g * x * x


def orders(f, at: float, n: int) -> list[float]:
    x = gt.constant(at)

    def derivative(k: int) -> gt.Tensor:
        if k == 0:
            return f(x)
        with gt.GradientTape() as tape:
            tape.watch(x)
            y = derivative(k - 1)
        return tape.gradient(y, x)

    return [derivative(k).item() for k in range(n + 1)]


@EAGER_AND_TRACED
def test_a_rule_that_is_wrong_on_purpose_holds_at_every_order(wrap) -> None:
    assert orders(wrap(wrong_cube), 2.0, 3) == [8.0, 40.0, 40.0, 20.0]
    assert orders(wrap(lambda x: wrong_cube(x) * 2.0), 2.0, 3) == [16.0, 80.0, 80.0, 40.0]


def test_orders_with_tapes_inside_the_function() -> None:
    @gt.function
    def first(x):
        with gt.GradientTape() as tape:
            tape.watch(x)
            y = wrong_cube(x)
        return tape.gradient(y, x)

    assert orders(first, 2.0, 2) == [40.0, 40.0, 20.0]

    @gt.function
    def third(x):
        with gt.GradientTape() as t2:
            t2.watch(x)
            y = first(x)
        with gt.GradientTape() as t3:
            t3.watch(x)
            with gt.GradientTape() as t2:
                t2.watch(x)
                y = first(x)
            second = t2.gradient(y, x)
        return t3.gradient(second, x)

    assert third(gt.constant(2.0)).item() == 20.0


@EAGER_AND_TRACED
def test_in_a_loop(wrap) -> None:
    def f(x):
        for _ in range(3):
            x = wrong_cube(x) * 0.1
        return x

    def by_hand(x: float) -> tuple[float, float]:
        slope = 1.0
        for _ in range(3):
            slope *= 10.0 * x * x * 0.1
            x = x**3 * 0.1
        return x, slope

    value, slope = orders(wrap(f), 1.5, 1)
    np.testing.assert_allclose((value, slope), by_hand(1.5), rtol=1e-5)


@EAGER_AND_TRACED
def test_several_inputs_and_outputs(wrap) -> None:
    @gt.custom_gradient
    def f(a, b):
        def backward(g_sum, g_product):
            return g_sum * 100.0 + g_product * b, g_sum * 1000.0 + g_product * a

        return (a + b, a * b), backward

    a, b = gt.constant(2.0), gt.constant(3.0)
    g = wrap(f)
    with gt.GradientTape(persistent=True) as tape:
        tape.watch([a, b])
        s, p = g(a, b)
        both = s + p
    assert [s.item(), p.item()] == [5.0, 6.0]
    assert [x.item() for x in tape.gradient(s, [a, b])] == [100.0, 1000.0]
    assert [x.item() for x in tape.gradient(p, [a, b])] == [3.0, 2.0]
    assert [x.item() for x in tape.gradient(both, [a, b])] == [103.0, 1002.0]
    assert tape.gradient(both, a).item() == 103.0


@EAGER_AND_TRACED
def test_nested_containers(wrap) -> None:
    @gt.custom_gradient
    def f(pair, scale):
        result = {"sum": pair["a"] + pair["b"][0], "rest": [scale * 2.0]}

        def backward(g_rest, g_sum):  # one upstream gradient a result, dict keys sorted
            return {"a": g_sum * 2.0, "b": [g_sum * 3.0]}, g_rest * 5.0

        return result, backward

    a, b, c = gt.constant(1.0), gt.constant(2.0), gt.constant(4.0)
    with gt.GradientTape(persistent=True) as tape:
        tape.watch([a, b, c])
        result = wrap(f)({"a": a, "b": [b]}, c)
        total = result["sum"] + result["rest"][0]
    assert list(result) == ["sum", "rest"]
    assert total.item() == 11.0
    assert [g.item() for g in tape.gradient(total, [a, b, c])] == [2.0, 3.0, 5.0]


@EAGER_AND_TRACED
def test_arguments_that_are_no_tensors(wrap) -> None:
    @gt.custom_gradient
    def power(x, n, *, scale=1.0):
        return scale * x**n, lambda g: g * scale * n * x ** (n - 1) * 10.0

    x = gt.constant(2.0)
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = wrap(lambda x: power(x, 3, scale=2.0))(x)
    assert y.item() == 16.0
    assert tape.gradient(y, x).item() == 240.0

    @gt.custom_gradient
    def all_arguments(x, n):
        return x * n, lambda g: (g * 7.0, None)  # a gradient for each argument is fine as well

    with gt.GradientTape() as tape:
        tape.watch(x)
        y = wrap(lambda x: all_arguments(x, 3))(x)
    assert tape.gradient(y, x).item() == 7.0


def test_arrays_and_variables_as_arguments_become_tensors() -> None:
    @gt.custom_gradient
    def f(x, y):
        assert isinstance(x, gt.Tensor)
        assert isinstance(y, gt.Tensor)
        return x * y, lambda g: (g * y, g * x * 10.0)

    v = gt.Variable(3.0)
    with gt.GradientTape() as tape:
        z = f(np.float32(2.0), v)
    assert tape.gradient(z, v).item() == 20.0


@EAGER_AND_TRACED
def test_a_nested_custom_gradient(wrap) -> None:
    @gt.custom_gradient
    def outer(x):
        y = wrong_cube(x)
        return y, lambda g: g * wrong_cube(x)

    assert orders(wrap(outer), 2.0, 3) == [8.0, 8.0, 40.0, 40.0]


@EAGER_AND_TRACED
def test_a_gradient_function_that_takes_a_gradient(wrap) -> None:
    @gt.custom_gradient
    def doubled(x):
        def backward(g):
            with gt.GradientTape() as tape:
                tape.watch(x)
                y = gt.sin(x)
            return 2.0 * g * tape.gradient(y, x)

        return gt.sin(x), backward

    got = orders(wrap(doubled), 0.5, 2)
    np.testing.assert_allclose(got, [np.sin(0.5), 2 * np.cos(0.5), -2 * np.sin(0.5)], rtol=1e-6)


@EAGER_AND_TRACED
def test_variables_that_are_read(wrap) -> None:
    v, w = gt.Variable(3.0, name="v"), gt.Variable(5.0, name="w")

    @gt.custom_gradient
    def f(x):
        y = x * v + w

        def backward(g, variables=None):
            assert [variable.name for variable in variables] == ["v", "w"]
            return g * v * 2.0, [g * x * 10.0, g * 100.0]

        return y, backward

    x = gt.constant(2.0)
    with gt.GradientTape(persistent=True) as outer:
        outer.watch(x)
        with gt.GradientTape() as tape:
            tape.watch(x)
            y = wrap(f)(x)
        grads = tape.gradient(y, {"x": x, "v": v, "w": w})
    assert y.item() == 11.0
    assert {k: g.item() for k, g in grads.items()} == {"x": 6.0, "v": 20.0, "w": 100.0}
    assert outer.gradient(grads["x"], v).item() == 2.0
    assert outer.gradient(grads["v"], x).item() == 10.0


def test_variables_through_keyword_arguments_of_the_gradient_function() -> None:
    v = gt.Variable(3.0)

    @gt.custom_gradient
    def f(x):
        return x * v, lambda g, **kwargs: (g, [g * len(kwargs["variables"])])

    with gt.GradientTape() as tape:
        y = f(gt.constant(2.0))
    assert tape.gradient(y, v).item() == 1.0


def test_a_variable_that_is_an_argument_needs_no_variables() -> None:
    v = gt.Variable(3.0)

    @gt.custom_gradient
    def f(x):
        return x * v * 1.0, lambda g: g * 10.0

    with gt.GradientTape() as tape:
        y = f(v)
    assert tape.gradient(y, v).item() == 10.0


@EAGER_AND_TRACED
def test_a_gradient_of_none_ends_the_path(wrap) -> None:
    @gt.custom_gradient
    def f(x, y):
        return x * y, lambda g: (None, g * 2.0)

    x, y = gt.constant(2.0), gt.constant(3.0)
    with gt.GradientTape(persistent=True) as tape:
        tape.watch([x, y])
        z = wrap(f)(x, y)
    dx, dy = tape.gradient(z, [x, y])
    assert dx is None
    assert dy.item() == 2.0
    assert tape.gradient(z, x, unconnected_gradients="zero").item() == 0.0


@EAGER_AND_TRACED
@pytest.mark.parametrize(
    ("backward", "message"),
    [
        (lambda g: (g, g), "1 arguments.*2 gradients"),
        (lambda g: gt.stack([g, g]), r"argument 0 has shape \(2,\).*shape \(\)"),
        (lambda g: [], "0 gradients"),
    ],
)
def test_wrong_counts_and_shapes(wrap, backward, message: str) -> None:
    @gt.custom_gradient
    def named(x):
        return x * 1.0, backward

    def gradient(x):
        with gt.GradientTape() as tape:
            tape.watch(x)
            y = wrap(named)(x)
        return tape.gradient(y, x)

    with pytest.raises(ValueError, match=message) as caught:
        gradient(gt.constant(1.0))
    assert "named" in str(caught.value)


def test_wrong_variable_gradients() -> None:
    v = gt.Variable(1.0)
    x = gt.constant(1.0)
    for backward, message in [
        (lambda g, variables: g, "variable_gradients"),
        (lambda g, variables: (g, []), "reads 1 variables.*0 variable gradients"),
        (lambda g, variables: (g, [gt.stack([g, g])]), "a variable has shape"),
    ]:

        @gt.custom_gradient
        def f(x, backward=backward):
            return x * v, backward

        with gt.GradientTape() as tape:
            y = f(x)
        with pytest.raises(ValueError, match=message):
            tape.gradient(y, v)


@pytest.mark.parametrize("returned", [None, 1.0, (1.0, 2.0), (1.0, len, 3.0)], ids=repr)
def test_a_function_that_returns_no_pair(returned) -> None:
    @gt.custom_gradient
    def f(x):
        return returned

    with pytest.raises(TypeError, match=r"must return \(result, grad_fn\)"):
        f(gt.constant(1.0))


def test_the_backward_pass_of_the_inside_is_not_used() -> None:
    @gt.custom_gradient
    def straight_through(x):
        return gt.round(x), lambda g: g

    x = gt.constant([0.4, 1.6])
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = straight_through(x) * 3.0
    np.testing.assert_array_equal(y, [0.0, 6.0])
    np.testing.assert_array_equal(tape.gradient(y, x), [3.0, 3.0])


def test_a_stable_gradient_of_log1pexp() -> None:
    @gt.custom_gradient
    def log1pexp(x):
        e = gt.exp(x)
        return gt.log(1.0 + e), lambda g: g * (1.0 - 1.0 / (1.0 + e))

    x = gt.constant(100.0)
    with gt.GradientTape() as tape, np.errstate(over="ignore"):
        tape.watch(x)
        y = log1pexp(x)
        assert tape.gradient(y, x).item() == 1.0


def test_the_gradient_has_the_arguments_dtype() -> None:
    @gt.custom_gradient
    def f(x):
        return x * 1.0, lambda g: np.float64(2.0)

    x = gt.constant(1.0)
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert tape.gradient(y, x).dtype == np.float32


def test_the_gradient_function_is_not_called_for_nothing() -> None:
    @gt.custom_gradient
    def f(x):
        return x * 1.0, lambda g: 1 / 0

    x, other = gt.constant(1.0), gt.constant(1.0)
    assert f(x).item() == 1.0
    with gt.GradientTape() as tape:
        tape.watch([x, other])
        y = f(x) + other
    assert tape.gradient(y, other).item() == 1.0


def test_a_closure_that_is_not_traceable_works_eagerly_and_says_why_it_does_not_traced() -> None:
    @gt.custom_gradient
    def with_numpy(x):
        def backward(g):
            return gt.constant(np.linalg.norm(g.numpy()) * np.sign(x.numpy()))

        return x * 1.0, backward

    x = gt.constant([3.0, -4.0])
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = with_numpy(x)
    np.testing.assert_allclose(tape.gradient(y, x), [np.sqrt(2), -np.sqrt(2)], rtol=1e-6)

    f = gt.function(with_numpy)
    np.testing.assert_array_equal(f(x), x)  # without a gradient nothing is amiss
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    with pytest.raises(GradientError, match=r"with_numpy.*test_custom_gradient\.py:\d+") as caught:
        tape.gradient(y, x)
    assert "outside gradtape.function" in str(caught.value)
    assert "cannot be traced" in str(f.concrete_functions[0].graph)


def test_methods_partials_and_metadata() -> None:
    class Scaled:
        factor = 3.0

        @gt.custom_gradient
        def f(self, x):
            """Scale."""
            return x * self.factor, lambda g: g * 10.0

    assert Scaled.f.__doc__ == "Scale."
    x = gt.constant(2.0)
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = Scaled().f(x)
    assert y.item() == 6.0
    assert tape.gradient(y, x).item() == 10.0

    f = gt.custom_gradient(functools.partial(lambda k, x: (x * k, lambda g: g * 5.0), 2.0))
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert tape.gradient(y, x).item() == 5.0


def test_constants_computed_forward_are_cached_for_backward() -> None:
    calls = []

    @gt.custom_gradient
    def f(x):
        calls.append("forward")
        cached = gt.exp(x)
        return cached, lambda g: g * cached

    x = gt.constant(1.0)
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    np.testing.assert_allclose(tape.gradient(y, x), np.e, rtol=1e-6)
    assert calls == ["forward"]


# -- stop_gradient ---------------------------------------------------------------------------------


@EAGER_AND_TRACED
def test_stop_gradient(wrap) -> None:
    x = gt.constant(3.0)
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = wrap(lambda x: x * gt.stop_gradient(x * x))(x)
    assert y.item() == 27.0
    assert tape.gradient(y, x).item() == 9.0


# -- register_gradient -----------------------------------------------------------------------------


class Doubling:
    """A plugin with ops that have no gradient yet."""

    @hookimpl
    def gradtape_ops(self):
        elementwise = {"infer": lambda *xs: (xs[0].shape, xs[0].dtype)}
        return [
            Op("doubling::twice", lambda xp, x: x * 2, **elementwise),
            Op("doubling::scaled", lambda xp, x, y, *, by=2.0: x * y * by, **elementwise),
        ]


@pytest.fixture
def doubling():
    gt.register_plugin(Doubling(), "doubling")
    yield gt.registry()
    gt.unregister_plugin("doubling")


def test_a_gradient_for_an_op_without_one(doubling) -> None:
    twice = doubling.op("doubling::twice")
    x = gt.constant(3.0)
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = twice(x)
    assert "no gradient rule" in tape.explain(y, x)
    assert tape.gradient(y, x) is None

    @gt.register_gradient("doubling::twice")
    def rule(g, x, out):
        return g * (out / x)

    assert orders(twice, 3.0, 1) == [6.0, 2.0]
    assert orders(gt.function(twice), 3.0, 1) == [6.0, 2.0]
    with pytest.raises(PluginError, match="override=True"):
        gt.register_gradient("doubling::twice")(rule)
    gt.register_gradient("doubling::twice", override=True)(lambda g: g * 50.0)
    assert orders(twice, 3.0, 1) == [6.0, 50.0]


def test_a_gradient_rule_with_parameters_and_several_inputs(doubling) -> None:
    scaled = doubling.op("doubling::scaled")

    @gt.register_gradient("doubling::scaled")
    def rule(g, y, by):
        return g * y * by, None

    x, y = gt.constant(3.0), gt.constant(5.0)
    with gt.GradientTape() as outer:
        outer.watch([x, y])
        with gt.GradientTape() as tape:
            tape.watch([x, y])
            z = scaled(x, y, by=4.0)
        dx, dy = tape.gradient(z, [x, y])
    assert (z.item(), dx.item()) == (60.0, 20.0)
    assert dy is None
    assert outer.gradient(dx, y).item() == 4.0


def test_rules_that_cannot_be(doubling) -> None:
    with pytest.raises(LookupError, match=r"doubling::twise.*doubling::twice"):
        gt.register_gradient("doubling::twise")
    with pytest.raises(PluginError, match=r"rule.*'z'"):
        gt.register_gradient("doubling::twice")(lambda g, z: g)

    @gt.register_gradient("doubling::scaled")
    def rule(g):
        return g

    x = gt.constant(3.0)
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = gt.registry().op("doubling::scaled")(x, x)
    with pytest.raises(GradientError, match="1 gradients for 2 inputs"):
        tape.gradient(y, x)


ONE_FOR_TWO = {
    "grad by the first": lambda f: gt.grad(f, argnums=0)(2.0, 3.0),
    "grad by the second": lambda f: gt.grad(f, argnums=1)(2.0, 3.0),
    "grad beside an array": lambda f: gt.grad(f)(2.0, np.float32(3.0)),
    "jacobian": lambda f: gt.jacobian(f)(2.0, 3.0),
    "jacfwd": lambda f: gt.jacfwd(lambda x: f(x, 3.0))(2.0),
    "jvp": lambda f: gt.jvp(lambda x: f(x, 3.0), 2.0, 1.0),
    "vmap": lambda f: gt.vmap(lambda x: gt.grad(f)(x, 3.0))(gt.ones(3)),
    "function": lambda f: gt.function(gt.grad(f))(2.0, 3.0),
    "grad of a function": lambda f: gt.grad(gt.function(f))(2.0, 3.0),
}


@pytest.mark.parametrize("ask", ONE_FOR_TWO)
def test_one_gradient_for_two_arguments_is_an_error_whoever_asks(ask) -> None:
    @gt.custom_gradient
    def product(a, b):
        return a * b, lambda g: g * 7.0

    with pytest.raises((ValueError, gt.errors.GradientError), match="product has 2 arguments"):
        ONE_FOR_TWO[ask](product)


@pytest.mark.parametrize("option", [2, "text", None, np.exp, True])
def test_python_values_that_have_no_gradient_may_be_left_out(option) -> None:
    @gt.custom_gradient
    def scaled(x, option):
        return x * 2.0, lambda g: g * 7.0

    assert gt.grad(scaled)(1.0, option).item() == 7.0


def test_a_recomputed_function_may_take_python_numbers() -> None:
    f = gt.recompute_grad(lambda x, scale, n: scale * x**n)
    assert gt.grad(f)(3.0, 2.0, 2).item() == 12.0
    assert gt.grad(f, argnums=1)(3.0, 2.0, 2).item() == 9.0
