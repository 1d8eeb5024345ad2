"""Replacements of Python's builtin functions that accept traced tensors."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from malt.operators import py_builtins

from ..core.extend import Tensor, ops, registry
from ..plugins.ops.elementwise.arithmetic import maximum, minimum
from .effects import hashed, print_
from .iterables import enumerate_, len_, range_, reversed_, zip_
from .values import is_traced, truth


def _cast(kind: Any, dtype: str) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and is_traced(args[0]) and isinstance(args[0], Tensor):
            return ops["cast"](args[0], dtype=dtype)
        return kind(*args, **kwargs)

    return run


def _bool(*args: Any) -> Any:
    return truth(args[0], "bool()") if args and is_traced(args[0]) else bool(*args)


def _reduced(kind: Any, name: str) -> Callable[..., Any]:
    def run(x: Any) -> Any:
        if not is_traced(x):
            return kind(x)
        return ops[name](x, axis=None, keepdims=False)

    return run


def _extreme(kind: Any, name: str, pair: Any) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        if kwargs or not args:
            return kind(*args, **kwargs)
        if len(args) == 1 and is_traced(args[0]):
            return ops[name](args[0], axis=None, keepdims=False)
        items = args if len(args) > 1 else args[0]
        if not isinstance(items, (list, tuple)) or not any(map(is_traced, items)):
            return kind(*args)
        found = items[0]
        for x in items[1:]:
            found = pair(found, x)
        return found

    return run


def _keyed(kind: Any) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        return kind(*[x if hasattr(x, "keys") else map(_key, x) for x in args], **kwargs)

    def _key(x: Any) -> Any:
        return (hashed(x[0]), *x[1:]) if kind is dict and isinstance(x, tuple) and x else hashed(x)

    return run


#: What the plugin provides by the hook gradtape_converters.
OVERLOADS: dict[Any, Callable[..., Any]] = {
    all: _reduced(all, "all"),
    any: _reduced(any, "any"),
    bool: _bool,
    dict: _keyed(dict),
    enumerate: enumerate_,
    float: _cast(float, "float32"),
    frozenset: _keyed(frozenset),
    int: _cast(int, "int64"),
    len: len_,
    max: _extreme(max, "max", maximum),
    min: _extreme(min, "min", minimum),
    print: print_,
    range: range_,
    reversed: reversed_,
    set: _keyed(set),
    zip: zip_,
}


def overload_of(f: Any, scope: Any) -> Callable[..., Any] | None:
    """Return what converted code calls instead of a function; None if it calls the function.

    Parameters
    ----------
    f
        The function.
    scope
        The scope of the caller, which functions such as ``locals`` need.
    """
    if any(f is x for x in (builtins.super, builtins.eval, builtins.globals, builtins.locals)):
        return _in_original_context(f, scope)
    known = registry()
    found: Callable[..., Any] | None = known.converters.get(f)
    if found is None and known.clashes:
        known.refuse_clash("converter", f)
    return found


def _in_original_context(f: Any, scope: Any) -> Callable[..., Any]:
    if f is builtins.super:
        return lambda *args: py_builtins.super_in_original_context(f, args, scope)
    if f is builtins.eval:
        return lambda *args: py_builtins.eval_in_original_context(f, args, scope)
    name = "globals" if f is builtins.globals else "locals"
    return lambda: getattr(py_builtins, f"{name}_in_original_context")(scope)
