"""Results of as many elements as their values say, in traces, handed on to other functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt

MASK = np.array([False, True, True])
X = np.array([[0.5, -1.5, 2.0], [1.0, 0.25, -0.5]])


def picked(x: Any) -> Any:
    return x[:, MASK]


CALLS: dict[str, Callable[[Any], Any]] = {
    "average by weights of the same shape": lambda x: gt.average(
        x[:, 1:], axis=1, weights=gt.exp(picked(x))
    ),
    "average by weights along an axis": lambda x: gt.average(
        picked(x), axis=1, weights=gt.exp(x[0, 1:])
    ),
    "apply_along_axis that keeps vectors": lambda x: gt.apply_along_axis(
        gt.cumsum, 0, gt.transpose(x)[MASK]
    ),
    "apply_along_axis of one vector": lambda x: gt.apply_along_axis(gt.cumsum, 0, x[0][MASK]),
    "apply_along_axis of vectors in two axes": lambda x: gt.apply_along_axis(
        lambda v: v[v > 0.0], 0, gt.stack([gt.exp(x)] * 2)
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_trace_with_unknown_counts_gives_what_an_eager_call_gives(name: str) -> None:
    call, x = CALLS[name], gt.constant(X)

    def slope(x: Any) -> Any:
        return gt.grad(lambda x: gt.sum(gt.square(call(x))))(x)

    for f in (call, slope):
        np.testing.assert_allclose(gt.function(f)(x), f(x))


@pytest.mark.parametrize("axis", [0, 1])
def test_a_function_goes_along_as_many_vectors_as_a_run_finds(axis: int) -> None:
    def summed(x: Any) -> Any:
        return gt.apply_along_axis(gt.cumsum, axis, picked(x))

    np.testing.assert_array_equal(gt.function(summed)(gt.constant(X)), summed(gt.constant(X)))
