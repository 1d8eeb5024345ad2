"""Cross-entropies that turn to what is hard, one value per example; names are Keras'."""

from __future__ import annotations

from typing import Any

from ...core.extend import Tensor, ops

# by their public names: training does not know which plugin provides them
from ...nn import (
    binary_cross_entropy,
    log_softmax,
    sigmoid_cross_entropy_with_logits,
    softmax,
)
from ..shapes import EPSILON, alike, mean_of
from .crossentropies import check_options

__all__ = ["binary_focal_crossentropy", "categorical_focal_crossentropy"]


def binary_focal_crossentropy(
    y_true: Any,
    y_pred: Any,
    apply_class_balancing: bool = False,
    alpha: float = 0.25,
    gamma: float = 2.0,
    from_logits: bool = True,
    label_smoothing: float = 0.0,
    axis: int = -1,
) -> Tensor:
    """Return binary cross-entropies times ``(1 - p)**gamma``, with ``p`` that of the label.

    Parameters
    ----------
    y_true
        Labels, 0 and 1, or probabilities.
    y_pred
        Logits; or probabilities, which are kept 1e-7 away from 0 and 1. The same shape.
    apply_class_balancing
        Whether values of label 1 are multiplied by ``alpha``, and those of label 0 by ``1 -
        alpha``.
    alpha
        As above.
    gamma
        How much what is easy counts less; 0 is the plain cross-entropy.
    from_logits
        Whether ``y_pred`` are logits (the default; in Keras it is not).
    label_smoothing
        How far labels are moved towards 1/2: ``y * (1 - s) + s / 2``, in ``[0, 1]``.
    axis
        The axis of the mean.

    Returns
    -------
    A tensor without that axis.

    Raises
    ------
    ValueError
        If the shapes differ, or ``label_smoothing`` is not in ``[0, 1]``.

    References
    ----------
    T.-Y. Lin, P. Goyal, R. Girshick, K. He and P. Dollár, "Focal Loss for Dense Object Detection",
    ICCV 2017.

    Examples
    --------
    >>> loss = gt.training.losses.binary_focal_crossentropy([[1.0]], [[0.0]])
    >>> [round(x, 4) for x in loss.tolist()]
    [0.1733]
    """
    check_options("binary_focal_crossentropy", from_logits, label_smoothing)
    y_true, y_pred = alike("binary_focal_crossentropy", y_true, y_pred)
    if label_smoothing:
        y_true = y_true * (1.0 - label_smoothing) + 0.5 * label_smoothing
    if from_logits:
        values = sigmoid_cross_entropy_with_logits(labels=y_true, logits=y_pred)
        p = ops["sigmoid"](y_pred)
    else:
        values = binary_cross_entropy(labels=y_true, probabilities=y_pred, epsilon=EPSILON)
        p = ops["clip"](y_pred, EPSILON, 1.0 - EPSILON)
    missed = 1.0 - (y_true * p + (1.0 - y_true) * (1.0 - p))
    values = ops["power"](missed, gamma) * values
    if apply_class_balancing:
        values = (y_true * alpha + (1.0 - y_true) * (1.0 - alpha)) * values
    return mean_of(values, axis)


def categorical_focal_crossentropy(
    y_true: Any,
    y_pred: Any,
    alpha: Any = 0.25,
    gamma: float = 2.0,
    from_logits: bool = True,
    label_smoothing: float = 0.0,
    axis: int = -1,
) -> Tensor:
    """Return cross-entropies of classes times ``alpha * (1 - p)**gamma``.

    Parameters
    ----------
    y_true
        Distributions over the classes.
    y_pred
        Logits; or probabilities, which are made to sum to 1 and kept 1e-7 away from 0 and 1. The
        same shape.
    alpha
        A weight, or one for each class.
    gamma
        How much what is easy counts less.
    from_logits
        Whether ``y_pred`` are logits (the default; in Keras it is not).
    label_smoothing
        How far labels are moved towards the uniform distribution: ``y * (1 - s) + s / classes``.
    axis
        The axis of the classes.

    Returns
    -------
    A tensor without that axis.

    Raises
    ------
    ValueError
        If the shapes differ, or ``label_smoothing`` is not in ``[0, 1]``.

    References
    ----------
    T.-Y. Lin, P. Goyal, R. Girshick, K. He and P. Dollár, "Focal Loss for Dense Object Detection",
    ICCV 2017.

    Examples
    --------
    >>> loss = gt.training.losses.categorical_focal_crossentropy([[1.0, 0.0]], [[0.0, 0.0]])
    >>> [round(x, 4) for x in loss.tolist()]
    [0.0433]
    """
    check_options("categorical_focal_crossentropy", from_logits, label_smoothing)
    y_true, y_pred = alike("categorical_focal_crossentropy", y_true, y_pred, columns=False)
    if label_smoothing:
        y_true = y_true * (1.0 - label_smoothing) + label_smoothing / y_true.shape[axis]
    if from_logits:
        p, logs = softmax(y_pred, axis=axis), log_softmax(y_pred, axis=axis)
    else:
        p = y_pred / ops["sum"](y_pred, axis=axis, keepdims=True)
        p = ops["clip"](p, EPSILON, 1.0 - EPSILON)
        logs = ops["log"](p)
    weights = ops["power"](1.0 - p, gamma) * alpha
    return -ops["sum"](weights * y_true * logs, axis=axis)
