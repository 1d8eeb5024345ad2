"""The rule of ``where``, by bits if the condition is a constant mask, as in attention."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ....core.extend import Node, Symbol, kernel_of
from ..steps import StepKind, shape_of

if TYPE_CHECKING:
    from ..lowering import Lowering

#: By the character of a dtype, integers of the same size.
_INTEGERS = {"f": np.int32, "d": np.int64}


def choice(lowering: Lowering, node: Node) -> bool:
    """Add a step of ``where``.

    Parameters
    ----------
    lowering
        The lowering to which the step is added.
    node
        A node of ``where``.
    """
    condition, (out,) = node.inputs[0], node.outputs
    if type(condition) is not Symbol or condition.dtype.kind != "b":
        return False
    inputs = lowering.sources(node)
    run = _selection(lowering, inputs, out)
    if run is not None:
        lowering.add(StepKind.ELEMENTWISE, "where", run, inputs, out)
        return True
    run = kernel_of(node, lowering.owner)
    lowering.add(StepKind.FRESH, "where", run, inputs, out)
    return True


def _selection(lowering: Lowering, inputs: Sequence[Any], out: Symbol) -> Callable[..., Any] | None:
    """Return a function that selects elements or a number by a constant mask, by their bits.

    A choice by condition takes several times as long. The mask must be the same for all entries of
    the first axis: a group in blocks passes parts of arrays.
    """
    condition, x, y = inputs
    mask = lowering.known.get(condition)
    if mask is None or not lowering.on_host or out.dtype.char not in _INTEGERS:
        return None
    rank = len(shape_of(out))
    if len(shape_of(condition)) == rank and shape_of(condition)[:1] != (1,):
        return None
    array, number = (x, y) if type(x) is Symbol else (y, x)
    fits = type(array) is Symbol and shape_of(array) == shape_of(out) and array.dtype == out.dtype
    if not fits or type(number) not in (int, float):
        return None
    integers = np.dtype(_INTEGERS[out.dtype.char])
    kept = -np.asarray(mask if array is x else ~mask).astype(integers)
    others = ~kept & np.array(number, out.dtype).view(integers)
    place, only = 1 if array is x else 2, not others.any()

    def select(*args: Any, out: Any = None) -> Any:
        given, result = args[place], args[3] if len(args) > 3 else out
        if result is None:
            result = np.empty(given.shape, given.dtype)
        bits = result.view(integers)
        np.bitwise_and(given.view(integers), kept, bits)
        if not only:
            np.bitwise_or(bits, others, bits)
        return result

    return select
