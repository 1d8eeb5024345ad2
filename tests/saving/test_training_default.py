"""A model whose ``training`` is None by default is saved for a call without it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.training import SGD, fit


class Model(gt.Module):
    def __call__(self, x, training=None):
        return x * (2.0 if training else 1.0)


def test_a_default_that_was_never_used_is_traced_too(tmp_path) -> None:
    model, x = Model(), gt.ones((3,))
    model(x, training=True)
    gt.save(model, tmp_path / "model.h5")
    loaded = gt.load(tmp_path / "model.h5")
    assert loaded(x).tolist() == [1.0] * 3
    assert loaded(x, training=False).tolist() == [1.0] * 3
    assert loaded(x, training=True).tolist() == [2.0] * 3


class Parts:
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.drop = gt.layers.BatchNorm(), gt.layers.Dropout(0.5, seed=1)

    def apply(self, x: Any) -> Any:
        return self.drop(self.norm(x))


class Block(Parts, gt.layers.Layer):
    def call(self, x):
        return self.apply(x)


class Written(Parts, gt.Model):
    def call(self, inputs):
        return self.apply(inputs)


class Plain(Parts, gt.Module):
    def __call__(self, x):
        return self.apply(x)


@pytest.mark.parametrize("kind", [Block, Written, Plain])
def test_a_call_without_training_is_saved_for_both(kind: Any, tmp_path: Any) -> None:
    """Its parts know whether the model trains, so a graph of one kind would not."""
    x = np.random.default_rng(0).normal(2.0, 3.0, size=(32, 3)).astype("float32")
    model = gt.layers.Sequential([kind(), gt.layers.Dense(1)])
    model(x)
    gt.save(model, tmp_path / "model.h5")
    loaded = gt.load(tmp_path / "model.h5")
    np.testing.assert_array_equal(loaded(x), model(x))
    runs = [
        fit(m, (x, x[:, :1]), loss="mse", optimizer=SGD(0.01), epochs=2, seed=0, verbose=0).history
        for m in (model, loaded)
    ]
    assert runs[0] == runs[1]
    for live, restored in zip(model.variables, loaded.variables, strict=True):
        np.testing.assert_array_equal(restored, live)
    assert gt.sum(loaded.layers[0](x, training=True) == 0.0) > 20
    assert gt.saving.verify(tmp_path / "model.h5").ok
