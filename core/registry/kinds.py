"""The kinds of things that plugins provide: how each is checked and stored.

A new hook needs its specification in ``hookspecs``, and its kind in :class:`Tables`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from keyword import iskeyword
from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, overload

from ...hints import add as add_hint
from ...hints import classes
from ..base.table import public_package
from ..errors import PluginError
from ..ops.backend import Backend
from ..ops.checks import check_rules
from ..ops.collectives import Engine
from ..ops.primitive import Primitive
from .hooks import near_names
from .info import NAMED, PluginInfo, is_reserved, refuse_reserved

if TYPE_CHECKING:
    from .merging import Merged

Name = TypeVar("Name")
Item = TypeVar("Item")
#: Ops by name: all that are known, and those of the plugin that is merged.
Ops = Mapping[str, Any]


class Clash(PluginError):
    """One item of a plugin cannot be used, because of what another plugin provides."""


class Kind(Generic[Name, Item]):
    """One kind of thing that plugins provide: its hook, its checks and where it is stored.

    It is the attribute of :class:`Tables` with the hook's name. In a registry, this attribute is
    the table of the items, filled with what plugins provide late when it is first read.
    """

    #: The hook is called ``gradtape_<hook>``; attributes of this name store its results.
    hook: str
    #: Whether the items belong to ops: their names are those of ops, alone or first in a pair.
    for_ops = False
    #: Whether the op itself must be there to check an item that belongs to it, not only its name.
    needs_op = False
    #: Whether the hook returns a mapping of mappings, or functions that load what it provides.
    nested = loads = False
    #: The class of objects that may be named by their place, ``"module:attribute"``; None if none.
    at_places: Any = None

    def __init__(
        self,
        name: str,
        of: str,
        right: Callable[[Any], Any] = bool,
        *,
        waits: bool = True,
        reserves: bool = False,
    ) -> None:
        self.name = name
        #: The values of the hook's mapping, for messages, and the check that each must pass.
        self.of, self.right = of, right
        #: Whether plugins may have the hook called only when its results are first needed.
        self.waits = waits
        #: Whether bare names, and names that start with a package of gradtape, are gradtape's own.
        self.reserves = reserves

    def __set_name__(self, owner: type, name: str) -> None:
        self.hook = name

    @overload
    def __get__(self, registry: None, owner: type) -> Self: ...

    @overload
    def __get__(self, registry: Any, owner: type) -> dict[Name, Item]: ...

    def __get__(self, registry: Any, owner: type) -> Any:
        if registry is None:
            return self
        if self.waits:
            registry.load(self.hook)
        return registry.tables[self.hook]

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

    def check(self, registry: Merged, info: PluginInfo, name: Any, item: Any, ops: Ops) -> None:
        """Raise if an item cannot be merged; ``ops`` are all ops, including the plugin's."""
        if self.reserves:
            bare = name.rpartition("::")[2].rpartition(".")[2]
            refuse_reserved(info, self.name, name, f".{bare}")

    def install(self, registry: Merged, info: PluginInfo, name: Any, item: Any) -> None:
        """Put the winner among an item's providers in use."""
        registry.tables[self.hook][name] = item

    def remove(self, registry: Merged, name: Any, message: str) -> None:
        """Take an item out of use, since several plugins provide it."""
        registry.tables[self.hook].pop(name, None)

    def note(self, info: PluginInfo, name: Any, item: Any) -> None:
        """List an item among those that a plugin provides."""
        getattr(info, self.hook).append(name)

    def op_of(self, name: Any) -> str:
        """Return the name of the op that an item is, or belongs to; empty if it does not."""
        return "" if not self.for_ops else name if type(name) is str else name[0]


class _Listed(Kind[str, Item]):
    """A kind whose items have names: its hook returns a sequence."""

    def items(self, info: PluginInfo, provided: Any) -> Iterable[tuple[Any, Any]]:
        if not isinstance(provided, Iterable) or isinstance(provided, (str, Mapping)):
            raise self._wrong(info, provided, f"a list of {self.of}")
        items = list(provided)
        for item in items:
            if not self.right(item):
                raise self._wrong(info, item, self.of, " in the list")
        return [(item.name, item) for item in items]

    def check(self, registry: Merged, info: PluginInfo, name: Any, item: Any, ops: Ops) -> None:
        if type(name) is not str or not name:
            raise PluginError(
                f"{info}: the {self.name} {item!r} needs an attribute 'name', a non-empty string"
            )
        super().check(registry, info, name, item, ops)

    def install(self, registry: Merged, info: PluginInfo, name: Any, item: Any) -> None:
        super().install(registry, info, name, item)
        item.provider = info


