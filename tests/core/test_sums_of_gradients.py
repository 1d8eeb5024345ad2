"""Where gradients meet they are summed: the numbers, and nobody's array is written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradtape as gt

RNG = np.random.default_rng(3)


def numbers(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("size", [7, 200])
def test_gradients_of_what_is_used_many_times(size: int) -> None:
    x, w = numbers(4, size), numbers(size, size)
    weight = gt.Variable(w)
    with gt.GradientTape() as tape:
        h = gt.constant(x)
        for _ in range(4):
            h = gt.matmul(h, weight) * 0.1
        loss = gt.sum(h)
    g = np.full((4, size), np.float32(0.1))
    hidden = [x]
    for _ in range(3):
        hidden.append((hidden[-1] @ w) * np.float32(0.1))
    expected = None
    for h in reversed(hidden):
        part = h.T @ g
        expected = part if expected is None else expected + part
        g = (g @ w.T) * np.float32(0.1)
    assert tape.gradient(loss, weight).numpy().tobytes() == expected.tobytes()


def test_upstream_gradients_and_what_a_rule_keeps_stay_as_they_were() -> None:
    size = 1 << 15
    seen: list[Any] = []

    @gt.custom_gradient
    def kept(x: Any) -> Any:
        def gradient(g: Any) -> Any:
            mine = g * 2.0
            seen.append((mine, mine.numpy().copy()))
            return mine

        return x * 2.0, gradient

    x, seed = gt.constant(numbers(size)), numbers(size)
    upstream = gt.constant(seed)
    with gt.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = kept(x) + kept(x) + x + x * x
    for _ in range(2):
        g = tape.gradient(y, x, output_gradients=upstream)
        np.testing.assert_allclose(g.numpy(), seed * (5 + 2 * x.numpy()), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(upstream.numpy(), seed)
    for held, before in seen:
        np.testing.assert_array_equal(held.numpy(), before)


def test_gradients_of_sources_between_others_are_not_changed_by_what_follows() -> None:
    x = gt.constant(numbers(1 << 15))
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = x * 3.0
        z = y * y + y * 2.0 + y
        loss = gt.sum(z * z + z)
    gz, gy, gx = tape.gradient(loss, [z, y, x])
    np.testing.assert_allclose(gz.numpy(), 2 * z.numpy() + 1, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(gy.numpy(), gz.numpy() * (2 * y.numpy() + 3), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(gx.numpy(), gy.numpy() * 3, rtol=1e-4, atol=1e-4)


def test_broadcast_gradients_meet() -> None:
    x = gt.constant(numbers(200, 200))
    with gt.GradientTape() as tape:
        tape.watch(x)
        loss = gt.sum(x) + gt.sum(x) + gt.mean(x) + gt.sum(gt.transpose(x)) + x[3, 4]
    expected = np.full((200, 200), 3 + 1 / 40000, np.float32)
    expected[3, 4] += 1
    np.testing.assert_allclose(tape.gradient(loss, x).numpy(), expected, rtol=1e-6)
