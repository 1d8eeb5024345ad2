"""A run that is resumed is the run that was not interrupted, bit for bit."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import killed_run
import numpy as np
import pytest

import gradtape as gt
import gradtape.compat.tensorflow as tf
from gradtape.layers import BatchNorm, Dense, Dropout, Sequential
from gradtape.saving import LoadError, SaveError
from gradtape.training import Adam, Checkpoint, CheckpointManager, History, fit

RNG = np.random.default_rng(5)
X = RNG.normal(size=(47, 6)).astype("float32")
LABELS = (X[:, 0] > 0).astype(int)
PER_EPOCH = 5  # of 38 examples in batches of 8


class Crash(Exception):
    pass


class At:
    """Do something at a batch, counted over all epochs."""

    def __init__(self, at: int, act: Any) -> None:
        self.at, self._act, self._batches = at, act, 0

    def on_epoch_begin(self, epoch: int) -> None:
        self._batches = epoch * PER_EPOCH

    def on_train_batch_end(self, batch: int, logs: Any) -> None:
        if self._batches + batch + 1 == self.at:
            self._act()


class Patience:
    """Halve the learning rate while the loss does not fall; stop at the third time."""

    def __init__(self, optimizer: Any, most: int = 99) -> None:
        self.optimizer, self.most = optimizer, most
        self.best, self.waited, self.seen = float("inf"), 0, []

    def on_train_begin(self) -> None:
        self.best, self.waited = float("inf"), 0

    def on_epoch_begin(self, epoch: int) -> None:
        self.optimizer.learning_rate = float(self.optimizer.learning_rate) * 0.9

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> bool:
        self.waited += logs["val_loss"] >= self.best
        self.best = min(self.best, logs["val_loss"])
        self.seen.append(self.best)
        return self.waited >= self.most


class Run:
    """A program that trains, as it is started each time."""

    def __init__(self, epochs: int = 4, seed: int = 0, callbacks: Any = (), **options: Any) -> None:
        gt.random.set_seed(seed)
        self.model = Sequential([Dense(8, "tanh"), BatchNorm(), Dropout(0.3), Noise(), Dense(2)])
        self.optimizer = Adam(0.05)
        self.patience = Patience(self.optimizer)
        given = {
            "seed": 3,
            "data": (X, LABELS),
            "validation_split": 0.2,
            "batch_size": 8,
            **options,
        }
        self.history: History = fit(
            self.model,
            given.pop("data"),
            epochs=epochs,
            optimizer=self.optimizer,
            verbose=False,
            callbacks=[self.patience, *callbacks],
            **given,
        )

    @property
    def state(self) -> Any:
        """What must be equal: weights, optimizer, history, callback, what is drawn next."""
        variables = {**self.model.named_variables}
        variables |= {f"optimizer/{k}": v for k, v in self.optimizer.named_variables.items()}
        bits = {name: x.numpy().tobytes() for name, x in variables.items()}
        drawn = gt.random.normal(3).tolist()
        run = self.history
        return bits, run.epoch, run.history, self.patience.seen, self.patience.waited, drawn


class Noise(gt.layers.Layer):
    """Noise from the generator that all share."""

    def call(self, x: Any, training: bool = False) -> Any:
        return x + 0.1 * gt.random.normal(x.shape) if training else x


@pytest.fixture(scope="module")
def expected() -> Any:
    return Run().state


def manager(folder: Path, **options: Any) -> CheckpointManager:
    return CheckpointManager(Checkpoint(), folder, **{"best": "val_loss", **options})


# -- between epochs --------------------------------------------------------------------------------


@pytest.mark.parametrize("parts", [(1, 4), (2, 4), (3, 4), (1, 2, 3, 4), (4, 4), (0, 4)])
@pytest.mark.parametrize("kind", ["path", "manager"])
def test_epochs_in_parts_are_epochs_in_one_run(
    parts: tuple[int, ...], kind: str, tmp_path: Path, expected: Any
) -> None:
    for i, epochs in enumerate(parts):
        where = tmp_path / "run.h5" if kind == "path" else manager(tmp_path)
        run = Run(epochs, seed=i, checkpoint=where, resume=i > 0 or epochs > 0)
    if parts[0]:
        assert run.state == expected
    else:  # no epoch, nothing saved: it is another model
        assert run.history.epoch == [0, 1, 2, 3]


def test_the_order_comes_from_the_seed_and_the_epoch_also_without_a_checkpoint() -> None:
    def weights(*ends: int) -> bytes:
        gt.random.set_seed(0)
        model, optimizer, first = Sequential([Dense(8, "tanh"), Dense(2)]), Adam(0.05), 0
        for last in ends:
            options = {"seed": 1, "verbose": False, "batch_size": 8}
            run = fit(
                model, (X, LABELS), epochs=last, initial_epoch=first, optimizer=optimizer, **options
            )
            assert run.epoch == list(range(first, last))
            first = last
        return b"".join(v.numpy().tobytes() for v in (*model.variables, *optimizer.variables))

    assert weights(6) == weights(3, 6) == weights(1, 1, 6)


def test_the_order_is_kept_where_no_seed_was_given(tmp_path: Path) -> None:
    seen: list[list[float]] = []

    class Seeing(gt.layers.Layer):
        def call(self, x: Any, training: bool = False) -> Any:
            if training:
                seen[-1].extend(x[:, 0].tolist())
            return x

    def run(**options: Any) -> None:
        seen.append([])
        model = Sequential([Seeing(), Dense(2)])
        where = tmp_path / "run.h5"
        options = {"batch_size": 8, "verbose": False, "checkpoint": where, **options}
        fit(model, (X, LABELS), **options)

    def crash() -> None:
        raise Crash

    with pytest.raises(Crash):
        run(epochs=2, save_every=1, callbacks=[At(3, crash)])
    run(epochs=1, resume=True)
    one = [*seen[0][:16], *seen[1]]  # the batch at which it crashed was not kept
    assert sorted(one) == sorted(X[:, 0].tolist())
    assert one != X[:, 0].tolist()


# -- within epochs ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("at", "every"),
    [
        (1, 1),
        (2, 1),
        (5, 1),
        (6, 1),
        (17, 1),
        (20, 1),
        (3, 3),
        (9, 3),
        (10, 3),
        (11, 4),
        (12, None),
    ],
)
def test_a_run_that_ended_within_an_epoch_goes_on_there(
    at: int, every: int | None, tmp_path: Path, expected: Any
) -> None:
    def crash() -> None:
        raise Crash

    options = {"checkpoint": manager(tmp_path), "save_every": every, "resume": True}
    with pytest.raises(Crash):
        Run(callbacks=[At(at, crash)], **options)
    # what is resumed is started with other weights; where nothing was saved, with the same
    started = bool(manager(tmp_path).checkpoints)
    assert Run(seed=9 if started else 0, **options).state == expected


@pytest.mark.parametrize("at", [1, 5, 8])
def test_ctrl_c_keeps_the_batch_that_it_ends_with(at: int, tmp_path: Path, expected: Any) -> None:
    def press() -> None:
        os.kill(os.getpid(), signal.SIGINT)

    where = tmp_path / "run.h5"
    first = Run(callbacks=[At(at, press)], checkpoint=where)
    assert first.history.interrupted
    assert first.optimizer.iterations.item() == at
    second = Run(seed=9, checkpoint=where, resume=True)
    assert not second.history.interrupted
    assert second.state == expected


def test_a_run_that_a_callback_ended_stays_ended(tmp_path: Path) -> None:
    def run(**options: Any) -> Any:
        gt.random.set_seed(0)
        stop = Patience(Adam(), most=1)
        stop.on_epoch_end = lambda epoch, logs: epoch == 1
        model = Sequential([Dense(2)])
        where = {"checkpoint": tmp_path / "run.h5", "verbose": False}
        return fit(model, (X, LABELS), callbacks=[stop], **where, **options)

    first = run(epochs=5)
    assert first.epoch == [0, 1]
    again = run(epochs=5, resume=True)
    assert (again.epoch, again.history) == (first.epoch, first.history)


def test_the_best_model_of_a_run_is_kept(tmp_path: Path) -> None:
    keeper = manager(tmp_path, keep=1)
    run = Run(6, checkpoint=keeper, save_every=2)
    losses = run.history.history["val_loss"]
    model = Sequential([Dense(8, "tanh"), BatchNorm(), Dropout(0.3), Noise(), Dense(2)])
    model(X[:1])
    Checkpoint(model=model).restore(keeper.best)
    found = gt.training.evaluate(model, (X[38:], LABELS[38:]))
    assert found["loss"] == pytest.approx(min(losses), rel=1e-5)
    assert len(keeper.checkpoints) <= 2


# -- the program's own checkpoint, callbacks and data ----------------------------------------------


def test_what_the_manager_follows_is_kept_with_the_run(tmp_path: Path) -> None:
    """The model is not kept twice, and what else there is comes back too."""
    model, rng = Sequential([Dense(2)]), np.random.default_rng(0)
    whole = gt.Module()
    whole.model = model
    keeper = CheckpointManager(Checkpoint(whole=whole, rng=rng, note="a"), tmp_path)
    options = {"verbose": False, "checkpoint": keeper}
    fit(model, (X, LABELS), epochs=1, **options)
    drawn = rng.normal()
    keeper.checkpoint.note = "b"
    fit(model, (X, LABELS), epochs=1, resume=True, **options)
    assert rng.normal() == drawn
    assert keeper.checkpoint.note == "a"
    names = set(gt.load(keeper.latest).named_variables)
    assert not any(name.startswith("model/") for name in names)
    assert {"whole/model/layers/0/kernel", "optimizer/iterations"} <= names


def test_callbacks_may_say_what_their_state_is(tmp_path: Path) -> None:
    class Averaging:
        def __init__(self) -> None:
            self.mean = np.zeros(2)

        def on_train_batch_end(self, batch: int, logs: Any) -> None:
            self.mean = self.mean + np.array([1.0, logs["loss"]])

        def state_dict(self) -> Any:
            return {"mean": self.mean}

        def load_state_dict(self, state: Any) -> None:
            self.mean = state["mean"]

    def crash() -> None:
        raise Crash

    whole, first, second = Averaging(), Averaging(), Averaging()
    Run(2, callbacks=[whole])
    options = {"checkpoint": tmp_path / "run.h5", "save_every": 1, "resume": True}
    with pytest.raises(Crash):
        Run(2, callbacks=[first, At(7, crash)], **options)
    Run(2, callbacks=[At(99, crash), second], **options)
    assert second.mean.tolist() == whole.mean.tolist()


def test_what_a_callback_was_given_stays_and_what_it_counted_comes_back(tmp_path: Path) -> None:
    class Counting:
        left = 9

        def __init__(self, limit: int, start: int) -> None:
            self.limit, self.start, self.turns, self.names = limit, start, 0, {"a": [1.5, None]}
            self.by_epoch: dict[int, int] = {}

        def on_train_begin(self) -> None:
            self.start = 0

        def on_epoch_end(self, epoch: int, logs: Any) -> None:
            self.left -= 1
            self.start += 1
            self.names["a"].append(epoch)
            self.by_epoch[epoch] = self.left

    gt.random.set_seed(0)
    options = {"checkpoint": tmp_path / "run.h5", "verbose": False}
    model, first, second = Sequential([Dense(2)]), Counting(3, 2), Counting(5, 2)
    fit(model, (X, LABELS), epochs=2, callbacks=[first], **options)
    assert first.start == 2  # as it was given: by chance
    fit(model, (X, LABELS), epochs=2, callbacks=[second], resume=True, **options)
    assert vars(second) == {**vars(first), "limit": 5}
    assert second.left == 7


@pytest.mark.parametrize("weighted", [False, True])
def test_metrics_that_learn_their_shape_from_a_batch_resume(weighted: bool, tmp_path: Path) -> None:
    def run(epochs: int, **options: Any) -> Any:
        gt.random.set_seed(0)
        kind = {"weighted_metrics" if weighted else "metrics": [gt.training.metrics.R2Score()]}
        data = (X, X[:, :2])
        options |= {"loss": "mse", "seed": 1, "verbose": False, **kind}
        return fit(Sequential([Dense(2)]), data, epochs=epochs, **options).history

    options = {"checkpoint": tmp_path / "run.h5", "save_every": 1, "resume": True}
    run(1, **options)
    assert run(2, **options) == run(2)


class Loader:
    """Batches in an order of its own, drawn anew at each pass."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(4)
        self.passes = 0

    def __iter__(self) -> Iterator[Any]:
        order = self.rng.permutation(len(X))
        for start in range(0, len(X), 10):
            yield X[order[start : start + 10]], LABELS[order[start : start + 10]]

    def state_dict(self) -> Any:
        return {"rng": str(self.rng.bit_generator.state)}

    def load_state_dict(self, state: Any) -> None:
        self.rng.bit_generator.state = eval(state["rng"])


