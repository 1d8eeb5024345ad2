"""Metrics with one value per example, not differentiated; names are Keras's."""

from __future__ import annotations

from typing import Any

from ...core.extend import Tensor, ops, same_size, shapes_differ, with_each_other
from ..shapes import alike, check_several, checked, classes_of, mean_of

__all__ = [
    "accuracy",
    "binary_accuracy",
    "categorical_accuracy",
    "sparse_categorical_accuracy",
    "sparse_top_k_categorical_accuracy",
]


def accuracy(y_true: Any, y_pred: Any) -> Tensor:
    """Return whether the label of each example is the class with the largest prediction.

    Parameters
    ----------
    y_true
        Integer labels, shape ``(...)`` or ``(..., 1)``; or one-hot labels, shape ``(...,
        classes)``.
    y_pred
        Logits or probabilities, shape ``(..., classes)``, with at least two classes.

    Returns
    -------
    A boolean tensor of shape ``(...)``; its mean is the accuracy.

    Raises
    ------
    ValueError
        If the shapes fit neither kind of labels, there is only one class (see
        :func:`binary_accuracy`), or a label is not an integer.

    Examples
    --------
    >>> gt.training.accuracy([1, 1], [[0.1, 0.9], [0.8, 0.2]]).tolist()
    [True, False]
    """
    y_true, y_pred = with_each_other((y_true, y_pred))
    if None not in (y_true.shape, y_pred.shape):
        check_classes("accuracy", y_true.shape, y_pred.shape)
    if y_true.ndim == y_pred.ndim and y_true.shape[-1] == y_pred.shape[-1]:
        y_true = ops["argmax"](y_true, axis=-1)
    else:
        y_true, y_pred = classes_of("accuracy", y_true, y_pred)
    found = ops["argmax"](y_pred, axis=-1)
    return _known(ops["equal"](found, checked("accuracy", y_true, found)), y_pred)


def _known(hit: Tensor, y_pred: Tensor) -> Tensor:
    """Return which of the hits are none by NaN, which is the largest but says nothing."""
    largest = ops["max"](y_pred, axis=-1, keepdims=False)
    return ops["logical_and"](hit, ops["equal"](largest, largest))


def check_classes(name: str, labels: Any, predictions: Any) -> None:
    """Raise if shapes do not fit integer or one-hot labels and predictions for classes."""
    if len(predictions) == len(labels) < 2 or (predictions and same_size(predictions[-1], 1)):
        raise ValueError(
            f"{name}: y_true has shape {labels}, y_pred has shape {predictions}: one number per "
            "example is a binary prediction; use binary_accuracy, with threshold=0.5 for "
            "probabilities or threshold=0.0 for logits"
        )
    example = predictions[:-1]
    kinds = (example, (*example, 1), predictions)
    if not predictions or all(shapes_differ(kind, labels) for kind in kinds):
        raise ValueError(
            f"{name}: y_true has shape {labels}, y_pred has shape {predictions}; give labels of "
            f"shape {example}, or one-hot labels of the shape of the predictions"
        )


def sparse_categorical_accuracy(y_true: Any, y_pred: Any) -> Tensor:
    """Return :func:`accuracy` as numbers: 1 for each correct prediction, 0 for the others.

    Parameters
    ----------
    y_true, y_pred
        As for :func:`accuracy`.

    Returns
    -------
    A float32 tensor of shape ``(...)``.

    Raises
    ------
    ValueError
        As for :func:`accuracy`.

    Examples
    --------
    >>> right = gt.training.metrics.sparse_categorical_accuracy([1, 1], [[0.1, 0.9], [0.8, 0.2]])
    >>> right.tolist()
    [1.0, 0.0]
    """
    return accuracy(y_true, y_pred).astype("float32")


def categorical_accuracy(y_true: Any, y_pred: Any) -> Tensor:
    """Return whether the one-hot label of each example is the class with the largest prediction.

    Parameters
    ----------
    y_true, y_pred
        Shape ``(..., classes)``, with at least two classes.

    Returns
    -------
    A float32 tensor of shape ``(...)``, with values 0 and 1.

    Raises
    ------
    ValueError
        If the shapes differ, or there is only one class.

    Examples
    --------
    >>> gt.training.metrics.categorical_accuracy([[0.0, 1.0]], [[0.1, 0.9]]).tolist()
    [1.0]
    """
    y_true, y_pred = with_each_other((y_true, y_pred))
    y_true = checked("categorical_accuracy", y_true, y_pred)
    check_several("categorical_accuracy", y_pred.shape[-1] if y_pred.shape else None)
    hit = ops["equal"](ops["argmax"](y_true, axis=-1), ops["argmax"](y_pred, axis=-1))
    return _known(hit, y_pred).astype("float32")


def binary_accuracy(y_true: Any, y_pred: Any, threshold: float = 0.5) -> Tensor:
    """Return the share, over the last axis, of predictions on the correct side of a threshold.

    Parameters
    ----------
    y_true
        Labels. Values above 1/2 are positive, so labels may be 0 and 1, -1 and 1, or smoothed.
    y_pred
        Probabilities; or logits, with a ``threshold`` of 0. The same shape ``(..., n)``, except
        that one of them may have an additional last axis of size 1.
    threshold
        Predictions above it count as 1.

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
    hit = ops["equal"](y_pred > threshold, y_true > 0.5)
    hit = ops["logical_and"](hit, ops["equal"](y_pred, y_pred))  # NaN is on no side
    return mean_of(hit.astype("float32"))


def sparse_top_k_categorical_accuracy(y_true: Any, y_pred: Any, k: int = 5) -> Tensor:
    """Return whether the label of each example is among the classes with the ``k`` largest values.

    Parameters
    ----------
    y_true
        Integer labels, shape ``(...)`` or ``(..., 1)``; a negative label is never among them.
    y_pred
        Logits or probabilities, shape ``(..., classes)``.
    k
        The number of predictions that count, at least 1. If predictions are equal, all of them
        count, or none.

    Returns
    -------
    A boolean tensor of shape ``(...)``.

    Raises
    ------
    ValueError
        If the shapes do not fit, ``k`` is below 1, or a label is not an integer.
    IndexError
        If a label is larger than the last class.

    Examples
    --------
    >>> metric = gt.training.metrics.sparse_top_k_categorical_accuracy
    >>> metric([0, 0], [[0.2, 0.3, 0.5], [0.3, 0.2, 0.5]], k=2).tolist()
    [False, True]
    """
    name = "sparse_top_k_categorical_accuracy"
    if k < 1:
        raise ValueError(f"{name}: k must be at least 1, got {k!r}")
    y_true, y_pred = classes_of(name, y_true, y_pred)
    own = ops["take_along_axis"](y_pred, ops["expand_dims"](y_true, axis=-1), axis=-1)
    # not those above it, and its own equality: NaN is never among the largest
    others = ops["logical_not"](y_pred <= own)
    among = ops["count_nonzero"](others, axis=-1) < k
    among = ops["logical_and"](among, ops["equal"](own[..., 0], own[..., 0]))
    return ops["logical_and"](among, y_true >= 0)  # negative labels index from the end


for _name in __all__:
    globals()[_name].by_example = True  # parallel training needs to know
