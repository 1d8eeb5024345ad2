"""Layers that rearrange elements, and layers that merge several inputs."""

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
