"""Cross-entropies of class labels, and of distributions, under the softmax of logits.

Class labels are integers, or whole numbers in another dtype.
"""

from __future__ import annotations

import functools
from math import prod
from typing import Any

import numpy as np

from ....core.extend import NONDIFF, F, Tensor, as_tensor, common_size, kind_of, shapes_differ
from ..common.axes import along, leading, one_axis, reduced_axes
from ..common.kernels import along_axis, as_like, at_hand, cast_to, in_float32, nan_where
from ..common.op_builders import named, op
from .embeddings import hits
from .sigmoids import exponential_dtype, log_softmax_kernel, shifted_below_zero, softmax_kernel


def class_labels_kernel(xp: Any, labels: Any) -> Any:
    """Return labels as integers; raise if one is not a whole number."""
    kind = kind_of(labels.dtype)
    if kind == "c":
        raise TypeError(f"class_labels: labels must be whole numbers, got dtype {labels.dtype}")
    if kind == "f":
        # NaN is unequal to its floor, and infinity is not an integer
        whole = (labels == xp.floor(labels)) & xp.isfinite(labels)
        known = at_hand(xp.all(whole), unknown=None)
        if known is None:  # a label that no class has
            labels = xp.where(whole, labels, -xp.ones_like(labels))
        elif not known:
            first = labels[~whole][0]
            raise ValueError(
                "class_labels: the labels of classes must be whole numbers (0, 1, ...), got "
                f"{float(first):.6g}"
            )
    return labels if kind in "iu" else cast_to(xp, labels, "int64")


op(
    "class_labels",
    class_labels_kernel,
    gradients={"labels": NONDIFF},
    infer=lambda labels: (
        labels.shape,
        labels.dtype if labels.dtype.kind in "iu" else np.dtype("int64"),
    ),
    batch="elementwise",
    doc="Return class labels as integers; raise if one is not a whole number.",
)


# -- cross-entropies -------------------------------------------------------------------------------

#: Class labels do not affect the dtype.
_of_logits = functools.partial(in_float32, ignored=("labels",))


def _sparse_shape(logits: Any, labels: Any) -> Any:
    if logits is not None and not logits:
        raise ValueError(
            "sparse_softmax_cross_entropy: logits need an axis of classes, got shape ()"
        )
    if logits is None or labels is None:
        return labels
    if shapes_differ(labels, logits[:-1]):
        raise ValueError(
            "sparse_softmax_cross_entropy: labels must have one axis less than logits, "
            f"got labels of shape {labels} and logits of shape {logits}"
        )
    return tuple(map(common_size, labels, logits[:-1]))


def check_labels(xp: Any, logits: Any, labels: Any) -> Any:
    """Raise if class labels do not fit the logits; return None if their values are unknown."""
    _sparse_shape(logits.shape, labels.shape)
    if 0 in labels.shape:
        return False
    if kind_of(labels.dtype) not in "iu":
        raise TypeError(
            f"sparse_softmax_cross_entropy: labels must be integers, got dtype {labels.dtype}"
        )
    low, high, classes = xp.min(labels), xp.max(labels), logits.shape[-1]
    wrong = at_hand((low < 0) | (high >= classes), unknown=None)
    if wrong:
        raise ValueError(
            f"sparse_softmax_cross_entropy: labels must be from 0 to {classes - 1}, "
            f"got {int(low)} to {int(high)}: the logits have {classes} classes"
        )
    return wrong


@_of_logits
def sparse_cross_entropy_kernel(xp: Any, logits: Any, labels: Any) -> Any:
    """Return the cross-entropies of class labels under the softmax of logits."""
    wrong = check_labels(xp, logits, labels)
    count = prod(labels.shape)
    rows, flat = xp.reshape(logits, (count, logits.shape[-1])), xp.reshape(labels, (count,))
    shifted = shifted_below_zero(xp, rows, -1)
    picked = along_axis(xp, shifted, xp.expand_dims(flat, axis=-1), -1)[..., 0]
    losses = xp.log(xp.sum(xp.exp(shifted), axis=-1)) - picked
    losses = xp.reshape(losses, labels.shape)
    return nan_where(xp, lambda: _no_class(logits, labels), losses, wrong)


