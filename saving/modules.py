"""The module tree as JSON, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..core.function import RestoredFunction
from ..core.module import Module
from ..core.op import Op
from ..core.table import ops
from ..core.variable import Variable
from .errors import DamagedFile, SaveError
from .schema import SEGMENT, check_identifier, decode, encode, take

__all__ = ["LoadedModule", "attributes_of", "config_of", "restore_attributes", "restore_config"]


class LoadedModule(Module):
    """A module whose class is not known here: the saved tree, variables and functions.

    Attributes
    ----------
    class_name
        What the class was called where it was saved.
    signatures
        The functions given to ``save(signatures=...)``.
    """

    def __init__(self, name: str, class_name: str) -> None:
        super().__init__(name)
        self.class_name = class_name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module as it was called when it was saved."""
        call = vars(self).get("__call__")
        if call is None:
            raise TypeError(
                f"module {self.name!r} ({self.class_name}) was never called before it was "
                f"saved, so the file has no trace of it; it has: "
                f"{', '.join(self.functions()) or 'no functions'}"
            )
        return call(*args, **kwargs)

    def __repr__(self) -> str:
        count = len(self.variables)
        return f"<LoadedModule {self.name!r} of class {self.class_name}: {count} variables>"


def attributes_of(
    module: Module, number_of: Callable[[Variable | Module], dict[str, int]]
) -> dict[str, Any]:
    """Return a module's attributes as JSON: what it tracks, and plain values.

    Attributes of other kinds (arrays, functions, objects) are not part of a file.
    """
    result = {}
    for name in sorted(vars(module)):
        if name.startswith(("_gradtape", "__")) or name == "_name":
            continue
        value = vars(module)[name]
        encoded = _encode_attribute(value, number_of, f"{type(module).__name__}.{name}")
        if encoded is not None:
            result[name] = encoded
    return result


def _encode_attribute(value: Any, number_of: Callable[[Any], dict[str, int]], where: str) -> Any:
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
        check_identifier(name, where)
        if not generic and not _names_tracked(encoded):
            continue
        existing = getattr(type(module), name, None)
        if existing is not None and (callable(existing) or isinstance(existing, property)):
            raise DamagedFile(f"{where}: {name!r} is a method of {type(module).__name__}")
        setattr(module, name, _decode_attribute(encoded, variables, modules, where))


def _names_tracked(encoded: Any) -> bool:
    if type(encoded) is list:
        return any(_names_tracked(item) for item in encoded)
    if type(encoded) is not dict or len(encoded) != 1:
        return False
    ((tag, content),) = encoded.items()
    if tag in ("list", "tuple"):
        return _names_tracked(content)
    if tag == "dict" and type(content) is dict:
        return any(_names_tracked(item) for item in content.values())
    return tag in ("variable", "module")


def _decode_attribute(
    encoded: Any, variables: Sequence[Variable], modules: Sequence[Module], where: str
) -> Any:
    if encoded is None:
        return None
    if type(encoded) is dict and len(encoded) == 1:
        ((tag, content),) = encoded.items()
        for kind, pool in (("variable", variables), ("module", modules)):
            if tag == kind:
                if type(content) is not int or not 0 <= content < len(pool):
                    raise DamagedFile(f"{where}: no {kind} {content!r}")
                return pool[content]
        if tag in ("list", "tuple") and type(content) is list:
            items = [_decode_attribute(item, variables, modules, where) for item in content]
            return items if tag == "list" else tuple(items)
        if tag == "dict" and type(content) is dict:
            return {
                key: _decode_attribute(item, variables, modules, where)
                for key, item in content.items()
            }
        if tag == "value":
            return decode(content)
    raise DamagedFile(f"{where}: not an attribute: {str(encoded)[:80]}")


def config_of(
    module: Module, save_callable: Callable[[Any, Module, str], int], where: str
) -> dict[str, Any]:
    """Return a known class's configuration as JSON, callables as ops or traced functions."""
    get_config = getattr(module, "get_config", None)
    config = {} if get_config is None else get_config()
    result: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, Op):
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
    config = {}
    for key, encoded in record.items():
        check_identifier(key, where)
        if type(encoded) is not dict or len(encoded) != 1:
            raise DamagedFile(f"{where}: configuration {key!r}")
        ((tag, content),) = encoded.items()
        if tag == "value":
            config[key] = decode(content)
        elif tag == "op":
            config[key] = ops[take(encoded, "op", str, where)]
        elif tag == "function" and type(content) is int:
            config[key] = functions(content)
        else:
            raise DamagedFile(f"{where}: configuration {key!r}")
    build = getattr(cls, "from_config", None)
    try:
        module = cls(**config) if build is None else build(config)
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        raise DamagedFile(f"{where}: {cls.__name__} refuses its configuration: {error}") from None
    if not isinstance(module, Module):
        raise DamagedFile(f"{where}: {cls.__name__} is no module class")
    return module
