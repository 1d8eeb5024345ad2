"""Loops: groups of steps as functions that LLVM compiles, each element read and written once.

A loop contains only operations with a single correct rounding, so that its results are NumPy's, bit
for bit; sums are over the first axis, in NumPy's order. A loop cannot warn as NumPy does
(``numpy.errstate``). If the processor has set a flag for such a warning, NumPy runs the group once
more, and warns.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ...core.extend import Symbol
from ..planned.grouping import Emitter
from ..planned.steps import Group, Kind, Step, shape_of
from .compiler import DTYPES, compiled
from .forms import TRANSCENDENTAL, form_of
from .functions import FUNCTIONS
from .source import source

#: A compiler takes seconds for this number of steps, and minutes for ten times as many.
_MOST_STEPS = 400
#: From this number of steps, a loop is worth digits that differ from NumPy's.
_SEVERAL = 3


class Loops(Emitter):
    """Runs groups as loops."""

    def takes(self, step: Step) -> bool:
        """Return whether loops compute a step as NumPy does.

        Parameters
        ----------
        step
            The step.
        """
        if len(step.outputs) != 1:  # several, for example of a `cond`
            return False
        symbols = [x for x in (*step.inputs, *step.outputs) if type(x) is Symbol]
        if any(np.dtype(x.dtype).name not in DTYPES for x in symbols):
            return False
        if step.kind is Kind.REDUCTION:
            return _is_sum_of_rows(step)
        if not (step.elementwise or step.op == "outer_products") or step.space == ():
            return False
        if step.op in ("maximum", "minimum") and not _LAST_OF_ZEROS:
            return False
        return form_of(step, _exact_for(step)) is not None

    def loop(self, group: Group) -> Callable[..., Any] | None:
        """Return a function that runs a group, or None if a loop cannot, or would not pay.

        Parameters
        ----------
        group
            The group.
        """
        steps = group.members
        if not all(map(self.takes, steps)):  # as of updates, which packs combine whatever they are
            return None
        exact = frozenset[str]().union(*map(_exact_for, steps))
        few = len(steps) < _SEVERAL and any(step.op in TRANSCENDENTAL - exact for step in steps)
        if few or len(steps) > _MOST_STEPS:
            return None
        return compiled(source(group, exact), _by_numpy(group))


def _is_sum_of_rows(step: Step) -> bool:
    """Return whether a step sums rows, which NumPy adds in order (unlike numbers in a row)."""
    (x,) = step.inputs
    shape = shape_of(x)
    rows = step.params["axis"] in (0, (0,)) and len(shape) == 2 and shape[1] > 1 and shape[0] > 1
    return step.op == "add" and rows and x.dtype.kind == "f" and x.dtype == step.out.dtype


def _ties() -> bool:
    """Return whether NumPy's ``maximum`` of a zero and a negative zero is the second one here."""
    zeros, negative = np.zeros(37, np.float32), np.full(37, -0.0, np.float32)
    pairs = [(f(a, b), b) for f in (np.maximum, np.minimum) for a, b in _both(zeros, negative)]
    return all((np.signbit(found) == np.signbit(b)).all() for found, b in pairs)


def _both(a: Any, b: Any) -> list[tuple[Any, Any]]:
    return [(a, b), (b, a)]


_LAST_OF_ZEROS = _ties()


def _exact_for(step: Step) -> frozenset[str]:
    single = step.op in FUNCTIONS and step.out.dtype == np.float32
    return _exact() if single else frozenset()


@cache
def _exact() -> frozenset[str]:
    """Return the single-precision functions that equal this NumPy's, bit for bit, here."""
    x = np.linspace(-85, 85, 2048, dtype=np.float32)
    x[:3] = 0.0, -0.0, np.nan
    positive = np.geomspace(1e-37, 1e37, len(x), dtype=np.float32)
    whole = Group(x.shape)
    nowhere: Any = None
    symbols = [Symbol(nowhere, x.shape, x.dtype) for _ in (*FUNCTIONS, x, positive)]
    for name, out in zip(FUNCTIONS, symbols, strict=False):
        given = symbols[-1 if name == "log" else -2]
        whole.steps.append(Step(Kind.ELEMENTWISE, name, getattr(np, name), (given,), (out,)))
    whole.close(lambda symbol: True)
    values = dict(zip(symbols, [*(np.ones_like(x) for _ in FUNCTIONS), x, positive], strict=True))
    run = compiled(source(whole, FUNCTIONS), lambda *arrays: None)
    run(*(values[symbol] for symbol in (*whole.outputs, *whole.inputs)))
    pairs = [(step, step.run(values[step.inputs[0]])) for step in whole.steps]
    return frozenset(step.op for step, right in pairs if _same_bits(values[step.out], right))


def _same_bits(x: Any, y: Any) -> bool:
    return bool(((x.view(np.int32) == y.view(np.int32)) | (np.isnan(x) & np.isnan(y))).all())


def _by_numpy(group: Group) -> Callable[..., None]:
    """Return a function in which NumPy runs a group step by step into its outputs."""

    def run(*arrays: Any) -> None:
        values: dict[Symbol, Any] = dict(zip((*group.outputs, *group.inputs), arrays, strict=True))
        targets = {x: values[x] for x in group.outputs}
        for step in group.steps:
            scalars = iter(step.scalars)
            given = [values[x] if type(x) is Symbol else next(scalars) for x in step.inputs]
            target = targets.get(step.out)
            if target is None:
                target = np.empty(shape_of(step.out), step.out.dtype)
            if step.kind is Kind.FRESH:
                target[...] = step.run(*given)
            else:
                step.run(*given, out=target)
            values[step.out] = target
        for step in group.tails:
            axis, keepdims = step.params["axis"], step.params["keepdims"]
            step.run(values[step.inputs[0]], axis, None, targets[step.out], keepdims)

    return run
