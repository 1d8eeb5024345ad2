"""fit runs its steps as graphs where that pays: with the same results, and never without a word."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.layers import (
    LSTM,
    BatchNorm,
    Dense,
    Dropout,
    Lambda,
    Layer,
    Sequential,
    regularizers,
)
from gradtape.training import SGD, Adam, Callback, fit, losses, metrics

RNG = np.random.default_rng(3)
X = RNG.normal(size=(120, 6)).astype("float32")
LABELS = (X @ RNG.normal(size=(6, 3))).argmax(1)


class Counting(Layer):
    """Counts how often Python calls it while training."""

    calls: list[int]

    def call(self, x: Any, training: bool = False) -> Any:
        if training:
            COUNT.append(1)
        return x


COUNT: list[int] = []


@pytest.fixture(autouse=True)
def _from_zero() -> None:
    COUNT.clear()


def net(*extra: Any) -> Sequential:
    gt.random.set_seed(0)
    return Sequential([Dense(16, activation="relu"), BatchNorm(), Dropout(0.3), *extra, Dense(3)])


def run(model: Any, data: Any = (X, LABELS), **options: Any) -> dict[str, list[float]]:
    return fit(model, data, **{"verbose": False, "seed": 0, **options}).history


def state(model: Any) -> list[Any]:
    return [v.numpy().copy() for v in model.variables]


@pytest.mark.parametrize("optimizer", [lambda: SGD(0.1, 0.9), lambda: Adam(0.01, clipnorm=1.0)])
def test_compiled_steps_train_as_python_does(optimizer: Any) -> None:
    found = {}
    for compile in (True, False):
        model = net(Counting())
        history = run(
            model,
            optimizer=optimizer(),
            epochs=3,
            compile=compile,
            validation_split=0.2,
            metrics=["accuracy", metrics.SparseCategoricalCrossentropy()],
        )
        found[compile] = history, state(model), len(COUNT)
        COUNT.clear()
    for name, values in found[False][0].items():
        np.testing.assert_allclose(found[True][0][name], values, rtol=1e-4, err_msg=name)
    for a, b in zip(found[True][1], found[False][1], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)
    assert found[False][2] == 9
    # 96 examples are batches of one size: a trace, and once beside it in Python
    assert found[True][2] == 2


@pytest.mark.parametrize(
    ("epochs", "calls"),
    [(10, 40), (40, 2 + 40)],
    ids=["too few to be worth a trace", "whole batches, and not the last ones"],
)
def test_by_default_shapes_that_come_often_are_compiled(epochs: int, calls: int) -> None:
    run(net(Counting()), epochs=epochs)
    assert len(COUNT) == calls


def test_batches_of_an_iterable_are_compiled_when_they_came_often() -> None:
    batches = [(X[i : i + 40], LABELS[i : i + 40]) for i in (0, 40, 80)]
    run(net(Counting()), batches, epochs=20)
    assert len(COUNT) == 32 + 2


class Noisy(Layer):
    def __init__(self) -> None:
        super().__init__()
        self.random = np.random.default_rng(0)

    def call(self, x: Any, training: bool = False) -> Any:
        return x + self.random.normal(size=6).astype("float32")


class Numbered(Layer):
    def __init__(self) -> None:
        super().__init__()
        self.step = 0

    def call(self, x: Any, training: bool = False) -> Any:
        self.step += 1
        return x / self.step


class Reading(Layer):
    def call(self, x: Any, training: bool = False) -> Any:
        return x if float(gt.mean(x)) < 1e9 else -x


REFUSED = [
    (Noisy, "random numbers of NumPy"),
    (Numbered, "it changes 'step' of 'numbered'"),
    (Reading, "a tensor's value is not known while"),
]


@pytest.mark.parametrize(("layer", "reason"), REFUSED)
def test_what_a_trace_would_do_otherwise_stays_in_python_and_is_told_once(
    layer: Any, reason: str
) -> None:
    def history(compile: Any) -> Any:
        return run(Sequential([layer(), Dense(3)]), epochs=40, compile=compile)

    gt.random.set_seed(0)
    with pytest.warns(UserWarning, match=f"training step cannot be compiled: .*{reason}") as told:
        found = history("auto")
    assert len(told) == 1
    assert "set compile=False to do so silently" in str(told[0].message)
    gt.random.set_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        alike = history(False)
    if layer is Reading:
        assert found == alike
    with pytest.raises(gt.errors.TraceError, match=f"{reason}.*compile='auto' runs it in Python"):
        history(True)


def test_a_schedule_of_python_numbers_stays_in_python() -> None:
    with pytest.warns(UserWarning, match="training step cannot be compiled"):
        run(net(), epochs=40, optimizer=SGD(lambda step: 0.1 if step < 50 else 0.01))


class Scaled(Layer):
    factor = 1.0

    def __init__(self) -> None:
        super().__init__()
        self.factor = 1.0

    def call(self, x: Any) -> Any:
        return x * self.factor


@pytest.mark.parametrize("within", [True, False])
def test_what_a_callback_changes_in_a_model_is_seen(within: bool) -> None:
    def trained(compile: bool) -> Any:
        model = Sequential([Scaled(), Dense(3, kernel_initializer="ones")])

        def change(*_: Any) -> None:
            model.layers[0].factor *= 0.5

        event = "on_train_batch_end" if within else "on_epoch_end"
        callback = gt.training.LambdaCallback(**{event: change})
        run(model, epochs=3, optimizer=SGD(0.1), compile=compile, callbacks=[callback])
        return state(model)

    for a, b in zip(trained(True), trained(False), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_what_changes_in_each_epoch_is_not_traced_each_time() -> None:
    model = Sequential([Scaled(), Dense(3)])

    def change(epoch: int, logs: Any) -> None:
        model.layers[0].factor *= 0.99

    with pytest.warns(UserWarning, match="'factor' of 'scaled' changes too often"):
        run(model, epochs=80, callbacks=[change])


def test_freezing_in_a_run_and_a_new_learning_rate_are_seen() -> None:
    def trained(compile: bool) -> Any:
        model, optimizer = net(), SGD(0.1)

        def change(epoch: int, logs: Any) -> None:
            model.layers[0].trainable = False
            optimizer.learning_rate = 0.01

        run(model, epochs=3, optimizer=optimizer, compile=compile, callbacks=[change])
        return state(model)

    for a, b in zip(trained(True), trained(False), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)


def test_errors_in_compiled_epochs_restore_the_model() -> None:
    x = X.copy()
    x[100] = np.nan
    model = net()
    run(model, epochs=1)
    before = state(model)
    with pytest.raises(FloatingPointError, match="In this batch x holds NaN or infinity"):
        run(model, (x, LABELS), shuffle=False, compile=True)
    for a, b in zip(before, state(model), strict=True):
        np.testing.assert_array_equal(a, b)


def test_labels_are_looked_at_in_compiled_steps_too() -> None:
    wrong = LABELS.astype("float32")
    wrong[110] = 0.5
    with pytest.raises(ValueError, match="must be integers"):
        run(net(), (X, wrong), shuffle=False, compile=True)


def test_a_loss_object_of_ones_own_is_compiled() -> None:
    class Fourth(losses.Loss):
        def call(self, y_true: Any, y_pred: Any) -> Any:
            return gt.mean((y_true - y_pred) ** 4, axis=-1)

    found = [
        run(net(), (X, X[:, :3]), loss=Fourth(), compile=compile, epochs=2)["loss"]
        for compile in (True, False)
    ]
    np.testing.assert_allclose(*found, rtol=1e-5)


@pytest.mark.parametrize(("unroll", "in_python"), [(False, False), (True, True)])
def test_a_recurrent_model_is_compiled_for_fewer_steps(unroll: bool, in_python: bool) -> None:
    x = np.repeat(X[:, None], 5, axis=1)
    model = Sequential([LSTM(4, unroll=unroll), Counting(), Dense(3)])
    run(model, (x, LABELS), batch_size=6, epochs=1)
    assert (len(COUNT) >= 20) is in_python


class Weighted:
    """A loss with a weight, as an object, a bound method and in closures."""

    def __init__(self) -> None:
        self.weight = 1.0

    def __call__(self, y: Any, predicted: Any) -> Any:
        return self.weight * losses.mean_squared_error(y, predicted)


class WeightedByClass:
    weight, calls = 1.0, 0

    def __call__(self, y: Any, predicted: Any) -> Any:
        return self.weight * losses.mean_squared_error(y, predicted)


class WeightedLoss(losses.Loss):
    def __init__(self) -> None:
        super().__init__()
        self.weight = 1.0

    def call(self, y: Any, predicted: Any) -> Any:
        return self.weight * losses.mean_squared_error(y, predicted)


@dataclass(slots=True)
class Settings:
    weight: float = 1.0


class Configured(Layer):
    """Reads its factor from an object."""

    def __init__(self, settings: Any) -> None:
        super().__init__()
        self.settings = settings

    def call(self, x: Any) -> Any:
        return x * self.settings.weight


class Sloped(losses.Huber):
    """Its settings are read by the class above it."""


def of_settings() -> tuple[dict[str, Any], Any]:
    loss = Sloped(delta=0.1)
    return {"loss": loss}, lambda: loss.settings.update(delta=2.0)


class OfClass(Layer):
    weight = 1.0

    def call(self, x: Any) -> Any:
        return x * self.weight


class Annealing(Callback):
    """Holds a number that a layer reads, and others that change in each epoch."""

    def __init__(self) -> None:
        self.weight, self.epochs = 1.0, 0

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.epochs += 1


FACTOR = 1.0


def with_factor(y: Any, predicted: Any) -> Any:
    return FACTOR * losses.mean_squared_error(y, predicted)


def of_global() -> tuple[dict[str, Any], Any]:
    globals()["FACTOR"] = 1.0
    return {"loss": with_factor}, lambda: globals().update(FACTOR=5.0)


def of_closure() -> tuple[dict[str, Any], Any]:
    weight = 1.0

    def loss(y: Any, predicted: Any) -> Any:
        return weight * losses.mean_squared_error(y, predicted)

    def change() -> None:
        nonlocal weight
        weight = 5.0

    return {"loss": loss}, change


def of_dictionary() -> tuple[dict[str, Any], Any]:
    held = {"weight": 1.0}

    def loss(y: Any, predicted: Any) -> Any:
        return held["weight"] * losses.mean_squared_error(y, predicted)

    return {"loss": loss}, lambda: held.update(weight=5.0)


def of_object(make: Any, use: Any) -> Any:
    def case() -> tuple[dict[str, Any], Any]:
        made = make()
        return use(made), lambda: setattr(made, "weight", 5.0)

    return case


def of_class() -> tuple[dict[str, Any], Any]:
    OfClass.weight = 1.0
    return {"layers": [OfClass()]}, lambda: setattr(OfClass, "weight", 5.0)


def of_regularizer() -> tuple[dict[str, Any], Any]:
    rule = regularizers.L2(0.1)
    return {"layers": [Dense(4, kernel_regularizer=rule)]}, lambda: setattr(rule, "l2", 5.0)


READING = {
    "loss": of_object(Weighted, lambda made: {"loss": made}),
    "loss with a class attribute": of_object(WeightedByClass, lambda made: {"loss": made}),
    "subclass of Loss": of_object(WeightedLoss, lambda made: {"loss": made}),
    "bound method": of_object(Weighted, lambda made: {"loss": made.__call__}),
    "partial": of_object(Weighted, lambda made: {"loss": partial(lambda f, y, p: f(y, p), made)}),
    "metric": of_object(Weighted, lambda made: {"metrics": [made.__call__]}),
    "schedule": of_object(Settings, lambda made: {"optimizer": SGD(lambda n: 0.01 * made.weight)}),
    "namespace": of_object(
        lambda: SimpleNamespace(weight=1.0), lambda x: {"layers": [Configured(x)]}
    ),
    "callback": of_object(Annealing, lambda made: {"layers": [Configured(made)]}),
    "settings": of_object(Settings, lambda made: {"layers": [Configured(made)]}),
    "Lambda": of_object(Settings, lambda s: {"layers": [Lambda(lambda x: x * s.weight)]}),
    "closure": of_closure,
    "global variable": of_global,
    "dictionary": of_dictionary,
    "class attribute": of_class,
    "regularizer": of_regularizer,
    "settings of a loss": of_settings,
}


@pytest.mark.parametrize("what", READING)
def test_what_a_callback_changes_elsewhere_is_seen(what: str) -> None:
    found = []
    for compiled in (True, False):
        options, change = READING[what]()
        model = net(*options.pop("layers", ()))
        options = {"loss": "mse", "optimizer": SGD(0.01), "epochs": 3, **options}
        callbacks = [lambda epoch, values, change=change: epoch == 0 and change()]
        given = X[:, :3] + 1.0
        found.append(run(model, (X, given), compile=compiled, callbacks=callbacks, **options))
    assert found[0].keys() == found[1].keys()
    for name, values in found[1].items():
        np.testing.assert_allclose(found[0][name], values, rtol=1e-3, err_msg=name)


class CountingInPython(metrics.Metric):
    """The mean error, with a total in a variable and a count in Python."""

    def __init__(self) -> None:
        super().__init__("error")
        self.sum, self.seen = gt.Variable(0.0, trainable=False), 0

    def update_state(self, y: Any, predicted: Any, sample_weight: Any = None) -> None:
        self.sum.assign_add(gt.sum(gt.abs(y - predicted)))
        self.seen += y.shape[0]

    def result(self) -> Any:
        return self.sum / max(self.seen, 1)

    def reset_state(self) -> None:
        self.sum.assign(0.0)
        self.seen = 0


def test_a_metric_that_counts_in_python_is_right() -> None:
    data, options = (X, X[:, :3]), {"loss": "mse", "batch_size": 4, "epochs": 3}
    with pytest.warns(UserWarning, match="it changes 'seen' of 'error'"):
        found = run(net(), data, metrics=[CountingInPython()], **options)
    assert found == run(net(), data, metrics=[CountingInPython()], compile=False, **options)


class Counted(WeightedByClass):
    """A loss whose weight grows with its calls."""

    def __call__(self, y: Any, predicted: Any) -> Any:
        self.calls += 1
        return (1.0 + 0.01 * self.calls) * super().__call__(y, predicted)


def test_a_refused_step_counts_its_batch_once() -> None:
    data, options = (X, X[:, :3]), {"batch_size": 4, "epochs": 3}
    with pytest.warns(UserWarning, match="it changes 'calls' of 'Counted'"):
        found = run(net(), data, loss=Counted(), **options)
    assert found == run(net(), data, loss=Counted(), compile=False, **options)


class Logging:
    """A loss that keeps what it computed, as many programs do."""

    def __init__(self) -> None:
        self.seen: list[Any] = []
        self.values: dict[str, list[Any]] = {"loss": []}

    def __call__(self, y: Any, predicted: Any) -> Any:
        loss = losses.mean_squared_error(y, predicted)
        self.seen.append(loss)
        self.values["loss"].append(len(self.seen))
        return loss


@pytest.mark.parametrize("measured", [[], [metrics.AUC()], [metrics.BinaryIoU([1])]])
def test_logs_and_states_created_late_do_not_keep_steps_in_python(measured: Any) -> None:
    yes = (LABELS == 1).astype("float32")[:, None]
    loss = Logging()
    gt.random.set_seed(0)
    model = Sequential([Dense(8), Dense(1, activation="sigmoid")])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(model, (X, yes), loss=loss, metrics=measured, batch_size=4, epochs=3)
    assert len(loss.seen) < 10
