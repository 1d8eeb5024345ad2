"""All ops by name: ``gt.ops.sin``, and those of other packages, ``gt.ops.acme.act``.

An op called ``"acme::act"`` is ``gt.ops.acme.act``; dashes in a package's name become underscores.
Ops take tensors, and parameters by keyword. They are looked up in the registry at each use, so a
plugin's ops are here as long as the plugin is in use.

>>> gt.ops.sin(0.0).item()
0.0
>>> gt.ops.sum([[1.0, 2.0]], axis=1, keepdims=False).tolist()
[3.0]
"""

from __future__ import annotations

import re
import sys
from typing import Any

from ..core.extend import Registry, near_names, package_named, registry

__all__: list[str] = []


class Ops:
    """The ops whose names start with a path: attributes are ops and longer paths."""

    def __init__(self, path: tuple[str, ...]) -> None:
        self._path = path

    def __getattr__(self, name: str) -> Any:
        return _found((*self._path, name), self)

    def __dir__(self) -> list[str]:
        return _names(self._path)

    def __repr__(self) -> str:
        return f"<ops of {'.'.join(self._path)!r}>"


#: The registry whose ops the tree has, with their numbers; and the ops' names by their paths.
_tree: tuple[Any, dict[tuple[str, ...], list[str]]] = (None, {})


def _paths(known: Registry) -> dict[tuple[str, ...], list[str]]:
    """Return the names of ops by their paths; a path that only leads to others has none."""
    global _tree
    key = known, len(known.ops), len(known.late_ops), len(known.clashes)
    if _tree[0] != key:
        found: dict[tuple[str, ...], list[str]] = {}
        clashing = [name for kind, name in known.clashes if kind == "op"]
        for name in (*known.ops, *clashing):
            found.setdefault(_parts(name), []).append(name)
        for parts in (*list(found), *map(_parts, known.late_ops)):
            for end in range(1, len(parts) + 1):
                found.setdefault(parts[:end], [])
        _tree = key, found
    return _tree[1]


def _parts(name: str) -> tuple[str, ...]:
    """Return an op's name as a path of attributes."""
    return tuple(re.split(r"::|\.", name.replace("-", "_")))


def _found(path: tuple[str, ...], holder: Any) -> Any:
    """Return the op at a path, or the ops under it; raise AttributeError if there are none."""
    if path[-1].startswith("__"):
        raise AttributeError(path[-1])
    known = registry()
    _load(known, path[:-1])
    named = _paths(known).get(path)
    if named is None:
        place = ".".join(("gradtape.ops", *path[:-1]))
        near = near_names(path[-1], _names(path[:-1]))
        lacks = f"; {'or ' if near else ''}install {package_named(path[0])} that has such ops"
        text = f"{place} has no op {path[-1]!r}{near}{'' if path[1:] else lacks}"
    elif len(named) > 1:
        text = (
            f"gradtape.ops.{'.'.join(path)} may be {' or '.join(map(repr, named))}: use "
            f"gradtape.registry().op({named[0]!r})"
        )
    else:
        return known.op(named[0]) if named else Ops(path)
    # obj is set, because otherwise Python would set it and add a hint of its own
    raise AttributeError(text, obj=holder)


def _load(known: Registry, path: tuple[str, ...]) -> None:
    """Load the ops under a path that a plugin provides late."""
    for prefix in list(known.late_ops) if path else ():
        if path[: len(parts := _parts(prefix))] == parts:
            known.find(f"{prefix}::")


def _names(path: tuple[str, ...]) -> list[str]:
    """Return the attributes at a path."""
    known, count = registry(), len(path)
    _load(known, path)
    every = _paths(known)
    return sorted({x[-1] for x in every if len(x) == count + 1 and x[:count] == path})


def __getattr__(name: str) -> Any:
    return _found((name,), sys.modules[__name__])


def __dir__() -> list[str]:
    return _names(())
