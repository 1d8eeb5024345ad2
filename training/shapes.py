"""Labels, predictions and weights in shapes that fit, and what is made of one value per example."""

from __future__ import annotations

from typing import Any

from ..core.extend import Tensor, as_tensor, ops

__all__ = ["EPSILON", "alike", "column_dropped", "mean_of", "ratio", "weights_like"]

#: How far probabilities, and what is divided by, stay from 0; Keras' value.
EPSILON = 1e-7


def alike(name: str, y_true: Any, y_pred: Any) -> tuple[Tensor, Tensor]:
    """Return labels and predictions as tensors of one shape, as far as a trace knows it.

    A last axis of size 1 that only one of them has is dropped, so that a column of predictions
    meets a vector of labels. Integer labels take the dtype of the predictions.
    """
    y_true, y_pred = as_tensor(y_true), as_tensor(y_pred)
    if y_true.dtype.kind in "biu":
        y_true = y_true.astype(y_pred.dtype)
    y_true, y_pred = column_dropped(y_true, y_pred.shape), column_dropped(y_pred, y_true.shape)
    a, b = y_true.shape, y_pred.shape
    if a is not None and b is not None:
        fits = all(m == n or m is None or n is None for m, n in zip(a, b, strict=False))
        if len(a) != len(b) or not fits:
            raise ValueError(
                f"{name}: y_true has shape {a}, y_pred has shape {b}; give both the same shape"
            )
    return y_true, y_pred


def column_dropped(x: Tensor, like: Any) -> Tensor:
    """Return ``x`` without its last axis, if that has size 1 and the shape ``like`` lacks it."""
    shape = x.shape
    if shape is None or like is None or len(shape) != len(like) + 1 or shape[-1] != 1:
        return x
    return ops["squeeze"](x, axis=-1)


def mean_of(values: Tensor, axis: int = -1) -> Tensor:
    """Return the mean over one axis; a number is its own mean."""
    return values if values.shape == () else ops["mean"](values, axis=axis)


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
