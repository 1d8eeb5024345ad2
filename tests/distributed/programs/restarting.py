"""Runs that Ctrl-C ends within an epoch, and runs that continue from their checkpoints."""

from __future__ import annotations

import os
import shutil
import signal
from typing import Any

import numpy as np
from checking import FOLDER, RANK, SIZE, alike, apart, group

import gradtape as gt
from training import Steps, X, Y, network


class Press(gt.training.Callback):
    """Ctrl-C on the last rank, in the second epoch."""

    def on_epoch_begin(self, epoch: int) -> None:
        self.epoch = epoch

    def on_train_batch_end(self, batch: int, logs: Any) -> None:
        if (self.epoch, batch) == (1, 2) and RANK == SIZE - 1:
            os.kill(os.getpid(), signal.SIGINT)


def fitted(kind: str, *callbacks: Any, **options: Any) -> Any:
    model, steps = network(True, True, True), Steps()
    data = gt.data.Dataset.from_tensor_slices((X, Y)).shuffle(100).batch(32)
    history = gt.training.fit(
        model,
        (X, Y) if kind == "arrays" else data,
        epochs=3,
        batch_size=32,
        seed=3,
        verbose=False,
        distributed=group,
        callbacks=[steps, *callbacks],
        **options,
    )
    return [v.numpy() for v in model.variables], history, steps.logs


def begun() -> dict[str, Any]:
    """Begin runs that stop, with arrays and with a pipeline."""
    found = {}
    for kind in ("arrays", "pipeline"):
        path = str(FOLDER / f"{kind}.h5")
        weights, history, logs = fitted(kind, Press(), checkpoint=path)
        found[kind] = {"interrupted": history.interrupted, "steps": len(logs)}
        found[kind]["alike"] = alike(weights)
    return found


def resumed(kind: str) -> dict[str, Any]:
    """Continue a run, and compare it with one that was not interrupted."""
    path = FOLDER / f"{kind} on {SIZE}.h5"
    if RANK == 0:
        shutil.copy(FOLDER / f"{kind}.h5", path)
    group.barrier()
    weights, history, logs = fitted(kind, checkpoint=str(path), resume=True)
    whole, known, all_logs = fitted(kind)
    return {
        "steps": len(logs),
        "bits": all((a == b).all() for a, b in zip(weights, whole, strict=True)),
        "history": history.history == known.history,
        "losses": max(abs(a["loss"] / b["loss"] - 1) for a, b in zip(logs, all_logs, strict=True)),
        "epochs": apart(np.array(history.history["loss"]), np.array(known.history["loss"])),
        "alike": alike(weights),
    }


def resumed_arrays() -> dict[str, Any]:
    return resumed("arrays")


def resumed_pipeline() -> dict[str, Any]:
    return resumed("pipeline")
