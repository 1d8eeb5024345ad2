"""A layer in another one is the layer: losses, masks, ``training``, freezing and files."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape import layers as L
from gradtape import training

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(2, 4, 5, 3)).astype("float32")
MASK = np.array([[1, 1, 0, 0], [1, 1, 1, 0]], bool)
X[~MASK] = 0


def total(layer: Any) -> float:
    return sum(float(loss) for loss in layer.losses)


class Squares(L.Layer):
    """Adds a sum over its inputs to the loss."""

    def call(self, x: Any) -> Any:
        self.add_loss(gt.sum(x**2))
        return x


# -- losses ----------------------------------------------------------------------------------------


def _dense(**settings: Any) -> Any:
    return L.Dense(2, kernel_initializer="ones", activity_regularizer="l2", **settings)


@pytest.mark.parametrize(
    "make",
    [
        _dense,
        lambda: L.Sequential([L.Dense(2, kernel_initializer="ones"), L.Identity(), _dense()]),
        lambda: L.Sequential([L.ActivityRegularization(l1=0.5), L.Activation("tanh")]),
        lambda: L.TimeDistributed(_dense()),
        lambda: Squares(),
    ],
    ids=["layer", "model", "own class", "twice", "add_loss"],
)
def test_steps_are_no_examples(make: Callable[[], Any]) -> None:
    wrapped, layer = L.TimeDistributed(make()), make()
    wrapped(X)
    expected = 0.0
    for t in range(X.shape[1]):
        layer(X[:, t])
        expected += total(layer)
    assert total(wrapped) == pytest.approx(expected, rel=1e-5)
    open_sizes = [gt.TensorSpec([None, None, *X.shape[2:]])]
    traced = gt.function(lambda x: (wrapped(x), wrapped.losses), input_signature=open_sizes)
    assert sum(map(float, traced(X)[1])) == pytest.approx(expected, rel=1e-5)
    for empty in (X[:0], X[:, :0]):
        assert sum(map(float, traced(empty)[1])) == 0.0


class Cell(L.Layer):
    """A cell whose inner layer and whose own call add to the loss."""

    state_size = 2

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.inner = _dense(activation="tanh")

    def call(self, x: Any, states: Any) -> Any:
        y = self.inner(x) + 0.5 * states[0]
        self.add_loss(gt.sum(y**2))
        return y, [y]


@pytest.mark.parametrize("settings", [{}, {"return_sequences": True}, {"unroll": True}])
@pytest.mark.parametrize("several", [1, 2])
def test_what_a_cell_adds_counts_at_each_step(settings: Any, several: int, tmp_path: Path) -> None:
    x, cells = X[:, :, 0], [Cell(activity_regularizer="l1") for _ in range(several)]
    layer = L.RNN(cells if several > 1 else cells[0], **settings)
    model = L.Sequential([layer, L.Flatten(), L.Dense(1)])
    model(x)
    expected, states = 0.0, [gt.zeros((2, 2))] * several
    for t in range(4):
        y: Any = x[:, t]
        for i, cell in enumerate(cells):
            y, (states[i],) = cell(y, [states[i]])
            expected += total(cell)
    layer(x)
    assert total(layer) == pytest.approx(expected, rel=1e-5)
    data = (x, np.ones((2, 1), "float32"))
    found = [training.evaluate(model, data, loss="mse", compile=c)["loss"] for c in (False, True)]
    gt.save(model, tmp_path / "m.h5")
    found.append(training.evaluate(gt.load(tmp_path / "m.h5"), data, loss="mse")["loss"])
    assert found[1:] == pytest.approx([found[0]] * 2, rel=1e-6)


def test_both_directions_add_their_losses() -> None:
    forward, backward = L.LSTM(2, activity_regularizer="l2"), L.LSTM(2, go_backwards=True)
    both = L.Bidirectional(forward, backward_layer=backward, activity_regularizer="l1")
    y = both(X[:, :, 0])
    alone = np.sum(forward(X[:, :, 0]) ** 2) * 0.01 / 2
    assert sorted(map(float, both.losses)) == pytest.approx(
        sorted([float(alone), float(np.sum(np.abs(y))) * 0.01 / 2]), rel=1e-5
    )


# -- masks -----------------------------------------------------------------------------------------


def _functional() -> Any:
    x = gt.Input((5, 3))
    return gt.Model(x, L.BatchNorm()(L.Conv1D(2, 2, kernel_initializer="ones")(x)))


@pytest.mark.parametrize(
    "make",
    [
        L.BatchNorm,
        lambda: L.Sequential([L.Conv1D(2, 2), L.BatchNorm(), L.Flatten(), L.BatchNorm()]),
        lambda: L.Sequential([L.Sequential([L.Conv1D(2, 2)]), L.BatchNorm()]),
        lambda: L.Sequential([L.LSTM(2, return_sequences=True), L.BatchNorm()]),
        lambda: L.Sequential([L.TimeDistributed(L.BatchNorm()), L.GlobalAveragePooling1D()]),
        _functional,
    ],
    ids=["layer", "model", "nested", "recurrent", "twice", "functional"],
)
def test_statistics_leave_out_padded_steps(make: Callable[[], Any], tmp_path: Path) -> None:
    inner, alone = make(), make()
    wrapped = L.TimeDistributed(inner)
    wrapped(X, mask=MASK), alone(X[MASK])
    alone.set_weights(inner.get_weights())
    with warnings.catch_warnings(action="error"):
        wrapped(X, mask=MASK, training=True)
    alone(X[MASK], training=True)
    for ours, theirs in zip(inner.variables, alone.variables, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)


def test_a_mask_of_a_model_reaches_wrapped_layers(tmp_path: Path) -> None:
    norm = L.BatchNorm(momentum=0.0)
    series = np.full((2, 4, 1), 5.0, "float32")
    series[:, 2:] = 0.0
    model = L.Sequential([L.Masking(0.0), L.TimeDistributed(norm)])
    model(series, training=True)
    assert norm.moving_mean.tolist() == [5.0]
    gt.save(model, tmp_path / "m.h5")
    loaded = gt.load(tmp_path / "m.h5")
    loaded(series, training=True)
    assert loaded.layers[1].layer.moving_mean.tolist() == [5.0]


# -- settings of every layer -----------------------------------------------------------------------

ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "Activation": ("tanh",),
    "Bidirectional": (L.LSTM(2),),
    "Concatenate": (),
    "Cropping1D": (1,),
    "Dropout": (0.5,),
    "Lambda": (lambda x: 2 * x,),
    "MaxPooling1D": (2,),
    "Permute": ((2, 1),),
    "RNN": (L.GRUCell(2),),
    "Rescaling": (0.5,),
    "Reshape": ((-1,),),
    "TimeDistributed": (L.Dense(2),),
    "UpSampling1D": (2,),
    "ZeroPadding1D": (1,),
    **dict.fromkeys(["Flatten", "Identity", "Masking", "ReLU", "Softmax", "UnitNormalization"], ()),
}


@pytest.mark.filterwarnings("ignore:save")
@pytest.mark.parametrize("name", ARGUMENTS)
def test_layers_take_what_their_base_class_takes(name: str, tmp_path: Path) -> None:
    settings: Any = {"activity_regularizer": L.regularizers.L1(0.5), "trainable": False}
    layer = getattr(L, name)(*ARGUMENTS[name], **settings)
    x: Any = X[:, :, 0]
    x = [x, x] if name == "Concatenate" else x
    assert not layer.trainable
    y = layer(x)
    assert total(layer) == pytest.approx(0.5 * float(np.sum(np.abs(y))) / 2, rel=1e-5)
    assert layer.trainable_variables == ()
    gt.save(layer, tmp_path / "layer.h5")
    loaded = gt.load(tmp_path / "layer.h5")
    loaded(x)
    assert total(loaded) == pytest.approx(total(layer), rel=1e-5)
    with pytest.raises(TypeError, match=rf"{name} takes no argument 'kernel_norm'"):
        getattr(L, name)(*ARGUMENTS[name], kernel_norm=1)


def test_the_copy_for_the_other_direction_is_frozen_too() -> None:
    layer = L.Bidirectional(L.LSTM(2, trainable=False))
    layer(X[:, :, 0])
    assert not layer.backward_layer.trainable
    assert layer.trainable_variables == ()


@pytest.mark.parametrize("size", [2, (2,)])
def test_a_cell_keeps_sizes_that_its_class_defines(size: Any, tmp_path: Path) -> None:
    class Plain(L.Layer):
        state_size = size

        def build(self, shape: Any) -> None:
            self.w = self.add_weight((shape[-1], 2))

        def call(self, x: Any, states: Any) -> Any:
            y = gt.tanh(x @ self.w) + states[0]
            return y, [y]

    model = L.Sequential([L.Bidirectional(L.RNN(Plain()))])
    y = model(X[:, :, 0])
    gt.save(model, tmp_path / "m.h5")
    np.testing.assert_allclose(gt.load(tmp_path / "m.h5")(X[:, :, 0]), y, rtol=1e-6)


def test_initial_states_that_are_code_are_named(tmp_path: Path) -> None:
    class Ones(Cell):
        def initial_states(self, x: Any) -> Any:
            return [gt.ones((x.shape[0], 2))]

    model = L.Sequential([L.RNN(Ones())])
    model(X[:, :, 0])
    with pytest.warns(UserWarning, match=r"cell.initial_states \(the code of"):
        gt.save(model, tmp_path / "m.h5")
