"""Variables and modules in objects that modules do not search: nobody trains or saves them."""

from __future__ import annotations

import functools
import types
from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from ..base.user_code import warn_user
from ..functions.concrete import RestoredFunction
from ..functions.function import Function
from ..tensors.tensor import Tensor
from ..tensors.variable import Variable
from .calls import PLAIN
from .module import Module
from .summary import has_future_weights

# So many objects are looked at.
_MOST = 10_000
_CLOSED_CODE = (types.FunctionType, types.BuiltinFunctionType, types.ModuleType, type, np.ufunc)
_CODE = (*_CLOSED_CODE, types.MethodType, functools.partial)
_OURS = (Tensor, Function, RestoredFunction)
_CLOSED = (str, bytes, int, float, complex, np.ndarray, np.generic, *_OURS, *_CLOSED_CODE)


def is_code(value: Any) -> bool:
    """Return whether a value is a function, a class or a Python module, which are never saved."""
    return isinstance(value, _CODE)


def untracked(value: Any) -> Iterator[tuple[str, Variable | Module]]:
    """Yield ``(path, variable or module)`` of all that an object holds, except in closures.

    Parameters
    ----------
    value
        An object that is not a module.
    """
    seen = {id(value)}
    queue: deque[tuple[str, Any]] = deque([("", value)])
    while queue and len(seen) < _MOST:
        path, owner = queue.popleft()
        for place, item in _looked_at(owner):
            if isinstance(item, (Variable, Module)):
                yield path + place, item
            elif id(item) not in seen and item is not None and not isinstance(item, _CLOSED):
                seen.add(id(item))
                queue.append((path + place, item))


def _looked_at(owner: Any) -> list[tuple[str, Any]]:
    try:
        return list(islice(_children(owner), _MOST))
    except Exception:  # a proxy of nothing yet, or what another thread changes
        return []


def slots_of(owner: Any, cls: type) -> Iterator[tuple[str, Any]]:
    """Yield ``(name, value)`` of the slots that are set, of those that one class gives an object.

    Parameters
    ----------
    owner
        The object.
    cls
        Its class, or one that this extends.
    """
    slots = vars(cls).get("__slots__", ())
    for name in (slots,) if isinstance(slots, str) else slots:
        if name not in ("__dict__", "__weakref__") and hasattr(owner, name):
            yield name, getattr(owner, name)


def warn_of_hidden(root: Module, method: str) -> None:
    """Warn about variables in a module that are neither trained nor saved with it.

    Parameters
    ----------
    root
        The module.
    method
        The caller, for the message.
    """
    found = list(islice(_hidden(root), 4))
    if found:
        warn_user(
            f"{method}: {', '.join(found[:3])}{' and more' if len(found) > 3 else ''}: modules "
            "find variables in attributes, lists, tuples and dicts, but not in other objects, so "
            "this is neither trained nor saved. Keep it in one of these, or make the object a "
            "gradtape.Module; what is not the module's own may be in a function (lambda: x)",
            UserWarning,
        )


def _hidden(root: Module) -> Iterator[str]:
    """Yield the paths of what modules do not find."""
    modules = [("", root)]
    known = {id(root)}
    for path, leaf in root.named_leaves():
        known.add(id(leaf))
        if isinstance(leaf, Module):
            modules.append((f".{path.replace('/', '.')}", leaf))
    for path, module in modules:
        for name, value in vars(module).items():
            if type(value) in PLAIN or isinstance(value, (Variable, Module, *_CLOSED)):
                continue
            if name.startswith("_gradtape"):
                continue
            inside = list(untracked(value))
            if any(item is root or item is module for _, item in inside):
                continue  # it holds the module, and is no part of it
            for place, item in inside:
                if id(item) not in known and _is_lost(item):
                    yield f"{root.name}{path}.{name}{place}"


def _is_lost(item: Variable | Module) -> bool:
    """Return whether somebody would miss it; not the states of optimizers and metrics."""
    if isinstance(item, Variable):
        return True
    return has_future_weights(item) or bool(item.trainable_variables)


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
            yield from ((f".{name}", item) for name, item in slots_of(owner, cls))
