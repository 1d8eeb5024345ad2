"""Activations: names of ops, which layers take besides callables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.extend import Module, Op, ops

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


def get(activation: Any) -> Callable[[Any], Any] | None:
    """Return the function for an activation's name, ``None`` for the identity.

    Parameters
    ----------
    activation
        One of :data:`NAMES` or :data:`OTHER_NAMES`; ``None`` or ``"linear"``; or a callable of one
        tensor.

    Raises
    ------
    ValueError
        If the name is unknown.
    TypeError
        If it is neither a name nor callable, or a class.
    """
    if activation is None or activation == "linear":
        return None
    if isinstance(activation, str):
        activation = OTHER_NAMES.get(activation, activation)
        if activation not in NAMES:
            raise ValueError(
                f"unknown activation {activation!r}; known: linear, {', '.join(NAMES)}, or pass "
                "any function of one tensor"
            )
        return ops[activation]
    if isinstance(activation, type):
        name = activation.__name__
        raise TypeError(f"an activation is the class {name}; pass an object: {name}()")
    if not callable(activation):
        raise TypeError(f"an activation is a name or a callable, got {activation!r}")
    return activation


def serialize(activation: Any) -> Any:
    """Return an activation for a layer's configuration: its name, or the callable itself.

    A module gives ``None``: it is an attribute of the layer, and saved there.
    """
    if isinstance(activation, Module):
        return None
    if isinstance(activation, Op) and activation.name in NAMES:
        return activation.name
    return activation
