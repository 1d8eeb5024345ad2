"""Losses that are no cross-entropies: of regression, of margins, and of overlapping regions.

They have one value per example. Names and formulas are Keras's.
"""

from __future__ import annotations

import math
from typing import Any

from ...core.extend import Tensor, ops

# by its public name: training does not know which plugin provides it
from ...nn import huber as huber_values
from ..shapes import EPSILON, mean_of
from .loss import of_one_shape

__all__ = [
    "categorical_hinge",
    "cosine_similarity",
    "dice",
    "hinge",
    "huber",
    "kl_divergence",
    "log_cosh",
    "mean_absolute_error",
    "mean_absolute_percentage_error",
    "mean_squared_error",
    "mean_squared_logarithmic_error",
    "poisson",
    "squared_hinge",
    "tversky",
]


@of_one_shape()
def mean_squared_error(y_true: Any, y_pred: Any) -> Tensor:
    """Return the mean over the last axis of ``(y_true - y_pred)**2``.

    Parameters
    ----------
    y_true, y_pred
        Real tensors of one shape ``(..., n)``. A last axis of size 1 that only one of them has is
        dropped, so that a column of predictions meets a vector of labels. Integers become floats.

    Raises
    ------
    ValueError
        If the shapes differ otherwise, because broadcasting would be a mistake here.

    Examples
    --------
    >>> gt.training.losses.mean_squared_error([[1.0, 2.0]], [[1.0, 4.0]]).tolist()
    [2.0]
    """
    difference = y_pred - y_true
    return mean_of(difference * difference)


@of_one_shape()
def mean_absolute_error(y_true: Any, y_pred: Any) -> Tensor:
    """Return the mean over the last axis of ``|y_true - y_pred|``.

    Examples
    --------
    >>> gt.training.losses.mean_absolute_error([[1.0, 2.0]], [[1.0, 4.0]]).tolist()
    [1.0]
    """
    return mean_of(ops["abs"](y_true - y_pred))


@of_one_shape()
def mean_absolute_percentage_error(y_true: Any, y_pred: Any) -> Tensor:
    """Return the mean over the last axis of ``100 * |y_true - y_pred| / |y_true|``.

    Returns
    -------
    A tensor of shape ``(...)``, in per cent.

    Notes
    -----
    The divisor is at least 1e-7.

    Examples
    --------
    >>> gt.training.losses.mean_absolute_percentage_error([[1.0, 2.0]], [[1.5, 2.0]]).tolist()
    [25.0]
    """
    whole = ops["maximum"](ops["abs"](y_true), EPSILON)
    return 100.0 * mean_of(ops["abs"]((y_true - y_pred) / whole))


@of_one_shape()
def mean_squared_logarithmic_error(y_true: Any, y_pred: Any) -> Tensor:
    """Return the mean over the last axis of ``(log(1 + y_true) - log(1 + y_pred))**2``.

    Parameters
    ----------
    y_true, y_pred
        Tensors of one shape ``(..., n)``, as for :func:`mean_squared_error`. Values below 1e-7
        count as 1e-7.

    Examples
    --------
    >>> gt.training.losses.mean_squared_logarithmic_error([[1.0, 2.0]], [[1.0, 2.0]]).tolist()
    [0.0]
    """
    y_true, y_pred = ops["maximum"](y_true, EPSILON), ops["maximum"](y_pred, EPSILON)
    return mean_of(ops["square"](ops["log1p"](y_true) - ops["log1p"](y_pred)))


@of_one_shape()
def huber(y_true: Any, y_pred: Any, delta: float = 1.0) -> Tensor:
    """Return the mean over the last axis of Huber's loss: a parabola, then a straight line.

    Parameters
    ----------
    delta
        The error above which the loss is a straight line; positive.

    Raises
    ------
    ValueError
        If the shapes differ, or ``delta`` is not above 0.

    Notes
    -----
    With ``e = |y_true - y_pred|``: ``e**2 / 2`` up to ``delta``, ``delta * (e - delta / 2)`` above.

    References
    ----------
    P. J. Huber, "Robust Estimation of a Location Parameter", Annals of Mathematical Statistics 35,
    1964.

    Examples
    --------
    >>> gt.training.losses.huber([[0.0, 0.0]], [[1.0, 3.0]]).tolist()
    [1.5]
    """
    return mean_of(huber_values(labels=y_true, predictions=y_pred, delta=delta))


