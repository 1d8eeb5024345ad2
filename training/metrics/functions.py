"""Metrics with one value per example, not differentiated; names are Keras'."""

from __future__ import annotations

from typing import Any

from ...core.extend import Tensor, as_tensor, ops
from ..shapes import alike, mean_of

__all__ = [
    "accuracy",
    "binary_accuracy",
    "categorical_accuracy",
    "sparse_categorical_accuracy",
    "sparse_top_k_categorical_accuracy",
]


def accuracy(y_true: Any, y_pred: Any) -> Tensor:
    """Return for each example whether the class with the largest prediction is the label.

    Parameters
    ----------
    y_true
        Integer labels, shape ``(...)``, or one-hot ones, shape ``(..., classes)``.
    y_pred
        Logits or probabilities, shape ``(..., classes)``.

    Returns
    -------
    A boolean tensor of shape ``(...)``; its mean is the accuracy.

    Raises
    ------
    ValueError
        If the shapes do not broadcast, or labels of the same rank are neither one-hot nor single.

    Examples
    --------
    >>> gt.training.accuracy([1, 1], [[0.1, 0.9], [0.8, 0.2]]).tolist()
    [True, False]
    """
    y_true, y_pred = as_tensor(y_true), as_tensor(y_pred)
    if y_true.ndim == y_pred.ndim:
        one_hot = y_true.shape[-1] == y_pred.shape[-1]
        y_true = ops["argmax"](y_true, axis=-1) if one_hot else ops["squeeze"](y_true, axis=-1)
    return ops["equal"](ops["argmax"](y_pred, axis=-1), y_true)


def sparse_categorical_accuracy(y_true: Any, y_pred: Any) -> Tensor:
    """Return :func:`accuracy` as numbers: 1 for each example that is right, 0 for the others.

    Parameters
    ----------
    y_true, y_pred
        As for :func:`accuracy`.

    Returns
    -------
    A float32 tensor of shape ``(...)``.

    Examples
    --------
    >>> right = gt.training.metrics.sparse_categorical_accuracy([1, 1], [[0.1, 0.9], [0.8, 0.2]])
    >>> right.tolist()
    [1.0, 0.0]
    """
    return accuracy(y_true, y_pred).astype("float32")


def categorical_accuracy(y_true: Any, y_pred: Any) -> Tensor:
    """Return for each example whether the largest prediction is that of the one-hot label.

    Parameters
    ----------
    y_true, y_pred
        Shape ``(..., classes)``.

    Returns
    -------
    A float32 tensor of shape ``(...)``, of 0 and 1.

    Examples
    --------
    >>> gt.training.metrics.categorical_accuracy([[0.0, 1.0]], [[0.1, 0.9]]).tolist()
    [1.0]
    """
    y_true, y_pred = as_tensor(y_true), as_tensor(y_pred)
    hit = ops["equal"](ops["argmax"](y_true, axis=-1), ops["argmax"](y_pred, axis=-1))
    return hit.astype("float32")


def binary_accuracy(y_true: Any, y_pred: Any, threshold: float = 0.5) -> Tensor:
    """Return the share over the last axis of predictions on the label's side of a threshold.

    Parameters
    ----------
    y_true
        Labels, 0 and 1.
    y_pred
        Probabilities; or logits, with a ``threshold`` of 0. The same shape ``(..., n)``, but for a
        last axis of size 1 that only one of them has.
    threshold
        What is above it counts as 1.

    Returns
    -------
    A float32 tensor of shape ``(...)``.

    Raises
    ------
    ValueError
        If the shapes differ.

    Examples
    --------
    >>> gt.training.metrics.binary_accuracy([[0.0, 1.0]], [[0.7, 0.8]]).tolist()
    [0.5]
    """
    y_true, y_pred = alike("binary_accuracy", y_true, y_pred)
    hit = ops["equal"]((y_pred > threshold).astype(y_true.dtype), y_true)
    return mean_of(hit.astype("float32"))


def sparse_top_k_categorical_accuracy(y_true: Any, y_pred: Any, k: int = 5) -> Tensor:
    """Return for each example whether its integer label is among the ``k`` largest predictions.

    Parameters
    ----------
    y_true
        Integer labels, shape ``(...)``.
    y_pred
        Logits or probabilities, shape ``(..., classes)``.
    k
        How many predictions count. Of equal ones all do, or none.

    Returns
    -------
    A boolean tensor of shape ``(...)``.

    Examples
    --------
    >>> metric = gt.training.metrics.sparse_top_k_categorical_accuracy
    >>> metric([0, 0], [[0.2, 0.3, 0.5], [0.3, 0.2, 0.5]], k=2).tolist()
    [False, True]
    """
    y_true, y_pred = as_tensor(y_true), as_tensor(y_pred)
    own = ops["take_along_axis"](y_pred, ops["expand_dims"](y_true, axis=-1), axis=-1)
    return ops["count_nonzero"](y_pred > own, axis=-1) < k
