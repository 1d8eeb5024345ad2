"""The shipped layers, each with the shape of an example, and arrays to call them with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gradtape as gt

__all__ = ["BATCHES", "LAYERS", "batches", "draws", "slopes_of", "training_step"]

BATCHES = (1, 3, 7)
rng = np.random.default_rng(0)


def draws(*shape: int) -> NDArray[Any]:
    return rng.normal(size=shape).astype(np.float32)


def batches(*shape: int) -> list[tuple[NDArray[Any]]]:
    return [(draws(n, *shape),) for n in BATCHES]


g = gt.layers
LAYERS: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "Activation": (lambda: g.Activation("softplus"), (4,)),
    "BatchNorm": (lambda: g.BatchNorm(), (4,)),
    "Dense": (lambda: g.Dense(5, activation="gelu"), (4,)),
    "Dropout": (lambda: g.Dropout(0.5), (4,)),
    "Flatten": (lambda: g.Flatten(), (3, 2)),
    "Sequential": (
        lambda: g.Sequential([g.Flatten(), g.Dense(6, "relu"), g.BatchNorm(), g.Dense(3)]),
        (2, 5),
    ),
}


def slopes_of(layer: Any) -> Callable[[Any], Any]:
    """Return the gradients of a loss of a layer, for its input and all that trains."""

    def slopes(x: Any) -> Any:
        with gt.GradientTape() as tape:
            tape.watch(x)
            loss = gt.mean(gt.square(layer(x)) + layer(x))
        return tape.gradient(loss, [x, *layer.trainable_variables])

    return slopes


@gt.custom_gradient
def clipped(x: Any) -> Any:
    return gt.stop_gradient(x), lambda d: gt.clip(d, -0.05, 0.05)


def training_step() -> tuple[Any, Callable[..., Any]]:
    """Return a model, and a step of Adam that trains it through a custom gradient."""
    gt.random.set_seed(0)
    model = g.Sequential([g.Dense(8, use_bias=False), g.BatchNorm(), g.Dense(3, "relu")])
    model(draws(2, 4))
    optimizer = gt.training.Adam(1e-2)

    def step(x: Any, y: Any = None) -> Any:
        with gt.GradientTape() as tape:
            logits = clipped(model(x, training=True))
            if y is None:
                loss = gt.mean(gt.nn.relu(logits))
            else:
                loss = gt.mean(
                    gt.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
                )
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return {"loss": loss}

    return model, step
