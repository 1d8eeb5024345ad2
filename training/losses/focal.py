"""Focal cross-entropies, with less weight on easy examples; names are Keras's."""

from __future__ import annotations

from typing import Any

from ...core.extend import Tensor, ops

# by their public names: training does not know which plugin provides them
from ...nn import log_softmax, softmax
from ..shapes import EPSILON, mean_of
from .crossentropies import (
    binary_crossentropy,
    categorical_crossentropy,
    check_options,
    smoothed,
    yes_or_no,
)
from .inputs import of_one_shape

__all__ = ["binary_focal_crossentropy", "categorical_focal_crossentropy"]


@of_one_shape(like=binary_crossentropy)
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
    """Return binary cross-entropies times ``(1 - p)**gamma``, with ``p`` predicted for the label.

    Parameters
    ----------
    apply_class_balancing
        Whether to multiply values for label 1 by ``alpha``, and those for label 0 by ``1 - alpha``.
    alpha
        The weight of label 1, 0.25 by default; only used with ``apply_class_balancing``.
    gamma
        The exponent; the larger, the less easy examples count. 0 is the plain cross-entropy.

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
    if label_smoothing:
        y_true = y_true * (1.0 - label_smoothing) + 0.5 * label_smoothing
    p = ops["sigmoid"](y_pred) if from_logits else ops["clip"](y_pred, EPSILON, 1.0 - EPSILON)
    missed = 1.0 - (y_true * p + (1.0 - y_true) * (1.0 - p))
    values = ops["power"](missed, gamma) * yes_or_no(y_true, y_pred, from_logits)
    if apply_class_balancing:
        values = (y_true * alpha + (1.0 - y_true) * (1.0 - alpha)) * values
    return mean_of(values, axis)


@of_one_shape(columns=False, like=categorical_crossentropy)
def categorical_focal_crossentropy(
    y_true: Any,
    y_pred: Any,
    alpha: Any = 0.25,
    gamma: float = 2.0,
    from_logits: bool = True,
    label_smoothing: float = 0.0,
    axis: int = -1,
) -> Tensor:
    """Return categorical cross-entropies times ``alpha * (1 - p)**gamma``.

    Parameters
    ----------
    alpha
        A weight, or one for each class.
    gamma
        The exponent; the larger, the less easy examples count.

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
    y_true = smoothed(y_true, label_smoothing, axis)
    if from_logits:
        p, logs = softmax(y_pred, axis=axis), log_softmax(y_pred, axis=axis)
    else:
        p = y_pred / ops["sum"](y_pred, axis=axis, keepdims=True)
        p = ops["clip"](p, EPSILON, 1.0 - EPSILON)
        logs = ops["log"](p)
    weights = ops["power"](1.0 - p, gamma) * alpha
    return -ops["sum"](weights * y_true * logs, axis=axis)
