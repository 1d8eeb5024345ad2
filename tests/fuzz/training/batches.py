"""Batches do not matter: measures are those of all examples, however they are cut."""

from __future__ import annotations

import copy
import random
from itertools import pairwise
from typing import Any

import numpy as np

from fuzz.training.drawing import without
from fuzz.training.relations import Line, Pairs, Program, relation
from gradtape import training as tr
from gradtape.layers import added_losses, mask_of, penalties

__all__ = ["built", "data_of", "losses_of"]

measured = without("constraints")
plain = without("constraints", "noise", "norms", epochs=1)


def data_of(p: Any, rows: Any = slice(None)) -> tuple[Any, ...]:
    """Return the data of a program, or some rows of them."""

    def of(part: Any) -> Any:
        return {k: v[rows] for k, v in part.items()} if isinstance(part, dict) else part[rows]

    return (of(p.x), of(p.y), *(() if p.w is None else (of(p.w),)))


def built(p: Any) -> Any:
    """Return the model with its weights."""
    model = p.model()
    model(p.x)
    return model


def losses_of(model: Any) -> list[Any]:
    """Return the penalties of weights, and what layers added in the last call."""
    return [rule(variable.value) for variable, rule in penalties(model)] + added_losses(model)


def _count(p: Any) -> int:
    return len(p.x)


@relation("batches", measured)
def sizes(p: Any) -> Pairs:
    """``evaluate`` gives the same for every size of batches."""
    model, count = built(p), _count(p)
    want = tr.evaluate(model, data_of(p), batch_size=count, compile=False, **p.goals())
    for size in (1, 2, count - 1):
        got = tr.evaluate(model, data_of(p), batch_size=size, compile=False, **p.goals())
        yield f"evaluate, batch_size={size}", got, want


@relation("batches", measured)
def uneven(p: Any) -> Pairs:
    """``evaluate`` gives the same for batches of any sizes, in any order."""
    model, count = built(p), _count(p)
    want = tr.evaluate(model, data_of(p), batch_size=count, compile=False, **p.goals())
    for cuts in ((1,), (2, count - 1)):
        edges = [0, *cuts, count]
        rows = [slice(a, b) for a, b in pairwise(edges) if a < b]
        batches = [data_of(p, part) for part in reversed(rows)]
        yield f"cut at {cuts}", tr.evaluate(model, batches, compile=False, **p.goals()), want


@relation("batches", plain)
def history(p: Any) -> Pairs:
    """Training at rate 0 reports what ``evaluate`` returns, and so does validation."""
    settings = {**p.settings(), "optimizer": tr.SGD(0.0), "verbose": 0, "compile": False}
    model = built(p)
    run = tr.fit(model, data_of(p), validation_data=data_of(p), **settings, **p.goals())
    want = tr.evaluate(model, data_of(p), batch_size=_count(p), compile=False, **p.goals())
    for name, value in want.items():
        yield f"history of {name}", run.history[name][-1], value
        yield f"validation of {name}", run.history[f"val_{name}"][-1], value


@relation("batches", measured)
def predictions(p: Any) -> Pairs:
    """``predict`` gives what the model gives, for every size of batches."""
    model = built(p)
    want = model(p.x)
    for size in (1, 2, _count(p) + 1):
        yield f"predict, batch_size={size}", tr.predict(model, p.x, batch_size=size), want


@relation("batches", without("constraints", "counts"))
def doubled(p: Any) -> Pairs:
    """Every example twice gives the same means."""
    model = built(p)
    rows = np.repeat(np.arange(_count(p)), 2)
    want = tr.evaluate(model, data_of(p), compile=False, **p.goals())
    yield (
        "twice",
        tr.evaluate(model, data_of(p, rows), batch_size=3, compile=False, **p.goals()),
        want,
    )


@relation("batches", without("constraints", "counts", "several", "weights"))
def weighted_alike(p: Any) -> Pairs:
    """Weights of 1 change nothing, and weights of 2 double the loss of the labels."""
    model = built(p)
    added = sum(float(loss) for loss in losses_of(model))
    want = tr.evaluate(model, (p.x, p.y), compile=False, **p.goals())
    for factor in (1.0, 2.0):
        data = (p.x, p.y, np.full(_count(p), factor, "float32"))
        got = tr.evaluate(model, data, batch_size=2, compile=False, **p.goals())
        loss = factor * (want["loss"] - added) + added
        yield f"weights of {factor}", got, {**want, "loss": loss}


