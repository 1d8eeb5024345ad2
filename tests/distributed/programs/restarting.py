"""A run that Ctrl-C ends within an epoch, and one that goes on from its checkpoint.

``restarting.py begin FILE`` and ``restarting.py resume FILE``.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import numpy as np
from checking import RANK, SIZE, alike, apart, group, tell

import gradtape as gt
from training import Steps, X, Y, network

MODE, PATH = sys.argv[1:3]


class Press(gt.training.Callback):
    """Ctrl-C on the last rank, in the second epoch."""

    def on_epoch_begin(self, epoch: int) -> None:
        self.epoch = epoch

    def on_train_batch_end(self, batch: int, logs: Any) -> None:
        if (self.epoch, batch) == (1, 2) and RANK == SIZE - 1:
            os.kill(os.getpid(), signal.SIGINT)


def fitted(*callbacks: Any, **options: Any) -> Any:
    model, steps = network(True, True, True), Steps()
    data = gt.data.Dataset.from_tensor_slices((X, Y)).shuffle(100).batch(32)
    history = gt.training.fit(
        model,
        (X, Y) if "arrays" in sys.argv else data,
        epochs=3,
        batch_size=32,
        seed=3,
        verbose=False,
        distributed=group,
        callbacks=[steps, *callbacks],
        **options,
    )
    return [v.numpy() for v in model.variables], history, steps.logs


def run() -> dict[str, Any]:
    """Begin, or go on and compare with a run that was not interrupted."""
    if MODE == "begin":
        weights, history, logs = fitted(Press(), checkpoint=PATH)
        return {"interrupted": history.interrupted, "steps": len(logs), "alike": alike(weights)}
    weights, history, logs = fitted(checkpoint=PATH, resume=True)
    whole, known, all_logs = fitted()
    return {
        "steps": len(logs),
        "bits": all((a == b).all() for a, b in zip(weights, whole, strict=True)),
        "history": history.history == known.history,
        "losses": max(abs(a["loss"] / b["loss"] - 1) for a, b in zip(logs, all_logs, strict=True)),
        "epochs": apart(np.array(history.history["loss"]), np.array(known.history["loss"])),
        "alike": alike(weights),
    }


if __name__ == "__main__":
    tell([run])
