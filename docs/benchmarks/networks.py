"""Networks to train on any device: the same in gradtape, PyTorch and JAX, from the same weights.

An MLP is of Dense, BatchNorm (by the batch's statistics) and relu layers, as in ``training_step``;
then there are a small convolution network and an LSTM. Each is trained by Adam. In ``float16`` the
weights stay float32 and are cast where they are used, and normalisation and loss are float32. In
``float32`` no library may round the operands of a product to fewer bits (TF32).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from libraries import Gradtape, Jax, Torch
from training_step import BETA_1, BETA_2, CLASSES, EPSILON, RATE, adam_in_jax

__all__ = ["LIBRARIES", "TASKS", "Made", "Task"]


class Task(NamedTuple):
    """A network: its kind, the shapes of a batch, and how large its layers are."""

    title: str
    kind: str
    shape: tuple[int, ...]
    units: tuple[int, ...]

    @property
    def batch(self) -> int:
        """The number of examples; an LSTM's batch has its steps first."""
        return self.shape[1 if self.kind == "lstm" else 0]

    def data(self) -> tuple[np.ndarray, np.ndarray]:
        """Return a batch and its labels."""
        random = np.random.default_rng(0)
        labels = random.integers(0, CLASSES, self.batch)
        return random.random(self.shape, dtype=np.float32), labels

    def weights(self) -> list[np.ndarray]:
        """Return kernels with their biases, and after those of an MLP's layers gamma and beta."""
        random = np.random.default_rng(1)
        found: list[np.ndarray] = []

        def kernel(*shape: int) -> None:
            scale = 0.8 / np.sqrt(np.prod(shape[:-1]))
            found.append((random.standard_normal(shape) * scale).astype(np.float32))
            found.append(np.zeros(shape[-1], np.float32))

        features = self.shape[-1]
        if self.kind == "mlp":
            for units in self.units:
                kernel(features, units)
                found.extend([np.ones(units, np.float32), np.zeros(units, np.float32)])
                features = units
        elif self.kind == "convolution":
            for n, m in pairwise([features, *self.units]):
                kernel(3, 3, n, m)
            side = self.shape[1] // 2 ** len(self.units)
            features = side * side * self.units[-1]
        else:
            (units,) = self.units
            kernel(features, 4 * units)
            found.append((random.standard_normal((units, 4 * units)) * 0.05).astype(np.float32))
            features = units
        kernel(features, CLASSES)
        return found


#: By name: as a GPU is given it, and smaller, for a processor.
TASKS = {
    "mlp32": (
        Task("MLP 64-128-10, batch 32", "mlp", (32, 64), (128,)),
        Task("MLP 16-32-10, batch 32", "mlp", (32, 16), (32,)),
    ),
    "mlp256": (
        Task("MLP 784-1024-1024-10, batch 256", "mlp", (256, 784), (1024, 1024)),
        Task("MLP 64-64-64-10, batch 64", "mlp", (64, 64), (64, 64)),
    ),
    "mlp4096": (
        Task("MLP 784-2048-2048-10, batch 4,096", "mlp", (4096, 784), (2048, 2048)),
        Task("MLP 64-128-128-10, batch 128", "mlp", (128, 64), (128, 128)),
    ),
    "convolution": (
        Task("convolutions 32-64, 28 by 28, batch 128", "convolution", (128, 28, 28, 1), (32, 64)),
        Task("convolutions 4-8, 8 by 8, batch 8", "convolution", (8, 8, 8, 1), (4, 8)),
    ),
    "lstm": (
        Task("LSTM of 256, 32 steps, batch 64", "lstm", (32, 64, 64), (256,)),
        Task("LSTM of 8, 4 steps, batch 8", "lstm", (4, 8, 8), (8,)),
    ),
}


class Made(NamedTuple):
    """A step, which returns its loss (perhaps before it is computed), and what waits for all."""

    step: Callable[[], Any]
    finish: Callable[[], Any]


def forward(lib: Any, task: Task, weights: Sequence[Any], x: Any) -> Any:
    """Return the logits."""
    left = iter(weights)
    if task.kind == "mlp":
        for _ in task.units:
            x = lib.dense(x, next(left), next(left))
            x = lib.relu(lib.batch_norm(x, next(left), next(left)))
    elif task.kind == "convolution":
        for _ in task.units:
            x = lib.max_pool(lib.relu(lib.convolution(x, next(left), next(left))))
        x = lib.flatten(x)
    else:
        x = lib.lstm(x, next(left), next(left), next(left))
    return lib.dense(x, next(left), next(left))


