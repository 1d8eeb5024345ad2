"""Draws programs: models, data, losses, metrics and settings from tables of expressions.

In an expression, ``N`` becomes a number of units, ``F`` an activation, ``RULES`` regularizers and
constraints, ``STEPS`` the option of a recurrent layer that keeps the steps.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from fuzz.training.relations import Line, Program

__all__ = ["a_layer", "a_model", "a_run", "without"]

# -- tables ----------------------------------------------------------------------------------------

ACTIVATIONS = ("None", "'relu'", "'tanh'", "'sigmoid'", "gt.sin")
REGULARIZERS = (
    "kernel_regularizer='l2'",
    "kernel_regularizer='l1'",
    "kernel_regularizer=L.regularizers.L1L2(0.02, 0.03)",
    "activity_regularizer='l2'",
    "activity_regularizer=L.regularizers.L1(0.05)",
    "bias_regularizer='l2', bias_initializer='random_normal'",
)
CONSTRAINTS = ("kernel_constraint='max_norm'", "kernel_constraint='unit_norm'", "trainable=False")

#: Layers of any input, of steps, and of images; each keeps the kind of its input.
ANY = (
    "L.Dense(N, F RULES)",
    "L.Dense(N, F RULES)",
    "L.LayerNormalization()",
    "L.Activation(F)",
    "L.Lambda(lambda x: x * 0.5 + 0.1)",
    "L.PReLU()",
    "L.ActivityRegularization(l2=0.03)",
    "Penalised()",
    "Shift()",
    "Scale()",
    "Residual(L.Lambda(gt.tanh))",
    "L.EinsumDense('...a,ab->...b', (None, N), bias_axes='b', activation=F)",
    "L.LeakyReLU(0.2)",
)
NORMS = ("L.BatchNorm()", "L.BatchNorm(momentum=0.5)", "Counting()")
NOISE = (
    "L.Dropout(0.3)",
    "L.GaussianNoise(0.2)",
    "L.Dropout(0.3, seed=1)",
    "L.GaussianDropout(0.2)",
)
RECURRENT = ("L.LSTM(N STEPS RULES)", "L.GRU(N STEPS RULES)", "L.SimpleRNN(N STEPS RULES)")
WRAPPED = (
    "L.RNN([L.GRUCell(N), L.LSTMCell(N)] STEPS)",
    "L.Bidirectional(L.GRU(N STEPS RULES))",
    "L.Bidirectional(L.SimpleRNN(N STEPS), merge_mode='sum')",
)
STEPS = (
    *RECURRENT,
    *WRAPPED,
    "L.TimeDistributed(L.Dense(N, F RULES))",
    "L.TimeDistributed(L.Sequential([L.Dense(N, F RULES), L.LayerNormalization()]))",
    "L.TimeDistributed(L.Lambda(gt.tanh))",
    "L.Conv1D(N, 2, padding='causal' RULES)",
    "L.Bidirectional(L.RNN(L.LSTMCell(N, recurrent_regularizer='l2') STEPS))",
    "L.RNN(L.GRUCell(N) STEPS, go_backwards=True)",
    "SelfAttention()",
)
STEPS_NORMS = ("L.TimeDistributed(L.BatchNorm())",)
IMAGES = (
    "L.Conv2D(N, 2 RULES)",
    "L.SeparableConv2D(N, 2, padding='same')",
    "L.Conv2DTranspose(N, 2)",
    "L.UpSampling2D()",
    "L.DepthwiseConv2D(2)",
    "L.MaxPooling2D(2, 1)",
)
#: Layers that leave one vector for each example.
ENDS = {
    "steps": (*RECURRENT, *WRAPPED, "L.GlobalAveragePooling1D()", "L.Flatten()"),
    "images": ("L.Flatten()", "L.GlobalAveragePooling2D()"),
}

#: How layers are put together. Own modules and models pass no masks on.
CONTAINERS = ("L.Sequential([ITEMS])", "functional(INPUT, [ITEMS])", "branches(INPUT, [ITEMS])")
OWN_CONTAINERS = ("Chain([ITEMS])", "ChainModel([ITEMS])")


class Task(NamedTuple):
    """Labels of a shape and a seed, the number of outputs, losses and metrics for them."""

    labels: str
    units: int
    losses: tuple[str, ...]
    metrics: tuple[str, ...]


TASKS = {
    "numbers": Task(
        "numbers((SHAPE, 2), 5)",
        2,
        (
            *("'mse'", "'mae'", "'huber'", "'log_cosh'", "own_loss", "OwnLoss()"),
            *("tr.losses.MeanSquaredError()", "tr.losses.Huber(0.5, 'mean')"),
        ),
        (
            *("'mae'", "'mse'", "own_loss", "tr.metrics.RootMeanSquaredError()"),
            *("tr.metrics.MeanAbsoluteError()", "tr.metrics.MeanMetricWrapper(own_loss, 'own')"),
            *("tr.metrics.R2Score()", "tr.metrics.CosineSimilarity()"),
        ),
    ),
    "classes": Task(
        "classes((SHAPE,), 3, 5)",
        3,
        (
            "'sparse_categorical_crossentropy'",
            "tr.losses.SparseCategoricalCrossentropy()",
            "tr.losses.SparseCategoricalCrossentropy(ignore_class=0)",
        ),
        (
            *("'accuracy'", "'sparse_categorical_accuracy'"),
            *("tr.metrics.SparseCategoricalAccuracy()",),
            "tr.metrics.SparseCategoricalCrossentropy(from_logits=True)",
            "tr.metrics.SparseTopKCategoricalAccuracy(2)",
        ),
    ),
    "ignored": Task(
        "classes((SHAPE,), 3, 5, -1)",
        3,
        ("tr.losses.SparseCategoricalCrossentropy(ignore_class=-1)",),
        (),
    ),
    "onehot": Task(
        "onehot((SHAPE,), 3, 5)",
        3,
        (
            "'categorical_crossentropy'",
            "tr.losses.CategoricalCrossentropy(label_smoothing=0.1)",
            "tr.losses.CategoricalFocalCrossentropy()",
            "tr.losses.CategoricalHinge()",
            "tr.losses.CosineSimilarity()",
        ),
        (
            *("'accuracy'", "'categorical_accuracy'", "tr.metrics.CategoricalAccuracy()"),
            *("tr.metrics.CosineSimilarity()", "tr.metrics.AUC(from_logits=True)"),
        ),
    ),
    "binary": Task(
        "classes((SHAPE, 1), 2, 5).astype('float32')",
        1,
        (
            "'binary_crossentropy'",
            "tr.losses.BinaryCrossentropy(label_smoothing=0.2)",
            "tr.losses.BinaryFocalCrossentropy(apply_class_balancing=True)",
            "tr.losses.SquaredHinge()",
        ),
        (
            *("'accuracy'", "tr.metrics.BinaryAccuracy(0.0)", "'binary_accuracy'"),
            *("tr.metrics.Precision(thresholds=0.0)", "tr.metrics.Recall(thresholds=0.0)"),
            *("tr.metrics.AUC(from_logits=True)", "tr.metrics.TruePositives(thresholds=0.0)"),
            "tr.metrics.BinaryCrossentropy(from_logits=True)",
        ),
    ),
}

OPTIMIZERS = (
    *("tr.SGD(0.05)", "tr.SGD(0.05, momentum=0.9)", "tr.Adam(0.02)", "tr.RMSprop(0.01)"),
    *("tr.AdamW(0.02, weight_decay=0.1)", "tr.Adagrad(0.1)", "tr.Nadam(0.02)", "tr.Lion(0.01)"),
    *("tr.SGD(0.05, clipnorm=0.5)", "tr.Adam(0.02, use_ema=True)", "tr.Adadelta(0.5)"),
    *("tr.SGD(0.05, global_clipnorm=0.5, nesterov=True, momentum=0.5)", "tr.Adamax(0.02)"),
    *("tr.RMSprop(0.01, centered=True, momentum=0.5)", "tr.Adam(0.02, weight_decay=0.1)"),
    *("tr.SGD(tr.schedules.ExponentialDecay(0.1, 3, 0.5))", "tr.Adam(0.02, amsgrad=True)"),
    "tr.SGD(0.05, gradient_accumulation_steps=2)",
)

# -- drawing ---------------------------------------------------------------------------------------


class Options(NamedTuple):
    """What may be drawn."""

    noise: bool = True  # layers that draw numbers, in training
    norms: bool = True  # layers whose results differ in training, and that have a state
    constraints: bool = True
    own: bool = True  # own modules and models around the layers
    several: bool = True  # several outputs
    kinds: tuple[str, ...] = ("rows", "rows", "steps", "steps", "words", "images")
    tasks: tuple[str, ...] = tuple(TASKS)
    weights: bool = True
    counts: bool = True  # metrics that count examples, where others are means
    masks: bool | None = None  # whether masks reach the output
    epochs: int = 2


def without(*names: str, **options: object) -> Callable[[random.Random], Program]:
    """Return :func:`a_run` with options, the named ones off."""
    chosen = Options(**{**dict.fromkeys(names, False), **options})  # type: ignore[arg-type]
    return lambda rng: a_run(rng, chosen)


def filled(rng: random.Random, text: str, options: Options, keeps: bool = True) -> str:
    """Return a template as an expression."""
    rules = REGULARIZERS + (CONSTRAINTS if options.constraints else ())
    found: dict[str, Callable[[], str]] = {
        "N": lambda: str(rng.randint(1, 3)),
        "F": lambda: rng.choice(ACTIVATIONS),
        "RULES": lambda: f", {rng.choice(rules)}" if rng.random() < 0.45 else "",
        "STEPS": lambda: ", return_sequences=True" if keeps else "",
    }
    return re.sub(r" ?\b(N|F|RULES|STEPS)\b", lambda m: _spaced(m[0], found[m[1]]()), text)


def _spaced(text: str, by: str) -> str:
    return (" " if text[0] == " " and by[:1] != "," and by else "") + by


def a_layer(rng: random.Random, kind: str, options: Options) -> str:
    """Draw a layer that keeps the kind of its input."""
    found: list[str] = [*ANY]
    found += NORMS if options.norms else ()
    found += NOISE if options.noise else ()
    if kind == "steps":
        found += [*STEPS, *(STEPS_NORMS if options.norms else ())]
    if kind == "images":
        found += [*IMAGES, *IMAGES]
    return filled(rng, rng.choice(found), options)


def some_layers(rng: random.Random, kind: str, ends: bool, options: Options) -> list[str]:
    """Draw layers; those that end with vectors if ``ends``."""
    count = rng.choice([0, 1, 1, 2, 3])
    found = [a_layer(rng, kind, options) for _ in range(count)]
    if ends and kind in ENDS:
        found.append(filled(rng, rng.choice(ENDS[kind]), options, keeps=False))
        found += [a_layer(rng, "rows", options) for _ in range(rng.choice([0, 0, 1]))]
    if rng.random() < 0.25 and found:
        start = rng.randrange(len(found))
        nested = ", ".join(found[start:])
        found[start:] = [f"L.Sequential([{nested}])"]
    return found


def a_model(
    rng: random.Random, kind: str, ends: bool, last: Sequence[str], options: Options
) -> Line:
    """Draw a model; ``last`` is the expression of its last layer, or several by name."""
    front = {"words": ["L.Embedding(5, 3, mask_zero=True)"], "steps": ["L.Masking(0.0)"]}
    masks = kind == "words" or options.masks or rng.random() < 0.6
    layers = (front.get(kind, []) if masks else []) + some_layers(
        rng, "steps" if kind == "words" else kind, ends, options
    )
    shape = {"rows": "(3,)", "steps": "(4, 3)", "words": "(4,)", "images": "(4, 4, 2)"}[kind]
    dtype = ", 'int32'" if kind == "words" else ""
    if len(last) > 1:
        layers = [layer.replace("Scale()", "Shift()") for layer in layers]
        return Line(f"lambda: heads({shape}, [ITEMS]{dtype}, {', '.join(last)})", tuple(layers))
    text = rng.choice(CONTAINERS + (OWN_CONTAINERS if options.own else ()))
    if "branches" in text and len(layers) < 2:
        text = CONTAINERS[0]
    if "INPUT" in text and "Scale()" in str(layers):  # its variable would be a constant there
        text = CONTAINERS[0]
    text = text.replace("INPUT, [ITEMS]", f"{shape}, [ITEMS]{dtype}")
    return Line(f"lambda: {text}", (*layers, *last))


def a_run(rng: random.Random, options: Options = Options()) -> Program:  # noqa: B008
    """Draw a model, data, goals and settings."""
    kind = rng.choice(options.kinds)
    ends = kind in ("rows", "images") or (not options.masks and rng.random() < 0.4)
    count = rng.randint(3, 6)
    seed = rng.randint(0, 99)
    shape = f"{count}" if ends else f"{count}, 4"
    names = ["a", "b"] if options.several and rng.random() < 0.15 else [""]
    tasks = {name: TASKS[rng.choice(options.tasks)] for name in names}
    rule = filled(rng, " RULES", options).strip()
    last = [
        f"{n}=L.Dense({t.units})" if n else f"L.Dense({t.units}{rule})" for n, t in tasks.items()
    ]
    lines = {
        "x": Line(_inputs(rng, kind, count, seed)),
        "y": Line(_of_each(tasks, lambda t: t.labels).replace("SHAPE", shape)),
        "w": Line(_weights(rng, count, ends) if options.weights and "" in names else "None"),
        "model": a_model(rng, kind, ends, last, options),
    }
    goals = [f"loss={_of_each(tasks, lambda t: rng.choice(t.losses))}"]
    metrics = {name: _few(rng, task.metrics, options) for name, task in tasks.items()}
    for i, what in enumerate(("metrics", "weighted_metrics")):
        drawn = {name: f"[{', '.join(each[i::2])}]" for name, each in metrics.items()}
        goals += [f"{what}={_joined(drawn)}"] if rng.random() < 0.6 else []
    lines["goals"] = Line("lambda: dict(ITEMS)", tuple(goals))
    settings = [
        f"optimizer={rng.choice(OPTIMIZERS)}",
        f"epochs={rng.randint(1, options.epochs)}",
        f"batch_size={rng.randint(1, count)}",
    ]
    settings += ["shuffle=False"] if rng.random() < 0.3 else []
    if "" not in tasks and rng.random() < 0.5:
        goals.append("loss_weights=dict(b=0.3)")
    lines["settings"] = Line(f"lambda: dict(seed={seed}, ITEMS)", tuple(settings))
    return Program(lines)


def _of_each(tasks: dict[str, Task], text: Callable[[Task], str]) -> str:
    return _joined({name: text(task) for name, task in tasks.items()})


def _joined(texts: dict[str, str]) -> str:
    """Return what there is for the only output, or a dictionary for several."""
    if "" in texts:
        return texts[""]
    return f"dict({', '.join(f'{name}={text}' for name, text in texts.items())})"


def _few(rng: random.Random, found: Sequence[str], options: Options) -> list[str]:
    """Draw metrics whose names differ."""
    found = [text for text in found if options.counts or "Positives" not in text]
    by_name = {re.sub(r"\W|_", "", text.split("metrics.")[-1]).lower()[:14]: text for text in found}
    return rng.sample([*by_name.values()], min(len(by_name), rng.randint(0, 3)))


def _inputs(rng: random.Random, kind: str, count: int, seed: int) -> str:
    if kind in ("rows", "images"):
        return f"numbers({(count, 3) if kind == 'rows' else (count, 4, 4, 2)}, {seed})"
    lengths = [rng.choice([0, 0, 1, 2, 3, 4, 4]) for _ in range(count)]
    lengths[rng.randrange(count)] = 4
    shape = (count, 4) if kind == "words" else (count, 4, 3)
    return f"{'words' if kind == 'words' else 'padded'}({shape}, {lengths}, {seed})"


def _weights(rng: random.Random, count: int, ends: bool) -> str:
    if rng.random() < 0.55:
        return "None"
    by_step = not ends and rng.random() < 0.4
    return f"weights({(count, 4) if by_step else (count,)}, {rng.randint(0, 99)})"
