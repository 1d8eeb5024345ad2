"""``if``, ``and``, ``or``, ``not``, the ternary: Python's own, and ``cond`` on what is traced."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..core.extend import Symbol, Tensor, as_tensor, flatten, ops, pack_like, user_line
from ..plugins.ops.control.cond import cond
from .mutations import raising_while, unchanged
from .values import (
    Form,
    Held,
    Maybe,
    described,
    held_by,
    is_number,
    is_traced,
    is_weak,
    living,
    same_form,
    same_python,
    truth,
)

__all__ = ["and_", "compare", "if_exp", "if_stmt", "not_", "or_", "staged_if"]


class Again(Exception):
    """What a trace finds later decides how it is to be made: it is made once more."""


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
        Which one.
    body, orelse
        The blocks, which change variables of the function around them.
    get_state, set_state
        What returns these variables, and gives them values.
    names
        What they are called.
    count
        How many of them, the first ones, are used afterwards.
    """
    if not is_traced(test):
        (body if test else orelse)()
        return
    staged_if(truth(test, "'if'"), body, orelse, get_state, set_state, names, count)


def staged_if(
    test: Tensor,
    body: Callable[[], None],
    orelse: Callable[[], None],
    get_state: Callable[[], tuple[Any, ...]],
    set_state: Callable[[tuple[Any, ...]], None],
    names: Sequence[str],
    count: int,
) -> None:
    """Do as :func:`if_stmt` does, where both blocks are traced."""
    start = living(get_state(), names)

    def side(block: Callable[[], None], holds: bool) -> Callable[[], Sequence[Any]]:
        def run() -> Sequence[Any]:
            set_state(_decided(start, test, holds))
            try:
                with raising_while("both ways of the 'if' are traced"):
                    block()
                return get_state()[:count]
            finally:
                set_state(start)

        return run

    with unchanged("if", names, body, orelse):
        found = merged(test, side(body, True), side(orelse, False), names[:count], start[:count])
    set_state((*found, *start[count:]))


def _decided(values: Sequence[Any], test: Tensor, holds: bool) -> tuple[Any, ...]:
    """Return values with what is known of them where a test holds, or does not."""
    symbol = test.array
    if type(symbol) is not Symbol:
        return tuple(values)
    known = {id(symbol): holds}
    made = next((x for x in reversed(symbol.graph.nodes) if x.outputs[0] is symbol), None)
    if made is not None and getattr(made.op, "name", None) == "logical_not":
        known[id(made.inputs[0])] = not holds
    return tuple(known.get(id(x.array), x) if type(x) is Tensor else x for x in values)


# -- what both sides make --------------------------------------------------------------------------


class _Plan:
    """How a variable leaves both sides: the same containers, dtypes, and whether it is assigned."""

    def __init__(self, maybe: bool) -> None:
        self.form: Form | None = None
        self.maybe = maybe
        self.dtypes: dict[int, Any] = {}
        self.memories: dict[int, Any] = {}

    def held_by(self, value: Any) -> Held:
        """Return what a variable holds; arrays of tensors as one tensor, where a side has one."""
        held = held_by(value)
        if not self.memories or held.assigned is False:
            return held
        leaves = held.leaves
        for i, shape in self.memories.items():
            if hasattr(leaves[i], "as_memory"):
                leaves[i] = leaves[i].as_memory(shape)
        return held._replace(value=pack_like(held.value, leaves))

    def emitted(self, held: Held) -> Iterator[Tensor]:
        """Yield what one side returns of a variable."""
        value = held.value
        if held.assigned is False:
            if self.form is None:
                return
            value = self.form.value()
        for i, leaf in enumerate(flatten(value)):
            if is_number(leaf):
                dtype = self.dtypes.get(i)
                yield as_tensor(leaf, dtype) if is_weak(leaf) else _in_dtype(leaf, dtype)
        if self.maybe:
            yield as_tensor(held.assigned)


def _in_dtype(leaf: Any, dtype: Any) -> Tensor:
    tensor = as_tensor(leaf)
    return tensor if dtype in (None, tensor.dtype) else ops["cast"](tensor, dtype=dtype)


def merged(
    test: Tensor,
    if_true: Callable[[], Sequence[Any]],
    if_false: Callable[[], Sequence[Any]],
    names: Sequence[str],
    starts: Sequence[Any],
) -> list[Any]:
    """Return the values of the side that a test chooses, traced side by side.

    Parameters
    ----------
    test
        What chooses.
    if_true, if_false
        What returns the values of either side.
    names
        What they are called.
    starts
        What they are before: whether a variable is assigned is asked where it was not.

    Raises
    ------
    TypeError, ValueError
        If the sides give a variable another dtype, form or Python value; it names the variable.
    """
    plans = [_Plan(held_by(x).assigned is not True) for x in starts]
    while True:
        sides: list[list[Held]] = [[], []]

        def traced(i: int, run: Callable[[], Sequence[Any]]) -> Callable[[], list[Tensor]]:
            def branch() -> list[Tensor]:
                sides[i] = [plan.held_by(x) for plan, x in zip(plans, run(), strict=True)]  # noqa: B023
                if i:
                    _agree(plans, sides, names)  # noqa: B023
                made = zip(plans, sides[i], strict=True)  # noqa: B023
                # an op has one result at least
                return [x for plan, held in made for x in plan.emitted(held)] or [as_tensor(True)]

            return branch

        try:
            found = cond(test, traced(0, if_true), traced(1, if_false))
        except Again:
            continue
        rest = iter(found)
        return [
            _together(name, plan, a, b, rest)
            for name, plan, a, b in zip(names, plans, *sides, strict=True)
        ]


