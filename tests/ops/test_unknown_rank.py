"""Traces of unknown rank: what works without one, and what asks for it by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt

V, W = np.arange(1.0, 4.0), np.arange(1.0, 7.0).reshape(2, 3)
Z, S, NUMBER = np.arange(24.0).reshape(2, 3, 4), np.eye(3) + 0.1, np.array(2.0)
MANY = np.stack([S, S + np.eye(3)])

WORKS: dict[str, tuple[Callable[..., Any], list[tuple[Any, ...]]]] = {
    "atleast_1d": (gt.atleast_1d, [(NUMBER,), (V,), (W,)]),
    "atleast_2d": (gt.atleast_2d, [(NUMBER,), (V,), (W,)]),
    "atleast_3d": (gt.atleast_3d, [(NUMBER,), (V,), (W,), (Z,)]),
    "vstack": (lambda x: gt.vstack([x, x]), [(NUMBER,), (V,), (W,)]),
    "dstack": (lambda x: gt.dstack([x, x]), [(V,), (W,), (Z,)]),
    "column_stack": (lambda x: gt.column_stack([x, x]), [(NUMBER,), (V,), (W,)]),
    "cov": (gt.cov, [(V,), (W,)]),
    "rot90": (gt.rot90, [(W,), (Z,)]),
    "gradient": (lambda x: gt.gradient(x, axis=-1), [(V,), (W,)]),
    "fliplr": (gt.fliplr, [(W,), (Z,)]),
    "vsplit": (lambda x: gt.vsplit(x, [1])[1], [(W,)]),
    "solve": (gt.linalg.solve, [(S, V), (S, W.T.copy()), (MANY, V)]),
    "solve_triangular": (gt.linalg.solve_triangular, [(S, V), (S, W.T.copy())]),
}


def _value_and_gradients(f: Callable[..., Any], inputs: list[gt.Tensor]) -> list[Any]:
    with gt.GradientTape() as tape:
        tape.watch(inputs)
        y = f(*inputs)
        z = gt.sum(y * y)
    return [y, *tape.gradient(z, inputs)]


@pytest.mark.parametrize("name", WORKS)
def test_works_without_a_rank(name: str) -> None:
    function, examples = WORKS[name]
    specs = [gt.TensorSpec(None, "float64")] * len(examples[0])
    traced = gt.function(lambda *xs: function(*xs), input_signature=specs)
    for example in examples:
        inputs = [gt.constant(x) for x in example]
        for got, want in zip(
            _value_and_gradients(traced, inputs),
            _value_and_gradients(function, inputs),
            strict=True,
        ):
            assert got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)


ASKS: dict[str, Callable[[Any], Any]] = {
    "hstack": lambda x: gt.hstack([x, x]),
    "hsplit": lambda x: gt.hsplit(x, 1),
    "block": lambda x: gt.block([x, x]),
    "rollaxis": lambda x: gt.rollaxis(x, 1),
    "kron": lambda x: gt.kron(x, V),
    "dot": lambda x: gt.dot(x, x),
    "inner": lambda x: gt.inner(x, x),
    "diag": lambda x: gt.diag(x),
    "corrcoef": lambda x: gt.corrcoef(x),
    "gradient": lambda x: gt.gradient(x),
    "average": lambda x: gt.average(x, axis=0, weights=V),
    "trapezoid": lambda x: gt.trapezoid(x, V),
    "median": lambda x: gt.median(x, keepdims=True),
    "norm": lambda x: gt.linalg.norm(x, 2),
    "multi_dot": lambda x: gt.linalg.multi_dot([x, x]),
    "pad": lambda x: gt.pad(x, 1, mode="mean"),
    "fftn": lambda x: gt.fft.fftn(x),
    "cumulative_sum": lambda x: gt.cumulative_sum(x),
    "linspace": lambda x: gt.linspace(x, x, 3),
}


@pytest.mark.parametrize("name", ASKS)
def test_asks_for_a_rank(name: str) -> None:
    traced = gt.function(ASKS[name], input_signature=[gt.TensorSpec(None, "float64")])
    with pytest.raises(TypeError, match=rf"^{name}: the rank is unknown .* TensorSpec"):
        traced(gt.constant(W))
