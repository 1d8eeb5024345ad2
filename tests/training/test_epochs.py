"""What an epoch is: its seed, its number of batches, when it is validated, what is kept of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.layers import Dense, Dropout, GaussianNoise, Layer, Sequential
from gradtape.training import SGD, BackupAndRestore, CSVLogger, TensorBoard, fit

RNG = np.random.default_rng(3)
X = RNG.normal(size=(20, 3)).astype("float32")
Y = X[:, :1]
SEEN: list[Any] = []


class Spy(Layer):
    def call(self, x: Any, training: bool = False) -> Any:
        if training:
            SEEN.append(x.numpy()[:, 0])
        return x


@pytest.fixture(autouse=True)
def _forget() -> None:
    SEEN.clear()


def run(model: Any, data: Any = (X, Y), **options: Any) -> dict[str, list[float]]:
    settings = {"loss": "mse", "optimizer": SGD(0.1), "verbose": 0, "compile": False}
    return fit(model, data, **{**settings, **options}).history


def spied() -> Sequential:
    return Sequential([Spy(), Dense(1)])


@pytest.mark.parametrize("compile", [False, True])
@pytest.mark.parametrize("form", ["arrays", "dataset"])
def test_the_seed_seeds_all_that_is_random(form: str, compile: bool) -> None:
    def weights(seed: int) -> Any:
        model = Sequential([GaussianNoise(0.1), Dense(8), Dropout(0.5), Dense(1)])
        slices = gt.data.Dataset.from_tensor_slices((X, Y)).shuffle(20).batch(4)
        data = (X, Y) if form == "arrays" else slices
        options = {"epochs": 2, "seed": seed, "batch_size": 4, "compile": compile}
        run(model, data, optimizer=SGD(0.01), **options, validation_data=data)
        return model.layers[1].kernel.numpy()

    gt.random.set_seed(1)
    first = weights(5)
    gt.random.set_seed(2)
    np.testing.assert_array_equal(weights(5), first)
    assert (weights(6) != first).any()


@pytest.mark.parametrize("compile", [True, False])
def test_a_run_without_a_seed_follows_the_random_numbers_of_gradtape(compile: bool) -> None:
    def run(seed: int) -> list[float]:
        gt.random.set_seed(seed)
        model = Sequential([Dense(4), Dropout(0.3), Dense(1)])
        x = np.random.default_rng(0).normal(size=(32, 3)).astype("float32")
        settings: Any = {"epochs": 2, "batch_size": 8, "verbose": 0, "compile": compile}
        return fit(model, (x, x[:, :1]), loss="mse", **settings).history["loss"]

    assert run(1) == run(1) != run(2)


def test_epochs_in_two_runs_are_those_of_one() -> None:
    def trained(*parts: Any) -> Any:
        gt.random.set_seed(0)
        model, optimizer = Sequential([Dense(8), Dropout(0.5), Dense(1)]), SGD(0.01)
        model(X)
        for part in parts:
            run(model, seed=3, optimizer=optimizer, batch_size=4, **part)
        return model.layers[0].kernel.numpy()

    whole = trained({"epochs": 4})
    split = trained({"epochs": 1}, {"epochs": 4, "initial_epoch": 1})
    np.testing.assert_array_equal(whole, split)


@pytest.mark.parametrize("how", ["arrays", "list", "stream", "iterator"])
def test_epochs_of_so_many_steps_go_on_where_the_last_one_ended(how: str) -> None:
    batches = [(X[i : i + 5], Y[i : i + 5]) for i in (0, 5, 10, 15)]

    class Stream:
        def __iter__(self) -> Any:
            return iter(batches)

    data = {
        "arrays": (X, Y),
        "list": batches,
        "stream": Stream(),
        "iterator": iter(batches * 3),
    }[how]
    run(spied(), data, batch_size=5, epochs=3, steps_per_epoch=3, shuffle=False)
    np.testing.assert_array_equal(np.concatenate(SEEN), np.resize(X[:, 0], 45))


def test_epochs_of_so_many_steps_see_all_examples_in_turn() -> None:
    run(spied(), batch_size=5, epochs=4, steps_per_epoch=2, seed=0)
    for half in (SEEN[:4], SEEN[4:]):
        assert sorted(np.concatenate(half)) == sorted(X[:, 0])


def test_an_iterator_that_is_used_up_is_told() -> None:
    batches = [(X[:5], Y[:5])] * 5
    with pytest.raises(ValueError, match="data ran out of batches in epoch 2; steps_per_epoch=3"):
        run(spied(), iter(batches), epochs=3, steps_per_epoch=3)


@pytest.mark.parametrize("how", ["arrays", "stream"])
def test_a_run_of_so_many_steps_is_resumed_where_it_was(how: str, tmp_path: Path) -> None:
    class Stream:
        def __iter__(self) -> Any:
            return iter([(X[i : i + 5], Y[i : i + 5]) for i in (0, 5, 10, 15)])

    class Stopped(Exception):
        pass

    def stop(batch: int, logs: Any) -> None:
        if len(SEEN) == 5:
            raise Stopped

    data = (X, Y) if how == "arrays" else Stream()
    options = {"batch_size": 5, "epochs": 3, "steps_per_epoch": 3, "seed": 0}
    whole = run(spied(), data, **options)
    expected = np.concatenate(SEEN)
    SEEN.clear()
    options |= {"checkpoint": tmp_path / "run.h5", "save_every": 1}
    callback = gt.training.LambdaCallback(on_train_batch_end=stop)
    with pytest.raises(Stopped):
        run(spied(), data, callbacks=[callback], **options)
    del SEEN[4:]  # the last one was not saved
    assert run(spied(), data, resume=True, **options) == whole
    np.testing.assert_array_equal(np.concatenate(SEEN), expected)


@pytest.mark.parametrize(("often", "epochs"), [(1, [1, 2, 3, 4]), (2, [2, 4]), ([1, 4], [1, 4])])
def test_validation_after_some_epochs(often: Any, epochs: list[int], tmp_path: Path) -> None:
    told: list[int] = []

    def tell(epoch: int, logs: Any) -> None:
        if "val_loss" in logs:
            told.append(epoch + 1)

    log = CSVLogger(tmp_path / "log.csv")
    options = {"validation_freq": often, "callbacks": [tell, log], "epochs": 4}
    history = run(Sequential([Dense(1)]), validation_split=0.2, **options)
    assert told == epochs
    assert len(history["val_loss"]) == len(epochs)
    header, *rows = (tmp_path / "log.csv").read_text().split()
    assert header == "epoch,loss,val_loss"
    assert [i for i, row in enumerate(rows, 1) if not row.endswith("NA")] == epochs


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps_per_epoch": 0}, "steps_per_epoch must be a positive integer, got 0"),
        ({"validation_freq": 0}, "validation_freq must be a positive integer, got 0"),
        ({"validation_freq": "2"}, "validation_freq must be a positive integer, got '2'"),
        (
            {"callbacks": [BackupAndRestore("a")], "checkpoint": "b.h5"},
            "give checkpoint= or BackupAndRestore, but not both",
        ),
    ],
)
def test_settings_of_epochs_that_mean_nothing(options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run(spied(), **options)


# -- callbacks -------------------------------------------------------------------------------------


def test_a_backup_is_restored_and_removed(tmp_path: Path) -> None:
    class Cut(Exception):
        pass

    class Cutting:
        def __init__(self, at: int) -> None:
            self.at = at

        def on_epoch_end(self, epoch: int, logs: Any) -> None:
            if epoch == self.at:
                raise Cut

    options = {"epochs": 4, "seed": 0}
    whole = run(spied(), **options)
    backup = BackupAndRestore(tmp_path / "kept")
    with pytest.raises(Cut):
        run(spied(), callbacks=[backup, Cutting(2)], **options)
    assert backup.path.exists()
    SEEN.clear()
    assert run(spied(), callbacks=[BackupAndRestore(tmp_path / "kept")], **options) == whole
    assert len(SEEN) == 2
    assert not backup.path.exists()


def test_event_files_for_tensorboard(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX", reason='pip install "gradtape[test]"')
    from tensorboardX.proto.event_pb2 import Event

    def events(part: str) -> dict[str, list[float]]:
        found: dict[str, list[float]] = {}
        for file in (tmp_path / part).iterdir():
            content = file.read_bytes()
            while content:
                size = int.from_bytes(content[:8], "little")
                event = Event.FromString(content[12 : 12 + size])
                content = content[16 + size :]
                for value in event.summary.value:
                    found.setdefault(value.tag, []).append(value.simple_value)
        return found

    board = TensorBoard(tmp_path, histogram_freq=1, update_freq="batch")
    history = run(
        Sequential([Dense(1)]), epochs=2, batch_size=8, validation_split=0.2, callbacks=[board]
    )
    trained = events("train")
    np.testing.assert_allclose(trained["epoch_loss"], history["loss"], rtol=1e-6)
    np.testing.assert_allclose(trained["epoch_learning_rate"], [0.1, 0.1])
    np.testing.assert_allclose(events("validation")["epoch_loss"], history["val_loss"], rtol=1e-6)
    assert len(trained["batch_loss"]) == 4
    assert {"kernel_0", "bias_1"} <= set(trained)


def test_tensorboard_tells_what_to_install(monkeypatch: Any, tmp_path: Path) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(ImportError, match=r'pip install "gradtape\[tensorboard\]"'):
        run(Sequential([Dense(1)]), callbacks=[TensorBoard(tmp_path)])
    with pytest.raises(ValueError, match="update_freq is 'epoch', 'batch' or a number"):
        TensorBoard(update_freq="often")
