"""The plugins of installed distributions, as far as these can be read.

One broken distribution must not hide the others, nor end the program.
"""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from importlib.metadata import Distribution, EntryPoint
from typing import Any

from ..base import table
from ..errors import PluginError
from .hookspecs import PROJECT
from .kinds import PluginInfo

__all__ = ["installed_plugins"]

Found = tuple[PluginInfo, Callable[[], Any]]

#: The plugins of gradtape that provide only classes; no op needs them.
LATE = ("layers", "training")
_POINTS = "entry_points.txt"


def installed_plugins() -> list[Found]:
    """Return the plugins that distributions declare, gradtape's own first, each with its loader.

    A plugin whose distribution is broken has a problem.
    """
    found: list[Found] = []
    try:
        points = list(importlib.metadata.entry_points(group=PROJECT))
    except Exception:  # a distribution has a broken file: which one, and what do the others have?
        points, found = _one_by_one()
    seen: set[tuple[str, str]] = set()
    for point in points:
        if (point.name, point.value) not in seen:  # an editable install may list itself twice
            seen.add((point.name, point.value))
            found.append((_info(point), partial(_load, point)))
    version = table.public("__version__")
    if not any(info.ours and info.version == version for info, _ in found):
        found = [(info, load) for info, load in found if not info.ours]
        found += _declared_by_the_package(version)
    for info, _ in found:
        info.late = info.ours and info.name in LATE
    # the built-in plugins come first, known by their distribution and not by name
    return sorted(found, key=lambda each: (not each[0].ours, each[0].name))


def _info(point: EntryPoint) -> PluginInfo:
    info = PluginInfo(point.name)
    if point.dist is not None:
        try:
            info.distribution, info.version = _named(point.dist)
        except Exception as error:
            info.problem = (
                f"{info} of {_place(point.dist)}: the METADATA there cannot be used ({error}); "
                "reinstall this distribution"
            )
    return info


@lru_cache
def _named(distribution: Distribution) -> tuple[str, str]:
    metadata = distribution.metadata  # each access parses it
    name, version = metadata["Name"], metadata["Version"]
    if not name or not version:
        raise PluginError("there is no name, or no version")
    return name, version


def _place(distribution: Distribution) -> str:
    """Return the folder of a distribution's metadata, if it is in one."""
    return str(getattr(distribution, "_path", "an unknown distribution"))


def _load(point: EntryPoint) -> Any:
    if EntryPoint.pattern.match(point.value) is None:
        raise PluginError(
            f"its entry point is {point.value!r}; it must be 'module' or 'module:object'"
        )
    return point.load()


def _one_by_one() -> tuple[list[EntryPoint], list[Found]]:
    """Read each distribution on its own; return entry points, and those that cannot be read."""
    points: list[EntryPoint] = []
    broken: list[Found] = []
    seen = set()
    for distribution in importlib.metadata.distributions():
        try:
            name = re.sub("[-_.]+", "-", _named(distribution)[0]).lower()
        except Exception:
            name = _place(distribution)
        if name in seen:  # the first one on the path counts
            continue
        seen.add(name)
        try:
            points += distribution.entry_points.select(group=PROJECT)
        except Exception as error:
            if _concerns_gradtape(distribution):
                info = PluginInfo(name)
                info.problem = (
                    f"plugins of {_place(distribution)}: the {_POINTS} there cannot be read "
                    f"({error}); reinstall this distribution"
                )
                broken.append((info, partial(_load, EntryPoint(name, "", PROJECT))))
    return points, broken


def _concerns_gradtape(distribution: Distribution) -> bool:
    """Return whether a broken list of entry points has those of plugins."""
    try:
        text = (distribution.read_text(_POINTS) or "").encode()
    except UnicodeDecodeError as error:
        text = error.object.replace(b"\0", b"")  # of UTF-16
    return f"[{PROJECT}]".encode() in text


def _declared_by_the_package(version: str) -> Iterator[Found]:
    """Yield the built-in plugins, as the package's own ``pyproject.toml`` declares them.

    They are needed in a checkout that is not installed, in a folder that holds only packages (many
    tools that bundle programs leave metadata out), and where the metadata is of another version.
    """
    import tomllib
    from importlib.resources import files

    try:
        text = files(table.PACKAGE).joinpath("pyproject.toml").read_text("utf-8")
    except OSError:
        info = PluginInfo(table.PACKAGE, table.PACKAGE, version)
        info.problem = (
            f"{info}: gradtape's own plugins were not found, since neither the metadata of "
            f"gradtape {version} nor its file pyproject.toml is installed: run 'pip install "
            "--force-reinstall gradtape'; for a program built by PyInstaller, pass it "
            "--collect-all gradtape and --copy-metadata gradtape"
        )
        yield info, partial(_load, EntryPoint(table.PACKAGE, "", PROJECT))
        return
    for name, value in tomllib.loads(text)["project"]["entry-points"][PROJECT].items():
        info = PluginInfo(name, table.PACKAGE, version)
        yield info, partial(_load, EntryPoint(name, value, PROJECT))
