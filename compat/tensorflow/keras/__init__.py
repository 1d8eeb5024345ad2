"""``tf.keras``: Keras 3's layers, models, optimizers, losses and metrics over gradtape's own."""

from __future__ import annotations

from .. import random
from ..names import lookup
from . import (
    activations,
    backend,
    callbacks,
    constraints,
    initializers,
    layers,
    losses,
    metrics,
    mixed_precision,
    models,
    ops,
    optimizers,
    regularizers,
    utils,
)
from .layers import Input, Layer
from .models import Model, Sequential

__all__ = [
    "Input",
    "Layer",
    "Model",
    "Sequential",
    "activations",
    "backend",
    "callbacks",
    "constraints",
    "initializers",
    "layers",
    "losses",
    "metrics",
    "mixed_precision",
    "models",
    "ops",
    "optimizers",
    "random",
    "regularizers",
    "utils",
]

__getattr__ = lookup(__name__)
