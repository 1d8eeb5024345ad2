"""Keras' names for policies do what Keras' programs expect."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import gradtape as gt
import gradtape.compat.tensorflow as tf

X = np.random.default_rng(0).normal(size=(64, 4)).astype("float32")


@pytest.fixture(autouse=True)
def policy() -> Iterator[None]:
    tf.keras.mixed_precision.set_global_policy("mixed_float16")
    yield
    tf.keras.mixed_precision.set_global_policy("float32")


def test_a_model_of_keras_computes_and_trains_in_float16() -> None:
    tf.random.set_seed(0)
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            layers.Dense(8, activation="relu"),
            layers.Dropout(0.1),
            layers.Flatten(),
            layers.Dense(3),
            layers.Activation("softmax", dtype="float32"),
        ]
    )
    assert model(X).dtype.name == "float32"
    assert [layer.compute_dtype for layer in model.layers] == ["float16"] * 4 + ["float32"]
    assert model.layers[0](X).dtype.name == model.layers[1](X).dtype.name == "float16"
    assert {v.dtype.name for v in model.trainable_variables} == {"float32"}
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy")
    labels = (X[:, 0] > 0).astype("int64")
    losses = model.fit(X, labels, epochs=15, verbose=0).history["loss"]
    assert losses[-1] < losses[0]


def test_the_names_are_gradtapes_own() -> None:
    names = tf.keras.mixed_precision
    assert names.global_policy() == names.Policy("mixed_float16")
    assert names.LossScaleOptimizer is gt.mixed_precision.LossScaleOptimizer


def test_layers_made_under_no_policy_are_what_they_were() -> None:
    tf.keras.mixed_precision.set_global_policy("float32")
    for layer in (tf.keras.layers.Flatten(), tf.keras.layers.Dropout(0.5)):
        assert layer.dtype == "float32"
        assert layer(X.astype("float64")).dtype.name == "float32"
        assert "dtype" not in layer.get_config()
