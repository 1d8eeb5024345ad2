"""Activations, cross-entropies, clipping by norms."""

from __future__ import annotations

import numpy as np

import gradtape as gt
from gradtape.core.extend import ops

from .family import Family

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 5)) * 4
LABELS = np.array([4, 0, 2])
SHARES = RNG.dirichlet(np.ones(5), 3)


def log_softmax(x, axis=-1):
    return x - np.log(np.sum(np.exp(x), axis=axis, keepdims=True))


ACTIVATIONS = {
    "relu": (gt.nn.relu, lambda x: np.maximum(x, 0)),
    "relu6": (gt.nn.relu6, lambda x: np.clip(x, 0, 6)),
    "leaky_relu": (gt.nn.leaky_relu, lambda x: np.where(x > 0, x, 0.2 * x)),
    "leaky_relu 0.01": (
        lambda x: gt.nn.leaky_relu(x, alpha=0.01),
        lambda x: np.where(x > 0, x, 0.01 * x),
    ),
    "elu": (gt.nn.elu, lambda x: np.where(x > 0, x, np.exp(x) - 1)),
    "elu 2": (lambda x: gt.nn.elu(x, 2), lambda x: np.where(x > 0, x, 2 * np.exp(x) - 2)),
    "sigmoid": (gt.nn.sigmoid, lambda x: 1 / (1 + np.exp(-x))),
    "softplus": (gt.nn.softplus, lambda x: np.log(1 + np.exp(x))),
    "silu": (gt.nn.silu, lambda x: x / (1 + np.exp(-x))),
    "tanh": (gt.nn.tanh, np.tanh),
    "softmax": (gt.nn.softmax, lambda x: np.exp(log_softmax(x))),
    "softmax 0": (lambda x: gt.nn.softmax(x, axis=0), lambda x: np.exp(log_softmax(x, 0))),
    "log_softmax": (gt.nn.log_softmax, log_softmax),
    "log_softmax 0": (lambda x: gt.nn.log_softmax(x, axis=0), lambda x: log_softmax(x, 0)),
    "sparse cross-entropy": (
        lambda x: gt.nn.sparse_softmax_cross_entropy_with_logits(labels=LABELS, logits=x),
        lambda x: -log_softmax(x)[np.arange(3), LABELS],
    ),
    "cross-entropy": (
        lambda x: gt.nn.softmax_cross_entropy_with_logits(labels=SHARES, logits=x),
        lambda x: -np.sum(SHARES * log_softmax(x), axis=-1),
    ),
    "cross-entropy 0": (
        lambda x: gt.nn.softmax_cross_entropy_with_logits(
            labels=SHARES / np.sum(SHARES, 0), logits=x, axis=0
        ),
        lambda x: -np.sum(SHARES / np.sum(SHARES, 0) * log_softmax(x, 0), axis=0),
    ),
    "clip_by_norm": (
        lambda x: gt.clip_by_norm(x, 2.0),
        lambda x: x * 2 / max(2, np.linalg.norm(x)),
    ),
    "clip_by_norm rows": (
        lambda x: gt.clip_by_norm(x, 7.0, axes=1),
        lambda x: x * 7 / np.maximum(7, np.linalg.norm(x, axis=1, keepdims=True)),
    ),
}

ERRORS = [
    (lambda x: gt.nn.softmax(x, axis=2), ValueError, "softmax.*axis 2"),
    (lambda x: gt.nn.softmax(x, axis=(0, 1)), TypeError, "softmax.*integer"),
    (
        lambda x: gt.nn.sparse_softmax_cross_entropy_with_logits(labels=[1, 2], logits=x),
        ValueError,
        r"cross_entropy.*\(2,\).*\(3, 5\)",
    ),
    (
        lambda x: gt.nn.sparse_softmax_cross_entropy_with_logits(labels=x, logits=x),
        ValueError,
        "cross_entropy.*one axis less",
    ),
    (
        lambda x: gt.nn.sparse_softmax_cross_entropy_with_logits(labels=0, logits=x[0, 0]),
        ValueError,
        "cross_entropy.*axis of classes",
    ),
    (
        lambda x: gt.nn.softmax_cross_entropy_with_logits(labels=x[0], logits=x),
        ValueError,
        r"cross_entropy.*\(5,\).*\(3, 5\)",
    ),
    (lambda x: gt.one_hot(x, 3), TypeError, "one_hot.*float64"),
    (
        lambda x: ops["batch_norm_training"](x, x[0, :2], x[0, :2], axis=-1, epsilon=0.1),
        ValueError,
        "batch_norm_training",
    ),
]

FAMILY = Family(
    samples={name: (*functions, [X]) for name, functions in ACTIVATIONS.items()},
    errors=ERRORS,
    given=[X],
    values={"rtol": 1e-12, "atol": 1e-15},
    precisions=("float16", "float32", "float64"),
    mixed=("cross-entropy", "cross-entropy 0"),  # the labels are float64
)
