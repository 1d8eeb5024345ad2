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
from training_step import BETA_1, BETA_2, BN_EPSILON, CLASSES, EPSILON, RATE

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


class Gradtape:
    """gradtape's functions; ``half`` is the dtype to compute in, if it is not float32."""

    def __init__(self, half: str | None) -> None:
        import gradtape as gt
        from gradtape.core.extend import ops

        self.gt, self.half, self._batch_norm = gt, half, ops["batch_norm_training"]

    def cast(self, x: Any, dtype: str | None) -> Any:
        return x if self.half is None else self.gt.cast(x, dtype or self.half)

    def dense(self, x: Any, w: Any, b: Any) -> Any:
        return x @ self.cast(w, None) + self.cast(b, None)

    def relu(self, x: Any) -> Any:
        return self.gt.nn.relu(x)

    def batch_norm(self, x: Any, gamma: Any, beta: Any) -> Any:
        x = self.cast(x, "float32")
        y, _, _ = self._batch_norm(x, gamma, beta, axis=-1, epsilon=BN_EPSILON)
        return self.cast(y, None)

    def convolution(self, x: Any, w: Any, b: Any) -> Any:
        found = self.gt.nn.conv2d(x, self.cast(w, None), padding="same")
        return found + self.cast(b, None)

    def max_pool(self, x: Any) -> Any:
        return self.gt.nn.max_pool2d(x, 2)

    def flatten(self, x: Any) -> Any:
        return self.gt.reshape(x, (x.shape[0], -1))

    def lstm(self, x: Any, w: Any, b: Any, u: Any) -> Any:
        gt = self.gt
        u = self.cast(u, None)
        units = u.shape[0]
        h = c = gt.zeros_like(x[0, :, :1]) + gt.zeros((units,), dtype=x.dtype)
        given = gt.unstack(self.dense(x, w, b))
        for step in given:
            i, f, g, o = gt.split(step + h @ u, 4, axis=-1)
            c = gt.nn.sigmoid(f) * c + gt.nn.sigmoid(i) * gt.tanh(g)
            h = gt.nn.sigmoid(o) * gt.tanh(c)
        return h


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


class Torch:
    """PyTorch's functions. Kernels are as PyTorch has them, and images have channels first."""

    def __init__(self) -> None:
        import torch

        self.torch, self.f = torch, torch.nn.functional
        self.no_bias: Any = None

    def weight(self, w: np.ndarray) -> np.ndarray:
        turned = w.transpose(3, 2, 0, 1) if w.ndim == 4 else w.T
        return np.ascontiguousarray(turned)

    def dense(self, x: Any, w: Any, b: Any) -> Any:
        return self.f.linear(x, w, b)

    def relu(self, x: Any) -> Any:
        return self.f.relu(x)

    def batch_norm(self, x: Any, gamma: Any, beta: Any) -> Any:
        return self.f.batch_norm(x, None, None, gamma, beta, training=True, eps=BN_EPSILON)

    def convolution(self, x: Any, w: Any, b: Any) -> Any:
        return self.f.conv2d(x, w, b, padding="same")

    def max_pool(self, x: Any) -> Any:
        return self.f.max_pool2d(x, 2)

    def flatten(self, x: Any) -> Any:
        return x.permute(0, 2, 3, 1).flatten(1)  # in the order of the others

    def beside(self, w: Any, b: Any, u: Any) -> None:
        """Let an LSTM's weights lie beside each other, as cuDNN wants them."""
        torch = self.torch
        self.no_bias = torch.zeros_like(b, requires_grad=False)
        mode = torch.backends.cudnn.rnn.get_cudnn_mode("LSTM")
        sizes = (4, w.shape[1], mode, u.shape[1], 0, 1, False, False)
        with torch.no_grad():
            torch._cudnn_rnn_flatten_weight([w, u, b, self.no_bias], *sizes)

    def lstm(self, x: Any, w: Any, b: Any, u: Any) -> Any:
        zeros = x.new_zeros((1, x.shape[1], u.shape[1]), dtype=x.dtype)
        weights = [w, u, b, self.torch.zeros_like(b) if self.no_bias is None else self.no_bias]
        settings = (True, 1, 0.0, True, False, False)  # biases, layers, dropout, training, ...
        _, h, _ = self.torch._VF.lstm(x, (zeros, zeros), weights, *settings)
        return h[0]


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
        return lib.f.cross_entropy(logits.float(), labels)

    run = loss_of if how == "eager" else torch.compile(loss_of, mode=how)

    def step() -> Any:
        optimizer.zero_grad()
        loss = run(x, labels, weights)
        loss.backward()
        optimizer.step()
        return loss.detach().clone() if how == "reduce-overhead" else loss.detach()

    return Made(step, torch.cuda.synchronize if device == "gpu" else lambda: None)


