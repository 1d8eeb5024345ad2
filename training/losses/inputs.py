"""Brings the labels and predictions of losses to one shape, and checks the labels."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from math import inf
from typing import Any, TypeVar

import numpy as np

from ...core.extend import complete_docstring
from ..shapes import alike

__all__ = ["labels_beyond", "of_one_shape"]

Function = TypeVar("Function", bound=Callable[..., Any])

_SHARED = """
Parameters
----------
y_true, y_pred
    Tensors of one shape ``(..., n)``, as for :func:`mean_squared_error`.
from_logits
    Whether ``y_pred`` are logits; true by default, unlike in Keras.

Returns
-------
A tensor of shape ``(...)``.

Raises
------
ValueError
    If the shapes differ, or the loss does not take a label.
"""


def of_one_shape(
    columns: bool = True, like: Any = None, labels: tuple[float, float] | None = None
) -> Callable[[Function], Function]:
    """Return a decorator that gives a loss labels and predictions of one shape.

    It also completes the docstring of the loss.

    Parameters
    ----------
    columns
        Whether a vector and a column count as one shape; not if the last axis holds classes.
    like
        A loss whose parameters, results and errors complete the docstring.
    labels
        The smallest and the largest label, if there are such; the attribute ``label_range`` of the
        loss. ``fit`` checks all labels, also for a function of your own with this attribute.
    """
    texts = () if like is None else ((like.__doc__ or "").partition("\nNotes\n")[0],)

    def decorated(function: Function) -> Function:
        if labels is not None:
            function.label_range = labels  # type: ignore[attr-defined]

        @wraps(function)
        def loss(y_true: Any, y_pred: Any, *args: Any, **settings: Any) -> Any:
            y_true, y_pred = alike(function.__name__, y_true, y_pred, columns)
            if labels is not None and type(y_true.array) is np.ndarray:
                text = labels_beyond(labels, y_true.array)
                if text:
                    raise ValueError(f"{function.__name__}: labels {text}")
            return function(y_true, y_pred, *args, **settings)

        complete_docstring(loss, *texts, _SHARED)
        return loss  # type: ignore[return-value]

    return decorated


#: How far rounding may take a label out of its range.
_ROUNDING = 1e-5


def labels_beyond(limits: tuple[float, float] | None, values: Any) -> str:
    """Return what is wrong with labels that are not in a range; empty if nothing is."""
    if limits is None or not values.size or values.dtype.kind not in "iuf":
        return ""
    low, high = np.minimum.reduce(values, None), np.maximum.reduce(values, None)
    below, above = low < limits[0] - _ROUNDING, high > limits[1] + _ROUNDING
    if not (below or above):  # both are false for NaN, which other checks report
        return ""
    wanted = "shares of classes, from 0" if limits[1] == inf else "from {:g} to {:g}"
    text = f"must be {wanted.format(*limits)}, got {low} to {high}"
    return f"{text}; divide a mask by 255" if (low, high) == (0, 255) else text
