"""``tf.keras``: Keras 3's layers, models, optimizers, losses and metrics over gradtape's own."""

from __future__ import annotations

from .. import random
from ..names import lookup, namespace
from . import activations, backend, layers, losses, metrics, models, optimizers, utils
from .layers import Input, Layer
from .models import Model, Sequential

callbacks = namespace("tf.keras.callbacks", "What ``fit`` tells of its steps and epochs.")
constraints = namespace("tf.keras.constraints", "What weights are made into after each step.")
initializers = namespace("tf.keras.initializers", "What weights begin with.")
mixed_precision = namespace("tf.keras.mixed_precision", "Policies of dtypes.")
ops = namespace("tf.keras.ops", "gradtape's ops under Keras' names, which are mostly NumPy's.")
regularizers = namespace("tf.keras.regularizers", "What weights add to the loss.")

__all__ = (
    "Input Layer Model Sequential activations backend callbacks constraints initializers "
    "layers losses metrics mixed_precision models ops optimizers random regularizers utils"
).split()

__getattr__ = lookup(__name__)
