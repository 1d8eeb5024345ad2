"""Models: layers in a row, and layers as a graph."""

from __future__ import annotations

from .masks import mask_of as mask_of
from .model import Input, Model
from .sequential import Sequential

__all__ = ["Input", "Model", "Sequential"]
