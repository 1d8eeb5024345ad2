"""Gradient rules are written with Python's operators: each works on arrays, symbols and batches."""

from __future__ import annotations

import operator
from collections.abc import Iterator

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.extend import Op, hookimpl

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

    class Plugin:
        @staticmethod
        @hookimpl
        def gradtape_ops() -> list[Op]:
            return [op]

    gt.register_plugin(Plugin, "rules")
    yield request.param
    gt.unregister_plugin("rules")


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
    with pytest.raises(gt.errors.PluginError, match=rf"{argument} is a function or .*got 'liner'"):
        Op("rules::misspelt", "exp", inputs=("x",), **{argument: "liner"})
