"""Parts of models: ``inputs``, ``outputs``, ``layer.output``, and weights in Keras' order."""

from __future__ import annotations

import copy
import gc
import pickle

import numpy as np
import pytest

import gradtape as gt
from gradtape import layers

X = np.ones((2, 6), "float32")


def in_a_row() -> layers.Sequential:
    return layers.Sequential(
        [gt.Input((6,)), layers.Dense(5, activation="tanh", name="mid"), layers.Dense(2)]
    )


def as_a_graph() -> gt.Model:
    x = gt.Input((6,))
    return gt.Model(x, layers.Dense(2)(layers.Dense(5, activation="tanh", name="mid")(x)))


def called_before() -> layers.Sequential:
    model = layers.Sequential([layers.Dense(5, activation="tanh", name="mid"), layers.Dense(2)])
    model(X)
    return model


@pytest.mark.parametrize("make", [in_a_row, as_a_graph, called_before])
@pytest.mark.parametrize(
    "way", [lambda x: x, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_a_model_of_a_part_has_the_layers_of_the_whole(make, way) -> None:
    model = way(make())
    middle = model.layers[0]
    part = gt.Model(model.inputs, middle.output)
    np.testing.assert_array_equal(part(X), middle(X))
    assert part.layers == [middle]
    assert middle.output.array is model.layers[1].input.array
    assert model.output.array is model.outputs.array
    assert (model.input_shape, model.output_shape) == ((None, 6), (None, 2))
    head = gt.Model(model.input, layers.Dense(3)(middle.output))
    middle.trainable = False
    assert [v.shape for v in head.trainable_variables] == [(5, 3), (3,)]


def test_the_ends_of_a_row_follow_its_layers() -> None:
    model = in_a_row()
    assert model.output_shape == (None, 2)
    model.pop()
    assert model.output_shape == (None, 5)
    model.add(layers.Dense(7))
    assert model.output_shape == (None, 7)


def test_a_layer_without_one_output_says_why() -> None:
    with pytest.raises(AttributeError, match="has no 'output': it was not called on a"):
        _ = layers.Dense(3).output
    row = layers.Sequential([layers.Dense(3)])
    with pytest.raises(AttributeError, match=r"begin it with gt.Input\(shape\), or call it first"):
        _ = row.layers[0].output
    layer = layers.Dense(3)
    kept = [layer(gt.Input((2,))), layer(gt.Input((2,)))]
    with pytest.raises(AttributeError, match="'dense' was called on 2 placeholders"):
        _ = layer.output
    assert len(kept) == 2


def test_layers_do_not_hold_the_models_in_which_they_stand() -> None:
    layer = layers.Dense(3)
    x = gt.Input((2,))
    made = gt.Model(x, layer(x))
    del made, x
    gc.collect()
    with pytest.raises(AttributeError, match="it was not called"):
        _ = layer.output


def test_attributes_of_own_layers_may_have_these_names() -> None:
    class Own(layers.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.output, self.input, self.weights = layers.Dense(1), 3, [2.0]

        def call(self, x):
            return self.output(x) * self.weights[0]

    assert Own()(X).shape == (2, 1)


def test_weights_come_layer_by_layer_without_random_states() -> None:
    x = gt.Input((4, 2))
    y = layers.Dropout(0.5)(layers.LSTM(3)(x))
    model = gt.Model(x, layers.Dense(2)(y))
    model(np.ones((1, 4, 2), "float32"), training=True)
    shapes = [(2, 12), (3, 12), (12,), (3, 2), (2,)]
    assert [v.shape for v in model.weights] == shapes
    assert [w.shape for w in model.get_weights()] == shapes
    model.set_weights([np.full(shape, i) for i, shape in enumerate(shapes)])
    assert [w.flat[0] for w in model.get_weights()] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("several", [False, True])
def test_a_model_that_was_never_called_is_saved(tmp_path, several: bool) -> None:
    x, z = gt.Input((6,), name="x"), gt.Input((None,), dtype="int32", name="z")
    y, w = layers.Dense(2)(x), layers.LSTM(2)(layers.Embedding(5, 3)(z))
    model = gt.Model({"x": x, "z": z}, [y, w]) if several else gt.Model(x, y)
    gt.save(model, tmp_path / "a.h5")
    again = gt.load(tmp_path / "a.h5")
    given = {"x": X, "z": np.array([[1, 2, 3], [0, 1, 0]], "int32")} if several else X
    for found, expected in zip(again(given), model(given), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-6)
