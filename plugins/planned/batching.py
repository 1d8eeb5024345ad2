"""Batching: products of an unrolled loop that run as one, or share what they compute.

The gradient of a weight that each step of a loop uses is a sum of products, one per step. It is the
product of all rows at once: ``x1.T @ g1 + x2.T @ g2`` is ``concatenate([x1, x2]).T @
concatenate([g1, g2])``. The factors are computed in their places, so that one product replaces the
others and the sums of their results. Sums of rows, the gradients of biases, are batched likewise.
Sums may then differ in their last digits.

A product with a transposed matrix takes longer than one with the same matrix laid out in rows. A
matrix that several products transpose is therefore copied once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from operator import methodcaller
from typing import Any

import numpy as np

from ...core.extend import Symbol
from .steps import PlanStep, StepKind, bytes_of, shape_of, size_of, symbol_like

#: The minimum number of products that are batched, or of those that share a transposed matrix.
_SEVERAL = 3
#: The maximum number of rows of a product that is batched: larger ones gain nothing.
_ROWS = 256
#: The maximum number of bytes of the rows that are batched: they must be there at the same time.
_BYTES = 2**20
#: Products of fewer rows do not gain from another layout, or do not keep their bits.
_FEW = 16
#: From this number of elements on, a copy takes the time of more products.
_LARGE, _MANY = 2**16, 8


def batched(steps: Sequence[PlanStep], needed: Iterable[Symbol]) -> list[PlanStep]:
    """Return steps that compute the same with fewer products.

    Parameters
    ----------
    steps
        The steps, in order.
    needed
        The values that are read after the last step.
    """
    return list(_turned_once(_Sums(steps, needed).batched()))


# -- sums of products ------------------------------------------------------------------------------


class _Sums:
    """Sums whose terms are products of rows, or sums of rows.

    Parameters
    ----------
    steps
        The steps, in order.
    needed
        The values that are read after the last step.
    """

    def __init__(self, steps: Sequence[PlanStep], needed: Iterable[Symbol]) -> None:
        self.steps = steps
        self.uses = Counter(x for step in steps for x in step.symbols)
        self.uses.update(needed)
        self.made = {step.out: step for step in steps if len(step.outputs) == 1}
        self.inner = {x for step in steps if self._adds(step) for x in step.symbols}
        self.gone: set[PlanStep] = set()
        self._joined: dict[Any, Symbol] = {}
        self._orders: dict[frozenset[Symbol], list[Symbol]] = {}

    def batched(self) -> list[PlanStep]:
        """Return the steps, with one product instead of several."""
        found: dict[PlanStep, list[PlanStep]] = {}
        for step in self.steps:
            if self._adds(step) and (step.out not in self.inner or self.uses[step.out] > 1):
                found[step] = self._replaced(step)
        return [new for step in self.steps for new in self._instead(step, found)]

    def _instead(self, step: PlanStep, found: dict[PlanStep, list[PlanStep]]) -> Sequence[PlanStep]:
        if step in self.gone:
            return ()
        return found.get(step) or (step,)

    def _adds(self, step: PlanStep) -> bool:
        """Return whether a step adds two values of its own shape and dtype."""
        return (
            step.op == "add"
            and step.kind is StepKind.ELEMENTWISE
            and all(
                type(x) is Symbol and x.shape == step.out.shape and x.dtype == step.out.dtype
                for x in step.inputs
            )
        )

    def _terms(self, root: PlanStep) -> tuple[list[Symbol], list[PlanStep]]:
        """Return the terms of a sum, from the first that is added, and the steps that add them."""
        terms: list[Symbol] = []
        adds: list[PlanStep] = []
        waiting: list[Any] = [root.out]
        while waiting:
            x = waiting.pop()
            if x is not root.out and not self._is_partial(x):
                terms.append(x)
                continue
            step = self.made[x]
            adds.append(step)
            left, right = step.inputs
            # in a chain, the partial sum comes before the term that is added to it
            waiting += [left, right] if self._is_partial(right) else [right, left]
        return terms, adds

    def _is_partial(self, x: Symbol) -> bool:
        return x in self.made and self._adds(self.made[x]) and self.uses[x] == 1

    def _replaced(self, root: PlanStep) -> list[PlanStep]:
        """Return the steps of a sum whose terms are batched; none if it stays as it is."""
        terms, adds = self._terms(root)
        classes: dict[Any, list[PlanStep]] = {}
        for x in terms:
            step = self.made.get(x)
            key = _batch_of(step) if step is not None and self.uses[x] == 1 else None
            if step is not None and key is not None:
                classes.setdefault(key, []).append(step)
        new: list[PlanStep] = []
        left = terms
        for members in classes.values():
            for chunk in _chunks(members):
                if len(chunk) < _SEVERAL:
                    continue
                gone = {step.out for step in chunk}
                left = [x for x in left if x not in gone]
                left.append(self._batch(chunk, new))
                self.gone.update(chunk)
        if not new:
            return []
        self.gone.update(step for step in adds if step is not root)
        total = left[0]
        for x in left[1:]:
            out = symbol_like(root.out)
            new.append(PlanStep(StepKind.ELEMENTWISE, "add", root.run, (total, x), (out,)))
            total = out
        last = new[-1]
        new[-1] = PlanStep(last.kind, last.op, last.run, last.inputs, root.outputs, last.params)
        return new

    def _batch(self, chunk: list[PlanStep], new: list[PlanStep]) -> Symbol:
        """Add the steps that compute the sum of these terms."""
        first = chunk[0]
        if first.kind is StepKind.PRODUCT:
            chunk = self._as_joined_before(chunk)
            out = symbol_like(first.out)
            factors = [self._join([step.inputs[i] for step in chunk], new) for i in (0, 1)]
            new.append(PlanStep(first.kind, first.op, first.run, factors, (out,), first.params))
            return out
        rows = self._join([step.inputs[0] for step in chunk], new)
        (count, width), several = shape_of(first.inputs[0]), len(chunk)
        shape, by_step = (several, count, width), {**first.params, "axis": 1}
        stack, sums = symbol_like(rows, shape), symbol_like(rows, (several, width))
        reshape, out = methodcaller("reshape", shape), symbol_like(first.out)
        new += [
            PlanStep(StepKind.VIEW, "reshape", reshape, (rows,), (stack,), view="reshape"),
            PlanStep(first.kind, first.op, first.run, (stack,), (sums,), by_step),
            PlanStep(first.kind, first.op, first.run, (sums,), (out,), first.params),
        ]
        return out

    def _as_joined_before(self, chunk: list[PlanStep]) -> list[PlanStep]:
        """Return products in the order in which their factors were joined for another sum."""
        by_right = {step.inputs[1]: step for step in chunk}
        order = self._orders.setdefault(frozenset(by_right), list(by_right))
        return chunk if len(by_right) < len(chunk) else [by_right[x] for x in order]

    def _join(self, parts: list[Symbol], new: list[PlanStep]) -> Symbol:
        """Return the rows of values one below the other."""
        found = self._joined.get(tuple(parts))
        if found is None:
            rows = sum(shape_of(x)[0] for x in parts)
            found = symbol_like(parts[0], (rows, *shape_of(parts[0])[1:]))
            self._joined[tuple(parts)] = found
            new.append(
                PlanStep(StepKind.JOIN, "concatenate", np.concatenate, parts, (found,), {"axis": 0})
            )
        return found


def _batch_of(step: PlanStep) -> Any:
    """Return a key that the terms of a batch have in common; None for terms that stay alone."""
    if step.kind is StepKind.PRODUCT and step.run is np.matmul and step.params == {"left": True}:
        kind = "product"
    elif step.kind is StepKind.REDUCTION and step.op == "add" and step.params["axis"] in (0, (0,)):
        kind = "rows"
    else:
        return None
    if any(len(shape_of(x)) != 2 for x in step.symbols) or step.params.get("keepdims"):
        return None
    count, width = shape_of(step.inputs[0])
    return None if count > _ROWS else (kind, width if kind == "product" else count)


def _chunks(members: Sequence[PlanStep]) -> Iterator[list[PlanStep]]:
    """Give as many terms at once as may be batched."""
    chunk: list[PlanStep] = []
    size = 0
    for step in members:
        more = max(bytes_of(x) for x in step.symbols)
        if size + more > _BYTES and chunk:
            yield chunk
            chunk, size = [], 0
        chunk.append(step)
        size += more
    yield chunk


# -- transposed factors ----------------------------------------------------------------------------


def _turned_once(steps: Sequence[PlanStep]) -> Iterator[PlanStep]:
    """Give steps whose products share the copy of a transposed matrix."""
    uses = Counter(step.inputs[1] for step in steps if _turns(step))
    copies: dict[Symbol, Symbol] = {}
    for step in steps:
        if not _turns(step) or uses[step.inputs[1]] < _worth(step.inputs[1]):
            yield step
            continue
        y = step.inputs[1]
        if y not in copies:
            copies[y] = symbol_like(y, shape_of(y)[::-1])
            run = transposed_copy
            yield PlanStep(StepKind.PRODUCT, run.__name__, run, (y,), (copies[y],))
        yield _with_copy(step, copies[y])


def turned_before(
    steps: Sequence[PlanStep], fixed: Container[Symbol], times: int
) -> tuple[list[PlanStep], dict[Symbol, Symbol]]:
    """Return steps of a loop whose products use copies made before it, and the copies' symbols.

    Parameters
    ----------
    steps
        The steps.
    fixed
        The values that are the same in each run of the loop.
    times
        The number of its runs.
    """
    copies: dict[Symbol, Symbol] = {}
    found = []
    for step in steps:
        if _turns(step) and step.inputs[1] in fixed and times >= _worth(step.inputs[1]):
            y = step.inputs[1]
            copy = copies.setdefault(y, symbol_like(y, shape_of(y)[::-1]))
            step = _with_copy(step, copy)
        found.append(step)
    return found, copies


def _with_copy(step: PlanStep, copy: Symbol) -> PlanStep:
    return PlanStep(step.kind, step.op, step.run, (step.inputs[0], copy), step.outputs)


def _worth(y: Symbol) -> int:
    """Return the number of products from which a copy of a factor pays."""
    return _SEVERAL if size_of(y) < _LARGE else _MANY


def _turns(step: PlanStep) -> bool:
    """Return whether a step is a product of rows with a transposed matrix."""
    if step.kind is not StepKind.PRODUCT or step.run is not np.matmul:
        return False
    x, y = step.inputs
    # a product of a matrix with itself has a kernel of its own
    return step.params == {"right": True} and x is not y and shape_of(x)[0] >= _FEW


def transposed_copy(x: Any, out: Any = None) -> Any:
    """Return the transpose of a matrix, laid out in rows."""
    if out is None:
        return np.ascontiguousarray(x.T)
    np.copyto(out, x.T)
    return out
