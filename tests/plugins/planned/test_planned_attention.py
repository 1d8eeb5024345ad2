"""The steps of attention: choices by constant masks, and products of stacks of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from executing_plans import bits_by, explained

import gradtape as gt

EXECUTORS = ["planned", "fused"]
HARD = [np.nan, -0.0, 0.0, np.inf, -np.inf]


def values(*shape: int, dtype: str = "float32") -> np.ndarray:
    x = np.random.default_rng(sum(shape)).normal(size=shape).astype(dtype)
    places = x.reshape(-1)[::7]
    places[:] = np.resize(HARD, places.shape)
    return x


def needs(executor: str) -> None:
    if executor == "fused":
        pytest.importorskip("llvmlite")


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("number", [0.0, -0.0, -1e9, -np.inf, np.nan, 3])
@pytest.mark.parametrize("shape", [(6, 5), (1, 6, 5), (4, 6, 5), (5,), (6, 1)])
def test_choices_by_a_constant_mask(
    shape: tuple[int, ...], number: float, dtype: str, executor: str
) -> None:
    needs(executor)
    mask = gt.constant(np.random.default_rng(0).random(shape) < 0.5)

    @gt.function
    def run(x: Any) -> list[Any]:
        with gt.GradientTape() as tape:
            tape.watch(x)
            first = gt.where(mask, x * 2.0, number)
            second = gt.where(mask, number, x * 2.0)
        return [first, second, tape.gradient(first, x)]

    x = values(4, 6, 5, dtype=dtype)
    assert bits_by(executor, run, x) == bits_by("plain", run, x)


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("rows", [6, 200])
def test_attention_has_the_same_bits_and_calls_no_kernels(rows: int, executor: str) -> None:
    needs(executor)
    mask = gt.constant(np.tril(np.ones((rows, rows), bool)))

    @gt.function
    def run(q: Any, k: Any, v: Any) -> list[Any]:
        with gt.GradientTape() as tape:
            tape.watch([q, k, v])
            scores = gt.matmul(q, gt.swapaxes(k, -1, -2)) * 0.25
            weights = gt.nn.softmax(gt.where(mask, scores, -1e9))
            y = gt.matmul(weights, v)
        return [y, *tape.gradient(y, [q, k, v])]

    random = np.random.default_rng(0)
    args = [gt.constant(random.normal(size=(2, 3, rows, 16)).astype("float32")) for _ in range(3)]
    assert bits_by(executor, run, *args) == bits_by("plain", run, *args)
    assert "a call" not in explained(run)
