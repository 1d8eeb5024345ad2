"""Layers: modules with a forward pass, built at their first call. Names and defaults are Keras'."""

from __future__ import annotations

from ..public import publish
from . import activations, batch_norm, convolutional, dense, initializers, layer, sequential, simple
from .batch_norm import *
from .convolutional import *
from .dense import *
from .layer import *
from .sequential import *
from .simple import *

__all__ = ["activations", "initializers"]
__all__ += batch_norm.__all__
__all__ += convolutional.__all__
__all__ += dense.__all__
__all__ += layer.__all__
__all__ += sequential.__all__
__all__ += simple.__all__

publish(__name__)
