"""``if``, ``and``, ``or``, ``not``, ``a if b else c``: Python's own, or ``cond`` in a trace.

The variables that the two branches of a traced choice assign are merged in one op.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..core.extend import (
    SCALARS,
    Branch,
    Node,
    Symbol,
    Tensor,
    Variable,
    active_graph,
    as_tensor,
    flatten,
    ops,
    pack_like,
    trace_branch,
    user_line,
)
from ..plugins.ops.control.conditions import cond
from .effects import Retrace, raising_while
from .mutations import MoreChanges, Watch, check_separate, mark_shared, was_there
from .values import (
    Content,
    Form,
    MaybeAssigned,
    Undefined,
    content_of,
    described,
    fits,
    has_exact_integers,
    in_dtype,
    is_exact,
    is_number,
    is_traced,
    is_weak,
    living,
    quoted,
    same_form,
    same_python,
    truth,
    weakly,
    worded,
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
            except MoreChanges:
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
    return has_exact_integers(op) or op.integers is abs or node.outputs[0].dtype.kind == "b"


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


# -- merging the variables of two branches ---------------------------------------------------------


FOR_CACHES = (
    ", or decorate the function with gradtape.autograph.do_not_convert, if it fills a cache"
)


class Restart(Retrace):
    """A variable starts in another form than the trace assumed."""


class _BranchResult:
    """How a variable leaves both branches: its containers, dtypes, and whether it is assigned."""

    def __init__(self, maybe: bool) -> None:
        self.form: Form | None = None
        self.maybe = maybe
        self.dtypes: dict[int, Any] = {}
        self.memories: dict[int, Any] = {}

    def content_of(self, value: Any) -> Content:
        """Return what a variable holds; an array of tensors as one tensor, if a branch has one."""
        held = content_of(value)
        if not self.memories or held.assigned is False:
            return held
        leaves = held.leaves
        for i, shape in self.memories.items():
            if hasattr(leaves[i], "as_memory"):
                leaves[i] = leaves[i].as_memory(shape)
        return held._replace(value=pack_like(held.value, leaves))

    def emitted(self, held: Content) -> Iterator[Tensor]:
        """Yield the tensors that one branch returns for a variable."""
        value = held.value
        if held.assigned is False:
            if self.form is None:
                return
            value = self.form.value()
        for i, leaf in enumerate(flatten(value)):
            if is_number(leaf):
                dtype = self.dtypes.get(i)
                yield in_dtype(leaf, dtype)
        if self.maybe:
            yield as_tensor(held.assigned)


def merged(
    test: Tensor,
    if_true: Callable[[], Sequence[Any]],
    if_false: Callable[[], Sequence[Any]],
    names: Sequence[str],
    starts: Sequence[Any],
) -> list[Any]:
    """Trace two branches and return the values of the one that a test chooses in each run.

    Parameters
    ----------
    test
        The condition.
    if_true, if_false
        Functions that return the values of each branch.
    names
        The names of the values.
    starts
        The values before. If one is unassigned, the result also says whether a branch assigned it.

    Raises
    ------
    TypeError, ValueError
        If a variable's dtype, form or Python value differs between the branches. The message names
        the variable.
    """
    plans = [_BranchResult(content_of(x).assigned is not True) for x in starts]
    while True:
        sides = _Sides(plans, names)
        try:
            found = cond(
                test, lambda s=sides: s.traced(0, if_true), lambda s=sides: s.traced(1, if_false)
            )
        except Restart:
            continue
        rest = iter(found)
        pairs = zip(names, plans, *sides.held, strict=True)
        return [_together(name, plan, a, b, rest) for name, plan, a, b in pairs]


class _Sides:
    """The variables after each of the two branches."""

    def __init__(self, plans: Sequence[_BranchResult], names: Sequence[str]) -> None:
        self.plans, self.names = plans, names
        self.held: list[list[Content]] = [[], []]

    def traced(self, i: int, run: Callable[[], Sequence[Any]]) -> list[Tensor]:
        """Return the tensors of one branch; for the second, check that both branches agree."""
        self.held[i] = [plan.content_of(x) for plan, x in zip(self.plans, run(), strict=True)]
        if i:
            _agree(self.plans, self.held, self.names)
        made = zip(self.plans, self.held[i], strict=True)
        # an op needs at least one result
        return [x for plan, held in made for x in plan.emitted(held)] or [as_tensor(True)]


def _agree(
    plans: Sequence[_BranchResult], sides: Sequence[Sequence[Content]], names: Sequence[str]
) -> None:
    """Compare both branches; raise if they do not fit, or :class:`Restart` to trace them again."""
    again = False
    for plan, name, a, b in zip(plans, names, *sides, strict=True):
        if a.assigned is False and b.assigned is False:
            continue
        if not (a.assigned is True and b.assigned is True):
            if "." in name or "[" in name:
                raise ValueError(
                    f"{user_line()}: {name} is assigned in only one branch of a traced 'if' and "
                    f"has no value before it; assign it before the 'if'{FOR_CACHES}"
                )
            again |= not plan.maybe
            plan.maybe = True
        if a.assigned is False or b.assigned is False:
            if plan.form is None:
                plan.form = Form.of(a.value if b.assigned is False else b.value)
                again |= a.assigned is False  # it has been traced already
            continue
        same_form(quoted(name), a.value, b.value, ("if the condition holds", "otherwise"))
        for i, (x, y) in enumerate(zip(a.leaves, b.leaves, strict=True)):
            again |= _same_leaf(plan, i, quoted(name), x, y)
    if again:
        raise Restart


def _same_leaf(plan: _BranchResult, i: int, name: str, a: Any, b: Any) -> bool:
    """Note a leaf's common dtype; return whether the first branch must be traced again."""
    if not (is_number(a) and is_number(b)):
        for x, y in ((a, b), (b, a)):
            if is_number(x) and hasattr(y, "as_memory"):
                plan.memories[i] = described(x)[0][1:]
                return True
        if not same_python(a, b) or (a is not b and (was_there(a) or was_there(b))):
            raise ValueError(
                f"{user_line()}: {name} is {worded(a)} if the condition holds, and {worded(b)} "
                "otherwise; in a trace, only tensors and numbers can depend on a condition"
                f"{'' if name.isidentifier() else FOR_CACHES}"
            )
        return False
    (shape, x), (other, y) = described(a), described(b)
    if None not in (shape, other) and len(shape) != len(other):
        raise ValueError(
            f"{user_line()}: {name} has shape {shape} if the condition holds, and {other} "
            "otherwise; give it the same number of axes in both branches"
        )
    dtype = _common_dtype(name, a, b, x, y)
    before = plan.dtypes.get(i, x)
    plan.dtypes[i] = dtype
    return bool(before != dtype)


