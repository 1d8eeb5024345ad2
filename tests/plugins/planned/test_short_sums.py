"""Sums of few elements, and over an axis before a short one, have the bits of NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from executing_plans import bits_by

import gradtape as gt
from gradtape.plugins.planned.writing.short_sums import short_sum

SHAPES = [(40, 2), (64, 7), (8, 8, 3), (32, 32, 3), (5, 9, 2, 3), (50, 6, 1), (3, 200, 16)]


def numbers(seed: int, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Return numbers of all sizes, zeros of both signs and, rarely, infinities and nan."""
    random = np.random.default_rng(seed)
    x = random.normal(size=shape) * np.exp2(random.integers(-30, 30, shape))
    special = np.array([0.0, -0.0, -0.0, np.inf, -np.inf, np.nan])
    places = random.random(shape) < 0.2
    chances = [0.3, 0.3, 0.37, 0.01, 0.01, 0.01]
    x[places] = random.choice(special, size=int(places.sum()), p=chances)
    return x.astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_sums_have_the_same_bits(shape: tuple[int, ...], keepdims: bool, dtype: str) -> None:
    @gt.function
    def run(x: Any) -> list[Any]:
        y = x * 0.5
        sums = [gt.sum(y, axis=axis, keepdims=keepdims) for axis in range(-1, x.ndim)]
        return [*sums, *(s * 2.0 for s in sums), gt.mean(y, axis=-1)]

    for seed in range(5):
        x = numbers(seed, shape, dtype)
        assert bits_by("planned", run, x) == bits_by("plain", run, x)


def test_rows_that_are_not_contiguous_are_summed_in_their_own_order() -> None:
    run = short_sum((64, 3), 1, np.dtype("float32"))
    assert run is not None
    for x in (numbers(0, (3, 64), "float32").T, numbers(0, (64, 6), "float32")[:, ::2]):
        for out in (None, np.empty((64, 2), np.float32)[:, 0]):
            found = run(x, 1, None, out, False)
            np.testing.assert_array_equal(found, np.add.reduce(x, 1))


def test_long_rows_are_left_to_numpy() -> None:
    assert short_sum((64, 8), 1, np.dtype("float32")) is None
    assert short_sum((64, 64, 64), 1, np.dtype("float32")) is None
