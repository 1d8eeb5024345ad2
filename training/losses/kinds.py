"""Recognises the cross-entropies of gradtape: their labels, and whether they take logits."""

from __future__ import annotations

import functools
import inspect
from typing import Any, NamedTuple

from .loss import Loss

__all__ = ["Kind", "kind_of", "label_range"]

_CLASSES = {
    "binary_crossentropy": "binary",
    "binary_focal_crossentropy": "binary",
    "categorical_crossentropy": "categorical",
    "categorical_focal_crossentropy": "categorical",
    "sparse_categorical_crossentropy": "sparse",
    "sparse_categorical_crossentropy_from_logits": "sparse",
}
_PACKAGE = __name__.partition(".")[0] + "."


class Kind(NamedTuple):
    """A cross-entropy: its labels, and whether its predictions are logits.

    Attributes
    ----------
    name
        The function's name.
    classes
        ``"binary"``, ``"categorical"`` (one-hot labels) or ``"sparse"``.
    from_logits
        Whether predictions are logits; otherwise they are probabilities.
    axis
        The axis of the classes.
    """

    name: str
    classes: str
    from_logits: bool
    axis: int


def kind_of(loss: Any) -> Kind | None:
    """Return the kind of a loss if it is one of gradtape's cross-entropies, however wrapped.

    Parameters
    ----------
    loss
        A function, a ``functools.partial`` of one, or a loss object.
    """
    loss, settings = _innermost(loss)
    name = getattr(loss, "__name__", "")
    if name not in _CLASSES or not str(loss.__module__).startswith(_PACKAGE):
        return None
    parameters = inspect.signature(loss).parameters
    settings = {**{key: p.default for key, p in parameters.items()}, **settings}
    from_logits, axis = settings.get("from_logits", True), settings.get("axis", -1)
    return Kind(name, _CLASSES[name], bool(from_logits), int(axis))


def label_range(loss: Any) -> tuple[float, float] | None:
    """Return the smallest and the largest label of a loss, however wrapped; None if unknown."""
    found: tuple[float, float] | None = getattr(_innermost(loss)[0], "label_range", None)
    return found


def _innermost(loss: Any) -> tuple[Any, dict[str, Any]]:
    """Return the function that a loss calls, and the settings that it passes."""
    settings: dict[str, Any] = {}
    while True:
        if isinstance(loss, functools.partial):
            settings = {**loss.keywords, **settings}
            loss = loss.func
        elif isinstance(loss, Loss) and hasattr(loss, "function"):
            settings = {**vars(loss).get("settings", {}), **settings}
            loss = loss.function
        elif hasattr(loss, "__wrapped__"):
            loss = loss.__wrapped__
        else:
            return loss, settings
