"""A wrapped layer is the layer: outputs, losses, gradients and states."""

from __future__ import annotations

import copy
import pickle
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import gradtape as gt
from fuzz.training.batches import built, data_of, losses_of
from fuzz.training.drawing import OPTIMIZERS, Options, a_layer, filled, without
from fuzz.training.loaded import stirred
from fuzz.training.parts import Chain, ChainModel, Residual, functional, numbers
from fuzz.training.relations import Line, Pairs, Program, relation
from gradtape import layers as L
from gradtape import training as tr
from gradtape.core.extend import flatten
from gradtape.layers import constrained
from gradtape.layers.base.masks import takes_mask

__all__ = ["CONTAINERS"]

Observed = dict[str, Any]
_OPTIONS = Options(noise=False, constraints=False)


def _weighted(outputs: Any) -> Any:
    """Return a sum of outputs in which every element has another factor."""
    total: Any = 0.0
    for y in flatten(outputs):
        total = total + gt.sum(y * (0.5 + np.arange(np.prod(y.shape)).reshape(y.shape) % 7))
    return total


def observed(call: Callable[[Any], Any], x: Any, *models: Any, times: float = 1.0) -> Observed:
    """Return outputs, losses, gradients and variables of a call.

    Parameters
    ----------
    call
        The function of ``x``.
    x
        The input.
    models
        The modules with its weights.
    times
        A factor of the losses that the call added.
    """
    given = gt.constant(x)
    weights = [v for model in models for v in model.trainable_variables]
    with gt.GradientTape() as tape:
        tape.watch(given)
        y = call(given)
        found = [loss for model in models for loss in losses_of(model)]
        total = times * sum(found, 0.0) + _weighted(y)
    slopes = tape.gradient(total, [given, *weights], unconnected_gradients="zero")
    return {
        "outputs": [part.numpy() for part in flatten(y)],
        "losses": times * float(sum(found, 0.0)),
        "gradients": slopes,
        "variables": [v.numpy().copy() for model in models for v in model.variables],
    }


def alike(got: Observed, want: Observed) -> Pairs:
    """Give the values of two calls in pairs."""
    for what, value in want.items():
        yield what, got[what], value


def _with_weights_of(made: Any, like: Any) -> Any:
    for mine, its in zip(made.variables, like.variables, strict=True):
        mine.assign(its.numpy())
    return made


def _pair(p: Any, x: Any, *wrap: Callable[[Any], Any]) -> list[Any]:
    """Return layers that were wrapped, each with the same weights, and built for ``x``."""
    made: list[Any] = []
    for how in wrap:
        gt.random.set_seed(1)
        model = how(p.layer())
        model(x)
        made.append(_with_weights_of(model, made[0]) if made else stirred(model))
    return made


def one_layer(kind: str, options: Options = _OPTIONS) -> Callable[[random.Random], Program]:
    """Return a function that draws a layer, an input and a mask."""

    def draw(rng: random.Random) -> Program:
        count, seed = rng.randint(2, 4), rng.randint(0, 99)
        lengths = [rng.choice([0, 1, 2, 3, 4, 4]) for _ in range(count)]
        shape = {"rows": (count, 3), "steps": (count, 4, 3), "images": (count, 4, 4, 2)}[kind]
        mask = f"seen({shape}, {lengths})" if kind == "steps" and rng.random() < 0.6 else "None"
        lines = {
            "x": Line(f"numbers({shape}, {seed})"),
            "mask": Line(mask),
            "training": Line(str(rng.random() < 0.5)),
            "layer": Line(f"lambda: {a_layer(rng, kind, options)}"),
        }
        return Program(lines)

    return draw


# -- each step -------------------------------------------------------------------------------------


def _at_steps(rng: random.Random) -> Program:
    while True:
        program = one_layer("steps")(rng)
        text = a_layer(rng, "rows", _OPTIONS)
        if not any(name in text for name in ("Penalised", "Counting")):
            return Program({**program.lines, "layer": Line(f"lambda: {text}")})


@relation("wrapped", _at_steps)
def time_distributed(p: Any) -> Pairs:
    """``TimeDistributed`` is the layer, called on all steps at once."""
    count, steps = p.x.shape[:2]
    flat = p.x.reshape(count * steps, *p.x.shape[2:])
    [layer] = _pair(p, flat, lambda layer: layer)
    [wrapped] = _pair(p, p.x, L.TimeDistributed)
    _with_weights_of(wrapped, layer)
    told = {"mask": p.mask.reshape(-1)} if p.mask is not None and takes_mask(layer) else {}
    options = {"training": p.training} if L.takes_training(layer) else {}

    def merged(x: Any) -> Any:
        y = layer(gt.reshape(x, flat.shape), **options, **told)
        return gt.reshape(y, (count, steps, *y.shape[1:]))

    masked = {} if p.mask is None else {"mask": p.mask}
    got = observed(lambda x: wrapped(x, training=p.training, **masked), p.x, wrapped)
    want = observed(merged, p.x, layer)
    added, penalties = _split(layer)
    want["losses"] = penalties + added * steps
    for what in ("outputs", "variables", "losses"):
        yield what, got[what], want[what]
    if not added:
        yield "gradients", got["gradients"], want["gradients"]


