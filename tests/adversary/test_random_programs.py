"""Programs drawn at random: a traced one does what the eager one does, gradients included.

They read and assign variables, open tapes, replace gradients and close over a tensor, in any order.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt


@gt.custom_gradient
def pair(x: gt.Tensor, y: gt.Tensor) -> Any:
    z = x * y
    return (gt.tanh(z), x - y), lambda a, b: (a * y * 2 + b, a * x * 3 - b * gt.tanh(z))


@gt.custom_gradient
def nested(x: gt.Tensor) -> Any:
    a, b = pair(x, x * 0.5)
    return a + b, lambda g: g * gt.sin(x)


def slope(a: gt.Tensor) -> gt.Tensor:
    with gt.GradientTape() as tape:
        tape.watch(a)
        y = gt.sin(a) * a + nested(a)
    return tape.gradient(y, a)


def slope_across_assignment(v: gt.Variable, a: gt.Tensor) -> gt.Tensor:
    with gt.GradientTape() as tape:
        y = v * v * a
        v.assign(gt.tanh(a))
        y = y + v * a
    return tape.gradient(y, v)


STEPS: list[Callable[..., Any]] = [
    lambda a, b, v, c: a + b,
    lambda a, b, v, c: a * b,
    lambda a, b, v, c: gt.sin(a),
    lambda a, b, v, c: v * a,
    lambda a, b, v, c: v.assign(gt.tanh(a) * 2.0),
    lambda a, b, v, c: v.assign_add(gt.tanh(b)),
    lambda a, b, v, c: pair(a, b)[1],
    lambda a, b, v, c: nested(a),
    lambda a, b, v, c: slope(a),
    lambda a, b, v, c: slope_across_assignment(v, a),
    lambda a, b, v, c: gt.stop_gradient(a) * b,
    lambda a, b, v, c: a[::-1] * b[[0, 0, 1]],
    lambda a, b, v, c: gt.where(a > 0, a, b),
    lambda a, b, v, c: gt.sum(a) * b * 0.3,
    lambda a, b, v, c: gt.max(a, keepdims=True) + b,
    lambda a, b, v, c: gt.function(lambda p, q: gt.sin(p) * q)(a, b),
    lambda a, b, v, c: c * gt.sin(c * 2.0) * a,
]


def drawn(seed: int) -> Callable[..., Any]:
    """Return a program of a tensor, two variables and a tensor to close over."""
    rng = random.Random(seed)
    steps = [
        (rng.choice(STEPS), rng.random(), rng.random(), rng.randrange(2))
        for _ in range(rng.randint(3, 14))
    ]

    def program(x: gt.Tensor, variables: list[gt.Variable], outer: gt.Tensor) -> Any:
        known = [x, x * 1.5]
        for step, i, j, k in steps:
            a, b = known[int(i * len(known))], known[int(j * len(known))]
            result = step(a, b, variables[k], outer)
            if isinstance(result, gt.Tensor):
                known.append(result)
        return known[-1], gt.tanh(known[len(known) // 2]) + known[-2]

    return program


def observed(program: Callable[..., Any], seed: int, trace: Callable[..., Any]) -> list[Any]:
    """Return all values, gradients of two orders, and the variables, of two calls in a row."""
    rng = np.random.default_rng(seed)
    x, outer = gt.constant(rng.normal(size=3)), gt.constant(rng.normal(size=3))
    variables = [gt.Variable(rng.normal(size=3)) for _ in range(2)]
    run = trace(lambda x: program(x, variables, outer))
    sources = [x, outer, *variables]
    seen: list[Any] = []
    for _ in range(2):
        with gt.GradientTape() as second:
            second.watch([x, outer])
            with gt.GradientTape() as first:
                first.watch([x, outer])
                results = run(x)
            slopes = first.gradient(results, sources)
        curves = second.gradient([g for g in slopes if g is not None], sources)
        seen += [*results, *slopes, *(curves or []), *(gt.constant(v) for v in variables)]
    seen += [*run(x), *(gt.constant(v) for v in variables)]
    return [None if value is None else value.numpy() for value in seen]


TRACES = {
    "known shapes": gt.function,
    "unknown rank": gt.function(input_signature=[gt.TensorSpec(None, "float64")]),
}


@pytest.mark.parametrize("trace", TRACES.values(), ids=TRACES.keys())
@pytest.mark.parametrize("seed", range(40))
def test_a_trace_does_what_the_program_does(seed: int, trace: Callable[..., Any]) -> None:
    program = drawn(seed)
    eager = observed(program, seed, lambda f: f)
    traced = observed(program, seed, trace)
    assert [value is None for value in traced] == [value is None for value in eager]
    for value, wanted in zip(traced, eager, strict=True):
        if wanted is not None:
            np.testing.assert_allclose(value, wanted, rtol=1e-9, atol=1e-12)
