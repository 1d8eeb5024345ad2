"""The generator that functions share draws where a compiled function runs, wherever it was used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import gradtape as gt

EXECUTORS = pytest.mark.parametrize("executor", ["default", "kernels", "plain"])


@pytest.fixture
def shared(cupy: Any) -> Iterator[Any]:
    """Return the state of the shared generator; it is on NumPy before and after."""
    state = gt.core.extend.Stream.of_process()
    state.set_array(np.array([0, 0]))
    yield state
    state.set_array(np.array([0, 0]))


def _noisy(x: Any) -> Any:
    return gt.nn.dropout(x + gt.random.normal((6, 6)), 0.5)


def _no_inputs() -> Any:
    return gt.nn.dropout(gt.random.uniform((6, 6)), 0.5)


def _branch(x: Any) -> Any:
    return gt.cond(gt.sum(x) > 0, lambda: _noisy(x), lambda: x)


def _gradient(x: Any) -> Any:
    return gt.grad(lambda x: gt.sum(_noisy(x) ** 2))(x)


def _in_tape(traced: Callable[..., Any]) -> Callable[..., Any]:
    def run(x: Any) -> Any:
        with gt.GradientTape() as tape:
            tape.watch(x)
            y = gt.sum(traced(x))
        return tape.gradient(y, x)

    return run


@EXECUTORS
@pytest.mark.parametrize("program", [_noisy, _branch, _gradient])
def test_a_compiled_function_draws_where_its_inputs_are(
    shared: Any, program: Callable[..., Any], executor: str
) -> None:
    here = gt.constant(np.ones((6, 6), np.float32))
    there, found = here.to("cupy"), {}
    for order in ("numpy", "cupy", "both"):
        traced = gt.function(program, executor=executor)
        gt.random.set_seed(3)
        found[order] = []
        for i in range(16):
            x = {"numpy": here, "cupy": there, "both": (here, there)[i // 5 % 2]}[order]
            y = traced(x)
            assert y.device == x.device
            found[order].append(y.numpy())
            if i % 6 == 5:  # eager draws go on, where the user says
                found[order].append(gt.random.normal(3).numpy())
    for order in ("cupy", "both"):
        for mine, theirs in zip(found[order], found["numpy"], strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-6)


@EXECUTORS
def test_one_without_inputs_draws_on_the_current_backend(shared: Any, executor: str) -> None:
    traced = gt.function(_no_inputs, executor=executor)
    gt.random.set_seed(3)
    want = [gt.function(_no_inputs)().numpy() for _ in range(8)]
    gt.random.set_seed(3)
    for i, w in enumerate(want):
        with gt.backend("cupy") if i % 4 < 2 else nullcontext():
            y = traced()
        assert y.device == ("cupy:0" if i % 4 < 2 else "numpy:cpu")
        np.testing.assert_array_equal(y.numpy(), w)


def test_one_without_inputs_draws_where_its_variables_are(shared: Any) -> None:
    v = gt.Variable(np.ones((6, 6), np.float32))
    holder = gt.Module()
    holder.v = v
    holder.to("cupy")
    traced = gt.function(lambda: _noisy(v))
    assert {traced().device for _ in range(5)} == {"cupy:0"}


def test_tapes_around_it_draw_there_too(shared: Any) -> None:
    x = gt.constant(np.ones((6, 6), np.float32))
    found = []
    for there in (x, x.to("cupy")):
        gt.random.set_seed(3)
        run = _in_tape(gt.function(_noisy))
        slopes = [run(there) for _ in range(4)]
        assert {slope.device for slope in slopes} == {there.device}
        found.append([slope.numpy() for slope in slopes])
    np.testing.assert_array_equal(*found)


def test_a_batch_of_them_draws_there_too(shared: Any) -> None:
    x = gt.constant(np.ones((4, 6, 6), np.float32)).to("cupy")
    with gt.backend("cupy"):
        traced = gt.vmap(gt.function(_noisy), randomness="different")
        assert {traced(x).device for _ in range(4)} == {"cupy:0"}
