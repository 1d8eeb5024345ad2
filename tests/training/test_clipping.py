"""Clipping of gradients whose norm is beyond the range of their dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape import training
from gradtape.layers import constraints

#: Two elements of this size have a norm that the dtype does not hold.
LARGE = {"float16": 6e4, "float32": 3e38, "float64": 1.5e308}


def pair(dtype: str, size: float) -> Any:
    return gt.constant(np.full(2, size, dtype))


CLIPS = {
    "norm": lambda x: gt.clip_by_norm(x, 1.0),
    "axes": lambda x: gt.clip_by_norm([x, x * 0.0 + 0.5], 1.0, axes=1)[0],
    "global": lambda x: training.clip_by_global_norm([None, x], 1.0)[0][1],
}


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("clip", CLIPS)
@pytest.mark.parametrize("dtype", LARGE)
def test_large_values_are_clipped_to_the_norm(dtype: str, clip: str, traced: bool) -> None:
    run = gt.function(CLIPS[clip]) if traced else CLIPS[clip]
    found = run(pair(dtype, LARGE[dtype]))
    assert found.dtype == dtype
    np.testing.assert_allclose(found, np.full(2, np.sqrt(0.5)), rtol=1e-3)
    small = pair(dtype, 0.25)
    np.testing.assert_array_equal(run(small), small)


def test_tensors_of_several_dtypes_are_clipped_together() -> None:
    given = [pair("float32", 3e38), pair("float64", 3e38), pair("float16", 1.0)]
    found, _ = training.clip_by_global_norm(given, 2.0)
    assert [x.dtype for x in found] == ["float32", "float64", "float16"]
    np.testing.assert_allclose(np.concatenate([x.numpy() for x in found]), [1, 1, 1, 1, 0, 0])


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("option", ["clipnorm", "global_clipnorm"])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.filterwarnings("ignore:SGD. variable")
def test_optimizers_clip_large_gradients(dtype: str, option: str, traced: bool) -> None:
    w, sgd = gt.Variable(np.zeros(2, dtype)), training.SGD(1.0, **{option: 1.0})
    step = gt.function(sgd.apply_gradients) if traced else sgd.apply_gradients
    step([(pair(dtype, LARGE[dtype]), w)])
    np.testing.assert_allclose(w.numpy(), np.full(2, -np.sqrt(0.5)), rtol=1e-3)


@pytest.mark.parametrize("rule", [constraints.MaxNorm(1.0), constraints.UnitNorm()])
def test_constraints_limit_large_weights(rule: Any) -> None:
    found = rule(gt.constant(np.full((2, 1), 1e30, "float32")))
    np.testing.assert_allclose(found, np.full((2, 1), np.sqrt(0.5)), rtol=1e-6)
