"""Batches, Jacobians, forward mode and control flow on a library that refuses host arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pretend_gpu
import pytest

import gradtape as gt

PLUGIN = pretend_gpu.Plugin("pretend", {})


@pytest.fixture(autouse=True)
def plugin() -> Iterator[None]:
    gt.register_plugin(PLUGIN, "pretend")
    yield
    gt.unregister_plugin("pretend")


def bent(x: Any) -> Any:
    return gt.sin(x) * x[::-1]


def total(x: Any) -> Any:
    return gt.sum(bent(x) ** 2)


def taped(x: Any) -> Any:
    with gt.GradientTape() as tape:
        tape.watch(x)
        rows = x[:, None] * x
        y = gt.tanh(rows * rows[:, ::-1])
    return tape.batch_jacobian(y, rows)


def looped(x: Any) -> Any:
    return gt.while_loop(lambda y: gt.sum(y * y) < 20.0, lambda y: y * 1.5 + gt.sin(y), x)


CASES: dict[str, Callable[[Any], Any]] = {
    "vmap": lambda x: gt.vmap(lambda e: gt.exp(e) * x)(x),
    "vmap of a gradient": lambda x: gt.vmap(gt.grad(lambda e: gt.sum(x * e) ** 2))(x),
    "vmap with an index": lambda x: gt.vmap(lambda e, i: x[i] * e)(x, gt.argsort(x)),
    "a row of each": lambda x: gt.vmap(lambda r, i: r[i])(gt.outer(x, x), gt.argsort(x)),
    "jacrev": gt.jacrev(bent),
    "jacfwd": gt.jacfwd(bent),
    "jacrev of jacrev": gt.jacrev(gt.jacrev(bent)),
    "hessian": gt.hessian(total),
    "hvp": lambda x: gt.hvp(total, x, x * 2.0),
    "jvp": lambda x: gt.jvp(bent, x, x)[1],
    "linearize": lambda x: gt.linearize(bent, x)[1](x),
    "batch_jacobian": taped,
    "a diagonal": gt.jacobian(gt.sin, structure="diagonal", check=True),
    "a band": gt.jacobian(lambda x: x * gt.roll(x, 1), structure="banded(2)"),
    "flatten": lambda x: gt.flatten({"a": x, "b": x * 2.0})[0],
    "cond": lambda x: gt.cond(gt.sum(x) > 0, lambda: x * x, lambda: -x),
    "cond in a trace": gt.function(lambda x: gt.cond(gt.sum(x) > 0, lambda: x * x, lambda: -x)),
    "cond in a batch": lambda x: gt.vmap(lambda e: gt.cond(e > 1, lambda: e * x, lambda: -x))(x),
    "while": looped,
    "while in a trace": gt.function(looped),
    "the gradient of it": gt.grad(gt.function(lambda x: gt.sum(looped(x)))),
    "scan": lambda x: gt.scan(lambda c, e: (c * e, c + e), x[0], x)[1],
    "scan in a trace": gt.function(lambda x: gt.scan(lambda c, e: (c * e, c + e), x[0], x)[1]),
    "its Hessian": gt.hessian(
        gt.function(lambda x: gt.sum(gt.scan(lambda c, e: (c * e, c + e), x[0], x)[1] ** 2))
    ),
    "random numbers": lambda x: gt.vmap(
        lambda e: e * gt.random.Generator(1).normal((2,), dtype="float64"), randomness="same"
    )(x),
}


@pytest.mark.parametrize("case", CASES)
def test_it_stays_there_and_gives_what_numpy_gives(case: str) -> None:
    point = np.array([0.5, 1.7, 1.1])
    want = CASES[case](gt.constant(point))
    with gt.backend("pretend"):
        got = CASES[case](gt.constant(point))
    assert got.device == "pretend:0"
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-12)
