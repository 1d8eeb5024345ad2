"""Layers that do not train, and weights in one list."""

from __future__ import annotations

import numpy as np
import pytest

import gradtape as gt
from gradtape.layers import BatchNorm, Dense, Sequential

X = np.random.default_rng(0).normal(size=(8, 3)).astype("float32")


def model() -> Sequential:
    made = Sequential([Dense(4), BatchNorm(), Dense(1)])
    made(X)
    return made


def test_a_frozen_layer_and_all_inside_it_do_not_train() -> None:
    net = model()
    assert net.trainable
    net.layers[0].trainable = False
    assert len(net.trainable_variables) == 4
    net.trainable = False
    assert net.trainable_variables == ()
    assert not net.layers[2].trainable
    net.trainable = True
    # the moving statistics did not train before, and do not now
    assert len(net.trainable_variables) == 6


def test_a_layer_may_be_frozen_before_it_has_weights() -> None:
    layer = Dense(2)
    layer.trainable = False
    layer(X)
    assert layer.trainable_variables == ()
    assert len(layer.variables) == 2


def test_a_frozen_normalisation_keeps_to_its_moving_statistics() -> None:
    layer = BatchNorm()
    layer(X)
    expected = layer(X)
    layer.trainable = False
    np.testing.assert_array_equal(layer(X, training=True), expected)
    assert layer.moving_mean.numpy().tolist() == [0.0, 0.0, 0.0]
    layer.trainable = True
    layer(X, training=True)
    assert (layer.moving_mean.numpy() != 0.0).all()


def test_a_frozen_layer_keeps_its_weights_in_fit() -> None:
    net = model()
    net.layers[0].trainable = False
    before = net.layers[0].get_weights()
    gt.training.fit(net, (X, X[:, :1]), loss="mse", optimizer=gt.training.SGD(0.1), verbose=False)
    for old, new in zip(before, net.layers[0].get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)


def test_weights_are_copied_out_and_set() -> None:
    layer = Dense(2)
    layer(X)
    assert layer.count_params() == 8
    kernel, bias = np.arange(6.0).reshape(3, 2), np.array([1.0, -1.0])
    layer.set_weights([kernel, bias])
    found = layer.get_weights()
    np.testing.assert_array_equal(found[0], kernel)
    np.testing.assert_array_equal(found[1], bias)
    found[0][:] = 7.0
    np.testing.assert_array_equal(layer.kernel.numpy(), kernel)
    with pytest.raises(ValueError, match="layer 'dense' has 2 weights, set_weights got 1"):
        layer.set_weights([kernel])
    with pytest.raises(ValueError, match="set_weights"):
        layer.set_weights([kernel + 1.0, kernel])
    np.testing.assert_array_equal(layer.kernel.numpy(), kernel)


def test_a_layer_may_say_that_it_is_built() -> None:
    class Scale(gt.layers.Layer):
        def call(self, x: object) -> object:
            return x

        def build(self, input_shape: object) -> None:
            raise AssertionError("not asked for")

    layer = Scale()
    assert not layer.built
    layer.mark_built()
    assert layer.built
    layer(X)
    layer.mark_built(False)
    assert not layer.built
