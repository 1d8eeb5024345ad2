"""The plugins of this process: found by entry point, registered by hand, or disabled.

It is imported when the registry is first needed, because finding plugins takes time.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any

import pluggy

from ...public import IMPORTING
from ..base import table
from ..base.unknown import line_of, user_line, warn_user
from ..errors import PluginError
from ..ops import backend as backends
from . import hookspecs
from .hooks import check_hooks, near_names, rank_of
from .info import ORDER, PluginInfo
from .installed import Found, installed_plugins
from .kinds import DISABLE, KINDS
from .registry import Registry

__all__ = [
    "PluginHost",
    "disable_plugin",
    "order_plugins",
    "register_plugin",
    "registry",
    "unregister_plugin",
]


class PluginHost:
    """Holds the registry, and builds a new one when plugins are added or removed."""

    def __init__(self) -> None:
        self._registry: Registry | None = None
        self._by_hand: dict[str, Any] = {}
        self._disabled: set[str] = set()
        self._order: list[str] | None = None
        self._discovering = False
        self._told: set[str] = set()  # the names already warned about
        # by plugin, hook and name: a new registry has the ops that the old one had loaded
        self._loaders: dict[tuple[int, str, str], _Loader] = {}

    def registry(self) -> Registry:
        """Return the registry; see :func:`registry`."""
        return self._registry or self._discovered()

    def known_namespaces(self) -> Collection[str]:
        """Return the names of modules under the package that are known without a search."""
        return () if self._registry is None else self._registry.tables["namespaces"]

    def namespace(self, name: str) -> ModuleType | None:
        """Return the module that a plugin has under the package, or ``None``."""
        if self._discovering:  # a plugin that is imported asks for a name that does not exist
            return None
        found = self.registry()
        place = found.namespaces.get(name)
        if place is None:
            found.refuse_clash("namespace", name)
            return None
        if isinstance(place, ModuleType):
            return place
        try:
            return import_module(place)
        except Exception as error:
            info = found.owner("namespace", name)
            raise PluginError(
                f"{info}: {hookspecs.PROJECT}.{name} is the module {place!r}, which cannot be "
                f"imported: {type(error).__name__}: {error}"
            ) from error

    def register(self, plugin: Any, name: str) -> None:
        """Register a plugin by hand; see :func:`register_plugin`."""
        if type(name) is not str or not name:
            raise PluginError(f"a plugin's name is a non-empty string, not {name!r:.80}")
        if name in self._by_hand:
            raise PluginError(
                f"a plugin called {name!r} is registered already; choose another name, or call "
                f"gradtape.unregister_plugin({name!r}) first"
            )
        self._by_hand[name] = plugin
        self.forget()
        found = self._discovered(quiet=name)  # its problem is raised below, not warned about
        info = next(info for info in reversed(found.infos) if info.name == name)
        problem = info.problem or next(iter(info.clashes), None)
        if problem == "disabled":
            where = f"gradtape.disable_plugin({name!r}, disabled=False) enables it"
            if name in _disabled_by_environment():
                where = f"the environment variable {DISABLE} names it"
            problem = f"{info}: plugins of this name are disabled; {where}"
        if problem:
            self.unregister(name)
            raise PluginError(problem)

    def unregister(self, name: str) -> None:
        """Remove a plugin registered by hand; see :func:`unregister_plugin`."""
        if name not in self._by_hand:
            raise PluginError(f"no plugin called {name!r} was registered by hand")
        del self._by_hand[name]
        self.forget()

    def disable(self, name: str, disabled: bool) -> None:
        """Disable a plugin, or enable it again; see :func:`disable_plugin`."""
        if name not in self._disabled:
            known = [each.info.name for each in self._candidates()[0]]
            if name not in known:
                self._warn_unknown("disable_plugin", name, known)
        (self._disabled.add if disabled else self._disabled.discard)(name)
        self.forget()

    def set_order(self, names: Sequence[str]) -> None:
        """Set which plugins take precedence; see :func:`order_plugins`."""
        if isinstance(names, str):
            raise TypeError(f"order_plugins: expected a list of names, got {names!r}")
        known = [each.info.name for each in self._candidates()[0]]
        for name in names:
            if name not in known:
                self._warn_unknown("order_plugins", name, known)
        self._order = list(names)
        self.forget()

    def forget(self) -> None:
        """Forget the registry: plugins are discovered again on the next call."""
        with IMPORTING:
            old, self._registry = self._registry, None
            table.forget()
            backends.forget()
            if old is not None:
                old.give_back()

    def _discovered(self, quiet: str = "") -> Registry:
        """Discover plugins if necessary; warn about broken ones, except for ``quiet``."""
        with IMPORTING:
            if self._registry is not None:
                return self._registry
            if self._discovering:
                raise PluginError(
                    f"{user_line()}: a plugin uses ops or the registry while plugins are still "
                    "being found, when it is imported or in a hook; move this code into its ops "
                    "and classes"
                )
            self._discovering = True
            try:
                found = self._registry = self._discover()
            finally:
                self._discovering = False
        for info in found.infos:
            problem = info.problem and info.problem != "disabled"
            if problem and info.name != quiet:
                _tell(info)
            for name in sorted({backend for _, backend in info.kernels} - found.backends.keys()):
                near = near_names(name, found.backends, cutoff=0.75)  # otherwise it may be disabled
                if near:
                    told = f"{info} has kernels for the backend {name!r}, which no plugin provides"
                    warn_user(told + near, RuntimeWarning)
        known = [info.name for info in found.infos]
        for name in sorted(_disabled_by_environment().difference(known)):
            self._warn_unknown(f"environment variable {DISABLE}", name, known)
        return found

    def _discover(self) -> Registry:
        result = Registry(self._order if self._order is not None else _listed(ORDER))
        manager = pluggy.PluginManager(hookspecs.PROJECT)
        manager.add_hookspecs(hookspecs)
        loaded: list[tuple[PluginInfo, Any]] = []
        candidates, notes = self._candidates()
        for info, load, hook in candidates:
            if info not in result.infos:
                result.infos.append(info)
            if info.problem:
                continue
            if hook:
                result.wait(info, hook, partial(self._late, info, load, hook))
                continue
            try:
                plugin = load()
                _look_at(info, plugin)
                twin = next((other for other, known in loaded if known is plugin), None)
                if twin is not None:
                    raise PluginError(f"it is the same object as {twin}; remove one of the two")
                manager.register(plugin, name=f"{info.distribution}:{info.name}")
                loaded.append((info, plugin))
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # a plugin that exits must not end the program
                info.problem = _cause(info, error)
        loaded.sort(key=_after_ops)
        for info, plugin in loaded:
            try:
                result.add(info, self._provided(manager, plugin))
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                info.problem = _cause(info, error)
        result.notes = notes
        return result

    def _late(self, info: PluginInfo, load: Callable[[], Any], hook: str) -> tuple[Any, int] | None:
        """Return what one hook of a plugin provides, now that it is needed, and its rank."""
        try:
            plugin = load()
            _look_at(info, plugin)
            manager = pluggy.PluginManager(hookspecs.PROJECT)
            manager.add_hookspecs(hookspecs)
            manager.register(plugin)
            found = self._provided(manager, plugin, hook).get(hook)
            if found is None:
                raise PluginError(
                    f"it is declared in the entry-point group '{hookspecs.PROJECT}.{hook}', but "
                    f"has no hook gradtape_{hook}"
                )
            return found
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            info.problem = _cause(info, error)
            _tell(info)
            return None

    def _provided(
        self, manager: pluggy.PluginManager, plugin: Any, only: str = ""
    ) -> dict[str, tuple[Any, int]]:
        """Return the results of one plugin's hooks, or ``only`` one, by hook, with their ranks."""
        provided = {
            kind.hook: implementation.function()
            for kind in KINDS
            if only in ("", kind.hook)
            for implementation in getattr(manager.hook, f"gradtape_{kind.hook}").get_hookimpls()
            if implementation.plugin is plugin
        }
        for hook in ("late_ops", "functions"):
            loads = provided.get(hook)
            if isinstance(loads, dict):
                provided[hook] = {
                    name: self._loaders.setdefault((id(plugin), hook, name), _Loader(plugin, load))
                    if callable(load)
                    else load
                    for name, load in loads.items()
                }
        return {hook: (result, rank_of(plugin, hook)) for hook, result in provided.items()}

    def _candidates(self) -> tuple[list[Found], list[str]]:
        """Return all plugins, each with its loader; a disabled one has a problem. And notes."""
        found, notes = installed_plugins([kind.hook for kind in KINDS if kind.waits])
        found += [Found(PluginInfo(name), partial(_same, it)) for name, it in self._by_hand.items()]
        left_out = self._disabled | _disabled_by_environment()
        for info, _, _ in found:
            if info.name in left_out:
                info.problem = "disabled"
        return found, notes

    def _warn_unknown(self, asker: str, name: str, known: Iterable[str]) -> None:
        """Warn, once, that a plugin to disable does not exist."""
        if name not in self._told:
            self._told.add(name)
            warn_user(
                f"{asker}: there is no plugin {name!r}{near_names(name, known)}; 'gradtape "
                "plugins' lists all plugins",
                RuntimeWarning,
            )


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


