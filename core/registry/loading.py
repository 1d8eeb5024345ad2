"""Finds plugins, calls their hooks, remembers the results, and says what is wrong with one.

One broken distribution must not hide the others, nor end the program.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ..base import table
from ..base.user_code import line_of, warn_user
from ..errors import PluginError
from .entry_points import DeclaredPoint, DeclaringFolder, points_in_folders
from .hooks import Hook, near_names
from .hookspecs import PROJECT
from .info import DISABLE, PluginInfo, is_strict
from .kinds import KINDS

if TYPE_CHECKING:
    from importlib.metadata import Distribution, EntryPoint

    from .registry import Registry

    AnyPoint = EntryPoint | DeclaredPoint


# -- finding ---------------------------------------------------------------------------------------


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

    def selects(group: str) -> bool:
        return group in groups or _is_misspelt_group(group)

    points: Sequence[AnyPoint] | None = points_in_folders(selects)
    if points is None:
        from importlib import metadata

        try:
            every = metadata.entry_points()
            meant = [group for group in every.groups if selects(group)]
            points = [x for group in meant for x in every.select(group=group)]
        except Exception:  # a distribution has a broken file: which, and what do others have?
            points, broken = _one_by_one()
    found, notes = _plugins_of(points, groups)
    version = table.public_package().__version__
    if not any(_is_own(each) and each.info.version == version for each in found):
        found = [each for each in found if not _is_own(each)]
        found += _declared_by_the_package(version, groups)
    # the built-in plugins come first, known by their distribution and not by name
    return sorted([*broken, *found], key=lambda each: (not _is_own(each), each.info.name)), notes


def _is_own(found: Found) -> bool:
    """Return whether the package itself declares a plugin."""
    return found.info.distribution == table.PACKAGE


def _plugins_of(
    points: Iterable[AnyPoint], groups: Mapping[str, str]
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
        elif _is_misspelt_group(point.group):
            notes.append(
                f"{_info(point)}: the entry-point group {point.group!r} is none of gradtape's"
                f"{near_names(point.group, groups) or f'; use {PROJECT!r}'}"
            )
    return found, notes


@lru_cache
def _is_misspelt_group(group: str) -> bool:
    """Return whether a group seems to be one of gradtape's, misspelt."""
    head = re.split("[^a-z]", group.lower())[0]
    if head[:2] + head[-2:] == PROJECT[:2] + PROJECT[-2:]:
        return True
    # names of other lengths are not near: "gui" is a usual group, and comparing imports difflib
    like = head[:1] == PROJECT[0] and abs(len(head) - len(PROJECT)) < 4
    return like and bool(near_names(head, [PROJECT], 0.8))


def _info(point: AnyPoint) -> PluginInfo:
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
def _named(distribution: Distribution | DeclaringFolder) -> tuple[str, str]:
    text = distribution.read_text("METADATA") or distribution.read_text("PKG-INFO")
    head = (text or "").partition("\n\n")[0]
    name, version = (_header(field, head) for field in ("Name", "Version"))
    if not name or not version:  # in another form: the library parses all of it, which is slow
        metadata = distribution.metadata
        # without a field, Python gives None, and the package importlib_metadata an error
        name, version = [
            metadata[x] if x in metadata else ""  # noqa: SIM401
            for x in ("Name", "Version")
        ]
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
        point = DeclaredPoint(text, text, PROJECT)
        try:
            return _load(point)
        except ModuleNotFoundError as error:
            if error.name != point.module:
                raise
            raise PluginError(
                f"there is no module {point.module!r}: install it, or name its folder in PYTHONPATH"
            ) from None

    return Found(PluginInfo(text), load)


def _place(distribution: Distribution | DeclaringFolder) -> str:
    """Return the folder of a distribution's metadata, if it is in one."""
    return str(getattr(distribution, "_path", "an unknown distribution"))


def _load(point: AnyPoint) -> Any:
    if not DeclaredPoint(point.name, point.value, point.group).is_well_formed:
        raise PluginError(
            f"its entry point is {point.value!r}; it must be 'module' or 'module:object'"
        )
    return point.load()


def _one_by_one() -> tuple[list[EntryPoint], list[Found]]:
    """Read each distribution on its own; return entry points, and those that cannot be read."""
    from importlib import metadata

    points: list[EntryPoint] = []
    broken: list[Found] = []
    seen = set()
    for distribution in metadata.distributions():
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
                broken.append(Found(info, partial(_load, DeclaredPoint(name, "", PROJECT))))
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
        yield Found(info, partial(_load, DeclaredPoint(table.PACKAGE, "", PROJECT)))
        return
    infos: dict[str, PluginInfo] = {}
    declared = tomllib.loads(text)["project"]["entry-points"]
    for group, hook in groups.items():
        for name, value in declared.get(group, {}).items():
            package = table.PACKAGE
            info = infos.setdefault(name, PluginInfo(name, package, version, package))
            yield Found(info, partial(_load, DeclaredPoint(name, value, group)), hook)


# -- calling ---------------------------------------------------------------------------------------


_KINDS = {kind.hook: kind for kind in KINDS}


