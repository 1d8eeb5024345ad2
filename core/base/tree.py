"""Nested containers: list, tuple, namedtuple and dict, flattened and rebuilt in the same order.

Dictionaries are walked by sorted key. Everything else is a leaf, ``None`` too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

# the kinds of containers; loops check them inline, where a call for each leaf would be slow
_CONTAINERS = (list, tuple, dict)


def sorted_keys(mapping: dict[Any, Any]) -> list[Any]:
    """Return the keys of a dictionary in the order in which it is walked."""
    try:
        return sorted(mapping)
    except TypeError:  # keys of several types: insertion order is the only order there is
        return list(mapping)


def flatten(tree: Any) -> list[Any]:
    """Return the leaves of ``tree`` in order."""
    if not isinstance(tree, _CONTAINERS):
        return [tree]
    leaves: list[Any] = []
    _flatten_into(tree, leaves)
    return leaves


def _flatten_into(tree: Any, leaves: list[Any]) -> None:
    for item in [tree[key] for key in sorted_keys(tree)] if isinstance(tree, dict) else tree:
        if isinstance(item, _CONTAINERS):
            _flatten_into(item, leaves)
        else:
            leaves.append(item)


def paths(tree: Any, root: str) -> Iterator[str]:
    """Yield the expression for each leaf of a tree named ``root``, such as ``root['a'][0]``."""
    if isinstance(tree, (list, tuple)):
        for i, item in enumerate(tree):
            yield from paths(item, f"{root}[{i}]")
    elif isinstance(tree, dict):
        for key in sorted_keys(tree):
            yield from paths(tree[key], f"{root}[{key!r}]")
    else:
        yield root


def pack_like(tree: Any, leaves: list[Any]) -> Any:
    """Return a container with the structure of ``tree`` and the leaves ``leaves``."""
    if not isinstance(tree, _CONTAINERS):
        return leaves[0]
    return _pack(tree, iter(leaves))


def _pack(tree: Any, leaves: Iterator[Any]) -> Any:
    if not isinstance(tree, _CONTAINERS):
        return next(leaves)
    if isinstance(tree, dict):
        values = {key: _pack(tree[key], leaves) for key in sorted_keys(tree)}
        return {key: values[key] for key in tree}
    packed = [_pack(x, leaves) if isinstance(x, _CONTAINERS) else next(leaves) for x in tree]
    if isinstance(tree, list):
        return packed
    return type(tree)(*packed) if hasattr(tree, "_fields") else tuple(packed)


def map_structure(function: Callable[[Any], Any], tree: Any) -> Any:
    """Apply ``function`` to every leaf of ``tree``, keeping the structure."""
    return pack_like(tree, [function(leaf) for leaf in flatten(tree)])


def outline(tree: Any) -> str:
    """Return the containers of ``tree`` for a message, with ``*`` for each leaf."""
    if isinstance(tree, dict):
        return f"{{{', '.join(f'{key!r}: {outline(tree[key])}' for key in tree)}}}"
    if not isinstance(tree, (list, tuple)):
        return "*"
    items = ", ".join(map(outline, tree))
    if hasattr(tree, "_fields"):
        return f"{type(tree).__name__}({items})"
    if isinstance(tree, list):
        return f"[{items}]"
    return f"({items}{',' * (len(tree) == 1)})"


def structure(tree: Any) -> Any:
    """Return a hashable description of the containers of ``tree``, without the leaves."""
    if isinstance(tree, (list, tuple)):
        kind = tree.__class__ if hasattr(tree, "_fields") else type(tree)
        return (kind.__name__, *[structure(item) for item in tree])
    if isinstance(tree, dict):
        keys = sorted_keys(tree)
        return ("dict", *[(key, structure(tree[key])) for key in keys])
    return None
