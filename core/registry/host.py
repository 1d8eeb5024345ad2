"""The plugins of this process: found by entry point, registered by hand, or disabled.

It is imported when the registry is first needed, because finding plugins takes time.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any, Self

from ...public import IMPORTING
from ..base import table
from ..base.lifetimes import KERNEL_CACHES
from ..base.user_code import count_as_library, user_line, warn_user
from ..errors import PluginError
from ..ops import dispatch
from .hooks import near_names, read_hooks
from .hookspecs import PROJECT
from .info import (
    ALLOW,
    DISABLE,
    MODULES,
    ORDER,
    PluginInfo,
    allowed,
    is_strict,
    listed,
    matches_any,
)
from .kinds import KINDS
from .loading import (
    Found,
    Results,
    cause,
    installed_plugins,
    loaded_by_name,
    misspelt_backends,
    raise_problems,
    warn_of_plugin,
)
from .registry import Registry


class PluginHost:
    """Holds the registry, and builds a new one when plugins are added or removed."""

    def __init__(self) -> None:
        self._registry: Registry | None = None
        self._by_hand: dict[str, Any] = {}
        self._replacing: set[str] = set()  # the names of those that may replace installed ones
        self._disabled: set[str] = set()
        self._order: list[str] | None = None
        self._discovering = False
        #: The plugin that is imported now, or whose hooks are called.
        self.running: PluginInfo | None = None
        self._warned: set[str] = set()  # the names already warned about
        self._results = Results()
        self._meant: dict[str, tuple[Any, ...]] = {}  # by all ops so far: see Meanings
        self._loaders: dict[str, Any] = {}  # of late ops, in the registry before

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
                f"{info}: {PROJECT}.{name} is the module {place!r}, which cannot be "
                f"imported: {type(error).__name__}: {error}"
            ) from error

    def register(self, plugin: Any, name: str | None, replace: bool) -> Registration:
        """Register a plugin by hand; see :func:`gradtape.register_plugin`."""
        if name is None:
            name = str(getattr(plugin, "__name__", None) or type(plugin).__name__)
        if type(name) is not str or not name:
            raise PluginError(f"a plugin's name is a non-empty string, not {name!r:.80}")
        before = self._by_hand.get(name)
        if before is not None and not replace:
            raise PluginError(
                f"a plugin called {name!r} is registered already; choose another name, call "
                f"gradtape.unregister_plugin({name!r}) first, or pass replace=True, as after "
                "importlib.reload"
            )
        self._put(plugin, name, replace)
        try:
            problem = self._problem_of(name)
        except PluginError as error:  # any problem is an error
            problem = str(error)
        if problem:
            self.unregister(name)
            if before is not None:
                self._put(before, name, replace)
            raise PluginError(problem)
        return Registration(name, plugin)

    def _problem_of(self, name: str) -> str | None:
        """Return why a plugin registered by hand cannot be used, or None."""
        found = self._discovered(quiet=name)  # its problem is raised, not warned about
        info = next(info for info in reversed(found.infos) if info.name == name)
        if info.problem == "disabled":
            where = f"gradtape.disable_plugin({name!r}, disabled=False) enables it"
            if matches_any("", name, listed(DISABLE)):
                where = f"the environment variable {DISABLE} names it"
            return f"{info}: plugins of this name are disabled; {where}"
        return info.problem or next(iter(info.clashes), None)

    def _put(self, plugin: Any, name: str, replace: bool) -> None:
        with IMPORTING:  # another thread may be looking at these
            self._by_hand[name] = plugin
            (self._replacing.add if replace else self._replacing.discard)(name)
            self._results.forget(name)
            self.forget()

    def unregister(self, name: str) -> None:
        """Remove a plugin registered by hand; see :func:`gradtape.unregister_plugin`."""
        with IMPORTING:
            if name not in self._by_hand:
                raise PluginError(f"no plugin called {name!r} was registered by hand")
            del self._by_hand[name]
            self._results.forget(name)
            self.forget()

    def end(self, name: str, plugin: Any) -> None:
        """Remove a plugin registered by hand, unless this was done, or it was replaced."""
        if self._by_hand.get(name) is plugin:
            self.unregister(name)

    def disable(self, name: str, disabled: bool) -> None:
        """Disable a plugin, or enable it again; see :func:`gradtape.disable_plugin`."""
        if name not in self._disabled:
            self._warn_unknown("disable_plugin", [name], self._candidates()[0])
        with IMPORTING:
            (self._disabled.add if disabled else self._disabled.discard)(name)
            self.forget()

    def set_order(self, names: Sequence[str]) -> None:
        """Set which plugins take precedence; see :func:`gradtape.order_plugins`."""
        if isinstance(names, str):
            raise TypeError(f"order_plugins: expected a list of names, got {names!r}")
        self._warn_unknown("order_plugins", names, self._candidates()[0])
        self._order = list(names)
        self.forget()

    def forget(self) -> None:
        """Forget the registry: plugins are discovered again on the next call."""
        with IMPORTING:
            old, self._registry = self._registry, None
            table.forget()
            dispatch.forget()
            if old is not None:
                self._meant = old.meanings.all()
                self._loaders = dict(old.late_ops)
                old.give_back()
            KERNEL_CACHES.forget()

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
            collects = gc.isenabled()
            gc.disable()  # what modules define stays: looking for garbage among it takes time
            try:
                found = self._discover()
                if is_strict():
                    raise_problems(found)
                self._registry = found
            finally:
                self._discovering = False
                if collects:
                    gc.enable()
        for info in found.infos:
            if info.problem and info.problem != "disabled" and info.name != quiet:
                warn_of_plugin(info)
        for told in misspelt_backends(found):
            warn_user(told, RuntimeWarning)
        known = [Found(info, _nothing) for info in found.infos]
        for variable in (DISABLE, ALLOW):
            self._warn_unknown(f"environment variable {variable}", listed(variable), known)
        return found

    def _discover(self) -> Registry:
        result = Registry(self._order if self._order is not None else listed(ORDER))
        loaded: list[tuple[PluginInfo, Any, Any]] = []
        candidates, notes = self._candidates()
        for info, load, hook in candidates:
            if info not in result.infos:
                result.infos.append(info)
            if info.problem:
                continue
            if hook:
                result.wait(info, hook, partial(self._late, info, load, hook, loaded))
                continue
            try:
                with self._running_plugin(info):
                    plugin = load()
                hooks = read_hooks(info, plugin)
                self._check_twin(info, plugin, loaded)
                loaded.append((info, plugin, hooks))
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # a plugin that exits must not end the program
                info.problem = cause(info, error)
        for info, plugin, hooks in sorted(loaded, key=_after_ops):
            try:
                with self._running_plugin(info):
                    provided = self._results.of(info, plugin, hooks)
                result.add(info, provided)
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                info.problem = cause(info, error)
        count_as_library(
            (_package(plugin) for info, plugin, _ in loaded if info.distribution),
            (module.partition(".")[0] for module, _ in result.functions),
        )
        self._results.keep(result.infos)
        result.in_order_of_plugins()
        result.notes, result.meanings.before = notes, self._meant
        result.meanings.loaders = self._loaders
        return result

    def _check_twin(self, info: PluginInfo, plugin: Any, loaded: list[Any]) -> None:
        """Raise if a plugin is registered already, unless it replaces that."""
        twin = next((each for each in loaded if each[1] is plugin), None)
        if twin is None:
            return
        if not info.distribution and info.name in self._replacing:
            twin[0].problem, twin[0].notes = "disabled", [f"{info} was registered in its place"]
            loaded.remove(twin)
            return
        told = f"it is the same object as {twin[0]}; remove one of the two"
        if not info.distribution:
            told += "; after importlib.reload, call gradtape.register_plugin(..., replace=True)"
        raise PluginError(told)

    @contextmanager
    def _running_plugin(self, info: PluginInfo) -> Iterator[None]:
        before, self.running = self.running, info
        try:
            yield
        finally:
            self.running = before

    def _late(
        self, info: PluginInfo, load: Callable[[], Any], hook: str, loaded: list[Any]
    ) -> tuple[Any, int] | None:
        """Return what one hook of a plugin provides, now that it is needed, and its rank."""
        try:
            with self._running_plugin(info):
                plugin = load()
                if any(plugin is each for _, each, _ in loaded):
                    return None  # it was declared for all hooks too, and these have been called
                hooks = read_hooks(info, plugin)
                if hook not in hooks:
                    raise PluginError(
                        f"it is declared in the entry-point group '{PROJECT}.{hook}', but has no "
                        f"hook gradtape_{hook}"
                    )
                return self._results.of(info, plugin, {hook: hooks[hook]})[hook]
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            info.problem = cause(info, error)
            warn_of_plugin(info)
            return None

    def _candidates(self) -> tuple[list[Found], list[str]]:
        """Return all plugins, each with its loader; a disabled one has a problem. And notes."""
        found, notes = installed_plugins([kind.hook for kind in KINDS if kind.waits])
        only = allowed()
        for info, _, _ in found:
            if only is not None and not matches_any(info.distribution, info.name, only):
                info.problem, info.notes = "disabled", [f"{ALLOW} does not name it"]
        found += [loaded_by_name(text) for text in listed(MODULES)]
        found += [Found(PluginInfo(name), partial(_same, it)) for name, it in self._by_hand.items()]
        left_out = [*self._disabled, *listed(DISABLE)]
        infos = {id(each.info): each.info for each in found}.values()
        names = Counter(info.name for info in infos)
        for info in infos:
            info.shares_name = names[info.name] > 1
            if matches_any(info.distribution, info.name, left_out):
                info.problem = "disabled"
        return found, notes

    def _warn_unknown(self, asker: str, names: Iterable[str], known: Iterable[Found]) -> None:
        """Warn, once each, of names that no plugin has."""
        infos = [found.info for found in known]
        for name in sorted({*names} - self._warned):
            if any(matches_any(info.distribution, info.name, [name]) for info in infos):
                continue
            self._warned.add(name)
            near = near_names(name, dict.fromkeys(info.name for info in infos))
            warn_user(
                f"{asker}: there is no plugin {name!r}{near}; 'gradtape plugins' lists all plugins",
                RuntimeWarning,
            )


class Registration:
    """A plugin registered by hand; :func:`gradtape.register_plugin` returns it.

    As a context manager, it removes the plugin at the end of the block, unless the plugin was
    removed or replaced before.

    Parameters
    ----------
    name
        The plugin's name.
    plugin
        The plugin.
    """

    def __init__(self, name: str, plugin: Any) -> None:
        self.name, self.plugin = name, plugin

    def unregister(self) -> None:
        """Remove the plugin, unless it was removed or replaced before."""
        HOST.end(self.name, self.plugin)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.unregister()

    def __repr__(self) -> str:
        return f"<plugin {self.name!r}, registered by hand>"


def _same(plugin: Any) -> Any:
    return plugin


def _nothing() -> None:
    """Load nothing: a plugin is only named."""


def _package(plugin: Any) -> str:
    """Return the package of a plugin's code."""
    module = plugin.__name__ if isinstance(plugin, ModuleType) else type(plugin).__module__
    return str(module).partition(".")[0]


