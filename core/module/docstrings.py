"""Docstrings of families: shared texts complete those of a class or a function."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any


def complete_docstring(documented: Any, *texts: str, **values: str) -> None:
    """Complete a class's docstring from the ``_family`` of its bases, or a function's from texts.

    The texts have sections. The docstring gets the parameters that the object takes and does not
    describe itself, in the order of its signature. It also gets the attributes that it does not
    describe, and the other sections that it lacks. The text of a class takes precedence over those
    of its bases. Objects of other packages stay unchanged.

    Parameters
    ----------
    documented
        The class, whose docstring is made when it is first read; or the function.
    texts
        The texts for a function.
    values
        What replaces ``{name}`` in the docstring and in the texts.
    """
    if not documented.__doc__ or not documented.__module__.startswith(
        f"{__name__.partition('.')[0]}."
    ):
        return
    if isinstance(documented, type):
        documented.__doc__ = _Docstring(documented.__doc__, values)  # type: ignore[assignment]
    else:
        documented.__doc__ = _complete(documented, documented.__doc__, texts, values)


class _Docstring:
    """A class's docstring, which is made when it is first read."""

    def __init__(self, own: str, values: Mapping[str, str]) -> None:
        self.own, self.values = own, values
        self.made: str | None = None

    def __get__(self, instance: Any, owner: type[Any]) -> str:
        if self.made is None:
            cls = next(base for base in owner.__mro__ if vars(base).get("__doc__") is self)
            texts = [vars(base).get("_family", "") for base in cls.__mro__]
            self.made = _complete(cls, self.own, texts, self.values)
        return self.made


def summary_of(cls: type[Any]) -> str:
    """Return only the first line of a class's docstring; an empty string with ``-OO``."""
    held = vars(cls)["__doc__"]
    own = held.own if isinstance(held, _Docstring) else held
    return inspect.cleandoc(own or "").partition("\n")[0]


def _complete(documented: Any, own: str, texts: Sequence[str], values: Mapping[str, str]) -> str:
    from ..ops import docstrings

    text, sections = docstrings.parsed(own)
    taken = list(inspect.signature(documented).parameters)
    for told in texts:
        for title, section in docstrings.parsed(told)[1].items():
            if title in ("Parameters", "Attributes"):
                among = taken if title == "Parameters" else None
                sections[title] = _completed(sections.get(title, ""), section, among)
            else:
                sections.setdefault(title, section)
    titles = ("Parameters", "Attributes", *docstrings.SECTIONS[1:])
    parts = [f"{x}\n{'-' * len(x)}\n{sections[x]}" for x in titles if sections.get(x)]
    found = "\n\n".join([text, *parts])
    for name, value in values.items():
        found = found.replace(f"{{{name}}}", value)
    return found + "\n"


def _completed(section: str, more: str, taken: list[str] | None) -> str:
    """Return a section with the descriptions that ``more`` adds for the names in ``taken``."""
    entries = [(_names(head), head, body) for head, body in _entries(section)]
    described = {name for names, _, _ in entries for name in names}
    for head, body in _entries(more):
        names = [x for x in _names(head) if x not in described and (taken is None or x in taken)]
        if names:
            entries.append((names, ", ".join(names) if taken else head, body))
    if taken:
        places = {name: place for place, name in enumerate(taken)}
        entries.sort(key=lambda entry: places.get(entry[0][0], len(places)))
    return "\n".join(f"{head}\n{body}" for _, head, body in entries)


def _entries(section: str) -> list[tuple[str, str]]:
    """Return the descriptions of a section: the names that they describe, and their text."""
    found: list[tuple[str, str]] = []
    for line in section.splitlines():
        if line[:1].strip():
            found.append((line, ""))
        elif found:
            head, body = found[-1]
            found[-1] = head, f"{body}\n{line}".lstrip("\n")
    return found


def _names(head: str) -> list[str]:
    return [name.strip("* ") for name in head.partition(" : ")[0].split(",")]
