"""Cells and layers of one's own inside gradtape's: their files, copies and gradients."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape import layers as L

X = np.random.default_rng(0).standard_normal((2, 5, 4)).astype("float32")


class Scale(L.Layer):
    def build(self, input_shape: Any) -> None:
        self.factor = self.add_weight((input_shape[-1],), "random_normal", "factor")

    def call(self, x: Any) -> Any:
        return x * self.factor


class Leaky(L.Layer):
    """A cell with one state, that drops inputs while training if it is told to."""

    def __init__(self, units: int = 3, **options: Any) -> None:
        super().__init__(**options)
        self.units = self.state_size = self.output_size = units

    def build(self, input_shape: Any) -> None:
        self.kernel = self.add_weight((input_shape[-1], self.units), name="kernel")
        self.recurrent = self.add_weight((self.units, self.units), name="recurrent")

    def call(self, x: Any, states: Any, training: bool = False) -> Any:
        share = x @ self.kernel
        after = gt.tanh(0.5 * states[0] + (share * 2.0 if training else share))
        return after @ self.recurrent, [after]

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "units": self.units}


class Plain:
    """No layer, but called as one."""

    state_size = 4

    def __call__(self, x: Any, states: Any) -> Any:
        return x, [x]


class MyLSTM(L.LSTM):
    pass


class MyGRU(L.GRU):
    """Recurrent, with an output that is not its state."""

    def call(
        self, x: Any, initial_state: Any = None, mask: Any = None, training: bool = False
    ) -> Any:
        return 2.0 * super().call(x, initial_state, mask, training)


class MyRNN(L.RNN):
    pass


class MyCell(L.LSTMCell):
    pass


class Squared(L.SimpleRNNCell):
    """Computes something else than the class that it extends."""

    def call(self, x: Any, states: Any, training: bool = False) -> Any:
        y, after = super().call(x, states, training)
        return y**2, after


class MyStack(L.StackedRNNCells):
    pass


class MyDense(L.Dense):
    pass


class MySequential(L.Sequential):
    pass


class MySteps(L.TimeDistributed):
    pass


class MyBoth(L.Bidirectional):
    pass


class Summed(L.Layer):
    """Runs over steps without being an RNN; says so in its class and its properties."""

    return_sequences = return_state = False

    def __init__(self, backwards: bool = False, **options: Any) -> None:
        super().__init__(**options)
        self.backwards = backwards

    def build(self, input_shape: Any) -> None:
        self.factor = self.add_weight((input_shape[-1],), "ones", "factor")

    @property
    def go_backwards(self) -> bool:
        return self.backwards

    def call(self, x: Any, initial_state: Any = None, mask: Any = None) -> Any:
        return gt.sum(x[:, ::-1] if self.backwards else x, axis=1) * self.factor


def graph(*parts: Any) -> Any:
    x = start = gt.Input((None, 4))
    for part in parts:
        x = part(x)
    return gt.Model(start, x)


MODELS: dict[str, Callable[[], Any]] = {
    "RNN": lambda: L.RNN(Leaky()),
    "RNN, sequences": lambda: L.RNN(Leaky(), return_sequences=True, go_backwards=True),
    "RNN on top": lambda: L.RNN([L.LSTMCell(2), Leaky()]),
    "RNN below": lambda: L.RNN([Leaky(), L.GRUCell(2)]),
    "Bidirectional": lambda: L.Bidirectional(L.RNN(Leaky(), return_sequences=True)),
    "TimeDistributed": lambda: L.TimeDistributed(Scale()),
    "a function at each step": lambda: L.Sequential([Scale(), L.TimeDistributed(gt.sin)]),
    "Sequential": lambda: L.Sequential([Scale(), L.RNN(Leaky(2)), L.Dense(2)]),
    "Model": lambda: graph(Scale(), L.Bidirectional(L.RNN(Leaky(2)), merge_mode="sum")),
    "a subclass of LSTM both ways": lambda: L.Bidirectional(MyLSTM(3, return_sequences=True)),
    "a subclass of GRU both ways": lambda: L.Bidirectional(MyGRU(3), merge_mode="ave"),
    "a subclass of LSTM backwards": lambda: L.Bidirectional(
        L.LSTM(3), backward_layer=MyLSTM(3, go_backwards=True)
    ),
    "a subclass of RNN both ways": lambda: L.Bidirectional(MyRNN(L.GRUCell(3))),
    "a subclass of both, both ways": lambda: MyBoth(MyRNN(MyCell(3))),
    "no RNN both ways": lambda: L.Bidirectional(Summed(), backward_layer=Summed(True)),
    "both ways at each step": lambda: L.TimeDistributed(
        L.Sequential([L.Reshape((2, 2)), L.Bidirectional(MyLSTM(3))])
    ),
    "a subclass of LSTMCell": lambda: L.RNN(MyCell(3), return_sequences=True),
    "a subclass of a cell with its own call": lambda: L.RNN(Squared(3)),
    "subclasses of cells, stacked": lambda: L.RNN([MyCell(3), Squared(2), L.GRUCell(2)]),
    "a subclass of stacked cells": lambda: L.RNN(MyStack([MyCell(3), L.GRUCell(2)])),
    "stacked both ways": lambda: L.Bidirectional(L.RNN([Squared(3), L.LSTMCell(2)])),
    "subclasses of Dense and Sequential": lambda: L.TimeDistributed(MySequential([MyDense(3)])),
    "a subclass of TimeDistributed": lambda: MySteps(MyDense(3)),
    "a subclass in a row": lambda: L.Sequential(
        [MyDense(4), L.Bidirectional(MyLSTM(3)), MyDense(2)]
    ),
    "a subclass in a graph": lambda: graph(MyDense(4), L.Bidirectional(MyGRU(3)), MyDense(2)),
    "in a row in a graph": lambda: graph(L.Sequential([L.TimeDistributed(Scale()), L.GRU(2)])),
}


def slopes(model: Any, training: bool) -> list[Any]:
    """Return gradients, and gradients of a sum of their squares."""
    variables = list(model.trainable_variables)
    with gt.GradientTape() as outer:
        with gt.GradientTape() as inner:
            loss = gt.sum(gt.sin(model(X, training=training)))
        first = inner.gradient(loss, variables)
        squares = sum(gt.sum(g**2) for g in first)
    second = outer.gradient(squares, variables, unconnected_gradients="zero")
    return [g.numpy() for g in (*first, *second)]


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_what_a_file_brings_back_computes_the_same(
    name: str, training: bool, tmp_path: Path
) -> None:
    gt.random.set_seed(0)
    model = MODELS[name]()
    y = model(X, training=training).numpy()
    gt.save(model, tmp_path / "a.h5")
    again = gt.load(tmp_path / "a.h5")
    np.testing.assert_allclose(again(X, training=training).numpy(), y, rtol=1e-5, atol=1e-6)
    for batch in (X[:0], X[:1]):
        expected = model(batch, training=training).numpy()
        found = again(batch, training=training).numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    for one, two in zip(slopes(model, training), slopes(again, training), strict=True):
        np.testing.assert_allclose(two, one, rtol=1e-4, atol=1e-5)
    gt.save(again, tmp_path / "b.h5")
    twice = gt.load(tmp_path / "b.h5")
    np.testing.assert_allclose(twice(X, training=training).numpy(), y, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("make", [L.RNN, lambda cell: L.RNN([cell, L.GRUCell(2)])])
def test_a_cell_that_would_hide_its_variables_is_refused(make: Any) -> None:
    with pytest.raises(TypeError, match=r"a cell must be a layer with state_size, got .*Plain"):
        make(Plain())


def test_get_config_makes_a_layer_of_ones_own_again() -> None:
    cell = Leaky(5, name="mine")
    assert cell.get_config() == {"name": "mine", "dtype": None, "units": 5}
    assert Leaky.from_config(cell.get_config()).units == 5


@pytest.mark.parametrize(("make", "plain"), [(Squared, L.SimpleRNNCell), (MyCell, L.LSTMCell)])
@pytest.mark.parametrize("stacked", [False, True])
def test_layers_call_a_cell_that_overrides_call(make: Any, plain: Any, stacked: bool) -> None:
    def layer(kind: Any) -> Any:
        gt.random.set_seed(0)
        cell = kind(3, kernel_initializer="ones", recurrent_initializer="zeros")
        return L.RNN([cell] if stacked else cell)

    expected = layer(plain)(X).numpy()
    expected = expected**2 if make is Squared else expected
    np.testing.assert_allclose(layer(make)(X).numpy(), expected, rtol=1e-5)


def test_a_subclass_of_a_cell_drops_the_same_at_every_step() -> None:
    cell = MyCell(3, dropout=0.5, seed=1)
    ones = gt.ones((2, 5, 4))
    plain = L.LSTMCell(3, dropout=0.5, seed=1)
    for layer in (L.RNN(cell), L.RNN(plain)):
        layer(ones)
    for to, value in zip(cell.variables, plain.variables, strict=True):
        to.assign(value)
    one, two = (L.RNN(x, return_sequences=True)(ones, training=True) for x in (cell, plain))
    np.testing.assert_array_equal(one.numpy(), two.numpy())


WORDS = np.array([[3, 1, 2, 0, 0], [1, 2, 3, 1, 2]])


@pytest.mark.parametrize("sequences", [False, True])
@pytest.mark.parametrize("make", [L.Bidirectional, MyBoth])
def test_padding_does_not_count_in_a_loaded_subclass(
    make: Any, sequences: bool, tmp_path: Path
) -> None:
    both = make(MyLSTM(3, return_sequences=sequences))
    model = L.Sequential(
        [L.Embedding(5, 4, mask_zero=True), both, L.LSTM(2)][: 3 if sequences else 2]
    )
    y = model(WORDS).numpy()
    gt.save(model, tmp_path / "a.h5")
    again = gt.load(tmp_path / "a.h5")
    np.testing.assert_allclose(again(WORDS).numpy(), y, rtol=1e-5)
    np.testing.assert_allclose(again(WORDS[:1]).numpy(), y[:1], rtol=1e-5)
    gt.save(again, tmp_path / "b.h5")
    np.testing.assert_allclose(gt.load(tmp_path / "b.h5")(WORDS).numpy(), y, rtol=1e-5)
