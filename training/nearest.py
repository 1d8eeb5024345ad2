"""Suggests known names for an unknown one."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["meant", "nearest"]


def meant(name: object, known: Iterable[str]) -> str:
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
