"""An optimizer's formula as the ufuncs that it is made of, to be run block by block.

As it is written, a formula goes over all of memory once for each operation, and makes a new array
each time. On any part of its arrays it is the same; so it is asked once, with terms in the place of
arrays, which ufuncs it runs. These then take block after block, each while it is in the
processor's cache, and put their results into scratch arrays and where they belong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...core.extend import SCALARS, ArrayOperators, backend_of, register_array_type

__all__ = ["Rule", "by_blocks"]

Update = TypeVar("Update", bound=Callable[..., Any])
Array = NDArray[Any]


def by_blocks(update: Update) -> Update:
    """Mark an ``update`` that is elementwise, and depends on its arguments and attributes alone."""
    update.by_blocks = True  # type: ignore[attr-defined]
    return update


class Term(ArrayOperators):
    """Stands in a formula for an array, or for a number that each step tells anew."""

    __slots__ = ("dtype", "steps")

    def __init__(self, steps: list[Step], dtype: np.dtype[Any]) -> None:
        self.steps = steps
        self.dtype = dtype

    def gone(self) -> str | None:
        """Return why it cannot be used any longer: it can."""
        return None


class Step(NamedTuple):
    """A ufunc that a formula runs."""

    ufunc: np.ufunc
    inputs: tuple[Any, ...]  # terms, and constants as arrays
    output: Term


class _NotPlainError(Exception):
    """A formula is made of more than ufuncs of one dtype."""


def _noted(op: Any, *inputs: Any, **params: Any) -> Term:
    """Take note of what an op would run, and return a term for its result."""
    like = next(x for x in inputs if type(x) is Term)
    ufunc = op.kernel_for(backend_of(np.empty(0)))
    known = all(type(x) is Term or type(x) in SCALARS for x in inputs)
    if params or not known or not isinstance(ufunc, np.ufunc) or ufunc.nout != 1:
        raise _NotPlainError
    kinds = [x.dtype if type(x) is Term else type(x) for x in inputs]
    if set(ufunc.resolve_dtypes((*kinds, None))) != {like.dtype}:
        raise _NotPlainError
    operands = tuple([x if type(x) is Term else np.asarray(x, like.dtype) for x in inputs])
    output = Term(like.steps, like.dtype)
    like.steps.append(Step(ufunc, operands, output))
    return output


register_array_type(Term, 200, lambda op: partial(_noted, op))


class Rule:
    """The ufuncs of a formula, and where each of them finds its inputs and puts its output."""

    __slots__ = ("_fixed", "_rows", "scratch")

    def __init__(self, steps: Sequence[Step], given: Sequence[Term], new: Sequence[Term]) -> None:
        #: How many scratch arrays it needs.
        self.scratch = 0
        last = {id(x): n for n, step in enumerate(steps) for x in step.inputs}
        made = {id(step.output): n for n, step in enumerate(steps)}
        for old, term in zip(given, new, strict=False):
            # a new value may be in the old one's memory: nothing reads the old one afterwards
            if made.get(id(term), -1) < last.get(id(old), -1) or id(term) not in made:
                raise _NotPlainError
        if len({id(term) for term in new}) < len(new):
            raise _NotPlainError
        fixed = [*given, *new]
        places = {id(term): place for place, term in enumerate(fixed)}
        free: list[int] = []
        for n, (_, inputs, output) in enumerate(steps):
            free += {
                places[id(x)]
                for x in inputs
                if last[id(x)] == n and places.get(id(x), 0) >= len(fixed)
            }
            if id(output) in places:
                continue
            if not free:
                free.append(len(fixed) + self.scratch)
                self.scratch += 1
            places[id(output)] = free.pop()
            if id(output) not in last:
                free.append(places[id(output)])
        self._fixed: list[Any] = []
        self._rows: list[Callable[[Any], tuple[Any, ...]]] = []
        start = len(fixed) + self.scratch
        for ufunc, inputs, output in steps:
            row = []
            for x in (ufunc, *inputs):
                if id(x) not in places:
                    places[id(x)] = start + len(self._fixed)
                    self._fixed.append(x)
                row.append(places[id(x)])
            self._rows.append(itemgetter(*row, places[id(output)]))

    @classmethod
    def of(
        cls, update: Callable[..., Any], dtype: np.dtype[Any], state: int, settings: int
    ) -> Rule | None:
        """Return the rule of an ``update`` that is marked; None if it runs as it is."""
        if not getattr(update, "by_blocks", False):
            return None
        steps: list[Step] = []
        value, gradient, *others = (Term(steps, dtype) for _ in range(2 + state + settings))
        held, told = others[:state], others[state:]
        try:
            new, changed = update(value, gradient, held, tuple(told))
            return cls(steps, [value, *held, gradient, *told], [new, *changed])
        except _NotPlainError:
            return None

    def calls(
        self,
        old: Sequence[Array],
        rest: Sequence[Array],
        new: Sequence[Array],
        scratch: Sequence[Array],
    ) -> list[tuple[Any, ...]]:
        """Return the calls, each a ufunc and its arguments, that do a step on a block.

        Parameters
        ----------
        old
            The value and the state.
        rest
            The gradient, and the settings as arrays without axes.
        new
            Where the new value and state go; it may be the old ones' memory.
        scratch
            As many arrays as the rule needs.

        Returns
        -------
        list of tuple
            To be called in their order.
        """
        given = (*old, *rest, *new, *scratch, *self._fixed)
        return [row(given) for row in self._rows]