def _after_ops(loaded: tuple[PluginInfo, Any, Any]) -> tuple[bool, bool]:
    """Sort plugins with rules and kernels, which may be for others' ops, after those with ops."""
    hooks = loaded[2]
    return (
        not ("ops" in hooks or "late_ops" in hooks),
        any(kind.for_ops and kind.hook in hooks for kind in KINDS if kind.name != "op"),
    )


# -- what programs call ----------------------------------------------------------------------------


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


def register_plugin(plugin: Any, name: str | None = None, *, replace: bool = False) -> Registration:
    """Register a plugin by hand: a module or object with hook implementations.

    It is registered for the whole process, in all threads, also in a ``with`` block.

    Parameters
    ----------
    plugin
        The object that has the functions marked with :func:`gradtape.hookimpl`.
    name
        A name for messages and for :func:`gradtape.unregister_plugin`. By default the module's
        name, or that of the object's class.
    replace
        Whether to replace a plugin of this name, or an installed plugin that is the same module.
        Call it so after ``importlib.reload(module)``. False by default.

    Returns
    -------
    Registration
        ``with gt.register_plugin(...):`` removes the plugin at the end of the block, and
        ``unregister()`` removes it at once.

    Raises
    ------
    PluginError
        If it clashes with another plugin or cannot be used. It is then not registered, and one that
        it should have replaced remains.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from gradtape.plugin import Op
    >>> twice = Op("example::twice", lambda xp, x: 2 * x, gradients={"x": lambda g: 2 * g})
    >>> plugin = SimpleNamespace(gradtape_ops=gt.hookimpl(lambda: [twice]))
    >>> with gt.register_plugin(plugin, "example"):
    ...     gt.grad(twice)(1.0).item()
    2.0
    """
    return HOST.register(plugin, name, replace)


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
    >>> plugin = SimpleNamespace(gradtape_ops=gt.hookimpl(lambda: []))
    >>> registered = gt.register_plugin(plugin, "example")
    >>> gt.unregister_plugin("example")
    >>> any(info.name == "example" for info in gt.registry().plugins)
    False
    """
    HOST.unregister(name)


def disable_plugin(name: str, disabled: bool = True) -> None:
    """Disable the plugin called ``name``, or enable it again.

    The environment variable ``GRADTAPE_DISABLE_PLUGINS``, a comma-separated list of names, does the
    same when the process starts. ``GRADTAPE_PLUGINS`` is the opposite: of all installed plugins,
    only those that it lists, and gradtape's own, are used.

    Parameters
    ----------
    name
        The plugin's name, as ``gradtape plugins`` lists it, or ``"distribution:name"``; ``*``
        stands for any characters, as in ``"acme:*"``. An unknown name causes a warning.
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
        Names of plugins, or ``"distribution:name"``, those that win first. An unknown name causes a
        warning. An empty list restores the order that plugins ask for.

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