def _check_name_of_op(info: PluginInfo, name: str) -> None:
    """Raise if a plugin may not have an op of a name."""
    if info.may_use_reserved_names:
        return
    if "::" not in name:
        raise PluginError(
            f"{info}: bare op names are gradtape's own; call the op "
            f"'{info.distribution or info.name}::{name}'"
        )
    if any(not part or part != part.strip() for part in name.split("::")):
        raise PluginError(
            f"{info}: the op {name!r} needs the names of a distribution and an op, without spaces "
            f"around them: '{info.distribution or info.name}::op'"
        )
    if is_reserved(name):
        raise PluginError(
            f"{info}: the op {name!r} has gradtape's name in front; call it "
            f"'{info.distribution or info.name}::{name.partition('::')[2]}'"
        )


class _Ops(_Listed[Primitive]):
    for_ops = True

    def __get__(self, registry: Any, owner: type) -> Any:
        if registry is not None:
            registry.make_all_ops()  # who looks up one op calls `find`
        return super().__get__(registry, owner)

    def check(self, registry: Merged, info: PluginInfo, name: Any, item: Any, ops: Ops) -> None:
        super().check(registry, info, name, item, ops)
        _check_name_of_op(info, name)

    def install(self, registry: Merged, info: PluginInfo, name: Any, item: Any) -> None:
        super().install(registry, info, name, item)
        if type(item.rules_provider) is not str:  # those of register_gradient outlive a registry
            item.rules_provider = info
        if not item.verified:
            check_rules(item)

    def note(self, info: PluginInfo, name: Any, item: Any) -> None:
        super().note(info, name, item)
        if item.differentiable:
            info.rules.append(name)


class _Backends(_Listed[Backend]):
    def check(self, registry: Merged, info: PluginInfo, name: Any, item: Any, ops: Ops) -> None:
        super().check(registry, info, name, item, ops)
        if not item.array_module and type(item).owns is Backend.owns:
            raise PluginError(
                f"{info}: the backend {name!r} needs an attribute 'array_module' (the module that "
                "defines its array types), or a method 'owns'"
            )
        for other in list(registry.backends.values()):
            both = _shared(_modules(item), _modules(other))
            if not both or other.name == name:
                continue
            if _found_first(registry, info, other.provider):  # it was merged later all the same
                told = _claims(other.provider, other.name, both, name, info)
                registry.displace(self, other.name, told)
            else:
                raise Clash(_claims(info, name, both, other.name, other.provider))


def _found_first(registry: Merged, info: PluginInfo, other: PluginInfo) -> bool:
    """Return whether a plugin was found before another one; their merging has another order."""
    places = {id(x): place for place, x in enumerate(registry.infos)}
    return places.get(id(info), len(places)) < places.get(id(other), len(places))


def _claims(info: PluginInfo, name: str, both: set[str], first: str, owner: PluginInfo) -> str:
    """Return the message for a backend whose arrays another one has."""
    return (
        f"{info}: the backend {name!r} claims the arrays of {', '.join(sorted(both))}, which "
        f"belong to the backend {first!r} ({owner}); only one backend can own an array type: call "
        f"yours {first!r} to replace that one"
    )


class _Collectives(_Listed[Engine]):
    def check(self, registry: Merged, info: PluginInfo, name: Any, item: Any, ops: Ops) -> None:
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


def _shared(modules: set[str], others: set[str]) -> set[str]:
    """Return the modules that others have, as they are or in a package, or a part of."""
    pairs = [(x, f"{x}.", f"{y}.") for x in modules for y in others]
    return {x for x, this, that in pairs if this.startswith(that) or that.startswith(this)}


class _ForOps(Kind[Name, Item]):
    """What belongs to an op, of any plugin."""

    for_ops = True

    def check(self, registry: Merged, info: PluginInfo, name: Any, item: Any, ops: Ops) -> None:
        super().check(registry, info, name, item, ops)
        op = self.op_of(name)
        if op not in ops:
            raise PluginError(
                f"{info} provides a {self.name} for the op {op!r}, which is unknown"
                f"{near_names(op, ops)}"
            )


class _Paired(_ForOps[tuple[str, str], Any]):
    """Functions by op name and another name: of a backend, or of an executor or exporter."""

    def items(self, info: PluginInfo, provided: Any) -> Iterable[tuple[Any, Any]]:
        if not isinstance(provided, Mapping):
            raise self._wrong(info, provided, f"a mapping from {self.of}")
        for key, kernel in provided.items():
            if type(key) is not tuple or list(map(type, key)) != [str, str]:
                raise self._wrong(info, key, self.of, " as a key")
            if not self.right(kernel):
                raise self._wrong(info, kernel, "a function", f" for {key}")
        return provided.items()


