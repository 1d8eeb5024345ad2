"""``Backend.settle``: a lazy library computes at the end of a step, in eager and traced steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from strict_backend import StrictBackend

import gradtape as gt
from gradtape.core.extend import hookimpl


class Settling(StrictBackend):
    """Notes how many arrays it settles at once."""

    name = "settling"

    def __init__(self) -> None:
        self.asked: list[int] = []

    def settle(self, arrays: Sequence[Any]) -> Sequence[Any]:
        self.asked.append(len(arrays))
        return [self.xp.asarray(x, copy=True) for x in arrays]


class Plugin:
    def __init__(self) -> None:
        self.backend = Settling()

    @hookimpl
    def gradtape_backends(self) -> list[Any]:
        return [self.backend]


@pytest.fixture
def settling() -> Iterator[Settling]:
    plugin = Plugin()
    gt.register_plugin(plugin, "settling")
    try:
        yield plugin.backend
    finally:
        gt.unregister_plugin("settling")


def stepping(backend: str) -> tuple[Callable[[], Any], Any]:
    """Return a training step of a small network on a backend, and the model."""
    gt.random.set_seed(0)
    with gt.backend(backend):
        x = gt.random.normal((8, 3))
        model = gt.layers.Sequential([gt.layers.Dense(4, activation="relu"), gt.layers.Dense(1)])
        model(x)
        optimizer = gt.training.Adam(0.01)

    def step() -> Any:
        with gt.GradientTape() as tape:
            loss = gt.mean(model(x) ** 2)
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    return step, model


@pytest.mark.parametrize("traced", [False, True])
def test_the_values_of_a_step_settle_together(settling: Settling, traced: bool) -> None:
    step, _ = stepping("settling")
    step = gt.function(step) if traced else step
    step()
    settling.asked.clear()
    for _ in range(3):
        step()
    # four variables with two slots each, the count of steps and the loss; eagerly, flat arrays of
    # the variables and of each slot, then the count
    assert settling.asked == ([14] if traced else [3, 1]) * 3


def test_assignments_settle(settling: Settling) -> None:
    v = gt.Variable(gt.constant([1.0]).to("settling"))
    settling.asked.clear()
    v.assign_add([2.0])
    assert settling.asked == [1]
    assert v.value.to("numpy").tolist() == [3.0]


def test_training_is_as_without(settling: Settling) -> None:
    losses = [[step().to("numpy").item() for _ in range(5)] for step in steps("numpy", "settling")]
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-5)


def steps(*backends: str) -> Iterator[Callable[[], Any]]:
    return (stepping(backend)[0] for backend in backends)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("traced", [False, True])
def test_graphs_of_dask_do_not_grow_with_the_number_of_steps(traced: bool) -> None:
    pytest.importorskip("dask")
    pytest.importorskip("array_api_compat")
    import dask_backend

    gt.register_plugin(dask_backend, "dask")
    try:
        step, model = stepping("dask")
        step = gt.function(step) if traced else step
        sizes = []
        for _ in range(20):
            loss = step()
            arrays = [loss.array, *(v.array for v in model.trainable_variables)]
            sizes.append([len(x.dask.layers) for x in arrays])
        assert sizes[-1] == sizes[1]
    finally:
        gt.unregister_plugin("dask")