def _listed(variable: str) -> list[str]:
    """Return the names in an environment variable."""
    return [name.strip() for name in os.environ.get(variable, "").split(",") if name.strip()]


def _disabled_by_environment() -> set[str]:
    return set(_listed(DISABLE))


def _look_at(info: PluginInfo, plugin: Any) -> None:
    """Check a plugin's hooks, and note what it says of itself."""
    info.notes = check_hooks(plugin)


def _tell(info: PluginInfo) -> None:
    """Warn of a plugin that cannot be used."""
    told = f"not in use: {info.problem}"
    if not info.ours:
        told += f"; or disable it with {DISABLE}={info.name}"
    warn_user(told, RuntimeWarning)


def _same(plugin: Any) -> Any:
    return plugin


def _after_ops(loaded: tuple[PluginInfo, Any]) -> tuple[bool, bool, bool]:
    """Sort plugins with rules and kernels, which may be for others' ops, after those with ops.

    gradtape's own plugins come first, so that a clash is reported for the other plugin.
    """
    info, plugin = loaded
    has = partial(hasattr, plugin)
    rules = has("gradtape_gradients") or has("gradtape_kernels")
    ops = has("gradtape_ops") or has("gradtape_late_ops")
    return not info.ours, not ops, rules


def _cause(info: PluginInfo, error: BaseException) -> str:
    if isinstance(error, PluginError):  # its message says where
        told = str(error)
        return told if told.startswith(str(info)) else f"{info}: {told}"
    place = line_of(error)
    if not place and info.ours:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{frame.filename}:{frame.lineno}"
    return f"{info}: {type(error).__name__}: {error}" + (f" (at {place})" if place else "")


