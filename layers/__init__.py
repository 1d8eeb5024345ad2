"""Layers: modules with a forward pass, built at their first call. Names and defaults are Keras'."""

from __future__ import annotations

from ..public import publish
from . import (
    activations,
    attention,
    basic,
    convolutional,
    dropout,
    initializers,
    models,
    normalization,
    recurrent,
    shaping,
)
from .attention import *
from .base import Layer
from .base import takes_training as takes_training  # for training, which imports the room whole
from .basic import *
from .convolutional import *
from .dropout import *
from .models import *
from .normalization import *
from .recurrent import *
from .shaping import *

__all__ = ["Layer", "activations", "initializers"]
__all__ += attention.__all__
__all__ += basic.__all__
__all__ += convolutional.__all__
__all__ += dropout.__all__
__all__ += models.__all__
__all__ += normalization.__all__
__all__ += recurrent.__all__
__all__ += shaping.__all__

publish(__name__)
