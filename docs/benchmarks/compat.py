"""What ``gradtape.compat.tensorflow`` adds to an op, in nanoseconds.

``python docs/benchmarks/compat.py`` prints the table of ``docs/benchmarks/README.md``: for each op,
TensorFlow's call, gradtape's own call with the same result, and the difference of their best times.
All calls run in one process, in turn. ``--all`` prints every call instead of the groups.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np
from timing import as_markdown

import gradtape as gt
import gradtape.compat.tensorflow as tf

#: What a call may take longer, in nanoseconds.
LIMIT = 100
#: By group, TensorFlow's call and the same in gradtape's names.
CALLS = {
    "the same object": """
tf.sin(x) | gt.sin(x)
tf.add(x, y) | gt.add(x, y)
tf.multiply(x, 2.0) | gt.multiply(x, 2.0)
tf.maximum(x, y) | gt.maximum(x, y)
x + y | x + y
""",
    "elementwise": """
tf.pow(x, y) | gt.power(x, y)
tf.nn.relu(x) | gt.nn.relu(x)
tf.nn.softmax(x) | gt.nn.softmax(x)
tf.nn.log_softmax(x) | gt.nn.log_softmax(x)
tf.round(x) | gt.round(x)
tf.math.erf(x) | gt.erf(x)
tf.identity(x) | gt.copy(x)
tf.stop_gradient(x) | gt.stop_gradient(x)
tf.clip_by_value(x, 0.0, 1.0) | gt.clip(x, 0.0, 1.0)
tf.where(mask, x, y) | gt.where(mask, x, y)
tf.zeros_like(x) | gt.zeros_like(x)
tf.ones_like(x) | gt.ones_like(x)
""",
    "reductions": """
tf.reduce_sum(x) | gt.sum(x)
tf.reduce_sum(x, 1) | gt.sum(x, 1)
tf.reduce_sum(x, axis=1, keepdims=True) | gt.sum(x, axis=1, keepdims=True)
tf.reduce_sum(d) | gt.sum(d)
tf.reduce_sum(long) | gt.sum(long)
tf.reduce_sum(short) | gt.cast(gt.sum(short), tf.int32)
tf.reduce_mean(x) | gt.mean(x)
tf.reduce_mean(x, axis=-1) | gt.mean(x, axis=-1)
tf.reduce_prod(x) | gt.prod(x)
tf.reduce_max(x) | gt.max(x)
tf.reduce_min(x, axis=0) | gt.min(x, axis=0)
tf.reduce_sum(x, axis=(0, 1)) | gt.sum(x, axis=(0, 1))
tf.reduce_mean(x, axis=[0]) | gt.mean(x, axis=[0])
tf.reduce_sum(w) | gt.sum(w)
tf.reduce_all(mask) | gt.all(mask)
tf.reduce_logsumexp(x) | gt.logsumexp(x)
tf.math.reduce_std(x) | gt.std(x)
tf.math.reduce_variance(x) | gt.var(x)
tf.argmax(x, axis=1) | gt.argmax(x, axis=1)
tf.cumsum(x) | gt.cumsum(x, 0)
""",
    "products": """
tf.matmul(x, y) | gt.matmul(x, y)
tf.matmul(x, w) | gt.matmul(x, w)
tf.matmul(x, y, transpose_b=True) | gt.matmul(x, gt.matrix_transpose(y))
tf.linalg.matvec(x, v) | gt.matvec(x, v)
tf.tensordot(x, y, 1) | gt.tensordot(x, y, 1)
tf.einsum("ij,jk->ik", x, y) | gt.einsum("ij,jk->ik", x, y)
tf.norm(x) | gt.linalg.vector_norm(x)
tf.linalg.inv(x) | gt.linalg.inv(x)
tf.linalg.det(x) | gt.linalg.det(x)
""",
    "casts": """
tf.cast(x, tf.float64) | gt.cast(x, tf.float64)
tf.cast(x, tf.float32) | gt.cast(x, tf.float32)
tf.cast(x, "float64") | gt.cast(x, "float64")
tf.cast(x, tf.int32) | gt.cast(x, tf.int32)
tf.cast(mask, tf.float32) | gt.cast(mask, tf.float32)
""",
    "creation": """
tf.zeros((3, 3)) | gt.zeros((3, 3))
tf.zeros([3, 3], tf.float64) | gt.zeros([3, 3], tf.float64)
tf.ones((3, 3)) | gt.ones((3, 3))
tf.fill((3, 3), 2.0) | gt.broadcast_to(2.0, (3, 3))
tf.eye(3) | gt.eye(3, dtype=tf.float32)
tf.range(5) | gt.arange(5, dtype=tf.int32)
tf.linspace(0.0, 1.0, 5) | gt.linspace(0.0, 1.0, 5)
tf.one_hot(short, 9) | gt.one_hot(short, 9, tf.float32)
tf.constant(1.0) | gt.constant(1.0)
tf.constant([1.0, 2.0]) | gt.constant([1.0, 2.0])
tf.constant(raw) | gt.constant(raw)
tf.convert_to_tensor(x) | gt.as_tensor(x)
tf.convert_to_tensor(raw) | gt.as_tensor(raw)
tf.random.normal((3, 3)) | gt.random.normal((3, 3), 0.0, 1.0, tf.float32)
tf.random.uniform((3, 3)) | gt.random.uniform((3, 3), 0, 1.0, tf.float32)
""",
    "shapes and elements": """
