"""What losses and metrics say of themselves: their names for histories, and attributes."""

from __future__ import annotations

from functools import partial
from typing import Any

from ..core.extend import snake_case

__all__ = ["name_of", "stated"]


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
