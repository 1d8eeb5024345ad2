"""A resumed run is the run: weights, optimizer, history, callbacks and their files."""

from __future__ import annotations

import random
from contextlib import chdir, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import gradtape as gt
from fuzz.training.batches import built, data_of
from fuzz.training.drawing import without
from fuzz.training.relations import Line, Pairs, Program, relation
from gradtape import training as tr

__all__ = ["Interrupted", "PowerCut"]

#: Callbacks whose files and states are compared.
CALLBACKS = (
    "tr.CSVLogger('log.csv')",
    "tr.CSVLogger('more.csv', append=True)",
    "tr.ModelCheckpoint('w-{epoch}.h5', save_weights_only=True)",
    "tr.ModelCheckpoint('best.h5', 'loss', save_best_only=True, save_weights_only=True)",
    "tr.ModelCheckpoint('b-{epoch}-{batch}.h5', save_weights_only=True, save_freq=2)",
    "tr.EarlyStopping('loss', patience=1, min_delta=0.05)",
    "tr.EarlyStopping('val_loss', patience=0, restore_best_weights=True)",
    "tr.ReduceLROnPlateau('loss', factor=0.5, patience=0, min_delta=0.1)",
    "tr.LearningRateScheduler(lambda epoch, rate: rate * 0.8)",
    "Journal()",
    "Counted()",
)


class Interrupted(Exception):
    """The end of a run, as if the machine had failed."""


class PowerCut(tr.Callback):
    """Raise at an event of an epoch."""

    def __init__(self, event: str, epoch: int, batch: int) -> None:
        self.at = (event, epoch, batch)
        self._gradtape_epoch = 0

    def on_epoch_begin(self, epoch: int) -> None:
        """Note the epoch."""
        self._gradtape_epoch = epoch
        self._told("epoch_begin", 0)

    def on_train_batch_end(self, batch: int, logs: Any) -> None:
        """Raise if this is the batch."""
        self._told("batch_end", batch)

    def on_epoch_end(self, epoch: int, logs: Any) -> None:
        """Raise if this is the epoch."""
        self._told("epoch_end", 0)

    def _told(self, event: str, batch: int) -> None:
        if (event, self._gradtape_epoch, batch) == self.at:
            raise Interrupted


def _run(rng: random.Random) -> Program:
    program = without("constraints", epochs=3)(rng)
    lines = dict(program.lines)
    callbacks = rng.sample(CALLBACKS, rng.randint(1, 3))
    lines["callbacks"] = Line("lambda: [ITEMS]", tuple(callbacks))
    event = rng.choice(["epoch_begin", "batch_end", "batch_end", "epoch_end"])
    cuts = sorted({rng.randint(0, 2) for _ in range(rng.choice([1, 1, 2]))})
    found = tuple(f"({event!r}, {epoch}, {rng.choice([0, 0, 1, 2])})" for epoch in cuts)
    lines["cuts"] = Line("[ITEMS]", found)
    lines["place"] = Line(repr(rng.randint(0, len(callbacks))))
    lines["save_every"] = Line(repr(rng.choice([None, None, 1, 2])))
    lines["keeps"] = Line(repr(rng.choice(["file", "file", "manager", "backup"])))
    lines["batched"] = Line(repr(rng.choice([None, None, "list", "dataset", "steps"])))
    lines["validates"] = Line(repr("val_" in str(callbacks) or rng.random() < 0.2))
    return Program(lines)


def _fit(p: Any, seed: int, extra: list[Any], **options: Any) -> Any:
    """Train a new model; return it with its optimizer, callbacks and history."""
    gt.random.set_seed(seed)
    model = p.model()
    callbacks = p.callbacks()
    told = [*callbacks[: p.place], *extra, *callbacks[p.place :]]
    settings = {"optimizer": tr.SGD(0.1), **p.settings(), "verbose": 0, "compile": False}
    settings |= {**_kept(p.keeps, options, told), **options}
    data = _data(p, settings)
    if p.validates:
        settings["validation_data"] = data_of(p)
    run = tr.fit(model, data, **settings, **p.goals(), callbacks=told)
    return model, settings["optimizer"], callbacks, run


def _kept(how: str, options: dict[str, Any], callbacks: list[Any]) -> dict[str, Any]:
    """Return options that keep a run in a manager or by a callback, as ``options`` do in a file."""
    where = options.get("checkpoint")
    if where is not None and how == "manager":
        manager = tr.CheckpointManager(tr.Checkpoint(), f"{where} of runs", keep=2)
        return {"checkpoint": options.pop("checkpoint") and manager}
    if where is not None and how == "backup":
        for name in ("checkpoint", "resume"):
            del options[name]
        every = options.pop("save_every") or "epoch"
        callbacks.append(tr.BackupAndRestore(Path(where).parent, every, delete_checkpoint=False))
    return {}


