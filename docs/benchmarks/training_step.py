"""One training step of a network of Dense, BatchNorm and relu layers, with Adam.

The same step in gradtape, NumPy by hand, PyTorch and JAX, from the same weights, with the same
settings (Keras's: momentum 0.99 and epsilon 1e-3 of the BatchNorm, epsilon 1e-7 of Adam). The batch
is an argument of the step: no compiler may compute with it beforehand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

RATE, BETA_1, BETA_2, EPSILON = 1e-3, 0.9, 0.999, 1e-7
MOMENTUM, BN_EPSILON = 0.99, 1e-3
CLASSES = 10


class Task:
    """A batch, and the weights to begin with.

    Parameters
    ----------
    inputs
        The size of an example.
    hidden
        The units of each hidden layer.
    batch
        The number of examples.

    Attributes
    ----------
    weights
        Kernel, bias, gamma and beta of each hidden layer; kernel and bias of the last one.
    """

    def __init__(self, inputs: int = 64, hidden: Sequence[int] = (128,), batch: int = 32) -> None:
        random = np.random.default_rng(0)
        self.hidden = hidden
        self.x = random.random((batch, inputs), dtype=np.float32)
        self.labels = random.integers(0, CLASSES, batch)
        self.weights: list[np.ndarray] = []
        sizes = [inputs, *hidden, CLASSES]
        for i, (n, m) in enumerate(pairwise(sizes)):
            kernel = random.standard_normal((n, m)) * (0.8 / np.sqrt(n))
            self.weights += [kernel.astype(np.float32), np.zeros(m, np.float32)]
            if i < len(hidden):
                self.weights += [np.ones(m, np.float32), np.zeros(m, np.float32)]


class Contender(NamedTuple):
    """A step to time, the weights that it trains in the task's order, and arrays to wait for."""

    step: Callable[[], Any]
    weights: Callable[[], list[np.ndarray]]
    arrays: Callable[[], Any] = list


def by_hand(task: Task) -> Contender:
    """Return the step in NumPy, with all parameters in one buffer for Adam."""
    x, labels = task.x, task.labels
    cuts = np.cumsum([w.size for w in task.weights])[:-1]
    flat = np.concatenate([w.ravel() for w in task.weights])
    m, v, count = np.zeros_like(flat), np.zeros_like(flat), 0
    averages = [(np.zeros(n, np.float32), np.ones(n, np.float32)) for n in task.hidden]
    rows = np.arange(len(labels))
    # views of the buffer
    weights = [
        part.reshape(w.shape) for part, w in zip(np.split(flat, cuts), task.weights, strict=True)
    ]

    def step() -> None:
        nonlocal count
        a, saved = x, []
        for i, (mean_average, var_average) in enumerate(averages):
            kernel, bias, gamma, beta = weights[4 * i : 4 * i + 4]
            h = a @ kernel + bias
            mean = h.mean(0)
            centred = h - mean
            var = (centred * centred).mean(0)
            inverse = 1 / np.sqrt(var + np.float32(BN_EPSILON))
            normal = centred * inverse
            saved.append((a, kernel, gamma, normal, inverse))
            a = np.maximum(normal * gamma + beta, 0)
            saved[-1] += (a,)
            mean_average[:] = mean_average * MOMENTUM + mean * (1 - MOMENTUM)
            var_average[:] = var_average * MOMENTUM + var * (1 - MOMENTUM)
        kernel, bias = weights[-2:]
        logits = a @ kernel + bias
        # backward
        p = np.exp(logits - logits.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        p[rows, labels] -= 1
        p /= len(labels)
        grads = [a.T @ p, p.sum(0)]
        below = p @ kernel.T
        for i, (before, kernel, gamma, normal, inverse, after) in enumerate(reversed(saved)):
            da = below * (after > 0)
            dn = da * gamma
            dh = (dn - dn.mean(0) - normal * (dn * normal).mean(0)) * inverse
            grads[:0] = [before.T @ dh, dh.sum(0), (da * normal).sum(0), da.sum(0)]
            if i < len(saved) - 1:
                below = dh @ kernel.T
        # Adam
        g = np.concatenate([part.ravel() for part in grads])
        count += 1
        m[:] = m * BETA_1 + g * (1 - BETA_1)
        v[:] = v * BETA_2 + g * g * (1 - BETA_2)
        rate = RATE * (1 - BETA_2**count) ** 0.5 / (1 - BETA_1**count)
        flat[:] -= rate * m / (np.sqrt(v) + EPSILON)

    return Contender(step, lambda: weights)


def gradtape(task: Task, traced: bool) -> Contender:
    """Return the step in gradtape, eager or as one traced function."""
    import gradtape as gt

    layers: list[Any] = []
    for units in task.hidden:
        layers += [
            gt.layers.Dense(units),
            gt.layers.BatchNorm(),
            gt.layers.Activation("relu"),
        ]
    model = gt.layers.Sequential([*layers, gt.layers.Dense(CLASSES)])
    x, labels = gt.constant(task.x), gt.constant(task.labels)
    model(x)  # builds it
    variables = []
    for layer in model.layers:
        if isinstance(layer, gt.layers.Dense):
            variables += [layer.kernel, layer.bias]
        elif isinstance(layer, gt.layers.BatchNorm):
            variables += [layer.gamma, layer.beta]
    for variable, value in zip(variables, task.weights, strict=True):
        variable.assign(value)
    optimizer = gt.training.Adam(RATE)

    def step(x: Any, labels: Any) -> None:
        with gt.GradientTape() as tape:
            logits = model(x, training=True)
            losses = gt.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
            loss = gt.mean(losses)
        grads = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(grads, variables, strict=True))

    run = gt.function(step) if traced else step
    return Contender(
        lambda: run(x, labels),
        lambda: [np.asarray(v.numpy()) for v in variables],
        lambda: [v.array for v in variables],
    )


