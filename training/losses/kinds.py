"""What cross-entropies say of themselves: their labels, and whether they take logits."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from .loss import Loss

__all__ = ["Kind", "kind_of", "label_range", "takes_labels"]

_LABELS = ("binary", "categorical", "sparse")
Function = TypeVar("Function", bound=Callable[..., Any])


def takes_labels(kind: str) -> Callable[[Function], Function]:
    """Mark a loss as a cross-entropy of ``kind``: its attribute ``label_kind``."""

    def mark(function: Function) -> Function:
        function.label_kind = kind  # type: ignore[attr-defined]
        return function

    return mark


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
    """Return the kind of a cross-entropy, however wrapped; ``None`` for other losses.

    A loss says what it is. Its attribute ``label_kind`` is ``"binary"``, ``"categorical"`` or
    ``"sparse"``; its parameters, settings or attributes ``from_logits`` (true by default) and
    ``axis`` (-1) say what its predictions are.

    Parameters
    ----------
    loss
        A function, a ``functools.partial`` of one, or a loss object.
    """
    for level, given in _levels(loss):
        labels = getattr(level, "label_kind", None)
        if not isinstance(labels, str) or labels not in _LABELS:
            continue
        known: dict[str, Any] = {"from_logits": True, "axis": -1}
        with suppress(TypeError, ValueError):  # a callable without a signature
            parameters = inspect.signature(level).parameters
            defaults = {name: parameters[name].default for name in known if name in parameters}
            known |= {name: x for name, x in defaults.items() if x is not inspect.Parameter.empty}
        known |= {name: getattr(level, name) for name in known if hasattr(level, name)}
        known |= {name: given[name] for name in known if name in given}
        name = getattr(level, "__name__", type(level).__name__)
        return Kind(name, labels, bool(known["from_logits"]), int(known["axis"]))
    return None


def label_range(loss: Any) -> tuple[float, float] | None:
    """Return the smallest and the largest label of a loss, however wrapped; None if unknown.

    They are its attribute ``label_range``.
    """
    limits = [getattr(level, "label_range", None) for level, _ in _levels(loss)]
    return next((each for each in limits if each is not None), None)


def _levels(loss: Any) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield a loss and the functions that it calls, each with the settings that it gets."""
    settings: dict[str, Any] = {}
    while True:
        yield loss, settings
        if isinstance(loss, functools.partial):
            settings = {**loss.keywords, **settings}
            loss = loss.func
        elif isinstance(loss, Loss) and hasattr(loss, "function"):
            settings = {**vars(loss).get("settings", {}), **settings}
            loss = loss.function
        elif hasattr(loss, "__wrapped__"):
            loss = loss.__wrapped__
        else:
            return
