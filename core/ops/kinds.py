"""The kinds of things that plugins provide: how each is checked and stored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...hints import CLASSES
from ...hints import add as add_hint
from ..errors import PluginError
from .backend import Backend
from .checks import check_rules
from .collectives import Engine
from .hooks import near_names
from .primitive import Primitive

if TYPE_CHECKING:
    from .registry import Registry

__all__ = ["DISABLE", "KINDS", "Kind", "PluginInfo"]

#: The environment variable with the names of plugins to disable.
DISABLE = "GRADTAPE_DISABLE_PLUGINS"


@dataclass
class PluginInfo:
    """A plugin and what it provides.

    Attributes
    ----------
    name
        The entry point's name, or the name given to ``register_plugin``.
    distribution, version
        The installed distribution; empty if registered by hand.
    problem
        Why it is not in use, or ``None``.
    clash
        Whether the problem is that another plugin provides the same thing.
    late
        Whether it ships with gradtape and is imported when classes are first needed.
    ops, rules, kernels, backends, modules, executors, collectives
        The names of what it provides.
    late_ops
        The prefixes of ops that are loaded when first needed.
    formats
        The ends of file names whose formats it writes.
    functions
        The modules of other libraries whose functions it replaces for tensors.
    hints
        The names that gradtape lacks, for which it says what to use instead.
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
    collectives: list[str] = field(default_factory=list)
    late_ops: list[str] = field(default_factory=list)
    formats: list[str] = field(default_factory=list)
    functions: list[str] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)

    @property
    def ours(self) -> bool:
        """Whether it ships with gradtape, and is tested with it."""
        return self.distribution == "gradtape"

    def __str__(self) -> str:
        where = f" ({self.distribution} {self.version})" if self.distribution else ""
        return f"plugin {self.name!r}{where}"


class Kind:
    """One kind of thing that plugins provide: its hook, its checks and where it is stored."""

    def __init__(self, name: str, of: str = "", right: Callable[[Any], bool] = bool) -> None:
        self.name = name
        #: The hook is called ``gradtape_<hook>``; attributes of this name store its results.
        self.hook = f"{name}s"
        #: The values of the hook's mapping, for messages, and the check that each must pass.
        self.of, self.right = of, right

    def items(self, info: PluginInfo, provided: Any) -> Iterable[tuple[Any, Any]]:
        """Return what a plugin provides, by name; raise for a wrong result of the hook."""
        if not isinstance(provided, Mapping):
            raise self._wrong(info, provided, f"a mapping from names to {self.of}")
        for name, item in provided.items():
            if type(name) is not str or (not name and self.name != "hint"):
                raise self._wrong(info, name, "a name", " as a key")
            if not self.right(item):
                raise self._wrong(info, item, self.of, f" for {name!r}")
        return provided.items()

    def _wrong(self, info: PluginInfo, value: Any, wanted: str, place: str = "") -> PluginError:
        """Return the error for a wrong result of a hook, or for a wrong item in it."""
        told = f"{value!r:.80}{place}"
        if value is None and not place:
            told = "None (is a return missing?)"
        hook = f"gradtape_{self.hook}"
        return PluginError(f"{info}: {hook} returned {told} instead of {wanted}")

    def check(
        self, registry: Registry, info: PluginInfo, name: Any, item: Any, ops: Mapping[str, Any]
    ) -> None:
        """Raise if an item cannot be merged; ``ops`` are all ops, including the plugin's."""
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
        """Return the plugin that already provides the same."""
        return registry.owner(self.name, name)

    def install(self, registry: Registry, info: PluginInfo, name: Any, item: Any) -> None:
        """Merge an item."""
        getattr(registry, self.hook)[name] = item
        getattr(info, self.hook).append(name)

    def _check_op(self, info: PluginInfo, name: str, ops: Mapping[str, Any]) -> None:
        if name not in ops:
            raise PluginError(
                f"{info} provides a {self.name} for the op {name!r}, which is unknown"
                f"{near_names(name, ops)}"
            )


class _Listed(Kind):
    """A kind whose items have names: its hook returns a sequence."""

    def items(self, info: PluginInfo, provided: Any) -> Iterable[tuple[Any, Any]]:
        if not isinstance(provided, Iterable) or isinstance(provided, (str, Mapping)):
            raise self._wrong(info, provided, f"a list of {self.of}")
        items = list(provided)
        for item in items:
            if not self.right(item):
                raise self._wrong(info, item, self.of, " in the list")
        return [(item.name, item) for item in items]

    def check(
        self, registry: Registry, info: PluginInfo, name: Any, item: Any, ops: Mapping[str, Any]
    ) -> None:
        if type(name) is not str or not name:
            raise PluginError(
                f"{info}: the {self.name} {item!r} needs an attribute 'name', a non-empty string"
            )
        super().check(registry, info, name, item, ops)

    def install(self, registry: Registry, info: PluginInfo, name: Any, item: Any) -> None:
        super().install(registry, info, name, item)
        item.provider = info


