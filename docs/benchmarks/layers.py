"""Layers beside PyTorch's: a convolution and an LSTM, forward and backward, in processor time.

Both contenders of a row take turns in one process, with one thread each. Their gradients are
compared before they are timed.

    OMP_NUM_THREADS=1 python docs/benchmarks/layers.py
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import gradtape as gt

Contenders = dict[str, Callable[[], Any]]


def convolution() -> Contenders:
    """3 x 3, 32 to 64 channels, 28 x 28, batch of 32."""
    random = np.random.default_rng(0)
    x = random.standard_normal((32, 28, 28, 32)).astype("float32")
    w = random.standard_normal((3, 3, 32, 64)).astype("float32") * 0.05
    g = random.standard_normal((32, 28, 28, 64)).astype("float32")

    def step(x: Any, w: Any, g: Any) -> Any:
        with gt.GradientTape() as tape:
            tape.watch((x, w))
            y = gt.nn.conv2d(x, w, padding="same")
        return y, *tape.gradient(y, (x, w), output_gradients=g)

    mine = [gt.constant(a) for a in (x, w, g)]
    a, b, c = (
        torch.tensor(n.transpose(order).copy())
        for n, order in ((x, (0, 3, 1, 2)), (w, (3, 2, 0, 1)), (g, (0, 3, 1, 2)))
    )
    a.requires_grad_(), b.requires_grad_()

    def theirs() -> Any:
        y = torch.nn.functional.conv2d(a, b, padding=1)
        return y, *torch.autograd.grad(y, (a, b), c)

    traced = gt.function(step)
    right = theirs()[2].numpy().transpose(2, 3, 1, 0)
    np.testing.assert_allclose(traced(*mine)[2].numpy(), right, rtol=1e-3, atol=1e-2)
    return {
        "gradtape, eager": lambda: step(*mine),
        "gradtape, function": lambda: traced(*mine),
        "PyTorch, eager": theirs,
    }


def lstm() -> Contenders:
    """64 units, 50 steps of 32 features, batch of 32."""
    x = np.random.default_rng(0).standard_normal((32, 50, 32)).astype("float32")
    layer: Any = gt.layers.LSTM(64, return_sequences=True)
    layer(x)
    weights, given = layer.trainable_variables, gt.constant(x)

    @gt.function
    def mine(x: Any) -> Any:
        with gt.GradientTape() as tape:
            y = layer(x)
            loss = gt.sum(y * y)
        return loss, tape.gradient(loss, weights)

    other, inputs = torch.nn.LSTM(32, 64, batch_first=True), torch.tensor(x)
    with torch.no_grad():
        kernel, recurrent, bias = (torch.tensor(v.numpy()) for v in weights)
        other.weight_ih_l0.copy_(kernel.T)
        other.weight_hh_l0.copy_(recurrent.T)
        other.bias_ih_l0.copy_(bias)
        other.bias_hh_l0.zero_()

    def theirs() -> Any:
        y, _ = other(inputs)
        other.zero_grad()
        (y * y).sum().backward()
        return other.weight_hh_l0.grad

    found = mine(given)[1][1].numpy()
    np.testing.assert_allclose(found, theirs().numpy().T, rtol=1e-3, atol=1e-2)
    return {"gradtape, function": lambda: mine(given), "PyTorch, eager": theirs}


def measured(contenders: Contenders, rounds: int = 30) -> dict[str, float]:
    """Return the best processor time of each contender in milliseconds."""
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(rounds):
        for name, run in contenders.items():
            run()  # brings its memory back into the cache
            start = time.process_time()
            run()
            best[name] = min(best[name], (time.process_time() - start) * 1e3)
    return best


if __name__ == "__main__":
    torch.set_num_threads(1)
    for make in (convolution, lstm):
        times = measured(make())
        base = times["PyTorch, eager"]
        print(f"| {make.__doc__} | ms | \u00f7 PyTorch, eager |\n| --- | ---: | ---: |")
        for name, value in times.items():
            print(f"| {name} | {value:.1f} | {value / base:.2f} |")
        print()
