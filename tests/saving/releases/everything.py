"""Every layer, optimizer, metric, schedule, loss and name once, in files by family."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as gt
from gradtape import layers, training

from .contents import Arrays, Case, Holder, below, given, measured, random, run, values

# -- layers ----------------------------------------------------------------------------------------

#: The layers of ``layer_cases`` by family. A layer is in the first whose words its name contains.
GROUPS = {
    "normalisation": ("Normalization",),
    "attention": ("Attention",),
    "random": ("Dropout", "GaussianNoise"),
    "recurrent": ("RNN", "LSTM", "GRU", "Bidirectional", "TimeDistributed"),
    "pooling": ("Pooling",),
    "convolutions": ("Conv",),
    "shapes": ("Padding", "Cropping", "UpSampling", "Flatten", "Reshape", "Permute", "Repeat"),
    "merging": ("Add", "Subtract", "Multiply", "Average", "imum", "Concatenate", "Dot"),
    "plain": ("",),
}
#: Families that compute something else in training.
IN_TRAINING = ("random", "normalisation")


def group_of(name: str) -> str:
    """Return the family of a layer."""
    return next(group for group, words in GROUPS.items() if any(word in name for word in words))


class Layers(Holder):
    """Layers by name, and a graph of all of them."""

    def __call__(self, inputs: dict[str, Any]) -> Any:
        """Call each layer with its inputs."""
        return {name: layer(inputs[name]) for name, layer in self.parts.items()}


def layers_of(group: str) -> Case:
    """Return the case of a family; the layers are made as the suite has them."""

    def cases() -> dict[str, Any]:
        from layer_cases import FAMILIES  # for writing only: reading does without

        return {name: case for name, case in FAMILIES.items() if group_of(name) == group}

    def make() -> gt.Module:
        made = Layers({name: case.make() for name, case in cases().items()})
        made({name: case.inputs(2) for name, case in cases().items()})
        return made

    def inputs() -> Arrays:
        found = {}
        for name, case in cases().items():
            xs = case.inputs(2, seed=1)
            found |= {f"{name}/{i}": x for i, x in enumerate(xs if case.several else [xs])}
        return found

    def results(module: Any, inputs: Arrays) -> Arrays:
        found, together = {}, {}
        for name, layer in module.parts.items():
            xs = given(name, inputs)
            together[name] = xs[0] if len(xs) == 1 else xs
            found |= below(f"{name}/call", run(layer, xs))
            if group in IN_TRAINING:
                found |= below(f"{name}/training", run(layer, xs, training=True))
                found |= below(f"{name}/after", values(layer))
        graph = module(together)
        return found | {f"{name}/graph": graph[name].numpy() for name in graph}

    return Case(make, inputs, results)


def named() -> gt.Module:
    """Make a layer for each name that layers take as text."""
    from gradtape.layers.plugin import gradtape_names  # for writing only

    parts = {}
    for kind, names in gradtape_names().items():
        argument = kind if kind == "activation" else f"kernel_{kind}"
        for name in names:
            parts[f"{kind} {name}"] = layers.Dense(3, **{argument: name})
    for layer in parts.values():
        layer(random(0, 2, 3))
    return Holder(parts)


def named_results(module: Any, inputs: Arrays) -> Arrays:
    """Call each layer, add its losses, and make a step, which constraints follow."""
    (x,), found = given("x", inputs), {}
    for name, layer in module.parts.items():
        found |= below(name, run(layer, [x]))
        with gt.GradientTape() as tape:
            loss = gt.sum(layer(x) ** 2) + sum(layer.losses)
        found[f"{name}/loss"] = loss.numpy()
        training.SGD(0.1).minimize(loss, layer.trainable_variables, tape)
        found |= below(f"{name}/step", values(layer))
    return found


# -- optimizers ------------------------------------------------------------------------------------

OPTIMIZERS: dict[str, Any] = {
    "SGD": lambda: training.SGD(0.1),
    "SGD momentum": lambda: training.SGD(0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "Adam": lambda: training.Adam(0.1, amsgrad=True),
    "Adam average": lambda: training.Adam(0.1, use_ema=True, ema_momentum=0.8),
    "Adam parts": lambda: training.Adam(0.1, gradient_accumulation_steps=3, clipvalue=0.5),
    "AdamW": lambda: training.AdamW(0.1, weight_decay=0.02),
    "Adamax": lambda: training.Adamax(0.1),
    "Nadam": lambda: training.Nadam(0.1),
    "Adagrad": lambda: training.Adagrad(0.1),
    "Adadelta": lambda: training.Adadelta(0.1),
    "RMSprop": lambda: training.RMSprop(0.1, momentum=0.5, centered=True, global_clipnorm=1.0),
    "Lion": lambda: training.Lion(0.1),
    "LBFGS": lambda: training.LBFGS(0.5, max_iterations=2, line_search=None),
    "LossScaleOptimizer": lambda: gt.mixed_precision.LossScaleOptimizer(training.SGD(0.1)),
}


class Fitted(gt.Module):
    """Variables and their optimizer, after some steps."""

    def __init__(self, optimizer: Any) -> None:
        super().__init__()
        self.w = gt.Variable(random(5, 3, 2), name="w")
        self.b = gt.Variable(random(6, 2), name="b")
        self.optimizer = optimizer
        descend(self, random(7, 4, 3), 2)


def descend(module: Any, x: Any, steps: int) -> None:
    """Make steps towards a minimum."""

    def loss() -> Any:
        return gt.mean((gt.tanh(gt.constant(x) @ module.w) + module.b - 0.5) ** 2)

    for _ in range(steps):
        module.optimizer.minimize(loss, [module.w, module.b])


def optimizers() -> gt.Module:
    """Make one of each, with its state."""
    return Holder({name: Fitted(make()) for name, make in OPTIMIZERS.items()})


def optimized(module: Any, inputs: Arrays) -> Arrays:
    """Make two more steps with each."""
    found = {}
    for name, part in module.parts.items():
        for i in (3, 4):
            descend(part, inputs["x"], 1)
            found |= {f"{name}/{i}/w": part.w.numpy(), f"{name}/{i}/b": part.b.numpy()}
    return found


# -- metrics, schedules and losses -----------------------------------------------------------------


def scored() -> Arrays:
    """Return labels and predictions of the kinds that metrics take, 20 of each."""
    numbers = np.random.default_rng(0)
    classes = numbers.integers(0, 4, 20)
    binary = numbers.integers(0, 2, 20).astype("float32")
    real = numbers.random((20, 2)).astype("float32")
    shares = numbers.random((20, 4)).astype("float32")
    return {
        "binary": binary,
        "score": np.clip(binary * 0.3 + numbers.random(20) * 0.7, 0, 1).astype("float32"),
        "classes": classes,
        "guesses": numbers.integers(0, 4, 20),
        "hot": np.eye(4, dtype="float32")[classes],
        "shares": shares / shares.sum(-1, keepdims=True),
        "real": real,
        "near": (real + 0.3 * numbers.random((20, 2))).astype("float32"),
    }


def _metric(name: str, **settings: Any) -> Any:
    return getattr(training.metrics, name)(**settings)


#: The metrics by the labels and the predictions that they take.
METRICS: dict[str, dict[str, dict[str, Any]]] = {
    "binary score": {
        "TruePositives": {},
        "FalsePositives": {},
        "TrueNegatives": {},
        "FalseNegatives": {},
        "Precision": {},
        "Recall": {},
        "AUC": {},
        "BinaryAccuracy": {},
        "BinaryIoU": {},
        "BinaryCrossentropy": {"from_logits": False},
        "SensitivityAtSpecificity": {"specificity": 0.6},
        "SpecificityAtSensitivity": {"sensitivity": 0.6},
        "PrecisionAtRecall": {"recall": 0.6},
        "RecallAtPrecision": {"precision": 0.6},
    },
    "hot shares": {
        "F1Score": {"average": "weighted"},
        "FBetaScore": {"beta": 2.0, "threshold": 0.4},
        "CategoricalAccuracy": {},
        "CategoricalCrossentropy": {"from_logits": False},
    },
    "classes shares": {
        "SparseCategoricalAccuracy": {},
        "SparseTopKCategoricalAccuracy": {"k": 2},
        "SparseCategoricalCrossentropy": {"from_logits": False},
    },
    "classes guesses": {
        "Accuracy": {},
        "ConfusionMatrix": {"num_classes": 4},
        "MeanIoU": {"num_classes": 4},
        "IoU": {"num_classes": 4, "target_class_ids": [0, 2]},
    },
    "real near": {
        "R2Score": {},
        "CosineSimilarity": {},
        "MeanSquaredError": {},
        "RootMeanSquaredError": {},
        "MeanAbsoluteError": {},
    },
    "score": {"Mean": {}, "Sum": {}},
}


def metrics() -> gt.Module:
    """Make one of each, which has seen half of the data."""
    inputs, parts = scored(), {}
    for kinds, settings in METRICS.items():
        for name, options in settings.items():
            part = parts[f"{kinds}/{name}"] = _metric(name, **options)
            part.update_state(*(inputs[kind][:10] for kind in kinds.split()))
    return Holder(parts)


def measured_on(module: Any, inputs: Arrays) -> Arrays:
    """Return the results for the first half, and for all, and for the second half alone."""
    found = {}
    for name, metric in module.parts.items():
        second = [inputs[kind][10:] for kind in name.partition("/")[0].split()]
        found[f"{name}/half"] = metric.result().numpy()
        metric.update_state(*second)
        found[f"{name}/whole"] = metric.result().numpy()
        metric.reset_state()
        metric.update_state(*second)
        found[f"{name}/other half"] = metric.result().numpy()
    return found


def schedules() -> gt.Module:
    """Make one of each."""
    of = training.schedules
    return Holder(
        {
            "CosineDecay": of.CosineDecay(0.1, 10, alpha=0.1),
            "CosineDecayRestarts": of.CosineDecayRestarts(0.1, 4),
            "ExponentialDecay": of.ExponentialDecay(0.1, 4, 0.5, staircase=True),
            "InverseTimeDecay": of.InverseTimeDecay(0.1, 4, 0.5),
            "OneCycle": of.OneCycle(0.1, 20),
            "PiecewiseConstantDecay": of.PiecewiseConstantDecay([3, 9], [0.1, 0.05, 0.01]),
            "PolynomialDecay": of.PolynomialDecay(0.1, 10, power=2.0),
        }
    )


def scheduled(module: Any, inputs: Arrays) -> Arrays:
    """Return the learning rates of some steps."""
    rates = {
        name: [float(schedule(int(i))) for i in inputs["steps"]]
        for name, schedule in module.parts.items()
    }
    return {name: np.array(found) for name, found in rates.items()}


class Losses(gt.Module):
    """The losses as graphs: as objects they are no part of a file."""

    @gt.function(input_signature=[gt.TensorSpec([None, 4])] * 2)
    def of_shares(self, y: Any, p: Any) -> Any:
        """Compute the losses of two arrays of one shape."""
        names = [
            "BinaryCrossentropy", "BinaryFocalCrossentropy", "CategoricalCrossentropy",
            "CategoricalFocalCrossentropy", "CategoricalHinge", "CosineSimilarity", "Dice", "Hinge",
            "Huber", "KLDivergence", "LogCosh", "MeanAbsoluteError", "MeanSquaredError",
            "MeanSquaredLogarithmicError", "Poisson", "SquaredHinge", "Tversky",
        ]  # fmt: skip
        return {name: getattr(training.losses, name)()(y, p) for name in names}

    @gt.function(input_signature=[gt.TensorSpec([None], "int64"), gt.TensorSpec([None, 4])])
    def of_classes(self, y: Any, p: Any) -> Any:
        """Compute the loss of classes."""
        return training.losses.SparseCategoricalCrossentropy()(y, p)


def lost(module: Any, inputs: Arrays) -> Arrays:
    """Compute all losses, and the gradient of their weighted sum."""
    y, classes, p = (gt.constant(inputs[name]) for name in ("hot", "classes", "shares"))
    found = below("shares", measured(lambda: module.of_shares(y, p), {"p": p}))
    return found | below("classes", measured(lambda: module.of_classes(classes, p), {"p": p}))


CASES: dict[str, Case] = {
    **{f"layers-{group}": layers_of(group) for group in GROUPS},
    "names": Case(named, lambda: {"x/0": random(8, 4, 3)}, named_results),
    "optimizers": Case(optimizers, lambda: {"x": random(9, 4, 3)}, optimized),
    "metrics": Case(metrics, scored, measured_on),
    "schedules": Case(schedules, lambda: {"steps": np.arange(0, 24, 3)}, scheduled),
    "losses": Case(Losses, scored, lost),
}
