"""Gradient rules that others bring: what is wrong in them is said, not broadcast."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.extend import NONDIFF, F, Op
from gradtape.errors import GradientError, PluginError


def same(x: Any, **params: Any) -> Any:
    return x.shape, x.dtype


class Plugin:
    def __init__(self, *ops: Op) -> None:
        self.ops = ops

    @gt.hookimpl
    def gradtape_ops(self) -> list[Op]:
        return list(self.ops)


@pytest.fixture
def provide() -> Iterator[Any]:
    def register(*ops: Op) -> None:
        gt.register_plugin(Plugin(*ops), "foreign")

    yield register
    if "foreign" in {info.name for info in gt.registry().plugins}:
        gt.unregister_plugin("foreign")


def gradient(op: Op, value: Any) -> gt.Tensor:
    x = gt.constant(value)
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = op(x * 2.0) * x
    return tape.gradient(y, x)


@pytest.mark.parametrize("traced", [False, True])
def test_a_rule_that_returns_another_shape_is_named(provide: Any, traced: bool) -> None:
    op = Op("foreign::sums", lambda xp, x: x * 2, gradients={"x": lambda g: F.sum(g)}, infer=same)
    provide(op)
    run = gt.function(lambda x: op(x)) if traced else op
    with pytest.raises(GradientError, match=r"foreign::sums.*'x'.*\(\).*\(2,\)"):
        gradient(run, [1.0, 2.0])


def test_a_joint_rule_that_returns_another_shape_is_named(provide: Any) -> None:
    op = Op(
        "foreign::joint",
        lambda xp, x: x * 2,
        vjp=lambda gs, inputs, outputs, needed: [F.sum(gs[0])],
        infer=same,
    )
    provide(op)
    with pytest.raises(GradientError, match=r"foreign::joint.*\(\).*\(2,\)"):
        gradient(op, [1.0, 2.0])


def test_inputs_that_only_the_shape_rule_refuses_are_blamed_for_a_wrong_gradient(
    provide: Any,
) -> None:
    def infer(x: Any, y: Any) -> Any:
        if len(x.shape) != len(y.shape):
            raise ValueError("x and y must have the same rank")
        return y.shape, y.dtype

    joint = Op(
        "foreign::scaled",
        lambda xp, x, y: x * y,
        vjp=lambda gs, inputs, outputs, needed: [gs[0] * inputs[1], gs[0] * inputs[0]],
        infer=infer,
    )
    single = Op(
        "foreign::summed",
        lambda xp, x, y: x * y,
        gradients={"x": lambda g, y: g * y, "y": lambda g, x: g * x},
        infer=infer,
    )
    provide(joint, single)
    x, y = gt.ones(4), gt.ones((5, 4))
    for op, message in [
        (joint, r"foreign::scaled.*refuses these inputs.*the same rank\..* in the kernel too"),
        (single, r"foreign::summed.*\(5, 4\).*\(4,\); if the op's inputs .* kernel must refuse"),
    ]:
        with gt.GradientTape() as tape:
            tape.watch(x)
            z = op(x, y)
        with pytest.raises(GradientError, match=message):
            tape.gradient(z, x)


def test_a_rule_that_returns_nothing_is_named(provide: Any) -> None:
    provide(op := Op("foreign::none", lambda xp, x: x, gradients={"x": lambda g: None}, infer=same))
    with pytest.raises(GradientError, match=r"foreign::none.*None.*NONDIFF"):
        gradient(op, [1.0, 2.0])


def test_right_rules_pass_at_every_order(provide: Any) -> None:
    op = Op(
        "foreign::cube",
        lambda xp, x, *, k=3: x**k,
        gradients={"x": lambda g, x, k: g * (k * x ** (k - 1))},
        infer=same,
    )
    provide(op)
    gt.disable_plugin("cupy")  # the registry is rebuilt, the op installed again
    gt.disable_plugin("cupy", False)
    x = gt.constant([1.0, 2.0])
    with gt.GradientTape() as outer:
        outer.watch(x)
        with gt.GradientTape() as tape:
            tape.watch(x)
            y = op(x)
        dx = tape.gradient(y, x)
    np.testing.assert_array_equal(dx, [3.0, 12.0])
    np.testing.assert_array_equal(outer.gradient(dx, x), [6.0, 12.0])


def test_inputs_that_broadcast_still_do(provide: Any) -> None:
    op = Op(
        "foreign::scaled",
        lambda xp, x, y: x * y,
        gradients={"x": lambda g, y: g * y, "y": NONDIFF},
        infer=lambda x, y: (y.shape, y.dtype),
        broadcasts=True,
    )
    provide(op)
    x = gt.constant(2.0)
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = op(x, gt.constant([1.0, 2.0]))
    assert tape.gradient(y, x).item() == 3.0


def test_bare_op_names_are_reserved(provide: Any) -> None:
    with pytest.raises(PluginError, match="foreign::twice"):
        provide(Op("twice", lambda xp, x: x * 2, infer=same))


def test_a_registered_gradient_is_summed_back_to_inputs_that_broadcast() -> None:
    op = gt.registry().op("floor_divide")
    known = op.rules, op.vjp, op.rules_provider
    try:

        @gt.register_gradient("floor_divide", override=True)
        def straight(g: gt.Tensor, x: gt.Tensor, y: gt.Tensor) -> Any:
            return g / y, None

        x = gt.constant(6.0)
        with gt.GradientTape() as tape:
            tape.watch(x)
            y = x // gt.constant([2.0, 4.0])
        assert tape.gradient(y, x).item() == 0.75
    finally:
        op.rules, op.vjp, op.rules_provider = known
