"""``if``, ``and``, ``or``, ``not``, ``a if b else c``: Python's own, or ``cond`` in a trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.extend import (
    SCALARS,
    Branch,
    Node,
    Symbol,
    Tensor,
    Variable,
    active_graph,
    as_tensor,
    ops,
    trace_branch,
    user_line,
)
from .merging import merged
from .overflow import is_exact
from .raising import raising_while
from .state.mutations import Found, Watch
from .values import (
    Undefined,
    is_traced,
    living,
    truth,
)


def if_stmt(
    test: Any,
    body: Callable[[], None],
    orelse: Callable[[], None],
    get_state: Callable[[], tuple[Any, ...]],
    set_state: Callable[[tuple[Any, ...]], None],
    names: Sequence[str],
    count: int,
    blocks: Sequence[Callable[..., Any]] | None = None,
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
    blocks
        The user's functions that the blocks call; the blocks themselves by default.
    """
    if not is_traced(test):
        (body if test else orelse)()
        return
    test, start = truth(test, "'if'"), living(get_state(), names)
    watch = Watch("if", (body, orelse) if blocks is None else blocks, names, set_state)

    def side(block: Callable[[], None], holds: bool) -> Callable[[], Sequence[Any]]:
        def run() -> Sequence[Any]:
            set_state(_decided(start, test, holds))
            watch.set(_decided(watch.start, test, holds))
            try:
                with raising_while("both branches of the 'if' are traced"):
                    block()
                watch.find()
                return (*get_state()[:count], *watch.get())
            finally:
                set_state(start)
                watch.set(watch.start)

        return run

    found = _merged(
        watch, test, side(body, True), side(orelse, False), names[:count], start[:count]
    )
    set_state((*found[:count], *map(Undefined, names[count:])))
    watch.set(found[count:])


def _merged(
    watch: Watch, test: Tensor, if_true: Any, if_false: Any, names: Sequence[str], starts: Any
) -> list[Any]:
    """Return the values that two branches leave, and those of the places that they change."""
    with watch(), raising_while("an 'if' is traced"):
        while True:
            try:
                return merged(
                    test, if_true, if_false, [*names, *watch.names], [*starts, *watch.start]
                )
            except Found:
                continue


def _decided(values: Sequence[Any], test: Tensor, holds: bool) -> tuple[Any, ...]:
    """Return values in which the test's own tensor is replaced by its known value, ``holds``."""
    symbol = test.array
    if type(symbol) is not Symbol:
        return tuple(values)
    known = {id(symbol): holds}
    made = next((x for x in reversed(symbol.graph.nodes) if x.outputs[0] is symbol), None)
    if made is not None and made.op is ops["logical_not"]:
        known[id(made.inputs[0])] = not holds
    return tuple(known.get(id(x.array), x) if type(x) is Tensor else x for x in values)


# -- expressions -----------------------------------------------------------------------------------


def if_exp(test: Any, if_true: Callable[[], Any], if_false: Callable[[], Any]) -> Any:
    """Return the value of ``a if test else b``."""
    if not is_traced(test):
        return if_true() if test else if_false()
    return _chosen(truth(test, "'if'"), if_true, if_false, "the value of 'a if b else c'")


def _chosen(
    test: Tensor, if_true: Any, if_false: Any, name: str, blocks: Sequence[Any] | None = None
) -> Any:
    watch = Watch("if", (if_true, if_false) if blocks is None else blocks)

    def side(block: Callable[[], Any]) -> Callable[[], Sequence[Any]]:
        def run() -> Sequence[Any]:
            try:
                with raising_while(f"both sides of {name} are traced"):
                    value = _value(block())
                watch.find()
                return (value, *watch.get())
            finally:
                watch.set(watch.start)

        return run

    value, *places = _merged(watch, test, side(if_true), side(if_false), [name], [None])
    watch.set(places)
    return value


