"""Entry points of installed distributions, without ``importlib.metadata`` where folders suffice.

That module imports the parsers of e-mails and zip files, and parses the entry points of every
distribution: a third of the time of ``import gradtape`` and a first op. Here, only the lists that
have a group in question are parsed. Whatever is not a plain folder is left to the library, as is
everything in a program that has imported it anyway.
"""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, NamedTuple

__all__ = ["DeclaredPoint", "points_in_folders"]

_LIST = "entry_points.txt"
_ENDINGS = (".dist-info", ".egg-info")
_VALUE = re.compile(r"(?P<module>[\w.]+)\s*(:\s*(?P<attr>[\w.]+)\s*)?((?P<extras>\[.*\])\s*)?$")


class DeclaredPoint(NamedTuple):
    """An entry point, with what ``importlib.metadata.EntryPoint`` offers of it.

    Attributes
    ----------
    name, value, group
        As the list has them.
    dist
        The folder of the distribution, if it comes from one.
    """

    name: str
    value: str
    group: str
    dist: DeclaringFolder | None = None

    @property
    def module(self) -> str:
        """The name of the module."""
        found = _VALUE.match(self.value)
        return found["module"] if found else ""

    @property
    def is_well_formed(self) -> bool:
        """Whether the value is ``module`` or ``module:object``."""
        return _VALUE.match(self.value) is not None

    def load(self) -> Any:
        """Import the module; return it, or the object in it that the value names."""
        found = _VALUE.match(self.value)
        assert found is not None  # callers read is_well_formed first
        names = filter(None, (found["attr"] or "").split("."))
        return functools.reduce(getattr, names, import_module(found["module"]))


class DeclaringFolder:
    """A distribution whose metadata is in a folder."""

    def __init__(self, path: str) -> None:
        self._path = path

    def read_text(self, name: str) -> str | None:
        """Return the text of a file in the folder, or None if it is not there."""
        try:
            with open(os.path.join(self._path, name), encoding="utf-8") as file:
                return file.read()
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError):
            return None

    @property
    def metadata(self) -> Any:
        """All metadata, parsed by the library."""
        from importlib.metadata import Distribution
        from pathlib import Path

        return Distribution.at(Path(self._path)).metadata


def points_in_folders(selects: Callable[[str], bool]) -> list[DeclaredPoint] | None:
    """Return the entry points of some groups, in the order in which the library finds them.

    Parameters
    ----------
    selects
        Returns whether a group is one of them.

    Returns
    -------
    list or None
        None if distributions may be elsewhere than in folders, or if a list cannot be read.
    """
    if "importlib.metadata" in sys.modules or _others_find():
        return None
    points: list[DeclaredPoint] = []
    seen: set[str] = set()
    try:
        for path in sys.path:
            for name, folder in _distributions(path or os.curdir):
                if name not in seen:  # the first one on the path counts
                    seen.add(name)
                    points += _declared_in(folder, selects)
    except (_Unusual, OSError, ValueError):
        return None
    return points


class _Unusual(Exception):
    """Something that the library has to read, or to report."""


def _others_find() -> bool:
    """Return whether other finders than that of folders and zip files know distributions."""
    finders = [x for x in sys.meta_path if getattr(x, "find_distributions", None) is not None]
    return any(getattr(x, "__name__", "") != "PathFinder" for x in finders)


def _distributions(path: str) -> Iterator[tuple[str, str]]:
    """Yield the normal names and the folders of the distributions at one place of the path."""
    try:
        names = os.listdir(path)
    except FileNotFoundError:
        return
    except NotADirectoryError:
        raise _Unusual(path) from None  # a zip file
    if path.lower().endswith(".egg"):
        raise _Unusual(path)
    for name in names:
        stem, ending = os.path.splitext(name)
        if ending.lower() in _ENDINGS:
            if ending not in _ENDINGS:
                raise _Unusual(name)
            yield _normal(stem.partition("-")[0]), os.path.join(path, name)


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower().replace("-", "_")


def _declared_in(folder: str, selects: Callable[[str], bool]) -> Iterator[DeclaredPoint]:
    distribution = DeclaringFolder(folder)
    text = distribution.read_text(_LIST)
    if not text:
        return
    lines = [line for line in map(str.strip, text.splitlines()) if line and line[0] != "#"]
    groups = [line[1:-1] for line in lines if line[0] == "[" and line[-1] == "]"]
    if not any(map(selects, groups)):
        return
    group = None
    for line in lines:
        if line[0] == "[" and line[-1] == "]":
            group = line[1:-1]
        elif group is None or "=" not in line:
            raise _Unusual(line)
        elif selects(group):
            name, _, value = line.partition("=")
            yield DeclaredPoint(name.strip(), value.strip(), group, distribution)
