"""What neural networks add: activations, cross-entropies, normalisation."""

from __future__ import annotations

from typing import Any

from ...core.extend import NONDIFF, F, TensorSpec, UnaryOp, ops
from .families import elementwise, reduced_axes
from .shape import one_axis, shape_op

__all__ = ["relu", "sparse_softmax_cross_entropy_with_logits"]


# -- activations -------------------------------------------------------------------------------------

relu = elementwise(
    "relu",
    lambda xp, x: xp.maximum(x, 0),
    holomorphic=False,
    doc="Return ``max(x, 0)``, elementwise; the gradient at 0 is 0.",
    x=lambda g, out: g * (out > 0),
)


# -- softmax -----------------------------------------------------------------------------------------


def _axis_spec(name: str) -> Any:
    def infer(x: TensorSpec, *, axis: int) -> tuple[Any, Any]:
        if x.shape is not None:
            reduced_axes(axis, len(x.shape), name)
        return x.shape, x.dtype

    return infer


def _shifted(xp: Any, x: Any, axis: int) -> Any:
    """Return ``x`` less its maximum, so that its exponentials stay finite."""
    return x - xp.max(x, axis=axis, keepdims=True) if x.shape[axis] else x


def _softmax_kernel(xp: Any, x: Any, *, axis: int = -1) -> Any:
    e = xp.exp(_shifted(xp, x, axis))
    return e / xp.sum(e, axis=axis, keepdims=True)


def _log_softmax_kernel(xp: Any, x: Any, *, axis: int = -1) -> Any:
    shifted = _shifted(xp, x, axis)
    return shifted - xp.log(xp.sum(xp.exp(shifted), axis=axis, keepdims=True))


_softmax = shape_op(
    "softmax",
    _softmax_kernel,
    gradients={
        "x": lambda g, out, axis: out * (g - F.sum(g * out, axis=axis, keepdims=True)),
    },
    infer=_axis_spec("softmax"),
    doc="Return exponentials that sum to 1 along an axis.",
)
_log_softmax = shape_op(
    "log_softmax",
    _log_softmax_kernel,
    gradients={
        "x": lambda g, out, axis: g - F.exp(out) * F.sum(g, axis=axis, keepdims=True),
    },
    infer=_axis_spec("log_softmax"),
    doc="Return the logarithm of the softmax along an axis.",
)


def softmax(x: Any, axis: int = -1) -> Any:
    """Return ``exp(x) / sum(exp(x))`` along ``axis``, for ``x`` of any size."""
    return _softmax(x, axis=one_axis(axis, "softmax"))


def log_softmax(x: Any, axis: int = -1) -> Any:
    """Return ``x - log(sum(exp(x)))`` along ``axis``, for ``x`` of any size."""
    return _log_softmax(x, axis=one_axis(axis, "log_softmax"))


# -- cross-entropy -----------------------------------------------------------------------------------


def _label_index(xp: Any, logits: Any, labels: Any) -> tuple[Any, ...]:
    """Return the index of each label's entry among the flattened rows of ``logits``."""
    rows = xp.arange(labels.size)
    return rows, xp.reshape(labels, (-1,))


def _sparse_shape(logits: Any, labels: Any) -> Any:
    if logits is not None and not logits:
        raise ValueError("sparse_softmax_cross_entropy: logits need an axis of classes, got shape ()")
    if logits is None or labels is None:
        return labels
    fits = len(labels) == len(logits) - 1 and all(
        n == m or n is None or m is None for n, m in zip(labels, logits, strict=False)
    )
    if not fits:
        raise ValueError(
            "sparse_softmax_cross_entropy: labels have one axis less than logits, "
            f"got labels of shape {labels} and logits of shape {logits}"
        )
    return labels


def _rows(xp: Any, logits: Any, labels: Any) -> tuple[Any, Any]:
    """Return logits as rows, and the labels of the rows; check them."""
    _sparse_shape(logits.shape, labels.shape)
    classes = logits.shape[-1]
    if labels.size and not (xp.min(labels) >= 0 and xp.max(labels) < classes):
        raise ValueError(
            f"sparse_softmax_cross_entropy: labels must be from 0 to {classes - 1}, "
            f"got {int(xp.min(labels))} to {int(xp.max(labels))}"
        )
    count = labels.size
    return xp.reshape(logits, (count, classes)), xp.reshape(labels, (count,))


def _sparse_kernel(xp: Any, logits: Any, labels: Any) -> Any:
    rows, flat = _rows(xp, logits, labels)
    shifted = _shifted(xp, rows, -1)
    picked = shifted[xp.arange(flat.shape[0]), flat]
    losses = xp.log(xp.sum(xp.exp(shifted), axis=-1)) - picked
    return xp.reshape(losses, labels.shape)


def _softmax_less_labels(xp: Any, logits: Any, labels: Any) -> Any:
    count = labels.size
    rows = xp.reshape(_softmax_kernel(xp, logits), (count, logits.shape[-1]))
    rows[xp.arange(count), xp.reshape(labels, (count,))] -= 1
    return xp.reshape(rows, logits.shape)


def _softmax_less_labels_rule(g: Any, logits: Any) -> Any:
    p = F.softmax(logits, axis=-1)
    return p * (g - F.sum(g * p, axis=-1, keepdims=True))


_sparse_cross_entropy = shape_op(
    "sparse_softmax_cross_entropy",
    _sparse_kernel,
    gradients={
        "logits": lambda g, logits, labels: F.expand_dims(g, axis=-1)
        * F.softmax_less_labels(logits, labels),
        "labels": NONDIFF,
    },
    infer=lambda logits, labels: (_sparse_shape(logits.shape, labels.shape), logits.dtype),
    doc="Return the cross-entropy between class labels and the softmax of logits.",
)
shape_op(
    "softmax_less_labels",
    _softmax_less_labels,
    gradients={"logits": _softmax_less_labels_rule, "labels": NONDIFF},
    infer=lambda logits, labels: (logits.shape, logits.dtype),
    doc="Return the softmax of logits less 1 at the label: the gradient of the cross-entropy.",
)


def sparse_softmax_cross_entropy_with_logits(*, labels: Any, logits: Any) -> Any:
    """Return the cross-entropy of class labels under the softmax of logits.

    Parameters
    ----------
    labels
        Integers from 0 to ``classes - 1``, of shape ``logits.shape[:-1]``.
    logits
        Unnormalised log-probabilities, classes in the last axis.

    Returns
    -------
    A tensor of the shape of ``labels`` and the dtype of ``logits``: ``-log(softmax(logits)[label])``,
    computed without overflow. The gradient for logits is ``softmax(logits) - one_hot(labels)``.

    Raises
    ------
    ValueError
        If the shapes do not fit, or a label is out of range.
    """
    return _sparse_cross_entropy(logits, labels)
