"""A loaded model is the model: outputs, losses, gradients and training."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import gradtape as gt
from fuzz.training.batches import built, data_of, losses_of
from fuzz.training.drawing import without
from fuzz.training.relations import Pairs, relation
from gradtape import layers as L
from gradtape import training as tr
from gradtape.core.extend import flatten

__all__ = ["CARRIERS", "hands_masks_on", "stirred"]


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
    if not hands_masks_on(other, model, p):
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


def hands_masks_on(other: Any, model: Any, p: Any) -> bool:
    """Return whether results have masks alike; a file holds none, so that padding counts there."""
    masks = [[L.mask_of(y) is None for y in flatten(m(p.x))] for m in (other, model)]
    return masks[0] == masks[1]


def _with_optimizer(p: Any, carry: Callable[[Any], Any]) -> Pairs:
    """A model and its optimizer go on after they were carried."""
    both: Any = gt.Module()
    both.model = built(p)
    both.optimizer = p.settings().get("optimizer") or tr.Adam(0.05)
    settings = {**p.settings(), "verbose": 0, "compile": False, "epochs": 1}
    tr.fit(both.model, data_of(p), **{**settings, "optimizer": both.optimizer}, **p.goals())
    other = carry(both)
    yield "state", _numbers(other.optimizer), _numbers(both.optimizer)
    if not hands_masks_on(other.model, both.model, p):
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


_BRING: dict[str, Callable[[Any], Any]] = {
    "optimizer_saved": _in_file,
    "optimizer_copied": copy.deepcopy,
    "optimizer_pickled": lambda both: pickle.loads(pickle.dumps(both)),
}
for _name, _bring in _BRING.items():
    relation("loaded", without("noise", epochs=1), name=_name)(
        partial(_with_optimizer, carry=_bring)
    )


def _trainable(model: Any) -> list[str]:
    kept = {id(v) for v in model.trainable_variables}
    return [name for name, v in model.named_variables.items() if id(v) in kept]


for _name, _carry in CARRIERS.items():
    relation("loaded", without(), name=_name)(partial(_alike, carry=_carry))
