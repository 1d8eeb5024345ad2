"""Layers beside PyTorch's: convolutions, recurrent layers, forward and backward, processor time.

Both contenders of a row take turns in one process, with one thread each. Their gradients are
compared before they are timed.

    OMP_NUM_THREADS=1 python docs/benchmarks/layers.py
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import gradtape as gt

Contenders = dict[str, Callable[[], Any]]


#: The shapes of images and of filters, channels last, and how many groups there are.
CONVOLUTIONS = {
    "3 x 3, 32 to 64 channels, 28 x 28, batch of 32": ((32, 28, 28, 32), (3, 3, 32, 64), 1),
    "1-D: 3, 32 to 64 channels, 200, batch of 32": ((32, 200, 32), (3, 32, 64), 1),
    "3-D: 3 x 3 x 3, 8 to 16 channels, 16 x 16 x 16, batch of 4": (
        (4, 16, 16, 16, 8),
        (3, 3, 3, 8, 16),
        1,
    ),
    "depthwise: 3 x 3, 32 channels, 28 x 28, batch of 32": ((32, 28, 28, 32), (3, 3, 1, 32), 32),
    "depthwise: 2 filters of 16 channels each": ((32, 28, 28, 16), (3, 3, 1, 32), 16),
}


def operands(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the images and filters of a convolution, and an upstream gradient."""
    shape, filters, _ = CONVOLUTIONS[name]
    random = np.random.default_rng(0)
    x = random.standard_normal(shape).astype("float32")
    w = random.standard_normal(filters).astype("float32") * 0.05
    g = random.standard_normal((*shape[:-1], filters[-1])).astype("float32")
    return x, w, g


def gradtape_convolution(name: str) -> Contenders:
    """Return a convolution and its gradients in gradtape, eager and traced."""
    groups = CONVOLUTIONS[name][2]

    def step(x: Any, w: Any, g: Any) -> Any:
        with gt.GradientTape() as tape:
            tape.watch((x, w))
            y = gt.nn.conv(x, w, padding="same", groups=groups)
        return y, *tape.gradient(y, (x, w), output_gradients=g)

    given = [gt.constant(a) for a in operands(name)]
    traced = gt.function(step)
    return {
        "gradtape, eager": lambda: step(*given),
        "gradtape, function": lambda: traced(*given),
    }


def convolution(name: str) -> Contenders:
    """Return who computes a convolution and its gradients, checked."""
    import torch

    x, w, g = operands(name)
    a, c = (torch.tensor(np.moveaxis(n, -1, 1).copy()) for n in (x, g))
    b = torch.tensor(np.moveaxis(w, (-1, -2), (0, 1)).copy())
    a.requires_grad_(), b.requires_grad_()
    run = getattr(torch.nn.functional, f"conv{x.ndim - 2}d")

    def theirs() -> Any:
        y = run(a, b, padding=1, groups=CONVOLUTIONS[name][2])
        return y, *torch.autograd.grad(y, (a, b), c)

    found = gradtape_convolution(name)
    right = np.moveaxis(theirs()[2].numpy(), (0, 1), (-1, -2))
    mine = found["gradtape, function"]()[2].numpy()
    np.testing.assert_allclose(mine, right, rtol=1e-3, atol=2e-2)
    return {**found, "PyTorch, eager": theirs}


#: Layers, and what they are in PyTorch.
RECURRENT = {"LSTM": "LSTM", "GRU": "GRU", "SimpleRNN": "RNN"}


def sequences() -> np.ndarray:
    """Return a batch for recurrent layers: 32 sequences of 50 steps with 32 features."""
    return np.random.default_rng(0).standard_normal((32, 50, 32)).astype("float32")


def gradtape_recurrent(name: str) -> tuple[Callable[[], Any], Any]:
    """Return what computes a recurrent layer and its gradients in gradtape, and its weights."""
    layer: Any = getattr(gt.layers, name)(64, return_sequences=True)
    x = gt.constant(sequences())
    layer(x)
    weights = layer.trainable_variables

    @gt.function
    def step(x: Any) -> Any:
        with gt.GradientTape() as tape:
            y = layer(x)
            loss = gt.sum(y * y)
        return loss, tape.gradient(loss, weights)

    return lambda: step(x), weights


def recurrent(name: str) -> Contenders:
    """Return who computes a recurrent layer and its gradients, checked."""
    import torch

    mine, weights = gradtape_recurrent(name)
    other = getattr(torch.nn, RECURRENT[name])(32, 64, batch_first=True)
    inputs = torch.tensor(sequences())

    def in_their_order(values: Any) -> Any:
        """Return rows for outputs; of a GRU, they have the reset gate first."""
        rows = np.moveaxis(values, -1, 0)
        order = [*range(64, 128), *range(64), *range(128, 192)] if name == "GRU" else ...
        return torch.tensor(rows[order].copy())

    with torch.no_grad():
        kernel, own, bias = (in_their_order(v.numpy()) for v in weights)
        other.weight_ih_l0.copy_(kernel)
        other.weight_hh_l0.copy_(own)
        other.bias_ih_l0.copy_(bias[:, 0] if name == "GRU" else bias)
        other.bias_hh_l0.copy_(bias[:, 1] if name == "GRU" else bias * 0)

    def theirs() -> Any:
        y, _ = other(inputs)
        other.zero_grad()
        (y * y).sum().backward()
        return other.weight_hh_l0.grad

    found = in_their_order(mine()[1][1].numpy())
    np.testing.assert_allclose(found, theirs(), rtol=1e-3, atol=1e-2)
    return {"gradtape, function": mine, "PyTorch, eager": theirs}


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
    import torch

    torch.set_num_threads(1)
    makers = dict.fromkeys(CONVOLUTIONS, convolution) | dict.fromkeys(RECURRENT, recurrent)
    print("| | PyTorch, ms | eager ÷ PyTorch | function ÷ PyTorch |\n| --- | ---: | ---: | ---: |")
    for name, make in makers.items():
        times = measured(make(name))
        base = times.pop("PyTorch, eager")
        eager, traced = (
            f"{times[who] / base:.2f}" if who in times else "-"
            for who in ("gradtape, eager", "gradtape, function")
        )
        if name in RECURRENT:
            name += ", 64 units, 50 steps of 32 features, batch of 32"
        label = name.replace(" x ", " \u00d7 ")
        print(f"| {label} | {base:.1f} | {eager} | {traced} |", flush=True)
