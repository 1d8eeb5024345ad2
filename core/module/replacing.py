"""Refuses or warns about values that replace a module's variable instead of changing it."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.unknown import warn_user
from ..tensors.tensor import Tensor
from ..tensors.variable import Variable

if TYPE_CHECKING:
    from .module import Module

__all__ = ["check_replaced"]

_NUMBERS = (Tensor, np.ndarray, np.generic, bool, int, float, complex)


def check_replaced(module: Module, name: str, variable: Variable, value: Any) -> None:
    """Raise or warn if numbers are about to replace a variable.

    The module would compute with them, but not train them, and the optimizer would go on with the
    variable. A layer's own weight cannot be replaced. Elsewhere a program may mean it.

    Parameters
    ----------
    module, name
        The module, and the attribute that is set.
    variable
        What the attribute holds.
    value
        What it would hold.

    Raises
    ------
    TypeError
        If the variable is a weight of a layer that lists its weights.
    """
    if not isinstance(value, _NUMBERS) and not hasattr(value, "__dlpack__"):
        return
    if inspect.isdatadescriptor(inspect.getattr_static(type(module), name, None)):
        return
    kind = type(module).__name__
    told = (
        f"module {module.name!r} ({kind}): {name!r} is a variable, and a {type(value).__name__} "
        f"would take its place, which does not train; to change its value, write "
        f".{name}.assign(...), and to replace it, set a gradtape.Variable"
    )
    if name in (getattr(module, "weight_names", None) or ()):
        raise TypeError(told)
    warn_user(told.replace("would take its place", "takes its place"), UserWarning)
