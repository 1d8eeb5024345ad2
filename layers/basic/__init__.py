"""Layers with one input: dense layers, embeddings, activations, scaling."""

from __future__ import annotations

from .advanced_activations import ELU, LeakyReLU, PReLU, ReLU, Softmax
from .linear import Dense, EinsumDense, Embedding
from .simple import (
    Activation,
    ActivityRegularization,
    Flatten,
    Identity,
    Lambda,
    Masking,
    Rescaling,
)

__all__ = [
    "ELU",
    "Activation",
    "ActivityRegularization",
    "Dense",
    "EinsumDense",
    "Embedding",
    "Flatten",
    "Identity",
    "Lambda",
    "LeakyReLU",
    "Masking",
    "PReLU",
    "ReLU",
    "Rescaling",
    "Softmax",
]
