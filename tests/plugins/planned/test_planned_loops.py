"""Scans as loops: what is in rows, in carries, and in both, is what the steps compute."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.plugins.planned import hoisting

RANDOM = np.random.default_rng(7)
ROWS = RANDOM.standard_normal((5, 3, 4)).astype("float32")
START = RANDOM.standard_normal((3, 4)).astype("float32")
WEIGHTS = RANDOM.standard_normal((4, 8)).astype("float32")

BODIES: dict[str, Any] = {
    "one value is carry and row": lambda c, x, w: ((y := gt.tanh(c + x)), y),
    "it is a row twice": lambda c, x, w: ((y := c * x), (y, y)),
    "the carry is what is scanned": lambda c, x, w: (x, c + x),
    "what is scanned is a row": lambda c, x, w: (c + x, x),
    "the carry before is a row": lambda c, x, w: (c * x, c),
    "the carry stays": lambda c, x, w: (c, c * x),
    "what is around is a row": lambda c, x, w: (c + x, w),
    "a constant is a row": lambda c, x, w: (c + x, gt.ones((2,))),
    "a number is a row": lambda c, x, w: (c + x, gt.sum(c * x)),
    "a view is carry and row": lambda c, x, w: ((y := gt.reshape(c.T + x.T, (3, 4))), y),
    "a view of a row is the carry": lambda c, x, w: (((y := gt.tanh(c + x.T.T)) * 1)[::-1], y),
    "a sum is a row": lambda c, x, w: (c + x, gt.sum(c * x, axis=0)),
    "a product is a row": lambda c, x, w: (gt.tanh(c + x), c @ w),
    "rows are joined": lambda c, x, w: (
        gt.tanh(c + x),
        gt.concatenate([gt.exp(c), x * c, x, x * c], axis=-1),
    ),
    "parts are split and joined": lambda c, x, w: (
        (y := gt.concatenate([gt.tanh(a) for a in gt.split(c @ w, 4, axis=-1)], -1))[:, :4],
        gt.concatenate([y, gt.nn.sigmoid(y)], axis=0),
    ),
    "integers and truths": lambda c, x, w: (c + x, (c > x, gt.argmax(c, axis=1))),
    "one function of many small arrays": lambda c, x, w: (
        (c + x) * sum(gt.sum(gt.exp(gt.sin(c * k) * x[:, :1])) for k in (0.1, 0.2, 0.3, 0.4)),
        gt.stack([gt.tanh(gt.sum(c * k, axis=0)) for k in (0.1, 0.2, 0.3, 0.4)]),
    ),
    "no rows": lambda c, x, w: (c * x + 1, None),
    "a loop inside": lambda c, x, w: (
        gt.scan(lambda a, b: (gt.tanh(a + b), None), c, gt.stack([x, c]))[0],
        gt.scan(lambda a, b: (a, a * b), gt.sum(c), x)[1],
    ),
}


def _program(body: Any, reverse: bool) -> Any:
    def program(start: Any, rows: Any, w: Any) -> Any:
        last, found = gt.scan(lambda c, x: body(c, x, w), start, rows, reverse=reverse)
        return [last, *([] if found is None else found if isinstance(found, tuple) else [found])]

    def with_gradients(start: Any, rows: Any, w: Any) -> Any:
        with gt.GradientTape() as tape:
            tape.watch((start, rows, w))
            results = program(start, rows, w)
            loss = sum(gt.sum(gt.sin(y)) for y in results if y.dtype.kind == "f")
        return results, tape.gradient(loss, (start, rows, w), unconnected_gradients="zero")

    return with_gradients


def _flat(results: Any) -> list[Any]:
    return [x.numpy().copy() for group in results for x in group]


@pytest.mark.parametrize("executor", ["planned", "fused"])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", BODIES)
def test_a_loop_computes_what_steps_compute(name: str, reverse: bool, executor: str) -> None:
    if executor == "fused":
        pytest.importorskip("llvmlite")
    program = _program(BODIES[name], reverse)
    given = [gt.constant(x) for x in (START, ROWS, WEIGHTS)]
    right = _flat(program(*given))
    planned = gt.function(program, executor=executor)
    first = planned(*given)
    found = _flat(first)
    for a, b in zip(found, right, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)
        assert a.dtype == b.dtype
    planned(*[x + 1 for x in given])
    for a, b in zip(_flat(first), found, strict=True):  # nobody wrote to what was given away
        np.testing.assert_array_equal(a, b)


def test_it_is_a_loop_whatever_was_known_of_sizes_in_the_trace() -> None:
    layer = gt.layers.LSTM(4, return_sequences=True)
    layer(gt.ones((1, 1, 2)))

    @gt.function(input_signature=[gt.TensorSpec([None, None, 2], "float32")], executor="planned")
    def step(x: Any) -> Any:
        with gt.GradientTape() as tape:
            loss = gt.sum(layer(x) ** 2)
        return tape.gradient(loss, layer.trainable_variables)

    for shape in ((3, 5, 2), (2, 7, 2), (3, 5, 2)):
        x = gt.constant(RANDOM.standard_normal(shape).astype("float32"))
        with gt.GradientTape() as tape:
            loss = gt.sum(layer(x) ** 2)
        right = tape.gradient(loss, layer.trainable_variables)
        for a, b in zip(step(x), right, strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-6)
    told = step.explain(x)
    for length in (5, 7):  # and one backwards, of what the first has kept
        assert told.count(f"loop of {length} steps") == 2


def test_a_scan_of_nothing_stays_what_it_was() -> None:
    planned = gt.function(
        lambda start, rows: gt.scan(lambda c, x: (c + x, c), start, rows), executor="planned"
    )
    last, found = planned(gt.ones((2,)), gt.zeros((0, 2)))
    assert last.tolist() == [1.0, 1.0]
    assert found.shape == (0, 2)


def test_a_loop_keeps_what_its_gradient_needs_and_no_more() -> None:
    batch, steps, units = 8, 10, 16
    layer = gt.layers.LSTM(units, return_sequences=True)
    x = gt.constant(RANDOM.standard_normal((batch, steps, 4)).astype("float32"))
    layer(x)

    @gt.function(executor="planned")
    def step(x: Any) -> Any:
        with gt.GradientTape() as tape:
            loss = gt.sum(layer(x) ** 2)
        return tape.gradient(loss, layer.trainable_variables)

    step(x)
    (memory,) = re.findall(r"^  memory: .* of (\d+) bytes", step.explain(x), re.MULTILINE)
    # two states before, two after, the candidate, three gates; their arguments, for exact slopes
    # in the tails; the inputs' share; two for intermediate values of slopes; a few of a step
    stacks = 8 + 4 + 4 + 2
    assert int(memory) < (stacks + 3) * batch * steps * units * 4


def test_what_needs_no_carry_is_computed_before_the_loop() -> None:
    def program(start: Any, rows: Any, w: Any) -> Any:
        def step(c: Any, x: Any) -> Any:
            shared = gt.exp(w) * 2.0
            left, right = gt.split(gt.sin(x @ shared), 2, axis=-1)
            return gt.tanh(c * left), (right, gt.sum(x), c + gt.cos(x)[0])

        return gt.scan(step, start, rows)

    given = [gt.constant(x) for x in (START, ROWS, WEIGHTS)]
    planned = gt.function(program, executor="planned")
    last, found = planned(*given)
    right, expected = gt.function(program, executor="plain")(*given)
    for a, b in zip([last, *found], [right, *expected], strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6)
    loop = planned.explain(*given).partition("loop of 5 steps")[2]
    assert "tanh" in loop
    assert "add" in loop
    assert not re.search("sin|cos|exp|matmul|split", loop)


def test_each_step_draws_its_own_numbers() -> None:
    def program(rows: Any) -> Any:
        return gt.scan(lambda c, x: (c + 1.0, x + gt.random.normal((4,))), 0.0, rows)[1]

    found = []
    for name in ("plain", "planned"):
        gt.random.set_seed(3)
        found.append(gt.function(program, executor=name)(gt.zeros((5, 4))).numpy())
    np.testing.assert_array_equal(*found)


def test_a_map_of_small_arrays_is_no_loop() -> None:
    rows = gt.constant(ROWS)
    planned = gt.function(lambda x: gt.map(lambda y: gt.sum(gt.exp(y), axis=0), x))
    plain = gt.function(planned.python_function, executor="plain")
    np.testing.assert_array_equal(planned(rows).numpy(), plain(rows).numpy())
    assert "loop of" not in planned.explain(rows)


def test_large_values_stay_in_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hoisting, "_LARGEST", 5 * 3 * 4 * 4 - 1)
    planned = gt.function(lambda c, x: gt.scan(lambda a, b: (a + gt.exp(b), None), c, x)[0])
    planned(gt.constant(START), gt.constant(ROWS))
    assert "exp" in planned.explain(gt.constant(START), gt.constant(ROWS)).partition("loop of")[2]


def test_a_loop_computes_no_gradient_that_nothing_reads() -> None:
    def gradients(start: Any, rows: Any, w: Any, v: Any, b: Any) -> Any:
        def step(c: Any, x: Any) -> Any:
            z = gt.tanh(c) @ w + x @ v + b
            left, right = gt.split(z, 2, axis=1)
            return gt.tanh(left * right), None

        with gt.GradientTape() as tape:
            tape.watch((start, rows, w, v, b))
            loss = gt.sum(gt.scan(step, start, rows)[0])
        return tape.gradient(loss, (start, rows, w, v, b))

    given = [gt.constant(x) for x in (START, ROWS, WEIGHTS, -WEIGHTS, WEIGHTS[0])]
    right = gt.function(gradients, executor="plain")(*given)
    products = []
    for wanted in (right[:1], right[1:2], right[2:], right):
        places = [i for i, x in enumerate(right) if any(x is y for y in wanted)]
        some = gt.function(partial(_some, gradients, places))
        for mine, theirs in zip(some(*given), wanted, strict=True):
            np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=1e-5, atol=1e-6)
        loop = some.explain(*given).rpartition("loop of 5 steps")[2]
        products.append(re.findall(r"(\d*) ?matmul", loop))
        assert not re.search(r"\badd\b", loop)  # sums for w, v and b follow the loop
    # for the carry, and for the rows where they are wanted
    assert products == [[""], ["2"], [""], ["2"]]


def _some(gradients: Any, places: list[int], *given: Any) -> Any:
    found = gradients(*given)
    return [found[i] for i in places]
