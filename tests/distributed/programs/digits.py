"""Digits by all ranks, and by each alone: how far the losses are apart after each step."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from checking import alike, apart, group, tell

import gradtape as gt
from training import Steps

(X, Y), (HELD_X, HELD_Y) = gt.datasets.load_digits()
EPOCHS, BATCH = 5, 64
EVERY = [(False, False), (False, True), (True, False), (True, True)]
CASES = EVERY if "--all" in sys.argv else [(False, False), (True, True)]


def network(norm: bool, drop: bool) -> Any:
    gt.random.set_seed(1)
    layers: list[Any] = []
    for units in (128, 64):
        # a bias before the mean is taken off has a gradient of rounding alone, which Adam scales up
        layers.append(gt.layers.Dense(units, use_bias=not norm))
        layers += [gt.layers.BatchNorm(synchronized=True)] if norm else []
        layers.append(gt.layers.Activation("relu"))
        layers += [gt.layers.Dropout(0.2)] if drop else []
    return gt.layers.Sequential([*layers, gt.layers.Dense(10)])


def of_steps(means: list[float]) -> Any:
    """Return the loss of each batch, of the means over an epoch's examples so far."""
    totals = np.reshape(means, (EPOCHS, -1))
    counts = np.minimum(np.arange(1, totals.shape[1] + 1) * BATCH, len(X))
    totals = np.diff(totals * counts, axis=1, prepend=0.0)
    return (totals / np.diff(counts, prepend=0)).ravel()


def curves() -> dict[str, Any]:
    """The largest relative differences: of a step's loss, and of what epochs measured."""
    found = {}
    optimizers = {
        "SGD": lambda: gt.training.SGD(0.1, momentum=0.9),
        "Adam": lambda: gt.training.Adam(1e-3),
    }
    if "--all" not in sys.argv:
        del optimizers["SGD"]
    for name, optimizer in optimizers.items():
        for norm, drop in CASES:
            results = []
            for distributed in (group, None):
                model, steps = network(norm, drop), Steps()
                history = gt.training.fit(
                    model,
                    (X, Y),
                    epochs=EPOCHS,
                    batch_size=BATCH,
                    seed=0,
                    verbose=False,
                    optimizer=optimizer(),
                    validation_data=(HELD_X, HELD_Y),
                    distributed=distributed,
                    callbacks=[steps],
                )
                losses = of_steps([x["loss"] for x in steps.logs])
                results.append((losses, history.history, [v.numpy() for v in model.variables]))
            (losses, history, weights), (reference, known, kept) = results
            off = np.abs(losses / reference - 1)
            case = name + (" norm" if norm else "") + (" dropout" if drop else "")
            found[case] = {
                "first epoch": off[: len(off) // EPOCHS].max(),
                "steps": off.max(),
                "epochs": max(apart(history[k], known[k]) for k in known if "loss" in k),
                "accuracy": apart(history["val_accuracy"], known["val_accuracy"]),
                "weights": max(apart(a, b) for a, b in zip(weights, kept, strict=True)),
                "alike": alike(weights),
                "number of steps": len(losses),
                "final": known["val_loss"][-1],
            }
    return found


if __name__ == "__main__":
    tell([curves])
    sys.exit(0)
