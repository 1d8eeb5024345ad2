"""A job that trains, or goes on from its folder's checkpoint: ``restartable.py FOLDER EPOCHS``."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

import gradtape as gt


class Slow:
    """Steps that take a while, so that a kill may fall into any of them."""

    def on_train_batch_end(self, batch: int, logs: object) -> None:
        time.sleep(0.02)


def train(folder: Path, epochs: int) -> None:
    """Train with the other ranks, and write what came of it."""
    group = gt.distributed.init()
    rng = np.random.default_rng(1)
    x = rng.normal(size=(203, 6)).astype("float32")
    y = (x[:, 0] * x[:, 1] > 0).astype(int)
    gt.random.set_seed(0)
    layers = gt.layers
    model = layers.Sequential([layers.Dense(16, "tanh"), layers.Dropout(0.2), layers.Dense(2)])
    optimizer = gt.training.Adam(0.02)
    history = gt.training.fit(
        model,
        (x, y),
        epochs=epochs,
        batch_size=24,
        optimizer=optimizer,
        seed=4,
        verbose=False,
        checkpoint=gt.training.CheckpointManager(
            gt.training.Checkpoint(model=model, optimizer=optimizer), folder, keep=2
        ),
        save_every=3,
        resume=True,
        distributed=group,
        callbacks=[Slow()],
    )
    if group.rank == 0:
        arrays = {name.replace("/", "."): x.numpy() for name, x in model.named_variables.items()}
        np.savez(folder / "result.npz", loss=history.history["loss"], **arrays)


if __name__ == "__main__":
    train(Path(sys.argv[1]), int(sys.argv[2]))
