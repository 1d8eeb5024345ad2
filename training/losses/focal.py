"""Focal cross-entropies, with less weight on easy examples; names are Keras's."""

from __future__ import annotations

import math
import operator
from functools import reduce
from typing import Any

from ...core.extend import Tensor, functions, ops

# by their public names: training does not know which plugin provides them
from ...nn import log_softmax
from ..shapes import EPSILON, mean_of
from .crossentropies import (
    binary_crossentropy,
    categorical_crossentropy,
    check_options,
    smoothed,
    yes_or_no,
)
from .inputs import of_one_shape
from .kinds import takes_labels

__all__ = ["binary_focal_crossentropy", "categorical_focal_crossentropy"]


@of_one_shape(like=binary_crossentropy, labels=(0.0, 1.0))
@takes_labels("binary")
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
    values = yes_or_no(y_true, y_pred, from_logits)
    if from_logits:
        # the weight of an infinite logit is 1, or the value is 0 without it
        far = ops["isinf"](y_pred)
        near = ops["where"](far, 0.0, y_pred)
        if _is_whole(gamma):
            no = 1.0 - y_true
            missed = y_true * ops["sigmoid"](-near) + no * ops["sigmoid"](near)
            weight = _product(missed, gamma)
        else:
            weight = ops["exp"](gamma * _log_missed(y_true, near))
        values = ops["where"](far, 1.0, weight) * values
    else:
        p = ops["clip"](y_pred, EPSILON, 1.0 - EPSILON)
        missed = y_true * (1.0 - p) + (1.0 - y_true) * p
        values = ops["power"](missed, gamma) * values
    if apply_class_balancing:
        values = (y_true * alpha + (1.0 - y_true) * (1.0 - alpha)) * values
    return mean_of(values, axis)


def _is_whole(gamma: Any) -> bool:
    """Return whether a power is a product, which has all derivatives at 0 and takes less time."""
    return type(gamma) in (int, float) and gamma in (1, 2, 3, 4)


def _product(x: Tensor, gamma: float) -> Any:
    return reduce(operator.mul, [x] * int(gamma))


def _log_missed(labels: Tensor, logits: Tensor) -> Tensor:
    """Return the logarithm of ``labels * (1 - p) + (1 - labels) * p``, ``p = sigmoid(logits)``.

    Powers of a probability that is 0 after rounding have no finite derivatives; its logarithm has.
    """
    right = ops["greater"](logits, 0)
    size = ops["where"](right, logits, -logits)
    against = ops["where"](right, 1.0 - labels, labels)  # the share of the less likely answer
    none = ops["equal"](against, 0)
    rest = ops["exp"](-size) * (1.0 - against)
    mixed = ops["log"](ops["where"](none, 1.0, against + rest))
    # where the share is 0, this is the same, but does not round to 0; labels have a slope, too
    grown = against * ops["exp"](ops["minimum"](size, 80.0))
    certain = ops["log"](ops["where"](none, 1.0 - against + grown, 1.0)) - size
    return ops["where"](none, certain, mixed) - ops["softplus"](-size)


@of_one_shape(columns=False, like=categorical_crossentropy, labels=(0.0, math.inf))
@takes_labels("categorical")
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
        logs = log_softmax(y_pred, axis=axis)
        if _is_whole(gamma):
            inside = ops["greater"](logs, -math.inf)
            others = -ops["expm1"](ops["where"](inside, logs, -1.0))
            weights = ops["where"](inside, _product(others, gamma), 1.0)
        else:
            weights = ops["exp"](gamma * _log_others(logs, axis))
        logs = ops["where"](ops["equal"](y_true, 0), 0.0, logs)  # a logit may be -inf
    else:
        p = y_pred / ops["sum"](y_pred, axis=axis, keepdims=True)
        p = ops["clip"](p, EPSILON, 1.0 - EPSILON)
        logs, weights = ops["log"](p), ops["power"](1.0 - p, gamma)
    return -ops["sum"](weights * alpha * y_true * logs, axis=axis)


def _log_others(logs: Tensor, axis: int) -> Tensor:
    """Return the logarithm of ``1 - p`` for each class, from those of the probabilities ``p``.

    It is 0 where ``p`` is exactly 0 or 1: the weight does not matter there.
    """
    inside = ops["greater"](logs, -math.inf)
    likely = ops["greater"](logs, -math.log(2.0))  # of at most one class
    rest = ops["where"](likely, -math.inf, logs)
    alone = ops["logical_not"](
        ops["any"](ops["greater"](rest, -math.inf), axis=axis, keepdims=True)
    )
    others = functions["logsumexp"](ops["where"](alone, 0.0, rest), axis=axis, keepdims=True)
    small = ops["exp"](ops["where"](ops["logical_and"](inside, ~likely), logs, -1.0))
    found = ops["where"](likely, others, ops["log1p"](-small))
    return ops["where"](ops["logical_or"](~inside, ops["logical_and"](likely, alone)), 0.0, found)
