"""Dropout: off at inference, inverted in training, repeatable from its seed, traceable."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape import layers


def test_nothing_happens_at_inference() -> None:
    x = gt.constant(np.arange(6.0))
    layer = layers.Dropout(0.5, seed=0)
    assert layer(x) is x
    assert layer(x, training=False) is x
    assert layers.Dropout(0.0)(x, training=True) is x


def test_kept_elements_are_scaled_up() -> None:
    y = layers.Dropout(0.2, seed=1)(np.ones((200, 100), "float32"), training=True).numpy()
    assert y.dtype == np.float32
    assert set(np.unique(y).tolist()) == {0.0, 1.25}
    assert (y == 0).mean() == pytest.approx(0.2, abs=0.01)


def test_the_gradient_goes_where_the_value_went() -> None:
    x = gt.ones((50,))
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = layers.Dropout(0.5, seed=2)(x, training=True)
    np.testing.assert_array_equal(tape.gradient(y, x).numpy(), y.numpy())


def test_the_seed_repeats_the_sequence_and_calls_differ() -> None:
    x = np.ones((8, 8), "float32")
    a, b = layers.Dropout(0.5, seed=3), layers.Dropout(0.5, seed=3)
    first = a(x, training=True).numpy()
    np.testing.assert_array_equal(first, b(x, training=True).numpy())
    second = a(x, training=True).numpy()
    assert (first != second).any()
    np.testing.assert_array_equal(second, b(x, training=True).numpy())


def test_without_a_seed_the_global_one_governs() -> None:
    x = np.ones((8, 8), "float32")

    def run() -> Any:
        gt.random.set_seed(11)
        return layers.Dropout(0.5)(x, training=True).numpy()

    np.testing.assert_array_equal(run(), run())
    assert (layers.Dropout(0.5)(x, training=True).numpy() != run()).any()


def test_a_trace_draws_anew_at_each_call_and_as_eager_code_does() -> None:
    layer, eager = layers.Dropout(0.5, seed=4), layers.Dropout(0.5, seed=4)

    @gt.function(input_signature=[gt.TensorSpec([None, 5])])
    def run(x: Any) -> Any:
        return layer(x, training=True)

    for count in (3, 4, 4):
        x = np.ones((count, 5), "float32")
        np.testing.assert_array_equal(run(x).numpy(), eager(x, training=True).numpy())
    np.testing.assert_array_equal(layer.state.numpy(), eager.state.numpy())


def test_a_restored_layer_goes_on_where_it_was() -> None:
    x = np.ones((8, 8), "float32")
    layer = layers.Dropout(0.5, seed=5)
    layer(x, training=True)
    twin = layers.Dropout.from_config(layer.get_config())
    twin.state = gt.Variable(layer.state.numpy(), trainable=False)
    np.testing.assert_array_equal(twin(x, training=True).numpy(), layer(x, training=True).numpy())


@pytest.mark.parametrize("rate", [-0.1, 1.0, 2])
def test_the_rate_is_a_probability_below_one(rate: float) -> None:
    with pytest.raises(ValueError, match=r"rate must be in \[0, 1\)"):
        layers.Dropout(rate)


@pytest.mark.parametrize("seed", [-1, 2**62])
def test_the_seed_is_in_range(seed: int) -> None:
    with pytest.raises(ValueError, match=r"seed must be an integer from 0 to 2\*\*62 - 1"):
        layers.Dropout(0.5, seed=seed)
