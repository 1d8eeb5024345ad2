"""Callbacks under Keras' names: alone with values of epochs, and in ``fit``."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape import training

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((64, 3)).astype("float32")
Y = (X @ np.array([[1.0], [-2.0], [0.5]]) + 0.1).astype("float32")


def model() -> Any:
    gt.random.set_seed(0)
    return gt.layers.Sequential([gt.layers.Dense(1)])


def run(callback: Any, values: list[float], name: str = "val_loss") -> int | None:
    """Return the epoch after which a callback stops, of epochs with these values."""
    callback.on_train_begin()
    for epoch, value in enumerate(values):
        callback.on_epoch_begin(epoch)
        if callback.on_epoch_end(epoch, {name: value}):
            return epoch
    return None


@pytest.mark.parametrize(
    ("settings", "values", "stopped", "best"),
    [
        ({}, [3, 2, 2, 1], 2, 1),
        ({"patience": 2}, [3, 2, 2.5, 2.2, 1], 3, 1),
        ({"patience": 2}, [3, 2, 2.5, 1, 1, 1, 0], 5, 3),
        ({"min_delta": 0.5}, [3, 2.8, 2.7], 1, 0),
        ({"patience": 1, "start_from_epoch": 2}, [1, 2, 3, 2.5, 2.6, 2.7], 4, 3),
        ({"patience": 1, "baseline": 1.0}, [3, 2, 1.5, 1.6], 3, 2),
        ({"patience": 2, "baseline": 1.0}, [3, 0.5, 0.7, 0.6], 3, 1),
        ({"mode": "max"}, [1, 2, 1], 2, 1),
        ({"patience": 9}, [3, 2, 1], None, 2),
    ],
)
def test_early_stopping(settings: Any, values: Any, stopped: Any, best: Any) -> None:
    callback = training.EarlyStopping(**settings)
    assert run(callback, values) == stopped == callback.stopped_epoch
    assert callback.best_epoch == best


def test_another_training_begins_anew_and_a_resumed_one_goes_on() -> None:
    stop = training.EarlyStopping(patience=3)
    run(stop, [1.0, 0.5, 0.7])
    state = stop.state_dict()
    stop.on_train_end()
    assert run(stop, [3.0, 2.0, 2.5]) is None
    assert (stop.best, stop.best_epoch) == (2.0, 1)
    resumed = training.EarlyStopping(patience=3)
    resumed.load_state_dict(state)
    assert run(resumed, [0.7, 0.8]) == 1
    assert resumed.best == 0.5
    plateau = training.ReduceLROnPlateau(patience=5)
    plateau.optimizer = training.SGD(0.1)
    run(plateau, [1.0, 2.0])
    plateau.on_train_end()
    run(plateau, [3.0])
    assert (plateau.best, plateau.wait) == (3.0, 0)


@pytest.mark.parametrize("name", ["accuracy", "val_auc", "f1_score", "mean_io_u"])
def test_what_is_to_grow_is_known_by_its_name(name: str) -> None:
    assert run(training.EarlyStopping(name), [1, 2, 3, 2], name) == 3


def test_the_best_weights_come_back() -> None:
    net = model()
    seen: list[Any] = []
    stop = training.EarlyStopping("loss", patience=2, restore_best_weights=True)

    def worse(epoch: int, logs: dict[str, float]) -> None:
        seen.append([v.numpy() for v in net.variables])
        if epoch >= 2:  # the next epochs begin far off
            net.layers[0].bias.assign([50.0])

    history = training.fit(
        net, (X, Y), loss="mse", epochs=20, verbose=False, callbacks=[stop, worse], seed=0
    )
    best = int(np.argmin(history.history["loss"]))
    assert stop.best_epoch == best
    assert len(history.epoch) == best + 3
    for v, value in zip(net.variables, seen[best]):
        np.testing.assert_array_equal(v.numpy(), value)


def test_a_value_that_is_not_there_is_told_once() -> None:
    callback = training.EarlyStopping("val_f1")
    with pytest.warns(UserWarning, match="EarlyStopping: there is no 'val_f1'.* there are loss"):
        callback.on_epoch_end(0, {"loss": 1.0})
    callback.on_epoch_end(1, {"loss": 1.0})


def test_the_learning_rate_falls_on_a_plateau() -> None:
    callback = training.ReduceLROnPlateau(factor=0.5, patience=2, cooldown=1, min_lr=0.02)
    callback.optimizer = training.SGD(0.1)
    rates = []
    callback.on_train_begin()
    for epoch, value in enumerate([3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2]):
        callback.on_epoch_end(epoch, {"val_loss": value})
        rates.append(round(float(callback.optimizer.learning_rate), 6))
    assert rates == [0.1, 0.1, 0.1, 0.05, 0.05, 0.025, 0.025, 0.02, 0.02, 0.02, 0.02]


def test_the_learning_rate_by_epoch() -> None:
    optimizer, rates = training.SGD(0.5), []
    callbacks = [
        training.LearningRateScheduler(lambda epoch, rate: rate * 0.5),
        lambda epoch, logs: rates.append(float(optimizer.learning_rate)),
    ]
    training.fit(
        model(), (X, Y), loss="mse", optimizer=optimizer, epochs=3, verbose=False,
        callbacks=callbacks,
    )  # fmt: skip
    assert rates == [0.25, 0.125, 0.0625]


@pytest.mark.parametrize(
    "make",
    [lambda: training.LearningRateScheduler(lambda epoch, rate: rate), training.ReduceLROnPlateau],
)
def test_two_schedules_are_refused(make: Any) -> None:
    optimizer = training.SGD(training.schedules.CosineDecay(0.1, 10))
    with pytest.raises(ValueError, match="the optimizer's learning rate is a schedule"):
        training.fit(
            model(), (X, Y), loss="mse", optimizer=optimizer, verbose=False, callbacks=[make()]
        )


def test_better_models_are_saved(tmp_path: Path) -> None:
    path = str(tmp_path / "{epoch:02d}.h5")
    callback = training.ModelCheckpoint(path, "loss", save_best_only=True)
    callback.model = net = model()
    net(X)
    for epoch, loss in enumerate([3.0, 4.0, 2.0]):
        callback.on_epoch_end(epoch, {"loss": loss})
    assert sorted(p.name for p in tmp_path.iterdir()) == ["01.h5", "03.h5"]
    loaded = gt.load(tmp_path / "03.h5")
    np.testing.assert_array_equal(loaded(X).numpy(), net(X).numpy())
    weights = training.ModelCheckpoint(tmp_path / "w.h5", save_weights_only=True)
    weights.model = net
    weights.on_epoch_end(0, {})
    other = model()
    other.load_weights(tmp_path / "w.h5")
    np.testing.assert_array_equal(other(X).numpy(), net(X).numpy())


def test_a_log_has_a_line_for_each_epoch(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    settings: dict[str, Any] = {"loss": "mse", "verbose": False, "validation_split": 0.25}
    history = training.fit(
        model(), (X, Y), epochs=3, callbacks=[training.CSVLogger(path)], **settings
    )
    rows = list(csv.DictReader(path.open()))
    assert [int(row["epoch"]) for row in rows] == [0, 1, 2]
    assert [float(row["val_loss"]) for row in rows] == history.history["val_loss"]
    training.fit(model(), (X, Y), callbacks=[training.CSVLogger(path, append=True)], **settings)
    assert len(path.read_text().splitlines()) == 5


def test_a_run_that_is_resumed_remembers(tmp_path: Path) -> None:
    """Three epochs and then the rest are what they are in one run."""

    def of(epochs: int, resume: bool, place: Path) -> tuple[Any, Any]:
        net, stop = model(), training.EarlyStopping("loss", 5.0, 3, restore_best_weights=True)
        training.fit(
            net, (X, Y), loss="mse", epochs=epochs, seed=0, verbose=False, callbacks=[stop],
            checkpoint=place, resume=resume,
        )  # fmt: skip
        return net, stop

    whole, one = of(9, False, tmp_path / "a.h5")
    of(2, False, tmp_path / "b.h5")
    parts, two = of(9, True, tmp_path / "b.h5")
    assert (one.stopped_epoch, one.best_epoch) == (two.stopped_epoch, two.best_epoch) == (3, 0)
    np.testing.assert_array_equal(whole(X).numpy(), parts(X).numpy())


def test_functions_for_events() -> None:
    told: list[str] = []
    callback = training.LambdaCallback(
        on_train_begin=lambda: told.append("begin"),
        on_epoch_end=lambda epoch, logs: told.append(f"{epoch}"),
        on_train_end=lambda: told.append("end"),
    )
    training.fit(model(), (X, Y), loss="mse", epochs=2, verbose=False, callbacks=[callback])
    assert told == ["begin", "0", "1", "end"]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: training.EarlyStopping(mode="up"), "mode must be 'auto', 'min' or 'max'"),
        (lambda: training.EarlyStopping(patience=-1), "patience is a number of epochs"),
        (lambda: training.ReduceLROnPlateau(factor=2.0), "factor must be between 0 and 1"),
        (lambda: training.ModelCheckpoint("a", save_freq=10), "save_freq must be 'epoch'"),
    ],
)
def test_settings_out_of_range_are_refused(make: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make()


class _Events:
    """Methods as people write them for Keras: with ``logs``, which has a default or not."""

    def __init__(self, seen: list[str]) -> None:
        self.seen = seen

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("on_train_b", "on_train_e", "on_test_", "on_epoch_")):
            if name.endswith(("train_begin", "train_end", "test_begin", "test_end")):
                return lambda logs: self.seen.append(name)
            return lambda number, logs: self.seen.append(f"{name} {number}")
        raise AttributeError(name)


def test_every_event_is_told_also_to_those_who_want_logs() -> None:
    seen: list[str] = []
    x = np.ones((4, 2), "float32")
    model = gt.layers.Sequential([gt.layers.Dense(1)])
    given = {"batch_size": 2, "validation_data": (x, x[:, :1]), "loss": "mse", "verbose": 0}
    gt.training.fit(model, (x, x[:, :1]), callbacks=[_Events(seen)], **given)
    assert seen == [
        "on_train_begin",
        "on_epoch_begin 0",
        "on_train_batch_begin 0",
        "on_train_batch_end 0",
        "on_train_batch_begin 1",
        "on_train_batch_end 1",
        "on_test_begin",
        "on_test_batch_begin 0",
        "on_test_batch_end 0",
        "on_test_batch_begin 1",
        "on_test_batch_end 1",
        "on_test_end",
        "on_epoch_end 0",
        "on_train_end",
    ]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("event", "batches"), [("on_epoch_end", 6), ("on_train_batch_end", 4), ("on_test_end", 6)]
)
def test_a_callback_stops_by_the_models_stop_training(event: str, batches: int) -> None:
    seen: list[int] = []

    class Stop(gt.training.Callback):
        def on_train_batch_end(self, batch, logs=None) -> None:
            seen.append(batch)

    def stop(self, *args) -> None:
        if event == "on_train_batch_end":
            seen.append(args[0])
        if len(seen) > 3:
            self.model.stop_training = True

    setattr(Stop, event, stop)
    x = np.ones((6, 2), "float32")
    model = gt.layers.Sequential([gt.layers.Dense(1)])
    options = {"loss": "mse", "verbose": 0, "compile": True, "validation_data": (x, x[:, :1])}
    gt.training.fit(model, (x, x[:, :1]), batch_size=2, epochs=9, callbacks=[Stop()], **options)
    assert len(seen) == batches
    assert "stop_training" not in vars(model)


def test_a_schedule_may_be_a_function_of_the_epoch_alone() -> None:
    x = np.ones((4, 2), "float32")
    for schedule in (lambda epoch: 0.1 / (epoch + 1), lambda epoch, rate: 0.1 / (epoch + 1)):
        optimizer = gt.training.SGD(1.0)
        gt.training.fit(
            gt.layers.Sequential([gt.layers.Dense(1)]),
            (x, x[:, :1]),
            epochs=4,
            optimizer=optimizer,
            loss="mse",
            callbacks=[gt.training.LearningRateScheduler(schedule)],
            verbose=0,
        )
        assert float(optimizer.learning_rate) == pytest.approx(0.025)
