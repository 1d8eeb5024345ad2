"""Compares a layer from a file with the layer that its class builds from its configuration."""

from __future__ import annotations

from typing import Any

from ...core.extend import Module, Variable

__all__ = ["UNMADE", "check_part", "check_weights"]

#: Set on a layer that is built only for the shapes of its weights.
UNMADE = "_gradtape_unmade"


def check_weights(layer: Any) -> None:
    """Raise if weights are not variables, are missing, or do not have the shapes of the layer.

    Raises
    ------
    TypeError, ValueError
        The message names the attribute, and what it should be.
    """
    names = layer.weight_names
    held = {name: vars(layer)[name] for name in names or () if vars(layer).get(name) is not None}
    for name, weight in held.items():
        if not isinstance(weight, Variable):
            raise TypeError(f"{name!r} must be a variable, got {weight!r}")
    if not held:
        return
    if missing := [name for name in names if name not in held]:
        raise ValueError(f"it has {', '.join(held)}, but lacks {', '.join(missing)}")
    shape = layer.shape_for_weights({name: weight.shape for name, weight in held.items()})
    if shape is None:
        if _tells(type(layer)):
            shapes = ", ".join(f"{name} {weight.shape}" for name, weight in held.items())
            raise ValueError(f"no input has weights of these shapes: {shapes}")
        return
    twin = type(layer).from_config(layer.get_config())
    vars(twin)[UNMADE] = True
    twin.build(shape)
    for name, weight in held.items():
        made = vars(twin).get(name)
        if isinstance(made, Variable) and made.shape != weight.shape:
            raise ValueError(
                f"{name!r} has shape {weight.shape}, but its configuration needs {made.shape}"
            )


def _tells(cls: Any) -> bool:
    """Return whether a class can infer its input shape from its weights."""
    base = next(x for x in reversed(cls.__mro__) if "shape_for_weights" in vars(x))
    return cls.shape_for_weights is not base.shape_for_weights


def check_part(what: str, value: Any, *attributes: str) -> Any:
    """Return the inner layer of another, checked.

    Raises
    ------
    TypeError
        If it is not a layer, or lacks attributes that the outer layer needs.
    """
    whole = isinstance(value, Module) and callable(value)
    if not whole or not all(hasattr(value, name) for name in attributes):
        raise TypeError(f"{what!r} is not a layer that fits there: {value!r}"[:200])
    return value
