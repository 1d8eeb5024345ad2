"""Networks to train on any device: the same in gradtape, PyTorch and JAX, from the same weights.

An MLP is of Dense, BatchNorm (by the batch's statistics) and relu layers, as in ``training_step``;
then there are a small convolution network, an LSTM, an attention block with a classifier, and a VAE
whose noise is given. Each is trained by Adam. In ``float16`` and ``bfloat16`` the weights stay
float32 and are cast where they are used, and normalisation and loss are float32. In ``float32`` no
library may round the operands of a product to fewer bits; in ``tf32`` each may. The last row draws
random numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from libraries import Gradtape, Jax, Torch
from training_step import BETA_1, BETA_2, CLASSES, EPSILON, RATE, adam_in_jax

__all__ = ["NUMBERS", "TASKS", "Made", "Numbers", "Task", "make"]


class Numbers(NamedTuple):
    """How a row computes.

    Attributes
    ----------
    half
        The dtype of products and activations, if it is not float32.
    tf32
        Whether operands of products of float32 matrices may be rounded to TF32.
    """

    half: str | None = None
    tf32: bool = False


NUMBERS = {
    "float32": Numbers(),
    "tf32": Numbers(tf32=True),
    "float16": Numbers("float16"),
    # gradtape's tensors are float32, rounded to bfloat16; TF32 does not change their products
    "bfloat16": Numbers("bfloat16", tf32=True),
}


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

    @property
    def numbers(self) -> list[str]:
        """The names of :data:`NUMBERS` that it can compute with."""
        return ["float32"] if self.kind == "draws" else list(NUMBERS)

    def data(self) -> tuple[np.ndarray, np.ndarray]:
        """Return a batch, and its labels or an autoencoder's noise."""
        random = np.random.default_rng(0)
        labels = random.integers(0, CLASSES, self.batch)
        x = random.random(self.shape, dtype=np.float32)
        if self.kind == "autoencoder":
            labels = random.standard_normal((self.batch, self.units[1])).astype(np.float32)
        return x, labels

    def weights(self) -> list[np.ndarray]:
        """Return kernels with their biases, and after those of an MLP's layers gamma and beta."""
        found: list[np.ndarray] = []
        random = np.random.default_rng(1)

        def kernel(*shape: int) -> None:
            found.extend(_kernel(random, shape))

        features = self.shape[-1]
        if self.kind == "draws":
            return found
        if self.kind == "autoencoder":
            return autoencoder_weights(features, *self.units)
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
        elif self.kind == "attention":
            found = block_weights(features)
        else:
            (units,) = self.units
            kernel(features, 4 * units)
            found.append((random.standard_normal((units, 4 * units)) * 0.05).astype(np.float32))
            features = units
        kernel(features, CLASSES)
        return found


