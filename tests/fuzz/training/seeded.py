"""One seed, one run: in the same process, compiled or not, natively and in compat."""

from __future__ import annotations

from typing import Any

import gradtape as gt
from fuzz.training.batches import built, data_of
from fuzz.training.drawing import without
from fuzz.training.relations import Pairs, relation
from gradtape import training as tr

__all__: list[str] = []


def _fit(p: Any, **options: Any) -> tuple[Any, dict[str, Any]]:
    model = built(p)
    settings = {**p.settings(), "verbose": 0, "compile": False, **options}
    history = tr.fit(model, data_of(p), **settings, **p.goals()).history
    return history, {name: v.numpy() for name, v in model.named_variables.items()}


def _beside(one: Any, two: Any) -> Pairs:
    yield "history", one[0], two[0]
    yield "weights", one[1], two[1]


@relation("seeded", without(), exact=True)
def by_fit(p: Any) -> Pairs:
    """``fit(seed=)`` repeats a run of a model with the same weights."""
    runs = []
    for draws in (0, 5):
        gt.random.set_seed(1)
        model = built(p)
        gt.random.normal((draws,))
        settings = {**p.settings(), "verbose": 0, "compile": False}
        history = tr.fit(model, data_of(p), **settings, **p.goals()).history
        runs.append((history, {n: v.numpy() for n, v in model.named_variables.items()}))
    yield from _beside(*runs)


@relation("seeded", without(), exact=True)
def by_set_seed(p: Any) -> Pairs:
    """``gt.random.set_seed`` repeats initial weights, noise and, without shuffling, the run."""
    runs = []
    for _ in range(2):
        gt.random.set_seed(4)
        runs.append(_fit(p, seed=None, shuffle=False))
    yield from _beside(*runs)


@relation("seeded", without(epochs=1))
def compiled(p: Any) -> Pairs:
    """A compiled run with shuffling and noise is the run."""
    runs = []
    for compile in (True, False):
        gt.random.set_seed(4)
        runs.append(_fit(p, optimizer=tr.SGD(0.05), shuffle=True, compile=compile))
    yield from _beside(*runs)


@relation("seeded", without("several"), exact=True)
def validated(p: Any) -> Pairs:
    """``validation_split`` and its measures repeat."""
    runs = []
    for _ in range(2):
        gt.random.set_seed(4)
        runs.append(_fit(p, validation_split=0.34))
    yield from _beside(*runs)


@relation("seeded", without(epochs=1), exact=True)
def pipelines(p: Any) -> Pairs:
    """A shuffled pipeline repeats with the seed of ``fit``."""
    if isinstance(p.y, dict):
        return
    runs = []
    for _ in range(2):
        gt.random.set_seed(4)
        model = built(p)
        data = gt.data.Dataset.from_tensor_slices(data_of(p)).shuffle(9).batch(2)
        settings = {**p.settings(), "verbose": 0, "compile": False}
        settings.pop("batch_size", None)
        history = tr.fit(model, data, **settings, **p.goals()).history
        runs.append((history, {n: v.numpy() for n, v in model.named_variables.items()}))
    yield from _beside(*runs)