# -- JAX -------------------------------------------------------------------------------------------


class Jax:
    """JAX's functions."""

    def __init__(self, half: str | None) -> None:
        import jax

        self.jax, self.jnp, self.half = jax, jax.numpy, half

    def cast(self, x: Any, dtype: str | None) -> Any:
        return x if self.half is None else x.astype(dtype or self.half)

    def dense(self, x: Any, w: Any, b: Any) -> Any:
        return x @ self.cast(w, None) + self.cast(b, None)

    def relu(self, x: Any) -> Any:
        return self.jax.nn.relu(x)

    def batch_norm(self, x: Any, gamma: Any, beta: Any) -> Any:
        x = self.cast(x, "float32")
        mean, var = x.mean(0), x.var(0)
        return self.cast((x - mean) * self.jax.lax.rsqrt(var + BN_EPSILON) * gamma + beta, None)

    def convolution(self, x: Any, w: Any, b: Any) -> Any:
        kinds = ("NHWC", "HWIO", "NHWC")
        convolve = self.jax.lax.conv_general_dilated
        return convolve(x, self.cast(w, None), (1, 1), "SAME", dimension_numbers=kinds) + self.cast(
            b, None
        )

    def max_pool(self, x: Any) -> Any:
        lax, window = self.jax.lax, (1, 2, 2, 1)
        return lax.reduce_window(x, -self.jnp.inf, lax.max, window, window, "VALID")

    def flatten(self, x: Any) -> Any:
        return x.reshape(x.shape[0], -1)

    def lstm(self, x: Any, w: Any, b: Any, u: Any) -> Any:
        jax, jnp = self.jax, self.jnp
        u = self.cast(u, None)

        def cell(carry: Any, step: Any) -> Any:
            h, c = carry
            i, f, g, o = jnp.split(step + h @ u, 4, axis=-1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

        zeros = jnp.zeros((x.shape[1], u.shape[0]), x.dtype)
        (h, _), _ = jax.lax.scan(cell, (zeros, zeros), self.dense(x, w, b))
        return h


def jax(task: Task, half: str | None, device: str, how: str) -> Made:
    """Return the step in JAX, compiled as one function."""
    lib = Jax(half)
    jax, jnp = lib.jax, lib.jnp
    jax.config.update("jax_default_matmul_precision", "highest" if half is None else None)
    x, labels = map(jnp.asarray, task.data())

    def loss_of(weights: Any, x: Any, labels: Any) -> Any:
        logits = lib.cast(forward(lib, task, weights, lib.cast(x, None)), "float32")
        return -jax.nn.log_softmax(logits)[jnp.arange(len(labels)), labels].mean()

    def update(state: Any, x: Any, labels: Any) -> Any:
        weights, m, v, count = state
        loss, grads = jax.value_and_grad(loss_of)(weights, x, labels)
        count = count + 1
        rate = RATE * jnp.sqrt(1 - BETA_2**count) / (1 - BETA_1**count)
        m = [a * BETA_1 + g * (1 - BETA_1) for a, g in zip(m, grads, strict=True)]
        v = [a * BETA_2 + g * g * (1 - BETA_2) for a, g in zip(v, grads, strict=True)]
        rows = zip(weights, m, v, strict=True)
        return loss, ([w - rate * a / (jnp.sqrt(b) + EPSILON) for w, a, b in rows], m, v, count)

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
