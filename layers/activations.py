"""Activations: names for ops, beside any callable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.extend import Module, Op, ops

__all__ = ["NAMES", "get", "serialize"]

#: The names that layers take; each is the op of that name.
NAMES = (
    "elu",
    "exp",
    "gelu",
    "leaky_relu",
    "log_softmax",
    "relu",
    "relu6",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "tanh",
)


def get(activation: Any) -> Callable[[Any], Any] | None:
    """Return the function for an activation's name, ``None`` for the identity.

    Parameters
    ----------
    activation
        One of :data:`NAMES`; ``None`` or ``"linear"``; or a callable of one tensor.

    Raises
    ------
    ValueError
        If the name is unknown.
    TypeError
        If it is neither a name nor callable.
    """
    if activation is None or activation == "linear":
        return None
    if isinstance(activation, str):
        if activation not in NAMES:
            raise ValueError(
                f"unknown activation {activation!r}; known: linear, {', '.join(NAMES)}, or pass "
                "any function of one tensor"
            )
        return ops[activation]
    if not callable(activation):
        raise TypeError(f"an activation is a name or a callable, got {activation!r}")
    return activation


def serialize(activation: Any) -> Any:
    """Return an activation for a layer's configuration: its name, or the callable itself.

    A module is left out: it is a part of the layer, and found there.
    """
    if isinstance(activation, Module):
        return None
    if isinstance(activation, Op) and activation.name in NAMES:
        return activation.name
    return activation