# -- gradtape --------------------------------------------------------------------------------------


def gradtape(task: Task, half: str | None, device: str, how: str) -> Made:
    """Return the step in gradtape, eager or as one traced function; ``how`` is the executor."""
    lib = Gradtape(half)
    gt = lib.gt
    backend = "cupy" if device == "gpu" else "numpy"
    with gt.backend(backend):
        x, labels = map(gt.constant, task.data())
        variables = [gt.Variable(w) for w in task.weights()]
        optimizer = gt.training.Adam(RATE, BETA_1, BETA_2, EPSILON)

    def step(x: Any, labels: Any) -> Any:
        with gt.GradientTape() as tape:
            logits = forward(lib, task, [v.value for v in variables], lib.cast(x, None))
            logits = lib.cast(logits, "float32")
            losses = gt.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
            loss = gt.mean(losses)
        grads = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(grads, variables, strict=True))
        return loss

    run = step if how == "eager" else gt.function(step, executor=how)

    def placed() -> Any:
        with gt.backend(backend):
            return run(x, labels)

    def finish() -> None:
        if backend == "cupy":
            gt.registry().backend(backend).xp.cuda.Device().synchronize()

    return Made(placed, finish)


# -- PyTorch ---------------------------------------------------------------------------------------


def torch(task: Task, half: str | None, device: str, how: str) -> Made:
    """Return the step in PyTorch; ``how`` is eager, or the mode of ``torch.compile``."""
    lib = Torch()
    torch = lib.torch
    place = "cuda" if device == "gpu" else "cpu"
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False
    x, labels = (torch.tensor(a, device=place) for a in task.data())
    if x.ndim == 4:
        x = x.permute(0, 3, 1, 2).contiguous(memory_format=torch.channels_last)
    weights = [
        torch.tensor(lib.weight(w), device=place).requires_grad_(True) for w in task.weights()
    ]
    if task.kind == "lstm" and device == "gpu":
        lib.beside(*weights[:3])
    optimizer = torch.optim.Adam(
        weights, lr=RATE, betas=(BETA_1, BETA_2), eps=EPSILON, fused=device == "gpu"
    )

    def loss_of(x: Any, labels: Any, weights: Any) -> Any:
        with torch.autocast(place, torch.float16, enabled=half is not None):
            logits = forward(lib, task, weights, x)
        return lib.cross_entropy(logits.float(), labels)

    run = loss_of if how == "eager" else torch.compile(loss_of, mode=how)

    def step() -> Any:
        optimizer.zero_grad()
        loss = run(x, labels, weights)
        loss.backward()
        optimizer.step()
        return loss.detach().clone() if how == "reduce-overhead" else loss.detach()

    return Made(step, torch.cuda.synchronize if device == "gpu" else lambda: None)


# -- JAX -------------------------------------------------------------------------------------------


def jax(task: Task, half: str | None, device: str, how: str) -> Made:
    """Return the step in JAX, compiled as one function."""
    lib = Jax(half)
    jax, jnp = lib.jax, lib.jnp
    jax.config.update("jax_default_matmul_precision", "highest" if half is None else None)
    x, labels = map(jnp.asarray, task.data())

    def loss_of(weights: Any, x: Any, labels: Any) -> Any:
        logits = lib.cast(forward(lib, task, weights, lib.cast(x, None)), "float32")
        return lib.cross_entropy(logits, labels)

    def update(state: Any, x: Any, labels: Any) -> Any:
        loss, grads = jax.value_and_grad(loss_of)(state[0], x, labels)
        return loss, adam_in_jax(state, grads)

    run = jax.jit(update, donate_argnums=0)
    weights = [jnp.asarray(w) for w in task.weights()]
    zeros = [[jnp.zeros_like(w) for w in weights] for _ in range(2)]
    state = [(weights, *zeros, jnp.zeros(()))]

    def step() -> Any:
        loss, state[0] = run(state[0], x, labels)
        return loss

    return Made(step, lambda: jax.block_until_ready(state[0]))


LIBRARIES: dict[str, Callable[[Task, str | None, str, str], Made]] = {
    "gradtape": gradtape,
    "torch": torch,
    "jax": jax,
}
