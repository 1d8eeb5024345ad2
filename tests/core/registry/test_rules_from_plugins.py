"""Gradient rules that plugins give to ops of others: all forms, all inputs, both directions."""

from __future__ import annotations

import functools
from types import SimpleNamespace

import numpy as np
import pytest

import gradtape as gt
from gradtape.plugin import Op, ops

X = np.array([1.0, 2.0], "float32")
EXECUTORS = ["plain", "planned", "fused"]

twin = Op(
    "acme::twin",
    lambda xp, x, *, by=2.0: (x * by, xp.exp(x)),
    vjp=lambda gs, inputs, outputs, needed, by: [gs[0] * by + gs[1] * outputs[1]],
    infer=lambda x, by: [(x.shape, x.dtype), (x.shape, x.dtype)],
    batch="elementwise",
)


@pytest.fixture(autouse=True)
def acme():
    with gt.register_plugin(SimpleNamespace(gradtape_ops=gt.hookimpl(lambda: [twin])), "acme"):
        yield


def rules(**by_op):
    """Return a plugin with gradient rules."""
    return SimpleNamespace(gradtape_gradients=gt.hookimpl(lambda: by_op))


def doubled_concatenate(gs, inputs, outputs, needed, axis):
    return [2.0 * gs[0][:2], 2.0 * gs[0][2:]]


def doubled_twin(gs, inputs, outputs, needed, by):
    return [2.0 * (gs[0] * by + gs[1] * gt.exp(inputs[0]))]  # a public function


def doubled_multiply(gs, inputs, outputs, needed):
    return [2.0 * gs[0] * inputs[1], 2.0 * gs[0] * inputs[0]]  # broadcast


CASES = {
    "any number of inputs": (
        "concatenate",
        doubled_concatenate,
        lambda x: gt.concatenate([x, x * x]),
    ),
    "several outputs": ("acme::twin", doubled_twin, lambda x: sum(ops["acme::twin"](x, by=3.0))),
    "inputs that broadcast": (
        "multiply",
        doubled_multiply,
        lambda x: gt.multiply(gt.ones((2, 1)), x),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_one_rule_for_all_inputs_and_outputs_replaces_that_of_an_op(case):
    name, rule, f = CASES[case]

    def slope(x):
        return gt.grad(lambda x: gt.sum(f(x)))(x)

    before = np.asarray(slope(X))
    with gt.register_plugin(rules(**{name: rule}), "doubling"):
        np.testing.assert_allclose(slope(X), 2.0 * before, rtol=1e-6)
        for executor in EXECUTORS:
            traced = gt.function(slope, executor=executor)
            np.testing.assert_allclose(traced(X), 2.0 * before, rtol=1e-6)
        each = gt.vmap(slope)(np.stack([X, X]))
        np.testing.assert_allclose(each, np.stack([2.0 * before] * 2), rtol=1e-6)
    np.testing.assert_allclose(slope(X), before)


def test_a_rule_for_all_inputs_of_a_wrong_shape_raises():
    def wrong(gs, inputs, outputs, needed, axis):
        return [gs[0][:1], gs[0][2:]]

    with (
        gt.register_plugin(rules(concatenate=wrong), "wrong"),
        pytest.raises(gt.errors.GradientError, match=r"'concatenate'.*shape \(1,\)"),
    ):
        gt.grad(lambda x: gt.sum(gt.concatenate([x, x])))(X)


def test_a_file_keeps_a_rule_for_all_inputs(tmp_path):
    model = gt.Module("twins")
    model.f = gt.function(
        lambda x: gt.sum(ops["acme::twin"](x)[1]), input_signature=[gt.TensorSpec([None])]
    )
    with gt.register_plugin(rules(**{"acme::twin": doubled_twin}), "doubling"):
        gt.save(model, tmp_path / "twins.h5")
    loaded = gt.load(tmp_path / "twins.h5")
    np.testing.assert_allclose(gt.grad(loaded.f)(X), 2.0 * np.exp(X), rtol=1e-6)


FORWARD = {  # by the kind of the op's own forward rule
    "linear": ("sum", lambda g, x: 2.0 * g * gt.ones_like(x), gt.sum),
    "linear, any number": ("concatenate", doubled_concatenate, lambda x: gt.concatenate([x, x])),
    "multilinear": (
        "matmul",
        lambda g, x, y: (2.0 * g * y, 2.0 * g * x),
        lambda x: gt.matmul(x, gt.ones(2)),
    ),
    "derived": ("exp", lambda g, x: 2.0 * g * gt.exp(x), gt.exp),
}


@pytest.mark.parametrize("case", FORWARD)
def test_forward_mode_follows_a_replaced_gradient_rule(case, tmp_path):
    name, rule, f = FORWARD[case]
    before = np.asarray(gt.jacfwd(f)(X))
    module = gt.Module("forward")
    module.f = gt.function(f, input_signature=[gt.TensorSpec([2])])
    with gt.register_plugin(rules(**{name: rule}), "doubling"):
        for g in (f, module.f):
            np.testing.assert_allclose(gt.jacrev(g)(X), 2.0 * before, rtol=1e-6)
            np.testing.assert_allclose(gt.jacfwd(g)(X), 2.0 * before, rtol=1e-6)
        gt.save(module, tmp_path / "forward.h5")
    loaded = gt.load(tmp_path / "forward.h5").f
    np.testing.assert_allclose(gt.jacfwd(loaded)(X), 2.0 * before, rtol=1e-6)
    np.testing.assert_allclose(gt.jacfwd(f)(X), before)


def unchanged(rule):
    @functools.wraps(rule)
    def inner(*args, **keywords):
        return rule(*args, **keywords)

    return inner


class Rules:
    def slope(self, g, x, by):
        return g * by * x


def test_a_rule_may_be_any_function():
    def kept(g, x, *, by):
        return g * by * x

    for rule in (unchanged(kept), Rules().slope, functools.partial(Rules.slope, None), kept):
        op = Op("odd::half_square", lambda xp, x, *, by: 0.5 * by * x * x, gradients={"x": rule})
        plugin = SimpleNamespace(gradtape_ops=gt.hookimpl(lambda op=op: [op]))
        with gt.register_plugin(plugin, "odd"):
            assert gt.grad(lambda x, op=op: op(x, by=3.0))(2.0).item() == 6.0


def test_a_rule_whose_arguments_are_not_named_is_refused():
    for rule, said in [
        (lambda g, *given: g, r"a parameter '\*given'"),
        (lambda g, **given: g, r"a parameter '\*\*given'"),
        (lambda g, *, x: g * x, r"a parameter '\*, x'"),
    ]:
        with pytest.raises(gt.errors.PluginError, match=said):
            Op("odd::op", lambda xp, x: x, gradients={"x": rule})


def test_the_table_of_ops_shows_all_ops():
    assert [name in ops for name in ("acme::twin", "sin", "no_such_op")] == [True, True, False]
    assert {"acme::twin", "sin"} <= set(ops) == set(ops.keys())
    assert len(ops) == len(list(ops.items())) == len(gt.registry().ops)
    assert (ops.get("no_such_op"), ops.get("sin")) == (None, ops["sin"])
