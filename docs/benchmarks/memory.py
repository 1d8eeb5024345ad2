"""What stays in memory: after the gradient of a very long chain, and after many training steps.

``python docs/benchmarks/memory.py`` prints two tables and exits with 1 if memory was kept.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
import tracemalloc
import weakref
from typing import Any

import numpy as np

import gradtape as gt

MEBIBYTE = 2**20


def resident() -> float:
    """Return the process's resident memory in MiB (on Linux)."""
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / MEBIBYTE


def chain(length: int) -> tuple[float, float]:
    """Differentiate a chain of ``length`` ops; return MiB in use at its end, and afterwards."""
    x = gt.constant(np.linspace(0.1, 1.0, 8, dtype=np.float32))
    gc.collect()
    before = resident()
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = x
        middle = None
        for i in range(length):
            y = gt.sin(y)
            if i == length // 2:
                middle = weakref.ref(y.array)
    held = resident() - before
    g = tape.gradient(y, x)
    gc.collect()
    if not np.all(np.isfinite(g.numpy())) or middle is None or middle() is not None:
        raise AssertionError("the chain's arrays are still alive after its gradient")
    return held, resident() - before


def traced_bytes(length: int) -> tuple[int, int]:
    """Return the bytes that Python holds at the end of a chain, and after its gradient."""
    x = gt.constant(np.ones(8, np.float32))
    with gt.GradientTape() as tape:  # whatever is made once is made here
        tape.watch(x)
        y = gt.sin(x)
    tape.gradient(y, x)
    tracemalloc.start()
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = x
        for _ in range(length):
            y = gt.sin(y)
    held = tracemalloc.get_traced_memory()[0]
    g = tape.gradient(y, x)
    del y
    gc.collect()
    left = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    del g
    return held, left


def trainer() -> Any:
    """Return a training step of a small model with a BatchNorm."""
    random = np.random.default_rng(0)
    x = gt.constant(random.random((32, 64), dtype=np.float32))
    labels = gt.constant(random.integers(0, 10, 32))
    layers = gt.layers
    model = layers.Sequential(
        [layers.Dense(32), layers.BatchNorm(), layers.Activation("relu"), layers.Dense(10)]
    )
    optimizer = gt.training.Adam(1e-3)

    def step() -> None:
        with gt.GradientTape() as tape:
            logits = model(x, training=True)
            loss = gt.mean(
                gt.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
            )
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))

    return step


def training(steps: int) -> list[tuple[int, float, int]]:
    """Train; return (steps done, MiB resident, Python objects alive) at five points."""
    step = trainer()
    gc.disable()  # what only the cycle collector would free must not pile up
    found = []
    warm_up, part = max(200, steps // 10), steps // 4
    try:
        for _ in range(warm_up):
            step()
        found.append((warm_up, resident(), len(gc.get_objects())))
        for i in range(4):
            for _ in range(part):
                step()
            found.append((warm_up + (i + 1) * part, resident(), len(gc.get_objects())))
    finally:
        gc.enable()
    return found


def main() -> int:
    """Measure, print and judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--length", type=int, default=1_000_000)
    parser.add_argument("--steps", type=int, default=10_000)
    options = parser.parse_args()
    kept = []

    print("| chain | ops | at its end | after its gradient | seconds |")
    print("| --- | ---: | ---: | ---: | ---: |")
    # twice: what the allocator keeps for reuse after the first run must serve the second
    for name in ("first", "second"):
        start = time.perf_counter()
        held, left = chain(options.length)
        seconds = time.perf_counter() - start
        print(
            f"| {name} | {options.length:,} | {held:,.0f} MiB | {left:,.0f} MiB | {seconds:.1f} |"
        )
    if left > 0.1 * (options.length * 200 / MEBIBYTE) + 8:
        kept.append(f"{left:.0f} MiB of a chain")
    count = min(options.length, 50_000)
    held_bytes, left_bytes = traced_bytes(count)
    print(
        f"| by tracemalloc | {count:,} | {held_bytes / MEBIBYTE:,.2f} MiB "
        f"| {left_bytes / MEBIBYTE:,.3f} MiB | |"
    )
    if left_bytes > 0.01 * held_bytes:
        kept.append(f"{left_bytes} of {held_bytes} bytes of a chain")

    print("\n| training steps | resident | Python objects |")
    print("| ---: | ---: | ---: |")
    points = training(options.steps)
    for done, mebibytes, objects in points:
        print(f"| {done:,} | {mebibytes:,.1f} MiB | {objects:,} |")
    if points[-1][1] - points[0][1] > 2:
        kept.append(f"{points[-1][1] - points[0][1]:.1f} MiB over {options.steps} training steps")
    if points[-1][2] - points[0][2] > 50:
        kept.append(f"{points[-1][2] - points[0][2]} objects over {options.steps} training steps")
    for what in kept:
        print(f"kept: {what}", file=sys.stderr)
    return 1 if kept else 0


if __name__ == "__main__":
    sys.exit(main())
