"""Programs as plain Python, traced with ``autograph=True``, and loaded from a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt

pytest.importorskip("malt", reason='AutoGraph needs pip install "gradtape[autograph]"')

from programs import PROGRAMS, W

POINTS = np.array([[0.5, -0.4, 0.9], [-0.6, 0.3, -1.1], [0.2, 0.7, 0.4], [0.45, -0.2, -0.3]])
SIGNATURE = [gt.TensorSpec([None], "float64")]


def total(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: gt.sum(gt.sin(f(x)))


def derivatives(f: Callable[[Any], Any], x: Any) -> list[Any]:
    """Return the value, the gradients and a second derivative, by a tape as users write it."""
    x = gt.constant(x)
    with gt.GradientTape() as outer:
        outer.watch(x)
        with gt.GradientTape() as inner:
            inner.watch(x)
            y = total(f)(x)
        slopes = inner.gradient(y, [x, W], unconnected_gradients="zero")
        bend = gt.sum(gt.cos(slopes[0] + 0.3)) + gt.sum(slopes[1] ** 2)
    found = outer.gradient(bend, [x, W], unconnected_gradients="zero")
    return [np.asarray(v) for v in (f(x), *slopes, *found)]


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_values_and_derivatives_of_two_orders(name: str, tmp_path: Path) -> None:
    f = PROGRAMS[name]
    module = gt.Module()
    module.w = W
    module.f = gt.function(f, input_signature=SIGNATURE, autograph=True)
    gt.save(module, tmp_path / "m.h5", golden=False)
    loaded = gt.load(tmp_path / "m.h5")
    sized = gt.function(f, autograph=True)
    for point in POINTS:
        wanted = derivatives(f, point)
        for run in (module.f, sized):
            for a, b in zip(derivatives(run, point), wanted, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)
        np.testing.assert_array_equal(loaded.f(point), module.f(point))
        bend = gt.hessian(total(module.f))(gt.constant(point))
        np.testing.assert_array_equal(gt.hessian(total(loaded.f))(gt.constant(point)), bend)
    assert len(module.f.concrete_functions) == 1


def test_there_are_enough_of_them() -> None:
    assert len(PROGRAMS) >= 60
