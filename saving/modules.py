"""The module tree as JSON, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..core.extend import Module, Op, RestoredFunction, Variable, registry
from .errors import DamagedFile, MissingOp, SaveError
from .schema import SEGMENT, check_attribute, decode, encode, is_attribute, tagged, take

__all__ = [
    "LoadedModule",
    "attributes_of",
    "config_of",
    "is_ordered",
    "restore_attributes",
    "restore_config",
    "signatures_of",
]

_CLASS = "_gradtape_class_name"
_UNTRACED = "_gradtape_untraced"
_ORDERED = "_gradtape_ordered"


class LoadedModule(Module):
    """A module whose class is not known here: the saved tree, variables and functions.

    Its functions are attributes, under the names that the methods had; calling it calls what
    ``__call__`` was. ``signatures``, if the file has any, is a dictionary of the functions that
    were given to ``save(signatures=...)``.
    """

    def __init__(
        self, name: str, class_name: str, untraced: Mapping[str, str], ordered: bool = False
    ) -> None:
        super().__init__(name)
        vars(self)[_CLASS] = class_name
        vars(self)[_UNTRACED] = dict(untraced)
        vars(self)[_ORDERED] = ordered

    @property
    def class_name(self) -> str:
        """What the class was called where it was saved."""
        return str(vars(self)[_CLASS])

    @property
    def untraced(self) -> dict[str, str]:
        """The methods that the file does not hold, with the reason."""
        return dict(vars(self)[_UNTRACED])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module as it was called when it was saved."""
        call = vars(self).get("__call__")
        if call is None:
            raise TypeError(self._missing("__call__"))
        return call(*args, **kwargs)

    def _attribute_order(self) -> list[str]:
        return list(vars(self)) if vars(self)[_ORDERED] else super()._attribute_order()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # what copying and printing ask for; not worth a message
            raise AttributeError(name)
        raise AttributeError(self._missing(name), name=name, obj=self)

    def _missing(self, name: str) -> str:
        reason = vars(self).get(_UNTRACED, {}).get(name)
        if reason is None and name == "__call__":
            reason = "it was never called before it was saved"
        said = f" ({reason})" if reason else ""
        functions = ", ".join(self.functions()) or "none"
        return (
            f"module {self.name!r}, saved from class {self.class_name}, has no {name!r}{said}; the "
            f"functions that were saved with it: {functions}"
        )

    def __repr__(self) -> str:
        count = len(self.variables)
        return f"<LoadedModule {self.name!r} of class {self.class_name}: {count} variables>"


def is_ordered(module: Module) -> bool:
    """Return whether a module lists variables in the order in which they were set, as layers do."""
    if isinstance(module, LoadedModule):
        return bool(vars(module)[_ORDERED])
    return type(module)._attribute_order is not Module._attribute_order


def signatures_of(module: Module) -> dict[str, RestoredFunction]:
    """Return the signatures that a module was loaded with."""
    held = vars(module).get("signatures")
    if type(held) is dict and all(isinstance(f, RestoredFunction) for f in held.values()):
        return dict(held)
    return {}


def attributes_of(
    module: Module, number_of: Callable[[Variable | Module], dict[str, int] | None]
) -> dict[str, Any]:
    """Return a module's attributes as JSON: what it tracks, and plain values.

    They are in the order in which they were set, which is the order of a layer's weights.
    Attributes of other kinds (arrays, functions, objects) are not part of a file.
    """
    result = {}
    restored = signatures_of(module)
    for name, value in vars(module).items():
        if name.startswith("_gradtape") or (name == "signatures" and restored):
            continue
        where = f"{type(module).__name__}.{name}"
        try:
            encoded = _encode_attribute(value, number_of, where)
        except RecursionError:
            raise SaveError(f"{where}: a container that holds itself cannot be saved") from None
        if encoded is None:
            continue
        if is_attribute(name):
            result[name] = encoded
        elif _tracks(value):
            raise SaveError(
                f"{where}: {name!r} cannot be the name of an attribute in a file, since every "
                "module has it, or it is not made of ASCII letters, digits and '_'; rename it"
            )
    return result


