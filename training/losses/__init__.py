"""Losses of labels and predictions, with Keras's names and formulas.

Functions return one value per example. Objects hold settings, and reduce these values to a number.
"""

from __future__ import annotations

from typing import Any

from ...core.errors import UnknownName
from ...core.extend import registry
from ...layers import made
from ..names import did_you_mean
from . import crossentropies, errors, loss, objects
from .crossentropies import *
from .errors import *
from .loss import *
from .objects import *

__all__ = ["get"]
__all__ += crossentropies.__all__
__all__ += errors.__all__
__all__ += loss.__all__
__all__ += objects.__all__

_FUNCTIONS = {
    name: getattr(module, name) for module in (errors, crossentropies) for name in module.__all__
}

# parallel training needs to know which values depend on other examples: those of overlaps
for _name in _FUNCTIONS.keys() - {"dice", "tversky"}:
    vars(_FUNCTIONS[_name])["by_example"] = True

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


def named() -> dict[str, Any]:
    """Return gradtape's losses by name, as their plugin provides them."""
    short = {name: _FUNCTIONS[of] for name, of in SHORT_NAMES.items()}
    return {**_FUNCTIONS, **short, **{name: getattr(objects, name) for name in objects.__all__}}


def is_named(loss: Any) -> bool:
    """Return whether a plugin provides this function under a name."""
    return registry().name_of("loss", loss) is not None


def get(loss: Any) -> Any:
    """Return the loss for a name, or the callable itself.

    Parameters
    ----------
    loss
        The name of a function (``"huber"``), one of :data:`SHORT_NAMES` (``"mse"``), or the name of
        a class (``"Huber"``), which gives an object with default settings; a third party's are
        qualified (``"acme::huber"``). Or a function of labels and predictions.

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
    found = registry().find_named("loss", loss) if isinstance(loss, str) else None
    if found is None:
        names = [x for x in registry().names_of("loss") if _is_shown(x)]
        raise UnknownName(
            f"unknown loss {loss!r}{did_you_mean(loss, names)}{', '.join(names)}, "
            f"or pass a function of labels and predictions{registry().lacking(loss)}"
        )
    return made("loss", loss, found)


def _is_shown(name: str) -> bool:
    """Return whether messages list a name: not the classes of gradtape, which are functions too."""
    return not name.isidentifier() or not isinstance(registry().find_named("loss", name), type)
