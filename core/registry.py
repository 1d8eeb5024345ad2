"""The registry: what all plugins provide, merged, with who provided it."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import pluggy

from . import backend as backend_module
from . import hookspecs, table
from .backend import Backend
from .checks import check_rules
from .errors import PluginError, UnknownOp
from .executor import plain
from .op import Op

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = [
    "PluginInfo",
    "Registry",
    "disable_plugin",
    "op_named",
    "register_plugin",
    "registry",
    "unregister_plugin",
]

GROUP = "gradtape"
DISABLE = "GRADTAPE_DISABLE_PLUGINS"


@dataclass
class PluginInfo:
    """A plugin and what it provides.

    Attributes
    ----------
    name
        The entry point's name, or the name given to ``register_plugin``.
    distribution, version
        Where it was installed from; empty if registered by hand.
    problem
        Why it is not in use, or ``None``.
    """

    name: str
    distribution: str = ""
    version: str = ""
    problem: str | None = None
    clash: bool = False
    ops: list[str] = field(default_factory=list)
    rules: list[str] = field(default_factory=list)
    kernels: list[tuple[str, str]] = field(default_factory=list)
    backends: list[str] = field(default_factory=list)
    modules: list[str] = field(default_factory=list)
    executors: list[str] = field(default_factory=list)

    @property
    def ours(self) -> bool:
        """Whether it ships with gradtape, whose suite tests what it provides."""
        return self.distribution == "gradtape"

    def __str__(self) -> str:
        where = f" ({self.distribution} {self.version})" if self.distribution else ""
        return f"plugin {self.name!r}{where}"


class Registry:
    """Everything that plugins provide; :func:`gradtape.registry` returns it.

    Attributes
    ----------
    ops, backends, modules, executors
        By name.
    kernels
        ``(op name, backend name)`` -> a kernel that replaces the op's portable one.
    plugins
        What was found, in order, those with a problem included.

    Examples
    --------
    >>> gt.registry().op("add").inputs
    ('x', 'y')
    """

    def __init__(self) -> None:
        self.ops: dict[str, Op] = {}
        self.backends: dict[str, Backend] = {}
        self.kernels: dict[tuple[str, str], Callable[..., Any]] = {}
        self.modules: dict[str, type] = {}
        self.executors: dict[str, Callable[..., Any]] = {"plain": plain}
        self.plugins: list[PluginInfo] = []
        self.selected_executor = "plain"
        self._owner: dict[tuple[str, Any], PluginInfo] = {}
        self._own_rules: dict[Op, tuple[Any, Any]] = {}

    def op(self, name: str) -> Op:
        """Return the op called ``name``.

        Parameters
        ----------
        name
            The op's name, ``"distribution::name"`` for one of another package.

        Returns
        -------
        Op
            The op, as users call it.

        Raises
        ------
        UnknownOp
            If no plugin provides it; near names and failed plugins are in the message.
        """
        try:
            return self.ops[name]
        except KeyError:
            message = f"no plugin provides the op {name!r}"
            import difflib

            near = difflib.get_close_matches(name, self.ops, 3)
            if near:
                message += f"; near names: {', '.join(near)}"
            if "::" in name:
                message += f"; install the package {name.partition('::')[0]!r} that defines it"
            raise UnknownOp(message + self._failed()) from None

    def backend(self, name: str) -> Backend:
        """Return the backend called ``name``.

        Parameters
        ----------
        name
            The backend's name, without a device.

        Returns
        -------
        Backend
            The backend, whether its library is installed or not.

        Raises
        ------
        UnknownOp
            If no plugin provides it.
        """
        try:
            return self.backends[name]
        except KeyError:
            raise UnknownOp(
                f"no plugin provides the backend {name!r}; there are: "
                f"{', '.join(self.backends) or 'none'}{self._failed()}"
            ) from None

    def kernel(self, op: Op, backend: Backend) -> Callable[..., Any]:
        """Return what computes ``op`` on arrays of ``backend``.

        Parameters
        ----------
        op
            A registered op.
        backend
            One of the backends.

        Returns
        -------
        callable
            A function of the backend's arrays and the op's parameters.

        Raises
        ------
        UnknownOp
            If the op is not registered, or the backend has no kernel for it.
        """
        if self.ops.get(op.name) is not op:
            raise UnknownOp(f"op {op.name!r} belongs to no registered plugin{self._failed()}")
        override = self.kernels.get((op.name, backend.name))
        if override is not None:
            return override
        try:
            bound: Callable[..., Any] = backend.bind(op.kernel)
        except AttributeError:
            raise UnknownOp(
                f"op {op.name!r} has no kernel for backend {backend.name!r}: its array namespace "
                f"has no {op.kernel!r}, and no plugin provides one (hook gradtape_kernels)"
            ) from None
        return bound

    def executor(self) -> Callable[..., Any]:
        """Return the executor that runs graphs."""
        return self.executors[self.selected_executor]

    def owner(self, kind: str, name: Any) -> PluginInfo | None:
        """Return the plugin that provides the op, rule, kernel, backend, … called ``name``.

        Parameters
        ----------
        kind
            ``"op"``, ``"rule"``, ``"kernel"``, ``"backend"``, ``"module"`` or ``"executor"``.
        name
            Its name; ``(op name, backend name)`` for a kernel.

        Returns
        -------
        PluginInfo or None
            The plugin, ``None`` if there is none.
        """
        return self._owner.get((kind, name))

    def _failed(self) -> str:
        failed = [str(info) for info in self.plugins if info.problem]
        return f" (not in use: {', '.join(failed)}; see 'gradtape plugins')" if failed else ""

    # -- merging ---------------------------------------------------------------------------------

    def add(self, info: PluginInfo, plugin: Any, manager: pluggy.PluginManager) -> None:
        """Merge one plugin: all that it provides, or (on an error) nothing."""
        provided = {kind: _call(manager, plugin, f"gradtape_{kind}") for kind in _KINDS}
        new: list[tuple[str, Any, Any]] = []
        for op in provided["ops"] or ():
            if not isinstance(op, Op):
                raise PluginError(f"{info}: gradtape_ops returned {op!r}, which is no Op")
            new.append(("op", op.name, op))
        new += [("backend", item.name, item) for item in provided["backends"] or ()]
        for kind in ("module", "executor", "kernel", "rule"):
            hook = {"rule": "gradients"}.get(kind, f"{kind}s")
            items: Mapping[Any, Any] = provided[hook] or {}
            new += [(kind, name, item) for name, item in items.items()]
        ops = {**self.ops, **{name: op for kind, name, op in new if kind == "op"}}
        for kind, name, item in new:
            self._check(info, kind, name, item, ops)
        for kind, name, item in new:
            self._owner[kind, name] = info
            self._install(info, kind, name, item)

    def _check(
        self, info: PluginInfo, kind: str, name: Any, item: Any, ops: Mapping[str, Op]
    ) -> None:
        other = self._owner.get((kind, name))
        if kind == "rule" and other is None and name in ops and ops[name].differentiable:
            other = self._owner.get(("op", name), info)
        if other is not None:
            info.clash = True
            raise PluginError(
                f"{info} and {other} both provide the {kind} {name!r}; disable one with the "
                f"environment variable {DISABLE}={info.name} (or {other.name}), or with "
                f"gradtape.disable_plugin({info.name!r})"
            )
        if kind == "op" and "::" not in name and not info.ours:
            raise PluginError(
                f"{info}: bare op names are gradtape's own; call the op "
                f"'{info.distribution or info.name}::{name}'"
            )
        if kind in ("rule", "kernel"):
            op_name = name if kind == "rule" else name[0]
            if op_name not in ops:
                raise PluginError(
                    f"{info} provides a {kind} for the op {op_name!r}, which is unknown"
                )

    def _install(self, info: PluginInfo, kind: str, name: Any, item: Any) -> None:
        if kind == "op":
            self.ops[name] = item
            item.provider = item.rules_provider = info
            info.ops.append(name)
            if not info.ours:
                check_rules(item)
            if item.differentiable:
                info.rules.append(name)
        elif kind == "backend":
            self.backends[name] = item
            item.provider = info
            info.backends.append(name)
        elif kind == "kernel":
            self.kernels[name] = item
            info.kernels.append(name)
        elif kind == "rule":
            from .custom import joint_rule

            op = self.ops[name]
            self._own_rules.setdefault(op, (op.rules, op.vjp))
            if isinstance(item, Mapping):
                op.set_gradients(item)
            else:
                op.vjp, op.rules = joint_rule(op, item), None
            if not info.ours:
                check_rules(op)
            op.rules_provider = info
            info.rules.append(name)
        elif kind == "module":
            self.modules[name] = item
            info.modules.append(name)
        else:
            self.executors[name] = item
            info.executors.append(name)


_KINDS = ("backends", "ops", "gradients", "kernels", "modules", "executors")
_lock = threading.RLock()
_registry: Registry | None = None
_by_hand: dict[str, Any] = {}
_disabled: set[str] = set()


def _call(manager: pluggy.PluginManager, plugin: Any, hook: str) -> Any:
    """Call one plugin's implementation of a hook."""
    callers = getattr(manager.hook, hook).get_hookimpls()
    for implementation in callers:
        if implementation.plugin is plugin:
            return implementation.function()
    return None