@pytest.mark.parametrize("data", [Loader, lambda: list(Loader())], ids=["loader", "list"])
def test_iterables_of_batches_go_on_where_they_were(data: Any, tmp_path: Path) -> None:
    def crash() -> None:
        raise Crash

    same: dict[str, Any] = {"validation_data": (X, LABELS), "validation_split": 0.0}
    same["batch_size"] = 10
    whole = Run(3, data=data(), **same).state
    options = {"checkpoint": tmp_path / "run.h5", "save_every": 2, "resume": True, **same}
    with pytest.raises(Crash):
        Run(3, data=data(), callbacks=[At(9, crash)], **options)
    assert Run(3, data=data(), seed=9, **options).state == whole


# -- what cannot be done ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"resume": True, "checkpoint": None}, ValueError, "resume needs a checkpoint"),
        ({"save_every": 3, "checkpoint": None}, ValueError, "save_every needs a checkpoint"),
        ({"save_every": 0}, ValueError, "save_every must be a positive integer, got 0"),
        ({"resume": 3}, TypeError, "resume is True or False, got 3"),
        ({"checkpoint": 3}, TypeError, "checkpoint is a gradtape.training.CheckpointManager or"),
        ({"checkpoint": "."}, ValueError, "is a folder; give a file in it"),
        ({"checkpoint": "model.h5"}, LoadError, "not a checkpoint"),
        ({"checkpoint": "none/run.h5"}, SaveError, "the folder .* does not exist"),
        ({"checkpoint": "run\0.h5"}, SaveError, "it contains a NUL"),
        ({"epochs": 2, "initial_epoch": 3}, ValueError, "initial_epoch=3 is after the last"),
        ({"initial_epoch": -1}, ValueError, "initial_epoch must be a non-negative integer"),
        ({"resume": True, "data": iter([(X, LABELS)])}, ValueError, "data is an iterator, which"),
        ({"save_every": 1, "data": iter([(X, LABELS)])}, ValueError, "data is an iterator, which"),
    ],
)
def test_what_means_nothing_is_refused_before_anything_changes(
    options: Any, error: Any, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model = Sequential([Dense(2)])
    model(X)
    gt.save(model, "model.h5")
    before = [v.numpy().tobytes() for v in model.variables]
    given = {"checkpoint": "run.h5", "data": (X, LABELS), **options}
    with pytest.raises(error, match=message):
        fit(model, given.pop("data"), verbose=False, **given)
    assert [v.numpy().tobytes() for v in model.variables] == before
    assert not Path("run.h5").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 16}, "within an epoch, with other data or another batch size"),
        ({"data": (X[:40], LABELS[:40])}, "within an epoch, with other data"),
        ({"seed": 4}, "the run had seed 3, not 4"),
        ({"shuffle": False}, "give the same shuffle= as before"),
        ({"metrics": ()}, "the saved run measured loss, accuracy, but this one measures loss"),
        ({"model": Sequential([Dense(3)])}, r"model/layers/0/kernel .in the file float32\[6, 2\]"),
    ],
)
def test_another_run_than_that_in_the_file_is_refused(
    options: Any, message: str, tmp_path: Path
) -> None:
    def crash() -> None:
        raise Crash

    def run(**options: Any) -> None:
        given = {"model": Sequential([Dense(2)]), "data": (X, LABELS), "seed": 3, "batch_size": 8}
        given |= {"verbose": False, "checkpoint": tmp_path / "run.h5", "save_every": 1, **options}
        fit(given.pop("model"), given.pop("data"), **given)

    with pytest.raises(Crash):
        run(callbacks=[At(3, crash)])
    with pytest.raises(LoadError, match=message):
        run(resume=True, **options)


