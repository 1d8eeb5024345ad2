"""Hessians, Jacobians and per-example gradients beside PyTorch and JAX, in one run.

``python docs/benchmarks/derivatives.py`` prints the tables of ``docs/benchmarks/README.md``.
PyTorch and JAX take part if they are installed: ``pip install "gradtape[bench]"``. Before anything
is timed, the contenders' results are checked against one another.
"""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Callable
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpy as np
from eager import Contenders, installed
from timing import measure, table

import gradtape as gt

RNG = np.random.default_rng(0)


def normal(*shape: int) -> Any:
    """Return float32 numbers of which products stay near 1."""
    scale = np.sqrt(shape[0]) if len(shape) == 2 else 1.0
    return (RNG.standard_normal(shape) / scale).astype(np.float32)


def agree(contenders: Contenders) -> Contenders:
    """Check that all contenders compute the same."""
    results = {name: np.asarray(run()) for name, run in contenders.items()}
    first, *_ = results.values()
    for name, result in results.items():
        np.testing.assert_allclose(result, first, rtol=2e-3, atol=1e-5, err_msg=name)
    return contenders


# -- the Hessian of a layer of 40 parameters, as in TensorFlow's guide -----------------------------

INPUTS, K1, K2 = normal(7, 5), normal(5, 8), normal(8, 6)
B1, B2 = np.zeros(8, np.float32), np.zeros(6, np.float32)


def gradtape_hessian() -> Contenders:
    """Return gradtape: the guide's nested tapes over layers, and functions."""
    x, k1, k2, b1, b2 = map(gt.constant, (INPUTS, K1, K2, B1, B2))
    first, second = (gt.layers.Dense(n, activation="relu") for n in (8, 6))
    second(first(x))
    first.kernel.assign(k1)
    second.kernel.assign(k2)

    def tapes() -> Any:
        with gt.GradientTape() as outer:
            with gt.GradientTape() as inner:
                loss = gt.mean(second(first(x)) ** 2)
            g = inner.gradient(loss, first.kernel)
        return outer.jacobian(g, first.kernel)

    def loss(k: Any) -> Any:
        return gt.mean(gt.nn.relu(gt.nn.relu(x @ k + b1) @ k2 + b2) ** 2)

    eager = gt.hessian(loss)
    compiled = gt.function(eager)
    return {
        "gradtape, tapes over layers": tapes,
        "gradtape, hessian": lambda: eager(k1),
        "gradtape, function(hessian)": lambda: compiled(k1),
    }


def torch_hessian(compiled: bool = False) -> Contenders:
    """Return PyTorch's vectorised Hessian, and its functional one, which may be compiled."""
    import torch

    x, k1, k2, b1, b2 = map(torch.tensor, (INPUTS, K1, K2, B1, B2))

    def loss(k: Any) -> Any:
        return (torch.relu(torch.relu(x @ k + b1) @ k2 + b2) ** 2).mean()

    functional = torch.func.hessian(loss)
    functional = torch.compile(functional) if compiled else functional
    return {
        "PyTorch, hessian(vectorize=True)": lambda: torch.autograd.functional.hessian(
            loss, k1, vectorize=True
        ),
        "PyTorch, torch.func.hessian": lambda: functional(k1),
    }


def jax_hessian() -> Contenders:
    """Return JAX, compiled."""
    import jax
    import jax.numpy as jnp

    def loss(k: Any) -> Any:
        return jnp.mean(jax.nn.relu(jax.nn.relu(INPUTS @ k + B1) @ K2 + B2) ** 2)

    compiled = jax.jit(jax.hessian(loss))
    return {"JAX, jit(hessian)": lambda: compiled(K1).block_until_ready()}


# -- batch Jacobian: 32 -> 64 -> 32, elu, 256 examples ---------------------------------------------

BATCH, W1, W2 = normal(256, 32), normal(32, 64), normal(64, 32)
C1, C2 = np.zeros(64, np.float32), np.zeros(32, np.float32)


def gradtape_batch() -> Contenders:
    """Return gradtape: a tape over layers, and vmap over a function."""
    x, w1, w2, c1, c2 = map(gt.constant, (BATCH, W1, W2, C1, C2))
    first, second = (gt.layers.Dense(n, activation="elu") for n in (64, 32))
    second(first(x))
    first.kernel.assign(w1)
    second.kernel.assign(w2)

    def tape() -> Any:
        with gt.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(x)
            y = second(first(x))
        return tape.batch_jacobian(y, x)

    def model(row: Any) -> Any:
        return gt.nn.elu(gt.nn.elu(row @ w1 + c1) @ w2 + c2)

    mapped = gt.vmap(gt.jacrev(model))
    compiled = gt.function(tape)
    return {
        "gradtape, batch_jacobian": tape,
        "gradtape, function(batch_jacobian)": lambda: compiled(),
        "gradtape, vmap(jacrev)": lambda: mapped(x),
    }


