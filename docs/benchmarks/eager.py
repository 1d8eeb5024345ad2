"""What gradtape costs beside others, in one run: tiny ops, a training step, and the import.

``python docs/benchmarks/eager.py`` prints the table of ``docs/benchmarks/README.md``. PyTorch, JAX
and autograd take part if they are installed: ``pip install "gradtape[bench]"``. Before anything is
timed, each contender's result is checked against the NumPy code written by hand.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpy as np
import training_step
from timing import measure, table

import gradtape as gt

Contenders = dict[str, Callable[[], Any]]

START = np.linspace(0.1, 1.0, 10, dtype=np.float32)
LENGTH = 50


def installed(*names: str) -> bool:
    """Return whether all of these packages can be imported."""
    return all(importlib.util.find_spec(name) for name in names)


# -- 100 tiny ops: 50 times sin(y * 1.001), forward and gradient ---------------------------------


def numpy_tiny() -> np.ndarray:
    """Return the gradient, by the chain rule written out."""
    y, saved = START, []
    for _ in range(LENGTH):
        y = y * 1.001
        saved.append(y)
        y = np.sin(y)
    g = np.ones_like(y)
    for z in reversed(saved):
        g = g * np.cos(z) * 1.001
    return g


def gradtape_tiny(tf: Any = gt) -> Contenders:
    """Return gradtape, eager and traced; or what has TensorFlow's names, such as compat."""
    start = tf.constant(START)

    def eager(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x
            for _ in range(LENGTH):
                y = tf.sin(y * 1.001)
        return tape.gradient(y, x)

    traced = tf.function(eager)
    return {
        "gradtape, eager": lambda: eager(start).numpy(),
        "gradtape, function": lambda: traced(start).numpy(),
    }


def torch_tiny(compiled: bool = False) -> Contenders:
    """Return PyTorch, eager or with the chain by ``torch.compile``."""
    import torch

    x = torch.tensor(START, requires_grad=True)

    def chain(y: Any) -> Any:
        for _ in range(LENGTH):
            y = torch.sin(y * 1.001)
        return y.sum()

    forward = torch.compile(chain) if compiled else chain
    return {"PyTorch, eager": lambda: torch.autograd.grad(forward(x), x)[0].numpy()}


def autograd_tiny() -> Contenders:
    """Return HIPS autograd."""
    import autograd
    import autograd.numpy as anp

    def chain(y: Any) -> Any:
        for _ in range(LENGTH):
            y = anp.sin(y * np.float32(1.001))
        return anp.sum(y)

    gradient = autograd.grad(chain)
    return {"autograd": lambda: gradient(START)}


def jax_tiny() -> Contenders:
    """Return JAX, compiled."""
    import jax
    import jax.numpy as jnp

    def chain(y: Any) -> Any:
        for _ in range(LENGTH):
            y = jnp.sin(y * 1.001)
        return y.sum()

    gradient = jax.jit(jax.grad(chain))
    x = jnp.asarray(START)
    return {"JAX, jit": lambda: np.asarray(gradient(x))}


def tiny() -> Contenders:
    """Return all contenders of the tiny ops, checked."""
    found: Contenders = {"NumPy by hand": numpy_tiny, **gradtape_tiny()}
    if installed("torch"):
        found |= torch_tiny()
    if installed("autograd"):
        found |= autograd_tiny()
    if installed("jax"):
        found |= jax_tiny()
    for name, run in found.items():
        np.testing.assert_allclose(run(), numpy_tiny(), rtol=1e-4, err_msg=name)
    return found


# -- import --------------------------------------------------------------------------------------


def import_time(statements: str, rounds: int = 15, clock: str = "perf_counter") -> float:
    """Return the best time of an import in a new process, in microseconds."""
    code = f"from time import {clock} as t; start = t(); {statements}; print(t() - start)"
    runs = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
        for _ in range(rounds)
    ]
    return min(runs) * 1e6


def main() -> None:
    """Measure and print."""
    names = ["numpy", "gradtape", "torch", "jax", "autograd"]
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    print(", ".join(f"{name} {version(name)}" for name in names if installed(name)), end="\n\n")
    print(table("100 tiny ops, forward and gradient", measure(tiny()), "PyTorch, eager"))
    print()
    contenders = training_step.contenders(installed)
    print(table("one training step", measure(contenders), "PyTorch, eager"))
    print()
    # gradtape's names are imported when they are first used: the first sum finds the plugins too
    once = ("import numpy", "import gradtape", "import gradtape; gradtape.constant(1.0) + 1.0")
    imports = {statements: import_time(statements) for statements in once}
    print(table("import", imports, "import numpy"))


if __name__ == "__main__":
    main()
