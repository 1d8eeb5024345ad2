"""What a step for all devices of JAX costs: python docs/benchmarks/devices.py [DEVICES] [TIMES].

Beside it stand the same step by gt.function on JAX, and one written by hand in JAX, each in turn.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import gradtape as gt

SIZES = {"small": (64, 128, 32, 1), "middle": (784, 256, 128, 2), "large": (784, 1024, 256, 2)}
CLASSES = 10


def network(inputs: int, hidden: int, depth: int) -> Any:
    gt.random.set_seed(0)
    layers: list[Any] = []
    for _ in range(depth):
        layers += [gt.layers.Dense(hidden), gt.layers.BatchNorm(), gt.layers.Activation("relu")]
    return gt.layers.Sequential([*layers, gt.layers.Dense(CLASSES)])


def training_step(model: Any) -> Callable[..., Any]:
    optimizer = gt.training.Adam(1e-3)

    def step(x: Any, y: Any) -> Any:
        with gt.GradientTape() as tape:
            logits = model(x, training=True)
            loss = gt.mean(gt.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    return step


def by_hand(group: Any, inputs: int, hidden: int, depth: int) -> Callable[..., float]:
    """Return the same training in JAX alone; it looks at the loss, but not whether it is finite."""
    generator = np.random.default_rng(0)
    sizes = [inputs, *[hidden] * depth, CLASSES]
    weights = [
        {
            "w": generator.normal(0, 0.05, (a, b)).astype("f4"),
            **{name: np.full(b, value, "f4") for name, value in (("b", 0), ("g", 1), ("o", 0))},
        }
        for a, b in pairwise(sizes)
    ]
    moving = [(np.zeros(hidden, "f4"), np.ones(hidden, "f4")) for _ in range(depth)]
    zeros = jax.tree.map(np.zeros_like, weights)
    state = (weights, zeros, jax.tree.map(np.copy, zeros), moving, np.int32(0))

    def loss_of(weights: Any, moving: Any, x: Any, y: Any) -> Any:
        found = []
        for layer, (mean, variance) in zip(weights, moving, strict=False):
            h = x @ layer["w"] + layer["b"]
            m, v = h.mean(0), h.var(0)
            found.append((0.99 * mean + 0.01 * m, 0.99 * variance + 0.01 * v))
            x = jax.nn.relu((h - m) * jax.lax.rsqrt(v + 1e-3) * layer["g"] + layer["o"])
        logits = jax.nn.log_softmax(x @ weights[-1]["w"] + weights[-1]["b"])
        return -jnp.take_along_axis(logits, y[:, None], 1).mean(), found

    def step(state: Any, x: Any, y: Any) -> Any:
        weights, first, second, moving, count = state
        (loss, moving), grads = jax.value_and_grad(loss_of, has_aux=True)(weights, moving, x, y)
        count = count + 1
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, grads)
        second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, grads)
        rate = 1e-3 * jnp.sqrt(1 - 0.999**count) / (1 - 0.9**count)
        weights = jax.tree.map(
            lambda w, m, v: w - rate * m / (jnp.sqrt(v) + 1e-7), weights, first, second
        )
        return (weights, first, second, moving, count), loss

    everywhere, rows = group.communicator.everywhere, group.communicator.rows
    settings = {"in_shardings": (everywhere, rows, rows), "out_shardings": everywhere}
    compiled = jax.jit(step, donate_argnums=0, **settings)
    held = [jax.device_put(state, everywhere)]

    def run(x: Any, y: Any) -> float:
        held[0], loss = compiled(held[0], jax.device_put(x, rows), jax.device_put(y, rows))
        return float(loss)

    return run


def main(devices: int = 1, times: int = 60) -> None:
    group = gt.distributed.init("jax", cpu_devices=devices)
    print(f"{group.devices} devices; microseconds, the least of {times}")
    for name, (inputs, hidden, batch, depth) in SIZES.items():
        generator = np.random.default_rng(0)
        x = generator.normal(size=(batch, inputs)).astype("f4")
        y = generator.integers(0, CLASSES, batch).astype("i4")
        shared = group.data_parallel(training_step(network(inputs, hidden, depth)))
        with gt.backend("jax"):
            model = network(inputs, hidden, depth)
            model(gt.constant(x))
            traced = gt.function(training_step(model))

        def alone(x: Any, y: Any, traced: Any = traced) -> float:
            with gt.backend("jax"):
                return float(traced(gt.constant(x), gt.constant(y)))

        runs = {
            "data_parallel": lambda x, y, shared=shared: float(shared(x, y)),
            "function": alone,
            "by hand": by_hand(group, inputs, hidden, depth),
        }
        least = dict.fromkeys(runs, float("inf"))
        for i in range(times + 2):
            for what, run in runs.items():
                start = time.perf_counter()
                run(x, y)
                if i > 1:
                    least[what] = min(least[what], time.perf_counter() - start)
        told = ", ".join(f"{what} {1e6 * took:.0f}" for what, took in least.items())
        ratios = [least["data_parallel"] / least[what] for what in ("function", "by hand")]
        print(f"{name}: {told}; {ratios[0]:.2f} and {ratios[1]:.2f} times as long")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
