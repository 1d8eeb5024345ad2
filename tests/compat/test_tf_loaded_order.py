"""A loaded model lists its variables in the order of the one that was saved."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import gradtape.compat.tensorflow as tf


def test_variables_of_loaded_layers_are_in_keras_order(tmp_path: Path) -> None:
    model = tf.keras.Sequential([tf.keras.layers.Dense(2), tf.keras.layers.BatchNormalization()])
    x = np.eye(3, dtype="float32")
    model(x)
    path = tmp_path / "model.h5"
    for _ in range(2):
        tf.saved_model.save(model, path)
        loaded = tf.saved_model.load(path)
        names = [v.name for v in loaded.trainable_variables]
        assert names == ["kernel", "bias", "gamma", "beta"]
        for a, b in zip(model.trainable_variables, loaded.trainable_variables, strict=True):
            a.assign(b)
        np.testing.assert_array_equal(model(x), loaded(x))
        model = loaded  # which is saved again
