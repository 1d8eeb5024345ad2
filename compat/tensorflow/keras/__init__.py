"""``tf.keras``: Keras 3's layers, models, optimizers, losses and metrics over gradtape's own."""

from __future__ import annotations

from ..names import lookup
from . import (
    activations,
    initializers,
    layers,
    losses,
    metrics,
    mixed_precision,
    models,
    optimizers,
)
from .layers import Input, Layer
from .models import Model, Sequential

__all__ = [
    "Input",
    "Layer",
    "Model",
    "Sequential",
    "activations",
    "initializers",
    "layers",
    "losses",
    "metrics",
    "mixed_precision",
    "models",
    "optimizers",
]

__getattr__ = lookup(__name__)
