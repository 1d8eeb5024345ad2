"""Calls the hooks of plugins, remembers their results, and says what is wrong with one."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..base.unknown import line_of, warn_user
from ..errors import PluginError
from .hooks import Hook
from .info import PluginInfo
from .settings import DISABLE, is_strict

__all__ = ["Results", "cause", "tell"]


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
            result = function()
            if isinstance(result, Iterator):
                result = list(result)
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
    return f"{info}: {type(error).__name__}: {error}" + (f" (at {place})" if place else "")


def tell(info: PluginInfo) -> None:
    """Warn of a plugin that cannot be used; raise if the user wants problems to be errors.

    Parameters
    ----------
    info
        The plugin.
    """
    if is_strict():
        raise PluginError(str(info.problem))
    told = f"not in use: {info.problem}; or disable it with {DISABLE}={info.name}"
    warn_user(told, RuntimeWarning)
