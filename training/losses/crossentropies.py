"""Cross-entropies of labels and predicted classes, plain and focal, one value per example.

By default they take logits, because a loss of logits is exact, while probabilities must be clipped.
Focal ones give less weight to easy examples. Names and formulas are otherwise Keras's.
"""

from __future__ import annotations

import math
import operator
from functools import reduce
from typing import Any

from ...core.extend import Tensor, as_tensor, functions, ops

# by their public names: training does not know which plugin provides them
from ...nn import (
    binary_cross_entropy,
    categorical_cross_entropy,
    log_softmax,
    sigmoid_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits,
)
from ..shapes import EPSILON, check_several, classes_of, mean_of
from .loss import of_one_shape, takes_labels

__all__ = [
    "binary_crossentropy",
    "binary_focal_crossentropy",
    "categorical_crossentropy",
    "categorical_focal_crossentropy",
    "sparse_categorical_crossentropy",
    "sparse_categorical_crossentropy_from_logits",
]


@of_one_shape(labels=(0.0, 1.0))
@takes_labels("binary")
def binary_crossentropy(
    y_true: Any,
    y_pred: Any,
    from_logits: bool = True,
    label_smoothing: float = 0.0,
    axis: int = -1,
) -> Tensor:
    """Return the mean over ``axis`` of the cross-entropies of binary labels and predictions.

    Parameters
    ----------
    y_true
        Labels, 0 and 1, or probabilities.
    y_pred
        Logits; or probabilities, which are kept 1e-7 away from 0 and 1. The same shape.
    label_smoothing
        A number ``s`` in ``[0, 1]`` that moves labels towards 1/2: ``y * (1 - s) + s / 2``.
    axis
        The axis of the mean.

    Returns
    -------
    A tensor without that axis.

    Raises
    ------
    ValueError
        If the shapes differ, or a label or ``label_smoothing`` is not in ``[0, 1]``.

    Notes
    -----
    ``-y * log(p) - (1 - y) * log(1 - p)``, where ``p`` is the sigmoid of the logits.

    References
    ----------
    C. Szegedy et al., "Rethinking the Inception Architecture for Computer Vision", CVPR 2016,
    section 7 (label smoothing).

    Examples
    --------
    >>> loss = gt.training.losses.binary_crossentropy([[1.0]], [[0.0]])
    >>> [round(x, 4) for x in loss.tolist()]
    [0.6931]
    """
    check_options("binary_crossentropy", from_logits, label_smoothing)
    if label_smoothing:
        y_true = y_true * (1.0 - label_smoothing) + 0.5 * label_smoothing
    return mean_of(binary_crossentropies(y_true, y_pred, from_logits), axis)


def binary_crossentropies(labels: Any, y_pred: Any, from_logits: bool) -> Any:
    """Return the binary cross-entropy of each label and prediction."""
    if from_logits:
        return sigmoid_cross_entropy_with_logits(labels=labels, logits=y_pred)
    return binary_cross_entropy(labels=labels, probabilities=y_pred, epsilon=EPSILON)


@of_one_shape(columns=False, labels=(0.0, math.inf))
@takes_labels("categorical")
def categorical_crossentropy(
    y_true: Any,
    y_pred: Any,
    from_logits: bool = True,
    label_smoothing: float = 0.0,
    axis: int = -1,
) -> Tensor:
    """Return the cross-entropies of label distributions, such as one-hot labels, and predictions.

    Parameters
    ----------
    y_true
        Distributions over the classes.
    y_pred
        Logits; or probabilities, which are scaled to sum to 1 and kept 1e-7 away from 0 and 1. The
        same shape.
    label_smoothing
        A number ``s`` in ``[0, 1]`` that moves labels towards the uniform distribution: ``y * (1 -
        s) + s / classes``.
    axis
        The axis of the classes.

    Returns
    -------
    A tensor without that axis.

    Raises
    ------
    ValueError
        If the shapes differ, a label is negative, there is only one class, or ``label_smoothing``
        is not in ``[0, 1]``.

    Notes
    -----
    ``-sum(y * log(p))``, where ``p`` is the softmax of the logits.

    References
    ----------
    C. Szegedy et al., "Rethinking the Inception Architecture for Computer Vision", CVPR 2016,
    section 7 (label smoothing).

    Examples
    --------
    >>> loss = gt.training.losses.categorical_crossentropy([[0.0, 1.0]], [[0.0, 0.0]])
    >>> [round(x, 4) for x in loss.tolist()]
    [0.6931]
    """
    check_options("categorical_crossentropy", from_logits, label_smoothing)
    if y_pred.shape:
        check_several("categorical_crossentropy", y_pred.shape[axis])
    y_true = smoothed(y_true, label_smoothing, axis)
    if from_logits:
        return softmax_cross_entropy_with_logits(labels=y_true, logits=y_pred, axis=axis)
    p = y_pred / ops["sum"](y_pred, axis=axis, keepdims=True)
    return categorical_cross_entropy(labels=y_true, probabilities=p, axis=axis, epsilon=EPSILON)


