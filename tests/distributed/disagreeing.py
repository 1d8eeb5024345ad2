"""Ranks that do not do the same: each prints what it is told."""

from __future__ import annotations

import numpy as np

import gradtape as gt

group = gt.distributed.init()
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
    rng = np.random.default_rng(group.rank)
    return rng.normal(size=(rows, 5)).astype("float32"), np.ones((rows, 3), "float32")


def tell(name: str, run) -> None:
    """Print what a call raises, between marks: lines of ranks may run into each other."""
    try:
        run()
        told = "nothing"
    except (gt.errors.DistributedError, FloatingPointError) as error:
        told = f"{type(error).__name__}: {error}"
    print(f"«{name} of {group.rank}: {told}»", flush=True)


odd = group.rank == 1
step, model = step_of("relu", 0.1, 1.0)
tell("uneven", lambda: step(*batch(4 - odd)))  # other sizes are no other code
x, y = batch(4 - odd)
before = [variable.numpy() for variable in model.trainable_variables]
tell("nan", lambda: step(x * np.float32("nan") if odd else x, y))
for old, variable in zip(before, model.trainable_variables, strict=True):
    assert np.array_equal(old, variable.numpy()), "a weight was assigned"
tell("op", lambda: step_of("tanh" if odd else "relu", 0.1, 1.0)[0](*batch()))
tell("number", lambda: step_of("relu", 0.2 if odd else 0.1, 1.0)[0](*batch()))
tell("factor", lambda: step_of("relu", 0.1, 2.0 if odd else 1.0)[0](*batch()))
tell("collective", lambda: (group.all_gather if odd else group.all_reduce)(gt.ones(2)))
tell("shape", lambda: group.all_reduce(gt.ones(3 if odd else 2)))
tell("last", lambda: step(*batch(4 - odd)))  # all go on after it
