"""Layers that put elements elsewhere, and layers that put several inputs together."""

from __future__ import annotations

from .merging import Add, Average, Concatenate, Dot, Maximum, Minimum, Multiply, Subtract
from .reshaping import Permute, RepeatVector, Reshape

__all__ = [
    "Add",
    "Average",
    "Concatenate",
    "Dot",
    "Maximum",
    "Minimum",
    "Multiply",
    "Permute",
    "RepeatVector",
    "Reshape",
    "Subtract",
]
