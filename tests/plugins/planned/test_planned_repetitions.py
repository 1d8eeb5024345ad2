"""Values that only repeat others are computed before they are repeated, with the same results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from executing_plans import bits_by, explained

import gradtape as gt

SHAPE = (5, 4, 3)
UNARY = [gt.negative, gt.square, gt.exp, lambda x: x * 3.0, lambda x: 0.5 - x]
BINARY = [gt.add, gt.multiply, gt.subtract, gt.maximum]


def composed(seed: int) -> Any:
    """Return a function that sums over some axes, computes, and gives the gradient."""

    @gt.function
    def run(x: Any, y: Any) -> list[Any]:
        random = np.random.default_rng(seed)
        with gt.GradientTape() as tape:
            tape.watch([x, y])
            values = [x, y]
            for _ in range(5):
                a, b = (values[random.integers(len(values))] for _ in range(2))
                axes = tuple(int(i) for i in np.flatnonzero(random.integers(0, 2, 3)))
                kept = bool(random.integers(2))
                part = gt.sum(a, axis=axes, keepdims=kept) if axes else a
                part = UNARY[random.integers(len(UNARY))](part)
                if axes and not kept:
                    shape = tuple(1 if i in axes else n for i, n in enumerate(SHAPE))
                    part = gt.reshape(part, shape)
                whole = gt.broadcast_to(part, SHAPE)
                whole = UNARY[random.integers(len(UNARY))](whole)
                values.append(BINARY[random.integers(len(BINARY))](whole, b))
            total = gt.sum(values[-1])
        return [values[-1], *tape.gradient(total, [x, y], unconnected_gradients="zero")]

    return run


@pytest.mark.parametrize("executor", ["planned", "fused"])
@pytest.mark.parametrize("seed", range(20))
def test_repeated_values_have_the_same_bits(seed: int, executor: str) -> None:
    if executor == "fused":
        pytest.importorskip("llvmlite")
    random = np.random.default_rng(seed)
    args = [gt.constant(random.normal(size=SHAPE).astype("float32")) for _ in range(2)]
    run = composed(seed)
    assert bits_by(executor, run, *args) == bits_by("plain", run, *args)


def test_a_ufunc_of_repeated_values_runs_once_for_each_of_them() -> None:
    @gt.function
    def run(x: Any) -> list[Any]:
        return [gt.exp(gt.broadcast_to(x, (50, 40))) * gt.ones((50, 40))]

    x = np.random.default_rng(0).normal(size=(50, 1))
    assert bits_by("planned", run, x) == bits_by("plain", run, x)
    assert "group over (50, 1), ufuncs: exp" in explained(run)


def test_results_that_repeat_values_belong_to_the_caller() -> None:
    @gt.function
    def run(x: Any) -> list[Any]:
        return [gt.negative(gt.broadcast_to(x, (3, 2)))]

    with gt.executor("planned"):
        first, second = (run(np.full((1, 2), k)) for k in (1.0, 2.0))
    np.testing.assert_array_equal(first[0], np.full((3, 2), -1.0))
    np.testing.assert_array_equal(second[0], np.full((3, 2), -2.0))
