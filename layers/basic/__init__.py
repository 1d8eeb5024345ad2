"""Layers of one input: products with weights, look-ups, activations, factors."""

from __future__ import annotations

from .advanced_activations import ELU, LeakyReLU, PReLU, ReLU, Softmax
from .dense import Dense
from .einsum_dense import EinsumDense
from .embedding import Embedding
from .simple import Activation, Flatten, Rescaling

__all__ = [
    "ELU",
    "Activation",
    "Dense",
    "EinsumDense",
    "Embedding",
    "Flatten",
    "LeakyReLU",
    "PReLU",
    "ReLU",
    "Rescaling",
    "Softmax",
]
