"""``tf.keras``: Keras 3's layers, models, optimizers, losses and metrics over gradtape's."""

from __future__ import annotations

from .. import random
from ..names import lookup, namespace, spaces_of
from . import functions, layers, losses, metrics, models, optimizers
from .layers import Input, Layer
from .models import Model, Sequential

spaces_of(functions)
callbacks = namespace("tf.keras.callbacks")
constraints = namespace("tf.keras.constraints")
initializers = namespace("tf.keras.initializers")
mixed_precision = namespace("tf.keras.mixed_precision")
ops = namespace("tf.keras.ops")
regularizers = namespace("tf.keras.regularizers")

__version__ = "3.13.0+gradtape"
__all__ = (
    "Input Layer Model Sequential activations backend callbacks constraints initializers "
    "layers losses metrics mixed_precision models ops optimizers random regularizers saving utils"
).split()

__getattr__ = lookup(__name__)
