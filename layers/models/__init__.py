"""Models: layers one after another, and layers as a graph."""

from __future__ import annotations

from .model import Input, Model
from .sequential import Sequential

__all__ = ["Input", "Model", "Sequential"]
