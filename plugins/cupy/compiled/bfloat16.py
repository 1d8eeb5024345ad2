"""Products of bfloat16: operands in 16 bits where a program has rounded them to bfloat16 anyway.

NumPy has no ``bfloat16``, so tensors that are computed in it have ``float32``. A product of two
such values reads them in 16 bits, and sums in ``float32``: cuBLAS then multiplies several times as
fast, and no number is rounded that was not. A value with other digits stays in ``float32``, and so
does its product.

The kernel that makes a value writes its 16 bits, too, or instead if nothing else needs the value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....core.extend import SCALARS, Symbol
from ...planned import PlanStep, StepKind, symbol_like
from ..writing.formulas import BITS, KEEPING
from .lowering import DeviceLowering

#: The dtype of memory for the bits of bfloat16.
SHORT = np.dtype(np.uint16)


def _fits(number: float) -> bool:
    """Return whether bfloat16 can represent a number as float32 does."""
    return not int(np.float32(number).view(np.uint32)) & 0xFFFF


def _exact(lowered: DeviceLowering, steps: Sequence[PlanStep]) -> set[Symbol]:
    """Return the values of float32 whose numbers bfloat16 can represent, as far as is known."""
    single = np.dtype(np.float32)
    numbers = lowered.numbers.items()
    exact = {x for (value, dtype), x in numbers if dtype == single and _fits(value)}
    truths: set[Symbol] = set()  # numbers that are 0 or 1

    def is_truth(x: Any) -> bool:
        return type(x) is Symbol and (x.dtype.kind == "b" or x in truths)

    def all_fit(values: Sequence[Any]) -> bool:
        return all(_fits(x) if type(x) in SCALARS else x in exact for x in values)

    def gives_exact(step: PlanStep) -> bool:
        kind, op, given = step.kind, step.op, step.inputs
        if kind in (StepKind.VIEW, StepKind.JOIN):
            return all_fit(given)
        if not step.elementwise:
            return kind is StepKind.REDUCTION and op in KEEPING and all_fit(given)
        if op == "multiply" and any(map(is_truth, given)):
            return all(is_truth(x) or all_fit([x]) for x in given)
        if op in KEEPING:
            return all_fit(given[1:] if op == "where" else given)
        return op == "round_to_bfloat16"

    for step in steps:
        if any(x.dtype != single for x in step.outputs):
            continue
        if step.op == "cast" and is_truth(step.inputs[0]):
            truths.update(step.outputs)
            exact.update(step.outputs)
        elif gives_exact(step):
            exact.update(step.outputs)
    return exact


def with_short_operands(
    lowered: DeviceLowering, steps: Sequence[PlanStep], supported: Callable[[], bool]
) -> list[PlanStep]:
    """Return steps whose products read operands in 16 bits where that changes no number.

    Parameters
    ----------
    lowered
        The program; functions that make the new views of NumPy's arrays are added to it.
    steps
        Its steps, in order.
    supported
        A function that returns whether products can read such operands.
    """
    exact = _exact(lowered, steps)
    chosen = [
        step
        for step in steps
        if step.kind is StepKind.PRODUCT
        and step.out.dtype == np.float32
        and exact.issuperset(step.inputs)
    ]
    if not chosen or not supported():
        return list(steps)
    needed = {x for step in chosen for x in step.inputs}
    for step in reversed(steps):
        if step.kind is StepKind.VIEW and step.out in needed:
            needed.update(step.inputs)
    short = {x: symbol_like(x, None, SHORT) for x in needed}
    found = [_bits(x, short) for x in lowered.numbers.values() if x in needed]
    products = set(chosen)
    for step in steps:
        if step in products:
            given = [short[x] for x in step.inputs]
            step = PlanStep(step.kind, step.op, step.run, given, step.outputs, step.params)
        found.append(step)
        if step.kind is not StepKind.PRODUCT:
            found += [_shortened(lowered, step, short) for x in step.outputs if x in short]
    return found


def _bits(x: Symbol, short: dict[Symbol, Symbol]) -> PlanStep:
    return PlanStep(StepKind.ELEMENTWISE, BITS, np.positive, (x,), (short[x],))


def _shortened(lowered: DeviceLowering, step: PlanStep, short: dict[Symbol, Symbol]) -> PlanStep:
    """Return a step for the bits of another step's result."""
    out = short[step.out]
    if step.kind is not StepKind.VIEW:
        return _bits(step.out, short)
    if step.out in lowered.maps:
        lowered.maps[out] = lowered.maps[step.out]
    given = [short[x] for x in step.symbols]
    return PlanStep(step.kind, step.op, step.run, given, (out,), step.params, view=step.view)
