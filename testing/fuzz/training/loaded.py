"""A loaded model is the model: outputs, losses, gradients and training."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

import gradtape as gt
from gradtape import layers as L
from gradtape import training as tr
from gradtape.core.extend import flatten

from .batches import built, data_of, losses_of
from .drawing import Options, a_run, without
from .relations import Line, Pairs, Program, relation

__all__ = ["CARRIERS", "of_keras", "stirred"]


def stirred(model: Any) -> Any:
    """Return the model with other values in its variables, so that none has its initial value."""
    for variable in model.variables:
        if variable.dtype.kind == "f":
            variable.assign(np.asarray(variable.numpy()) * np.float32(1.1) + np.float32(0.01))
    return model


def _another(p: Any) -> Any:
    gt.random.set_seed(7)
    return built(p)


def _saved(p: Any, model: Any) -> Any:
    gt.save(model, "m.h5", golden=False)
    return gt.load("m.h5")


def _twice(p: Any, model: Any) -> Any:
    gt.save(_saved(p, model), "again.h5", golden=False)
    return gt.load("again.h5")


def _weights(ending: str) -> Callable[[Any, Any], Any]:
    def carry(p: Any, model: Any) -> Any:
        model.save_weights(f"w.{ending}")
        other = _another(p)
        other.load_weights(f"w.{ending}")
        return other

    return carry


def _checkpoint(p: Any, model: Any) -> Any:
    other = _another(p)
    tr.Checkpoint(model=model).save("c.h5")
    tr.Checkpoint(model=other).restore("c.h5")
    return other


#: Functions of a program's objects and its model, which return the same model.
CARRIERS: dict[str, Callable[[Any, Any], Any]] = {
    "saved": _saved,
    "saved_twice": _twice,
    "copied": lambda p, model: copy.deepcopy(model),
    "pickled": lambda p, model: pickle.loads(pickle.dumps(model)),
    "weights": _weights("h5"),
    "safetensors": _weights("safetensors"),
    "checkpoint": _checkpoint,
}


def _gradients(model: Any, p: Any) -> dict[str, Any]:
    with gt.GradientTape() as tape:
        total = sum(gt.sum(y * y) for y in flatten(model(p.x)))
        total = total + sum(losses_of(model))
    named = {n: v for n, v in model.named_variables.items() if v.trainable}
    found = tape.gradient(total, list(named.values()), unconnected_gradients="zero")
    return dict(zip(named, found, strict=True))


def _alike(p: Any, carry: Callable[[Any, Any], Any]) -> Pairs:
    """What a model and the one that carries its state on do and hold."""
    model = stirred(built(p))
    other = carry(p, model)
    yield "outputs", other(p.x), model(p.x)
    yield "losses", sum(losses_of(other), 0.0), sum(losses_of(model), 0.0)
    yield "variables", dict(other.named_variables), dict(model.named_variables)
    yield "trainable", _trainable(other), _trainable(model)
    yield "gradients", _gradients(other, p), _gradients(model, p)
    if not _hands_masks_on(other, model, p):
        return
    measures = [tr.evaluate(m, data_of(p), compile=False, **p.goals()) for m in (other, model)]
    yield "evaluate", *measures
    runs = []
    for each in (other, model):
        gt.random.set_seed(3)
        settings = {**p.settings(), "optimizer": tr.SGD(0.05), "verbose": 0, "compile": False}
        runs.append(tr.fit(each, data_of(p), **settings, **p.goals()).history)
    yield "history of a training", *runs
    yield "trained variables", dict(other.named_variables), dict(model.named_variables)


def _hands_masks_on(other: Any, model: Any, p: Any) -> bool:
    """Return whether results have masks alike; a file holds none, so that padding counts there."""
    masks = [[L.mask_of(y) is None for y in flatten(m(p.x))] for m in (other, model)]
    return masks[0] == masks[1]


def _with_optimizer(p: Any, carry: Callable[[Any], Any]) -> Pairs:
    """A model and its optimizer go on after they were carried."""
    both = gt.Module()
    both.model = built(p)
    both.optimizer = p.settings().get("optimizer") or tr.Adam(0.05)
    settings = {**p.settings(), "verbose": 0, "compile": False, "epochs": 1}
    tr.fit(both.model, data_of(p), **{**settings, "optimizer": both.optimizer}, **p.goals())
    other = carry(both)
    yield "state", _numbers(other.optimizer), _numbers(both.optimizer)
    if not _hands_masks_on(other.model, both.model, p):
        return
    for each in (other, both):
        gt.random.set_seed(3)
        options = {**settings, "optimizer": each.optimizer}
        tr.fit(each.model, data_of(p), **options, **p.goals())
    yield "trained variables", dict(other.model.named_variables), dict(both.model.named_variables)
    yield "state after training", _numbers(other.optimizer), _numbers(both.optimizer)


def _numbers(optimizer: Any) -> list[Any]:
    return [v.numpy() for v in optimizer.variables]


def _in_file(both: Any) -> Any:
    gt.save(both, "both.h5", golden=False)
    return gt.load("both.h5")


for _name, _bring in {
    "optimizer_saved": _in_file,
    "optimizer_copied": copy.deepcopy,
    "optimizer_pickled": lambda both: pickle.loads(pickle.dumps(both)),
}.items():
    relation("loaded", without("noise", epochs=1), name=_name)(
        lambda p, bring=_bring: _with_optimizer(p, bring)
    )


def _trainable(model: Any) -> list[str]:
    kept = {id(v) for v in model.trainable_variables}
    return [name for name, v in model.named_variables.items() if id(v) in kept]


for _name, _carry in CARRIERS.items():
    relation("loaded", without(), name=_name)(lambda p, carry=_carry: _alike(p, carry))


# -- compat ----------------------------------------------------------------------------------------

#: Names there, where they are not in ``tf.keras.layers``; the longest first.
_ELSEWHERE = {
    "L.regularizers": "tf.keras.regularizers",
    "L.Sequential": "tf.keras.Sequential",
    "L.Input": "tf.keras.Input",
    "tr.": "tf.keras.optimizers.",
    "L.BatchNorm(": "tf.keras.layers.BatchNormalization(",
    "L.": "tf.keras.layers.",
}


def of_keras(rng: Any) -> Program:
    """Draw a run of a model of compat's layers."""
    while True:
        program = a_run(
            rng,
            Options(own=False, several=False, weights=False, constraints=False, tasks=("numbers",)),
        )
        text = str(program.lines["model"])
        if "functional" not in text and "branches" not in text and "()" not in text:
            break
    lines = dict(program.lines)
    lines["goals"] = Line("lambda: dict(loss='mse', metrics=['mae'])")
    for name in ("model", "settings"):
        line = lines[name]
        for here, there in _ELSEWHERE.items():
            items = tuple(item.replace(here, there) for item in line.items)
            line = Line(line.text.replace(here, there), items)
        lines[name] = line
    return Program(lines)


