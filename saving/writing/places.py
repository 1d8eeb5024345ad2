"""Paths of variables, and variables that would be lost."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence

from ...core.extend import Module, Variable
from ..container.limits import SEGMENT
from ..errors import SaveError


def places_of(module: Module) -> dict[int, str]:
    """Return the path of each variable's dataset, by the variable's identity."""
    places = Places()
    leaves = module.named_leaves()
    return {id(x): places.take(path) for path, x in leaves if isinstance(x, Variable)}


class Places:
    """Gives variables the paths of their datasets.

    A path names the attributes, positions and keys that lead to the variable. Characters that it
    cannot hold are replaced by ``_``, and a path that is taken gets another ``_`` at its end.
    """

    def __init__(self) -> None:
        self._datasets: set[str] = set()
        self._groups: set[str] = set()

    def take(self, path: str) -> str:
        """Return the path of the dataset of the variable at this path, and note it as taken."""
        place = "/variables/" + "/".join(map(_segment, path.split("/")))
        if any(group in self._datasets for group in _above(place)):
            place = "/variables/" + _segment(path)
        while place in self._datasets or place in self._groups:
            place += "_"
        self._datasets.add(place)
        self._groups.update(_above(place))
        return place


def _above(place: str) -> list[str]:
    """Return the groups that a dataset is in."""
    return [place[:i] for i, c in enumerate(place) if c == "/" and i]


def _segment(part: str) -> str:
    if SEGMENT.match(part):
        return part
    return "_" + re.sub(r"[^A-Za-z0-9_.\- ]", "_", part)[:100].rstrip(". ")


def check_hidden(
    hidden: Sequence[tuple[str, str, Variable | Module]], saved: Container[int]
) -> None:
    """Refuse variables that an object holds where no module finds them and no function reads them.

    Parameters
    ----------
    hidden
        The path, the object's class, and the variable or the module.
    saved
        The identities of the variables that the file will hold.
    """
    for path, owner, item in hidden:
        variables = item.variables if isinstance(item, Module) else (item,)
        lost = [v for v in variables if id(v) not in saved]
        if lost:
            raise SaveError(
                f"{path}: variable {lost[0].name!r} would be lost: modules find variables in "
                f"attributes, lists, tuples and dicts, but not inside an object of class {owner}, "
                "and no saved function reads it. Make that class a gradtape.Module, or keep the "
                "variable in an attribute of a module as well"
            )


def at_in(root: Module, module: Module) -> str:
    """Return the location of a module for messages; empty for the root."""
    found = (path for path, leaf in root.named_leaves() if leaf is module)
    return "".join(f" at {path.replace('/', '.')!r}" for path in found)
