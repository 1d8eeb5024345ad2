"""Checks the gradients that optimizers get."""

from __future__ import annotations

from typing import Any

from ...core.extend import Tensor, Variable, as_tensor, unsure

__all__ = ["checked"]


def checked(gradient: Any, variable: Any) -> Any:
    """Return a gradient as an array (in a trace, a symbol) of its variable's shape and dtype."""
    if type(gradient) is Tensor and isinstance(variable, Variable):  # a fast path
        array, own = gradient.array, variable.array
        shape = array.shape
        if array.dtype is own.dtype and not unsure(shape) and shape == own.shape:
            return array
    if not isinstance(variable, Variable):
        raise TypeError(
            f"apply_gradients: expected pairs (gradient, variable), got {type(variable).__name__} "
            "instead of a variable"
        )
    if type(gradient) is not Tensor:
        if gradient is None:
            raise ValueError(
                f"apply_gradients: the gradient of variable {variable.name!r} (shape "
                f"{variable.shape}) is None: the target does not depend on it in a differentiable "
                "way. tape.explain(target, variable) says why; leave the variable out if this is "
                "intended"
            )
        gradient = as_tensor(gradient)
    array = gradient.array
    if unsure(array.shape) or array.shape != variable.array.shape:
        raise ValueError(
            f"apply_gradients: the gradient of variable {variable.name!r} has shape {array.shape}, "
            f"but the variable has shape {variable.shape}"
        )
    if array.dtype is not variable.array.dtype and array.dtype != variable.array.dtype:
        array = gradient.astype(variable.dtype).array
    return array
