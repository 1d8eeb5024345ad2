"""Names of losses and metrics in histories, the nearest of known names, and checks of arguments."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, ParamSpec, TypeVar

import numpy as np

from ..core.extend import snake_case

__all__ = ["as_count", "data_in_one", "did_you_mean", "name_of", "nearest", "stated"]

P = ParamSpec("P")
R = TypeVar("R")


def name_of(measure: Any) -> str:
    """Return the name of a function or a callable object, which is the same in each run."""
    while isinstance(measure, partial) and "__name__" not in vars(measure):
        measure = measure.func
    for attribute in ("__name__", "name"):
        name = getattr(measure, attribute, None)
        if name and isinstance(name, str):
            return name
    return snake_case(type(measure).__name__)


def stated(measure: Any, attribute: str) -> Any:
    """Return what a function or a class states of itself by an attribute; None if nothing.

    A class does not inherit a statement. A function that ``functools.wraps`` made has one only if
    the function that it wraps has none, which it would have copied.
    """
    found = getattr(measure, "__dict__", {}).get(attribute)
    wrapped = getattr(measure, "__dict__", {}).get("__wrapped__")
    return None if getattr(wrapped, attribute, None) is not None else found


# -- unknown names --------------------------------------------------------------------------------


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return the text between an unknown name and the known ones, with a suggestion if possible.

    Parameters
    ----------
    name
        The unknown name.
    known
        The known names.
    """
    if not isinstance(name, str) or not name:
        return "; known: "
    from difflib import get_close_matches  # for messages only

    folded: dict[str, str] = {}
    for x in known:
        folded.setdefault(_folded(x), x)
    key = _folded(name)
    found = [key] if key in folded else get_close_matches(key, folded, 1, cutoff=0.75)
    found = found or [x for x in folded if x.startswith(key)][:1] or [x for x in folded if key in x]
    if not found:
        return "; known: "
    return f"; did you mean {' or '.join(repr(folded[x]) for x in found[:3])}? Known: "


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that an unknown one most resembles, if any does."""
    from difflib import get_close_matches  # for messages only

    return next(iter(get_close_matches(name, list(known), 1, 0.75)), None)


def _folded(name: str) -> str:
    return name.replace("_", "").lower()


# -- arguments of fit, evaluate and predict -------------------------------------------------------


def data_in_one(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function of ``model`` and ``data`` say what to do with Keras's ``x`` and ``y``."""
    name = getattr(function, "__name__", "")
    known = inspect.getfullargspec(function).kwonlyargs

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        if len(args) > 2 or "x" in kwargs or "y" in kwargs:
            raise TypeError(
                f"{name}: the data are one argument: {name}(model, (x, y)), or (x, y, "
                "sample_weight); give settings by name"
            )
        for key in kwargs.keys() - {"model", "data", *known}:
            instead = did_you_mean(key, known) + ", ".join(known)
            instead = f"; use {_MEANT[key]}" if key in _MEANT else instead
            raise TypeError(f"{name} takes no argument {key!r}{instead}")
        return function(*args, **kwargs)

    return wrapper


#: What to use for arguments of other libraries.
_MEANT = {
    "criterion": "loss",
    "device": "model.to(place), before this call",
    "learning_rate": "optimizer=gradtape.training.Adam(rate)",
    "lr": "optimizer=gradtape.training.Adam(rate)",
    "n_epochs": "epochs",
    "nb_epoch": "epochs",
    "num_epochs": "epochs",
    "val_data": "validation_data",
}


def as_count(what: str, value: Any, least: int) -> int:
    """Return a count as a Python integer.

    Raises
    ------
    ValueError
        If it is not an integer, or below ``least``.
    """
    whole = isinstance(value, (int, float, np.integer, np.floating)) and value == value // 1
    if not whole or value < least or value == np.inf:
        kind = "positive" if least else "non-negative"
        raise ValueError(f"{what} must be a {kind} integer, got {value!r}")
    return int(value)
