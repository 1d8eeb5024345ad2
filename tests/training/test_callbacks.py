"""Callbacks under Keras' names: alone with values of epochs, and in ``fit``."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any, ClassVar

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
    before = training.EarlyStopping()  # in a loop that has not set the model yet
    before.load_state_dict({**state, "weights": [np.ones(2)]})
    assert before.weights is not None
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


@pytest.mark.parametrize(
    "callback",
    [
        training.EarlyStopping("val_loss"),
        training.ReduceLROnPlateau(),
        training.ModelCheckpoint("never.h5", save_best_only=True),
        training.ModelCheckpoint("{val_loss:.2f}.h5"),
    ],
)
def test_a_value_that_is_not_there_is_an_error_that_says_what_there_is(callback: Any) -> None:
    said = f"{type(callback).__name__}: .*'val_loss'.*; there are loss, mae"
    with pytest.raises(ValueError, match=said):
        training.fit(model(), (X, Y), loss="mse", metrics=["mae"], verbose=0, callbacks=[callback])


def test_epochs_without_validation_do_not_count() -> None:
    stop = training.EarlyStopping(patience=1)
    history = training.fit(
        model(), (X, Y), loss="mse", epochs=9, verbose=0, callbacks=[stop],
        optimizer=training.SGD(0.0), validation_data=(X, Y), validation_freq=3,
    )  # fmt: skip
    assert len(history.epoch) == 6


@pytest.mark.parametrize("name", ["val_of_mine", "speed"])
def test_a_name_that_does_not_say_which_way_is_better_asks(name: str) -> None:
    for make in (training.EarlyStopping, training.ReduceLROnPlateau):
        with pytest.raises(ValueError, match="does not say whether a larger value is better"):
            make(name)
        assert make(name, mode="max").larger_is_better
    with pytest.raises(ValueError, match="ModelCheckpoint: the name"):
        training.ModelCheckpoint("a.h5", name, save_best_only=True)
    assert training.ModelCheckpoint("a.h5", name).monitor == name


@pytest.mark.parametrize("name", ["val_mean_squared_error", "b_mse", "val_hinge", "digit_loss"])
def test_what_is_to_fall_is_known_by_its_name(name: str) -> None:
    assert not training.EarlyStopping(name).larger_is_better


def test_learning_rates_are_in_the_history() -> None:
    halved = training.LearningRateScheduler(lambda epoch: 0.5 ** (epoch + 1))
    plateau = training.ReduceLROnPlateau("loss", factor=0.5, patience=1, min_delta=1e9)
    for callback, rates in ((halved, [0.5, 0.25, 0.125]), (plateau, [0.5, 0.5, 0.25])):
        history = training.fit(
            model(), (X, Y), loss="mse", epochs=3, verbose=0, callbacks=[callback],
            optimizer=training.SGD(0.5),
        )  # fmt: skip
        assert history.history["learning_rate"] == rates
    with pytest.raises(TypeError, match="schedule must return a number, got None"):
        training.fit(
            model(), (X, Y), loss="mse", verbose=0,
            callbacks=[training.LearningRateScheduler(lambda epoch: None)],
        )  # fmt: skip


def test_models_are_saved_after_some_batches_into_folders_that_are_made(tmp_path: Path) -> None:
    path = str(tmp_path / "a" / "{epoch:02d}-{batch}-{loss:.2f}.h5")
    callback = training.ModelCheckpoint(path, "loss", save_freq=3)
    training.fit(
        model(), (X, Y), loss="mse", batch_size=16, epochs=2, verbose=0, callbacks=[callback]
    )
    names = sorted(p.name for p in (tmp_path / "a").iterdir())
    assert [name[:4] for name in names] == ["01-3", "02-2"]


class Keras:
    """A callback as it is written for Keras."""

    model: Any = None

    def __init__(self, event: str) -> None:
        self.event, self.told = event, list[str]()

    def on_train_begin(self, logs: Any) -> None:
        self.told.append("begin")

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self.told.append(f"epoch {epoch}")

    def on_train_batch_begin(self, batch: int, logs: Any) -> None:
        self.told.append(f"batch {batch}")

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.model.stop_training = self.event == "batch" and batch == 1

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        logs["mine"] = epoch + 0.5
        logs["words"] = "not a number"
        if self.event == "epoch" and epoch == 1:
            self.model.stop_training = True

    def on_train_end(self, logs: Any) -> None:
        self.told.append("end")


@pytest.mark.parametrize("event", ["batch", "epoch"])
def test_callbacks_written_for_keras(event: str) -> None:
    callback, net = Keras(event), model()
    history = training.fit(
        net, (X, Y), loss="mse", epochs=5, batch_size=16, verbose=0, callbacks=[callback]
    )
    epochs = 1 if event == "batch" else 2
    assert history.history["mine"] == [0.5, 1.5][:epochs]
    assert "words" not in history.history
    batches = [f"batch {i}" for i in range(2 if event == "batch" else 4)]
    told = [x for i in range(epochs) for x in (f"epoch {i}", *batches)]
    assert callback.told == ["begin", *told, "end"]
    assert not hasattr(net, "stop_training")


def test_events_that_never_come_are_told() -> None:
    class Waiting(training.Callback):
        def on_predict_end(self, logs: Any = None) -> None:
            raise AssertionError

    with pytest.warns(UserWarning, match="Waiting has on_predict_end, which fit never calls"):
        training.fit(model(), (X, Y), loss="mse", verbose=0, callbacks=[Waiting()])


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("compile", [False, True])
def test_a_loss_that_is_not_finite_may_end_the_run_quietly(compile: bool, capsys: Any) -> None:
    def run(net: Any, *callbacks: Any) -> Any:
        return training.fit(
            net, (X, Y), loss="mse", epochs=4, verbose=0, callbacks=callbacks, compile=compile,
            optimizer=training.SGD(0.1),
        )  # fmt: skip

    def spoil(epoch: int, logs: dict[str, float]) -> None:
        if epoch == 1:
            net.layers[0].kernel.assign(np.full((3, 1), np.inf, "float32"))

    net = model()
    assert len(run(net, training.TerminateOnNaN(), spoil).epoch) == 2
    assert "the loss is" in capsys.readouterr().out
    for callbacks in ([], [training.TerminateOnNaN(raise_error=True)]):
        net = model()
        with pytest.raises(FloatingPointError, match="the loss is"):
            run(net, *callbacks, spoil)


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
        (lambda: training.ModelCheckpoint("a", save_freq=0), "save_freq is 'epoch' or a number"),
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


def epochs_with(*callbacks: Any, net: Any = None) -> int:
    """Return how many of three epochs run with callbacks."""
    net = model() if net is None else net
    options: Any = {"loss": "mse", "epochs": 3, "verbose": 0, "callbacks": callbacks}
    return len(training.fit(net, (X, Y), **options).epoch)


class Told(training.EarlyStopping):
    """Does something more at the end of an epoch, and returns nothing, as Keras's callbacks do."""

    def on_epoch_end(self, epoch, logs=None) -> None:
        super().on_epoch_end(epoch, logs)


