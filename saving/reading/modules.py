"""The module tree from JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...core.extend import Module, RestoredFunction, Variable, registry
from ..errors import DamagedFile, MissingOp
from ..records.loaded import LoadedModule, tracks
from ..records.schema import check_attribute, decode, tagged, take

__all__ = ["restore_attributes", "restore_config"]


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
        elif tracks(value):
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
