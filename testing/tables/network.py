"""Samples of ops of networks: convolutions, pooling, normalisation, softmax, losses."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape as gt

from ..samples import Sample
from .drawing import complexes, positive, real, spread_numbers

X, V, SCALE = real(4, 3), real(3), positive(3)
LABELS = np.array([0, 2, 2, 1])
SHARES = positive(4, 3) / 3.0
LINE = {"strides": (1,), "padding": ((0, 0),), "dilations": (1,)}
STEPS = {"strides": (2,), "padding": ((1, 1),), "dilations": (2,)}
PLANE = {"strides": (1, 2), "padding": ((1, 0), (0, 1)), "dilations": (1, 1)}
HALVES = {"window": (2,), "strides": (2,), "padding": ((0, 0),)}
PATCHES = {"window": (2, 2), "strides": (1, 2), "padding": ((1, 0), (0, 1))}
IMAGE = spread_numbers(1, 3, 4, 1)
SIGNAL = spread_numbers(2, 4, 1)


def with_largest(d: Any, x: Any) -> tuple[Any, ...]:
    """Add the result of max_pool, whose positions in x its adjoints need."""
    return d, x, gt.registry().ops["max_pool"](x, **HALVES)


STATISTICS = (X.mean(0), X.var(0))

SAMPLES = {
    "softmax": [Sample(X), Sample(X, axis=0)],
    "log_softmax": [Sample(X), Sample(X, axis=0)],
    "softmax_cross_entropy": [
        Sample(X, SHARES).fed_through(lambda x, y: (x, gt.nn.softmax(y))),
        Sample(X, SHARES, axis=0),
    ],
    "softmax_less_shares": [Sample(X, SHARES), Sample(X, SHARES, axis=0)],
    "sparse_softmax_cross_entropy": [Sample(X, LABELS)],
    "softmax_less_labels": [Sample(X, LABELS)],
    "class_labels": [Sample(LABELS), Sample(LABELS > 1)],  # steps would make floats fractional
    "batch_norm_training": [Sample(X, SCALE, V), Sample(X.T.copy(), SCALE, V, axis=0)],
    "batch_norm_gradient": [Sample(real(4, 3), V, SCALE, X, real(3), *STATISTICS)],
    "lstm_gates": [Sample(real(2, 8), real(2, 2)), Sample(real(2, 1, 4), real(2, 1, 1))],
    "lstm_gates_gradient": [
        Sample(*[real(3, 2)] * 2, real(3, 8), real(3, 2), real(3, 2)),
    ],
    "conv": [
        Sample(complexes(1, 4, 2), complexes(2, 2, 2), **LINE),
        Sample(real(2, 5, 2), real(2, 2, 3), **LINE),
        Sample(real(1, 6, 2), real(2, 2, 2), **STEPS),
        Sample(real(1, 3, 4, 2), real(2, 2, 2, 2), **PLANE),
        Sample(real(1, 4, 4), real(2, 2, 2), **LINE, groups=2),
    ],
    "conv_to_images": [
        Sample(complexes(1, 3, 2), complexes(2, 2, 2), real(1, 4, 2), **LINE),
        Sample(real(2, 4, 3), real(2, 2, 3), real(2, 5, 2), **LINE),
        Sample(real(1, 3, 2), real(2, 2, 2), real(1, 6, 2), **STEPS),
        Sample(real(1, 3, 2), real(2, 2, 2), real(1, 4, 4), **LINE, groups=2),
    ],
    "conv_to_filters": [
        Sample(complexes(1, 3, 2), complexes(1, 4, 2), real(2, 2, 2), **LINE),
        Sample(real(2, 4, 3), real(2, 5, 2), real(2, 2, 3), **LINE),
        Sample(real(1, 3, 2), real(1, 6, 2), real(2, 2, 2), **STEPS),
        Sample(real(1, 3, 2), real(1, 4, 4), real(2, 2, 2), **LINE, groups=2),
    ],
    "conv_transpose": [
        Sample(complexes(1, 3, 2), complexes(2, 2, 2), **LINE),
        Sample(real(2, 4, 3), real(2, 2, 3), **LINE),
        Sample(real(1, 3, 2), real(2, 1, 2), **STEPS),
    ],
    "max_pool": [Sample(SIGNAL, **HALVES), Sample(IMAGE, **PATCHES)],
    "max_pool_scatter": [Sample(real(2, 2, 1), SIGNAL, **HALVES).fed_through(with_largest)],
    "max_pool_gather": [Sample(real(2, 4, 1), SIGNAL, **HALVES).fed_through(with_largest)],
    "avg_pool": [
        Sample(SIGNAL, **HALVES),
        Sample(complexes(1, 4, 2), **HALVES),
        Sample(IMAGE, **PATCHES),
    ],
    "avg_pool_scatter": [
        Sample(complexes(1, 2, 2), real(1, 4, 2), **HALVES),
        Sample(real(2, 2, 1), SIGNAL, **HALVES),
        Sample(real(1, 3, 2, 1), IMAGE, **PATCHES),
    ],
}
