"""Margin losses besides :func:`hinge`, one value per example; names and formulas are Keras's."""

from __future__ import annotations

from typing import Any

from ...core.extend import Tensor, ops
from ..shapes import mean_of
from .errors import hinge, signed
from .inputs import of_one_shape

__all__ = ["categorical_hinge", "squared_hinge"]


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
