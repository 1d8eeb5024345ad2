"""Ops on arrays: kernels, rules, the backends that own array types, and the plugins for both.

Built on base. Exports ``Primitive``, ``Rule``, dispatch by array type, and ``Backend``; hooks and
the registry are in ``hookspecs``, ``registry`` and ``host``.
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