@of_one_shape(labels=(-1.0, 1.0))
def hinge(y_true: Any, y_pred: Any) -> Tensor:
    """Return the mean over the last axis of ``max(1 - y_true * y_pred, 0)``.

    Parameters
    ----------
    y_true
        Labels, from -1 to 1; most often -1 and 1. If all are 0 or 1, a 0 counts as -1.
    y_pred
        Predictions of the same shape ``(..., n)``.

    References
    ----------
    C. Cortes and V. Vapnik, "Support-Vector Networks", Machine Learning 20, 1995.

    Examples
    --------
    >>> gt.training.losses.hinge([[-1.0, 1.0]], [[0.5, 0.5]]).tolist()
    [1.0]
    """
    # on the margin, nn.hinge has gradient 0, but Keras's hinge has the slope of the line
    return mean_of(ops["maximum"](1.0 - signed(y_true) * y_pred, 0.0))


def signed(labels: Tensor) -> Tensor:
    """Return labels with 0 replaced by -1, if all are 0 or 1."""
    either = ops["logical_or"](ops["equal"](labels, 0), ops["equal"](labels, 1))
    return ops["where"](ops["all"](either), 2.0 * labels - 1.0, labels)


@of_one_shape(columns=False, labels=(0.0, 1.0))
def kl_divergence(y_true: Any, y_pred: Any) -> Tensor:
    """Return the Kullback-Leibler divergence ``sum(y_true * log(y_true / y_pred))``.

    Parameters
    ----------
    y_true, y_pred
        Distributions of one shape ``(..., classes)``; their values are clipped to [1e-7, 1].

    References
    ----------
    S. Kullback and R. A. Leibler, "On Information and Sufficiency", Annals of Mathematical
    Statistics 22, 1951.

    Examples
    --------
    >>> gt.training.losses.kl_divergence([[0.5, 0.5]], [[0.5, 0.5]]).tolist()
    [0.0]
    """
    y_true = ops["clip"](y_true, EPSILON, 1.0)
    y_pred = ops["clip"](y_pred, EPSILON, 1.0)
    return ops["sum"](y_true * ops["log"](y_true / y_pred), axis=-1)


@of_one_shape()
def log_cosh(y_true: Any, y_pred: Any) -> Tensor:
    """Return the mean over the last axis of ``log(cosh(y_pred - y_true))``.

    Returns
    -------
    A tensor of shape ``(...)``, computed without overflow.

    Examples
    --------
    >>> gt.training.losses.log_cosh([[1.0]], [[1.0]]).tolist()
    [0.0]
    """
    error = y_pred - y_true
    near = ops["abs"](error) < 1.0
    # near 0, the terms of the sum for large errors cancel
    small = ops["where"](near, error, 0.0)
    large = ops["where"](near, 1.0, ops["abs"](error))
    by_sinh = ops["log1p"](2.0 * ops["square"](ops["sinh"](0.5 * small)))
    by_sum = large + ops["softplus"](-2.0 * large) - math.log(2.0)
    return mean_of(ops["where"](near, by_sinh, by_sum))


@of_one_shape()
def poisson(y_true: Any, y_pred: Any) -> Tensor:
    """Return the mean over the last axis of ``y_pred - y_true * log(y_pred)``.

    Up to a constant, it is the negative log-likelihood of counts under a Poisson distribution.

    Parameters
    ----------
    y_true
        Counts.
    y_pred
        The expected counts, positive, of the same shape ``(..., n)``; 1e-7 is added inside the
        logarithm.

    Examples
    --------
    >>> gt.training.losses.poisson([[0.0, 0.0]], [[1.0, 3.0]]).tolist()
    [2.0]
    """
    return mean_of(y_pred - y_true * ops["log"](y_pred + EPSILON))


@of_one_shape(columns=False)
def cosine_similarity(y_true: Any, y_pred: Any, axis: int = -1) -> Tensor:
    """Return minus the cosine of the angle between labels and predictions.

    Parameters
    ----------
    y_true, y_pred
        Tensors of one shape.
    axis
        The axis of the vectors.

    Returns
    -------
    A tensor without that axis, from -1 (the same direction) to 1. The cosine itself is
    ``gradtape.nn.cosine_similarity``.

    Notes
    -----
    Vectors are divided by their norms. If a norm is less than 1e-6, the vector is divided by 1e-6.

    Examples
    --------
    >>> gt.training.losses.cosine_similarity([[2.0, 0.0]], [[3.0, 0.0]]).tolist()
    [-1.0]
    """
    return -ops["sum"](_unit(y_true, axis) * _unit(y_pred, axis), axis=axis)


