"""Names of losses and metrics, for histories."""

from __future__ import annotations

from functools import partial
from typing import Any

from ..core.extend import snake_case

__all__ = ["name_of"]


def name_of(measure: Any) -> str:
    """Return the name of a function or a callable object, which is the same in each run."""
    while isinstance(measure, partial) and "__name__" not in vars(measure):
        measure = measure.func
    for attribute in ("__name__", "name"):
        name = getattr(measure, attribute, None)
        if name and isinstance(name, str):
            return name
    return snake_case(type(measure).__name__)
