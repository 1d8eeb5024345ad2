"""Frozen modules: which of their variables train again when they are thawed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..base.dtypes import is_differentiable
from ..tensors.variable import Variable

if TYPE_CHECKING:
    from .module import Module

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
    for variable in state[_FROZEN]:
        variable.trainable = False


def thaw(module: Module) -> None:
    """Let a frozen module's own variables train again."""
    state = vars(module)
    for variable in frozen_variables(module):
        variable.trainable = is_differentiable(variable.dtype)
    state.pop(_TRAINABLE, None)
    state.pop(_FROZEN, None)


def frozen_variables(module: Module) -> tuple[Variable, ...]:
    """Return a frozen module's own variables that train again once it is thawed."""
    found: tuple[Variable, ...] = vars(module).get(_FROZEN, ())
    return found


def is_frozen(module: Module) -> bool:
    """Return whether a module was set not to train."""
    return not vars(module).get(_TRAINABLE, True)
