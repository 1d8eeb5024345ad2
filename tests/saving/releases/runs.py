"""What a file is not read back from by itself: weights for a model, and a checkpoint for a run.

The programs here stay as they are, as those of users do.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np

import gradtape as gt
from gradtape import layers, training

from .contents import Arrays, random, run, values

WEIGHTS = ("weights.h5", "weights.safetensors")
CHECKPOINT = "checkpoint.h5"


def network(seed: int) -> Any:
    """Make a model whose weights depend on a number."""
    init = layers.initializers.GlorotUniform
    return layers.Sequential(
        [
            layers.Conv1D(3, 2, activation="tanh", kernel_initializer=init(seed=seed)),
            layers.BatchNormalization(beta_initializer="ones" if seed else "zeros"),
            layers.GRU(3, kernel_initializer=init(seed=seed + 1)),
            layers.Dense(2, kernel_initializer=init(seed=seed + 2)),
        ]
    )


def write_weights(folder: Path) -> None:
    """Write the weights of a model, in each format."""
    model = network(1)
    model(random(0, 2, 5, 3))
    for name in WEIGHTS:
        gt.save_weights(model, folder / name)


def weights_results(path: Path) -> Arrays:
    """Return what a model with other weights computes once it has those of a file."""
    model = network(0)
    x = gt.constant(random(1, 2, 5, 3))
    model(x)
    report = gt.load_weights(path, model)
    assert not report.missing
    return run(model, [x])


class Stops:
    """Ends a run in the middle of its second epoch, as an accident would."""

    def __init__(self) -> None:
        self.batches = 0

    def on_train_batch_end(self, batch: int, logs: Any) -> None:
        """Count; the eighth batch is the last."""
        self.batches += 1
        if self.batches == 8:
            raise InterruptedError


def fit(path: Path, *, resume: bool, callbacks: Any = ()) -> Arrays:
    """Train for three epochs, with dropout and in a random order; return what came out."""
    init = layers.initializers.GlorotUniform
    model = layers.Sequential(
        [
            layers.Dense(6, "tanh", kernel_initializer=init(seed=1)),
            layers.Dropout(0.2, seed=2),
            layers.Dense(2, kernel_initializer=init(seed=3)),
        ]
    )
    history = training.fit(
        model,
        (random(3, 40, 4), random(4, 40, 2)),
        loss="mse",
        optimizer=training.Adam(0.05),
        metrics=["mae"],
        epochs=3,
        batch_size=8,
        seed=1,
        verbose=False,
        checkpoint=str(path),
        save_every=2,
        resume=resume,
        callbacks=list(callbacks),
    )
    means = {name: np.array(v, "float32") for name, v in history.history.items()}
    return {**means, **values(model)}


def write_checkpoint(path: Path) -> None:
    """Write the checkpoint of a run that did not end."""
    with contextlib.suppress(InterruptedError):
        fit(path, resume=False, callbacks=[Stops()])