def torch_batch(compiled: bool = False) -> Contenders:
    """Return PyTorch's vmap(jacrev), which may be compiled."""
    import torch

    x, w1, w2, c1, c2 = map(torch.tensor, (BATCH, W1, W2, C1, C2))
    elu = torch.nn.functional.elu

    def model(row: Any) -> Any:
        return elu(elu(row @ w1 + c1) @ w2 + c2)

    mapped = torch.func.vmap(torch.func.jacrev(model))
    mapped = torch.compile(mapped) if compiled else mapped
    return {"PyTorch, vmap(jacrev)": lambda: mapped(x)}


def jax_batch() -> Contenders:
    """Return JAX, compiled."""
    import jax

    def model(row: Any) -> Any:
        return jax.nn.elu(jax.nn.elu(row @ W1 + C1) @ W2 + C2)

    mapped = jax.jit(jax.vmap(jax.jacrev(model)))
    return {"JAX, jit(vmap(jacrev))": lambda: mapped(BATCH).block_until_ready()}


# -- 1,000 outputs by 1,000 inputs of a layer ------------------------------------------------------

ROW, WIDE = normal(1, 1000), normal(1000, 1000)


def large() -> Contenders:
    """Return the matrix product that the Jacobian needs, and the Jacobian of a layer."""
    x = gt.constant(ROW)
    found: Contenders = {}
    identity, turned = np.eye(1000, dtype=np.float32), WIDE.T
    found["NumPy, the matrix product"] = lambda: identity @ turned
    for activation in (None, "tanh"):
        layer = gt.layers.Dense(1000, activation=activation, use_bias=False)
        layer(x)
        layer.kernel.assign(WIDE)

        def run(layer: Any = layer) -> Any:
            with gt.GradientTape(watch_accessed_variables=False) as tape:
                tape.watch(x)
                y = layer(x)
            return tape.jacobian(y, x)

        found[f"gradtape, jacobian of Dense({activation or 'linear'})"] = run
    np.testing.assert_allclose(
        np.asarray(found["gradtape, jacobian of Dense(linear)"]())[0, :, 0], turned, rtol=1e-5
    )
    return found


# -- per-example gradients -------------------------------------------------------------------------

LABELS = normal(256, 32)


def gradtape_examples() -> Contenders:
    """Return gradtape's vmap over a gradient."""
    x, y, w1, w2 = map(gt.constant, (BATCH, LABELS, W1, W2))

    def loss(weights: Any, row: Any, label: Any) -> Any:
        return gt.sum((gt.tanh(row @ weights[0]) @ weights[1] - label) ** 2)

    mapped = gt.vmap(gt.grad(loss), in_axes=(None, 0, 0))
    return {"gradtape, vmap(grad)": lambda: mapped((w1, w2), x, y)[0]}


def torch_examples() -> Contenders:
    """Return PyTorch's."""
    import torch

    x, y, w1, w2 = map(torch.tensor, (BATCH, LABELS, W1, W2))

    def loss(weights: Any, row: Any, label: Any) -> Any:
        return ((torch.tanh(row @ weights[0]) @ weights[1] - label) ** 2).sum()

    mapped = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))
    return {"PyTorch, vmap(grad)": lambda: mapped((w1, w2), x, y)[0]}


# -- memory ----------------------------------------------------------------------------------------


def jacobian_memory(rows: int | None) -> float:
    """Return the peak, in MiB, of the Jacobian of 512 outputs by 512 inputs over 8,192 units."""
    x = gt.constant(normal(512, 1)[:, 0])
    w, v = gt.constant(normal(512, 8192)), gt.constant(normal(8192, 512))
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = gt.tanh(gt.tanh(x @ w) @ v)
    tracemalloc.start()
    tape.jacobian(y, x, parallel_iterations=rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20


def contest(ours: Callable[[], Contenders], *others: tuple[str, Callable[[], Contenders]]) -> Any:
    """Return the best times of all contenders that are installed."""
    found = ours()
    for package, contenders in others:
        if installed(package):
            found |= contenders()
    return measure(agree(found))


def main() -> None:
    """Measure and print."""
    vectorised, mapped = "PyTorch, hessian(vectorize=True)", "PyTorch, vmap(jacrev)"
    times = contest(gradtape_hessian, ("torch", torch_hessian), ("jax", jax_hessian))
    print(table("Hessian of a layer of 40 parameters", times, vectorised), end="\n\n")
    times = contest(gradtape_batch, ("torch", torch_batch), ("jax", jax_batch))
    print(table("Jacobians of 256 examples, 32 → 64 → 32", times, mapped), end="\n\n")
    times = measure(large())
    print(table("Jacobian, 1,000 by 1,000", times, "NumPy, the matrix product"), end="\n\n")
    times = contest(gradtape_examples, ("torch", torch_examples))
    print(table("gradients of 256 examples", times, "PyTorch, vmap(grad)"), end="\n\n")
    print("| rows at once | peak |\n| ---: | ---: |")
    for rows in (1, 8, 64, 512, None):
        label = "by the 1 GiB budget" if rows is None else f"{rows}"
        print(f"| {label} | {jacobian_memory(rows):.0f} MiB |")


if __name__ == "__main__":
    main()
