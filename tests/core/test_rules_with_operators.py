"""Gradient rules of other packages' ops: in every mode, and what they return is checked."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.extend import F, Op, hookimpl

X = np.array([1.5, -2.0, 3.25])
FACTORS = {
    "x + y": lambda x: x + 2.0,
    "2 + x": lambda x: 2.0 + x,
    "x - y": lambda x: x - x * 0.5,
    "2 - x": lambda x: 2.0 - x,
    "x * y": lambda x: x * x,
    "x / y": lambda x: x / 3.0,
    "3 / x": lambda x: 3.0 / x,
    "x // y": lambda x: x // 2.0,
    "7 // x": lambda x: 7.0 // x,
    "x % y": lambda x: x % 2.0,
    "7 % x": lambda x: 7.0 % x,
    "divmod": lambda x: divmod(x, 2.0)[1],
    "x ** y": lambda x: x**2,
    "2 ** x": lambda x: 2.0**x,
    "-x": operator.neg,
    "+x": operator.pos,
    "abs": abs,
    "comparisons": lambda x: (x > 0.0) * 1.0 + (x <= 3.0) * 2.0 + (x != 1.5) * 4.0,
    "logic": lambda x: ((x > 0.0) & (x < 3.0) | ~(x >= 0.0)) * 1.0,
    "x[...]": lambda x: x[..., ::-1],
    "x[None]": lambda x: x[None][0],
}


@contextmanager
def registered(op: Op) -> Iterator[Op]:
    """Let an op be another package's for a while."""

    class Plugin:
        @staticmethod
        @hookimpl
        def gradtape_ops() -> list[Op]:
            return [op]

    gt.register_plugin(Plugin, "rules")
    yield op
    gt.unregister_plugin("rules")


@pytest.fixture(params=FACTORS)
def factor(request: pytest.FixtureRequest) -> Iterator[str]:
    """An op whose gradient is a factor, written with one kind of operator, is registered."""
    rule = FACTORS[request.param]
    op = Op(
        "rules::scaled",
        lambda xp, x: x,
        gradients={"x": lambda g, x: g * rule(x)},
        infer=lambda x: (x.shape, x.dtype),
        batch="elementwise",
    )
    with registered(op):
        yield request.param


def test_an_operator_in_a_rule_is_the_same_in_every_mode(factor: str) -> None:
    scaled = gt.registry().op("rules::scaled")
    slope = gt.grad(lambda x: gt.sum(scaled(x)))
    expected = np.broadcast_to(FACTORS[factor](X), X.shape)
    x = gt.constant(X)
    np.testing.assert_allclose(slope(x), expected, rtol=1e-14)
    np.testing.assert_allclose(gt.function(slope)(x), expected, rtol=1e-14)
    both = gt.vmap(slope)(gt.stack([x, x]))
    np.testing.assert_allclose(both, [expected, expected], rtol=1e-14)
    with gt.GradientTape() as tape:
        tape.watch(x)
        on_tensors = slope(x)
    np.testing.assert_allclose(on_tensors, expected, rtol=1e-14)
    assert tape.watched_variables() == ()


@pytest.mark.parametrize("argument", ["batch", "jvp"])
def test_a_rule_in_a_word_that_is_misspelt_is_refused(argument: str) -> None:
    with pytest.raises(
        gt.errors.PluginError, match=rf"{argument} must be a function .*got 'liner'"
    ):
        Op("rules::misspelt", "exp", inputs=("x",), **{argument: "liner"})


def doubling(**rules: Any) -> Op:
    return Op("rules::doubling", lambda xp, x: 2 * x, infer=lambda x: (x.shape, x.dtype), **rules)


@pytest.mark.parametrize("dtype", ["float16", "float64", "complex64", "int32"])
@pytest.mark.parametrize(
    "rules",
    [
        lambda other: {"gradients": {"x": lambda g: 2 * other(g)}},
        lambda other: {"vjp": lambda gs, inputs, outputs, needed: [2 * other(gs[0])]},
        lambda other: {"together": lambda gs, inputs, params: sum(2 * other(g) for g in gs)},
    ],
    ids=["gradients", "vjp", "together"],
)
def test_a_gradient_has_the_dtype_of_its_source_whatever_the_rule_returns(
    rules: Any, dtype: str
) -> None:
    with registered(doubling(**rules(lambda g: F.cast(g, dtype=dtype)))) as op:
        x = gt.constant([1.0, 2.0], "float32")
        slope = gt.grad(lambda x: gt.sum(op(x)))
        for g in (slope(x), gt.function(slope)(x), gt.jacobian(op)(x).sum(axis=0)):
            assert (g.dtype, g.tolist()) == ("float32", [2.0, 2.0])


@pytest.mark.parametrize("returned", [lambda g: g, lambda g: None, lambda g: iter([g])])
def test_a_rule_for_all_inputs_that_returns_no_list_is_named(returned: Any) -> None:
    with registered(doubling(vjp=lambda gs, inputs, outputs, needed: returned(gs[0]))) as op:
        for derivative in (gt.jacrev(op), gt.function(gt.jacrev(op)), gt.jacfwd(op)):
            with pytest.raises(gt.errors.GradientError, match=r"rules::doubling.*not a list"):
                derivative(gt.constant([1.0, 2.0]))


def test_forward_mode_names_a_rule_that_returns_an_array_of_numpy() -> None:
    with registered(doubling(gradients={"x": lambda g: np.full(2, 2.0)})) as op:
        x = gt.constant([1.0, 2.0])
        with pytest.raises(gt.errors.GradientError, match=r"rules::doubling.*must consist of"):
            gt.jvp(op, [x], [x])


def test_an_op_has_rules_of_one_kind() -> None:
    with pytest.raises(gt.errors.PluginError, match="one of gradients, vjp and together"):
        doubling(gradients={"x": lambda g: g}, together=lambda gs, inputs, params: gs[0])
