"""NumPy's own functions on the values of tensors, while nothing records them.

Gradtape has a function for most of NumPy's, which tapes record. NumPy's own runs if gradtape has
none, if it writes into a user's array, and if it mixes numbers with text or objects, as long as no
tape, trace or batch is active: no gradient can be lost then. Otherwise it is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..base.context import active_batches, active_graph, active_tapes
from ..base.tree import flatten, map_structure
from ..ops.dispatch import is_transformed
from .tensor import Operators

__all__ = ["OnlyValues", "instead", "into_array", "of_values"]


class OnlyValues(Exception):
    """Only NumPy has this function; ``message()`` says what to do while something records."""

    def __init__(self, message: Callable[[], str]) -> None:
        super().__init__(message)
        self.message = message


def instead(error: Exception, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Return the result of NumPy's function on values, or raise ``error`` if they are recorded."""
    if not _followed((args, kwargs)):
        return of_values(function, np.asarray, args, kwargs)
    raise TypeError(error.message()) if isinstance(error, OnlyValues) else error


def _followed(arguments: Any) -> bool:
    return (
        bool(active_tapes.get())
        or active_graph.get() is not None
        or bool(active_batches.get())
        or any(is_transformed(getattr(leaf, "array", None)) for leaf in flatten(arguments))
    )


def of_values(
    function: Callable[..., Any], value: Callable[[Any], Any], args: Any, kwargs: Any
) -> Any:
    """Call NumPy's function with an array instead of each tensor."""
    args, kwargs = map_structure(
        lambda leaf: value(leaf) if isinstance(leaf, Operators) else leaf, (args, kwargs)
    )
    return function(*args, **kwargs)


def into_array(place: str, target: Any, advice: str) -> Exception:
    """Return the error for a function that writes into ``target``, an array or a tensor."""
    arrays = [x for x in flatten(target) if x is not None]
    if not arrays or any(isinstance(x, Operators) for x in arrays):
        return TypeError(f"{place} does not work on tensors; {advice}")
    return OnlyValues(
        lambda: (
            f"{place} writes into a NumPy array, which gradients cannot follow, while a tape, a "
            f"trace or a batch is active; {advice}, or pass .numpy() of the tensor"
        )
    )
