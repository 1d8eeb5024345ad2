"""Callbacks that change the model within an epoch: the next step trains what is there now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape import layers, training

RNG = np.random.default_rng(0)
X = RNG.normal(size=(64, 4)).astype("float32")
Y = (X[:, :1] * X[:, 1:2]).astype("float32")


class Net(gt.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = [layers.Dense(4, activation="tanh"), layers.Dense(4)]
        self.extra: Any = None
        self.out = layers.Dense(1)

    def __call__(self, x: Any, training: bool = False) -> Any:
        for block in self.blocks:
            x = block(x)
        return self.out(x if self.extra is None else self.extra(x))


def dense(units: int = 4) -> Any:
    return layers.Dense(units, kernel_initializer="ones")  # without random numbers


CHANGES: dict[str, Callable[[Any], Any]] = {
    "freeze": lambda net: setattr(net.blocks[0], "trainable", False),
    "thaw": lambda net: setattr(net, "trainable", True),
    "append": lambda net: net.blocks.append(dense()),
    "replace": lambda net: net.blocks.__setitem__(-1, dense()),
    "remove": lambda net: net.blocks.pop() if len(net.blocks) > 1 else None,
    "fill": lambda net: setattr(net, "extra", dense()),
    "activate": lambda net: setattr(net, "extra", layers.Activation("tanh")),
    "empty": lambda net: setattr(net, "extra", None),
    "another head": lambda net: setattr(net, "out", dense(1)),
}


class Changing(training.Callback):
    def __init__(self, changes: list[str]) -> None:
        self.changes = list(changes)

    def on_train_batch_begin(self, batch: int) -> None:
        self.before = [(v, v.numpy()) for v in self.model.trainable_variables]
        self.still = [(v, v.numpy()) for v in self.model.variables if not v.trainable]

    def on_train_batch_end(self, batch: int, logs: dict[str, float]) -> None:
        assert all((v.numpy() != old).any() for v, old in self.before)
        assert all((v.numpy() == old).all() for v, old in self.still)
        if self.changes:
            CHANGES[self.changes.pop()](self.model)


def losses(changes: list[str], compile: bool) -> list[float]:
    gt.random.set_seed(0)
    options = {"loss": "mse", "epochs": 4, "batch_size": 16, "seed": 1, "verbose": 0}
    change = Changing(changes)
    return training.fit(Net(), (X, Y), callbacks=[change], compile=compile, **options).history[
        "loss"
    ]


@pytest.mark.parametrize("seed", range(6))
def test_each_step_trains_what_is_there(seed: int) -> None:
    changes = np.random.default_rng(seed).choice([*CHANGES], 10).tolist()
    np.testing.assert_allclose(losses(changes, True), losses(changes, False), rtol=1e-4)


def test_a_layer_of_the_next_epoch_trains_in_its_first_step() -> None:
    net, told = Net(), []

    def at_epoch(epoch: int, logs: dict[str, float]) -> None:
        if epoch == 0:
            net.extra = dense()
        else:
            told.append(net.extra.kernel.numpy())

    training.fit(
        net, (X, Y), loss="mse", epochs=2, batch_size=64, callbacks=[at_epoch], verbose=0, seed=0
    )
    assert (told[0] != 1.0).any()
