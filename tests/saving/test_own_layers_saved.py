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
