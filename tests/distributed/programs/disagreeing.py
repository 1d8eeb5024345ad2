"""Rank 1 does something else than the others: what each of them is told."""

from __future__ import annotations

from typing import Any

import numpy as np
from checking import RANK, group, refusal

import gradtape as gt

layers = gt.layers


def step_of(activation: str, rate: float, factor: float):
    """Return a data-parallel step of a model of its own."""
    gt.random.set_seed(0)
    model = layers.Sequential(
        [layers.Dense(8, activation), layers.Dropout(rate), layers.Dense(3, name="last")]
    )
    optimizer = gt.training.SGD(0.1)

    @group.data_parallel
    def step(x, y):
        with gt.GradientTape() as tape:
            loss = factor * gt.mean(gt.square(model(x, training=True) - y))
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    return step, model


def batch(rows: int = 4):
    """Return examples of this rank."""
    rng = np.random.default_rng(RANK)
    return rng.normal(size=(rows, 5)).astype("float32"), np.ones((rows, 3), "float32")


def disagreeing() -> dict[str, Any]:
    """What ranks are told, by the case; all continue after each."""
    odd = RANK == 1
    step, model = step_of("relu", 0.1, 1.0)

    @group.data_parallel
    def inside(x):
        return gt.mean(group.all_reduce(x))

    inside(gt.ones((4, 3)))
    found = {"uneven": refusal(lambda: step(*batch(4 - odd)))}  # other sizes are no other code
    x, y = batch(4 - odd)
    before = [variable.numpy() for variable in model.trainable_variables]
    found["nan"] = refusal(lambda: step(x * np.float32("nan") if odd else x, y))
    for old, variable in zip(before, model.trainable_variables, strict=True):
        assert np.array_equal(old, variable.numpy()), "a weight was assigned"
    others = {
        "op": ("tanh" if odd else "relu", 0.1, 1.0),
        "number": ("relu", 0.2 if odd else 0.1, 1.0),
        "factor": ("relu", 0.1, 2.0 if odd else 1.0),
    }
    for name, settings in others.items():
        found[name] = refusal(lambda settings=settings: step_of(*settings)[0](*batch()))
    collective = group.all_gather if odd else group.all_reduce
    found["collective"] = refusal(lambda: collective(gt.ones(2)))
    found["shape"] = refusal(lambda: group.all_reduce(gt.ones(3 if odd else 2)))
    found["large"] = refusal(lambda: group.all_reduce(gt.ones(3000 if odd else 2)))
    other = step_of("relu", 0.1, 1.0)[0]
    found["step"] = refusal(lambda: group.all_reduce(gt.ones(2)) if odd else other(*batch()))
    for _ in range(2):
        other(*batch())
    found["method"] = refusal(
        lambda: gt.distributed.broadcast_variables(model) if odd else group.all_reduce(gt.ones(2))
    )
    found["inside"] = refusal(lambda: inside(gt.ones((2 + 2 * odd, 3))))
    inside(gt.ones((4, 3)))
    # of the same messages: the gradients of one would be added to those of the other
    found["two steps"] = refusal(lambda: (other if odd else step)(*batch()))
    found["last"] = refusal(lambda: step(*batch(4 - odd)))
    return found