def _encode_attribute(
    value: Any, number_of: Callable[[Any], dict[str, int] | None], where: str
) -> Any:
    if isinstance(value, (Variable, Module)):
        return number_of(value)
    if isinstance(value, (list, tuple)):
        items = [_encode_attribute(item, number_of, where) for item in value]
        return {"tuple" if isinstance(value, tuple) else "list": items}
    if isinstance(value, dict):
        tracked = {}
        for key, item in value.items():
            encoded = _encode_attribute(item, number_of, where)
            if encoded is None:
                continue
            if type(key) is not str or not SEGMENT.match(key):
                if not _tracks(item):
                    continue
                raise SaveError(
                    f"{where}: the key {key!r} cannot be a name in a file; use a string of "
                    "letters, digits, '_', '.', '-' and spaces"
                )
            tracked[key] = encoded
        return {"dict": tracked}
    if value is None or type(value) in (bool, int, float, complex, str):
        return {"value": encode(value, where)}
    return None


def _tracks(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_tracks(item) for item in value)
    if isinstance(value, dict):
        return any(_tracks(item) for item in value.values())
    return isinstance(value, (Variable, Module))


def restore_attributes(
    module: Module,
    record: Mapping[str, Any],
    variables: Sequence[Variable],
    modules: Sequence[Module],
    where: str,
) -> None:
    """Set the attributes of a module from JSON; on a rebuilt class, only what it tracks."""
    generic = type(module) is LoadedModule
    for name, encoded in record.items():
        check_attribute(name, where)
        value = _decode_attribute(encoded, variables, modules, where)
        if generic:
            vars(module)[name] = value
        elif _tracks(value):
            existing = getattr(type(module), name, None)
            if callable(existing) or isinstance(existing, property):
                raise DamagedFile(f"{where}: {name!r} is a method of {type(module).__name__}")
            try:
                setattr(module, name, value)
            except Exception as error:  # the class is a plugin's, what it is given a stranger's
                raise DamagedFile(
                    f"{where}: {type(module).__name__} refuses {name!r}: {error}"
                ) from None


def _decode_attribute(
    encoded: Any, variables: Sequence[Variable], modules: Sequence[Module], where: str
) -> Any:
    if encoded is None:
        return None
    tag, content = tagged(encoded, where)
    for kind, pool in (("variable", variables), ("module", modules)):
        if tag == kind:
            if type(content) is not int or not 0 <= content < len(pool):
                raise DamagedFile(f"{where}: no {kind} {str(content)[:40]}")
            return pool[content]
    if tag in ("list", "tuple") and type(content) is list:
        items = [_decode_attribute(item, variables, modules, where) for item in content]
        return items if tag == "list" else tuple(items)
    if tag == "dict" and type(content) is dict:
        return {
            key: _decode_attribute(item, variables, modules, where) for key, item in content.items()
        }
    if tag == "value":
        return decode(content)
    raise DamagedFile(f"{where}: not an attribute: {str(encoded)[:80]}")


def config_of(
    module: Module,
    save_op: Callable[[Op], None],
    save_callable: Callable[[Any, Module, str], int],
    where: str,
) -> dict[str, Any]:
    """Return a known class's configuration as JSON, callables as ops or traced functions."""
    get_config = getattr(module, "get_config", None)
    config = {} if get_config is None else get_config()
    result: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, Op):
            save_op(value)
            result[key] = {"op": value.name}
        elif callable(value):
            result[key] = {"function": save_callable(value, module, f"{where}: {key}")}
        else:
            result[key] = {"value": encode(value, f"{where}: configuration {key!r}")}
    return result


def restore_config(
    cls: type, record: Any, functions: Callable[[int], RestoredFunction], where: str
) -> Module:
    """Rebuild a known class from its configuration."""
    config: dict[str, Any] = {}
    for key, encoded in record.items():
        tag, content = tagged(encoded, f"{where}: configuration {key[:80]!r}")
        if tag == "value":
            config[key] = decode(content)
        elif tag == "op":
            name = take(encoded, "op", str, where)
            if name not in registry().ops:
                raise MissingOp(f"{where}: no installed plugin provides the op {name[:80]!r}")
            config[key] = registry().ops[name]
        elif tag == "function":
            config[key] = functions(content)
        else:
            raise DamagedFile(f"{where}: configuration {key[:80]!r} is a {tag[:80]!r}")
    build = getattr(cls, "from_config", None)
    try:
        module = cls(**config) if build is None else build(config)
    except Exception as error:  # the class is a plugin's, what it is given a stranger's
        raise DamagedFile(f"{where}: {cls.__name__} refuses its configuration: {error}") from None
    if not isinstance(module, Module):
        raise DamagedFile(f"{where}: {cls.__name__} is no module class")
    return module
