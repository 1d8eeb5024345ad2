"""Typical mistakes in arguments of ``fit`` get an error that says what to write."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape import layers, training

X, Y = np.ones((8, 2), "float32"), np.ones((8, 1), "float32")


def fit(model: Any = None, **options: Any) -> Any:
    model = layers.Sequential([layers.Dense(1)]) if model is None else model
    settings = {"loss": "mse", "verbose": 0, "validation_data": (X, Y), **options}
    return training.fit(model, (X, Y), **settings)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: training.EarlyStopping("val_los"), "did you mean 'val_loss'"),
        (lambda: training.EarlyStopping("val_los", mode="min"), "did you mean 'val_loss'"),
        (lambda: training.ReduceLROnPlateau("los", mode="min"), "did you mean 'loss'"),
        (lambda: training.EarlyStopping("auc"), "no 'auc'; there are loss, val_loss"),
        (lambda: training.EarlyStopping, r"the class EarlyStopping; pass an object"),
        (lambda: type("Mine", (training.Callback,), {}), "the class Mine; pass an object"),
    ],
)
def test_callbacks(make: Any, words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        fit(callbacks=[make()])


def test_a_class_with_static_methods_is_a_callback() -> None:
    told: list[int] = []

    class Events:
        @staticmethod
        def on_epoch_end(epoch: int, logs: Any) -> None:
            told.append(epoch)

    fit(callbacks=[Events])
    assert told == [0]


@pytest.mark.parametrize(
    "name", ["m-{loss:d}.h5", "m-{loss.h5", "m-{}.h5", "m-{batch}.h5", "m-{epoch:.2d}.h5"]
)
def test_names_of_files_are_checked_before_the_first_epoch(name: str, tmp_path: Path) -> None:
    epochs: list[int] = []
    checkpoint = training.ModelCheckpoint(tmp_path / name)
    begun = training.LambdaCallback(on_epoch_begin=epochs.append)
    with pytest.raises(ValueError, match=r"ModelCheckpoint: .* cannot be filled in"):
        fit(callbacks=[checkpoint, begun])
    assert not epochs


def test_names_with_values_of_other_callbacks_are_taken(tmp_path: Path) -> None:
    def add(epoch: int, logs: dict[str, float]) -> None:
        logs["own"] = 2.0

    name = tmp_path / "m-{epoch:02d}-{own:.1f}-{val_loss:.1e}.h5"
    fit(callbacks=[add, training.ModelCheckpoint(name)])
    assert [path.name[:9] for path in tmp_path.iterdir()] == ["m-01-2.0-"]


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"optimizer": training.SGD}, "SGD"),
        ({"loss": training.losses.MeanSquaredError}, "MeanSquaredError"),
        ({"metrics": [training.metrics.AUC]}, "AUC"),
        ({"weighted_metrics": [training.metrics.AUC]}, "AUC"),
    ],
)
def test_classes_instead_of_objects(options: Any, name: str) -> None:
    with pytest.raises(TypeError, match=f"the class {name}; pass an object"):
        fit(**options)


def test_classes_of_schedules_and_activations() -> None:
    with pytest.raises(TypeError, match="learning_rate is the class CosineDecay"):
        training.SGD(training.schedules.CosineDecay)
    with pytest.raises(TypeError, match="activation is the class ReLU"):
        layers.Dense(1, activation=layers.ReLU)
    with pytest.raises(TypeError, match="TimeDistributed: expected a layer"):
        layers.TimeDistributed(layers.Dense)


class Silent(gt.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = layers.Dense(1)

    def __call__(self, x: Any) -> Any:
        self.inner(x)


class SilentModel(gt.Model):
    def call(self, x: Any) -> Any:
        x * 2.0


@pytest.mark.parametrize("model", [Silent, SilentModel])
@pytest.mark.parametrize(
    "run",
    [
        fit,
        lambda model: training.evaluate(model, (X, Y), loss="mse"),
        lambda model: training.predict(model, X),
    ],
)
def test_a_call_without_return(model: Any, run: Any) -> None:
    with pytest.raises(TypeError, match=rf"\({model.__name__}\) returned None; end it with return"):
        run(model())


class Spare(gt.Module):
    def __init__(self, stops: bool) -> None:
        super().__init__()
        self.first, self.second, self.spare = (layers.Dense(1) for _ in range(3))
        self.spare(X)
        self.stops = stops

    def __call__(self, x: Any) -> Any:
        first = gt.stop_gradient(self.first(x)) if self.stops else self.first(x)
        second = self.second(first)
        return second + self.spare(x) if self.stops else second


@pytest.mark.parametrize(("stops", "name"), [(False, "spare"), (True, "first")])
@pytest.mark.parametrize("compile", [False, "auto"])
def test_layers_without_gradients_are_named(stops: bool, name: str, compile: Any) -> None:
    model = Spare(stops)
    with pytest.raises(ValueError, match=f"fit: .* no gradient .*'{name}/kernel'.*trainable"):
        fit(model, compile=compile)
    getattr(model, name).trainable = False
    fit(model, compile=compile)


def test_a_step_of_the_model_that_is_never_called_warns() -> None:
    class Net(gt.Model):
        def __init__(self) -> None:
            super().__init__()
            self.dense = gt.layers.Dense(1)

        def call(self, x: Any) -> Any:
            return self.dense(x)

        def train_step(self, data: Any) -> Any:
            raise AssertionError

        def test_step(self, data: Any) -> Any:
            raise AssertionError

    x = np.ones((4, 2), "float32")
    model = Net()
    with pytest.warns(UserWarning, match=r"fit: Net\.train_step is never called; write a loop"):
        gt.training.fit(model, (x, x[:, :1]), loss="mse", verbose=0)
    with pytest.warns(UserWarning, match=r"evaluate: Net\.test_step is never called"):
        gt.training.evaluate(model, (x, x[:, :1]), loss="mse")
    gt.training.predict(model, x)  # it has no predict_step


def test_a_misspelt_event_of_a_callback_warns() -> None:
    class Ends(gt.training.Callback):
        def on_epoch_ends(self, epoch: int, logs: Any) -> None:
            raise AssertionError

    x = np.ones((4, 2), "float32")
    model = gt.layers.Sequential([gt.layers.Dense(1)])
    with pytest.warns(UserWarning, match=r"Ends has on_epoch_ends, which fit never calls"):
        gt.training.fit(model, (x, x[:, :1]), loss="mse", verbose=0, callbacks=[Ends()])


def test_settings_of_an_optimizer_are_a_tuple() -> None:
    class Plain(gt.training.Optimizer):
        def settings(self, rate: Any, step: Any) -> Any:
            return rate

        def update(self, value: Any, gradient: Any, state: Any, settings: Any) -> Any:
            return value - settings * gradient, state

    w = gt.Variable(1.0)
    with pytest.raises(TypeError, match=r"Plain: settings must return a tuple of numbers"):
        Plain(0.1).apply_gradients([(gt.constant(1.0), w)])
    assert w.item() == 1.0


def test_an_optimizer_written_for_keras_is_refused() -> None:
    with pytest.raises(TypeError, match="Signs has update_step, as Keras's optimizers"):

        class Signs(gt.training.Optimizer):
            def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
                variable.assign_sub(learning_rate * gt.sign(gradient))


class Bounded(training.losses.Loss):
    def __init__(self, width: float) -> None:
        super().__init__()
        self.width = width


PROVIDED = {
    "optimizer": {"acme::steps": training.BackupAndRestore},
    "loss": {"acme::bounded": Bounded},
    "metric": {"acme::worst": training.BackupAndRestore},
    "callback": {"acme::stop": training.BackupAndRestore},
}


@pytest.mark.parametrize(
    "given",
    [
        {"optimizer": "acme::steps"},
        {"loss": "acme::bounded"},
        {"metrics": ["acme::worst"]},
        {"callbacks": ["acme::stop"]},
    ],
)
def test_a_class_of_a_plugin_that_needs_arguments_is_named(given: Any) -> None:
    plugin = SimpleNamespace(gradtape_names=gt.hookimpl(lambda: PROVIDED))
    with gt.register_plugin(plugin, "acme"):
        with pytest.raises(TypeError, match=r"'acme::\w+' is the class .*without arguments"):
            fit(**given)
        with pytest.raises(ValueError, match=r"did you mean 'acme::bounded'\? Known:"):
            fit(loss="acme::boundd")


class Forgetful(gt.training.losses.Loss):
    def call(self, y_true: Any, y_pred: Any) -> Any:
        gt.mean((y_true - y_pred) ** 2, axis=-1)


def forgetful(y_true: Any, y_pred: Any) -> None:
    gt.mean((y_true - y_pred) ** 2, axis=-1)


@pytest.mark.parametrize(
    "options",
    [
        {"loss": forgetful},
        {"loss": Forgetful()},
        {"loss": "mse", "metrics": [forgetful]},
        {"loss": "mse", "weighted_metrics": [forgetful]},
    ],
)
def test_a_loss_or_a_metric_without_return(options: Any) -> None:
    model = gt.layers.Sequential([gt.layers.Dense(1)])
    with pytest.raises(TypeError, match=r"forgetful returned None \(is a return missing\?\)"):
        gt.training.fit(model, (np.ones((8, 3)), np.ones((8, 1))), verbose=0, **options)
