"""Losses: functions of labels and predictions with one value per example."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.extend import Tensor, as_tensor, ops

__all__ = [
    "get",
    "mean_squared_error",
    "sparse_categorical_crossentropy",
    "sparse_categorical_crossentropy_from_logits",
]

Loss = Callable[[Any, Any], Any]


def mean_squared_error(y_true: Any, y_pred: Any) -> Tensor:
    """Return the mean over the last axis of ``(y_true - y_pred)**2``.

    Parameters
    ----------
    y_true, y_pred
        Tensors of one shape ``(..., n)``. A last axis of size 1 that only one of them has is
        dropped, so that a column of predictions meets a vector of labels.

    Returns
    -------
    A tensor of shape ``(...)``.

    Raises
    ------
    ValueError
        If the shapes differ otherwise: broadcasting here would be a mistake.
    """
    y_true, y_pred = as_tensor(y_true), as_tensor(y_pred)
    if y_true.dtype.kind in "biu":
        y_true = y_true.astype(y_pred.dtype)
    y_true, y_pred = _column_dropped(y_true, y_pred.shape), _column_dropped(y_pred, y_true.shape)
    a, b = y_true.shape, y_pred.shape
    if a is not None and b is not None:
        fits = all(m == n or m is None or n is None for m, n in zip(a, b, strict=False))
        if len(a) != len(b) or not fits:
            raise ValueError(f"mean_squared_error: y_true has shape {a}, y_pred has shape {b}")
    difference = y_pred - y_true
    return ops["mean"](difference * difference, axis=-1)


def _column_dropped(x: Tensor, like: Any) -> Tensor:
    shape = x.shape
    if shape is None or like is None or len(shape) != len(like) + 1 or shape[-1] != 1:
        return x
    return ops["squeeze"](x, axis=-1)


def sparse_categorical_crossentropy(y_true: Any, y_pred: Any, from_logits: bool = True) -> Tensor:
    """Return the cross-entropy of integer labels and predicted classes.

    Parameters
    ----------
    y_true
        Integer labels, shape ``(...)``.
    y_pred
        Logits, shape ``(..., classes)``; or probabilities.
    from_logits
        Whether ``y_pred`` are logits (the default; in Keras it is not).

    Returns
    -------
    A tensor of shape ``(...)``.

    Raises
    ------
    ValueError
        If the shapes do not fit, or a label is not in ``[0, classes)``.
    """
    y_true, y_pred = as_tensor(y_true), as_tensor(y_pred)
    y_true = _column_dropped(y_true, y_pred.shape and y_pred.shape[:-1])
    if y_true.dtype.kind == "f":
        y_true = y_true.astype("int64")
    if not from_logits:
        # softmax(log p) is p where p sums to 1; the floor keeps log(0) out
        y_pred = ops["log"](ops["maximum"](y_pred, 1e-7))
    return ops["sparse_softmax_cross_entropy"](y_pred, y_true)


def sparse_categorical_crossentropy_from_logits(y_true: Any, y_pred: Any) -> Tensor:
    """Return :func:`sparse_categorical_crossentropy` of integer labels and logits."""
    return sparse_categorical_crossentropy(y_true, y_pred, from_logits=True)


_NAMES: dict[str, Loss] = {
    "mean_squared_error": mean_squared_error,
    "mse": mean_squared_error,
    "sparse_categorical_crossentropy": sparse_categorical_crossentropy,
}


def get(loss: Any) -> Loss:
    """Return the loss for a name, or the callable itself.

    Raises
    ------
    ValueError
        If the name is unknown.
    """
    if callable(loss):
        return loss
    if loss not in _NAMES:
        raise ValueError(
            f"unknown loss {loss!r}; known: {', '.join(_NAMES)}, or pass a function of labels and "
            "predictions"
        )
    return _NAMES[loss]