class Results:
    """What the hooks of plugins returned.

    While a plugin stays registered, a hook is called once, so that a function that it makes remains
    the same one when other plugins come and go.
    """

    def __init__(self) -> None:
        # by distribution, name and hook: the plugin, its function, and what this returned
        self._returned: dict[tuple[str, str, str], tuple[Any, Any, Any]] = {}
        # by plugin, hook and name: a new registry has the ops that the old one had loaded
        self._loaders: dict[tuple[int, str, str], _Loader] = {}

    def of(
        self, info: PluginInfo, plugin: Any, hooks: Mapping[str, Hook]
    ) -> dict[str, tuple[Any, int]]:
        """Return the results of a plugin's hooks, by hook, with their ranks.

        Parameters
        ----------
        info, plugin, hooks
            What is known of the plugin, itself, and its hooks.
        """
        return {
            name: (self._result(info, plugin, name, hook.function), hook.rank)
            for name, hook in hooks.items()
        }

    def keep(self, infos: list[PluginInfo]) -> None:
        """Forget the results of all plugins but these."""
        here = {(info.distribution, info.name) for info in infos if info.problem is None}
        self._returned = {key: x for key, x in self._returned.items() if key[:2] in here}

    def forget(self, name: str) -> None:
        """Forget the results of a plugin that was registered by hand."""
        self._returned = {key: x for key, x in self._returned.items() if key[:2] != ("", name)}

    def _result(self, info: PluginInfo, plugin: Any, hook: str, function: Any) -> Any:
        key = info.distribution, info.name, hook
        known = self._returned.get(key)
        if known is None or known[0] is not plugin or known[1] != function:
            result = _copy(function(), _KINDS[hook].nested)
            if _KINDS[hook].loads and isinstance(result, dict):
                result = {
                    name: self._loader(plugin, hook, name, load) if callable(load) else load
                    for name, load in result.items()
                }
            known = self._returned[key] = plugin, function, result
        return known[2]

    def _loader(self, plugin: Any, hook: str, name: str, load: Callable[[], Any]) -> _Loader:
        return self._loaders.setdefault((id(plugin), hook, name), _Loader(plugin, load))


class _Loader:
    """A plugin's function that loads ops or a table, and what it has returned.

    It holds the plugin, so that no other plugin gets the same id.
    """

    def __init__(self, plugin: Any, load: Callable[[], Any]) -> None:
        self.plugin, self.load = plugin, load
        self.result: Any = None

    def __call__(self) -> Any:
        """Return the result of the first call that succeeded."""
        if self.result is None:
            result = self.load()
            self.result = list(result) if isinstance(result, Iterator) else result
        return self.result


def _copy(result: Any, nested: bool) -> Any:
    """Return what a hook returned, as it is now: computed if it is lazy, and no longer changed."""
    if isinstance(result, (Iterator, list)):
        return list(result)
    if isinstance(result, Mapping):
        return {name: _copy(x, False) if nested else x for name, x in result.items()}
    return result


# -- problems --------------------------------------------------------------------------------------


def raised(error: BaseException) -> str:
    """Return the class and the text of an error, which may fail to make one.

    Parameters
    ----------
    error
        What a plugin raised.
    """
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # its __str__
        return type(error).__name__


def cause(info: PluginInfo, error: BaseException) -> str:
    """Return why a plugin is not in use, with the place of an error.

    Parameters
    ----------
    info, error
        The plugin, and what it raised.
    """
    if isinstance(error, PluginError):  # its message says where
        told = str(error)
        return told if told.startswith(str(info)) else f"{info}: {told}"
    import traceback  # for errors only

    place = line_of(error)
    frames = traceback.extract_tb(error.__traceback__)
    if not place and frames:
        place = f"{frames[-1].filename}:{frames[-1].lineno}"
    return f"{info}: {raised(error)}" + (f" (at {place})" if place else "")


def warn_of_plugin(info: PluginInfo) -> None:
    """Warn of a plugin that cannot be used; raise if the user wants problems to be errors.

    Parameters
    ----------
    info
        The plugin.
    """
    if is_strict():
        raise PluginError(str(info.problem))
    told = f"not in use: {info.problem}; or disable it with {DISABLE}={info.choice}"
    warn_user(told, RuntimeWarning)


def misspelt_backends(found: Registry) -> list[str]:
    """Return messages about kernels for backends that no plugin provides, but nearly one does.

    Parameters
    ----------
    found
        The registry, with all plugins that are imported at once.
    """
    told = []
    for info in found.infos:
        for name in sorted({backend for _, backend in info.kernels} - found.backends.keys()):
            near = near_names(name, found.backends, cutoff=0.75)  # otherwise it may be disabled
            if near:
                text = f"{info} has kernels for the backend {name!r}, which no plugin provides"
                told.append(text + near)
    return told


def raise_problems(found: Registry) -> None:
    """Raise if anything is wrong with a plugin, as the user may want it.

    Parameters
    ----------
    found
        The registry, with all plugins that are imported at once.

    Raises
    ------
    PluginError
        The message lists all problems, clashes and notes.
    """
    problems = [
        *(info.problem for info in found.infos if info.problem not in (None, "disabled")),
        *dict.fromkeys(told for info in found.infos for told in info.clashes),
        *found.notes,
        *misspelt_backends(found),
    ]
    if problems:
        raise PluginError("; ".join(map(str, problems)))