#: The plugin host of this process.
HOST = PluginHost()


def registry() -> Registry:
    """Return the registry; plugins are discovered on the first call.

    Returns
    -------
    Registry
        Everything that the plugins provide: ``ops``, ``backends``, ``modules`` and more, by name.

    Examples
    --------
    >>> "matmul" in gt.registry().ops
    True
    >>> str(gt.registry().owner("op", "matmul")).startswith("plugin 'ops' (gradtape")
    True
    """
    return HOST.registry()


def register_plugin(plugin: Any, name: str) -> None:
    """Register a plugin by hand: a module or object with hook implementations.

    Parameters
    ----------
    plugin
        The object that has the functions marked with :func:`gradtape.hookimpl`.
    name
        A name for messages and for :func:`gradtape.unregister_plugin`.

    Raises
    ------
    PluginError
        If it clashes with another plugin or cannot be used; it is then not registered.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from gradtape.core.extend import Op
    >>> twice = Op("example::twice", lambda xp, x: 2 * x, gradients={"x": lambda g: 2 * g})
    >>> plugin = SimpleNamespace(gradtape_ops=gt.hookimpl(lambda: [twice]))
    >>> gt.register_plugin(plugin, "example")
    >>> gt.grad(twice)(1.0).item()
    2.0
    >>> gt.unregister_plugin("example")
    """
    HOST.register(plugin, name)


def unregister_plugin(name: str) -> None:
    """Remove a plugin registered by hand.

    Parameters
    ----------
    name
        The name under which it was registered.

    Raises
    ------
    PluginError
        If no plugin of that name was registered by hand.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> gt.register_plugin(SimpleNamespace(gradtape_ops=gt.hookimpl(lambda: [])), "example")
    >>> gt.unregister_plugin("example")
    >>> any(info.name == "example" for info in gt.registry().plugins)
    False
    """
    HOST.unregister(name)


def disable_plugin(name: str, disabled: bool = True) -> None:
    """Disable the plugin called ``name``, or enable it again.

    The environment variable ``GRADTAPE_DISABLE_PLUGINS``, a comma-separated list of names, does the
    same when the process starts.

    Parameters
    ----------
    name
        The plugin's name, as ``gradtape plugins`` lists it; an unknown name causes a warning.
    disabled
        False enables it again.

    Examples
    --------
    >>> gt.disable_plugin("cupy")
    >>> "cupy" in gt.registry().backends
    False
    >>> gt.disable_plugin("cupy", disabled=False)
    """
    HOST.disable(name, disabled)


def order_plugins(names: Sequence[str]) -> None:
    """Say which plugins take precedence if several provide the same kernel, gradient or name.

    The environment variable ``GRADTAPE_PLUGINS_ORDER``, a comma-separated list of names, does the
    same when the process starts. Plugins that are not listed follow, as they ask for: those with
    ``hookimpl(tryfirst=True)``, then those without a wish, then those with ``trylast=True``, which
    gradtape's own have.

    Parameters
    ----------
    names
        Names of plugins, as ``gradtape plugins`` lists them, those that win first. An unknown name
        causes a warning. An empty list restores the order that plugins ask for.

    Raises
    ------
    TypeError
        If ``names`` is one text.

    Examples
    --------
    >>> gt.order_plugins(["numpy"])  # no other plugin replaces its kernels
    >>> gt.order_plugins([])
    """
    HOST.set_order(names)
