"""Digits by as many ranks as there are: the loss of each step, and what epochs measured."""

from __future__ import annotations

from typing import Any

import numpy as np
from checking import alike, group

import gradtape as gt
from training import Steps

(X, Y), HELD_OUT = gt.datasets.load_digits()
EPOCHS, BATCH = 5, 128
CASES = {
    "Adam": ("adam", False, False),
    "Adam norm dropout": ("adam", True, True),
}


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
    """What was measured, by case."""
    found = {}
    for case, (name, norm, drop) in CASES.items():
        model, steps = network(norm, drop), Steps()
        kinds = {"sgd": gt.training.SGD(0.1, momentum=0.9), "adam": gt.training.Adam(1e-3)}
        history = gt.training.fit(
            model,
            (X, Y),
            epochs=EPOCHS,
            batch_size=BATCH,
            seed=0,
            verbose=False,
            optimizer=kinds[name],
            validation_data=HELD_OUT,
            distributed=group,
            callbacks=[steps],
        )
        weights = [v.numpy() for v in model.variables]
        found[case] = {
            "steps": of_steps([x["loss"] for x in steps.logs]).tolist(),
            "history": history.history,
            "weights": np.concatenate([w.ravel() for w in weights]).tolist(),
            "alike": alike(weights),
        }
    return found
