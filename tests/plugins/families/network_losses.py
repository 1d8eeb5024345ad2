"""More of networks: activations, losses, segments, normalisation."""

from __future__ import annotations

import numpy as np

import gradtape as gt

from .family import Family

RNG = np.random.default_rng(0)
nn = gt.nn


def R(*shape):
    return RNG.standard_normal(shape)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    return np.exp(x) / np.exp(x).sum(-1, keepdims=True)


X = np.array([[-4.5, -2.2, -0.7, 0.3], [0.6, 1.8, 2.6, 3.9]])
SIGNS = np.array([[1.0, -1.0, 1.0, -1.0], [1.0, 1.0, -1.0, -1.0]])
P, Q = softmax(R(3, 4)), softmax(R(3, 4))
SHARES = sigmoid(R(2, 4))
IDS = np.array([2, 0, 2, 3])

ACTIVATIONS = {
    "selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "log_sigmoid": lambda x: np.log(sigmoid(x)),
    "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "hard_sigmoid": lambda x: np.clip(x / 6 + 0.5, 0, 1),
    "hard_tanh": lambda x: np.clip(x, -1, 1),
    "hard_silu": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
}


def activation(name):
    return (lambda x: nn.gelu(x, approximate=True)) if name == "gelu_tanh" else getattr(nn, name)


def normalised(x, axis):
    centred = x - x.mean(axis, keepdims=True)
    return centred / np.sqrt(x.var(axis, keepdims=True) + 1e-3)


# name: (ours, NumPy's, inputs)
SAMPLES = {
    **{name: (activation(name), theirs, [X]) for name, theirs in ACTIVATIONS.items()},
    "sigmoid_cross_entropy": (
        lambda z, x: nn.sigmoid_cross_entropy_with_logits(labels=z, logits=x),
        lambda z, x: -z * np.log(sigmoid(x)) - (1 - z) * np.log(1 - sigmoid(x)),
        [SHARES, X],
    ),
    "binary_cross_entropy": (
        lambda z, p: nn.binary_cross_entropy(labels=z, probabilities=p),
        lambda z, p: -z * np.log(p) - (1 - z) * np.log(1 - p),
        [SHARES, SHARES[::-1]],
    ),
    "categorical_cross_entropy": (
        lambda z, p: nn.categorical_cross_entropy(labels=z, probabilities=p),
        lambda z, p: -np.sum(z * np.log(p), -1),
        [P, Q],
    ),
    "kl_divergence": (
        lambda z, p: nn.kl_divergence(labels=z, probabilities=p, axis=0),
        lambda z, p: np.sum(z * np.log(z / p), 0),
        [P, Q],
    ),
    "huber": (
        lambda z, p: nn.huber(labels=z, predictions=p, delta=1.5),
        lambda z, p: np.where(np.abs(z - p) < 1.5, (z - p) ** 2 / 2, 1.5 * np.abs(z - p) - 1.125),
        [SIGNS, X],
    ),
    "hinge": (
        lambda z, p: nn.hinge(labels=z, predictions=p),
        lambda z, p: np.maximum(1 - z * p, 0),
        [SIGNS, X],
    ),
    "cosine_similarity": (
        nn.cosine_similarity,
        lambda x, y: (x * y).sum(-1) / np.linalg.norm(x, axis=-1) / np.linalg.norm(y, axis=-1),
        [P, Q[0]],
    ),
    "embedding_lookup": (
        lambda w: nn.embedding_lookup(w, IDS[None]),
        lambda w: w[IDS[None]],
        [R(4, 2)],
    ),
    "segment_sum": (
        lambda x: nn.segment_sum(x, IDS, 5),
        lambda x: np.stack([x[i == IDS].sum(0) for i in range(5)]),
        [R(4, 2)],
    ),
    "layer_normalization": (
        nn.layer_normalization,
        lambda x, s, o: normalised(x, -1) * s + o,
        [R(2, 3, 4), R(4), R(4)],
    ),
    "layer_normalization over two": (
        lambda x: nn.layer_normalization(x, axis=(0, 2)),
        lambda x: normalised(x, (0, 2)),
        [R(2, 3, 2)],
    ),
    "group_normalization": (
        lambda x, s, o: nn.group_normalization(x, 2, s, o),
        lambda x, s, o: normalised(x.reshape(2, 3, 2, 2), (1, 3)).reshape(2, 3, 4) * s + o,
        [R(2, 3, 4), R(4), R(4)],
    ),
    "instance normalisation": (
        lambda x: nn.group_normalization(x, 3),
        lambda x: normalised(x, (1, 2)),
        [R(2, 2, 2, 3)],
    ),
}

ERRORS = [
    (
        lambda x: nn.sigmoid_cross_entropy_with_logits(labels=x, logits=x[:, :1]),
        ValueError,
        r"sigmoid_cross_entropy.*\(2, 4\) and \(2, 1\)",
    ),
    (lambda x: nn.huber(labels=x, predictions=x[0]), ValueError, "huber.*one shape"),
    (lambda x: nn.huber(labels=x, predictions=x, delta=0), ValueError, "huber.*delta"),
    (lambda x: nn.hinge(labels=x, predictions=x[0]), ValueError, "hinge.*one shape"),
    (
        lambda x: nn.kl_divergence(labels=x * x, probabilities=x * x, axis=2),
        ValueError,
        "kl_divergence.*axis 2",
    ),
    (lambda x: nn.embedding_lookup(x, [0.5]), TypeError, "embedding_lookup.*integers"),
    (lambda x: nn.segment_sum(x, [0], 2), ValueError, r"segment_sum.*\(1,\) and \(2, 4\)"),
    (lambda x: nn.group_normalization(x, 3), ValueError, "group_normalization.*4 channels"),
    (lambda x: nn.group_normalization(x, 0), ValueError, "group_normalization.*one group"),
    (lambda x: nn.dropout(x, 1.0), ValueError, "dropout.*rate.*1.0"),
]

FAMILY = Family(
    samples=SAMPLES,
    errors=ERRORS,
    given=[X],
    values={"rtol": 1e-12, "atol": 1e-14},
    runs={"rtol": 1e-12, "atol": 1e-14},
    precisions=("float16", "float32"),
    kernels=[(name, [X], {}) for name in ACTIVATIONS if name != "gelu_tanh"],
)
