"""What a file made of a layer, compared with what its class makes of the same configuration."""

from __future__ import annotations

from typing import Any

from ...core.extend import Module, Variable

__all__ = ["UNMADE", "check_part", "check_weights"]

#: Set on a layer whose weights are asked for their shapes alone.
UNMADE = "_gradtape_unmade"


def check_weights(layer: Any) -> None:
    """Raise if weights are no variables, not all there, or not of the shapes that the layer makes.

    Raises
    ------
    TypeError, ValueError
        With the attribute, and what it should be.
    """
    names = layer.weight_names
    held = {name: vars(layer)[name] for name in names or () if vars(layer).get(name) is not None}
    for name, weight in held.items():
        if not isinstance(weight, Variable):
            raise TypeError(f"{name!r} is a weight, got {weight!r}")
    if not held:
        return
    if missing := [name for name in names if name not in held]:
        raise ValueError(f"it has {', '.join(held)} but not {', '.join(missing)}")
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
                f"{name!r} has shape {weight.shape}, of its configuration follows {made.shape}"
            )


def _tells(cls: Any) -> bool:
    """Return whether a class says for which inputs weights of some shapes are."""
    base = next(x for x in reversed(cls.__mro__) if "shape_for_weights" in vars(x))
    return cls.shape_for_weights is not base.shape_for_weights


def check_part(what: str, value: Any, *attributes: str) -> Any:
    """Return what should be a layer inside another.

    Raises
    ------
    TypeError
        If it is none, or lacks attributes that the outer layer asks for.
    """
    whole = isinstance(value, Module) and callable(value)
    if not whole or not all(hasattr(value, name) for name in attributes):
        raise TypeError(f"{what!r} is no layer that fits there: {value!r}"[:200])
    return value
