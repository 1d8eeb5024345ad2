"""Layers without weights: ``Activation``, ``Flatten``."""

from __future__ import annotations

from math import prod
from typing import Any

from ..core.extend import is_open, known_size, ops
from . import activations
from .layer import Layer

__all__ = ["Activation", "Flatten"]


class Activation(Layer, saved_as="layers.Activation"):
    """Apply an activation.

    Parameters
    ----------
    activation
        A name (``"relu"``, ...) or any callable of one tensor.
    name
        A Python identifier.

    Raises
    ------
    ValueError
        If no activation has the name.

    Examples
    --------
    >>> gt.layers.Activation("relu")([-1.0, 2.0]).tolist()
    [0.0, 2.0]
    """

    def __init__(self, activation: Any, name: str | None = None) -> None:
        super().__init__(name)
        self.activation = activations.get(activation)

    def call(self, x: Any) -> Any:
        """Apply the activation to ``x``."""
        return x if self.activation is None else self.activation(x)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {"activation": activations.serialize(self.activation), "name": self.name}


class Flatten(Layer, saved_as="layers.Flatten"):
    """Flatten every axis but the first: ``(batch, a, b, ...)`` becomes ``(batch, a * b * ...)``.

    Parameters
    ----------
    name
        A Python identifier.

    Raises
    ------
    ValueError
        If ``name`` is no identifier; when called, if there is no axis, or their number is unknown.

    Examples
    --------
    >>> gt.layers.Flatten()(gt.zeros((2, 3, 4))).shape
    (2, 12)
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)

    def call(self, x: Any) -> Any:
        """Flatten ``x``, of at least one axis."""
        shape = x.array.shape
        if not shape:
            raise ValueError(
                f"layer {self.name!r} (Flatten): the number of axes must be known, and there must "
                f"be a first, got shape {shape}"
            )
        size = prod(shape[1:])
        # -1 stands for one size, and not beside 0: the batch may be empty, and so may the rest
        batch = -1 if is_open(shape[0]) and known_size(size) and size else shape[0]
        return ops["reshape"](x, shape=(batch, size))

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {"name": self.name}
