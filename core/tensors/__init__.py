"""Tensors and variables, conversion to tensors, and ops called on them.

Built on ops, which work on arrays. It has ``Tensor``, ``Variable``, ``Op`` with its quick
subclasses, and the conversions ``as_tensor`` and ``constant``.
"""

from __future__ import annotations

from typing import Any

from ...hints import hinted
from ..base.table import lazy_module
from ..base.user_code import show_at_users_lines
from . import assignment  # noqa: F401  # gives variables their in-place operators
from .custom_records import transfer
from .indexing import At, getitem, refuse_item
from .tensor import Operators, Tensor
from .variable import Variable


def _array_namespace(self: Operators, *, api_version: str | None = None) -> Any:
    """Return the namespace of the array API standard's functions: gradtape itself.

    Raises
    ------
    ValueError
        If ``api_version`` is one that gradtape does not know.
    """
    return lazy_module("core.tensors.array_api").namespace(api_version)


# Members that are built on tensors but belong to their class. No other class gets members from
# outside its own module.
Operators.at = property(At, doc="Elements to change in a new tensor: ``x.at[index].set(values)``.")  # type: ignore[assignment]
Operators.__getitem__ = getitem  # type: ignore[method-assign]
Operators.__setitem__ = refuse_item  # type: ignore[index]
Operators.__array_namespace__ = _array_namespace  # type: ignore[method-assign]
Tensor.to = transfer  # type: ignore[assignment, method-assign]

hinted(Operators, "Tensor")
hinted(Variable, "Variable")

# so that errors and help show the public names
_array_namespace.__name__ = "__array_namespace__"
_array_namespace.__qualname__ = "Tensor.__array_namespace__"
transfer.__name__, transfer.__qualname__ = "to", "Tensor.to"

show_at_users_lines()
