"""Modules whose gradients, values or state are not the defaults: the table of ``test_odd_modules``.

A case makes its module and says what differs in this process while it is saved and measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import gradtape as gt

ROWS = [gt.TensorSpec([None, 3])]


class Case(NamedTuple):
    """What makes a module, and what is done to the process around it."""

    make: Callable[[], gt.Module]
    rules: dict[str, Callable[..., Any]]
    refused: str  # what the error says, if it cannot be saved
    dtype: str
    complex: bool


CASES: dict[str, Case] = {}


def case(
    refused: str = "", dtype: str = "float32", complex: bool = False, **rules: Callable[..., Any]
) -> Callable[[Any], Any]:
    """Add a case: a function of ``x``, or of ``(module, x)``, or what makes a module."""

    def add(f: Any) -> Any:
        def make() -> gt.Module:
            if f.__code__.co_argcount == 0:
                made: gt.Module = f()
                return made
            module = gt.Module("odd")
            run = (lambda x: f(module, x)) if f.__code__.co_argcount == 2 else f
            kind = "complex64" if complex else dtype
            if f.__code__.co_argcount == 2:
                module.scale = gt.Variable(1.25, dtype=dtype)
            module.f = gt.function(run, input_signature=[gt.TensorSpec([None, 3], kind)])
            return module

        CASES[f.__name__] = Case(make, rules, refused, dtype, complex)
        return f

    return add


@contextmanager
def with_rules(rules: dict[str, Callable[..., Any]]) -> Iterator[None]:
    """Register gradient rules in the place of others for a block."""
    with ExitStack() as stack:
        for name, rule in rules.items():
            op = gt.registry().op(name)
            kept = op.rules, op.vjp, op.rules_provider

            def undo(op: Any = op, kept: Any = kept) -> None:
                op.rules, op.vjp, op.rules_provider = kept

            stack.callback(undo)
            gt.register_gradient(name, override=True)(rule)
        yield


# -- rules that were replaced ----------------------------------------------------------------------


@case(exp=lambda g, x: 3.0 * g * gt.exp(x))
def exp_by_itself(x):
    return gt.exp(x * 0.5) * x


@case(exp=lambda g, out: 3.0 * g * out)
def exp_by_its_result(x):
    return gt.exp(x * 0.5) + gt.sin(x)


@case(exp=lambda g: 0.5 * g)
def exp_by_a_number(x):
    return gt.exp(x) * gt.exp(-x)


@case(exp=lambda g, x: 2.0 * g * gt.exp(x))
def sinh_is_not_exp_but_its_derivatives_are(x):
    return gt.logaddexp(x, 0.5 * x) + gt.nn.softplus(x)


@case(cos=lambda g, x: 7.0 * g * gt.sin(x))
def a_rule_of_a_rule(x):
    return gt.sin(x)  # its first gradient is its own, the second is not


@case(multiply=lambda g, x, y: (2.0 * g * y, g * x))
def multiply_everywhere(x):
    return gt.sin(x * 2.0) * x


@case(multiply=lambda g, x, y: (2.0 * g * y, g * x))
def power_for_ever(x):
    return (x * x) ** 3.5


@case(multiply=lambda g, x, y: (g * y * 1.5, g * x))
def multiply_that_broadcasts(module, x):
    return x * gt.sum(x, axis=1, keepdims=True) * module.scale


@case(tanh=lambda g, x: g / (1.0 + gt.linalg.norm(g)) * gt.cos(x))
def a_rule_that_sees_all_elements(x):
    return gt.tanh(x) * x


@case(tanh=lambda g, x: gt.clip(g, -0.3, 0.3))
def a_rule_that_clips(x):
    return gt.tanh(x * 3.0) * x


@case(sum=lambda g, x, axis: gt.broadcast_to(gt.expand_dims(g, -1), x.shape) * 3.0)
def sum_along_an_axis(x):
    return gt.sin(gt.sum(x, axis=1))


@case(matmul=lambda g, x, y: (2.0 * (g @ gt.transpose(y)), gt.transpose(x) @ g))
def matmul_of_a_weight(module, x):
    return gt.tanh(x @ (gt.eye(3) * module.scale)) @ gt.ones((3, 2))


_SCALE = gt.constant([1.0, 2.0, 3.0])


@case(exp=lambda g, x: g * gt.exp(x) * _SCALE)
def a_rule_with_a_constant(x):
    return gt.exp(x)


_RATE = gt.Variable(1.5)


@case(exp=lambda g, x: g * gt.exp(x) * gt.stop_gradient(_RATE))
def a_rule_that_reads_a_variable(x):
    return gt.exp(x) * x


@case(exp=lambda g, x: g * gt.exp(x) * _RATE)
def a_rule_with_a_trained_variable():
    module = gt.Module("odd")
    module.rate = _RATE
    module.f = gt.function(lambda x: gt.exp(x) * x, input_signature=ROWS)
    return module


@gt.custom_gradient
def _doubling(x):
    return x * x, lambda g: g * 4.0 * x


@case(exp=lambda g, x: g * _doubling(x))
def a_rule_with_a_custom_gradient(x):
    return gt.exp(x)


@case(exp=lambda g, x: gt.cond(gt.sum(x) > 0.0, lambda: g * x, lambda: g * gt.exp(x)))
def a_rule_with_a_branch(x):
    return gt.exp(x) * x


@case(exp=lambda g, x: 3.0 * g * gt.exp(x))
def in_a_branch(x):
    return gt.cond(gt.sum(x) > 0.0, lambda: gt.exp(x), lambda: x * gt.exp(-x))


@case(exp=lambda g, x: 3.0 * g * gt.exp(x))
def in_a_while_loop(x):
    return gt.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, gt.exp(-y) + x), (0, x))[1]


@case(exp=lambda g, out: 3.0 * g * out)
def in_a_scan(x):
    return gt.scan(lambda c, row: (gt.exp(-c) * row, c), gt.ones(3), x)[0]


@case(exp=lambda g, x: 3.0 * g * gt.exp(x))
def in_a_custom_gradient(x):
    @gt.custom_gradient
    def odd(x):
        return gt.exp(x), lambda g: g * gt.exp(0.5 * x)

    return odd(x) * x


@case(exp=lambda g, x: 3.0 * g * gt.exp(x))
def recomputed(x):
    return gt.recompute_grad(lambda x: gt.exp(gt.sin(x)))(x)


@case(exp=lambda g, x: 3.0 * g * gt.exp(x))
def with_a_tape_inside(x):
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = gt.exp(x) * x
    return tape.gradient(y, x)


@case(exp=lambda g, x: 3.0 * g * gt.exp(x))
def with_vmap_inside(x):
    return gt.vmap(lambda row: gt.exp(row) * gt.sum(row))(x)


@case(tanh=lambda g, x: g / (1.0 + gt.linalg.norm(g)))
def with_a_gradient_in_vmap_inside(x):
    return gt.vmap(gt.grad(lambda row: gt.sum(gt.tanh(row) * row)))(x)


@case(exp=lambda g, x: 3.0 * g * gt.exp(x))
def with_forward_mode_inside(x):
    return gt.jvp(lambda x: gt.exp(x) * x, x, gt.ones_like(x))[1]


@case(exp=lambda g: None)
def a_rule_of_none(x):
    return gt.exp(x) * x


@case(maximum=lambda g, x, y: (g * 0.5, None))
def a_rule_of_none_for_one_input(module, x):
    return gt.maximum(x * module.scale, 0.1 * x)


@case(round=lambda g: g, sign=lambda g, x: g / (1.0 + x * x))
def rules_for_ops_without_any(x):
    return gt.round(x * 3.0) * gt.sign(x)


@case(exp=lambda g, out: 2.0 * g * out, complex=True)
def of_complex_numbers(x):
    return gt.exp(x) * x


@case(exp=lambda g, out: 2.0 * g * out, dtype="float64")
def of_doubles(module, x):
    return gt.exp(x * module.scale)


@case(relu=lambda g, x: gt.where(x > 0.0, gt.maximum(g, 0.0), 0.0 * g))
def guided_layers():
    model = gt.layers.Sequential([gt.layers.Dense(4, activation="relu"), gt.layers.Dense(2)])
    gt.random.set_seed(0)
    model(gt.ones((2, 3)))
    return model


@case(relu=lambda g: 0.3 * g)
def layers_in_a_module():
    class Net(gt.Module):
        def __init__(self):
            super().__init__("net")
            self.inner = gt.layers.Dense(4, activation="relu")

        def __call__(self, x):
            return self.inner(x) * 2.0

    gt.random.set_seed(0)
    net = Net()
    net(gt.ones((2, 3)))
    return net


# -- rules that no file can hold -------------------------------------------------------------------


@case(refused=r"exp.*test_odd|exp.*odd_modules", exp=lambda g, x: g * float(gt.sum(x)))
def a_rule_on_values(x):
    return gt.exp(x)


@case(refused="assigns the variable", exp=lambda g, x: g * _RATE.assign_add(1.0))
def a_rule_that_assigns(x):
    return gt.exp(x)


@case(refused="'add'.*backward passes", add=lambda g, x, y: (2.0 * g, g))
def add_sums_gradients_too(x):
    return gt.add(x, 2.0) * x


@case(refused="'cond'.*runs graphs", cond=lambda g: None)
def an_op_that_runs_graphs(x):
    return gt.cond(gt.sum(x) > 0.0, lambda: x, lambda: 2.0 * x)


@case(refused="computed from sizes", reshape=lambda g, x: 2.0 * gt.reshape(g, x.shape))
def parameters_from_sizes(x):
    return gt.reshape(x, (x.shape[0] * 3,))


# -- other ways to be odd --------------------------------------------------------------------------


@case()
def stopped(x):
    return gt.stop_gradient(x) * gt.sin(x)


@case()
def with_keywords(x):
    @gt.custom_gradient
    def scaled(x, *, by):
        return x * by, lambda g: g * by * x

    return scaled(x, by=gt.constant(3.0))


@case()
def custom_in_custom(x):
    @gt.custom_gradient
    def outer(x):
        return _doubling(x), lambda g: g * _doubling(x) * 0.5

    return outer(x) * x


@case()
def custom_of_variables(module, x):
    @gt.custom_gradient
    def scaled(x):
        def gradient(g, variables):
            return g * variables[0] * 2.0, [gt.sum(g * x) * 5.0]

        return x * module.scale, gradient

    return scaled(x)


@case()
def custom_in_a_branch(x):
    return gt.cond(gt.sum(x) > 0.0, lambda: _doubling(x), lambda: x)


@case()
def custom_in_a_while_loop(x):
    return gt.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, _doubling(y)), (0, x))[1]


@case()
def custom_in_a_scan(x):
    return gt.scan(lambda c, row: (_doubling(c) * row, c), gt.ones(3), x)[1]


@case(dtype="float64")
def doubles(module, x):
    return gt.sin(x) * module.scale + 1.0


@case(dtype="float64")
def the_default_dtype():
    gt.set_default_dtype("float64")
    try:

        class Halves(gt.Module):
            def __init__(self):
                super().__init__("halves")
                self.inner = gt.layers.Dense(4, activation="tanh")
                self.scale = gt.Variable(0.1)

            def __call__(self, x):
                return self.inner(x) * self.scale + gt.constant(0.1)

        gt.random.set_seed(2)
        net = Halves()
        net(gt.ones((2, 3)))
    finally:
        gt.set_default_dtype("float32")
    return net


@case()
def names_of_their_own():
    module = gt.Module("odd")
    module.pair = [gt.Variable(0.5, name="same"), gt.Variable(1.5, name="same")]
    module.f = gt.function(
        lambda x: gt.sin(x * module.pair[0]) * module.pair[1],
        input_signature=[gt.TensorSpec(["rows", 3], name="x")],
    )
    return module


@case(stop_gradient=lambda g: 0.5 * g)
def stop_gradient_that_lets_half_through(x):
    return gt.stop_gradient(x) * gt.sin(x)


@case()
def frozen_layers():
    model = gt.layers.Sequential([gt.layers.Dense(4, activation="tanh"), gt.layers.Dense(2)])
    gt.random.set_seed(1)
    model(gt.ones((2, 3)))
    model.layers[0].trainable = False
    return model


@case()
def not_trainable(module, x):
    module.other = gt.Variable(2.0, trainable=False, name="other")
    return x * module.scale * module.other


@case()
def own_numbers():
    class Noisy(gt.Module):
        def __init__(self):
            super().__init__("noisy")
            self.generator = gt.random.Generator(5)

        @gt.function(input_signature=ROWS)
        def f(self, x):
            return x * gt.exp(self.generator.normal((3,)) * x)

    return Noisy()


@case()
def shared_numbers():
    class Noisy(gt.Module):
        @gt.function(input_signature=ROWS)
        def f(self, x):
            return x * gt.exp(gt.random.normal((3,)) * x)

    return Noisy("noisy")


@case(exp=lambda g, x: g * 2.0 * gt.exp(x))
def shared_numbers_and_a_rule():
    class Noisy(gt.Module):
        @gt.function(input_signature=ROWS)
        def f(self, x):
            return x * gt.exp(gt.random.uniform((3,)) * x)

    return Noisy("noisy")