def _compiled(model: Any, p: Any) -> Any:
    model.compile(**p.goals(), optimizer=p.settings().get("optimizer", "sgd"), run_eagerly=True)
    return model


@relation("batches", of_keras)
def compat_sizes(p: Any) -> Pairs:
    """Compat's ``evaluate``, ``predict`` and history do not depend on the size of batches."""
    model = built(p)
    model.compile(**p.goals(), optimizer=gt.training.SGD(0.0))
    want = model.evaluate(p.x, p.y, batch_size=len(p.x), verbose=0)
    for size in (1, 2, len(p.x) + 1):
        got = model.evaluate(p.x, p.y, batch_size=size, verbose=0)
        yield f"evaluate, batch_size={size}", got, want
        yield "predict", model.predict(p.x, batch_size=size, verbose=0), model(p.x)
    validation = {"validation_data": (p.x, p.y), "validation_batch_size": 2}
    history = model.fit(p.x, p.y, batch_size=2, verbose=0, **validation).history
    if not _varies(model):
        yield "validation", history["val_loss"][-1], want[0]


def _varies(model: Any) -> bool:
    """Return whether training changes the model, although its rate is 0."""
    return any(not variable.trainable for variable in model.variables)


@relation("loaded", of_keras)
def compat(p: Any) -> Pairs:
    """Compat's ``save`` and ``load_model``."""
    models = gt.compat.tensorflow.keras.models
    model = _compiled(stirred(built(p)), p)
    model.save("m.keras")
    other = _compiled(models.load_model("m.keras"), p)
    yield "predict", other.predict(p.x, verbose=0), model.predict(p.x, verbose=0)
    yield "weights", other.get_weights(), model.get_weights()
    if not _hands_masks_on(other, model, p):
        return
    yield "evaluate", *(m.evaluate(p.x, p.y, verbose=0) for m in (other, model))
    options = {"epochs": 1, "shuffle": False, "verbose": 0, "batch_size": 2}
    histories = []
    for each in (other, model):
        gt.random.set_seed(3)
        histories.append(each.fit(p.x, p.y, **options).history)
    yield "history", *histories
    yield "trained weights", other.get_weights(), model.get_weights()
    yield "layers", *([layer.name for layer in m.layers] for m in (other, model))
