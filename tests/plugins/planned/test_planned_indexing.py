"""Reads by slices, and their gradients, give in plans what they give in the plain executor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from executing_plans import bits_by, explained

import gradtape as gt

SHAPE = (4, 6, 3)


def values(*shape: int) -> np.ndarray:
    """Return numbers with infinities, nan and both zeros among them."""
    x = np.random.default_rng(sum(shape)).normal(size=shape).astype("float32")
    places = x.reshape(-1)[::3]
    places[:] = np.resize([-0.0, np.nan, 0.0, np.inf, -np.inf], places.shape)
    return x


def random_index(random: Any) -> tuple[Any, ...]:
    """Return an index of integers, slices, new axes and an ellipsis."""
    parts: list[Any] = []
    for size in SHAPE[: random.integers(0, 4)]:
        start, stop = sorted(int(n) for n in random.integers(-size, size + 1, 2))
        choices = [slice(None), slice(start, stop), slice(None, None, -1), int(start % min(SHAPE))]
        parts.append(choices[random.integers(len(choices))])
    for _ in range(random.integers(0, 2)):
        parts.insert(random.integers(len(parts) + 1), None)
    if random.integers(2):
        parts.insert(random.integers(len(parts) + 1), ...)
    return tuple(parts)


def gradient_of_reads(indices: list[tuple[Any, ...]]) -> tuple[Callable[..., Any], list[Any]]:
    """Return a function of an array and its factors that reads it, and gives the gradient."""
    x = values(*SHAPE)
    factors = [values(*np.shape(x[index])) for index in indices]

    @gt.function
    def run(x: Any, *factors: Any) -> list[Any]:
        with gt.GradientTape() as tape:
            tape.watch(x)
            read = [x[index] * k for index, k in zip(indices, factors, strict=True)]
            total = sum(gt.sum(r) for r in read)
        return [*read, tape.gradient(total, x)]

    return run, [gt.constant(x), *map(gt.constant, factors)]


@pytest.mark.parametrize("seed", range(25))
def test_reads_and_their_gradients_have_the_same_bits(seed: int) -> None:
    random = np.random.default_rng(seed)
    run, args = gradient_of_reads([random_index(random) for _ in range(random.integers(1, 5))])
    assert bits_by("planned", run, *args) == bits_by("plain", run, *args)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_the_gradients_of_reads_that_tile_an_axis_are_joined(axis: int) -> None:
    before = (slice(None),) * axis
    indices = [(*before, slice(2, None)), (*before, 0), (*before, slice(1, 2)), (*before, 0)]
    run, args = gradient_of_reads(indices)
    assert bits_by("planned", run, *args) == bits_by("plain", run, *args)
    assert "concatenate" in explained(run)
    assert "index_add" not in explained(run)


def test_the_gradients_of_reads_with_new_axes_are_added() -> None:
    run, args = gradient_of_reads([(slice(None), None), (None, ...), (...,)])
    assert bits_by("planned", run, *args) == bits_by("plain", run, *args)
    assert "a call" not in explained(run)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_stacks_are_joined(axis: int) -> None:
    @gt.function
    def run(x: Any, y: Any) -> list[Any]:
        with gt.GradientTape() as tape:
            tape.watch([x, y])
            z = gt.stack([x * 2.0, y, x, y[::-1]], axis=axis)
        return [z, *tape.gradient(z, [x, y])]

    args = values(5, 3), values(5, 3)[::-1]
    assert bits_by("planned", run, *args) == bits_by("plain", run, *args)
    assert "kernel of stack" not in explained(run)
