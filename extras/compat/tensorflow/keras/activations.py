"""``tf.keras.activations``: functions of one tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gradtape

from ....layers import activations as known
from ....layers.basic.advanced_activations import ramp
from ..names import adapts, lookup

__all__ = ["get", "leaky_relu", "linear", "relu"]


@adapts("layers.activations.get")
def get(identifier: Any) -> Callable[[Any], Any]:
    """Return the activation for a name or function; None gives :func:`linear`."""
    return known.get(identifier) or linear


@adapts()
def linear(x: Any) -> Any:
    """Return ``x``."""
    return x


@adapts("nn.leaky_relu")
def leaky_relu(x: Any, negative_slope: float = 0.2) -> Any:
    """Return ``x`` where positive, otherwise ``negative_slope * x``."""
    return gradtape.nn.leaky_relu(x, negative_slope)


@adapts("nn.relu", "layers.ReLU")
def relu(
    x: Any, negative_slope: float = 0.0, max_value: float | None = None, threshold: float = 0.0
) -> Any:
    """Return ``x`` above ``threshold``, otherwise ``negative_slope * (x - threshold)``.

    Values are capped at ``max_value``.
    """
    return ramp(x, negative_slope, max_value, threshold)


__getattr__ = lookup(__name__)
