"""Names of losses and metrics in histories, the nearest of known names, and checks of arguments."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, ParamSpec, TypeVar

import numpy as np

from ..core.extend import Tensor, as_tensor, snake_case, to_use

__all__ = [
    "MEANT",
    "as_count",
    "codeless",
    "data_in_one",
    "did_you_mean",
    "name_of",
    "nearest",
    "returned",
    "stated",
]

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


def returned(value: Any, measure: Any) -> Tensor:
    """Return what a loss or a metric returned, as a tensor.

    Raises
    ------
    TypeError
        If it returned nothing. The message names it.
    """
    if value is None:
        raise TypeError(f"{name_of(measure)} returned None (is a return missing?)")
    return as_tensor(value)


def stated(measure: Any, attribute: str) -> Any:
    """Return what a function or a class states of itself by an attribute; None if nothing.

    A class does not inherit a statement. A function that ``functools.wraps`` made has one only if
    the function that it wraps has none, which it would have copied.
    """
    found = getattr(measure, "__dict__", {}).get(attribute)
    wrapped = getattr(measure, "__dict__", {}).get("__wrapped__")
    return None if getattr(wrapped, attribute, None) is not None else found


def codeless(value: Any, method: str, kind: str) -> str:
    """Return why a module that was loaded without its class is not one of a kind; else nothing.

    Parameters
    ----------
    value
        Any object.
    method
        What it would need.
    kind
        The kind, such as ``"optimizer"``.
    """
    if not (hasattr(type(value), "class_name") and hasattr(type(value), "untraced")):
        return ""
    reason = value.untraced.get(method)
    return (
        f": its file was saved from the class {value.class_name} and has no {method!r}"
        f"{f' ({reason})' if reason else ''}. Load it where a plugin provides that class "
        f"(gradtape_modules), or create another {kind} and restore a Checkpoint"
    )


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
            if key in MEANT:
                instead = to_use(MEANT[key])
            raise TypeError(f"{name} takes no argument {key!r}{instead}")
        return function(*args, **kwargs)

    return wrapper


_THREADS = (
    "a gradtape.data.Dataset, whose map(..., num_parallel_calls=) and prefetch(n) have threads"
)
#: What to use for arguments of other libraries.
MEANT = {
    "callbacks": "leave it out: only fit calls callbacks",
    "criterion": "loss",
    "device": "model.to(place), before this call",
    "learning_rate": "optimizer=gradtape.training.Adam(rate)",
    "lr": "optimizer=gradtape.training.Adam(rate)",
    "max_queue_size": _THREADS,
    "n_epochs": "epochs",
    "nb_epoch": "epochs",
    "num_epochs": "epochs",
    "return_dict": "leave it out: the result is a dictionary",
    "sample_weight": "the third part of the data: (x, y, sample_weight)",
    "use_multiprocessing": _THREADS,
    "val_data": "validation_data",
    "verbose": "leave it out: only fit shows its progress",
    "workers": _THREADS,
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
