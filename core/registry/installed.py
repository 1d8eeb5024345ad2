"""The plugins of installed distributions, as far as these can be read.

One broken distribution must not hide the others, nor end the program.
"""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import lru_cache, partial
from importlib.metadata import Distribution, EntryPoint
from typing import Any, NamedTuple

from ..base import table
from ..errors import PluginError
from .hooks import near_names
from .hookspecs import PROJECT
from .info import PluginInfo


class Found(NamedTuple):
    """A plugin that is declared by a distribution.

    Attributes
    ----------
    info, load
        What is known of it, and the function that imports it.
    hook
        Without ``gradtape_``, the hook for which it is declared, by the group ``gradtape.<hook>``:
        it is imported when what this hook provides is first needed. Empty for the group
        ``gradtape``: it is imported at once.
    """

    info: PluginInfo
    load: Callable[[], Any]
    hook: str = ""


_POINTS = "entry_points.txt"


def installed_plugins(hooks: Collection[str]) -> tuple[list[Found], list[str]]:
    """Return the plugins that distributions declare, gradtape's own first.

    A plugin whose distribution is broken has a problem.

    Parameters
    ----------
    hooks
        The hooks, without ``gradtape_``, for which a plugin may be declared.

    Returns
    -------
    found : list of Found
        One for each entry point; those of one distribution and name share ``info``.
    notes : list of str
        Entry-point groups that seem to be misspelt.
    """
    broken: list[Found] = []
    groups = {PROJECT: "", **{f"{PROJECT}.{hook}": hook for hook in hooks}}
    try:
        every = importlib.metadata.entry_points()
        meant = [group for group in every.groups if group in groups or _seems_meant(group)]
        points = [x for group in meant for x in every.select(group=group)]
    except Exception:  # a distribution has a broken file: which one, and what do the others have?
        points, broken = _one_by_one()
    found, notes = _plugins_of(points, groups)
    version = table.face().__version__
    if not any(_is_own(each) and each.info.version == version for each in found):
        found = [each for each in found if not _is_own(each)]
        found += _declared_by_the_package(version, groups)
    # the built-in plugins come first, known by their distribution and not by name
    return sorted([*broken, *found], key=lambda each: (not _is_own(each), each.info.name)), notes


def _is_own(found: Found) -> bool:
    """Return whether the package itself declares a plugin."""
    return found.info.distribution == table.PACKAGE


def _plugins_of(
    points: Iterable[EntryPoint], groups: Mapping[str, str]
) -> tuple[list[Found], list[str]]:
    """Return the plugins among entry points, and notes on groups that seem to be misspelt."""
    infos: dict[tuple[str, str], PluginInfo] = {}
    seen: set[tuple[str, str, str]] = set()
    found, notes = [], []
    for point in points:
        key = point.group, point.name, point.value
        if key in seen:  # an editable install may list itself twice
            continue
        seen.add(key)
        if point.group in groups:
            made = _info(point)
            info = infos.setdefault((made.distribution, made.name), made)
            found.append(Found(info, partial(_load, point), groups[point.group]))
        elif _seems_meant(point.group):
            notes.append(
                f"{_info(point)}: the entry-point group {point.group!r} is none of gradtape's"
                f"{near_names(point.group, groups) or f'; use {PROJECT!r}'}"
            )
    return found, notes


@lru_cache
def _seems_meant(group: str) -> bool:
    """Return whether a group seems to be one of gradtape's, misspelt."""
    head = re.split("[^a-z]", group.lower())[0]
    return head[:2] + head[-2:] == PROJECT[:2] + PROJECT[-2:] or bool(
        head[:1] == PROJECT[0] and near_names(head, [PROJECT], 0.8)
    )


def _info(point: EntryPoint) -> PluginInfo:
    info = PluginInfo(point.name, package=re.split("[.:]", point.value.strip())[0])
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
    head = (distribution.read_text("METADATA") or "").partition("\n\n")[0]
    name, version = (_header(field, head) for field in ("Name", "Version"))
    if not name or not version:  # in another form: the library parses all of it, which is slow
        metadata = distribution.metadata
        name, version = metadata["Name"], metadata["Version"]
    if not name or not version:
        raise PluginError("there is no name, or no version")
    return name, version


def _header(field: str, head: str) -> str:
    found = re.search(rf"^{field}: *(\S+) *$", head, re.MULTILINE)
    return found[1] if found else ""


def loaded_by_name(text: str) -> Found:
    """Return a plugin that a user names by its module, or as ``module:object``.

    Parameters
    ----------
    text
        What the user named; also the plugin's name.
    """

    def load() -> Any:
        point = EntryPoint(text, text, PROJECT)
        try:
            return _load(point)
        except ModuleNotFoundError as error:
            if error.name != point.module:
                raise
            raise PluginError(
                f"there is no module {point.module!r}: install it, or name its folder in PYTHONPATH"
            ) from None

    return Found(PluginInfo(text), load)


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
            points += distribution.entry_points
        except Exception as error:
            if _concerns_gradtape(distribution):
                info = PluginInfo(name)
                info.problem = (
                    f"plugins of {_place(distribution)}: the {_POINTS} there cannot be read "
                    f"({error}); reinstall this distribution"
                )
                broken.append(Found(info, partial(_load, EntryPoint(name, "", PROJECT))))
    return points, broken


def _concerns_gradtape(distribution: Distribution) -> bool:
    """Return whether a broken list of entry points has those of plugins."""
    try:
        text = (distribution.read_text(_POINTS) or "").encode()
    except UnicodeDecodeError as error:
        text = error.object.replace(b"\0", b"")  # of UTF-16
    return f"[{PROJECT}".encode() in text


def _declared_by_the_package(version: str, groups: Mapping[str, str]) -> Iterator[Found]:
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
        yield Found(info, partial(_load, EntryPoint(table.PACKAGE, "", PROJECT)))
        return
    infos: dict[str, PluginInfo] = {}
    declared = tomllib.loads(text)["project"]["entry-points"]
    for group, hook in groups.items():
        for name, value in declared.get(group, {}).items():
            package = table.PACKAGE
            info = infos.setdefault(name, PluginInfo(name, package, version, package))
            yield Found(info, partial(_load, EntryPoint(name, value, group)), hook)
