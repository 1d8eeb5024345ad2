"""What the fuzzer found in traces of open sizes: each gives what the eager run gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt

NONE = np.zeros((0,))
FOUND: dict[str, tuple[Callable[[Any], Any], np.ndarray]] = {
    "take of one number": (lambda x: gt.take(gt.squeeze(x), np.array([0, 0]), axis=0), [[2.0]]),
    "take of its one element": (lambda x: gt.take(gt.squeeze(x), np.array([0]), axis=0), [[2.0]]),
    "take from its last axis": (lambda x: gt.take(gt.squeeze(x), [0, 0], axis=-1), [[2.0]]),
    "rows of a table of one number": (
        lambda x: gt.nn.embedding_lookup(gt.squeeze(x), np.array([0, 0])),
        [[2.0]],
    ),
    "repeat of one number": (lambda x: gt.repeat(gt.squeeze(x), 2, axis=0), [[2.0]]),
    "running sum of one number": (lambda x: gt.cumsum(gt.squeeze(x), axis=-1), [[2.0]]),
    "running product of one number": (lambda x: gt.cumprod(gt.squeeze(x), axis=0), [[2.0]]),
    "a running product of rows": (lambda x: gt.cumprod(gt.squeeze(x), axis=0), [[2.0, 3.0]]),
    "logsumexp of one number": (
        lambda x: gt.logsumexp(gt.reshape(x, ()), axis=-1, keepdims=True),
        [[2.0]],
    ),
    "product of one number": (lambda x: gt.prod(gt.squeeze(x), axis=0) ** 2, [[2.0]]),
    "product of several": (lambda x: gt.prod(gt.squeeze(x), axis=-1) ** 2, [[2.0, 0.0, 3.0]]),
    "compress of no rows": (lambda x: gt.compress([True], x, axis=-1), np.zeros((0, 0))),
    "take of no rows": (lambda x: gt.take(x, np.array([0, 0]), axis=1), np.zeros((0, 0))),
    "median of nothing": (gt.median, NONE),
    "median of empty rows": (lambda x: gt.median(x, axis=1), np.zeros((2, 0))),
    "nanmedian of nothing": (gt.nanmedian, NONE),
    "nanmedian of empty rows": (lambda x: gt.nanmedian(x, axis=1), np.zeros((2, 0))),
    "nanquantile of nothing": (lambda x: gt.nanquantile(x, [0.2, 0.7]), NONE),
}


def with_gradient(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def run(x: Any) -> Any:
        with gt.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        return y, tape.gradient(y, x, unconnected_gradients="zero")

    return run


def opened(function: Callable[[Any], Any], rank: int) -> Any:
    return gt.function(function, input_signature=[gt.TensorSpec([None] * rank, "float64")])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", FOUND)
def test_a_trace_gives_what_the_eager_run_gives(name: str) -> None:
    function, value = FOUND[name]
    x = gt.constant(value, "float64")
    run = with_gradient(function)
    for got, want in zip(opened(run, x.ndim)(x), run(x), strict=True):
        np.testing.assert_array_equal(got.numpy(), want.numpy(), strict=True)


@pytest.mark.parametrize("function", [gt.median, gt.nanmedian])
def test_medians_of_something_stay_what_they_are(function: Any) -> None:
    traced = opened(function, 1)
    for n in (1, 2, 5):
        x = gt.constant(np.sin(np.arange(n)), "float64")
        assert traced(x).item() == function(x).item()


def test_a_scan_in_vmap_over_no_steps_does_not_run_the_step() -> None:
    def running(x: Any) -> Any:
        return gt.scan(lambda c, i: (c + x[i], c * 0.5), gt.sum(x), gt.arange(x.shape[0]))[1]

    traced = opened(gt.vmap(running), 2)
    for n in (0, 1, 3):
        x = gt.constant(np.cos(np.arange(2.0 * n)).reshape(2, n))
        assert traced(x).shape == (2, n)
        assert traced(x).tolist() == gt.vmap(running)(x).tolist()
