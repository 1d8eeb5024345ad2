"""Programs that an executor got wrong once, each beside the plain executor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from executing import OFTEN, all_close, differences, each_executor

import gradtape as gt

SIX = np.arange(6.0).reshape(2, 3)

#: What is computed of a matrix.
PROGRAMS: dict[str, Callable[[Any], Any]] = {
    # a view of a buffer that is none: reshaping what is transposed copies
    "a transposed buffer, reshaped": lambda x: gt.sin(
        gt.reshape(gt.transpose(x * 2.0 + 1.0), (-1,))[:, None]
    ),
    "a transposed buffer, flat, taken from": lambda x: (
        gt.take(gt.ravel(gt.transpose(x + 1.0)), gt.constant([1, 4])) * 2.0
    ),
    "a row of a buffer, as a number": lambda x: gt.where((x * 2.0)[1, 2] > 0, (x * 3.0)[1, 2], 1.0),
    "a buffer turned and flat, twice": lambda x: (
        gt.ravel((x * 2.0)[::-1, ::-1]) - gt.ravel(gt.transpose(x * 2.0))
    ),
    # a product with a single number that is no scaling
    "an outer product of single numbers": lambda x: gt.outer(x[0, :1], x[1, :1])[:, 0],
    "a product of single rows": lambda x: (x[:1] * 2.0) @ gt.transpose(x[1:]),
    # numbers that are broadcast, of which each relies on the other for the shape
    "two numbers that are broadcast": lambda x: (
        gt.broadcast_to(gt.sum(x), (2, 3)) * gt.broadcast_to(gt.max(x), (2, 3))
    ),
    "a number that is broadcast, squared": lambda x: gt.square(gt.broadcast_to(gt.sum(x), (4,))),
    "a number that is broadcast, times itself": lambda x: (lambda y: y * y)(
        gt.broadcast_to(gt.sum(x), (4,))
    ),
    # two products with an identity matrix, of which one turns the other factor
    "an identity times a matrix and the same turned": lambda x: _identities(x[:, :2] + 0.5),
    # one call of a function on several arrays, of which one is a result of another
    "a function of its own result, beside others": lambda x: (
        gt.tanh(x * 0.5) + gt.tanh(gt.tanh(x + 0.5))
    ),
    # one value that an op takes twice
    "a sum with itself, used again": lambda x: _reused(x * 0.5),
}


def _identities(w: Any) -> Any:
    ones, identity = w * 0.0 + 1.0, gt.eye(2, dtype="float64")
    with gt.GradientTape() as tape:
        tape.watch(ones)
        y = ones @ w
    return tape.gradient(y, ones, output_gradients=identity) + 10.0 * (identity @ w)


def _reused(x: Any) -> Any:
    g = x + x
    m = (g - 0.3) * 0.1
    v = (g * g - 0.2) * 0.01
    return m / (gt.sqrt(gt.abs(v)) + 1.0) - g


@each_executor
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_gives_what_it_gives_eagerly(name: str, program: str) -> None:
    fn, x = PROGRAMS[program], gt.constant(SIX)
    traced = gt.function(fn)
    with gt.executor(name):
        for i in range(OFTEN):
            given = x + float(i)
            assert differences([traced(given).numpy()], [fn(given).numpy()], all_close) == []


@each_executor
def test_a_gradient_that_is_a_sum_with_itself_is_squared_whole(name: str) -> None:
    found = []
    for executor in (name, "plain"):
        with gt.executor(executor):
            variables = [gt.Variable(SIX), gt.Variable(SIX[:1] + 1.0)]
            adam = gt.training.Adam(1e-3)

            @gt.function
            def step(variables: Any = variables, adam: Any = adam) -> None:
                with gt.GradientTape() as tape:
                    loss = gt.sum(variables[0] * variables[0]) + gt.sum(variables[1] ** 2.0)
                grads = tape.gradient(loss, variables)
                adam.apply_gradients(zip(grads, variables, strict=True))

            for _ in range(OFTEN):
                step()
            found.append([v.numpy() for v in (*variables, *adam.variables)])
    assert differences(found[0], found[1], all_close) == []


@each_executor
def test_gradients_that_are_each_others_variables_are_packed_whole(name: str) -> None:
    weights = np.array([[0.7], [-1.1], [1.3]])
    found = []
    for executor in (name, "plain"):
        with gt.executor(executor):
            variables = [gt.Variable(weights * 0.3), gt.Variable(weights + 1.0)]
            adam = gt.training.Adam(1e-3)

            @gt.function
            def step(variables: Any = variables, adam: Any = adam) -> None:
                with gt.GradientTape() as tape:
                    loss = gt.sum(weights * (variables[0].value * variables[1]))
                grads = tape.gradient(loss, variables)
                adam.apply_gradients(zip(grads, variables, strict=True))

            for _ in range(OFTEN):
                step()
            found.append([v.numpy() for v in (*variables, *adam.variables)])
    assert differences(found[0], found[1], all_close) == []


@each_executor
@pytest.mark.parametrize("held", [True, False])
def test_a_loop_without_steps_returns_no_memory_of_the_function(name: str, held: bool) -> None:
    def run(x: Any) -> Any:
        carry, _ = gt.scan(lambda c, _: (gt.tanh(c), None), x * 2.0, None, length=0)
        others = [gt.sin(carry * k) for k in (1.0, 2.0, 3.0)]
        return carry, gt.cos(gt.sin(x)) + sum(others)

    traced = gt.function(run)
    with gt.executor(name):
        results = []
        for i in range(OFTEN):
            x = gt.constant(SIX + i)
            got = [y if held else y.numpy().copy() for y in traced(x)]
            results.append((got, [y.numpy() for y in run(x)]))
        for got, want in results:  # after all calls
            assert differences([np.asarray(y) for y in got], want, all_close) == []


@each_executor
@pytest.mark.parametrize("size", [4, 2**14])
def test_several_variables_take_one_value_and_another_is_computed_from_it(
    name: str, size: int
) -> None:
    start = np.linspace(0.5, 1.5, size)

    def updated(compiled: bool) -> list[Any]:
        triples = [[gt.Variable(start * k) for _ in range(3)] for k in range(1, 17)]

        def step() -> None:
            for p, q, r in triples:
                y = p * 0.5
                p.assign(y)
                q.assign(y)
                r.assign(r * 0.9 + y)

        run = gt.function(step) if compiled else step
        for _ in range(OFTEN):
            run()
        return [v.numpy() for triple in triples for v in triple]

    with gt.executor(name):
        assert differences(updated(True), updated(False), all_close) == []
