"""Attributes of modules: checks of what is set and pickled, freezing, and properties.

A value that replaces a variable, instead of changing it, is refused or causes a warning.
"""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, overload

import numpy as np

from ..base.context import active_tapes
from ..base.dtypes import is_differentiable
from ..base.observers import AllRecords
from ..base.table import lazy_module
from ..base.user_code import warn_user
from ..functions.arguments import found_by_name, pickled_as_code
from ..functions.function import Function
from ..ops.dispatch import is_transformed
from ..tensors.tensor import Tensor
from ..tensors.variable import TOGGLED, Variable

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
    if is_tensor and variable.trainable and _is_in_computation(value):
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


def _is_in_computation(value: Tensor) -> bool:
    """Return whether a tape records, a layer is called, or the value is a batch of ``vmap``."""
    if lazy_module(
        "core.module.losses_and_masks"
    ).passing.get():  # a layer that computes another's weight
        return True
    if any(type(tape.records) is not AllRecords for tape in active_tapes.get()):
        return True
    return is_transformed(value.array) and not hasattr(value.array, "graph")


#: The attribute of a module that graphs of a loaded module hold: the name of that module.
HELD_BY = "_gradtape_held_by"


def check_setting(module: Module, name: str, value: Any) -> None:
    """Warn if a setting of a module is about to change that graphs of a loaded module hold.

    Parameters
    ----------
    module, name
        The module, and the attribute that is set.
    value
        What it would hold.
    """
    held = vars(module).get(name)
    if held is value or isinstance(held, Variable) or not hasattr(module, "get_config"):
        return
    try:
        if bool(held == value) or name not in module.get_config():
            return
    except Exception:  # a class of a user compares, or has no configuration
        return
    warn_user(
        f"module {module.name!r} ({type(module).__name__}): {name!r} changes what the module does "
        f"when it is called itself, but not the graphs of module {vars(module)[HELD_BY]!r}, which "
        f"was loaded from a file: they go on with {held!r}. Set it where the Python code is, and "
        "save again",
        UserWarning,
    )


# -- pickling --------------------------------------------------------------------------------------


# Types of values that may be or hold a function.
_HOLDING = (FunctionType, Function, list, tuple, dict)


def check_named(where: str, value: Any) -> None:
    """Raise an error that names the attribute if pickle cannot find a function by its name."""
    waiting, met = [(where, value)], set[int]()
    while waiting:  # lists may hold themselves
        where, value = waiting.pop()
        if not isinstance(value, (list, tuple, dict)):
            _check_function(where, value)
        elif id(value) not in met:
            met.add(id(value))
            items = list(value.items() if isinstance(value, dict) else enumerate(value))
            waiting += [(f"{where}[{k!r}]", x) for k, x in items[::-1] if type(x) in _HOLDING]


def _check_function(where: str, value: Any) -> None:
    function = value.python_function if isinstance(value, Function) else value
    if not isinstance(function, FunctionType) or found_by_name(value) or found_by_name(function):
        return
    if pickled_as_code():
        return
    raise pickle.PicklingError(
        f"{where} is {function.__qualname__}, which pickle cannot find by its name: define it "
        "with def at the top level of a Python file, or save the module with gradtape.save, whose "
        "files store what functions compute"
    )


# -- freezing --------------------------------------------------------------------------------------


_TRAINABLE = "_gradtape_trainable"
_FROZEN = "_gradtape_frozen"


def freeze(module: Module, variables: Iterable[Variable] | None = None) -> None:
    """Freeze a module's own variables, without those of the modules inside.

    Parameters
    ----------
    module
        The module.
    variables
        The variables that train again once it is thawed; by default those that train now, or were
        frozen before.
    """
    if variables is None:
        own = [leaf for _, leaf in module.own_leaves() if isinstance(leaf, Variable)]
        variables = (*frozen_variables(module), *(v for v in own if v.trainable))
    state = vars(module)
    state[_TRAINABLE], state[_FROZEN] = False, tuple(dict.fromkeys(variables))
    TOGGLED[0] = object()
    for variable in state[_FROZEN]:
        variable.trainable = False


def thaw(module: Module) -> None:
    """Let a frozen module's own variables train again."""
    state = vars(module)
    for variable in frozen_variables(module):
        variable.trainable = is_differentiable(variable.dtype)
    state.pop(_TRAINABLE, None)
    TOGGLED[0] = object()
    state.pop(_FROZEN, None)


def frozen_variables(module: Module) -> tuple[Variable, ...]:
    """Return a frozen module's own variables that train again once it is thawed."""
    found: tuple[Variable, ...] = vars(module).get(_FROZEN, ())
    return found


def is_frozen(module: Module) -> bool:
    """Return whether a module was set not to train."""
    return not vars(module).get(_TRAINABLE, True)


# -- properties ------------------------------------------------------------------------------------


T = TypeVar("T")


class overridable(Generic[T]):
    """A property of a base class that subclasses may hide with an attribute of the same name."""

    def __init__(self, function: Callable[[Any], T]) -> None:
        self.function, self.__doc__ = function, function.__doc__

    @overload
    def __get__(self, instance: None, owner: Any = None) -> Self: ...
    @overload
    def __get__(self, instance: Any, owner: Any = None) -> T: ...
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else self.function(instance)
