"""Layers that carry states between batches: what changes them, and what does not."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import gradtape as gt
import gradtape.compat.tensorflow as tf
from gradtape import layers, training
from gradtape.core.extend import flatten

X = np.random.default_rng(0).normal(size=(8, 5, 2)).astype("float32")
Y = np.ones((8, 3), "float32")


class Leaky(layers.Layer):
    """A layer of one's own, with Keras's names of the attributes."""

    stateful = True

    def build(self, input_shape: Any) -> None:
        self.states = [self.add_weight((input_shape[0], 2), "zeros", trainable=False)]
        self.kernel = self.add_weight((2, 3))

    def call(self, x: Any) -> Any:
        self.states[0].assign(0.5 * self.states[0].value + gt.mean(x, axis=1))
        return self.states[0].value @ self.kernel

    def reset_states(self) -> None:
        self.states[0].assign(np.zeros(self.states[0].shape, "float32"))


class Held(layers.Layer):
    """A layer of one's own whose states come in some container, without ``reset_states``."""

    stateful = True

    def __init__(self, pack: Any) -> None:
        super().__init__()
        self.pack = pack

    def build(self, input_shape: Any) -> None:
        self.total = self.add_weight((), "zeros", trainable=False)
        self.kernel = self.add_weight((2, 3))
        self.states = self.pack(self.total)

    def call(self, x: Any) -> Any:
        self.total.assign(0.5 * self.total.value + gt.mean(x))
        return (gt.mean(x, axis=1) + self.total.value) @ self.kernel


KINDS: dict[str, Any] = {
    "gru": lambda: layers.GRU(3, stateful=True),
    "lstm": lambda: layers.LSTM(3, stateful=True),
    "bidirectional": lambda: layers.Bidirectional(layers.SimpleRNN(3, stateful=True), "sum"),
    "cell": lambda: layers.RNN(layers.GRUCell(3), stateful=True),
    "own": Leaky,
    "a variable": lambda: Held(lambda state: state),
    "a dictionary": lambda: Held(lambda state: {"total": state}),
    "nested": lambda: Held(lambda state: [(state,)]),
}


def model(kind: str) -> Any:
    gt.random.set_seed(0)
    return layers.Sequential([KINDS[kind]()])


def fit(net: Any, **options: Any) -> list[float]:
    settings = {"batch_size": 4, "epochs": 3, "shuffle": False, "seed": 0, "verbose": 0}
    gt.random.set_seed(0)  # an unbuilt model draws its weights now
    settings |= {"optimizer": training.SGD(0.1), "loss": "mse"}
    return training.fit(net, (X, Y), **settings | options).history["loss"]


def states(net: Any) -> list[Any]:
    held = [flatten(layer.states) for layer in gt.layers.stateful_layers(net)]
    return [x.numpy().tolist() for found in held for x in found]


@pytest.mark.parametrize("compile", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_other_calls_in_a_run_do_not_change_its_losses(kind: str, compile: bool) -> None:
    alone, net = model(kind), model(kind)

    def other(epoch: int, logs: Any) -> None:
        training.predict(net, X[4:] * 3, batch_size=4)
        training.evaluate(net, (X[:4] + 2, Y[:4]), batch_size=4, loss="mse")

    options = {"validation_data": (X[:4] + 5, Y[:4]), "callbacks": [other], "compile": compile}
    expected = fit(alone, compile=compile)
    assert fit(net, **options) == expected
    assert states(net) == states(alone)


def test_the_call_that_builds_a_model_does_not_advance_it() -> None:
    ones: Any = {"kernel_initializer": "ones", "recurrent_initializer": "ones"}
    losses = []
    for build in (False, True):
        net = layers.Sequential([layers.SimpleRNN(3, stateful=True, **ones)])
        if build:
            net(X[:4])
            net.reset_states()
        losses.append(fit(net))
    assert losses[0] == losses[1]


@pytest.mark.parametrize("kind", KINDS)
def test_evaluate_and_predict_can_be_repeated(kind: str) -> None:
    net = model(kind)
    first = training.evaluate(net, (X, Y), batch_size=4, loss="mse")
    assert training.evaluate(net, (X, Y), batch_size=4, loss="mse") == first
    one, two = (training.predict(net, X, batch_size=4).numpy() for _ in range(2))
    np.testing.assert_array_equal(one, two)
    kept = states(net)
    assert not np.any(np.concatenate([np.ravel(x) for x in kept]))
    net(X[:4])
    assert states(net) != kept
    net.reset_states()
    assert states(net) == kept


def test_a_shuffled_stateful_layer_gives_one_warning() -> None:
    with pytest.warns(UserWarning, match=r"'gru' is stateful.*shuffle=False") as told:
        fit(model("gru"), shuffle=True)
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(model("gru"))
        fit(layers.Sequential([layers.GRU(3)]), shuffle=True)
        training.fit(model("gru"), [(X[:4], Y[:4])], loss="mse", verbose=0)


def test_stateful_without_states_means_something_else() -> None:
    class Counting(layers.Dense):
        stateful = True

    class Whole(layers.Sequential):
        stateful = True

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        net = Whole([Counting(3), layers.GlobalAveragePooling1D()])
        for _ in range(2):
            fit(net, shuffle=True)
        net.reset_states()


def test_keras_models_keep_states_in_fit_and_continue_them_in_predict() -> None:
    keras = tf.keras

    class Stepping(keras.Sequential):
        def train_step(self, data: Any) -> Any:
            return super().train_step(data)

    for kind in (keras.Sequential, Stepping):
        losses = []
        for validation in (None, (X[:4] + 5, Y[:4])):
            gt.random.set_seed(0)
            net = kind([keras.layers.GRU(3, stateful=True)])
            net.compile("sgd", "mse")
            options = {"batch_size": 4, "epochs": 3, "shuffle": False, "verbose": 0}
            run = net.fit(X, Y, validation_data=validation, **options)
            losses.append(run.history["loss"])
        assert losses[0] == losses[1]
    net.reset_states()
    one, two = (net.predict(X[:4], batch_size=4, verbose=0) for _ in range(2))
    assert not np.array_equal(one, two)  # as programs that generate step by step expect
    net.reset_states()
    np.testing.assert_array_equal(net.predict(X[:4], batch_size=4, verbose=0), one)
