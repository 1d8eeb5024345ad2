"""Merges the variables that the two branches of a traced choice assign, in one op."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..core.extend import Tensor, as_tensor, flatten, pack_like, user_line
from ..plugins.ops.control.conditions import cond
from .raising import Retrace
from .state.arrays import mark_shared
from .state.mutations import keep_apart, was_there
from .values import (
    Form,
    Held,
    Maybe,
    described,
    fits,
    held_by,
    in_dtype,
    is_exact,
    is_number,
    is_weak,
    quoted,
    same_form,
    same_python,
    weakly,
    worded,
)

FOR_CACHES = (
    ", or decorate the function with gradtape.autograph.do_not_convert, if it fills a cache"
)


class Again(Retrace):
    """A variable starts in another form than the trace assumed."""


class _Plan:
    """How a variable leaves both branches: its containers, dtypes, and whether it is assigned."""

    def __init__(self, maybe: bool) -> None:
        self.form: Form | None = None
        self.maybe = maybe
        self.dtypes: dict[int, Any] = {}
        self.memories: dict[int, Any] = {}

    def held_by(self, value: Any) -> Held:
        """Return what a variable holds; an array of tensors as one tensor, if a branch has one."""
        held = held_by(value)
        if not self.memories or held.assigned is False:
            return held
        leaves = held.leaves
        for i, shape in self.memories.items():
            if hasattr(leaves[i], "as_memory"):
                leaves[i] = leaves[i].as_memory(shape)
        return held._replace(value=pack_like(held.value, leaves))

    def emitted(self, held: Held) -> Iterator[Tensor]:
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
    plans = [_Plan(held_by(x).assigned is not True) for x in starts]
    while True:
        sides = _Sides(plans, names)
        try:
            found = cond(
                test, lambda s=sides: s.traced(0, if_true), lambda s=sides: s.traced(1, if_false)
            )
        except Again:
            continue
        rest = iter(found)
        pairs = zip(names, plans, *sides.held, strict=True)
        return [_together(name, plan, a, b, rest) for name, plan, a, b in pairs]


class _Sides:
    """The variables after each of the two branches."""

    def __init__(self, plans: Sequence[_Plan], names: Sequence[str]) -> None:
        self.plans, self.names = plans, names
        self.held: list[list[Held]] = [[], []]

    def traced(self, i: int, run: Callable[[], Sequence[Any]]) -> list[Tensor]:
        """Return the tensors of one branch; for the second, check that both branches agree."""
        self.held[i] = [plan.held_by(x) for plan, x in zip(self.plans, run(), strict=True)]
        if i:
            _agree(self.plans, self.held, self.names)
        made = zip(self.plans, self.held[i], strict=True)
        # an op needs at least one result
        return [x for plan, held in made for x in plan.emitted(held)] or [as_tensor(True)]


def _agree(plans: Sequence[_Plan], sides: Sequence[Sequence[Held]], names: Sequence[str]) -> None:
    """Compare both branches; raise if they do not fit, or :class:`Again` to trace them again."""
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
        raise Again


def _same_leaf(plan: _Plan, i: int, name: str, a: Any, b: Any) -> bool:
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


def _together(name: str, plan: _Plan, a: Held, b: Held, found: Iterator[Tensor]) -> Any:
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
        keep_apart(name, value, a.value, b.value)
    assigned = next(found) if plan.maybe else True
    if a.assigned is True and b.assigned is True:
        return value
    return Maybe(name, value, assigned)
