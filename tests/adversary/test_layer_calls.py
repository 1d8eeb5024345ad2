"""Calls that users of other frameworks write."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gradtape as gt


@pytest.mark.parametrize("training", [True, False])
def test_every_layer_is_called_with_training(training: bool, tmp_path: Path) -> None:
    layers = [
        gt.layers.Dense(3),
        gt.layers.BatchNorm(),
        gt.layers.Activation("tanh"),
        gt.layers.Dropout(0.5, seed=1),
        gt.layers.Sequential([gt.layers.Dense(2), gt.nn.relu]),
    ]
    x = gt.ones((4, 2))
    for layer in layers:
        assert layer(x, training=training).shape[0] == 4
        gt.save(layer, tmp_path / "layer.h5")
        again = gt.load(tmp_path / "layer.h5")
        np.testing.assert_array_equal(again(x, training=False), layer(x, training=False))


def test_a_layer_of_ones_own_without_training_is_saved_after_a_call_with_it(tmp_path: Path) -> None:
    class Twice(gt.layers.Layer):
        def call(self, x: gt.Tensor) -> gt.Tensor:
            return x * 2.0

    layer = Twice()
    x = gt.ones((2, 3))
    np.testing.assert_array_equal(layer(x, training=True), 2 * np.ones((2, 3)))
    gt.save(layer, tmp_path / "layer.h5")
    np.testing.assert_array_equal(gt.load(tmp_path / "layer.h5")(x), layer(x))


def test_other_unknown_arguments_are_errors() -> None:
    with pytest.raises(TypeError, match="trainning"):
        gt.layers.Dense(3)(gt.ones((2, 2)), trainning=True)
