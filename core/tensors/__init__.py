"""Tensors and variables: what users hold, how things become tensors, and ops called on them.

Stands on ops, which work on arrays. Hands out ``Tensor``, ``Variable``, ``Op`` and its quick kinds,
and conversion: ``as_tensor``, ``constant``.
"""

from __future__ import annotations

from .convert import as_tensor, constant
from .indexing import At, getitem
from .numpy_protocols import array_function, array_ufunc
from .op import Op
from .quick import BinaryOp, UnaryOp
from .recording import transfer
from .standard import namespace
from .tensor import Operators, Tensor
from .variable import Variable

__all__ = [
    "BinaryOp",
    "Op",
    "Operators",
    "Tensor",
    "UnaryOp",
    "Variable",
    "as_tensor",
    "constant",
]

# What is built on tensors and belongs to them all the same. Nowhere else is a class given anything
# from outside it.
Operators.at = property(At, doc="Elements to change in a new tensor: ``x.at[index].set(values)``.")  # type: ignore[assignment]
Operators.__getitem__ = getitem  # type: ignore[method-assign]
Operators.__array_ufunc__ = array_ufunc  # type: ignore[method-assign]
Operators.__array_function__ = array_function  # type: ignore[method-assign]
Operators.__array_namespace__ = namespace  # type: ignore[assignment, method-assign]
Tensor.to = transfer  # type: ignore[assignment, method-assign]