def torch(task: Task, compiled: bool = False) -> Contender:
    """Return the step in PyTorch, eager or with its loss by ``torch.compile``."""
    import torch
    from torch import nn

    layers: list[nn.Module] = []
    sizes = [task.x.shape[1], *task.hidden]
    for n, m in pairwise(sizes):
        norm = nn.BatchNorm1d(m, eps=BN_EPSILON, momentum=1 - MOMENTUM)
        layers += [nn.Linear(n, m), norm, nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(sizes[-1], CLASSES))
    parameters = list(model.parameters())
    with torch.no_grad():
        for parameter, value in zip(parameters, task.weights, strict=True):
            parameter.copy_(torch.tensor(value.T if value.ndim == 2 else value))
    # compiled, the update is one kernel too
    settings = {"lr": RATE, "betas": (BETA_1, BETA_2), "eps": EPSILON}
    optimizer = torch.optim.Adam(parameters, **settings, fused=True if compiled else None)
    x, labels = torch.tensor(task.x), torch.tensor(task.labels)
    loss_function = nn.CrossEntropyLoss()

    def loss_of(x: Any, labels: Any) -> Any:
        return loss_function(model(x), labels)

    run = torch.compile(loss_of) if compiled else loss_of

    def step() -> None:
        optimizer.zero_grad()
        run(x, labels).backward()
        optimizer.step()

    return Contender(step, lambda: [p.detach().numpy().T for p in parameters])


def adam_in_jax(state: Any, grads: Any, epsilon: float = EPSILON) -> Any:
    """Return weights, both moments and the number of steps after one more, in JAX."""
    import jax.numpy as jnp

    weights, m, v, count = state
    count = count + 1
    rate = RATE * jnp.sqrt(1 - BETA_2**count) / (1 - BETA_1**count)
    m = [a * BETA_1 + g * (1 - BETA_1) for a, g in zip(m, grads, strict=True)]
    v = [a * BETA_2 + g * g * (1 - BETA_2) for a, g in zip(v, grads, strict=True)]
    rows = zip(weights, m, v, strict=True)
    return [w - rate * a / (jnp.sqrt(b) + epsilon) for w, a, b in rows], m, v, count


def jax(task: Task) -> Contender:
    """Return the step in JAX, compiled as one function."""
    import jax
    import jax.numpy as jnp

    x, labels = jnp.asarray(task.x), jnp.asarray(task.labels)
    depth = len(task.hidden)

    def loss(weights: Any, x: Any, labels: Any) -> Any:
        a, statistics = x, []
        for i in range(depth):
            kernel, bias, gamma, beta = weights[4 * i : 4 * i + 4]
            h = a @ kernel + bias
            mean, var = h.mean(0), h.var(0)
            statistics += [mean, var]
            a = jax.nn.relu((h - mean) * jax.lax.rsqrt(var + BN_EPSILON) * gamma + beta)
        logits = a @ weights[-2] + weights[-1]
        rows = jnp.arange(len(labels))
        return -jax.nn.log_softmax(logits)[rows, labels].mean(), statistics

    @jax.jit
    def update(state: Any, x: Any, labels: Any) -> Any:
        weights, m, v, averages, count = state
        (_, statistics), grads = jax.value_and_grad(loss, has_aux=True)(weights, x, labels)
        weights, m, v, count = adam_in_jax((weights, m, v, count), grads)
        averages = [
            a * MOMENTUM + s * (1 - MOMENTUM) for a, s in zip(averages, statistics, strict=True)
        ]
        return weights, m, v, averages, count

    zeros = [jnp.zeros_like(w) for w in task.weights]
    averages = [f(n) for n in task.hidden for f in (jnp.zeros, jnp.ones)]
    state = [([jnp.asarray(w) for w in task.weights], zeros, zeros, averages, jnp.zeros(()))]

    def step() -> None:
        state[0] = jax.block_until_ready(update(state[0], x, labels))

    return Contender(step, lambda: [np.asarray(w) for w in state[0][0]])


def compare(
    name: str,
    mine: Sequence[np.ndarray],
    theirs: Sequence[np.ndarray],
    free: Sequence[int] = (),
) -> None:
    """Compare the weights after some steps; raise if they are others.

    Weights that have no influence are ``free``, such as a bias before a BatchNorm: Adam turns their
    rounding errors into steps.
    """
    for i, (a, b) in enumerate(zip(mine, theirs, strict=True)):
        error = float(np.abs(a - b).mean())
        if i not in free and not error < 1e-4:  # a tenth of what one step may change
            raise AssertionError(f"{name}: weights {i} are off by {error:.1e} on average")


def contenders(installed: Callable[..., bool]) -> dict[str, Callable[[], Any]]:
    """Return the steps of the smallest task by name, each checked against the one by hand."""
    task = Task()
    reference = by_hand(task)
    made = {
        "NumPy by hand": reference,
        "gradtape, eager": gradtape(task, traced=False),
        "gradtape, function": gradtape(task, traced=True),
    }
    if installed("torch"):
        made["PyTorch, eager"] = torch(task)
    if installed("jax"):
        made["JAX, jit"] = jax(task)
    for contender in made.values():
        for _ in range(3):
            contender.step()
    for name, contender in made.items():
        compare(name, contender.weights(), reference.weights(), free=(1,))
    return {name: contender.step for name, contender in made.items()}
