"""Refuses or warns about values that replace a module's variable instead of changing it."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.context import active_tapes
from ..base.observers import Everything
from ..base.table import late
from ..base.user_code import warn_user
from ..ops.dispatch import is_transformed
from ..tensors.tensor import Tensor
from ..tensors.variable import Variable

if TYPE_CHECKING:
    from .module import Module

_NUMBERS = (np.ndarray, np.generic, bool, int, float, complex)


def check_replaced(module: Module, name: str, variable: Variable, value: Any) -> None:
    """Raise or warn if numbers are about to replace a variable.

    The module would compute with them, but not train them, and the optimizer would go on with the
    variable. Under a tape or in ``vmap``, a tensor may be meant to replace a weight: in a step of
    training that is differentiated itself, or in a function of weights.

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
        If an array or a number replaces a weight of a layer that lists its weights: the layer could
        not be called any more.
    """
    is_tensor = isinstance(value, Tensor)
    if not is_tensor and not isinstance(value, _NUMBERS) and not hasattr(value, "__dlpack__"):
        return
    if inspect.isdatadescriptor(inspect.getattr_static(type(module), name, None)):
        return
    if is_tensor and variable.trainable and _is_meant(value):
        return
    lost = "does not train" if variable.trainable else "is no variable of the module"
    told = (
        f"module {module.name!r} ({type(module).__name__}): {name!r} is a variable, and a value of "
        f"type {type(value).__name__}, which {lost}, {{}} it; to change its value, write "
        f".{name}.assign(...), and to replace it, set a gradtape.Variable"
    )
    if not is_tensor and name in (getattr(module, "weight_names", None) or ()):
        raise TypeError(told.format("cannot replace"))
    warn_user(told.format("replaces"), UserWarning)


def _is_meant(value: Tensor) -> bool:
    """Return whether a tape records, a layer is called, or the value is a batch of ``vmap``."""
    if late("core.module.added").passing.get():  # a layer that computes another one's weight
        return True
    if any(type(tape.records) is not Everything for tape in active_tapes.get()):
        return True
    return is_transformed(value.array) and not hasattr(value.array, "graph")
