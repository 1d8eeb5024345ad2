"""Python's builtin functions for traced tensors, and the iterables of a ``for``."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

from malt.operators import py_builtins

from ..core.extend import (
    Tensor,
    Variable,
    active_graph,
    as_tensor,
    flatten,
    is_open,
    map_structure,
    ops,
    registry,
    smallest,
    user_line,
)
from ..plugins.ops.elementwise.arithmetic import maximum, minimum
from ..plugins.ops.shapes.ranges import arange
from .effects import hashed, print_
from .values import is_traced, truth

# -- iterables: rows of tensors, and ``range``, ``enumerate``, ``zip`` -----------------------------


class LoopRows:
    """Tensors that a traced loop iterates over together, one row at a time.

    Parameters
    ----------
    tensors
        The tensors, in any containers. Each item has the same containers.
    """

    def __init__(self, tensors: Any) -> None:
        self.tensors = tensors
        lengths = [_length(x) for x in flatten(tensors)]
        self.length = smallest(*lengths) if len(lengths) > 1 else lengths[0]
        if any(n is not self.length for n in lengths):
            self.tensors = map_structure(lambda x: x[: self.length], tensors)

    def __len__(self) -> int:
        return int(self.length)

    def item(self, row: Any) -> Any:
        """Return the loop's item for a row of the tensors."""
        return row

    def at(self, i: Tensor) -> Any:
        """Return the item at an index."""
        return map_structure(lambda x: x[i], self.tensors)

    def first(self, most: Any) -> LoopRows:
        """Return the first ``most`` rows, or all of them if there are fewer."""
        return LoopRows(map_structure(lambda x: x[:most], self.tensors))

    def __iter__(self) -> Any:
        for i in range(len(self)):
            yield map_structure(lambda x: x[i], self.tensors)  # noqa: B023


def _length(x: Tensor) -> Any:
    if x.shape is None:
        raise ValueError(
            f"{user_line()}: 'for' iterates over the first axis of a tensor, but this tensor's "
            "rank is unknown: give its TensorSpec a shape"
        )
    if not x.shape:
        raise TypeError(
            f"{user_line()}: 'for' iterates over the first axis of a tensor, but this tensor has "
            "shape (): give it an axis, with gradtape.reshape(x, (-1,)) for example"
        )
    return x.shape[0]


def rows_of(iterated: Any) -> LoopRows | None:
    """Return the rows that a trace iterates over in one op; None if Python iterates instead."""
    if isinstance(iterated, LoopRows):
        return iterated
    if isinstance(iterated, Variable):
        iterated = iterated.value
    if isinstance(iterated, Tensor) and (active_graph.get() is not None or is_traced(iterated)):
        return LoopRows(as_tensor(iterated))
    return None


def range_(*bounds: Any) -> Any:
    """Return ``range(...)``; the integers as a tensor if a bound is traced."""
    if not any(map(is_traced, bounds)):
        return range(*bounds)
    return LoopRows(arange(*bounds))


def len_(x: Any) -> Any:
    """Return ``len(x)``; for a tensor whose length is unknown in the trace, its size."""
    if isinstance(x, Tensor) and x.shape and is_open(x.shape[0]):
        return x.shape[0]
    return x.length if isinstance(x, LoopRows) else len(x)


def _all_rows(iterables: Sequence[Any]) -> list[LoopRows] | None:
    found = [rows_of(x) for x in iterables]
    return None if not found or None in found else found  # type: ignore[return-value]


def enumerate_(iterable: Any, start: Any = 0) -> Any:
    """Return ``enumerate(...)``; for a tensor, its indices and rows as :class:`LoopRows`."""
    rows = rows_of(iterable)
    if rows is None:
        return enumerate(iterable, start)
    return LoopRows((arange(rows.length) + start, rows.tensors))


def zip_(*iterables: Any, strict: bool = False) -> Any:
    """Return ``zip(...)``; for tensors, their rows together as :class:`LoopRows`."""
    rows = _all_rows(iterables)
    if rows is None:
        return zip(*iterables, strict=strict)
    if strict and any(x.length != rows[0].length for x in rows):
        raise ValueError(f"{user_line()}: zip() arguments have different lengths")
    return LoopRows(tuple([x.tensors for x in rows]))


def reversed_(iterable: Any) -> Any:
    """Return ``reversed(...)``; for a tensor, its rows in reverse order as :class:`LoopRows`."""
    rows = rows_of(iterable)
    if rows is None:
        return reversed(iterable)
    return LoopRows(map_structure(lambda x: ops["flip"](x, axis=0), rows.tensors))


# -- replacements of builtin functions -------------------------------------------------------------


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