tf.reshape(x, (9,)) | gt.reshape(x, (9,))
tf.transpose(x) | gt.transpose(x)
tf.expand_dims(x, 0) | gt.expand_dims(x, 0)
tf.squeeze(row) | gt.squeeze(row)
tf.concat([x, y], 0) | gt.concatenate([x, y], 0)
tf.concat([x, y, x], axis=1) | gt.concatenate([x, y, x], axis=1)
tf.stack([x, y]) | gt.stack([x, y])
tf.unstack(x) | gt.unstack(x)
tf.split(x, 3) | gt.split(x, 3)
tf.tile(x, (2, 1)) | gt.tile(x, (2, 1))
tf.broadcast_to(v, (3, 3)) | gt.broadcast_to(v, (3, 3))
tf.gather(x, short) | gt.take(x, short, 0)
tf.reverse(x, (0,)) | gt.flip(x, (0,))
x.shape | x.shape
x[0] | x[0]
""",
    "losses": """
tf.nn.sigmoid_cross_entropy_with_logits(y, x) | binary(labels=y, logits=x)
tf.nn.softmax_cross_entropy_with_logits(y, x) | categorical(labels=y, logits=x)
tf.math.squared_difference(x, y) | gt.square(gt.subtract(x, y))
tf.clip_by_norm(x, 1.0) | gt.clip_by_norm(x, 1.0)
""",
}


def arguments() -> dict[str, Any]:
    """Return what the calls name: small arrays, for which the cost of a call matters."""
    return {
        "gt": gt,
        "tf": tf,
        "binary": gt.nn.sigmoid_cross_entropy_with_logits,
        "categorical": gt.nn.softmax_cross_entropy_with_logits,
        "raw": np.linspace(0.1, 1.0, 9, dtype=np.float32).reshape(3, 3),
        "x": gt.constant(np.linspace(0.1, 1.0, 9, dtype=np.float32).reshape(3, 3) ** 2),
        "y": gt.constant(np.linspace(0.2, 0.9, 9, dtype=np.float32).reshape(3, 3)),
        "d": gt.constant(np.ones((3, 3))),
        "v": gt.constant(np.ones(3, np.float32)),
        "w": tf.Variable(np.ones((3, 3), np.float32)),
        "row": gt.constant(np.ones((1, 3), np.float32)),
        "mask": gt.constant(np.eye(3, dtype=bool)),
        "long": gt.constant(np.arange(3)),
        "short": gt.constant(np.arange(3, dtype=np.int32)),
    }


def same(a: Any, b: Any) -> bool:
    """Return whether two results agree in number, dtype and shape; random values differ."""
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape


def timed(ours: Callable[[], Any], native: Callable[[], Any], rounds: int) -> tuple[float, float]:
    """Return the best times of two calls in nanoseconds; each goes first in every other round."""
    pair = [native, ours]
    best = dict.fromkeys(pair, float("inf"))
    count = 1
    for turn in range(-5, rounds):
        pair.reverse()
        for run in pair:
            start = time.perf_counter_ns()
            for _ in range(count):
                run()
            spent = (time.perf_counter_ns() - start) / count
            best[run] = min(best[run], spent) if turn else spent
        if turn < 0:  # caches are filled; short windows are seldom disturbed
            count = max(5, int(1e5 / spent))
    return best[ours], best[native]


def main() -> int:
    """Measure, print, and return 1 if a call takes more than ``LIMIT`` longer."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--all", action="store_true", help="print a line for each call")
    options = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    print(f"numpy {version('numpy')}, gradtape {version('gradtape')}", end="\n\n")
    scope = arguments()
    lines, groups, over = [], [], []
    for group, calls in CALLS.items():
        found = []
        for ours, native in (line.split(" | ") for line in calls.strip().split("\n")):
            runs = [eval(f"lambda: {call}", scope) for call in (ours, native)]
            if not same(*(run() for run in runs)):
                raise AssertionError(f"{ours} and {native} differ")
            best, base = timed(*runs, options.rounds)
            more = best - base
            lines.append([f"`{ours}`", f"{base:,.0f}", f"{more:+,.0f}"])
            found.append((more, ours))
            over += [ours] if more > LIMIT else []
        middle, (most, worst) = statistics.median(more for more, _ in found), max(found)
        groups.append([group, str(len(found)), f"{middle:+.0f}", f"{most:+,.0f}", f"`{worst}`"])
    if options.all:
        print(as_markdown([["call", "native, ns", "added, ns"], *lines]))
    else:
        print(as_markdown([["calls", "how many", "median, ns", "most, ns", "by"], *groups]))
    if over:
        print(f"\nover {LIMIT} ns: {', '.join(over)}")
    return bool(over)


if __name__ == "__main__":
    sys.exit(main())
