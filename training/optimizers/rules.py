"""Runs an optimizer's formula block by block, as a list of ufuncs.

A formula as written passes over the whole memory for each operation, and creates an array each
time. An elementwise formula does the same on any part of its arrays. So it is called once with
terms instead of arrays, which record the ufuncs that it runs. These then process one block after
another, each while it is in the processor's cache, with scratch arrays for intermediate results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from ...core.extend import (
    SCALARS,
    ArrayOperators,
    Tensor,
    backend_of,
    register_array_type,
    to_numpy,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["FlatFormula", "UfuncRule", "by_blocks", "check_elementwise", "returned"]

Update = TypeVar("Update", bound=Callable[..., Any])
Array: TypeAlias = "NDArray[Any]"


def by_blocks(update: Update) -> Update:
    """Mark an ``update`` that is elementwise, and depends only on its arguments and attributes.

    gradtape then calls it with many variables of a dtype, flattened and joined to arrays of one
    axis, which is faster. The first step compares the new value of a variable in such an array with
    its value alone, and raises ``ValueError`` if they differ.

    Parameters
    ----------
    update
        The method of a :class:`gradtape.training.Optimizer`. Norms, means and shapes are not
        elementwise.

    Returns
    -------
    callable
        The method itself.

    Examples
    --------
    >>> class Descent(gt.training.Optimizer):
    ...     @gt.training.optimizers.by_blocks
    ...     def update(self, value, gradient, state, settings):
    ...         return value - settings[0] * gradient, state
    """
    update.by_blocks = True  # type: ignore[attr-defined]
    return update


def check_elementwise(before: Any, together: Any, alone: Any, again: Callable[[], Any]) -> None:
    """Compare a variable's new value, computed in one row with others, with that computed alone.

    ``again`` computes it in the row once more: a formula with random numbers gives another value,
    and is not compared.

    Raises
    ------
    ValueError
        If they differ by more than rounding.
    """
    if _differ(before, together, alone) and not _differ(before, together, again()):
        raise ValueError(
            "Optimizer.update is marked with by_blocks, but the new value of a variable "
            "depends on the other variables in the row: a norm, a mean or a shape is not "
            "elementwise. Remove the mark"
        )


def _differ(before: Any, together: Any, alone: Any) -> bool:
    """Return whether two new values of a variable differ by more than rounding."""
    arrays = [x.array if isinstance(x, Tensor) else x for x in (before, together, alone)]
    before, together, alone = map(to_numpy, arrays)
    if before.dtype.kind not in "fc":  # bfloat16
        return False
    rounding = 64 * np.finfo(before.dtype).eps * (np.abs(before) + np.abs(together))
    with np.errstate(invalid="ignore"):  # differences of infinities
        return bool(np.any(np.abs(together - alone) > rounding))


def returned(result: Any, state: Sequence[Any]) -> tuple[Any, Sequence[Any]]:
    """Return the new value and the new state that an ``update`` returned.

    Raises
    ------
    ValueError
        If they are not a pair, or there is not one array for each slot.
    """
    if isinstance(result, (tuple, list)) and len(result) == 2:
        value, changed = result
        if isinstance(changed, (tuple, list)) and len(changed) == len(state):
            return value, changed
        several = isinstance(changed, (tuple, list))
        found = f"a state of {len(changed)}" if several else f"the state {type(changed).__name__}"
    else:
        found = type(result).__name__
    raise ValueError(
        f"Optimizer.update must return the new value and a tuple of the new state, as many arrays "
        f"as it gets ({len(state)}), but returned {found}"
    )


class Term(ArrayOperators):
    """Replaces an array in a formula, or a number that changes with each step."""

    __slots__ = ("dtype", "steps")

    def __init__(self, steps: list[UfuncStep], dtype: np.dtype[Any]) -> None:
        self.steps = steps
        self.dtype = dtype

    def ended(self) -> str | None:
        """Return None: a term can always be used."""
        return None


class UfuncStep(NamedTuple):
    """A ufunc that a formula runs."""

    ufunc: np.ufunc
    inputs: tuple[Any, ...]  # terms, and constants as arrays
    output: Term


class _NotPlainError(Exception):
    """A formula consists of more than ufuncs of one dtype."""


def _noted(op: Any, *inputs: Any, **params: Any) -> Term:
    """Record the ufunc that an op would run, and return a term for its result."""
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
    like.steps.append(UfuncStep(ufunc, operands, output))
    return output


register_array_type(Term, 200, lambda op: partial(_noted, op))


def _traced(
    update: Callable[..., Any], dtype: np.dtype[Any], state: int, settings: int
) -> tuple[list[UfuncStep], list[Term], list[Term]] | None:
    """Return the ufuncs of a marked ``update``, its terms, and its results; None for others.

    The terms are the value, the state, the gradient and the settings, in this order.
    """
    if not getattr(update, "by_blocks", False):
        return None
    steps: list[UfuncStep] = []
    value, gradient, *others = (Term(steps, dtype) for _ in range(2 + state + settings))
    held, told = others[:state], others[state:]
    try:
        new, changed = returned(update(value, gradient, held, tuple(told)), held)
    except Exception:  # more than ufuncs, such as a shape; errors of its own come when it runs
        return None
    results = [new, *changed]
    return (steps, [value, *held, gradient, *told], results) if _are_terms(results) else None


def _are_terms(results: Sequence[Any]) -> bool:
    return all(type(x) is Term for x in results)


class FlatFormula(NamedTuple):
    """A formula for :meth:`Backend.updating`. It is equal to every other of the same steps.

    Attributes
    ----------
    dtype
        The dtype of all arrays.
    arrays
        The number of arrays: the value, the state, and last the gradient.
    settings
        The number of Python floats that change with each step. They follow the arrays.
    steps
        The ufuncs in order, each with its inputs: an integer is the place of an array or a setting,
        or, after these, of an earlier step's result; a float is a constant.
    results
        The places of the new value and the new state.
    """

    dtype: np.dtype[Any]
    arrays: int
    settings: int
    steps: tuple[tuple[np.ufunc, tuple[int | float, ...]], ...]
    results: tuple[int, ...]

    # as tuples, the place 1 and the constant 1.0 would be equal, and 0.0 and -0.0 too
    def _key(self) -> tuple[Any, ...]:
        rows = tuple([(ufunc, *[(type(x), repr(x)) for x in row]) for ufunc, row in self.steps])
        return self.dtype, self.arrays, self.settings, rows, self.results

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FlatFormula) and self._key() == other._key()

    def __ne__(self, other: object) -> bool:  # a tuple's own would compare it as a tuple
        return not self == other

    def __hash__(self) -> int:
        return hash(self._key())

    @classmethod
    def of(
        cls, update: Callable[..., Any], dtype: np.dtype[Any], state: int, settings: int
    ) -> FlatFormula | None:
        """Return a marked ``update`` as a formula; None if it is more than ufuncs."""
        found = _traced(update, dtype, state, settings)
        if found is None:
            return None
        steps, given, results = found
        terms = [*given, *[step.output for step in steps]]
        places = {id(term): place for place, term in enumerate(terms)}

        def place(x: Any) -> int | float:
            return places[id(x)] if type(x) is Term else float(x)

        rows = tuple((step.ufunc, tuple(map(place, step.inputs))) for step in steps)
        new = tuple(places[id(x)] for x in results)
        return cls(dtype, 2 + state, settings, rows, new)


class UfuncRule:
    """The ufuncs of a formula, with the places of their inputs and outputs."""

    __slots__ = ("_fixed", "_rows", "passes", "scratch")

    def __init__(
        self, steps: Sequence[UfuncStep], given: Sequence[Term], new: Sequence[Term]
    ) -> None:
        #: The number of scratch arrays that it needs.
        self.scratch = 0
        #: How many times it passes over an array: a step reads one or two, and writes one.
        self.passes = 2 * len(steps)
        last = {id(x): n for n, step in enumerate(steps) for x in step.inputs}
        made = {id(step.output): n for n, step in enumerate(steps)}
        for old, term in zip(given, new, strict=False):
            # a new value may reuse the memory of the old one, if nothing reads that afterwards
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
    ) -> UfuncRule | None:
        """Return the rule of a marked ``update``; None if it must run as written."""
        found = _traced(update, dtype, state, settings)
        try:
            return None if found is None else cls(*found)
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
            The arrays for the new value and state; these may be the old ones.
        scratch
            As many arrays as the rule needs.

        Returns
        -------
        list of tuple
            The calls, in their order.
        """
        given = (*old, *rest, *new, *scratch, *self._fixed)
        return [row(given) for row in self._rows]
