"""What arranges elements, and windows, in steps: on CuPy as node by node, and as on NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from comparing import Case, check

import gradtape as gt

DRAW = np.random.default_rng(0)
X = DRAW.normal(size=(4, 6, 3))
IMAGES, FILTERS = DRAW.normal(size=(2, 7, 6, 3)), DRAW.normal(size=(3, 2, 3, 4))

ARRANGED: dict[str, Callable[[Any], Any]] = {
    "split": lambda x: [y * 2.0 for y in gt.split(x, 3, axis=1)],
    "split at places": lambda x: [gt.sum(y, axis=0) for y in gt.split(x, [1, 4], axis=-2)],
    "unstack": lambda x: sum(gt.unstack(x, axis=1)[::2]),
    "parts as they are": lambda x: [*gt.unstack(x, axis=2), *gt.split(x, 2)],
    "getitem": lambda x: [x[1] * 1.0, x[:, ::-2], x[..., None, 1] + 1.0, x[-1, 2:5, 0] * 3.0],
    "one element": lambda x: x[1, 2, 0] * 2.0,
    "concatenate": lambda x: gt.concatenate([x, x * 2.0, x[:, :1]], axis=1),
    "of views": lambda x: (
        gt.concatenate([gt.transpose(x), x.mT[::-1], x.mT] * 2, axis=-1)
        if x.shape[0] == x.shape[2]
        else gt.concatenate([x[::-1, 1:], x[:, ::2]], axis=1)
    ),
    "in a sum": lambda x: gt.sum(gt.concatenate([gt.exp(x), x], axis=0), axis=0),
    "in a product": lambda x: gt.concatenate([x[0], x[1] * 2.0], axis=0) @ gt.transpose(x[2]),
    "stack": lambda x: [gt.stack([x, x * 2.0, x], axis=a) for a in (0, 1, -1)],
    "stack of numbers": lambda x: gt.stack([x[0, 0, 0], x[1, 1, 1] * 2.0]),
    "truths": lambda x: gt.concatenate([x > 0, x < 1.0], axis=2),
    "half": lambda x: gt.concatenate([gt.cast(x, "float16")] * 2, axis=0) * 2.0,
    "pad": lambda x: [gt.pad(x, [(1, 0), (0, 2), (3, 1)], constant_values=2.5), gt.pad(x, 1)],
    "pad with its own": lambda x: gt.pad(x[1:3], [(0, 0), (2, 1), (1, 1)], mode="reflect"),
    "repeat": lambda x: [gt.repeat(x, 3, axis=1), gt.repeat(x[0], 2), gt.repeat(x.mT, 9, axis=0)],
    "tile": lambda x: [gt.tile(x, 2), gt.tile(x[0], (3, 1, 2)), gt.tile(x, (2, 1, 1))],
    "roll and flip": lambda x: [gt.roll(x, 2, axis=1), gt.flip(x), gt.flip(x.mT, axis=(0, -1))],
    "triangles": lambda x: [gt.tril(x * 2.0), gt.triu(x.mT, k=1), gt.tril(x[0, 0], k=-1)],
    "diagonals": lambda x: [gt.diagonal(x, 1, axis1=1, axis2=2), gt.diag(x[0, :, 0], k=-1)],
    "again": lambda x: gt.concatenate(gt.split(gt.stack(gt.unstack(x)), 2, axis=1)[::-1], axis=1),
}


@pytest.mark.parametrize("how", ["default", "cuda_graphs"])
def test_arranged(either: Any, how: str) -> None:
    called = {"pad with its own": "unpad_picked_like"}  # a gradient that adds to some elements
    check(either, (Case(name, f, (X,), called.get(name, "")) for name, f in ARRANGED.items()), how)


COMPOSED: dict[str, Callable[[Any], Any]] = {
    "norm": lambda x: [gt.linalg.norm(x, axis=1), gt.linalg.norm(x * 1e200, axis=(0, 2))],
    "variance": lambda x: [gt.var(x, axis=(0, 2)), gt.var(x, axis=1, ddof=1, keepdims=True)],
    "deviation": lambda x: [gt.std(x), gt.std(x * 1e-200, axis=-1), gt.std(x, 0, keepdims=True)],
    "truth": lambda x: [gt.any(x > 1.5, axis=1), gt.all(x * 0.0), gt.any(x, axis=(0, 2))],
    "count": lambda x: [gt.count_nonzero(x > 0, axis=1), gt.count_nonzero(gt.nn.relu(x))],
}


def test_what_other_ops_compute(either: Any) -> None:
    check(either, (Case(name, f, (X,)) for name, f in COMPOSED.items()))


def test_convolutions(either: Any) -> None:
    settings = itertools.product((1, 2, (3, 1)), ("valid", "same", ((2, 3), (0, 1))), (1, 2))
    check(either, [
        Case(f"{s} {p} {d}", partial(gt.nn.conv, strides=s, padding=p, dilations=d),
             (IMAGES, FILTERS))
        for s, p, d in settings if s == 1 or d == 1
    ])  # fmt: skip


def test_convolutions_in_one_and_three_dimensions(either: Any) -> None:
    line = DRAW.normal(size=(2, 9, 3)), DRAW.normal(size=(4, 3, 2))
    volume = DRAW.normal(size=(2, 4, 5, 3, 2)), DRAW.normal(size=(2, 3, 1, 2, 2))
    check(either, [
        Case("1", partial(gt.nn.conv, strides=2, padding="same"), line),
        Case("3", partial(gt.nn.conv, padding="same"), volume),
    ])  # fmt: skip


def test_convolutions_in_other_ways(either: Any) -> None:
    def slopes(x: Any, w: Any) -> Any:
        with gt.GradientTape() as tape:
            tape.watch([x, w])
            y = gt.sum(gt.tanh(gt.nn.conv(x, w, strides=2, padding="same")))
        return tape.gradient(y, [x, w])

    def pooled(x: Any, w: Any) -> Any:
        return gt.nn.max_pool(gt.nn.conv(x, w, padding="same"), 2)

    halves = IMAGES[:, :6].astype("float16"), FILTERS.astype("float16")
    check(either, [
        Case("gradients of gradients", slopes, (IMAGES, FILTERS)),
        Case("half precision", pooled, halves),
    ])  # fmt: skip