@relation(
    "batches",
    without(
        *("constraints", "noise", "norms", "several"),
        kinds=("rows", "images"),
        tasks=("classes",),
        epochs=1,
    ),
)
def class_weights(p: Any) -> Pairs:
    """``class_weight`` is ``sample_weight`` by class."""
    settings = {**p.settings(), "optimizer": tr.SGD(0.0), "verbose": 0, "compile": False}
    model = built(p)
    table = np.array([0.5, 2.0, 1.0], "float32")
    by_class = {0: 0.5, 1: 2.0}
    x, y = data_of(p)[:2]
    given = () if p.w is None else (p.w,)
    got = tr.fit(model, (x, y, *given), class_weight=by_class, **settings, **p.goals())
    product = table[y] * (1.0 if p.w is None else p.w)
    want = tr.evaluate(model, (x, y, product), compile=False, **p.goals())
    for name, value in want.items():
        yield name, got.history[name][-1], value


_METRICS = (
    *("tr.metrics.AUC()", "tr.metrics.AUC(curve='PR')", "tr.metrics.Precision()"),
    *("tr.metrics.Recall([0.3, 0.7])", "tr.metrics.TruePositives()", "tr.metrics.F1Score()"),
    *("tr.metrics.F1Score('micro', 0.5)", "tr.metrics.FBetaScore('macro', 2.0, 0.4)"),
    *("tr.metrics.PrecisionAtRecall(0.5)", "tr.metrics.SensitivityAtSpecificity(0.5)"),
    *("tr.metrics.BinaryAccuracy(0.4)", "tr.metrics.BinaryIoU()", "tr.metrics.R2Score()"),
    *("tr.metrics.MeanSquaredError()", "tr.metrics.RootMeanSquaredError()"),
    *("tr.metrics.BinaryCrossentropy()", "tr.metrics.CosineSimilarity()"),
)


def _of_metric(rng: random.Random) -> Program:
    shape, seed = (rng.randint(2, 9), rng.randint(1, 3)), rng.randint(0, 99)
    lines = {
        "y": f"classes({shape}, 2, {seed}).astype('float32')",
        "p": f"1 / (1 + np.exp(-numbers({shape}, {seed})))",
        "w": f"weights({shape[:1]}, {seed})" if rng.random() < 0.5 else "None",
        "metric": f"lambda: {rng.choice(_METRICS)}",
        "cuts": str(sorted(rng.sample(range(shape[0]), rng.randint(1, 2)))),
    }
    return Program({name: Line(text) for name, text in lines.items()})


@relation("batches", _of_metric)
def metrics(p: Any) -> Pairs:
    """A metric of batches is that of their examples, and a copy continues from its state."""
    given = [p.y, p.p] if p.w is None else [p.y, p.p, p.w]
    whole, parts = p.metric(), p.metric()
    whole.update_state(*given)
    for a, b in pairwise([0, *p.cuts, len(p.y)]):
        parts = copy.deepcopy(parts)
        parts.update_state(*(part[a:b] for part in given))
    yield "result", parts.result(), whole.result()
    whole.reset_state()
    whole.update_state(*given)
    yield "after a reset", whole.result(), parts.result()


@relation("batches", without("constraints", "several", "own", kinds=("steps", "words"), masks=True))
def padding(p: Any) -> Pairs:
    """Labels of padding do not count."""
    model = built(p)
    mask = mask_of(model(p.x))
    if mask is None:
        return
    real = np.asarray(mask.numpy()).reshape(mask.shape + (1,) * (p.y.ndim - 2))
    other = np.where(real, p.y, np.roll(p.y, 1, axis=-1)).astype(p.y.dtype)
    want = tr.evaluate(model, data_of(p), batch_size=2, compile=False, **p.goals())
    data = (p.x, other, *data_of(p)[2:])
    yield "other labels", tr.evaluate(model, data, batch_size=2, compile=False, **p.goals()), want
