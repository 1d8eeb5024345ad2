"""``gelu`` in single precision: its accuracy, its limits, and its steps in plans."""

from __future__ import annotations

import sys
from math import erfc, exp, pi, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt

sys.path.insert(0, str(Path(__file__).parent / "planned"))
from executing_plans import bits_by, explained

LARGE = 2.0**126
HARD = np.float32([np.inf, -np.inf, np.nan, 0.0, -0.0, LARGE, -LARGE, 1e-42, -1e-42])


@gt.function
def run(x: Any) -> list[Any]:
    """Return gelu and its gradient."""
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = gt.nn.gelu(x)
    return [y, tape.gradient(y, x)]


def test_it_has_ten_units_in_the_last_place() -> None:
    random = np.random.default_rng(0)
    x = np.concatenate([np.linspace(-12, 12, 20001), random.normal(size=5000)]).astype("float32")
    wide = x.astype("float64")
    shares = np.array([erfc(-u / sqrt(2)) / 2 for u in wide])
    value, slope = run(x)
    right = wide * shares
    assert np.all(np.abs(value - right) <= 10 * np.spacing(np.abs(right).astype("float32")))
    right = shares + wide * np.array([exp(-u * u / 2) for u in wide]) / sqrt(2 * pi)
    # the two terms cancel between the root at -0.75 and the neighbourhood of its series
    units = np.where((x > -1.2) & (x < -0.3), 25, 10)
    assert np.all(np.abs(slope - right) <= units * np.spacing(np.abs(right).astype("float32")))


def test_its_slope_keeps_its_digits_at_its_root() -> None:
    root = -0.7517915246935645
    x = np.float32(root) + np.float32([-1e-3, -1e-6, 0.0, 1e-6, 1e-3])
    past = x.astype("float64") - root
    _, slope = run(x)
    bend = (2 - root**2) * exp(-(root**2) / 2) / sqrt(2 * pi)
    np.testing.assert_allclose(slope, bend * past, rtol=2e-3)
    assert np.all(np.sign(slope) == np.sign(past))


def test_limits_are_exact_and_warn_of_nothing() -> None:
    with np.errstate(all="raise", under="ignore"):
        value, slope = (np.asarray(x) for x in run(HARD))
    np.testing.assert_array_equal(value[:7], [np.inf, 0.0, np.nan, 0.0, 0.0, LARGE, 0.0])
    np.testing.assert_array_equal(slope, [1.0, 0.0, np.nan, 0.5, 0.5, 1.0, 0.0, 0.5, 0.5])
    np.testing.assert_array_equal(np.signbit(value[3:5]), [False, True])


@pytest.mark.parametrize("count", [5, 50_000])
@pytest.mark.parametrize("executor", ["planned", "fused"])
def test_it_is_steps_of_a_group_with_the_same_bits(executor: str, count: int) -> None:
    if executor == "fused":
        pytest.importorskip("llvmlite")
    x = np.random.default_rng(count).normal(size=count).astype("float32") * 3
    x[-len(HARD) :] = HARD[-count:]
    assert bits_by(executor, run, x) == bits_by("plain", run, x)
    assert "a call" not in explained(run)
