"""Recurrent layers: dropout inside cells, empty sequences, copies for both directions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape import layers as L

X = np.random.default_rng(0).standard_normal((4, 6, 3)).astype("float32")


class Own(L.Layer):
    """A cell of a user's, which drops parts of its inputs."""

    state_size = 4

    def __init__(self) -> None:
        super().__init__()
        self.dense, self.drop = L.Dense(4), L.Dropout(0.5, seed=1)

    def call(self, x: Any, states: Any, training: bool = False) -> Any:
        h = gt.tanh(self.dense(self.drop(x, training=training)) + states[0])
        return h, [h]


@pytest.mark.parametrize(
    "make",
    [
        lambda: L.LSTM(3, dropout=0.5, seed=1),
        lambda: L.GRU(3, recurrent_dropout=0.5, seed=1),
        lambda: L.RNN(L.SimpleRNNCell(3, dropout=0.5, seed=1)),
        lambda: L.RNN([L.LSTMCell(5, dropout=0.5, seed=1), L.GRUCell(4)]),
        lambda: L.RNN([L.LSTMCell(5), L.GRUCell(4, recurrent_dropout=0.5, seed=1)]),
        lambda: L.RNN([L.GRUCell(3), Own()]),
        lambda: L.RNN(Own()),
        lambda: L.Bidirectional(L.GRU(3, dropout=0.5, seed=1)),
        lambda: L.TimeDistributed(L.Dropout(0.5, seed=1)),
    ],
)
def test_dropout_inside_drops_while_training_and_then_alone(make: Any, tmp_path: Path) -> None:
    layer = make()
    plain, again = layer(X).numpy(), layer(X).numpy()
    np.testing.assert_array_equal(plain, again)
    first, second = (layer(X, training=True).numpy() for _ in range(2))
    assert np.abs(first - plain).max() > 1e-3
    assert np.abs(first - second).max() > 1e-3
    traced = gt.function(lambda x: layer(x, training=True))
    assert np.abs(traced(gt.constant(X)).numpy() - plain).max() > 1e-3
    if any(isinstance(module, Own) for module in layer.submodules):
        return  # a file does not hold its class
    gt.save(layer, tmp_path / "a.h5")
    loaded = gt.load(tmp_path / "a.h5")
    np.testing.assert_allclose(loaded(X).numpy(), plain, rtol=1e-5, atol=1e-6)
    assert np.abs(loaded(X, training=True).numpy() - plain).max() > 1e-3


def test_dropout_of_states_is_the_same_at_each_step() -> None:
    cell = L.SimpleRNNCell(64, recurrent_dropout=0.5, seed=0, kernel_initializer="zeros")
    cell.recurrent_initializer = L.initializers.Identity()
    cell.activation = None
    layer = L.RNN(cell, return_sequences=True)
    start = np.ones((1, 64), "float32")
    y = layer(np.zeros((1, 5, 2), "float32"), initial_state=start, training=True).numpy()[0]
    dropped = y[0] == 0
    assert 0 < dropped.sum() < 64
    for step in range(5):  # what is kept doubles at each step
        np.testing.assert_array_equal(y[step], np.where(dropped, 0.0, 2.0 ** (step + 1)))


@pytest.mark.parametrize("make", [L.SimpleRNN, L.LSTM, L.GRU])
def test_a_sequence_without_steps_leaves_the_states(make: Any) -> None:
    layer = make(3)
    layer(X)
    assert layer(X[:, :0]).numpy().tolist() == np.zeros((4, 3)).tolist()
    sequences = make(3, return_sequences=True, return_state=True)
    sequences(X)
    assert [part.shape for part in sequences(X[:, :0])][:2] == [(4, 0, 3), (4, 3)]


def test_both_directions_have_cells_of_their_own() -> None:
    layer = L.Bidirectional(L.RNN([L.LSTMCell(5), L.GRUCell(4)]))
    assert layer(X).shape == (4, 8)
    assert len(layer.variables) == 12
    one, two = (part.cell.cells[0] for part in (layer.forward_layer, layer.backward_layer))
    assert one is not two
    assert two.units == 5


def test_a_bias_initializer_may_return_a_tensor() -> None:
    layer = L.LSTM(2, bias_initializer=lambda shape, dtype: gt.zeros(shape, dtype=dtype))
    layer(X)
    assert layer.cell.bias.tolist() == [0.0] * 2 + [1.0] * 2 + [0.0] * 4


def test_stacked_cells_take_integers_at_first() -> None:
    layer = L.RNN([L.GRUCell(3), L.LSTMCell(2)])
    assert layer(np.ones((2, 3, 4), "int32")).dtype == gt.float32


def test_what_is_no_cell_is_refused() -> None:
    with pytest.raises(TypeError, match="StackedRNNCells: a cell must be a layer with"):
        L.RNN([L.GRUCell(3), L.Dense(2)])


def test_a_stack_keeps_states_in_the_dtypes_of_its_cells() -> None:
    wide = [L.GRUCell(3, dtype="float64"), L.LSTMCell(2)]
    y, *states = L.RNN(wide, return_state=True)(gt.ones((2, 4, 5)))
    assert {x.dtype.name for x in (y, *states)} == {"float64"}
    narrow = [L.GRUCell(3), L.LSTMCell(2, dtype="float64")]
    y, *states = L.RNN(narrow, return_state=True)(gt.ones((2, 4, 5)))
    assert [x.dtype.name for x in (y, *states)] == ["float64", "float32", "float64", "float64"]