def test_a_manager_whose_best_no_epoch_measures_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="best='val_loss' is not measured; measured are loss, acc"):
        Run(validation_split=0.0, checkpoint=manager(tmp_path))
    model, other = Sequential([Dense(2)]), Sequential([Dense(2)])
    keeper = CheckpointManager(Checkpoint(model=other), tmp_path)
    with pytest.raises(ValueError, match="another object under 'model'"):
        fit(model, (X, LABELS), verbose=False, checkpoint=keeper)


# -- Keras' names ----------------------------------------------------------------------------------


def keras_model(own: bool) -> Any:
    tf.random.set_seed(0)
    keras = tf.keras

    class Net(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.hidden, self.drop = keras.layers.Dense(8, "tanh"), keras.layers.Dropout(0.3)
            self.out = keras.layers.Dense(1)

        def call(self, x: Any, training: bool = False) -> Any:
            return self.out(self.drop(self.hidden(x), training=training))

    class Own(Net):
        def train_step(self, data: Any) -> Any:
            x, y = data
            with tf.GradientTape() as tape:
                predicted = self(x, training=True)
                loss = self.compute_loss(x, y, predicted)
            variables = self.trainable_variables
            self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
            return self._measured(x, y, predicted, loss)

    model = Own() if own else Net()
    model.compile(keras.optimizers.Adam(0.05), "mse", metrics=["mae"])
    return model


@pytest.mark.parametrize("own", [False, True], ids=["fit", "train_step"])
def test_models_with_keras_names_resume_too(own: bool, tmp_path: Path) -> None:
    def run(**options: Any) -> Any:
        model = keras_model(own)
        options = {"epochs": 3, "batch_size": 8, "shuffle": False, "verbose": 0, **options}
        history = model.fit(X, LABELS.astype("float32"), **options)
        held = (*model.variables, *model.optimizer.variables)
        return [v.numpy().tobytes() for v in held], history.epoch, history.history

    def crash() -> None:
        raise Crash

    whole = run()
    keeping = {"checkpoint": tmp_path / "run.h5", "save_every": 2, "resume": True}
    with pytest.raises(Crash):
        run(callbacks=[At(9, crash)], **keeping)
    assert run(**keeping) == whole
    model = keras_model(own)
    histories = [
        model.fit(X, LABELS.astype("float32"), batch_size=8, shuffle=False, verbose=0, **part)
        for part in ({"epochs": 1}, {"epochs": 3, "initial_epoch": 1})
    ]
    assert histories[1].epoch == [1, 2]
    assert [v.numpy().tobytes() for v in (*model.variables, *model.optimizer.variables)] == whole[0]


# -- processes that are killed ---------------------------------------------------------------------


def test_runs_that_are_killed_go_on_as_if_they_had_not_been(tmp_path: Path) -> None:
    """``python killed_run.py --kills 20`` is the same for more of them."""
    expected = killed_run.whole(tmp_path / "whole")
    found, places = killed_run.killed(tmp_path / "run", kills=3, seed=int(os.urandom(4).hex(), 16))
    assert found == expected, places
