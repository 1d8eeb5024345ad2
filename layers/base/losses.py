"""Regularizers and constraints of a layer's weights, and the penalty of its outputs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypedDict

from ...core.extend import add_to_loss, in_precision, known_size, ops

__all__ = ["Rules", "add_activity", "regulated", "rows_per_example"]


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


#: How many rows of a batch belong to one example, if a layer passes another one its steps as rows.
_ROWS: ContextVar[Any] = ContextVar("gradtape_layers_rows", default=1)


@contextmanager
def rows_per_example(count: Any) -> Iterator[None]:
    """Run a block in which ``count`` rows of a batch belong to each row around it."""
    token = _ROWS.set(_ROWS.get() * count)
    try:
        yield
    finally:
        _ROWS.reset(token)


def add_activity(layer: Any, outputs: list[Any]) -> None:
    """Add the penalty of a layer's activity regularizer to the loss, divided by the batch size."""
    rows = _ROWS.get()
    for y in outputs:
        value = layer.activity_regularizer(in_precision(y, "float32"))
        if y.ndim:
            count = y.shape[0]  # an empty batch counts as 1: the sum over it is 0
            if known_size(count) and known_size(rows):
                value = value / (max(count, 1) / rows if rows else 1)
            else:
                examples = ops["maximum"](ops["maximum"](count, 1) // ops["maximum"](rows, 1), 1)
                value = value / examples.astype(value.dtype)
        add_to_loss(layer, value)