def _no_class(logits: Any, labels: Any) -> Any:
    return (labels < 0) | (labels >= logits.shape[-1])


@_of_logits
def softmax_less_labels_kernel(xp: Any, logits: Any, labels: Any) -> Any:
    """Return the softmax of logits minus 1 at each label."""
    p = softmax_kernel(xp, logits)
    less = p - xp.where(hits(xp, labels, logits.shape[-1]), xp.ones_like(p), xp.zeros_like(p))
    wrong = check_labels(xp, logits, labels)
    return nan_where(xp, lambda: _no_class(logits, labels)[..., None], less, wrong)


def _softmax_less_labels_rule(g: Any, logits: Any) -> Any:
    p = F.softmax(logits, axis=-1)
    return p * (g - F.sum(g * p, axis=-1, keepdims=True))


_sparse_cross_entropy = op(
    "sparse_softmax_cross_entropy",
    sparse_cross_entropy_kernel,
    gradients={
        "logits": lambda g, logits, labels: (
            F.expand_dims(g, axis=-1) * F.softmax_less_labels(logits, labels)
        ),
        "labels": NONDIFF,
    },
    infer=lambda logits, labels: (
        _sparse_shape(logits.shape, labels.shape),
        exponential_dtype(logits.dtype),
    ),
    batch=leading,
    floating=("logits",),
    view=False,
    doc="Return the cross-entropy between class labels and the softmax of logits.",
)
op(
    "softmax_less_labels",
    softmax_less_labels_kernel,
    gradients={"logits": _softmax_less_labels_rule, "labels": NONDIFF},
    infer=lambda logits, labels: (logits.shape, exponential_dtype(logits.dtype)),
    batch=leading,
    floating=("logits",),
    view=False,
    doc="Return the softmax of logits minus 1 at the label: the gradient of the cross-entropy.",
)


@named
def sparse_softmax_cross_entropy_with_logits(*, labels: Any, logits: Any) -> Tensor:
    """Return the cross-entropy of class labels under the softmax of logits.

    Parameters
    ----------
    labels
        Integers from 0 to ``classes - 1``, of shape ``logits.shape[:-1]``.
    logits
        Unnormalised log-probabilities, classes in the last axis.

    Returns
    -------
    A tensor of the shape of ``labels`` and the dtype of ``logits``:
    ``-log(softmax(logits)[label])``, computed without overflow.

    Raises
    ------
    TypeError
        If the labels are not integers, or the logits are complex.
    ValueError
        If the shapes do not fit, or a label is out of range.

    Notes
    -----
    The gradient of logits is ``softmax(logits) - one_hot(labels)``; labels have none.

    References
    ----------
    Goodfellow, Bengio and Courville, "Deep learning", 2016, section 6.2.2.3.

    Examples
    --------
    >>> loss = gt.nn.sparse_softmax_cross_entropy_with_logits(labels=0, logits=[2.0, 2.0])
    >>> round(loss.item(), 4)
    0.6931
    """
    return _sparse_cross_entropy(as_tensor(logits), as_tensor(labels))


# -- distributions ---------------------------------------------------------------------------------


def _dense_shape(logits: Any, labels: Any, axis: int) -> Any:
    if logits is None or labels is None:
        return None
    if shapes_differ(labels, logits):
        raise ValueError(
            "softmax_cross_entropy: labels and logits must have one shape, "
            f"got labels of shape {labels} and logits of shape {logits}"
        )
    (along,) = reduced_axes(axis, len(logits), "softmax_cross_entropy")
    shape = tuple(map(common_size, logits, labels))
    return (*shape[:along], *shape[along + 1 :])


