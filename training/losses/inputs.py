"""Brings the labels and predictions of losses to one shape."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from ...core.extend import complete_docstring
from ..shapes import alike

__all__ = ["of_one_shape"]

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
    If the shapes differ.
"""


def of_one_shape(columns: bool = True, like: Any = None) -> Callable[[Function], Function]:
    """Return a decorator that gives a loss labels and predictions of one shape.

    It also completes the docstring of the loss.

    Parameters
    ----------
    columns
        Whether a vector and a column count as one shape; not if the last axis holds classes.
    like
        A loss whose parameters, results and errors complete the docstring.
    """
    texts = () if like is None else ((like.__doc__ or "").partition("\nNotes\n")[0],)

    def decorated(function: Function) -> Function:
        @wraps(function)
        def loss(y_true: Any, y_pred: Any, *args: Any, **settings: Any) -> Any:
            y_true, y_pred = alike(function.__name__, y_true, y_pred, columns)
            return function(y_true, y_pred, *args, **settings)

        complete_docstring(loss, *texts, _SHARED)
        return loss  # type: ignore[return-value]

    return decorated
