"""Ops on arrays: kernels, rules, and the backends that own array types.

Built on base. Exports ``Primitive``, ``Rule``, dispatch by array type, and ``Backend``.
"""

from __future__ import annotations

from .backend import Backend
from .dispatch import is_transformed, register_array_type
from .primitive import Primitive
from .rule import NONDIFF, Composed, Rule

__all__ = [
    "NONDIFF",
    "Backend",
    "Composed",
    "Primitive",
    "Rule",
    "is_transformed",
    "register_array_type",
]
