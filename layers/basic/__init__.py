"""Layers with one input: dense layers, embeddings, activations, scaling."""

from __future__ import annotations

from .advanced_activations import ELU, LeakyReLU, PReLU, ReLU, Softmax
from .dense import Dense
from .einsum_dense import EinsumDense
from .embedding import Embedding
from .functions import ActivityRegularization, Identity, Lambda, Masking
from .simple import Activation, Flatten, Rescaling

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
