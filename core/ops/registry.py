"""The registry: what all plugins provide, merged, with who provided it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...public import IMPORTING
from ..errors import PluginError, UnknownOp
from .backend import Backend
from .checks import check_rules
from .hooks import near_names
from .primitive import Primitive

if TYPE_CHECKING:
    from ..tensors.op import Op

__all__ = ["DISABLE", "PluginInfo", "Registry"]

#: The environment variable that names plugins to leave out.
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
    clash
        Whether that is because another plugin provides the same.
    late
        Whether it ships with gradtape and is imported when classes are asked for: no op needs it.
    ops, rules, kernels, backends, modules, executors
        The names of what it provides.
    """

    name: str
    distribution: str = ""
    version: str = ""
    problem: str | None = None
    clash: bool = False
    late: bool = False
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

    gradtape's layers and optimizers are imported when ``modules`` or ``plugins`` is asked for, or
    by the first other plugin that provides classes.

    Attributes
    ----------
    ops, backends, executors
        By name.
    kernels
        ``(op name, backend name)`` -> a kernel that replaces the op's portable one.

    Examples
    --------
    >>> gt.registry().op("add").inputs
    ('x', 'y')
    """

    def __init__(self) -> None:
        self.ops: dict[str, Op] = {}
        self.backends: dict[str, Backend] = {}
        self.kernels: dict[tuple[str, str], Callable[..., Any]] = {}
        self.executors: dict[str, Callable[..., Any]] = {}
        #: What ``modules`` and ``plugins`` give, before the late ones have come.
        self.classes: dict[str, type] = {}
        self.infos: list[PluginInfo] = []
        self._late: list[tuple[PluginInfo, Callable[[], Any]]] = []
        self.owners: dict[tuple[str, Any], PluginInfo] = {}
        # what plugins changed in the ops of others: what was there, and what they put in its place
        self._own_rules: dict[Op, tuple[Any, Any, Any]] = {}
        self._given_rules: dict[Op, tuple[Any, Any]] = {}

    @property
    def modules(self) -> dict[str, type]:
        """The classes that files may name, by name; this imports the layers and optimizers."""
        with IMPORTING:  # and not half of them, while another thread imports them
            while self._late:
                info, load = self._late[0]
                plugin = load()
                del self._late[0]  # an import that was cut short is done again
                self.add(info, {"modules": plugin.gradtape_modules()})
        return self.classes

    @property
    def plugins(self) -> list[PluginInfo]:
        """What was found, in order, those with a problem included."""
        self.modules  # noqa: B018  # those that provide classes say which
        return self.infos

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
            message += near_names(name, self.ops)
            if "::" in name:
                message += f"; install the package {name.partition('::')[0]!r} that defines it"
            raise UnknownOp(message + self._failed()) from None

    @property
    def host_backend(self) -> Backend:
        """The backend of arrays in host memory, on which new tensors are made by default."""
        for backend in self.backends.values():
            if backend.host:
                return backend
        raise UnknownOp(f"no plugin provides a backend for arrays in host memory{self._failed()}")

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

    def kernel(self, op: Primitive, backend: Backend) -> Callable[..., Any]:
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
            return backend.guarded(override, op.name)
        try:
            bound: Callable[..., Any] = backend.bind(op.kernel)
        except AttributeError:
            raise UnknownOp(
                f"op {op.name!r} has no kernel for backend {backend.name!r}: its array namespace "
                f"has no {op.kernel!r}, and no plugin provides one (hook gradtape_kernels)"
            ) from None
        return backend.guarded(bound, op.name)

    def executor(self, name: str) -> Callable[..., Any]:
        """Return the executor called ``name``.

        Parameters
        ----------
        name
            The executor's name.

        Returns
        -------
        callable
            ``executor(graph)`` returns ``run(arrays) -> arrays``.

        Raises
        ------
        UnknownOp
            If no plugin provides it.
        """
        try:
            return self.executors[name]
        except KeyError:
            raise UnknownOp(
                f"no plugin provides the executor {name!r}"
                f"{near_names(str(name), self.executors)}; there are: "
                f"{', '.join(self.executors) or 'none'}{self._failed()}"
            ) from None

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
        if kind == "module":
            self.modules  # noqa: B018
        return self.owners.get((kind, name))

    def _failed(self) -> str:
        failed = [str(info) for info in self.infos if info.problem]
        return f" (not in use: {', '.join(failed)}; see 'gradtape plugins')" if failed else ""

    # -- merging ---------------------------------------------------------------------------------

    def add_late(self, info: PluginInfo, load: Callable[[], Any]) -> None:
        """Note a plugin of classes alone, which is imported when classes are asked for."""
        self._late.append((info, load))

    def add(self, info: PluginInfo, provided: Mapping[str, Any]) -> None:
        """Merge what one plugin provides, by hook: all of it, or (on an error) nothing."""
        new = [
            (kind, name, item)
            for kind in KINDS
            if kind.hook in provided
            for name, item in kind.items(info, provided[kind.hook])
        ]
        ops = {**self.ops, **{name: op for kind, name, op in new if isinstance(kind, _Ops)}}
        seen = set()
        for kind, name, item in new:
            kind.check(self, info, name, item, ops)
            if (kind.name, name) in seen:
                raise PluginError(f"{info} provides the {kind.name} {name!r} twice")
            seen.add((kind.name, name))
        for kind, name, item in new:
            self.owners[kind.name, name] = info
            kind.install(self, info, name, item)

    def give_rules(self, info: PluginInfo, op: Op, rules: Any) -> None:
        """Let a plugin give rules to an op; those of ``register_gradient`` stay."""
        if type(op.rules_provider) is not str:
            self._own_rules.setdefault(op, (op.rules, op.vjp, op.rules_provider))
            op.replace_rules(rules)
            if not info.ours:
                check_rules(op)
            op.rules_provider = info
            self._given_rules[op] = (op.rules, op.vjp)
        info.rules.append(op.name)

    def give_back(self) -> None:
        """Undo what plugins changed in the ops of others, before another registry takes over."""
        for op in self.ops.values():
            op.forget_kernels()
        for op, own in self._own_rules.items():
            if self._has_given_rules(op):
                op.rules, op.vjp, op.rules_provider = own

    def _has_given_rules(self, op: Op) -> bool:
        rules, vjp = self._given_rules.get(op, (op, op))
        return op.rules is rules and op.vjp is vjp

    def rules_from_elsewhere(self, op: Op) -> str:
        """Say who gave an op gradient rules that are not its owner's.

        Parameters
        ----------
        op
            A registered op.

        Returns
        -------
        str
            A plugin of another distribution, or the module that called ``register_gradient``;
            nothing if whoever installs the op's owner has the same rules.
        """
        if op.has_own_rules:
            return ""
        who, owner = op.rules_provider, op.provider
        if type(who) is str:
            return f"the module {who!r} (register_gradient)"
        if not self._has_given_rules(op):
            return "an assignment to the op"
        same = who is owner or (who.distribution and who.distribution == owner.distribution)
        return "" if same else str(who)


class Kind:
    """One kind of thing that plugins provide: its hook, what is checked, and where it goes."""

    def __init__(self, name: str, of: str = "", right: Callable[[Any], bool] = bool) -> None:
        self.name = name
        #: The hook is called ``gradtape_<hook>``; attributes of this name hold what was provided.
        self.hook = f"{name}s"
        #: What a hook returns is a mapping of names to these.
        self.of, self.right = of, right

    def items(self, info: PluginInfo, provided: Any) -> Iterable[tuple[Any, Any]]:
        """Return what a plugin provides, by name; raise if the hook returned something else."""
        if not isinstance(provided, Mapping):
            raise self._wrong(info, provided, f"a mapping from names to {self.of}")
        for name, item in provided.items():
            if type(name) is not str or not name:
                raise self._wrong(info, name, "a name", " as a key")
            if not self.right(item):
                raise self._wrong(info, item, self.of, f" for {name!r}")
        return provided.items()

    def _wrong(self, info: PluginInfo, value: Any, wanted: str, place: str = "") -> PluginError:
        """Return the error about what a hook returned, or has in a place of it."""
        told = f"{value!r:.80}{place}"
        if value is None and not place:
            told = "None (is a return missing?)"
        hook = f"gradtape_{self.hook}"
        return PluginError(f"{info}: {hook} returned {told} instead of {wanted}")

    def check(
        self, registry: Registry, info: PluginInfo, name: Any, item: Any, ops: Mapping[str, Any]
    ) -> None:
        """Raise if it cannot be merged; ``ops`` are all ops, those of the plugin included."""
        other = self.other_owner(registry, info, name, ops)
        if other is not None:
            info.clash = True
            raise PluginError(
                f"{info} and {other} both provide the {self.name} {name!r}; disable one with the "
                f"environment variable {DISABLE}={info.name} (or {other.name}), or with "
                f"gradtape.disable_plugin({info.name!r})"
            )

    def other_owner(
        self, registry: Registry, info: PluginInfo, name: Any, ops: Mapping[str, Any]
    ) -> PluginInfo | None:
        """Return who provides the same already."""
        return registry.owner(self.name, name)

    def install(self, registry: Registry, info: PluginInfo, name: Any, item: Any) -> None:
        """Merge it."""
        getattr(registry, self.hook)[name] = item
        getattr(info, self.hook).append(name)

    def _check_op(self, info: PluginInfo, name: str, ops: Mapping[str, Any]) -> None:
        if name not in ops:
            raise PluginError(
                f"{info} provides a {self.name} for the op {name!r}, which is unknown"
                f"{near_names(name, ops)}"
            )


class _Listed(Kind):
    """What says its own name: a hook returns a sequence."""

    def items(self, info: PluginInfo, provided: Any) -> Iterable[tuple[Any, Any]]:
        if not isinstance(provided, Iterable) or isinstance(provided, (str, Mapping)):
            raise self._wrong(info, provided, f"a list of {self.of}")
        items = list(provided)
        for item in items:
            if not self.right(item):
                raise self._wrong(info, item, self.of, " in the list")
        return [(item.name, item) for item in items]


class _Modules(Kind):
    def other_owner(
        self, registry: Registry, info: PluginInfo, name: Any, ops: Mapping[str, Any]
    ) -> PluginInfo | None:
        if not info.ours:
            registry.modules  # noqa: B018  # ours come first
        return registry.owners.get((self.name, name))

    def install(self, registry: Registry, info: PluginInfo, name: Any, item: Any) -> None:
        registry.classes[name] = item
        info.modules.append(name)


class _Ops(_Listed):
    def check(
        self, registry: Registry, info: PluginInfo, name: Any, item: Any, ops: Mapping[str, Any]
    ) -> None:
        super().check(registry, info, name, item, ops)
        if "::" not in name and not info.ours:
            raise PluginError(
                f"{info}: bare op names are gradtape's own; call the op "
                f"'{info.distribution or info.name}::{name}'"
            )

    def install(self, registry: Registry, info: PluginInfo, name: Any, item: Any) -> None:
        super().install(registry, info, name, item)
        item.provider = info
        if type(item.rules_provider) is not str:  # those of register_gradient outlive a registry
            item.rules_provider = info
        if not info.ours:
            check_rules(item)
        if item.differentiable:
            info.rules.append(name)


class _Backends(_Listed):
    def check(
        self, registry: Registry, info: PluginInfo, name: Any, item: Any, ops: Mapping[str, Any]
    ) -> None:
        super().check(registry, info, name, item, ops)
        if type(name) is not str or not name:
            raise PluginError(f"{info}: the backend {item!r} needs a 'name', a string")
        if not item.array_module and type(item).owns is Backend.owns:
            raise PluginError(
                f"{info}: the backend {name!r} needs an 'array_module', which defines the types of "
                "its arrays, or a method 'owns'"
            )
        for other in registry.backends.values():
            both = _modules(item) & _modules(other)
            if both:
                raise PluginError(
                    f"{info}: the backend {name!r} takes the arrays of {', '.join(sorted(both))}, "
                    f"which are those of the backend {other.name!r} ({other.provider}); an array "
                    "has one backend"
                )

    def install(self, registry: Registry, info: PluginInfo, name: Any, item: Any) -> None:
        super().install(registry, info, name, item)
        item.provider = info


def _modules(backend: Backend) -> set[str]:
    """Return the modules all of whose arrays are a backend's."""
    if type(backend).owns is not Backend.owns:
        return set()
    named = backend.array_module
    return set(named if isinstance(named, tuple) else (named,))


