"""Regularizers and constraints of a layer's weights, and the penalty of its outputs."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, TypedDict

from ...core.extend import add_to_loss, known_size, ops

__all__ = ["Rules", "add_activity", "regulated"]


class Rules(TypedDict, total=False):
    """Regularizers and constraints of a layer's weights and output, and ``trainable``."""

    activity_regularizer: Any
    alpha_constraint: Any
    alpha_regularizer: Any
    beta_constraint: Any
    beta_regularizer: Any
    bias_constraint: Any
    bias_regularizer: Any
    depthwise_constraint: Any
    depthwise_regularizer: Any
    embeddings_constraint: Any
    embeddings_regularizer: Any
    gamma_constraint: Any
    gamma_regularizer: Any
    kernel_constraint: Any
    kernel_regularizer: Any
    pointwise_constraint: Any
    pointwise_regularizer: Any
    recurrent_constraint: Any
    recurrent_regularizer: Any
    trainable: bool


#: The layers whose outputs are regularized when the running call ends; ``super()`` may nest calls.
regulated: ContextVar[tuple[Any, ...]] = ContextVar("gradtape_layers_regulated", default=())


def add_activity(layer: Any, outputs: list[Any]) -> None:
    """Add the penalty of a layer's activity regularizer to the loss, divided by the batch size."""
    for y in outputs:
        value = layer.activity_regularizer(y)
        if y.ndim:
            count = y.shape[0]  # an empty batch counts as 1: the sum over it is 0
            if known_size(count):
                value = value / max(count, 1)
            else:
                value = value / ops["maximum"](count, 1).astype(value.dtype)
        add_to_loss(layer, value)
