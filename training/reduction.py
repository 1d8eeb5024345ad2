"""From one value per example to the numbers that losses and metrics are."""

from __future__ import annotations

from typing import Any

from ..core.extend import Tensor, as_tensor, ops

__all__ = ["ratio", "weights_like"]


def weights_like(weight: Any, values: Tensor) -> Tensor:
    """Return the weights of examples in a shape and dtype that broadcast with their values.

    Parameters
    ----------
    weight
        A number per example, also in a column; or one for each value.
    values
        Values, whose first axes count the examples.
    """
    weight = as_tensor(weight).astype(values.dtype)
    if weight.ndim == values.ndim + 1:
        weight = ops["squeeze"](weight, axis=-1)
    while 0 < weight.ndim < values.ndim:
        weight = ops["expand_dims"](weight, axis=-1)
    return weight


def ratio(total: Tensor, count: Tensor) -> Tensor:
    """Return ``total / count``, and 0 with gradient 0 where nothing was counted."""
    nothing = ops["equal"](count, 0)
    # both wheres are needed: what is not chosen would still send back a nan
    return ops["where"](nothing, 0.0, total / ops["where"](nothing, 1, count))
