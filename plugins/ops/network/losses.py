"""Losses and similarities, per element or per example; take their mean or sum yourself.

Labels and predictions must have the same shape: a column that silently broadcasts against a row is
the most common mistake with losses.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.extend import F, Op, Tensor, floats, ops, same_shape
from ..common.axes import one_axis, reduced_axes
from ..common.dynamic_shapes import ensured_alike
from ..common.kernels import at_hand, reals
from ..common.op_builders import elementwise, named


def _matched(name: str, labels: Any, other: Any, called: str) -> tuple[Any, Any]:
    """Return two floating tensors of one shape; if a trace does not know it, each run checks."""
    labels, other = floats(labels, other)
    if same_shape(labels.shape, other.shape):
        return labels, other
    words = f"{name}: labels and {called} must have one shape, got {labels.shape} and {other.shape}"
    return ensured_alike(labels, other.shape, words), other


def _summed(x: Any, axis: Any, name: str) -> Any:
    axis = one_axis(axis, name)
    if x.shape is not None:
        reduced_axes(axis, len(x.shape), name)
    return ops["sum"](x, axis=axis, keepdims=False)


def _sigmoid_cross_entropy_kernel(xp: Any, logits: Any, labels: Any) -> Any:
    size = xp.abs(reals(logits))
    with np.errstate(invalid="ignore"):
        certain = xp.maximum(logits, xp.zeros_like(logits)) - logits * labels
    # an infinite logit that agrees with its label has no loss
    if at_hand(xp.any(certain != certain), unknown=True):
        labels = labels * xp.ones_like(size)
        missed = xp.where(logits > 0, 1 - labels, labels)
        certain = missed * xp.where(missed == 0, xp.zeros_like(size), size)
    return certain + xp.log1p(xp.exp(-size))


def _weighted_log(weights: Any, p: Any) -> Any:
    """Return ``weights * log(p)``, and 0 where both are 0."""
    nothing = ops["logical_and"](ops["equal"](weights, 0), ops["equal"](p, 0))
    return weights * ops["log"](ops["where"](nothing, 1.0, p))


def _confidence_less_label(logits: Any, labels: Any) -> Any:
    """Return ``sigmoid(logits) - labels``, exact where the sigmoid is nearly the label 1."""
    right = logits >= 0
    small = F.sigmoid(F.where(right, -logits, logits))
    return F.where(right, (1.0 - labels) - small, small - labels)


_sigmoid_cross_entropy = elementwise(
    "sigmoid_cross_entropy",
    _sigmoid_cross_entropy_kernel,
    holomorphic=False,
    floating=True,
    doc="Return ``-labels * log(sigmoid(logits)) - (1 - labels) * log(1 - sigmoid(logits))``.",
    logits=lambda g, logits, labels: g * _confidence_less_label(logits, labels),
    labels=lambda g, logits: -(g * logits),
)


@named
def sigmoid_cross_entropy_with_logits(*, labels: Any, logits: Any) -> Tensor:
    """Return the cross-entropy of independent probabilities ``labels`` under ``sigmoid(logits)``.

    Parameters
    ----------
    labels
        Probabilities, of the shape and dtype of ``logits``.
    logits
        Log-odds: a floating tensor of any shape.

    Returns
    -------
    A tensor of that shape and dtype, computed without overflow.

    Raises
    ------
    TypeError
        If an argument is complex.
    ValueError
        If the shapes differ.

    Notes
    -----
    The gradient of logits is ``sigmoid(logits) - labels``, that of labels is ``-logits``.

    References
    ----------
    Goodfellow, Bengio and Courville, "Deep learning", 2016, section 6.2.2.2.

    Examples
    --------
    >>> loss = gt.nn.sigmoid_cross_entropy_with_logits(labels=[1.0, 0.0], logits=[0.0, -1000.0])
    >>> [round(value, 4) for value in loss.tolist()]
    [0.6931, 0.0]
    """
    labels, logits = _matched("sigmoid_cross_entropy", labels, logits, "logits")
    return _sigmoid_cross_entropy(logits, labels)


@named
def binary_cross_entropy(*, labels: Any, probabilities: Any, epsilon: float = 1e-7) -> Tensor:
    """Return ``-labels * log(p) - (1 - labels) * log(1 - p)``, elementwise.

    Prefer :func:`sigmoid_cross_entropy_with_logits`, which is exact for any logits.

    Parameters
    ----------
    labels
        Probabilities, often 0 and 1: a floating tensor of any shape.
    probabilities
        Predicted probabilities, of the same shape.
    epsilon
        Predictions are clipped to this distance from 0 and 1, and have no gradient beyond; 1e-7 by
        default.

    Returns
    -------
    A tensor of that shape, of the promoted dtype.

    Raises
    ------
    TypeError
        If an argument is not a tensor, an array or a number.
    ValueError
        If the shapes differ.

    References
    ----------
    Goodfellow, Bengio and Courville, "Deep learning", 2016, section 6.2.2.2.

    Examples
    --------
    >>> loss = gt.nn.binary_cross_entropy(labels=[1.0, 0.0], probabilities=[0.5, 0.25])
    >>> [round(value, 4) for value in loss.tolist()]
    [0.6931, 0.2877]
    """
    labels, p = _matched("binary_cross_entropy", labels, probabilities, "probabilities")
    p = ops["clip"](p, epsilon, 1.0 - epsilon)
    others = 1.0 - labels
    certain = ops["logical_and"](ops["equal"](others, 0), ops["equal"](p, 1))
    missed = others * ops["log1p"](-ops["where"](certain, 0.0, p))
    return -(_weighted_log(labels, p) + missed)


@named
def categorical_cross_entropy(
    *, labels: Any, probabilities: Any, axis: int = -1, epsilon: float = 1e-7
) -> Tensor:
    """Return ``-sum(labels * log(p))`` along ``axis``.

    Prefer :func:`softmax_cross_entropy_with_logits`, which is exact for any logits.

    Parameters
    ----------
    labels
        Distributions: a floating tensor of at least one axis.
    probabilities
        Predicted probabilities, of the same shape.
    axis
        The axis of the classes, the last by default.
    epsilon
        Predictions are clipped to this distance from 0 and 1, and have no gradient beyond; 1e-7 by
        default.

    Returns
    -------
    A tensor without that axis, of the promoted dtype.

    Raises
    ------
    TypeError
        If an argument is not a tensor, an array or a number, or ``axis`` is not an integer.
    ValueError
        If the shapes differ.

    References
    ----------
    Goodfellow, Bengio and Courville, "Deep learning", 2016, section 6.2.2.3.

    Examples
    --------
    >>> loss = gt.nn.categorical_cross_entropy(labels=[0.0, 1.0], probabilities=[0.75, 0.25])
    >>> round(loss.item(), 4)
    1.3863
    """
    labels, p = _matched("categorical_cross_entropy", labels, probabilities, "probabilities")
    terms = _weighted_log(labels, ops["clip"](p, epsilon, 1.0 - epsilon))
    return -_summed(terms, axis, "categorical_cross_entropy")


@named
def kl_divergence(
    *, labels: Any, probabilities: Any, axis: int = -1, epsilon: float = 1e-7
) -> Tensor:
    """Return the Kullback-Leibler divergence ``sum(labels * log(labels / p))`` along ``axis``.

    Parameters
    ----------
    labels
        Distributions: a floating tensor of at least one axis; 0 contributes nothing.
    probabilities
        Predicted probabilities, of the same shape.
    axis
        The axis of the classes, the last by default.
    epsilon
        Predictions are clipped to at least this value, and have no gradient below; 1e-7 by default.

    Returns
    -------
    A tensor without that axis, of the promoted dtype.

    Raises
    ------
    TypeError
        If an argument is not a tensor, an array or a number, or ``axis`` is not an integer.
    ValueError
        If the shapes differ.

    References
    ----------
    Kullback and Leibler, "On information and sufficiency", 1951.

    Examples
    --------
    >>> gt.nn.kl_divergence(labels=[0.5, 0.5], probabilities=[0.5, 0.5]).item()
    0.0
    >>> round(gt.nn.kl_divergence(labels=[0.0, 1.0], probabilities=[0.5, 0.5]).item(), 4)
    0.6931
    """
    labels, p = _matched("kl_divergence", labels, probabilities, "probabilities")
    certain = ops["where"](ops["equal"](labels, 0), 1.0, labels)
    terms = labels * ops["log"](certain) - _weighted_log(labels, ops["maximum"](p, epsilon))
    return _summed(terms, axis, "kl_divergence")


_huber = elementwise(
    "huber",
    lambda xp, x, *, delta=1.0: xp.where(
        xp.abs(reals(x)) <= delta, 0.5 * (x * x), delta * (xp.abs(x) - 0.5 * delta)
    ),
    kind=Op,
    holomorphic=False,
    floating=True,
    doc="Return ``x**2 / 2`` up to ``delta``, and a straight line beyond.",
    x=lambda g, x, delta: g * F.minimum(F.maximum(x, -delta), delta),
)


@named
def huber(*, labels: Any, predictions: Any, delta: float = 1.0) -> Tensor:
    """Return half the squared error up to ``delta``, and a straight line beyond, elementwise.

    Parameters
    ----------
    labels, predictions
        Real tensors of one shape.
    delta
        Where the line begins, above 0; 1 by default.

    Returns
    -------
    A tensor of that shape and the promoted dtype.

    Raises
    ------
    TypeError
        If an argument is complex.
    ValueError
        If the shapes differ, or ``delta`` is not above 0.

    Notes
    -----
    The gradient of predictions is the error, limited to the interval from ``-delta`` to ``delta``.

    References
    ----------
    Huber, "Robust estimation of a location parameter", 1964.

    Examples
    --------
    >>> gt.nn.huber(labels=[0.0, 0.0], predictions=[0.5, 3.0]).tolist()
    [0.125, 2.5]
    """
    if not delta > 0:
        raise ValueError(f"huber: delta must be above 0, got {delta!r}")
    labels, predictions = _matched("huber", labels, predictions, "predictions")
    return _huber(predictions - labels, delta=float(delta))


@named
def hinge(*, labels: Any, predictions: Any) -> Tensor:
    """Return ``max(1 - labels * predictions, 0)``, elementwise, for labels of -1 and 1.

    Parameters
    ----------
    labels
        A tensor of -1 and 1, of any shape.
    predictions
        Real numbers, of the same shape: their sign is the predicted class.

    Returns
    -------
    A tensor of that shape and the promoted dtype.

    Raises
    ------
    TypeError
        If an argument is complex.
    ValueError
        If the shapes differ.

    Notes
    -----
    The gradient of predictions is ``-labels`` where the loss is positive, and 0 elsewhere.

    References
    ----------
    Cortes and Vapnik, "Support-vector networks", 1995.

    Examples
    --------
    >>> gt.nn.hinge(labels=[1.0, -1.0, 1.0], predictions=[0.5, 0.5, 2.0]).tolist()
    [0.5, 1.5, 0.0]
    """
    labels, predictions = _matched("hinge", labels, predictions, "predictions")
    return ops["relu"](1.0 - labels * predictions)


@named
def cosine_similarity(x: Any, y: Any, axis: int = -1, epsilon: float = 1e-8) -> Tensor:
    """Return the cosines of the angles between vectors along ``axis``, from -1 to 1.

    Parameters
    ----------
    x, y
        Floating tensors that broadcast.
    axis
        The axis of the vectors, the last by default.
    epsilon
        The minimum of the product of their lengths; 1e-8 by default.

    Returns
    -------
    A tensor of the broadcast shape without that axis, of the promoted dtype.

    Raises
    ------
    ValueError
        If the shapes do not broadcast.

    Notes
    -----
    Where a vector has the length 0, the cosine and its gradient are 0.

    Examples
    --------
    >>> gt.nn.cosine_similarity([[1.0, 0.0], [0.0, 2.0]], [0.0, 1.0]).tolist()
    [0.0, 1.0]
    """
    x, y = floats(x, y)
    axis = one_axis(axis, "cosine_similarity")
    lengths = [ops["norm"](v, axis=axis, keepdims=False) for v in (x, y)]
    # long vectors are scaled down by a constant: the product of their lengths could overflow
    units = [ops["stop_gradient"](ops["maximum"](length, 1.0)) for length in lengths]
    x, y = (v / ops["expand_dims"](unit, axis=axis) for v, unit in zip((x, y), units, strict=True))
    products = _summed(x * y, axis, "cosine_similarity")
    (long, unit), (wide, other) = zip(lengths, units, strict=True)
    both = (long / unit) * (wide / other)
    # a vector of length 0 has no direction that a gradient could change
    nowhere = ops["minimum"](long, wide) == 0
    bound = ops["where"](nowhere, 1.0, ops["maximum"](both, epsilon / (unit * other)))
    return ops["where"](nowhere, 0.0, products / bound)
