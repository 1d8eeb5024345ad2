"""Engines of collectives that plugins provide: how groups come by them, and what they refuse."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.extend import Communicator, Engine, hookimpl
from gradtape.errors import DistributedError, UnknownOp


class Twins(Communicator):
    """The first of two ranks, of which the other always gives the same."""

    engine, size = "twins", 2
    closed = 0

    def all_reduce(self, array: Any, reduction: str = "sum") -> Any:
        return array + array if reduction == "sum" else array

    def exchange(self, message: bytes) -> list[bytes]:
        return [message, message]

    def close(self) -> None:
        Twins.closed += 1


class TwinsEngine(Engine):
    name = "twins"
    here = False

    def launched(self) -> bool:
        return self.here

    def connect(self, **options: Any) -> Communicator:
        if options:
            raise TypeError(f"twins takes no {options}")
        return Twins()


@pytest.fixture
def engine() -> Iterator[TwinsEngine]:
    gt.distributed.shutdown()
    made = TwinsEngine()
    hook = hookimpl(lambda: [made])
    gt.register_plugin(SimpleNamespace(gradtape_collectives=hook), "twins")
    yield made
    gt.distributed.shutdown()
    gt.unregister_plugin("twins")


def test_an_engine_is_chosen_by_name_and_left(engine: TwinsEngine) -> None:
    group = gt.distributed.init(engine="twins")
    assert (group.size, group.rank, group.engine) == (2, 0, "twins")
    assert gt.distributed.init() is group
    assert gt.distributed.group() is group
    assert group.all_reduce(gt.constant([1.0, 2.0])).tolist() == [2.0, 4.0]
    assert group.all_reduce(gt.constant([1.0, 2.0]), "mean").tolist() == [1.0, 2.0]
    closed = Twins.closed
    gt.distributed.shutdown()
    assert Twins.closed == closed + 1
    assert gt.distributed.group().size == 1
    assert gt.distributed.all_reduce(gt.constant([1.0])).tolist() == [1.0]


def test_one_whose_launcher_started_the_process_is_found(
    engine: TwinsEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert gt.distributed.init().engine == "alone"
    gt.distributed.shutdown()
    engine.here = True
    assert gt.distributed.init().engine == "twins"
    gt.distributed.shutdown()
    monkeypatch.setenv("GRADTAPE_ENGINE", "alone")
    assert gt.distributed.init().engine == "alone"


def test_a_step_runs_on_what_it_connects(engine: TwinsEngine) -> None:
    group = gt.distributed.init(engine="twins")
    weight = gt.Variable(np.float32(1.0))

    @group.data_parallel
    def step(x: gt.Tensor) -> gt.Tensor:
        with gt.GradientTape() as tape:
            loss = gt.mean(x * weight)
        weight.assign_sub(tape.gradient(loss, weight))
        return loss

    assert step(gt.constant([1.0, 3.0])).item() == 2.0  # the mean over four examples
    assert weight.item() == -1.0


def test_what_cannot_be_is_refused(engine: TwinsEngine) -> None:
    with pytest.raises(UnknownOp, match="no plugin provides the engine 'twin'; near names: twins"):
        gt.distributed.init(engine="twin")
    with pytest.raises(TypeError, match="twins takes no"):
        gt.distributed.init(engine="twins", colour="red")
    with pytest.raises(ValueError, match="timeout must be positive or None; got 0"):
        gt.distributed.init(engine="twins", timeout=0)
    with pytest.raises(DistributedError, match="with the engine 'twins' the ranks have no TCP"):
        gt.distributed.init(engine="twins", timeout=5)
    assert gt.distributed.group().size == 1
    group = gt.distributed.init(engine="twins")
    with pytest.raises(DistributedError, match="already joined with the engine 'twins'"):
        gt.distributed.init(engine="mpi")
    step = group.data_parallel(lambda x: gt.mean(x), timeout=5)
    with pytest.raises(DistributedError, match="have no TCP connections here"):
        step(gt.ones(2))
    with pytest.raises(ValueError, match="code 0 means success"):
        group.abort("no reason", 0)