def _kernel(random: np.random.Generator, shape: tuple[int, ...]) -> list[np.ndarray]:
    """Return a kernel and its bias."""
    scale = 0.8 / np.sqrt(np.prod(shape[:-1]))
    kernel = (random.standard_normal(shape) * scale).astype(np.float32)
    return [kernel, np.zeros(shape[-1], np.float32)]


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
    "attention": (
        Task(
            "attention block of 512, 8 heads, 256 tokens, batch 16",
            "attention",
            (16, 256, 512),
            (8,),
        ),
        Task("attention block of 16, 2 heads, 8 tokens, batch 4", "attention", (4, 8, 16), (2,)),
    ),
    "autoencoder": (
        Task("VAE 784-512-20-512-784, batch 256", "autoencoder", (256, 784), (512, 20)),
        Task("VAE 64-32-4-32-64, batch 16", "autoencoder", (16, 64), (32, 4)),
    ),
    "draws": (
        Task("normal numbers, 1,024 by 1,024, with dropout", "draws", (1024, 1024), ()),
        Task("normal numbers, 512 by 512, with dropout", "draws", (512, 512), ()),
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
    elif task.kind == "attention":
        x = block(lib, left, x, task.units[0]).mean(1)
    else:
        x = lib.lstm(x, next(left), next(left), next(left))
    return lib.dense(x, next(left), next(left))


def block(lib: Any, left: Iterator[Any], x: Any, heads: int) -> Any:
    """Return what attention and an MLP add to tokens, each after a LayerNorm."""
    batch, tokens, width = x.shape

    def dense(x: Any) -> Any:
        return lib.dense(x, next(left), next(left))

    def normal(x: Any) -> Any:
        return lib.layer_norm(x, next(left), next(left))

    def parted(x: Any) -> Any:
        return lib.swap(x.reshape(batch, tokens, heads, width // heads), 1, 2)

    h = normal(x)
    q, k, v = parted(dense(h)), parted(dense(h)), parted(dense(h))
    h = lib.swap(lib.causal_attention(q, k, v), 1, 2).reshape(batch, tokens, width)
    x = x + dense(h)
    return x + dense(lib.gelu(dense(normal(x))))


def block_weights(width: int) -> list[np.ndarray]:
    """Return the weights of :func:`block` in the order of their use."""
    random = np.random.default_rng(1)
    square, wide = (width, width), (width, 4 * width)
    found = []
    for kernels in ((square,) * 4, (wide, wide[::-1])):
        found += [np.ones(width, np.float32), np.zeros(width, np.float32)]
        found += [x for shape in kernels for x in _kernel(random, shape)]
    return found


def autoencoder_loss(lib: Any, weights: Sequence[Any], images: Any, noise: Any) -> Any:
    """Return the loss of a variational autoencoder; in half precision it is float32."""
    w, size = weights, noise.shape[-1]
    code = lib.dense(lib.relu(lib.dense(images, *w[0:2])), *w[2:4])
    code = lib.cast(code, "float32")
    mean, spread = code[:, :size], code[:, size:]
    drawn = lib.cast(mean + lib.exp(spread) * noise, None)
    logits = lib.dense(lib.relu(lib.dense(drawn, *w[4:6])), *w[6:8])
    pixels = lib.sigmoid_cross_entropy(lib.cast(logits, "float32"), lib.cast(images, "float32"))
    distance = lib.exp(2 * spread) + mean**2 - 1 - 2 * spread
    return (pixels.sum(-1) + distance.sum(-1) / 2).mean()


def autoencoder_weights(pixels: int, hidden: int, code: int) -> list[np.ndarray]:
    """Return the weights of an autoencoder in the order of their use."""
    random = np.random.default_rng(1)
    shapes = ((pixels, hidden), (hidden, 2 * code), (code, hidden), (hidden, pixels))
    return [x for shape in shapes for x in _kernel(random, shape)]


def loss_of(lib: Any, task: Task, weights: Sequence[Any], x: Any, labels: Any) -> Any:
    """Return the loss."""
    x = lib.cast(x, None)
    if task.kind == "autoencoder":
        return autoencoder_loss(lib, weights, x, labels)
    return lib.cross_entropy(lib.cast(forward(lib, task, weights, x), "float32"), labels)


def drawn_loss(lib: Any, x: Any) -> Any:
    """Return the mean of numbers of which half were dropped: no two libraries draw the same."""
    return lib.dropout(abs(x), 0.5).mean()


# -- gradtape --------------------------------------------------------------------------------------


def gradtape(task: Task, numbers: Numbers, device: str, how: str) -> Made:
    """Return the step in gradtape, eager or as one traced function; ``how`` is the executor."""
    lib = Gradtape(numbers.half)
    gt = lib.gt
    backend = "cupy" if device == "gpu" else "numpy"
    precision = "tf32" if numbers.tf32 else "float32"
    with gt.backend(backend):
        given = [] if task.kind == "draws" else list(map(gt.constant, task.data()))
        variables = [gt.Variable(w) for w in task.weights()]
        optimizer = gt.training.Adam(RATE, BETA_1, BETA_2, EPSILON)
        lib.generator = gt.random.Generator(0)

    def step(x: Any, labels: Any) -> Any:
        with gt.GradientTape() as tape:
            loss = loss_of(lib, task, [v.value for v in variables], x, labels)
        grads = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(grads, variables, strict=True))
        return loss

    def draw() -> Any:
        return drawn_loss(lib, lib.generator.normal(task.shape))

    run = draw if task.kind == "draws" else step
    if how != "eager":
        run = gt.function(run, executor=how)

    def placed() -> Any:
        with gt.backend(backend), gt.mixed_precision.matmul_precision(precision):
            return run(*given)

    def finish() -> None:
        if backend == "cupy":
            gt.registry().backend(backend).xp.cuda.Device().synchronize()

    return Made(placed, finish)


# -- PyTorch ---------------------------------------------------------------------------------------


def torch(task: Task, numbers: Numbers, device: str, how: str) -> Made:
    """Return the step in PyTorch; ``how`` is eager, or the mode of ``torch.compile``."""
    lib = Torch()
    torch = lib.torch
    place = "cuda" if device == "gpu" else "cpu"
    torch.set_float32_matmul_precision("high" if numbers.tf32 else "highest")
    torch.backends.cudnn.allow_tf32 = numbers.tf32
    finish = torch.cuda.synchronize if device == "gpu" else lambda: None

    def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
        return function if how == "eager" else torch.compile(function, mode=how)

    if task.kind == "draws":
        draw = compiled(lambda: drawn_loss(lib, torch.randn(task.shape, device=place)))
        return Made(lambda: draw().clone() if how == "reduce-overhead" else draw(), finish)
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
    half = numbers.half and getattr(torch, numbers.half)

    def loss(x: Any, labels: Any, weights: Any) -> Any:
        with torch.autocast(place, half or torch.float16, enabled=half is not None):
            return loss_of(lib, task, weights, x, labels)

    run = compiled(loss)

    def step() -> Any:
        optimizer.zero_grad()
        loss = run(x, labels, weights)
        loss.backward()
        optimizer.step()
        return loss.detach().clone() if how == "reduce-overhead" else loss.detach()

    return Made(step, finish)


# -- JAX -------------------------------------------------------------------------------------------


def jax(task: Task, numbers: Numbers, device: str, how: str) -> Made:
    """Return the step in JAX, compiled as one function."""
    lib = Jax(numbers.half)
    jax, jnp = lib.jax, lib.jnp
    precision = "tensorfloat32" if numbers.tf32 else "highest"
    jax.config.update("jax_default_matmul_precision", None if numbers.half else precision)

    def update(state: Any, x: Any, labels: Any) -> Any:
        loss, grads = jax.value_and_grad(lambda weights: loss_of(lib, task, weights, x, labels))(
            state[0]
        )
        return loss, adam_in_jax(state, grads)

    def draw(key: Any) -> Any:
        key, lib.key, numbers = jax.random.split(key, 3)
        return drawn_loss(lib, jax.random.normal(numbers, task.shape)), key

    if task.kind == "draws":
        run, given, first = jax.jit(draw), (), jax.random.key(0)
    else:
        run, given = jax.jit(update, donate_argnums=0), tuple(map(jnp.asarray, task.data()))
        weights = [jnp.asarray(w) for w in task.weights()]
        zeros = [[jnp.zeros_like(w) for w in weights] for _ in range(2)]
        first = (weights, *zeros, jnp.zeros(()))
    state = [first]

    def step() -> Any:
        loss, state[0] = run(state[0], *given)
        return loss

    return Made(step, lambda: jax.block_until_ready(state[0]))


def make(library: str, task: Task, numbers: Numbers, device: str, how: str) -> Made:
    """Return a row's step.

    Parameters
    ----------
    library
        ``"gradtape"``, ``"torch"`` or ``"jax"``.
    task
        The row.
    numbers
        How it computes.
    device
        ``"gpu"`` or ``"cpu"``.
    how
        How the library runs it: see :data:`gpu.CONTENDERS`.
    """
    makers: dict[str, Callable[[Task, Numbers, str, str], Made]]
    makers = {"gradtape": gradtape, "torch": torch, "jax": jax}
    return makers[library](task, numbers, device, how)
