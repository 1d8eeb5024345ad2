"""The model's names for the names of a file: those of ``mapping=``, or of a known layout."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ...core.extend import Module
from ..errors import printable
from .arrays import Arrays
from .layouts import OWN, layouts
from .names import Names

# A dictionary, a function, or pairs of a regular expression and a replacement.
Mapped = str | tuple[str, tuple[int, ...]] | None
NameMapping = Mapping[str, Mapped] | Callable[[str], Mapped] | Sequence[tuple[Any, str]] | None


class Renamed(NamedTuple):
    """The model's name for a name of a file (``None`` for nothing), and the order of axes."""

    name: str | None
    axes: tuple[int, ...] | None = None


def rename(names: Sequence[str], mapping: NameMapping) -> dict[str, Renamed]:
    """Return the new name of each name of a file.

    Raises
    ------
    ValueError
        If a key or a pattern of the mapping matches no name.
    TypeError
        If the mapping, or a result of it, is of another type.
    """
    if mapping is None:
        return {name: Renamed(name) for name in names}
    if isinstance(mapping, Mapping):
        return _by_keys(names, mapping)
    if callable(mapping):
        return {name: _renamed(mapping(name), name) for name in names}
    if isinstance(mapping, (str, bytes)) or not isinstance(mapping, Iterable):
        raise TypeError(
            "load_weights: mapping must be a dictionary, a function or a list of pairs, "
            f"got {mapping!r}"
        )
    return _by_patterns(names, mapping)


def _renamed(value: Any, name: str, rest: str = "") -> Renamed:
    axes = None
    if isinstance(value, (tuple, list)) and len(value) == 2:
        value, axes = value[0], tuple(value[1])
    if value is None:
        return Renamed(None)
    if not isinstance(value, str):
        raise TypeError(
            f"load_weights: the mapping gives {value!r} for {name!r}; it must give a name, None, "
            "or a pair of a name and the order of axes"
        )
    return Renamed(f"{value}{rest}" if value else rest[1:], axes)


def _by_keys(names: Sequence[str], mapping: Mapping[str, Any]) -> dict[str, Renamed]:
    """Rename names that are keys, or are below one; of several keys the longest applies."""
    unused = set(mapping)
    found = {}
    for name in names:
        key = next((key for key in _above(name) if key in mapping), None)
        if key is None:
            found[name] = Renamed(name)
        else:
            unused.discard(key)
            found[name] = _renamed(mapping[key], name, name[len(key) :])
    _refuse_unused(sorted(unused), names)
    return found


def _above(name: str) -> Iterator[str]:
    """Yield a name, and the parts of the file that contain it, innermost first."""
    yield name
    for i in range(len(name) - 1, 0, -1):
        if name[i] in "./":
            yield name[:i]


def _by_patterns(names: Sequence[str], pairs: Any) -> dict[str, Renamed]:
    unused = []
    found = {name: name for name in names}
    for pair in pairs:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TypeError(
                f"load_weights: {pair!r} is not a pair of a regular expression and a replacement"
            )
        pattern, replacement = pair
        matched = False
        for name, current in found.items():
            try:
                found[name], count = re.subn(pattern, replacement, current)
            except (re.error, IndexError, TypeError) as error:
                raise ValueError(
                    f"load_weights: {pair!r} is not a regular expression and what replaces it, as "
                    f"re.sub takes them: {error}; a dictionary or a function may give None"
                ) from error
            matched = matched or count > 0
        if not matched:
            unused.append(getattr(pattern, "pattern", pattern))
    _refuse_unused(unused, names)
    return {name: Renamed(current) for name, current in found.items()}


def _refuse_unused(unused: Sequence[Any], names: Sequence[str]) -> None:
    if unused:
        listed = ", ".join(map(repr, unused))
        there = ", ".join(map(printable, sorted(names)[:8])) + (", ..." if len(names) > 8 else "")
        raise ValueError(
            f"load_weights: the mapping's {listed} match no name; the file has {there}"
        )


def recognised(
    model: Module, arrays: Arrays, renamed: Mapping[str, Renamed]
) -> tuple[Names, frozenset[str]]:
    """Return the model's names in the layout of arrays, and which arrays have the model's axes."""
    for layout in layouts().values():
        found = layout.recognised(model, arrays, renamed)
        if found is not None:
            return found
    return Names(model, OWN), frozenset()