class _Modules(Kind):
    def other_owner(
        self, registry: Registry, info: PluginInfo, name: Any, ops: Mapping[str, Any]
    ) -> PluginInfo | None:
        if not info.ours:
            registry.modules  # noqa: B018  # gradtape's own classes come first
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
        if not item.array_module and type(item).owns is Backend.owns:
            raise PluginError(
                f"{info}: the backend {name!r} needs an attribute 'array_module' (the module that "
                "defines its array types), or a method 'owns'"
            )
        for other in registry.backends.values():
            both = _modules(item) & _modules(other)
            if both:
                raise PluginError(
                    f"{info}: the backend {name!r} claims the arrays of {', '.join(sorted(both))}, "
                    f"which belong to the backend {other.name!r} ({other.provider}); only one "
                    "backend can own an array type"
                )


class _Collectives(_Listed):
    def check(
        self, registry: Registry, info: PluginInfo, name: Any, item: Any, ops: Mapping[str, Any]
    ) -> None:
        super().check(registry, info, name, item, ops)
        if name in ("auto", "alone"):
            raise PluginError(
                f"{info}: an engine cannot be called {name!r}, which is reserved; rename it"
            )


def _modules(backend: Backend) -> set[str]:
    """Return the modules whose arrays all belong to a backend."""
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


class _LateOps(Kind):
    def check(
        self, registry: Registry, info: PluginInfo, name: Any, item: Any, ops: Mapping[str, Any]
    ) -> None:
        super().check(registry, info, name, item, ops)
        if "::" in name:
            raise PluginError(
                f"{info}: the prefix {name!r} of late ops must not contain '::'; write "
                f"{name.partition('::')[0]!r}"
            )


class _Formats(Kind):
    def check(
        self, registry: Registry, info: PluginInfo, name: Any, item: Any, ops: Mapping[str, Any]
    ) -> None:
        super().check(registry, info, name, item, ops)
        if name[0] != "." or name != name.lower():
            raise PluginError(
                f"{info}: the format {name!r} is not the end of a file name, such as '.npz'"
            )
        if name in (".h5", ".hdf5"):  # gradtape.save would refuse the paths of its own files
            raise PluginError(
                f"{info}: the format {name!r} is that of gradtape's own files; choose a longer "
                f"ending, such as '.{info.name.lower()}{name}'"
            )


def _are_texts(texts: Any) -> bool:
    """Return whether it is a mapping from names to texts."""
    return isinstance(texts, Mapping) and {type(x) for y in texts.items() for x in y} <= {str}


class _Functions(Kind):
    """Replacements for the functions of other libraries, from any number of plugins per module."""

    def items(self, info: PluginInfo, provided: Any) -> Iterable[tuple[Any, Any]]:
        return [((name, info.name), load) for name, load in super().items(info, provided)]

    def install(self, registry: Registry, info: PluginInfo, name: Any, item: Any) -> None:
        registry.functions[name] = item
        info.functions.append(name[0])


class _Hints(Kind):
    """What to use instead of names that gradtape lacks, by module or class and name."""

    def items(self, info: PluginInfo, provided: Any) -> Iterable[tuple[Any, Any]]:
        return [
            ((place, name), text)
            for place, texts in super().items(info, provided)
            for name, text in texts.items()
        ]

    def check(
        self, registry: Registry, info: PluginInfo, name: Any, item: Any, ops: Mapping[str, Any]
    ) -> None:
        super().check(registry, info, name, item, ops)
        place = name[0]
        if place.rpartition(".")[2][:1].isupper() and place not in CLASSES:
            raise PluginError(
                f"{info}: gradtape_hints has hints for the class {place!r}; classes that take some "
                f"are {', '.join(CLASSES)}"
            )

    def install(self, registry: Registry, info: PluginInfo, name: Any, item: Any) -> None:
        registry.hints[name] = item
        info.hints.append(".".join(filter(None, name)))
        place, lacking = name
        add_hint(place, lacking, item)


#: In the order of merging: rules and kernels come after the ops that they belong to.
KINDS: tuple[Kind, ...] = (
    _Ops("op", "ops (instances of Op)", lambda op: isinstance(op, Primitive)),
    _Backends("backend", "backends (instances of Backend)", lambda item: isinstance(item, Backend)),
    _Modules("module", "a class", lambda item: isinstance(item, type)),
    Kind("executor", "a function of a graph", callable),
    _Collectives(
        "collective", "engines (instances of Engine)", lambda item: isinstance(item, Engine)
    ),
    _Formats("format", "a function or a text", lambda x: callable(x) or (x and type(x) is str)),
    _LateOps("late_op", "a function that returns ops", callable),
    _Functions("function", "a function that returns a mapping from names", callable),
    _Hints("hint", "a mapping from names to texts", _are_texts),
    _Kernels("kernel"),
    _Rules(),
)
