"""What a call across a bridge to PyTorch or JAX costs, next to each library alone.

``python docs/benchmarks/interop.py`` prints the tables of the guide "With PyTorch and JAX": medians
of a tiny function, ``2x + 1`` on four numbers, and how much memory is copied for a large one. It
needs ``pip install "gradtape[bench]"``.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np
import torch

import gradtape as gt

Runs = Mapping[str, tuple[Callable[[], Any], Callable[[], Any]]]


def tiny(x: Any) -> Any:
    """Return what is timed; each library has these operators."""
    return x * 2.0 + 1.0


def in_torch(f: Any) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Return a call in a program of PyTorch, and a call with its backward pass."""
    x = torch.ones(4, requires_grad=True)
    g = torch.ones(4)

    def both() -> Any:
        return torch.autograd.grad(f(x), x, g)

    with torch.no_grad():
        np.testing.assert_array_equal(f(x), 3.0)
    np.testing.assert_array_equal(both()[0], 2.0)
    return lambda: f(x), both


def in_gradtape(f: Any) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Return a call in a program of gradtape, and a call with its backward pass."""
    x = gt.constant(np.ones(4, np.float32))

    def both() -> Any:
        with gt.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, x)

    np.testing.assert_array_equal(f(x).numpy(), 3.0)
    np.testing.assert_array_equal(both().numpy(), 2.0)
    return lambda: f(x), both


def in_jax(f: Any) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Return a call in a program of JAX, and a compiled gradient."""
    x = jnp.ones(4)
    slope = jax.jit(jax.value_and_grad(lambda x: f(x).sum()))
    np.testing.assert_array_equal(f(x), 3.0)
    np.testing.assert_array_equal(slope(x)[1], 2.0)
    return lambda: jax.block_until_ready(f(x)), lambda: jax.block_until_ready(slope(x))


def medians(run: Callable[[], Any], rounds: int = 41, seconds: float = 0.01) -> float:
    """Return the median time of a call in microseconds."""
    for _ in range(20):
        run()
    start = time.perf_counter()
    run()
    count = max(1, int(seconds / (time.perf_counter() - start)))
    found = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(count):
            run()
        found.append((time.perf_counter() - start) / count * 1e6)
    return statistics.median(found)


def print_times() -> None:
    """Print the tables of times."""
    torch_bridge, jax_bridge = gt.interop.torch, gt.interop.jax
    tables: dict[str, Runs] = {
        "in a PyTorch program": {
            "PyTorch alone": in_torch(tiny),
            "`to_torch`": in_torch(torch_bridge.to_torch(tiny)),
            "`to_torch` of a `gt.function`": in_torch(torch_bridge.to_torch(gt.function(tiny))),
        },
        "in a JAX program": {
            "JAX alone, `jit`": in_jax(jax.jit(tiny)),
            "`to_jax` in `jit`": in_jax(jax.jit(jax_bridge.to_jax(tiny))),
        },
        "in a gradtape program": {
            "gradtape alone": in_gradtape(tiny),
            "`from_torch`": in_gradtape(torch_bridge.from_torch(tiny)),
            "`from_torch` in a `gt.function`": in_gradtape(
                gt.function(torch_bridge.from_torch(tiny))
            ),
            "`from_jax` of a `jit`": in_gradtape(jax_bridge.from_jax(jax.jit(tiny))),
        },
    }
    with gt.backend("jax"):
        on_jax = in_jax(jax.jit(jax_bridge.to_jax(tiny)))
        tables["in a JAX program"] = {
            **tables["in a JAX program"],
            '`to_jax` in `jit`, inside `gt.backend("jax")`': on_jax,
        }
    for title, runs in tables.items():
        print(f"\n| {title} | call, µs | call and gradient, µs |\n| --- | ---: | ---: |")
        for name, (call, both) in runs.items():
            print(f"| {name} | {medians(call):,.0f} | {medians(both):,.0f} |")


def print_copies() -> None:
    """Print whether the memory of a large argument and result is shared."""

    def where(x: Any) -> int:
        if isinstance(x, torch.Tensor):
            return int(x.data_ptr())
        if isinstance(x, jax.Array):
            return int(x.unsafe_buffer_pointer())
        return int(np.asarray(x.array).__array_interface__["data"][0])

    def spied(x: Any) -> Any:
        y = tiny(x)
        if not isinstance(x, jax.core.Tracer):
            seen[:] = [where(x), where(y)]
        return y

    seen: list[int] = []
    big = gt.constant(np.ones(10**6, np.float32))
    for name, f, x in (
        ("to_torch", gt.interop.torch.to_torch(spied), torch.ones(10**6)),
        ("from_torch", gt.interop.torch.from_torch(spied), big),
        ("from_jax", gt.interop.jax.from_jax(spied), big),
    ):
        y = f(x)
        same = [a == b for a, b in zip(seen, (where(x), where(y)), strict=True)]
        print(f"{name}: copies of the argument: {1 - same[0]}, of the result: {1 - same[1]}")


if __name__ == "__main__":
    print_times()
    print_copies()
