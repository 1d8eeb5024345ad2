"""Gradients of scans in traces: those of the loop that runs here and now, of two orders."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt

RNG = np.random.default_rng(4)
W = RNG.normal(size=(3, 3)) * 0.5
XS = RNG.normal(size=(5, 2, 3))
START = RNG.normal(size=(2, 3))


def recurrent(start: Any, xs: Any, w: Any) -> Any:
    return gt.scan(lambda h, x: ((y := gt.tanh(x + h @ w)), y * y), start, xs)


def backwards(start: Any, xs: Any, w: Any) -> Any:
    return gt.scan(lambda h, x: ((y := gt.sin(x * h @ w)), (y, x)), start, xs, reverse=True)


def counting(start: Any, xs: Any, w: Any) -> Any:
    def step(carry: Any, x: Any) -> Any:
        n, h = carry
        return (n + 1, h * gt.exp(-x) + n.astype("float64")), n

    return gt.scan(step, (gt.constant(0), start), xs)[0][1] @ w


def without_rows(start: Any, xs: Any, w: Any) -> Any:
    return gt.scan(lambda h, _: (gt.tanh(h @ w) + xs[0], None), start, length=4)[0]


def passed_on(start: Any, xs: Any, w: Any) -> Any:
    return gt.scan(lambda c, x: ((c[1], c[0]), c[0] * x), (start, xs[1]), xs)


def several_products(start: Any, xs: Any, w: Any) -> Any:
    return gt.scan(lambda h, x: (gt.tanh(x @ w + h @ w), h @ w.T), start, xs)


def nested(start: Any, xs: Any, w: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        inner = gt.scan(lambda c, _: (gt.tanh(c @ w + x), c), h, length=3)
        return inner[0], gt.sum(inner[1])

    return gt.scan(step, start, xs)


def deciding(start: Any, xs: Any, w: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        y = gt.cond(gt.sum(x) > 0, lambda: h @ w, lambda: h * x)
        return y, gt.where(y > 0, y, 0.1 * y)

    return gt.scan(step, start, xs)


def custom(start: Any, xs: Any, w: Any) -> Any:
    @gt.custom_gradient
    def doubled(x: Any) -> Any:
        return x * 2.0, lambda g: g * 3.0

    return gt.scan(lambda h, x: (doubled(h @ w) + x, h), start, xs)


def unused(start: Any, xs: Any, w: Any) -> Any:
    return gt.scan(lambda h, x: (x, gt.ones(2)), start, xs)[0] + 0.0 * w[0]


def on_top(start: Any, xs: Any, w: Any) -> Any:
    return recurrent(start, recurrent(start, xs, w)[1], w @ w)


LOOPS = [
    on_top,
    recurrent,
    backwards,
    counting,
    without_rows,
    passed_on,
    several_products,
    nested,
    deciding,
    custom,
    unused,
]


def leaves_of(tree: Any) -> list[Any]:
    """Return the tensors of nested pairs."""
    if isinstance(tree, (tuple, list)):
        return [leaf for part in tree for leaf in leaves_of(part)]
    return [] if tree is None else [tree]


def gradients(loop: Callable[..., Any], *given: Any) -> Any:
    with gt.GradientTape() as tape:
        tape.watch(given)
        leaves = leaves_of(loop(*given))
        value = sum(gt.sum(y * y) for y in leaves if y.dtype.kind == "f")
    return [value, *leaves, *tape.gradient(value, given, unconnected_gradients="zero")]


@pytest.mark.parametrize("executor", ["plain", "planned"])
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("loop", LOOPS)
def test_traced_gradients_are_those_of_the_loop(loop: Any, known: bool, executor: str) -> None:
    given = [gt.constant(x) for x in (START, XS, W)]
    steps = 5 if known else None
    rows = 2 if known else None
    specs = [
        gt.TensorSpec([rows, 3], "float64"),
        gt.TensorSpec([steps, rows, 3], "float64"),
        gt.TensorSpec([3, 3], "float64"),
    ]
    traced = gt.function(lambda *x: gradients(loop, *x), input_signature=specs, executor=executor)
    for _ in range(2):
        for mine, right in zip(traced(*given), gradients(loop, *given), strict=True):
            np.testing.assert_allclose(mine.numpy(), right.numpy(), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("loop", [x for x in LOOPS if x not in (custom, unused)])
def test_gradients_of_gradients_in_a_trace(loop: Any) -> None:
    given = [gt.constant(x) for x in (START, XS, W)]

    def second(*given: Any) -> Any:
        with gt.GradientTape() as tape:
            tape.watch(given)
            slopes = gradients(loop, *given)[-3:]
            value = sum(gt.sum(g * g) for g in slopes)
        return tape.gradient(value, given, unconnected_gradients="zero")

    for mine, right in zip(gt.function(second)(*given), second(*given), strict=True):
        np.testing.assert_allclose(mine.numpy(), right.numpy(), rtol=1e-10, atol=1e-12)


def test_two_gradients_of_one_scan_in_a_trace() -> None:
    given = [gt.constant(x) for x in (START, XS, W)]

    def both(*given: Any) -> Any:
        with gt.GradientTape(persistent=True) as tape:
            tape.watch(given)
            carry, rows = recurrent(*given)
            one, two = gt.sum(carry), gt.sum(rows * rows)
        return [*tape.gradient(one, given), *tape.gradient(two, given)]

    for mine, right in zip(gt.function(both)(*given), both(*given), strict=True):
        np.testing.assert_allclose(mine.numpy(), right.numpy(), rtol=1e-12, atol=1e-14)


def long(xs: Any) -> Any:
    return gt.scan(lambda h, x: (h + x, h * x), gt.zeros(2000), xs)[1]


def test_stacks_that_somebody_has_are_not_written_again() -> None:
    run = gt.function(long)
    held, copies = [], []
    for k in range(4):
        found = run(gt.full((30, 2000), float(k)))
        held.append([found, found[1:], found.numpy(), memoryview(found.numpy())][k])
        copies.append(np.array(held[-1]))
        del found
    for _ in range(3):
        run(gt.full((30, 2000), 9.0))
    for mine, copy in zip(held, copies, strict=True):
        np.testing.assert_array_equal(np.asarray(mine), copy)


def test_threads_have_stacks_of_their_own() -> None:
    run, wrong = gt.function(long), []
    run(gt.zeros((30, 2000)))

    def work(k: int) -> None:
        xs = gt.full((30, 2000), float(k))
        right = np.arange(30.0)[:, None] * k * k * np.ones(2000)
        wrong.extend(k for _ in range(20) if not np.array_equal(run(xs).numpy(), right))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
