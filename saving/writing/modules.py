"""The module tree as JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.extend import Module, Op, Variable
from ..container.profile import SEGMENT
from ..errors import SaveError
from ..records.loaded import signatures_of, tracks
from ..records.schema import encode, is_attribute

__all__ = ["attributes_of", "config_of"]


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
        elif tracks(value):
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
                if not tracks(item):
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