def _value(x: Any) -> Any:
    """Return an expression's value; for a variable, the tensor that it holds."""
    return as_tensor(x) if isinstance(x, Variable) else x


def and_(
    a: Callable[[], Any], b: Callable[[], Any], blocks: Sequence[Callable[..., Any]] | None = None
) -> Any:
    """Return the value of ``a and b``; a run evaluates ``b`` only if ``a`` is true.

    ``blocks`` are the user's functions that ``b`` calls; ``b`` itself by default.
    """
    first = a()
    if not is_traced(first):
        return first and b()
    blocks = (b,) if blocks is None else blocks
    if _may_run_always(first, b, blocks):
        return ops["logical_and"](first, b())
    return _chosen(truth(first, "'and'"), b, lambda: as_tensor(first), "the value of 'and'", blocks)


def or_(a: Callable[[], Any], b: Callable[[], Any]) -> Any:
    """Return the value of ``a or b``; a run evaluates ``b`` only if ``a`` is false."""
    first = a()
    if not is_traced(first):
        return first or b()
    if _may_run_always(first, b, (b,)):
        return ops["logical_or"](first, b())
    return _chosen(truth(first, "'or'"), lambda: as_tensor(first), b, "the value of 'or'", (b,))


def _is_cheap(node: Node) -> bool:
    """Return whether an op never fails, whatever the values, and costs less than a ``cond``.

    That holds for arithmetic, comparisons and logic of numbers.
    """
    op: Any = node.op
    if getattr(op, "batch", None) != "elementwise" or op.effect or op.host:
        return False
    return is_exact(op) or op.integers is abs or node.outputs[0].dtype.kind == "b"


def _may_run_always(first: Any, b: Callable[[], Any], blocks: Sequence[Any]) -> bool:
    """Return whether both are booleans and computing the second always has no visible effect."""
    if as_tensor(first).dtype.kind != "b":
        return False
    watch = Watch("and", blocks)
    with watch(), raising_while("both sides of 'and' or 'or' are traced"):
        probe = trace_branch("and", lambda: _value(b()), [], active_graph.get())
        if any(holder.changed() for holder in watch.holders):
            watch.restore()
            return False
    boolean = isinstance(probe.result, Tensor) and probe.result.dtype.kind == "b"
    cheap = all(map(_is_cheap, probe.nodes))
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
    if not rest:
        return found
    return and_(lambda: found, lambda: compare(second, *rest), [load for _, load in rest])


def not_(value: Any) -> Any:
    """Return the value of ``not value``."""
    if not is_traced(value):
        return not value
    return ops["logical_not"](truth(value, "'not'"))


def is_(a: Any, b: Any) -> bool:
    """Return the value of ``a is b``.

    Raises
    ------
    ValueError
        If only a run knows it: a number that became a tensor, or the result of a traced statement.
    """
    if a is b:
        return True
    for x, y in ((a, b), (b, a)):
        if not is_traced(x):
            continue
        if type(y) in SCALARS:
            raise ValueError(
                f"{user_line()}: 'is' compares a tensor with {y!r}; in a trace, variables that "
                "depend on a condition or a step are tensors: use '==', or the value itself for "
                "a boolean"
            )
        if is_traced(y) and _is_chosen(x):
            raise ValueError(
                f"{user_line()}: 'is' compares tensors of which one is the result of a traced "
                "statement; only a run decides which tensor it is: compare values with '=='"
            )
    return False


def is_not(a: Any, b: Any) -> bool:
    """Return the value of ``a is not b``; see :func:`is_`."""
    return not is_(a, b)


def _is_chosen(x: Any) -> bool:
    """Return whether a tensor comes from a traced choice or loop, or is one of a step."""
    symbol = getattr(x, "array", None)
    if type(symbol) is not Symbol:
        return False
    made = next(
        (node for node in symbol.graph.nodes if any(x is symbol for x in node.outputs)), None
    )
    if made is None:
        return isinstance(symbol.graph, Branch)
    return bool(getattr(made, "graphs", None))