class _Kernels(_Paired):
    """Kernels; a text is imported when the kernel is first needed, or the table is read."""

    at_places = Callable

    def __get__(self, registry: Any, owner: type) -> Any:
        found = super().__get__(registry, owner)
        if registry is None:
            return found
        # not in the table itself: what an op means does not change when its kernel is imported
        return {**found, **_at_places(registry, self.name, found, self.at_places)}


def _at_places(registry: Any, kind: str, table: dict[Any, Any], of: Any) -> dict[Any, Any]:
    """Return the objects that plugins named by their places; without those that are not there."""
    made = {}
    for name, place in [(x, y) for x, y in table.items() if type(y) is str]:
        try:
            made[name] = registry.imported(kind, name, place, of)
        except PluginError as error:  # its mistake must not hide what others have
            del table[name]
            registry.disuse(registry.owners[kind, name], error)
    return made


class _Rules(_ForOps[str, Any]):
    nested = needs_op = True

    def check(self, registry: Merged, info: PluginInfo, name: Any, item: Any, ops: Ops) -> None:
        super().check(registry, info, name, item, ops)
        try:
            ops[name].made_rules(item)
        except PluginError as error:
            raise PluginError(f"{info}: {error}") from None

    def install(self, registry: Merged, info: PluginInfo, name: Any, item: Any) -> None:
        op = registry.find(name)
        if op is not None:  # several plugins may provide the op
            registry.rules.give(info, op, item)

    def remove(self, registry: Merged, name: Any, message: str) -> None:
        def clashing(*given: Any, **params: Any) -> Any:
            raise PluginError(message)

        op = registry.find(name)
        if op is not None:
            registry.rules.give(None, op, clashing)

    def note(self, info: PluginInfo, name: Any, item: Any) -> None:
        info.rules.append(name)


class _LateOps(Kind[Any, Callable[[], Any]]):
    """Functions that make ops, by a prefix, or by the names of all ops that one makes.

    The name of the latter is these names and the plugin: plugins that declare the same ops clash
    when the ops are made, as if they had been there from the start.
    """

    loads = True

    def items(self, info: PluginInfo, provided: Any) -> Iterable[tuple[Any, Any]]:
        if not isinstance(provided, Mapping):
            return super().items(info, provided)
        families = {key: load for key, load in provided.items() if type(key) is tuple}
        for names, load in families.items():
            if not names or not all(type(name) is str and name for name in names):
                raise self._wrong(info, names, "a prefix, or a tuple of ops' names", " as a key")
            if not self.right(load):
                raise self._wrong(info, load, self.of, f" for {names!r}")
        others = {key: load for key, load in provided.items() if key not in families}
        return [
            *super().items(info, others),
            *(((names, info), load) for names, load in families.items()),
        ]

    def install(self, registry: Merged, info: PluginInfo, name: Any, item: Any) -> None:
        if type(name) is str:
            super().install(registry, info, name, item)
        else:
            registry.declare(info, name[0], item)

    def note(self, info: PluginInfo, name: Any, item: Any) -> None:
        if type(name) is str:  # the others are listed among the ops, once they are made
            super().note(info, name, item)

    def check(self, registry: Merged, info: PluginInfo, name: Any, item: Any, ops: Ops) -> None:
        super().check(registry, info, name, item, ops)
        if type(name) is not str:
            for op in name[0]:
                _check_name_of_op(info, op)
        elif "::" in name:
            raise PluginError(
                f"{info}: the prefix {name!r} of late ops must not contain '::'; write "
                f"{name.partition('::')[0]!r}"
            )


class _Endings(Kind[str, Any]):
    """What is found by the end of a file's name."""

    def check(self, registry: Merged, info: PluginInfo, name: Any, item: Any, ops: Ops) -> None:
        super().check(registry, info, name, item, ops)
        if name[0] != "." or name != name.lower():
            raise PluginError(
                f"{info}: the {self.name} {name!r} is not the end of a file name, such as '.npz'"
            )
        # a format of weights alone: gradtape.save writes whole files to such paths
        if self.name == "format" and name in (".h5", ".hdf5") and not info.may_use_reserved_names:
            raise PluginError(
                f"{info}: the {self.name} {name!r} is that of gradtape's own files; choose a "
                f"longer ending, such as '.{info.name.lower()}{name}'"
            )