def _agree(plans: Sequence[_Plan], sides: Sequence[Sequence[Held]], names: Sequence[str]) -> None:
    """Look at what both sides made; raise if they cannot go together, or must be made again."""
    again = False
    for plan, name, a, b in zip(plans, names, *sides, strict=True):
        if a.assigned is False and b.assigned is False:
            continue
        if not (a.assigned is True and b.assigned is True):
            if "." in name or "[" in name:
                raise ValueError(
                    f"{user_line()}: {name} is assigned on one way of a traced 'if' only, and has "
                    "no value before it; give it one"
                )
            again |= not plan.maybe
            plan.maybe = True
        if a.assigned is False or b.assigned is False:
            if plan.form is None:
                plan.form = Form.of(a.value if b.assigned is False else b.value)
                again |= a.assigned is False  # it has been traced already
            continue
        same_form(_called(name), a.value, b.value, ("if the condition holds", "otherwise"))
        for i, (x, y) in enumerate(zip(a.leaves, b.leaves, strict=True)):
            again |= _same_leaf(plan, i, _called(name), x, y)
    if again:
        raise Again


def _called(name: str) -> str:
    return name if " " in name else repr(name)


def _same_leaf(plan: _Plan, i: int, name: str, a: Any, b: Any) -> bool:
    """Note the dtype that a leaf has on both ways; return whether that changes the first."""
    if not (is_number(a) and is_number(b)):
        for x, y in ((a, b), (b, a)):
            if is_number(x) and hasattr(y, "as_memory"):
                plan.memories[i] = described(x)[0][1:]
                return True
        if not same_python(a, b):
            raise ValueError(
                f"{user_line()}: {name} is {_word(a)} if the condition holds, and {_word(b)} "
                "otherwise; only tensors and numbers are chosen in a trace"
            )
        return False
    (shape, x), (other, y) = described(a), described(b)
    if None not in (shape, other) and len(shape) != len(other):
        raise ValueError(
            f"{user_line()}: {name} has shape {shape} if the condition holds, and {other} otherwise"
        )
    dtype = _common_dtype(name, a, b, x, y)
    before = plan.dtypes.get(i, x)
    plan.dtypes[i] = dtype
    return bool(before != dtype)


_RANK = {"i": 1, "u": 1, "f": 2, "c": 3}


def _common_dtype(name: str, a: Any, b: Any, x: Any, y: Any) -> Any:
    """Return the dtype in which both are there: a Python number takes that of a tensor."""
    if x == y:
        return x
    ranks = _RANK.get(x.kind), _RANK.get(y.kind)
    if None not in ranks:
        if is_weak(a) and (ranks[0] < ranks[1] or (ranks[0] == ranks[1] and not is_weak(b))):  # type: ignore[operator]
            return y
        if is_weak(b) and ranks[1] <= ranks[0]:  # type: ignore[operator]
            return x
    raise TypeError(
        f"{user_line()}: {name} is {x} if the condition holds, and {y} otherwise; cast one "
        "with astype"
    )


def _word(value: Any) -> str:
    return "a tensor" if isinstance(value, Tensor) else repr(value)


def _together(name: str, plan: _Plan, a: Held, b: Held, found: Iterator[Tensor]) -> Any:
    """Return a variable after both ways, from what the op gave."""
    if a.assigned is False and b.assigned is False:
        return b.given
    first = b if a.assigned is False else a
    leaves = []
    for i, leaf in enumerate(first.leaves):
        if not is_number(leaf):
            leaves.append(leaf)
            continue
        tensor = next(found)
        if a.assigned is not False and b.assigned is not False:
            x, y = a.leaves[i], b.leaves[i]
            if x is y or (is_weak(x) and is_weak(y) and same_python(x, y)):
                tensor = x
        leaves.append(tensor)
    value = pack_like(first.value, leaves)
    assigned = next(found) if plan.maybe else True
    if a.assigned is True and b.assigned is True:
        return value
    return Maybe(name, value, assigned)


# -- expressions -----------------------------------------------------------------------------------


def if_exp(test: Any, if_true: Callable[[], Any], if_false: Callable[[], Any]) -> Any:
    """Return the value of ``a if test else b``."""
    if not is_traced(test):
        return if_true() if test else if_false()
    return _chosen(truth(test, "'if'"), if_true, if_false, "the value of 'a if b else c'")


def _chosen(test: Tensor, if_true: Any, if_false: Any, name: str) -> Any:
    (found,) = merged(test, lambda: [if_true()], lambda: [if_false()], [name], [None])
    return found


def and_(a: Callable[[], Any], b: Callable[[], Any]) -> Any:
    """Return the value of ``a and b``; a trace asks for ``b`` where ``a`` holds alone."""
    first = a()
    if not is_traced(first):
        return first and b()
    return _chosen(truth(first, "'and'"), b, lambda: _as_bool(first), "the value of 'and'")


def or_(a: Callable[[], Any], b: Callable[[], Any]) -> Any:
    """Return the value of ``a or b``; a trace asks for ``b`` where ``a`` does not hold alone."""
    first = a()
    if not is_traced(first):
        return first or b()
    return _chosen(truth(first, "'or'"), lambda: _as_bool(first), b, "the value of 'or'")


def _as_bool(value: Any) -> Any:
    return as_tensor(value)


def compare(first: Any, *pairs: Any) -> Any:
    """Return the value of ``a < b < c``: each value is asked for once, and only if needed.

    Parameters
    ----------
    first
        The first value.
    pairs
        A comparison and what returns its second value, for each further value.
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