class _Kernels(Kind):
    def items(self, info: PluginInfo, provided: Any) -> Iterable[tuple[Any, Any]]:
        if not isinstance(provided, Mapping):
            raise self._wrong(info, provided, "a mapping from (op name, backend name)")
        for key, kernel in provided.items():
            if type(key) is not tuple or list(map(type, key)) != [str, str]:
                raise self._wrong(info, key, "(op name, backend name)", " as a key")
            if not callable(kernel):
                raise self._wrong(info, kernel, "a function", f" for {key}")
        return provided.items()

    def check(
        self, registry: Registry, info: PluginInfo, name: Any, item: Any, ops: Mapping[str, Any]
    ) -> None:
        super().check(registry, info, name, item, ops)
        self._check_op(info, name[0], ops)


class _Rules(Kind):
    def __init__(self) -> None:
        super().__init__(
            "rule",
            "a rule or rules by input",
            lambda rule: callable(rule) or isinstance(rule, Mapping),
        )
        self.hook = "gradients"

    def other_owner(
        self, registry: Registry, info: PluginInfo, name: Any, ops: Mapping[str, Any]
    ) -> PluginInfo | None:
        other = super().other_owner(registry, info, name, ops)
        if other is None and name in ops:
            op = ops[name]
            if op.differentiable and type(op.rules_provider) is not str:
                return registry.owner("op", name) or info
        return other

    def check(
        self, registry: Registry, info: PluginInfo, name: Any, item: Any, ops: Mapping[str, Any]
    ) -> None:
        super().check(registry, info, name, item, ops)
        self._check_op(info, name, ops)
        try:
            ops[name].made_rules(item)
        except PluginError as error:
            raise PluginError(f"{info}: {error}") from None

    def install(self, registry: Registry, info: PluginInfo, name: Any, item: Any) -> None:
        registry.give_rules(info, registry.ops[name], item)


#: In the order in which they are merged: rules and kernels come after the ops that they are for.
KINDS: tuple[Kind, ...] = (
    _Ops("op", "ops (instances of Op)", lambda op: isinstance(op, Primitive)),
    _Backends("backend", "backends (instances of Backend)", lambda item: isinstance(item, Backend)),
    _Modules("module", "a class", lambda item: isinstance(item, type)),
    Kind("executor", "a function of a graph", callable),
    _Kernels("kernel"),
    _Rules(),
)
