"""Calls the hooks of plugins, remembers their results, and says what is wrong with one."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ..base.user_code import line_of, warn_user
from ..errors import PluginError
from .hooks import Hook, near_names
from .info import PluginInfo
from .settings import DISABLE, is_strict

if TYPE_CHECKING:
    from .registry import Registry

#: The hooks that return a mapping of mappings.
_NESTED = ("names", "hints", "gradients")


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
            result = _copy(function(), hook in _NESTED)
            if hook in ("late_ops", "functions") and isinstance(result, dict):
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
    place = line_of(error)
    frames = traceback.extract_tb(error.__traceback__)
    if not place and frames:
        place = f"{frames[-1].filename}:{frames[-1].lineno}"
    return f"{info}: {raised(error)}" + (f" (at {place})" if place else "")


def tell(info: PluginInfo) -> None:
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