def registry(strict: bool = True) -> Registry:
    """Return the registry; plugins are discovered on the first call.

    Parameters
    ----------
    strict
        Whether a clash of plugins is an error (the default), or only noted in ``plugins``.

    Returns
    -------
    Registry
        What all plugins provide: ``ops``, ``backends``, ``modules`` and more, by name.

    Raises
    ------
    PluginError
        If two plugins provide the same thing, unless not ``strict``.

    Examples
    --------
    >>> "matmul" in gt.registry().ops
    True
    >>> str(gt.registry().owner("op", "matmul")).startswith("plugin 'ops' (gradtape")
    True
    """
    found = _registry or _discovered()
    if strict:
        for info in found.plugins:
            if info.clash:
                raise PluginError(info.problem)
    return found


def _discovered(quiet: str = "") -> Registry:
    """Discover plugins if that is to be done; warn of broken ones but ``quiet``."""
    global _registry
    with _lock:
        if _registry is not None:
            return _registry
        found = _registry = _discover()
    for info in found.plugins:
        if info.problem and not info.clash and info.problem != "disabled" and info.name != quiet:
            warnings.warn(f"not in use: {info.problem}", RuntimeWarning, stacklevel=4)
    return found


def op_named(name: str) -> Op:
    """Return the op called ``name``."""
    return registry().op(name)