def smoothed(labels: Any, share: float, axis: int) -> Any:
    """Return distributions over classes, moved towards the uniform one."""
    if not share:
        return labels
    classes = ops["sum"](ops["ones_like"](labels), axis=axis, keepdims=True)
    return labels * (1.0 - share) + share / classes


@takes_labels("sparse")
def sparse_categorical_crossentropy(
    y_true: Any,
    y_pred: Any,
    from_logits: bool = True,
    ignore_class: int | None = None,
    axis: int = -1,
) -> Tensor:
    """Return the cross-entropies of integer labels and predictions for classes.

    Parameters
    ----------
    y_true
        Integer labels, shape ``(...)`` or ``(..., 1)``. Another dtype is allowed if the values are
        integers.
    y_pred
        Logits or probabilities, shape ``(..., classes)``, with at least two classes.
    from_logits
        Whether ``y_pred`` are logits; true by default, unlike in Keras.
    ignore_class
        A label whose loss is 0 for any prediction. It need not be a class.
    axis
        The axis of the classes.

    Returns
    -------
    A tensor of shape ``(...)``.

    Raises
    ------
    ValueError
        If the shapes do not fit, or a label is not an integer in ``[0, classes)``.

    Examples
    --------
    >>> loss = gt.training.losses.sparse_categorical_crossentropy(
    ...     [1, -1], [[0.0, 0.0], [0.0, 0.0]], ignore_class=-1
    ... )
    >>> [round(x, 4) for x in loss.tolist()]
    [0.6931, 0.0]
    """
    name = "sparse_categorical_crossentropy"
    check_options(name, from_logits)
    y_pred = as_tensor(y_pred)
    if axis != -1:
        y_pred = ops["moveaxis"](y_pred, source=axis, destination=-1)
    y_true, y_pred = classes_of(name, y_true, y_pred)
    if not from_logits:
        # softmax(log p) is p where p sums to 1; the lower limit avoids log(0)
        y_pred = ops["log"](ops["maximum"](y_pred, EPSILON))
    if ignore_class is None:
        return ops["sparse_softmax_cross_entropy"](y_pred, y_true)
    kept = ops["not_equal"](y_true, operator.index(ignore_class))
    values = ops["sparse_softmax_cross_entropy"](y_pred, ops["where"](kept, y_true, 0))
    return ops["where"](kept, values, 0.0)


@takes_labels("sparse")
def sparse_categorical_crossentropy_from_logits(y_true: Any, y_pred: Any) -> Tensor:
    """Return :func:`sparse_categorical_crossentropy` of integer labels and logits.

    Parameters
    ----------
    y_true
        Integer labels, shape ``(...)``.
    y_pred
        Logits, shape ``(..., classes)``.

    Returns
    -------
    A tensor of shape ``(...)``, with one value per example.

    Raises
    ------
    ValueError
        If the shapes do not fit, or a label is not an integer in ``[0, classes)``.

    Examples
    --------
    >>> gt.training.sparse_categorical_crossentropy_from_logits([0], [[20.0, 0.0]]).shape
    (1,)
    """
    return sparse_categorical_crossentropy(y_true, y_pred, from_logits=True)


def check_options(name: str, from_logits: Any, label_smoothing: Any = 0.0) -> None:
    """Raise if a setting is invalid: smoothing above 1, for example, would flip labels."""
    if from_logits not in (True, False):
        raise TypeError(f"{name}: from_logits is True or False, got {from_logits!r}")
    if not 0.0 <= label_smoothing <= 1.0:
        raise ValueError(f"{name}: label_smoothing must be in [0, 1], got {label_smoothing!r}")


# -- focal ----------------------------------------------------------------------------------------


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
    values = binary_crossentropies(y_true, y_pred, from_logits)
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