def _are_texts(texts: Any) -> bool:
    """Return whether it is a mapping from names to texts."""
    return isinstance(texts, Mapping) and {type(x) for y in texts.items() for x in y} <= {str}


class _Functions(Kind[tuple[str, PluginInfo], Callable[[], Any]]):
    """Replacements for the functions of other libraries, from any number of plugins per module."""

    loads = True

    def items(self, info: PluginInfo, provided: Any) -> Iterable[tuple[Any, Any]]:
        return [((name, info), load) for name, load in super().items(info, provided)]

    def note(self, info: PluginInfo, name: Any, item: Any) -> None:
        info.functions.append(name[0])


class _Nested(Kind[tuple[str, str], Item]):
    """Items by place and name: the hook returns a mapping of mappings."""

    nested = True

    def items(self, info: PluginInfo, provided: Any) -> Iterable[tuple[Any, Any]]:
        return [
            ((place, name), item)
            for place, items in super().items(info, provided)
            for name, item in items.items()
        ]


class _Hints(_Nested[str]):
    """What to use instead of names that gradtape lacks, by module or class and name."""

    def check(self, registry: Merged, info: PluginInfo, name: Any, item: Any, ops: Ops) -> None:
        super().check(registry, info, name, item, ops)
        place = name[0]
        if place.rpartition(".")[2][:1].isupper() and place not in classes():
            raise PluginError(
                f"{info}: gradtape_hints has hints for the class {place!r}; classes that take some "
                f"are {', '.join(classes())}"
            )

    def install(self, registry: Merged, info: PluginInfo, name: Any, item: Any) -> None:
        super().install(registry, info, name, item)
        place, lacking = name
        add_hint(place, lacking, item)

    def note(self, info: PluginInfo, name: Any, item: Any) -> None:
        info.hints.append(".".join(filter(None, name)))


#: Values that no text names: those that an argument takes as they are, and results by mistake.
_PLAIN = (bool, int, float, complex, str, bytes, list, tuple, set, dict)


class _Names(_Nested[Any]):
    """Objects that a text may name, by kind and name."""

    def check(self, registry: Merged, info: PluginInfo, name: Any, item: Any, ops: Ops) -> None:
        kind, text = name
        if kind not in NAMED:
            raise PluginError(
                f"{info}: gradtape_names has names of the kind {kind!r}"
                f"{near_names(str(kind), NAMED)}; kinds are {', '.join(NAMED)}"
            )
        if type(text) is not str or not text:
            raise PluginError(f"{info}: gradtape_names: the name {text!r} of a {kind} is no text")
        if item is None or isinstance(item, _PLAIN):
            place = f" for the {kind} {text!r}"
            raise self._wrong(info, item, "an object, a function or a class", place)
        refuse_reserved(info, kind, text, f"::{text}")

    def install(self, registry: Merged, info: PluginInfo, name: Any, item: Any) -> None:
        super().install(registry, info, name, item)
        registry.texts = {}

    def remove(self, registry: Merged, name: Any, message: str) -> None:
        super().remove(registry, name, message)
        registry.texts = {}


class _Modules(Kind[str, Any]):
    """Classes that files may name; a text is imported when the classes are first read."""

    at_places = type

    def items(self, info: PluginInfo, provided: Any) -> Iterable[tuple[Any, Any]]:
        found = super().items(info, provided)
        for name, item in found:
            own = getattr(item, "saved_as", None)
            if own is not None and own not in provided:
                raise PluginError(
                    f"{info}: gradtape_modules returned the class {item.__name__} for {name!r}, "
                    f"but the class says saved_as={own!r}; return it for this name, too, or "
                    "correct one of them"
                )
        return found

    def __get__(self, registry: Any, owner: type) -> Any:
        found = super().__get__(registry, owner)
        if registry is not None:
            found |= _at_places(registry, self.name, found, self.at_places)
        return found


class _Commands(Kind[str, Callable[..., None]]):
    """Commands of the command line."""

    def check(self, registry: Merged, info: PluginInfo, name: Any, item: Any, ops: Ops) -> None:
        if name.startswith("-") or name.split() != [name]:
            raise PluginError(
                f"{info}: the command {name!r} is no single word, so no command line can name it"
            )


