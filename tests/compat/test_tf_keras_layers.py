"""Every layer of gradtape under Keras' name: the same values, in float32."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import numpy as np
import pytest
from layer_cases import FAMILIES

import gradtape as gt
from gradtape.compat.tensorflow import keras

#: What is made of other layers has these beside its configuration.
WRAPPING = {
    "RNN": lambda: keras.layers.RNN([keras.layers.GRUCell(3), keras.layers.LSTMCell(2)]),
    "Bidirectional": lambda: keras.layers.Bidirectional(
        keras.layers.GRU(2, return_sequences=True), merge_mode="ave"
    ),
    "TimeDistributed": lambda: keras.layers.TimeDistributed(
        keras.layers.Dense(3, activation="tanh")
    ),
}


def doubled(inputs: Any) -> Any:
    if isinstance(inputs, list):
        return [doubled(x) for x in inputs]
    return inputs.astype("float64") if inputs.dtype.kind == "f" else inputs


@pytest.mark.parametrize("name", FAMILIES)
def test_a_layer_gives_what_gradtapes_gives_in_float32(name: str) -> None:
    case = FAMILIES[name]
    native, inputs = case.make(), case.inputs(3)
    expected = native(inputs)
    kind = getattr(keras.layers, name.partition(" ")[0])
    layer = WRAPPING[name]() if name in WRAPPING else kind.from_config(native.get_config())
    assert isinstance(layer, type(native))
    assert isinstance(layer, keras.layers.Layer)
    assert layer.dtype == "float32"
    wide = doubled(inputs)
    if name == "Normalization":
        layer.adapt(wide)
    layer(wide)
    layer.set_weights(native.get_weights())
    found = layer(wide)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    layer(wide, training=True)
    twin = pickle.loads(pickle.dumps(layer))
    assert type(twin) is type(layer)


def test_both_directions_take_a_layer_of_cells() -> None:
    cells = keras.layers.RNN([keras.layers.LSTMCell(2), keras.layers.GRUCell(3)])
    layer = keras.layers.Bidirectional(cells)
    assert layer(gt.ones((2, 4, 5))).shape == (2, 6)
    assert len(layer.weights) == 2 * len(cells.weights)


def test_every_layer_has_a_keras_name() -> None:
    ours = {name for name in gt.layers.__all__ if inspect.isclass(getattr(gt.layers, name))}
    assert ours - {"BatchNorm"} <= {*keras.layers.__all__, *keras.models.__all__}
    assert keras.layers.MaxPool2D is keras.layers.MaxPooling2D
    assert keras.layers.GlobalAvgPool1D is keras.layers.GlobalAveragePooling1D
    assert not hasattr(keras.layers, "BatchNorm")


@pytest.mark.parametrize(
    ("name", "args", "said"),
    [
        ("MultiHeadAttention", (2, 3, 3, 0.0, True, 3, 1), "attention_axes not supported by gradt"),
        ("Embedding", (3, 4, "uniform", "l2"), "Embedding: too many positional arguments"),
        ("LSTM", (), "LSTM: missing a required argument: 'units'"),
    ],
)
def test_what_gradtape_lacks_is_refused_by_name(name: str, args: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        getattr(keras.layers, name)(*args)


def test_a_model_of_recurrent_and_convolutional_layers_trains() -> None:
    gt.random.set_seed(0)
    x = np.random.default_rng(0).standard_normal((32, 8, 2))
    y = (x[:, :, 0].sum(1) > 0).astype("int32")
    model = keras.Sequential(
        [
            keras.layers.Conv1D(4, 3, padding="same", activation="relu", input_shape=(8, 2)),
            keras.layers.MaxPool1D(2),
            keras.layers.Bidirectional(keras.layers.LSTM(4)),
            keras.layers.LayerNormalization(),
            keras.layers.Dense(2, activation="softmax"),
        ]
    )
    schedule = keras.optimizers.schedules.ExponentialDecay(0.03, 20, 0.9)
    model.compile(
        keras.optimizers.Nadam(schedule), "sparse_categorical_crossentropy", metrics=["accuracy"]
    )
    stop = keras.callbacks.EarlyStopping("loss", patience=20, restore_best_weights=True)
    run = model.fit(x, y, epochs=25, verbose=0, callbacks=[stop])
    assert run.history["accuracy"][-1] > 0.9
