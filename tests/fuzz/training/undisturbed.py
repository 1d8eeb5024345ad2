"""Other code in a run does not matter: what is measured, shown and saved changes no training."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import gradtape as gt
from fuzz.training.batches import data_of
from fuzz.training.drawing import Options, a_run, without
from fuzz.training.relations import Line, Pairs, Program, relation
from gradtape import training as tr
from gradtape.core.extend import flatten

__all__ = ["DISTURBANCES"]

#: Functions of a program's objects and its model, which return options of ``fit``.
DISTURBANCES: dict[str, Callable[[Any, Any], dict[str, Any]]] = {}


def disturbance(make: Callable[[Any, Any], dict[str, Any]]) -> Callable[[Any, Any], dict[str, Any]]:
    """Register a function of a program's objects and its model as a disturbance."""
    DISTURBANCES[make.__name__] = make
    return make


def _each_epoch(call: Callable[[], Any]) -> dict[str, Any]:
    return {"callbacks": [tr.LambdaCallback(on_epoch_end=lambda epoch, logs: _quiet(call))]}


def _each_batch(call: Callable[[], Any]) -> dict[str, Any]:
    return {"callbacks": [tr.LambdaCallback(on_train_batch_end=lambda batch, logs: _quiet(call))]}


def _quiet(call: Callable[[], Any]) -> None:
    """Call a function; a result would end the run."""
    call()


@disturbance
def validation(p: Any, model: Any) -> dict[str, Any]:
    """Validation, with other batches."""
    return {"validation_data": data_of(p, slice(0, p.rows)), "validation_batch_size": p.rows}


@disturbance
def evaluate(p: Any, model: Any) -> dict[str, Any]:
    """``evaluate`` after each epoch."""
    data = data_of(p, slice(0, p.rows))
    return _each_epoch(lambda: tr.evaluate(model, data, batch_size=p.rows, **p.goals()))


@disturbance
def predict(p: Any, model: Any) -> dict[str, Any]:
    """``predict`` after each batch."""
    return _each_batch(lambda: tr.predict(model, p.x[: p.rows], batch_size=p.rows))


@disturbance
def verbose(p: Any, model: Any) -> dict[str, Any]:
    """Lines of progress."""
    return {"verbose": 2}


@disturbance
def summary(p: Any, model: Any) -> dict[str, Any]:
    """A summary after each epoch."""
    return _each_epoch(lambda: str(model.summary()))


@disturbance
def saving(p: Any, model: Any) -> dict[str, Any]:
    """The model saved after each epoch."""
    return _each_epoch(lambda: gt.save(model, "m.h5", golden=False))


@disturbance
def golden(p: Any, model: Any) -> dict[str, Any]:
    """The model saved with samples, and loaded, after the first epoch."""

    def save(epoch: int, logs: Any) -> None:
        if epoch == 0:
            gt.save(model, "m.h5")
            gt.load("m.h5")

    return {"callbacks": [tr.LambdaCallback(on_epoch_end=save)]}


@disturbance
def weights(p: Any, model: Any) -> dict[str, Any]:
    """The weights saved after each batch."""
    return _each_batch(lambda: model.save_weights("w.h5"))


@disturbance
def copies(p: Any, model: Any) -> dict[str, Any]:
    """A copy that is called after each batch."""

    return _each_batch(lambda: copy.deepcopy(model)(p.x[: p.rows]))


@disturbance
def checkpoint(p: Any, model: Any) -> dict[str, Any]:
    """A checkpoint of the run, within epochs."""
    return {"checkpoint": "run.ck", "save_every": 1}


@disturbance
def callbacks(p: Any, model: Any) -> dict[str, Any]:
    """Callbacks that write and watch."""
    return {
        "callbacks": [
            tr.CSVLogger("log.csv"),
            tr.ModelCheckpoint("w.h5", "loss", save_best_only=True, save_weights_only=True),
            tr.EarlyStopping("loss", patience=99),
            tr.ReduceLROnPlateau("loss", patience=99),
            lambda epoch, logs: None,
        ]
    }


@disturbance
def gradients(p: Any, model: Any) -> dict[str, Any]:
    """A gradient of the outputs after each batch, unless calls change states."""
    if any(getattr(part, "stateful", False) for part in model.submodules):
        return {}

    def take() -> None:
        with gt.GradientTape() as tape:
            outputs = model(p.x[: p.rows])
            loss = sum(gt.sum(y) for y in flatten(outputs))
        tape.gradient(loss, model.trainable_variables)

    return _each_batch(take)


@disturbance
def no_metrics(p: Any, model: Any) -> dict[str, Any]:
    """No metrics."""
    return {"metrics": [], "weighted_metrics": None}


def _run(rng: random.Random) -> Program:
    """Draw a run, now and then of a recurrent layer that keeps its states."""
    if rng.random() < 0.7:
        program = without("constraints")(rng)
        return Program({**program.lines, "rows": Line(str(rng.randint(1, 3)))})
    program = a_run(rng, Options(several=False, weights=False))
    ends = rng.random() < 0.5
    sequences = "" if ends else ", return_sequences=True"
    layer = f"L.{rng.choice(['GRU', 'LSTM', 'SimpleRNN'])}(2{sequences}, stateful=True)"
    lines = {
        "x": "numbers((6, 4, 3), 1)",
        "y": f"numbers({(6, 2) if ends else (6, 4, 2)}, 2)",
        "w": "None",
        "model": f"lambda: L.Sequential([{layer}, L.Dense(2)])",
        "goals": "lambda: dict(loss='mse', metrics=['mae'])",
        "settings": f"lambda: dict({program.lines['settings'].items[0]}, seed=1, batch_size=3, "
        "epochs=2, shuffle=False)",
        "rows": "3",
    }
    return Program({name: Line(text) for name, text in lines.items()})


def _kept(p: Any, disturb: Callable[[Any, Any], dict[str, Any]]) -> Pairs:
    """Losses and weights of a training, with and without other code."""
    found = []
    for make in (disturb, lambda p, model: {}):
        gt.random.set_seed(1)
        model = p.model()
        model(p.x[: p.rows])
        options = {**p.settings(), **p.goals(), "verbose": 0, "compile": False}
        options |= make(p, model)
        run = tr.fit(model, data_of(p), **options)
        values = {name: v.numpy().copy() for name, v in model.named_variables.items()}
        found.append((run.history["loss"], values))
    yield "losses", found[0][0], found[1][0]
    yield "weights", found[0][1], found[1][1]


for _name, _disturb in DISTURBANCES.items():
    relation("undisturbed", _run, exact=True, name=_name)(partial(_kept, disturb=_disturb))