def _split(layer: Any) -> tuple[float, float]:
    """Return what a layer added to the loss in its last call, and the penalties of its weights."""
    added = float(sum(L.added_losses(layer), 0.0))
    return added, float(sum(losses_of(layer), 0.0)) - added


# -- recurrent -------------------------------------------------------------------------------------

_RECURRENT = ("LSTM", "GRU", "SimpleRNN")


def _recurrent(rng: random.Random) -> Program:
    """Draw a recurrent layer and the same as a cell, or two of them."""
    lines = dict(one_layer("steps")(rng).lines)
    options = [filled(rng, " RULES", _OPTIONS).strip(", ")]
    options += [rng.choice(["", "recurrent_regularizer='l2'", "activation='relu'"])]
    inside = ", ".join(text for text in options if text and "activity" not in text)
    around = rng.choice(["", "return_sequences=True"])
    around = ", ".join(x for x in (around, *(o for o in options if "activity" in o)) if x)
    kind, units = rng.choice(_RECURRENT), rng.randint(1, 3)
    around = f", {around}" if around else ""
    whole = f"{units}, {inside}" if inside else f"{units}"
    lines["layer"] = Line(f"lambda: L.{kind}({whole}{around})")
    lines["cell"] = Line(f"lambda: L.RNN(L.{kind}Cell({whole}){around})")
    other = rng.choice(_RECURRENT)
    lines["cells"] = Line(f"lambda: [L.{kind}Cell({whole}), L.{other}Cell(2)]")
    lines["around"] = Line(f"dict({around.strip(', ')})")
    lines["merge"] = Line(repr(rng.choice(["concat", "sum", "mul", "ave", None])))
    return Program(lines)


def _masked(p: Any) -> dict[str, Any]:
    return {} if p.mask is None else {"mask": p.mask}


@relation("wrapped", _recurrent)
def cell(p: Any) -> Pairs:
    """``RNN`` of a cell is the layer of that cell."""
    [layer] = _pair(p, p.x, lambda layer: layer)
    gt.random.set_seed(2)
    wrapped = p.cell()
    wrapped(p.x)
    _with_weights_of(wrapped, layer)
    calls = [observed(partial(m, **_masked(p)), p.x, m) for m in (wrapped, layer)]
    yield from alike(*calls)


@relation("wrapped", _recurrent)
def stacked_cells(p: Any) -> Pairs:
    """``RNN`` of several cells is one ``RNN`` after the other."""
    whole = L.RNN(p.cells(), **p.around)
    first, second = p.cells()
    one, two = L.RNN(first, return_sequences=True), L.RNN(second, **p.around)
    two(one(p.x))
    whole(p.x)
    for mine, its in zip(whole.variables, (*one.variables, *two.variables), strict=True):
        mine.assign(its.numpy())

    def both(x: Any) -> Any:
        return two(one(x, **_masked(p)), **_masked(p))

    yield from alike(
        observed(lambda x: whole(x, **_masked(p)), p.x, whole), observed(both, p.x, one, two)
    )


@relation("wrapped", _recurrent)
def bidirectional(p: Any) -> Pairs:
    """``Bidirectional`` is a layer from each end."""
    wrapped = L.Bidirectional(p.layer(), merge_mode=p.merge)
    wrapped(p.x)
    stirred(wrapped)
    one, two = wrapped.forward_layer, wrapped.backward_layer
    sequences = p.around.get("return_sequences", False)

    def both(x: Any) -> Any:
        a, b = one(x, **_masked(p)), two(x, **_masked(p))
        if sequences:
            b = gt.flip(b, axis=1)
            if p.mask is not None:
                a, b = (gt.where(gt.expand_dims(p.mask, -1), y, 0.0) for y in (a, b))
        if p.merge is None:
            return [a, b]
        if p.merge == "concat":
            return gt.concatenate([a, b], axis=-1)
        return {"sum": a + b, "mul": a * b, "ave": (a + b) * 0.5}[p.merge]

    got = observed(lambda x: wrapped(x, **_masked(p)), p.x, wrapped)
    yield from alike(got, observed(both, p.x, one, two))


