"""Variables and modules in objects that modules do not search."""

from __future__ import annotations

import functools
import types
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...core.extend import Module, Tensor, Variable

__all__ = ["is_code", "untracked"]

# So many objects are looked at.
_MOST = 10_000
_CLOSED_CODE = (types.FunctionType, types.BuiltinFunctionType, types.ModuleType, type, np.ufunc)
_CODE = (*_CLOSED_CODE, types.MethodType, functools.partial)
_CLOSED = (str, bytes, int, float, complex, np.ndarray, np.generic, Tensor, *_CLOSED_CODE)


def is_code(value: Any) -> bool:
    """Return whether a value is a function, a class or a Python module, which are never saved."""
    return isinstance(value, _CODE)


def untracked(value: Any) -> Iterator[tuple[str, Variable | Module]]:
    """Yield ``(path, variable or module)`` of all that an object holds, except in closures.

    Parameters
    ----------
    value
        An object that is not a module, list, tuple or dictionary.
    """
    seen = {id(value)}
    queue: deque[tuple[str, Any]] = deque([("", value)])
    while queue and len(seen) < _MOST:
        path, owner = queue.popleft()
        for place, item in _children(owner):
            if isinstance(item, (Variable, Module)):
                yield path + place, item
            elif id(item) not in seen and item is not None and not isinstance(item, _CLOSED):
                seen.add(id(item))
                queue.append((path + place, item))


def _children(owner: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(owner, dict):
        yield from ((f"[{key!r}]", item) for key, item in owner.items())
    elif isinstance(owner, (list, tuple, deque)):
        yield from ((f"[{i}]", item) for i, item in enumerate(owner))
    elif isinstance(owner, (set, frozenset)):
        yield from (("{...}", item) for item in owner)
    elif isinstance(owner, functools.partial):
        yield from _children(owner.args)
        yield from _children(owner.keywords)
    elif isinstance(owner, types.MethodType):
        yield ".__self__", owner.__self__
    else:
        yield from ((f".{name}", item) for name, item in getattr(owner, "__dict__", {}).items())
        for cls in type(owner).__mro__:
            slots = cls.__dict__.get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if name not in ("__dict__", "__weakref__") and hasattr(owner, name):
                    yield f".{name}", getattr(owner, name)
