"""Attributes of modules in displayed form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import DamagedFile, printable
from ..records.schema import tagged
from .words import shown

_BRACKETS = {"list": "[]", "tuple": "()", "set": "{}", "frozenset": "{}"}


def children(encoded: Any) -> list[tuple[str, Any]] | None:
    """Return the contents of a container, by index or key; None if it is not one."""
    if encoded is None:
        return None
    tag, content = tagged(encoded, "module")
    if tag in _BRACKETS and type(content) is list:
        return [(str(i), item) for i, item in enumerate(content)]
    if tag == "dict" and type(content) is dict:
        return list(content.items())
    if tag != "items" or type(content) is not list:
        return None
    for pair in content:
        if type(pair) is not list or len(pair) != 2:
            raise DamagedFile(f"module: not an item: {str(pair)[:80]!r}")
    return [(shown(key, "module"), item) for key, item in content]


def is_plain(encoded: Any) -> bool:
    """Return whether an attribute holds neither variables nor modules."""
    inside = children(encoded)
    if inside is not None:
        return all(is_plain(item) for _, item in inside)
    return encoded is None or tagged(encoded, "module")[0] not in ("variable", "module")


def attribute_text(encoded: Any) -> str:
    """Return an attribute without variables and modules as Python would print it."""
    if encoded is None:
        return "..."
    tag, content = tagged(encoded, "module")
    inside = children(encoded)
    if inside is None:
        return shown(content if tag == "value" else encoded, "module")
    if tag in _BRACKETS:
        text = ", ".join(attribute_text(item) for _, item in inside)
        return f"{_BRACKETS[tag][0]}{text}{_BRACKETS[tag][1]}"
    items = [f"{printable(key)}: {attribute_text(item)}" for key, item in inside]
    return "{" + ", ".join(items) + "}"


def with_arrays(encoded: Any, content_of: Callable[[str], str]) -> Any:
    """Return an attribute's JSON with the content of arrays instead of their datasets."""
    if type(encoded) is list:
        return [with_arrays(item, content_of) for item in encoded]
    if type(encoded) is not dict:
        return encoded
    return {
        key: content_of(item)
        if key in ("array", "tensor") and type(item) is str and len(encoded) == 1
        else with_arrays(item, content_of)
        for key, item in encoded.items()
    }
