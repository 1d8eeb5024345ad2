"""Layers with one input: dense layers, embeddings, activations, scaling."""

from __future__ import annotations

from . import advanced_activations, linear, simple
from .advanced_activations import *
from .linear import *
from .simple import *

__all__: list[str] = []
__all__ += advanced_activations.__all__
__all__ += linear.__all__
__all__ += simple.__all__
