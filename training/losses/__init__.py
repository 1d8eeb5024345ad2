"""Losses of labels and predictions, with Keras's names and formulas.

Functions return one value per example. Objects hold settings, and reduce these values to a number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..nearest import meant
from . import crossentropies, errors, focal, loss, margins, objects, overlaps
from .crossentropies import *
from .errors import *
from .focal import *
from .loss import *
from .margins import *
from .objects import *
from .overlaps import *

__all__ = ["get"]
__all__ += crossentropies.__all__
__all__ += errors.__all__
__all__ += focal.__all__
__all__ += loss.__all__
__all__ += margins.__all__
__all__ += objects.__all__
__all__ += overlaps.__all__

_FUNCTIONS = {
    name: getattr(module, name)
    for module in (errors, crossentropies, focal, margins, overlaps)
    for name in module.__all__
}

#: Common abbreviations of some functions' names.
SHORT_NAMES = {
    "bce": "binary_crossentropy",
    "kld": "kl_divergence",
    "logcosh": "log_cosh",
    "mae": "mean_absolute_error",
    "mape": "mean_absolute_percentage_error",
    "mse": "mean_squared_error",
    "msle": "mean_squared_logarithmic_error",
}
FUNCTION_NAMES = (*_FUNCTIONS, *SHORT_NAMES)


def function_named(name: Any) -> Callable[..., Any] | None:
    """Return the function with a name or a short name; ``None`` if there is none."""
    return _FUNCTIONS.get(SHORT_NAMES.get(name, name))


def get(loss: Any) -> Any:
    """Return the loss for a name, or the callable itself.

    Parameters
    ----------
    loss
        The name of a function (``"huber"``), one of :data:`SHORT_NAMES` (``"mse"``), or the name of
        a class (``"Huber"``), which gives an object with default settings. Or a function of labels
        and predictions.

    Raises
    ------
    ValueError
        If the name is unknown.
    TypeError
        If ``loss`` is a class.
    """
    if isinstance(loss, type):
        raise TypeError(f"the loss is the class {loss.__name__}; pass an object: {loss.__name__}()")
    if callable(loss):
        return loss
    function = function_named(loss)
    if function is not None:
        return function
    if loss in objects.__all__:
        return getattr(objects, loss)()
    raise ValueError(
        f"unknown loss {loss!r}{meant(loss, FUNCTION_NAMES)}{', '.join(FUNCTION_NAMES)}, "
        "or pass a function of labels and predictions"
    )
