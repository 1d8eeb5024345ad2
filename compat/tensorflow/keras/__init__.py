"""``tf.keras``: Keras 3's layers, models, optimizers, losses and metrics over gradtape's own."""

from __future__ import annotations

from ..names import lookup
from . import (
    activations,
    callbacks,
    constraints,
    initializers,
    layers,
    losses,
    metrics,
    mixed_precision,
    models,
    optimizers,
    regularizers,
)
from .layers import Input, Layer
from .models import Model, Sequential

__all__ = [
    "Input",
    "Layer",
    "Model",
    "Sequential",
    "activations",
    "callbacks",
    "constraints",
    "initializers",
    "layers",
    "losses",
    "metrics",
    "mixed_precision",
    "models",
    "optimizers",
    "regularizers",
]

__getattr__ = lookup(__name__)