class _Namespaces(Kind[str, Any]):
    """Modules under the package."""

    def check(self, registry: Merged, info: PluginInfo, name: Any, item: Any, ops: Ops) -> None:
        package = public_package()
        if not name.isidentifier() or name.startswith("_") or iskeyword(name):
            raise PluginError(
                f"{info}: gradtape_namespaces: {name!r} is no attribute; use an identifier that "
                "does not start with '_'"
            )
        if name in package.__all__ or find_spec(f"{package.__name__}.{name}") is not None:
            raise PluginError(
                f"{info}: gradtape_namespaces: {package.__name__}.{name} is gradtape's own; choose "
                "the name of your distribution"
            )


class _ByFunction(Kind[Any, Callable[..., Any]]):
    """Items by a function, instead of a name."""

    def items(self, info: PluginInfo, provided: Any) -> Iterable[tuple[Any, Any]]:
        if not isinstance(provided, Mapping):
            raise self._wrong(info, provided, f"a mapping from functions to {self.of}")
        for key, item in provided.items():
            if not callable(key):
                raise self._wrong(info, key, "a function", " as a key")
            if not self.right(item):
                raise self._wrong(info, item, self.of, f" for {key!r}")
        return provided.items()


def _is_path(item: Any) -> bool:
    return isinstance(item, ModuleType) or (
        type(item) is str and all(map(str.isidentifier, item.split(".")))
    )


def _is_service(item: Any) -> bool:
    module, _, name = item.partition(":") if type(item) is str else ("", "", "")
    found = type(item) is not str or (_is_path(module) and name.isidentifier())
    return item is not None and found


def _is(kind: Any) -> Callable[[Any], bool]:
    return lambda item: isinstance(item, kind)


def _has(*names: str) -> Callable[[Any], bool]:
    return lambda item: all(callable(getattr(item, name, None)) for name in names)


class Tables:
    """What plugins provide, by name: a table per hook.

    They are in the order of merging: rules and kernels come after the ops that they belong to.
    """

    ops = _Ops("op", "ops (instances of Op)", _is(Primitive), waits=False)
    gradients = _Rules(
        "rule",
        "a rule or rules by input",
        lambda rule: callable(rule) or isinstance(rule, Mapping),
        waits=False,
    )
    kernels = _Kernels(
        "kernel",
        "(op name, backend name)",
        lambda x: callable(x) or (type(x) is str and _is_service(x)),
        waits=False,
    )
    backends = _Backends("backend", "backends (instances of Backend)", _is(Backend), waits=False)
    modules = _Modules(
        "module",
        "a class, or a text 'module:attribute'",
        lambda x: isinstance(x, type) or (type(x) is str and _is_service(x)),
        reserves=True,
    )
    executors: Kind[str, Callable[..., Any]] = Kind("executor", "a function of a graph", callable)
    collectives = _Collectives(
        "collective", "engines (instances of Engine)", _is(Engine), waits=False
    )
    late_ops = _LateOps("late_op", "a function that returns ops", callable, waits=False)
    formats = _Endings(
        "format",
        "a function, an object with 'write', 'read' or 'open', or a text",
        lambda x: (
            callable(x)
            or (x and type(x) is str)
            or any(hasattr(x, name) for name in ("write", "read", "open"))
        ),
    )
    functions = _Functions(
        "function", "a function that returns a mapping from names", callable, waits=False
    )
    hints = _Hints("hint", "a mapping from names to texts", _are_texts, waits=False)
    names = _Names("name", "a mapping from names to objects", _is(Mapping))
    namespaces = _Namespaces("namespace", "a module, or the path of one", _is_path)
    lowerings = _Paired("lowering", "(op name, target)", callable)
    commands = _Commands("command", "a function of a parser", callable)
    exporters: Kind[str, Callable[..., Any]] = Kind("exporter", "a function", callable)
    storages = _Endings("storage", "a storage, which has 'write' and 'read'", _has("write", "read"))
    datasets: Kind[str, Callable[..., Any]] = Kind("dataset", "a function", callable)
    diagnoses: Kind[str, Callable[[], Any]] = Kind("diagnosis", "a function", callable)
    launchers: Kind[str, Any] = Kind(
        "launcher",
        "a launcher (an instance of Launcher)",
        _has("command", "environments"),
    )
    converters = _ByFunction("converter", "a function", callable)
    samples: Kind[str, Sequence[Any]] = Kind("sample", "a list of samples", _is(Sequence))
    services: Kind[str, Any] = Kind(
        "service", "an object, or a text 'module:attribute'", _is_service
    )


KINDS = tuple(kind for kind in vars(Tables).values() if isinstance(kind, Kind))
#: The kinds of things that plugins provide, by name.
BY_NAME = {kind.name: kind for kind in KINDS}
