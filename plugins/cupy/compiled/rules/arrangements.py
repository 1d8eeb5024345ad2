"""Rules of ops that only arrange elements: views, and joins, each of them one kernel."""

from __future__ import annotations

from math import prod
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from .....core.extend import Node, Symbol
from ....planned import RULES as PLANNED
from ....planned import Rule, StepKind, reshaped, shape_of, symbol_like
from ..formulas import memory_type

if TYPE_CHECKING:
    from ..lowering import DeviceLowering

#: The maximum number of arrays that one kernel joins, as it searches all of them for each element.
_MOST_JOINED = 128


def joined(
    lowering: DeviceLowering, parts: list[Symbol], axis: int, out: Symbol | None = None
) -> Symbol:
    """Add a step that concatenates arrays along an axis that they have."""
    first = shape_of(parts[0])
    if out is None:
        size = sum(shape_of(x)[axis] for x in parts)
        out = symbol_like(parts[0], (*first[:axis], size, *first[axis + 1 :]))
    return lowering.add(StepKind.JOIN, "concatenate", np.concatenate, parts, out, axis=axis)


def _can_join(node: Node) -> bool:
    (out,) = node.outputs
    alike = all(type(x) is Symbol and x.dtype == out.dtype for x in node.inputs)
    return alike and memory_type(out.dtype) is not None and len(node.inputs) <= _MOST_JOINED


def _concatenate(lowering: DeviceLowering, node: Node) -> bool:
    return _can_join(node) and PLANNED["concatenate"](lowering, node)


def _stack(lowering: DeviceLowering, node: Node) -> bool:
    """Add the join of views that have the new axis."""
    if not _can_join(node):
        return False
    (out,), axis = node.outputs, node.params.get("axis", 0)
    if type(axis) is not int:
        return False
    axis %= len(shape_of(out))
    one = (*shape_of(out)[:axis], 1, *shape_of(out)[axis + 1 :])
    joined(lowering, [reshaped(lowering, x, one) for x in node.inputs], axis, out)
    return True


def _unstack(lowering: DeviceLowering, node: Node) -> bool:
    """Add a view for each position along the axis."""
    (x,) = node.inputs
    if type(x) is not Symbol:
        return False
    before = (slice(None),) * (node.params["axis"] % len(shape_of(x)))
    for place, out in enumerate(node.outputs):
        index = (*before, place, ...)
        lowering.add(StepKind.VIEW, "unstack", itemgetter(index), (x,), out, index=index)
    return True


def _getitem(lowering: DeviceLowering, node: Node) -> bool:
    """Add a view, unless an index is an array."""
    (x, *arrays), (out,) = node.inputs, node.outputs
    if arrays or type(x) is not Symbol or not prod(shape_of(out)):
        return False
    lowering.add(StepKind.VIEW, "getitem", lowering.viewing(node), (x,), out, **node.params)
    return True


RULES: dict[str, Rule] = {
    "concatenate": _concatenate,
    "getitem": _getitem,
    "stack": _stack,
    "unstack": _unstack,
}