def test_a_subclass_that_returns_nothing_stops() -> None:
    worse = training.EarlyStopping("loss", mode="max"), Told("loss", mode="max")
    assert [epochs_with(callback) for callback in worse] == [2, 2]
    assert worse[1].stopped_epoch == 1
    assert epochs_with(worse[1]) == 2
    run(worse[1], [3.0, 2.0, 4.0], "loss")  # in a loop that you write, which asks no run
    run(worse[1], [1.0, 0.0], "loss")
    assert epochs_with(worse[1]) == 2


@pytest.mark.parametrize(
    ("answer", "epochs"), [(np.True_, 1), (np.False_, 3), (True, 1), (False, 3), (None, 3), (1, 3)]
)
def test_comparisons_of_numpy_are_answers(answer: Any, epochs: int) -> None:
    class Sets(training.Callback):
        def on_epoch_end(self, epoch, logs) -> None:
            self.model.stop_training = answer

    assert epochs_with(lambda epoch, logs: answer) == epochs
    assert epochs_with(Sets()) == (1 if answer == 1 else epochs)


def test_what_was_asked_of_an_earlier_run_does_not_stop_another() -> None:
    net = model()
    net.stop_training = True
    assert epochs_with(lambda epoch, logs: None, net=net) == 3
    assert epochs_with(net=net) == 3


class Adds(training.Callback):
    """Adds values of several kinds to those of batches and epochs."""

    added: ClassVar[Any] = {
        "tensor": gt.constant(2.0),
        "array": np.array(3, "int32"),
        "number": np.float32(4),
        "yes": np.True_,
        "text": "two words",
        "several": np.ones(2),
        "none": None,
    }

    def on_train_batch_end(self, batch, logs=None) -> None:
        logs.update(self.added)

    def on_epoch_end(self, epoch, logs=None) -> None:
        logs.update(self.added)


def test_numbers_that_callbacks_add_are_in_the_history(tmp_path: Path, capsys: Any) -> None:
    log, kept = tmp_path / "log.csv", tmp_path / "run.h5"
    callbacks: Any = [Adds(), training.CSVLogger(log)]
    options: Any = {"loss": "mse", "callbacks": callbacks, "checkpoint": kept, "save_every": 1}
    history = training.fit(model(), (X, Y), epochs=2, **options).history
    assert list(history) == ["loss", "tensor", "array", "number", "yes"]
    assert [history[name] for name in ("tensor", "array", "yes")] == [
        [2.0] * 2,
        [3.0] * 2,
        [1.0] * 2,
    ]
    with log.open(newline="") as file:
        row = next(csv.DictReader(file))
    assert [row["tensor"], row["text"], row["none"]] == ["2.0", "two words", "NA"]
    assert "tensor 2.0000" in capsys.readouterr().err
    options |= {"resume": True, "verbose": 0}
    assert training.fit(model(), (X, Y), epochs=2, **options).history == history
