"""One training step of Dense(64 → 128), BatchNorm, relu, Dense(10) on a batch of 32, with Adam.

The same step in gradtape, NumPy by hand, PyTorch and JAX, from the same weights, with the same
settings (Keras's: momentum 0.99 and epsilon 1e-3 of the BatchNorm, epsilon 1e-7 of Adam).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import gradtape as gt

RATE, BETA_1, BETA_2, EPSILON = 1e-3, 0.9, 0.999, 1e-7
MOMENTUM, BN_EPSILON = 0.99, 1e-3

_random = np.random.default_rng(0)
X = _random.random((32, 64), dtype=np.float32)
LABELS = _random.integers(0, 10, 32)
#: kernel and bias, gamma and beta, kernel and bias
WEIGHTS = [
    (_random.standard_normal((64, 128)) * 0.1).astype(np.float32),
    np.zeros(128, np.float32),
    np.ones(128, np.float32),
    np.zeros(128, np.float32),
    (_random.standard_normal((128, 10)) * 0.1).astype(np.float32),
    np.zeros(10, np.float32),
]


class Contender(NamedTuple):
    """A step to time, and how to read the weights that it trains, in the order of ``WEIGHTS``."""

    step: Callable[[], Any]
    weights: Callable[[], list[np.ndarray]]


def by_hand() -> Contender:
    """Return the step in NumPy, with all parameters in one buffer for Adam."""
    shapes = [w.shape for w in WEIGHTS]
    cuts = np.cumsum([w.size for w in WEIGHTS])[:-1]
    flat = np.concatenate([w.ravel() for w in WEIGHTS])
    m, v, count = np.zeros_like(flat), np.zeros_like(flat), 0
    mean_average, var_average = np.zeros(128, np.float32), np.ones(128, np.float32)
    rows = np.arange(len(LABELS))

    def split() -> list[np.ndarray]:
        return [part.reshape(shape) for part, shape in zip(np.split(flat, cuts), shapes)]

    weights = split()  # views of the buffer

    def step() -> None:
        nonlocal count
        w1, b1, gamma, beta, w2, b2 = weights
        # forward
        h = X @ w1 + b1
        mean = h.mean(0)
        centred = h - mean
        var = (centred * centred).mean(0)
        inverse = 1 / np.sqrt(var + np.float32(BN_EPSILON))
        normal = centred * inverse
        a = np.maximum(normal * gamma + beta, 0)
        logits = a @ w2 + b2
        mean_average[:] = mean_average * MOMENTUM + mean * (1 - MOMENTUM)
        var_average[:] = var_average * MOMENTUM + var * (1 - MOMENTUM)
        # backward
        p = np.exp(logits - logits.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        p[rows, LABELS] -= 1
        p /= len(LABELS)
        da = (p @ w2.T) * (a > 0)
        dn = da * gamma
        dh = (dn - dn.mean(0) - normal * (dn * normal).mean(0)) * inverse
        grads = [X.T @ dh, dh.sum(0), (da * normal).sum(0), da.sum(0), a.T @ p, p.sum(0)]
        # Adam
        g = np.concatenate([x.ravel() for x in grads])
        count += 1
        m[:] = m * BETA_1 + g * (1 - BETA_1)
        v[:] = v * BETA_2 + g * g * (1 - BETA_2)
        rate = RATE * (1 - BETA_2**count) ** 0.5 / (1 - BETA_1**count)
        flat[:] -= rate * m / (np.sqrt(v) + EPSILON)

    return Contender(step, lambda: weights)


def gradtape(traced: bool) -> Contender:
    """Return the step in gradtape, eager or as one traced function."""
    model = gt.layers.Sequential(
        [
            gt.layers.Dense(128),
            gt.layers.BatchNorm(),
            gt.layers.Activation("relu"),
            gt.layers.Dense(10),
        ]
    )
    x, labels = gt.constant(X), gt.constant(LABELS)
    model(x)  # builds it
    first, norm, _, last = model.layers
    variables = [first.kernel, first.bias, norm.gamma, norm.beta, last.kernel, last.bias]
    for variable, value in zip(variables, WEIGHTS, strict=True):
        variable.assign(value)
    optimizer = gt.training.Adam(RATE)

    def step() -> None:
        with gt.GradientTape() as tape:
            logits = model(x, training=True)
            losses = gt.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
            loss = gt.mean(losses)
        grads = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(grads, variables, strict=True))

    run = gt.function(step) if traced else step
    return Contender(run, lambda: [v.numpy() for v in variables])


def torch() -> Contender:
    """Return the step in PyTorch, eager."""
    import torch
    from torch import nn

    model = nn.Sequential(
        nn.Linear(64, 128),
        nn.BatchNorm1d(128, eps=BN_EPSILON, momentum=1 - MOMENTUM),
        nn.ReLU(),
        nn.Linear(128, 10),
    )
    parameters = list(model.parameters())
    with torch.no_grad():
        for parameter, value in zip(parameters, WEIGHTS, strict=True):
            parameter.copy_(torch.tensor(value.T if value.ndim == 2 else value))
    optimizer = torch.optim.Adam(parameters, lr=RATE, betas=(BETA_1, BETA_2), eps=EPSILON)
    x, labels = torch.tensor(X), torch.tensor(LABELS)
    loss_function = nn.CrossEntropyLoss()

    def step() -> None:
        optimizer.zero_grad()
        loss_function(model(x), labels).backward()
        optimizer.step()

    return Contender(step, lambda: [p.detach().numpy().T for p in parameters])


def jax() -> Contender:
    """Return the step in JAX, compiled as one function."""
    import jax
    import jax.numpy as jnp

    x, labels = jnp.asarray(X), jnp.asarray(LABELS)
    rows = jnp.arange(len(LABELS))

    def loss(weights: Any) -> Any:
        w1, b1, gamma, beta, w2, b2 = weights
        h = x @ w1 + b1
        mean, var = h.mean(0), h.var(0)
        a = jax.nn.relu((h - mean) * jax.lax.rsqrt(var + BN_EPSILON) * gamma + beta)
        logits = a @ w2 + b2
        return -jax.nn.log_softmax(logits)[rows, labels].mean(), (mean, var)

    @jax.jit
    def update(state: Any) -> Any:
        weights, m, v, averages, count = state
        (_, statistics), grads = jax.value_and_grad(loss, has_aux=True)(weights)
        count = count + 1
        rate = RATE * jnp.sqrt(1 - BETA_2**count) / (1 - BETA_1**count)
        m = [a * BETA_1 + g * (1 - BETA_1) for a, g in zip(m, grads, strict=True)]
        v = [a * BETA_2 + g * g * (1 - BETA_2) for a, g in zip(v, grads, strict=True)]
        weights = [
            w - rate * a / (jnp.sqrt(b) + EPSILON) for w, a, b in zip(weights, m, v, strict=True)
        ]
        averages = [
            a * MOMENTUM + s * (1 - MOMENTUM) for a, s in zip(averages, statistics, strict=True)
        ]
        return weights, m, v, averages, count

    zeros = [jnp.zeros_like(w) for w in WEIGHTS]
    averages = [jnp.zeros(128), jnp.ones(128)]
    state = [([jnp.asarray(w) for w in WEIGHTS], zeros, zeros, averages, jnp.zeros(()))]

    def step() -> None:
        state[0] = jax.block_until_ready(update(state[0]))

    return Contender(step, lambda: [np.asarray(w) for w in state[0][0]])


def contenders(installed: Callable[..., bool]) -> dict[str, Callable[[], Any]]:
    """Return the steps by name, each checked against the one written by hand."""
    reference = by_hand()
    made = {
        "NumPy by hand": reference,
        "gradtape, eager": gradtape(traced=False),
        "gradtape, function": gradtape(traced=True),
    }
    if installed("torch"):
        made["PyTorch, eager"] = torch()
    if installed("jax"):
        made["JAX, jit"] = jax()
    for contender in made.values():
        for _ in range(3):
            contender.step()
    for name, contender in made.items():
        pairs = list(zip(contender.weights(), reference.weights(), strict=True))
        # the bias before a BatchNorm has no influence: Adam turns its rounding errors into steps
        for mine, theirs in pairs[:1] + pairs[2:]:
            error = float(np.abs(mine - theirs).mean())
            if error > 1e-5:
                raise AssertionError(f"{name}: the weights are off by {error:.1e} on average")
    return {name: contender.step for name, contender in made.items()}
