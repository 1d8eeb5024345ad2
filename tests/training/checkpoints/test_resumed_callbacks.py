"""A run that is interrupted anywhere and resumed leaves the same callbacks and files as one run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape import training

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 3)).astype("float32")
Y = X.sum(-1, keepdims=True)
EPOCHS, BATCHES = 3, 2
EVENTS = ("on_epoch_begin", "on_train_batch_begin", "on_train_batch_end", "on_epoch_end")


class Crash(Exception):
    pass


class Crashing:
    """Raises at the event with a number, counted over the whole run."""

    def __init__(self, at: int | None) -> None:
        self._left = at

    def _count(self, *_: Any) -> None:
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                raise Crash

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Do nothing: the next run does not crash."""

    on_epoch_begin = on_train_batch_begin = on_train_batch_end = on_epoch_end = _count


class Own:
    """Opens a file of its own in each run, and counts."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.epochs, self.batches = folder, 0, 0
        self.path: str | None = None

    def on_train_begin(self) -> None:
        self.batches = 0
        self.path = str(self.folder / f"own-{len(list(self.folder.glob('own-*')))}")
        self.stream = open(self.path, "w")  # noqa: SIM115

    def on_train_batch_end(self, batch: int, logs: Any) -> None:
        self.batches += 1
        self.stream.write(f"{self.batches}\n")

    def on_epoch_end(self, epoch: int, logs: Any) -> None:
        self.epochs += 1
        assert self.path == self.stream.name

    def on_train_end(self) -> None:
        self.stream.close()


def run(folder: Path, crash: int | None, every: int | None) -> dict[str, Any]:
    folder.mkdir(exist_ok=True)
    (folder / "models").mkdir(exist_ok=True)
    stop = training.EarlyStopping("val_loss", patience=9, restore_best_weights=True)
    reduce = training.ReduceLROnPlateau("val_loss", 0.5, patience=1, min_delta=10.0)
    log, own = training.CSVLogger(folder / "log.csv"), Own(folder)
    best = training.ModelCheckpoint(str(folder / "models/{epoch}.h5"), save_best_only=True)
    batches = training.ModelCheckpoint(str(folder / "models/b{epoch}-{batch}.h5"), save_freq=2)
    board = training.TensorBoard(folder / "logs", update_freq=2)
    callbacks = [stop, reduce, log, own, best, batches, board, Crashing(crash)]
    model = gt.layers.Sequential([gt.layers.Dense(1, kernel_initializer="ones")])
    model(X)
    history = training.fit(
        model,
        (X, Y),
        loss="mse",
        optimizer=training.Adam(0.1),
        epochs=EPOCHS,
        batch_size=6,
        seed=1,
        verbose=0,
        validation_data=(X[:5] + 1, Y[:5]),
        callbacks=callbacks,
        checkpoint=folder / "run.h5",
        save_every=every,
        resume=True,
    )
    return {
        "history": history.history,
        "csv": (folder / "log.csv").read_text(),
        "weights": [v.numpy().tolist() for v in model.variables],
        "models": sorted(path.name for path in (folder / "models").iterdir()),
        "stop": (stop.best, stop.best_epoch, stop.wait),
        "reduce": (reduce.wait, reduce.best),
        "best": (best.best, batches.batches),
        "own": (own.epochs, own.batches),
        "board": board._step,
    }


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    pytest.importorskip("tensorboardX")
    return run(tmp_path_factory.mktemp("whole") / "run", None, None)


@pytest.mark.parametrize("every", [None, 1])
@pytest.mark.parametrize("crash", range(EPOCHS * (2 + 2 * BATCHES)))
def test_an_interruption_anywhere_leaves_no_trace(
    whole: dict[str, Any], crash: int, every: int | None, tmp_path: Path
) -> None:
    with pytest.raises(Crash):
        run(tmp_path / "run", crash, every)
    assert run(tmp_path / "run", None, every) == whole


def test_a_log_that_several_runs_share_keeps_its_lines(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("epoch,loss\n0,1.0\n1,0.5\n")

    def train(crash: int | None) -> None:
        model = gt.layers.Sequential([gt.layers.Dense(1)])
        log = training.CSVLogger(path, append=True)
        options = {"checkpoint": tmp_path / "run.h5", "resume": True, "verbose": 0}
        callbacks = [log, Crashing(crash)]
        training.fit(model, (X, Y), loss="mse", epochs=3, callbacks=callbacks, **options)

    with pytest.raises(Crash):
        train(7)  # after the line of the second epoch was written, before its checkpoint
    assert len(path.read_text().split()) == 5
    train(None)
    rows = path.read_text().split()
    assert rows[:3] == ["epoch,loss", "0,1.0", "1,0.5"]
    assert [row.split(",")[0] for row in rows[3:]] == ["0", "1", "2"]
    train(None)  # completed: nothing changes
    assert path.read_text().split() == rows


class Slotted:
    __slots__ = ("epochs", "limit")

    def __init__(self, limit: int) -> None:
        self.limit, self.epochs = limit, [0]

    def on_epoch_end(self, epoch: int, logs: Any) -> None:
        self.epochs.append(epoch)


def test_a_callback_with_slots_goes_on(tmp_path: Path) -> None:
    for epochs in (2, 4):
        callback = Slotted(limit=epochs)
        model = gt.layers.Sequential([gt.layers.Dense(1)])
        training.fit(
            model, (X, Y), epochs=epochs, loss="mse", callbacks=[callback], verbose=0,
            checkpoint=tmp_path / "run.h5", resume=True,
        )  # fmt: skip
    assert callback.epochs == [0, 0, 1, 2, 3]
    assert callback.limit == 4


def test_a_callback_may_hold_a_list_that_holds_itself() -> None:
    callback = Slotted(1)
    callback.epochs.append(callback.epochs)  # type: ignore[arg-type]
    model = gt.layers.Sequential([gt.layers.Dense(1)])
    training.fit(model, (X, Y), epochs=1, loss="mse", callbacks=[callback], verbose=0)
    assert callback.epochs[-1] == 0