# -- containers ------------------------------------------------------------------------------------

#: What holds a layer and computes the same.
CONTAINERS: dict[str, Callable[[Any, Any], Any]] = {
    "sequential": lambda layer, x: L.Sequential([layer]),
    "nested": lambda layer, x: L.Sequential([L.Sequential([layer])]),
    "graph": lambda layer, x: functional(x.shape[1:], [layer]),
    "graph_in_sequential": lambda layer, x: L.Sequential([functional(x.shape[1:], [layer])]),
    "module": lambda layer, x: Chain([layer]),
    "model": lambda layer, x: ChainModel([layer]),
    "layer": lambda layer, x: _Plain(layer),
}


class _Plain(Residual):
    """A layer that is another one."""

    def call(self, x: Any, training: bool = False) -> Any:
        """Call the layer."""
        return self.layer(x)


def _held(p: Any, hold: Callable[[Any, Any], Any]) -> Pairs:
    """A container of one layer is the layer."""
    options = {"training": p.training}
    wrapped, layer = _pair(p, p.x, lambda layer: hold(layer, p.x), lambda layer: layer)
    own = options if L.takes_training(layer) else {}
    told = options if L.takes_training(wrapped) else {}
    calls = ((wrapped, told), (layer, own))
    yield from alike(*(observed(partial(m, **o), p.x, m) for m, o in calls))


def _any_layer(rng: random.Random) -> Program:
    while True:
        program = one_layer(rng.choice(["rows", "steps", "images"]))(rng)
        if "Scale()" not in str(program):
            return program


for _name, _hold in CONTAINERS.items():
    relation("wrapped", _any_layer, name=f"in_{_name}")(partial(_held, hold=_hold))


@relation("wrapped", _any_layer)
def in_function(p: Any) -> Pairs:
    """A traced call, and one that recomputes, is the call."""
    [layer] = _pair(p, p.x, lambda layer: layer)
    options = {"training": p.training} if L.takes_training(layer) else {}
    before = [v.numpy().copy() for v in layer.variables]
    want = observed(lambda x: layer(x, **options), p.x, layer)
    for what, wrap in (("traced", gt.function), ("recomputed", gt.recompute_grad)):
        for variable, value in zip(layer.variables, before, strict=True):
            variable.assign(value)
        call = wrap(lambda x: layer(x, **options))
        if want["losses"] and L.added_losses(layer):
            continue  # these are read inside
        for name, got, right in alike(observed(call, p.x, layer), want):
            yield f"{what}: {name}", got, right


def _functions(rng: random.Random) -> Program:
    lines = dict(one_layer("steps")(rng).lines)
    del lines["layer"]
    lines["f"] = Line(rng.choice(["gt.tanh", "gt.sin", "lambda x: x * x"]))
    lines["rule"] = Line(rng.choice(["'l2'", "L.regularizers.L1(0.3)", "None"]))
    return Program(lines)


@relation("wrapped", _functions)
def functions(p: Any) -> Pairs:
    """``Activation`` and ``Lambda`` are the function, with its penalty and mask."""
    plain = L.Sequential([L.Masking(0.0), L.ActivityRegularization()])
    plain.layers[1].activity_regularizer = L.regularizers.get(p.rule)
    x = p.x if p.mask is None else p.x * p.mask[..., None]
    want = observed(lambda x: plain.layers[1](p.f(x)), x, plain.layers[1])
    rules = {} if p.rule is None else {"activity_regularizer": p.rule}
    for make in (L.Activation, L.Lambda):
        layer = make(p.f, **rules)
        yield from alike(observed(layer, x, layer), want)
    steps = L.TimeDistributed(L.Activation(p.f, **rules))
    yield from alike(observed(steps, x, steps), want)


# -- models ----------------------------------------------------------------------------------------


def _nested(rng: random.Random) -> Program:
    """Draw a run whose model is a chain, and the same with a part of the chain in a model."""
    program = without("own", "several", "constraints", "noise", epochs=1)(rng)
    model = program.lines["model"]
    if "branches" in model.text:
        model = Line("lambda: L.Sequential([ITEMS])", model.items)
    cut = rng.randrange(len(model.items))
    inner = Line("L.Sequential([ITEMS])", model.items[cut:])
    nested = Line(model.text, (*model.items[:cut], str(inner)))
    return Program({**program.lines, "model": model, "other": nested})


@relation("wrapped", _nested)
def in_one_another(p: Any) -> Pairs:
    """A model in a model is its layers: measures, and training."""
    models = []
    for make in (p.other, p.model):
        gt.random.set_seed(1)
        models.append(make())
        models[-1](p.x)
    yield "evaluate", *(tr.evaluate(m, data_of(p), compile=False, **p.goals()) for m in models)
    settings: dict[str, Any] = {"verbose": 0, "compile": False}
    runs = [tr.fit(m, data_of(p), **p.settings(), **settings, **p.goals()) for m in models]
    yield "history", *(run.history for run in runs)
    yield "outputs after training", *(m(p.x) for m in models)