def register_plugin(plugin: Any, name: str) -> None:
    """Register a plugin by hand: a module or object with hook implementations.

    Parameters
    ----------
    plugin
        What has the functions marked with :func:`gradtape.hookimpl`.
    name
        A name to speak of it by, and to take it back with :func:`gradtape.unregister_plugin`.

    Raises
    ------
    PluginError
        If it clashes with another plugin, or cannot be used; it is then not registered.

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
    if name in _by_hand:
        raise PluginError(f"a plugin called {name!r} is registered already")
    _by_hand[name] = plugin
    _rebuild()
    found = _discovered(quiet=name)  # its problem is raised, not warned of
    info = next(info for info in found.plugins if info.name == name)
    if info.problem:
        unregister_plugin(name)
        raise PluginError(info.problem)


def unregister_plugin(name: str) -> None:
    """Take back a plugin registered by hand.

    Parameters
    ----------
    name
        The name that it was registered under.

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
    if name not in _by_hand:
        raise PluginError(f"no plugin called {name!r} was registered by hand")
    del _by_hand[name]
    _rebuild()


def disable_plugin(name: str, disabled: bool = True) -> None:
    """Leave out the plugin called ``name`` from now on (or take it in again).

    The environment variable ``GRADTAPE_DISABLE_PLUGINS``, names with commas between them, does the
    same from the start.

    Parameters
    ----------
    name
        The plugin's name, as ``gradtape plugins`` lists it; one that is not installed does no harm.
    disabled
        False takes it in again.

    Examples
    --------
    >>> gt.disable_plugin("cupy")
    >>> "cupy" in gt.registry().backends
    False
    >>> gt.disable_plugin("cupy", disabled=False)
    """
    (_disabled.add if disabled else _disabled.discard)(name)
    _rebuild()


def _rebuild() -> None:
    global _registry
    with _lock:
        old = _registry
        _registry = None
        table.forget()
        backend_module.forget()
        if old is not None:
            for op in old.ops.values():
                op.forget_kernels()
            for op, (rules, vjp) in old._own_rules.items():
                op.rules, op.vjp = rules, vjp


def _discover() -> Registry:
    import importlib.metadata  # slow to import, and needed once

    result = Registry()
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    left_out = _disabled | {n.strip() for n in os.environ.get(DISABLE, "").split(",") if n.strip()}
    found: list[tuple[PluginInfo, Callable[[], Any]]] = []
    # the built-in plugins come first, by our own declaration and not by name
    entry_points = sorted(
        importlib.metadata.entry_points(group=GROUP),
        key=lambda point: (_distribution(point)[0] != "gradtape", point.name),
    )
    seen: set[tuple[str, str]] = set()
    for point in entry_points:
        if (point.name, point.value) not in seen:  # an editable install may list itself twice
            seen.add((point.name, point.value))
            found.append((PluginInfo(point.name, *_distribution(point)), point.load))
    for name, plugin in _by_hand.items():
        found.append((PluginInfo(name), partial(_same, plugin)))
    loaded: list[tuple[PluginInfo, Any]] = []
    for info, load in found:
        result.plugins.append(info)
        if info.name in left_out:
            info.problem = "disabled"
            continue
        try:
            plugin = load()
            manager.register(plugin, name=f"{info.distribution}:{info.name}")
            manager.check_pending()
            loaded.append((info, plugin))
        except Exception as error:  # a broken plugin must not take the others down
            info.problem = _cause(info, error)
    # rules and kernels may be for ops of any plugin: providers of ops go first
    loaded.sort(key=lambda pair: not hasattr(pair[1], "gradtape_ops"))
    for info, plugin in loaded:
        try:
            result.add(info, plugin, manager)
        except PluginError as error:
            info.problem = str(error)
        except Exception as error:
            info.problem = _cause(info, error)
    return result


def _same(plugin: Any) -> Any:
    return plugin


def _distribution(point: EntryPoint) -> tuple[str, str]:
    return (point.dist.name, point.dist.version) if point.dist is not None else ("", "")


def _cause(info: PluginInfo, error: Exception) -> str:
    import traceback

    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{info}: {type(error).__name__}: {error} (at {place.filename}:{place.lineno})"