def _unit(x: Tensor, axis: int) -> Tensor:
    return x / ops["maximum"](ops["norm"](x, axis=axis, keepdims=True), 1e-6)


# -- margins; hinge, with the same labels, is above -----------------------------------------------


@of_one_shape(like=hinge, labels=(-1.0, 1.0))
def squared_hinge(y_true: Any, y_pred: Any) -> Tensor:
    """Return the mean over the last axis of ``max(1 - y_true * y_pred, 0)**2``.

    Examples
    --------
    >>> gt.training.losses.squared_hinge([[-1.0, 1.0]], [[0.5, 0.5]]).tolist()
    [1.25]
    """
    return mean_of(ops["square"](ops["maximum"](1.0 - signed(y_true) * y_pred, 0.0)))


@of_one_shape(columns=False, labels=(0.0, 1.0))
def categorical_hinge(y_true: Any, y_pred: Any) -> Tensor:
    """Return the hinge loss of the correct class against the best wrong class.

    Parameters
    ----------
    y_true
        One-hot labels, 0 and 1.
    y_pred
        Predictions of the same shape ``(..., classes)``.

    Returns
    -------
    A tensor of shape ``(...)``: ``max(neg - pos + 1, 0)``, with ``pos = sum(y_true * y_pred)`` and
    ``neg = max((1 - y_true) * y_pred)``. The products have a 0 for the correct class, so ``neg`` is
    at least 0, as in Keras.

    Examples
    --------
    >>> gt.training.losses.categorical_hinge([[0.0, 1.0]], [[0.5, 1.0]]).tolist()
    [0.5]
    """
    right = ops["sum"](y_true * y_pred, axis=-1)
    wrong = ops["max"]((1.0 - y_true) * y_pred, axis=-1)
    return ops["maximum"](wrong - right + 1.0, 0.0)


# -- overlaps, for segmentation -------------------------------------------------------------------


@of_one_shape(columns=False, labels=(0.0, 1.0))
def dice(y_true: Any, y_pred: Any, axis: Any = None) -> Tensor:
    """Return ``1 - 2 * sum(y_true * y_pred) / (sum(y_true) + sum(y_pred))``.

    Parameters
    ----------
    y_true, y_pred
        Labels and probabilities of one shape.
    axis
        The axis or axes of the sums; all by default, which gives one number.

    Returns
    -------
    A tensor without these axes.

    Notes
    -----
    1e-7 is added to the denominator.

    References
    ----------
    F. Milletari, N. Navab and S.-A. Ahmadi, "V-Net: Fully Convolutional Neural Networks for
    Volumetric Medical Image Segmentation", 3DV 2016.

    Examples
    --------
    >>> round(gt.training.losses.dice([[1.0, 0.0]], [[0.5, 0.5]]).item(), 4)
    0.5
    """
    axis = _axes(axis)
    both = ops["sum"](y_true * y_pred, axis=axis)
    whole = ops["sum"](y_true, axis=axis) + ops["sum"](y_pred, axis=axis)
    return 1.0 - 2.0 * both / (whole + EPSILON)


@of_one_shape(columns=False, labels=(0.0, 1.0))
def tversky(
    y_true: Any, y_pred: Any, alpha: float = 0.5, beta: float = 0.5, axis: Any = None
) -> Tensor:
    """Return one minus the Tversky index, which weights false positives and negatives.

    Parameters
    ----------
    y_true, y_pred
        Labels and probabilities of one shape.
    alpha
        The weight of false positives.
    beta
        The weight of false negatives.
    axis
        The axis or axes of the sums; all by default, which gives one number.

    Returns
    -------
    A tensor without these axes: ``1 - tp / (tp + alpha * fp + beta * fn)``.

    Notes
    -----
    1e-7 is added to the denominator.

    References
    ----------
    S. S. M. Salehi, D. Erdogmus and A. Gholipour, "Tversky Loss Function for Image Segmentation
    Using 3D Fully Convolutional Deep Networks", MLMI 2017.

    Examples
    --------
    >>> round(gt.training.losses.tversky([[1.0, 0.0]], [[0.5, 0.5]]).item(), 4)
    0.5
    """
    axis = _axes(axis)
    right = ops["sum"](y_true * y_pred, axis=axis)
    extra = ops["sum"]((1.0 - y_true) * y_pred, axis=axis)
    missed = ops["sum"](y_true * (1.0 - y_pred), axis=axis)
    return 1.0 - right / (right + alpha * extra + beta * missed + EPSILON)


def _axes(axis: Any) -> Any:
    return tuple(axis) if isinstance(axis, list) else axis
