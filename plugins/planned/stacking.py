"""Stacking: one call of a function on many small arrays at once.

The overhead of a NumPy call takes longer than computing a few numbers. If the inputs of several
steps are computed before any of their results is needed, they are placed in one array.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import Any

from ...core.extend import Symbol
from .steps import Kind, Step, bytes_of

#: The maximum size in bytes of a small array, and the minimum number of them.
_SMALL, _SEVERAL = 2**11, 3


class Stack:
    """Steps of one function, of one array each, that run as one step.

    Attributes
    ----------
    members
        The steps.
    """

    __slots__ = ("members",)

    def __init__(self, members: Sequence[Step]) -> None:
        self.members = list(members)


def stacked(items: Sequence[Any], fixed: Container[Symbol]) -> list[Any]:
    """Return the items of a plan, with stacks instead of the steps that they contain.

    Parameters
    ----------
    items
        Steps, and objects with ``members``, in order.
    fixed
        Values with fixed memory, or that must not be in buffers.
    """
    made: dict[Symbol, int] = {}
    needed: dict[Symbol, int] = {}
    for place, item in enumerate(items):
        for step in [item] if isinstance(item, Step) else item.members:
            for x in step.inputs:
                if type(x) is Symbol:
                    needed.setdefault(x, place)
        if isinstance(item, Step) and item.kind is Kind.ELEMENTWISE:
            made[item.out] = place
    before: dict[int, list[Stack]] = {}
    gone: set[Step] = set()
    taken: set[Symbol] = set()  # an array has one position, in one stack
    for steps in _alike(items, made, needed, fixed):
        stack: list[Step] = []
        results: set[Symbol] = set()
        first, last = len(items), -1
        for step in [*steps, None]:
            early = made[step.inputs[0]] if step is not None else len(items)
            late = needed[step.out] if step is not None else -1
            # in a chain, as in tanh(tanh(x)), an input is the result of a member
            chained = step is not None and step.inputs[0] in results
            if max(last, early) < min(first, late) and not chained:
                assert step is not None
                results.add(step.out)
                stack.append(step)
                first, last = min(first, late), max(last, early)
                continue
            stack = [s for s in stack if s.inputs[0] not in taken and s.out not in taken]
            if len(stack) >= _SEVERAL:
                taken.update(x for s in stack for x in (s.inputs[0], s.out))
                before.setdefault(first, []).append(Stack(stack))
                gone.update(stack)
            stack = [] if step is None else [step]
            results = {step.out for step in stack}
            first, last = late, early
    found: list[Any] = []
    for place, item in enumerate(items):
        found += before.get(place, [])
        if not (isinstance(item, Step) and item in gone):
            found.append(item)
    return found


def _alike(
    items: Sequence[Any],
    made: dict[Symbol, int],
    needed: dict[Symbol, int],
    fixed: Container[Symbol],
) -> Iterator[list[Step]]:
    """Give lists of steps that do the same with arrays of one shape."""
    classes: dict[Any, list[Step]] = {}
    for step in items:
        if not isinstance(step, Step) or step.kind is not Kind.ELEMENTWISE or len(step.inputs) != 1:
            continue
        (x,), out = step.inputs, step.out
        if x not in made or out not in needed or x in fixed or out in fixed:
            continue
        if bytes_of(out) > _SMALL or bytes_of(x) > _SMALL:
            continue
        classes.setdefault((step.op, x.shape, x.dtype, out.dtype), []).append(step)
    yield from classes.values()
