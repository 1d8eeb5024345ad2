"""Models from files, with Keras's names: losses, constraints and layers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape.compat.tensorflow as tf

keras = tf.keras
RANDOM = np.random.default_rng(1)
X = RANDOM.normal(size=(8, 3)).astype("float32")
Y = RANDOM.normal(size=(8, 2)).astype("float32")


class Subclass(keras.Model):
    def __init__(self) -> None:
        super().__init__()
        self.hidden = keras.layers.Dense(4, activity_regularizer="l2")
        self.out = keras.layers.Dense(2, kernel_regularizer="l1")

    def call(self, x: Any) -> Any:
        return self.out(self.hidden(x))


def _functional() -> Any:
    x = keras.Input((3,))
    hidden = keras.layers.Dense(4, name="hidden", kernel_constraint="max_norm")(x)
    out = keras.layers.Dense(2, kernel_regularizer=keras.regularizers.L2(0.1))
    return keras.Model(x, out(keras.layers.BatchNormalization()(hidden)))


def _sequential() -> Any:
    rules = {"kernel_regularizer": "l2", "bias_constraint": "non_neg"}
    return keras.Sequential([keras.layers.Dense(4, **rules), keras.layers.Dense(2)])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("make", [_sequential, _functional, Subclass])
def test_a_loaded_model_trains_as_the_model(make: Callable[[], Any], tmp_path: Path) -> None:
    model = make()
    model.compile("sgd", "mse")
    model.fit(X, Y, verbose=0)
    model.save(tmp_path / "a.keras")
    loaded = keras.models.load_model(tmp_path / "a.keras")
    loaded.save(tmp_path / "b.keras")
    again = keras.models.load_model(tmp_path / "b.keras")
    histories = []
    for each in (model, loaded, again):
        each.compile(keras.optimizers.SGD(0.5), "mse")
        run = each.fit(X, Y, epochs=3, shuffle=False, verbose=0, validation_data=(X, Y))
        histories.append([*run.history["loss"], *run.history["val_loss"]])
        assert len(each.losses) == len(model.losses)
    assert histories[1:] == [pytest.approx(histories[0], rel=1e-5)] * 2


@pytest.mark.parametrize("make", [_sequential, _functional, Subclass])
def test_a_loaded_model_has_its_layers(make: Callable[[], Any], tmp_path: Path) -> None:
    model = make()
    model(X)
    model.save(tmp_path / "a.keras")
    loaded = keras.models.load_model(tmp_path / "a.keras")
    layers = [x for x in model.layers if not isinstance(x, keras.layers.InputLayer)]
    assert [layer.name for layer in loaded.layers] == [layer.name for layer in layers]
    for ours, theirs in zip(loaded.layers, layers, strict=True):
        for a, b in zip(ours.get_weights(), theirs.get_weights(), strict=True):
            np.testing.assert_array_equal(a, b)
    first = loaded.get_layer(index=0)
    assert first is loaded.layers[0]
    assert loaded.get_layer(index=-1) is loaded.layers[-1]
    assert (first.units, first.kernel.shape, first.count_params()) == (4, (3, 4), 16)
    np.testing.assert_allclose(first(X), layers[0](X), rtol=1e-6)
    first.set_weights([np.zeros((3, 4)), np.zeros(4)])
    first.trainable = False
    assert len(loaded.trainable_variables) == len(model.trainable_variables) - 2
    loaded.compile("sgd", "mse")
    loaded.fit(X, Y, verbose=0)
    assert not np.any(first.get_weights()[0])
    assert np.any(loaded.layers[-1].get_weights()[0])
