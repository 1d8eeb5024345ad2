"""The table of kinds, and how one is registered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fuzz.numpy_calls.draw import Draw

__all__ = ["KINDS", "Kind", "kind", "words"]

Kind = Callable[[Draw], Any]

#: Kinds by name.
KINDS: dict[str, Kind] = {}


def kind(function: Kind) -> Kind:
    """Register a kind by the name of its function."""
    KINDS[function.__name__.rstrip("_")] = function
    return function


def words(*known: Any) -> Kind:
    """Return a kind that gives one of several values, such as names of modes."""

    def word(d: Draw) -> Any:
        return d.pick(("no such", 7)) if d.mistake() else d.pick(known)

    return word