def _data(p: Any, settings: dict[str, Any]) -> Any:
    """Return the data as arrays, a list of batches or a pipeline; set what belongs to it."""
    if p.batched == "steps":
        settings["steps_per_epoch"] = 2
    if p.batched not in ("list", "dataset"):
        return data_of(p)
    size = settings.pop("batch_size", 2)
    rows = range(0, len(p.x), size)
    batches = [data_of(p, slice(start, start + size)) for start in rows]
    if p.batched == "list":
        return batches
    return gt.data.Dataset.from_generator(lambda: iter(batches)).shuffle(3)


def _files() -> dict[str, Any]:
    """Return what files hold: texts, and the arrays of weights."""
    found: dict[str, Any] = {}
    for path in sorted(path for path in Path().glob("*") if path.is_file()):
        if path.suffix == ".h5":
            found[path.name] = {k: np.asarray(v) for k, v in gt.saving.read_weights(path).items()}
        else:
            found[path.name] = path.read_text()
    return found


@relation("resumed", _run, exact=True)
def interrupted(p: Any) -> Pairs:
    """A run that is interrupted and resumed is the run without interruption."""
    for name in ("whole", "parts"):
        Path(name).mkdir()
    with chdir("whole"):
        want = _fit(p, 1, [])
        files = _files()
    file = Path("run.h5").absolute()
    options = {"checkpoint": str(file), "save_every": p.save_every, "resume": True}
    with chdir("parts"):
        for cut in p.cuts:
            with suppress(Interrupted):
                _fit(p, _weights_seed(file), [PowerCut(*cut)], **options)
            if _weights_seed(file) == 1:  # nothing is saved yet, and the next run is another one
                Path("more.csv").unlink(missing_ok=True)
        got = _fit(p, _weights_seed(file), [], **options)
        yield "files", _files(), files
    yield "history", got[3].history, want[3].history
    yield "weights", _values(got[0]), _values(want[0])
    yield "optimizer", _values(got[1]), _values(want[1])
    for mine, its in zip(got[2], want[2], strict=True):
        yield f"state of {type(its).__name__}", _state(mine), _state(its)


def _weights_seed(file: Path) -> int:
    """Return the seed of initial weights: another one, if a checkpoint replaces these."""
    folder = Path(f"{file} of runs")
    return 2 if file.exists() or (folder.exists() and [*folder.glob("*")]) else 1


def _values(module: Any) -> dict[str, Any]:
    return {name: v.numpy() for name, v in module.named_variables.items()}


def _state(callback: Any) -> Any:
    """Return the state of a callback as text and numbers."""
    found = getattr(callback, "compared", None)
    if found is not None:
        return found()
    return callback.state_dict() if hasattr(callback, "state_dict") else None


@relation("resumed", without("constraints", epochs=1), exact=True)
def continued(p: Any) -> Pairs:
    """Epochs in two calls of ``fit`` are the epochs in one call."""
    if getattr(
        p.settings().get("optimizer"), "use_ema", False
    ):  # the first call ends with the means of the weights
        return
    runs = []
    for cuts in ((0, 3), (0, 1, 3)):
        gt.random.set_seed(1)
        model = built(p)
        settings = {"optimizer": tr.SGD(0.1), **p.settings(), "verbose": 0, "compile": False}
        losses: list[float] = []
        for first, last in pairwise(cuts):
            settings |= {"initial_epoch": first, "epochs": last}
            losses += tr.fit(model, data_of(p), **settings, **p.goals()).history["loss"]
        runs.append((losses, _values(model)))
    yield "losses", runs[1][0], runs[0][0]
    yield "weights", runs[1][1], runs[0][1]


@relation("resumed", _run, exact=True)
def extended(p: Any) -> Pairs:
    """A complete run, resumed with more epochs, is a longer run."""
    options = {"checkpoint": "run.h5", "resume": True, "save_every": p.save_every}
    want = _fit(p, 1, [], epochs=3)
    first = _fit(p, 1, [], epochs=1, **options)
    got = _fit(p, 2, [], epochs=3, **options)
    if len(want[3].epoch) == 3 and not getattr(first[0], "stop_training", False):
        yield "history", got[3].history, want[3].history
        yield "weights", _values(got[0]), _values(want[0])
        yield "optimizer", _values(got[1]), _values(want[1])