@in_float32
def dense_kernel(xp: Any, logits: Any, labels: Any, *, axis: int = -1) -> Any:
    """Return the cross-entropies of distributions under the softmax of logits."""
    _dense_shape(logits.shape, labels.shape, axis)
    logs = log_softmax_kernel(xp, logits, axis=axis)
    # a class with probability 0 and label 0 has no loss
    return -xp.sum(labels * xp.where(labels == 0, xp.zeros_like(logs), logs), axis=axis)


@in_float32
def softmax_less_shares_kernel(xp: Any, logits: Any, labels: Any, *, axis: int = -1) -> Any:
    """Return the softmax of logits times the sum of the labels, minus the labels."""
    p = softmax_kernel(xp, logits, axis=axis)
    shares = labels * xp.ones_like(p)  # integers would have integer sums
    return xp.sum(shares, axis=axis, keepdims=True) * p - shares


def _less_shares_logits(g: Any, logits: Any, labels: Any, axis: int) -> Any:
    p, total = F.softmax(logits, axis=axis), F.sum(labels, axis=axis, keepdims=True)
    return as_like(total * p * (g - F.sum(g * p, axis=axis, keepdims=True)), logits)


def _less_shares_labels(g: Any, logits: Any, labels_like: Any, axis: int) -> Any:
    p = F.softmax(logits, axis=axis)
    return as_like(F.sum(g * p, axis=axis, keepdims=True) - g, labels_like)


def _dense_logits(g: Any, logits: Any, labels: Any, axis: int) -> Any:
    slope = F.softmax_less_shares(logits, labels, axis=axis)
    return as_like(F.expand_dims(g, axis=axis) * slope, logits)


def _dense_labels(g: Any, logits: Any, labels_like: Any, axis: int) -> Any:
    return as_like(-(F.expand_dims(g, axis=axis) * F.log_softmax(logits, axis=axis)), labels_like)


_cross_entropy = op(
    "softmax_cross_entropy",
    dense_kernel,
    gradients={"logits": _dense_logits, "labels": _dense_labels},
    infer=lambda logits, labels, axis: (
        _dense_shape(logits.shape, labels.shape, axis),
        exponential_dtype(np.result_type(logits.dtype, labels.dtype)),
    ),
    batch=along("axis"),
    floating=True,
    view=False,
    doc="Return the cross-entropy between distributions and the softmax of logits.",
)
op(
    "softmax_less_shares",
    softmax_less_shares_kernel,
    gradients={"logits": _less_shares_logits, "labels": _less_shares_labels},
    infer=lambda logits, labels, axis: (
        logits.shape,
        exponential_dtype(np.result_type(logits.dtype, labels.dtype)),
    ),
    batch=along("axis"),
    floating=True,
    view=False,
    doc="Return ``sum(labels) * softmax(logits) - labels``, the gradient of the logits.",
)


@named
def softmax_cross_entropy_with_logits(*, labels: Any, logits: Any, axis: int = -1) -> Tensor:
    """Return the cross-entropy of distributions under the softmax of logits.

    Parameters
    ----------
    labels
        Probabilities, of the shape of ``logits``.
    logits
        Unnormalised log-probabilities.
    axis
        The axis of the classes, the last by default.

    Returns
    -------
    A tensor without that axis, of the promoted dtype: ``-sum(labels * log_softmax(logits))``,
    computed without overflow.

    Raises
    ------
    TypeError
        If the logits are complex, or ``axis`` is not an integer.
    ValueError
        If the shapes differ.

    Notes
    -----
    The gradient of logits is ``sum(labels) * softmax(logits) - labels``, which is exact even if
    labels do not sum to 1. Labels have a gradient as well. A class whose label is 0 has no effect,
    even if its logit is -inf.

    References
    ----------
    Goodfellow, Bengio and Courville, "Deep learning", 2016, section 6.2.2.3.

    Examples
    --------
    >>> loss = gt.nn.softmax_cross_entropy_with_logits(labels=[0.5, 0.5], logits=[2.0, 2.0])
    >>> round(loss.item(), 4)
    0.6931
    """
    axis = one_axis(axis, "softmax_cross_entropy")
    return _cross_entropy(as_tensor(logits), as_tensor(labels), axis=axis)
