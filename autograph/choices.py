"""``if``, ``and``, ``or``, ``not``, ``a if b else c``: Python's own, or ``cond`` in a trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.extend import Symbol, Tensor, Variable, active_graph, as_tensor, ops, trace_branch
from .merging import merged
from .mutations import raising_while, unchanged
from .values import (
    is_traced,
    living,
    truth,
)

__all__ = ["and_", "compare", "if_exp", "if_stmt", "not_", "or_"]


def if_stmt(
    test: Any,
    body: Callable[[], None],
    orelse: Callable[[], None],
    get_state: Callable[[], tuple[Any, ...]],
    set_state: Callable[[tuple[Any, ...]], None],
    names: Sequence[str],
    count: int,
) -> None:
    """Run one of two blocks.

    Parameters
    ----------
    test
        The condition.
    body, orelse
        The blocks. They change variables of the enclosing function.
    get_state, set_state
        Functions that return these variables and assign them.
    names
        The variables' names.
    count
        How many of the variables are used afterwards; these come first.
    """
    if not is_traced(test):
        (body if test else orelse)()
        return
    test, start = truth(test, "'if'"), living(get_state(), names)

    def side(block: Callable[[], None], holds: bool) -> Callable[[], Sequence[Any]]:
        def run() -> Sequence[Any]:
            set_state(_decided(start, test, holds))
            try:
                with raising_while("both branches of the 'if' are traced"):
                    block()
                return get_state()[:count]
            finally:
                set_state(start)

        return run

    with unchanged("if", names, body, orelse):
        found = merged(test, side(body, True), side(orelse, False), names[:count], start[:count])
    set_state((*found, *start[count:]))


def _decided(values: Sequence[Any], test: Tensor, holds: bool) -> tuple[Any, ...]:
    """Return values in which the test's own tensor is replaced by its known value, ``holds``."""
    symbol = test.array
    if type(symbol) is not Symbol:
        return tuple(values)
    known = {id(symbol): holds}
    made = next((x for x in reversed(symbol.graph.nodes) if x.outputs[0] is symbol), None)
    if made is not None and getattr(made.op, "name", None) == "logical_not":
        known[id(made.inputs[0])] = not holds
    return tuple(known.get(id(x.array), x) if type(x) is Tensor else x for x in values)


# -- expressions -----------------------------------------------------------------------------------


def if_exp(test: Any, if_true: Callable[[], Any], if_false: Callable[[], Any]) -> Any:
    """Return the value of ``a if test else b``."""
    if not is_traced(test):
        return if_true() if test else if_false()
    return _chosen(truth(test, "'if'"), if_true, if_false, "the value of 'a if b else c'")


def _chosen(test: Tensor, if_true: Any, if_false: Any, name: str) -> Any:
    (found,) = merged(
        test, lambda: [_value(if_true())], lambda: [_value(if_false())], [name], [None]
    )
    return found


def _value(x: Any) -> Any:
    """Return an expression's value; for a variable, the tensor that it holds."""
    return as_tensor(x) if isinstance(x, Variable) else x


def and_(a: Callable[[], Any], b: Callable[[], Any]) -> Any:
    """Return the value of ``a and b``; a run evaluates ``b`` only if ``a`` is true."""
    first = a()
    if not is_traced(first):
        return first and b()
    if _may_run_always(first, b):
        return ops["logical_and"](first, b())
    return _chosen(truth(first, "'and'"), b, lambda: as_tensor(first), "the value of 'and'")


def or_(a: Callable[[], Any], b: Callable[[], Any]) -> Any:
    """Return the value of ``a or b``; a run evaluates ``b`` only if ``a`` is false."""
    first = a()
    if not is_traced(first):
        return first or b()
    if _may_run_always(first, b):
        return ops["logical_or"](first, b())
    return _chosen(truth(first, "'or'"), lambda: as_tensor(first), b, "the value of 'or'")


# Ops that never fail, whatever the values, and cost less than a `cond`.
_CHEAP = frozenset(
    "absolute add equal greater greater_equal less less_equal logical_and logical_not logical_or "
    "multiply negative not_equal subtract".split()
)


def _may_run_always(first: Any, b: Callable[[], Any]) -> bool:
    """Return whether both are booleans and computing the second always has no visible effect."""
    if as_tensor(first).dtype.kind != "b":
        return False
    probe = trace_branch("and", lambda: _value(b()), [], active_graph.get())
    boolean = isinstance(probe.result, Tensor) and probe.result.dtype.kind == "b"
    cheap = all(getattr(node.op, "name", "") in _CHEAP for node in probe.nodes)
    return boolean and cheap and probe.outputs[0].shape == ()


def compare(first: Any, *pairs: Any) -> Any:
    """Return the value of ``a < b < c``: each operand is evaluated once, and only if needed.

    Parameters
    ----------
    first
        The first operand.
    pairs
        For each further operand, the comparison and a function that returns the operand.
    """
    (test, load), *rest = pairs
    second = load()
    found = test(first, second)
    return and_(lambda: found, lambda: compare(second, *rest)) if rest else found


def not_(value: Any) -> Any:
    """Return the value of ``not value``."""
    if not is_traced(value):
        return not value
    return ops["logical_not"](truth(value, "'not'"))
