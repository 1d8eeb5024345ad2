"""What each advice of ``docs/faster.md`` is worth: the same work before and after, in turns.

``python docs/benchmarks/faster.py`` prints the table of that page. Before and after run in one
process and take turns; the figure is the ratio of their best times.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import time
from collections.abc import Callable
from typing import Any

import fitting
import numpy as np
import training_step
from rows import models
from timing import as_markdown, measure

import gradtape as gt

Pair = tuple[Callable[[], Any], Callable[[], Any]]

TASK = training_step.Task(784, (256, 256), 128)
#: For how many seconds reading waits.
WAIT = 0.005
SMALL = training_step.Task(64, (128,), 32)


def trained(task: training_step.Task = TASK, traced: bool = True) -> Callable[[], Any]:
    """Return a training step of Dense, BatchNorm, relu and Adam."""
    return training_step.gradtape(task, traced).step


def within(context: Callable[[], Any], run: Callable[[], Any]) -> Callable[[], Any]:
    """Return what runs something in a context."""

    def inside() -> None:
        with context():
            run()

    return inside


def compiled() -> Pair:
    """Return a small step, eager and by ``gt.function``."""
    return trained(SMALL, False), trained(SMALL, True)


def fitted() -> Pair:
    """Return ``fit`` for five epochs of the digits, as Python and by default."""
    data, _ = gt.datasets.load_digits()
    kinds = (False, "auto")
    before, after = (
        functools.partial(fitting.run, fitting.digits_model, data, kind, 5) for kind in kinds
    )
    return before, after


def fused() -> Pair:
    """Return a step without and with compiled loops."""
    before, after = (
        within(functools.partial(gt.executor, name), trained()) for name in ("planned", "fused")
    )
    return before, after


def single_precision() -> Pair:
    """Return a step over NumPy's ``float64``, and over ``float32``."""
    found = []
    for dtype in (np.float64, np.float32):
        task = training_step.Task(784, (256, 256), 128)
        task.x = task.x.astype(dtype)
        found.append(trained(task))
    return found[0], found[1]


def larger_batches() -> Pair:
    """Return 256 examples in steps of 32, and in one step."""
    small, large = trained(SMALL), trained(training_step.Task(64, (128,), 256))

    def eight() -> None:
        for _ in range(8):
            small()

    return eight, large


def layer_for_loop() -> Pair:
    """Return the first call of a compiled LSTM as a Python loop, and as a layer."""
    return (
        lambda: models.lstm_loop("gradtape", "compiled").run(),
        lambda: models.lstm("gradtape", "compiled").run(),
    )


def mapped() -> Pair:
    """Return the gradients of 64 examples, one after another and by ``gt.vmap``."""
    random = np.random.default_rng(0)
    w = gt.constant(random.standard_normal((32, 8)).astype(np.float32))
    x = gt.constant(random.standard_normal((64, 32)).astype(np.float32))
    gradient = gt.grad(lambda row: gt.sum(gt.tanh(row @ w) ** 2))
    every = gt.vmap(gradient)
    return lambda: [gradient(x[i]) for i in range(len(x))], lambda: every(x)


def prefetched() -> Pair:
    """Return an epoch over batches for which reading waits, between steps and meanwhile."""

    def read() -> Any:
        for _ in range(16):
            time.sleep(WAIT)  # as for a disk, or a network
            yield TASK.x

    labels = gt.constant(TASK.labels)
    model = gt.layers.Sequential([gt.layers.Dense(1024, "relu"), gt.layers.Dense(10)])
    model(np.zeros((1, 784), np.float32))
    optimizer = gt.training.Adam()

    @gt.function
    def step(x: Any) -> Any:
        with gt.GradientTape() as tape:
            losses = gt.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=model(x))
            loss = gt.mean(losses)
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    def epoch(data: Any) -> None:
        for x in data:
            step(gt.constant(x))

    data = gt.data.Dataset.from_generator(read)
    return lambda: epoch(data), lambda: epoch(data.prefetch(2))


def half_precision() -> Pair:
    """Return a step in ``float32``, and with the policy ``"mixed_float16"``."""

    def made(policy: str) -> Callable[[], Any]:
        with gt.mixed_precision.policy(policy):
            return trained()

    return made("float32"), made("mixed_float16")


def all_cores() -> Pair:
    """Return a step of large layers with one thread, and with those that BLAS starts."""
    step = trained(training_step.Task(784, (1024, 1024), 256))
    return within(lambda: gt.limit_threads(1), step), step


#: By name: what changes, what makes the two, and the package that it needs.
PAIRS: dict[str, tuple[str, Callable[[], Pair], str]] = {
    "function": (
        "`gt.function` around the step of a network 64-128-10, batches of 32",
        compiled,
        "gradtape",
    ),
    "fit": (
        "`fit` for five epochs of the digits: by default instead of `compile=False`",
        fitted,
        "gradtape",
    ),
    "fused": ('`pip install "gradtape[fused]"`', fused, "llvmlite"),
    "cores": ("all cores instead of one thread, layers of 1,024", all_cores, "threadpoolctl"),
    "float32": ("`float32` instead of NumPy's `float64`", single_precision, "gradtape"),
    "batch": (
        "batches of 256 instead of 32, per example, 64-128-10",
        larger_batches,
        "gradtape",
    ),
    "vmap": ("`gt.vmap` instead of a loop over 64 examples, eager", mapped, "gradtape"),
    "layer": (
        "an LSTM layer instead of a Python loop of 30 steps, first call",
        layer_for_loop,
        "gradtape",
    ),
    "prefetch": (
        "`prefetch` of batches, each of which waits 5 ms for a disk",
        prefetched,
        "gradtape",
    ),
    "half": ('the policy `"mixed_float16"` on a processor', half_precision, "gradtape"),
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PAIRS, default=list(PAIRS), help="these alone")
    parser.add_argument("--rounds", type=int, default=9, help="turns of each (%(default)s)")
    options = parser.parse_args()
    lines = [["what changes", "before ÷ after"]]
    for name in options.only:
        title, make, package = PAIRS[name]
        if importlib.util.find_spec(package) is None:
            lines.append([title, f"- ({package} is not installed)"])
            continue
        before, after = make()
        times = measure({"before": before, "after": after}, options.rounds, clock=time.perf_counter)
        lines.append([title, f"{times['before'] / times['after']:.2f}"])
    print(as_markdown(lines))


if __name__ == "__main__":
    main()
