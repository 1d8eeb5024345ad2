"""Bridges to PyTorch and JAX: functions and models of one library in programs of the other.

Neither library is imported before a bridge is used.
"""

from __future__ import annotations

from ..public import publish
from . import jax, torch

__all__ = ["jax", "torch"]

publish(__name__)