@relation("wrapped", without("several", "noise", epochs=1))
def own_loop(p: Any) -> Pairs:
    """``fit`` is a loop over batches with a tape, losses of layers and constraints."""
    given = p.goals().get("loss", "sparse_categorical_crossentropy")
    settings = {"batch_size": 2, **p.settings(), "optimizer": tr.SGD(0.1, momentum=0.5)}
    gt.random.set_seed(1)
    model = built(p)
    other = copy.deepcopy(model)
    options = {"epochs": 1, "shuffle": False, "verbose": 0, "compile": False, "loss": given}
    run = tr.fit(model, data_of(p), **{**settings, **options})
    loss, optimizer = tr.losses.get(given), tr.SGD(0.1, momentum=0.5)
    loss = loss if isinstance(loss, tr.losses.Loss) else _MeanOf(loss)
    told = {"training": True} if L.takes_training(other) else {}
    size, total = settings["batch_size"], 0.0
    for start in range(0, len(p.x), size):
        x, y, *w = data_of(p, slice(start, start + size))
        with gt.GradientTape() as tape:
            value = loss(y, other(x, **told), *w) + sum(losses_of(other), 0.0)
        variables = other.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(value, variables), variables, strict=True))
        for variable, rule in constrained(other):
            variable.assign(rule(variable.value))
        total += float(value) * len(x)
    if p.w is None and L.mask_of(model(p.x)) is None and isinstance(given, str):
        yield "loss", run.history["loss"][0], total / len(p.x)
    yield "weights", dict(model.named_variables), dict(other.named_variables)


def _steps(rng: random.Random) -> Program:
    shapes = tuple(rng.choice(["(2, 3)", "(3,)", "()", "(1, 2)"]) for _ in range(rng.randint(1, 3)))
    lines = {
        "optimizer": Line(f"lambda: {rng.choice(OPTIMIZERS)}"),
        "shapes": Line("[ITEMS]", shapes),
        "count": Line(str(rng.randint(1, 4))),
    }
    return Program(lines)


@relation("wrapped", _steps)
def optimizer_steps(p: Any) -> Pairs:
    """Traced steps, steps of a copy and steps with variables in another order are the steps."""

    def carried(optimizer: Any, variables: list[Any]) -> tuple[Any, list[Any]]:
        return copy.deepcopy((optimizer, variables))

    def pickled(optimizer: Any, variables: list[Any]) -> tuple[Any, list[Any]]:
        return pickle.loads(pickle.dumps((optimizer, variables)))

    def run(order: int = 1, carry: Any = None, wrap: Any = None) -> list[Any]:
        optimizer = p.optimizer()
        variables = [gt.Variable(numbers(shape, i)) for i, shape in enumerate(p.shapes)]
        for step in range(p.count):
            slopes = [gt.constant(numbers(s, 7 * step + i)) for i, s in enumerate(p.shapes)]
            pairs = list(zip(slopes, variables, strict=True))[::order]
            if wrap is None:
                optimizer.apply_gradients(pairs)
            else:
                wrap(optimizer, pairs)
            if carry is not None:
                optimizer, variables = carry(optimizer, variables)
        return variables

    def traced(optimizer: Any, pairs: Any) -> None:
        variables = [variable for _, variable in pairs]
        step = gt.function(lambda *gs: optimizer.apply_gradients(zip(gs, variables, strict=True)))
        step(*(slope for slope, _ in pairs))

    want = run()
    yield "in another order", run(order=-1), want
    yield "copied", run(carry=carried), want
    yield "pickled", run(carry=pickled), want
    yield "traced", run(wrap=traced), want


class _MeanOf(tr.losses.Loss):
    """The mean of a function with a value for each example."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def call(self, y: Any, p: Any) -> Any:
        """Return the values."""
        return self.function(y, p)


@relation("wrapped", without(epochs=1))
def compiled(p: Any) -> Pairs:
    """Compiled steps are the steps."""
    runs = []
    for compile in (True, False):
        gt.random.set_seed(1)
        model = built(p)
        settings = {**p.settings(), "optimizer": tr.SGD(0.05), "verbose": 0, "compile": compile}
        history = tr.fit(model, data_of(p), **settings, **p.goals()).history
        runs.append((history, dict(model.named_variables)))
    yield "history", runs[0][0], runs[1][0]
    yield "variables", runs[0][1], runs[1][1]
