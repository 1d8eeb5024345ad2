"""Layers: modules with a forward pass, built at their first call. Names and defaults are Keras'."""

from __future__ import annotations

from ..public import publish
from . import initializers
from .batch_norm import BatchNorm, BatchNormalization
from .dense import Dense
from .layer import Layer
from .sequential import Sequential
from .simple import Activation, Dropout, Flatten

__all__ = [
    "Activation",
    "BatchNorm",
    "BatchNormalization",
    "Dense",
    "Dropout",
    "Flatten",
    "Layer",
    "Sequential",
    "initializers",
]

publish(__name__)
