"""Activations: names of ops, which layers take besides callables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.errors import UnknownName
from ..core.extend import Module, Op, near_names, ops, registry
from .configs import find, made, reference

__all__ = ["NAMES", "OTHER_NAMES", "get", "serialize"]

#: The names that layers take; each is the op of that name.
NAMES = (
    "celu",
    "elu",
    "exp",
    "gelu",
    "hard_shrink",
    "hard_sigmoid",
    "hard_silu",
    "hard_tanh",
    "leaky_relu",
    "log_sigmoid",
    "log_softmax",
    "mish",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "soft_shrink",
    "softmax",
    "softplus",
    "softsign",
    "squareplus",
    "tanh",
    "tanh_shrink",
)

#: Other common names for some of them.
OTHER_NAMES = {"exponential": "exp", "hard_swish": "hard_silu", "swish": "silu"}


def named() -> dict[str, Op]:
    """Return gradtape's activations by name, as their plugin provides them."""
    known = {name: ops[name] for name in NAMES}
    return known | {other: known[name] for other, name in OTHER_NAMES.items()}


def get(activation: Any) -> Callable[[Any], Any] | None:
    """Return the function for an activation's name, ``None`` for the identity.

    Parameters
    ----------
    activation
        A name that a plugin provides: one of :data:`NAMES` or :data:`OTHER_NAMES`, or a third
        party's, such as ``"acme::act"``; ``None`` or ``"linear"``; or a callable of one tensor.

    Raises
    ------
    ValueError
        If the name is unknown.
    TypeError
        If it is neither a name nor callable, or a class.
    """
    if activation is None or (isinstance(activation, str) and activation == "linear"):
        return None
    if isinstance(activation, dict):
        chosen: Callable[[Any], Any] = find("activation", activation)
        return chosen
    if isinstance(activation, str):
        found = registry().find_named("activation", activation)
        if found is None:
            known = ["linear", *registry().names_of("activation")]
            raise UnknownName(
                f"unknown activation {activation!r}{near_names(activation, known)}; known: "
                f"{', '.join(known)}, or pass any function of one tensor"
                f"{registry().lacking(activation)}"
            )
        chosen = made("activation", activation, found)
        return chosen
    if isinstance(activation, type):
        name = activation.__name__
        raise TypeError(f"an activation is the class {name}; pass an object: {name}()")
    if not callable(activation):
        raise TypeError(f"an activation is a name or a callable, got {activation!r}")
    return activation


def serialize(activation: Any) -> Any:
    """Return an activation for a layer's configuration: its name, or the callable itself.

    An object of a class that a plugin names gives the name and the configuration. A module gives
    ``None``: it is an attribute of the layer, and saved there.
    """
    if activation is None or isinstance(activation, Module):
        return None
    name = registry().name_of("activation", activation)
    return name or reference("activation", activation) or activation