def _common_dtype(name: str, a: Any, b: Any, x: Any, y: Any) -> Any:
    """Return a dtype for both: a Python number takes the dtype of a tensor."""
    if x == y:
        return x
    if is_weak(a) and fits(x, y, a) and not (is_weak(b) and fits(y, x, b)):
        return y
    if is_weak(b) and fits(y, x, b):
        return x
    raise TypeError(
        f"{user_line()}: {name} is {x} if the condition holds, and {y} otherwise; cast one "
        "with astype"
    )


def _together(
    name: str, plan: _BranchResult, a: Content, b: Content, found: Iterator[Tensor]
) -> Any:
    """Return a variable after the choice, made from the results of the op."""
    if a.assigned is False and b.assigned is False:
        return b.given
    first = b if a.assigned is False else a
    leaves = []
    for i, leaf in enumerate(first.leaves):
        if not is_number(leaf):
            leaves.append(leaf)
            continue
        tensor = next(found)
        x, y = (leaf if side.assigned is False else side.leaves[i] for side in (a, b))
        both = a.assigned is not False and b.assigned is not False
        if both and (x is y or (is_weak(x) and is_weak(y) and same_python(x, y))):
            tensor = x
        elif is_exact(x, tensor.dtype) and is_exact(y, tensor.dtype):
            tensor = weakly(tensor)
        if tensor is not x and any(isinstance(v, np.ndarray) and was_there(v) for v in (x, y)):
            mark_shared(tensor)
        leaves.append(tensor)
    value = pack_like(first.value, leaves)
    if a.value is b.value and isinstance(a.value, (list, dict)):
        value = a.value  # itself: the statement knows what its branches change in it
    else:
        check_separate(name, value, a.value, b.value)
    assigned = next(found) if plan.maybe else True
    if a.assigned is True and b.assigned is True:
        return value
    return MaybeAssigned(name, value, assigned)
