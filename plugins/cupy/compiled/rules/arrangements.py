"""Rules of ops that only arrange elements: views, and joins, each of them one kernel."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from operator import itemgetter, methodcaller
from typing import TYPE_CHECKING, Any

import numpy as np

from .....core.extend import Node, Symbol
from ....planned import RULES as PLANNED
from ....planned import Rule, Shape, StepKind, elementwise, reshaped, shape_of, symbol_like
from ...writing.formulas import memory_type

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


def part(
    lowering: DeviceLowering, x: Symbol, index: tuple[Any, ...], out: Symbol | None = None
) -> Symbol:
    """Add a view of the elements at an index of slices and integers."""
    if out is None:
        out = symbol_like(x, np.broadcast_to(np.int8(0), shape_of(x))[index].shape)
    return lowering.add(StepKind.VIEW, "getitem", itemgetter(index), (x,), out, index=index)


def transposed(lowering: DeviceLowering, x: Symbol, order: Sequence[int]) -> Symbol:
    """Add a view with the axes in another order."""
    if list(order) == list(range(len(order))):
        return x
    out = symbol_like(x, tuple(shape_of(x)[a] for a in order))
    run = methodcaller("transpose", tuple(order))
    return lowering.add(StepKind.VIEW, "transpose", run, (x,), out, axes=tuple(order))


def broadcasted(lowering: DeviceLowering, x: Symbol, shape: Shape) -> Symbol:
    """Add a view that repeats a value."""
    if shape == shape_of(x):
        return x
    out, xp = symbol_like(x, shape), lowering.owner.xp
    lowering.maps[out] = lambda x: np.broadcast_to(x, shape)
    run = partial(xp.broadcast_to, shape=shape)
    return lowering.add(StepKind.VIEW, "broadcast_to", run, (x,), out, shape=shape)


def merged(lowering: DeviceLowering, x: Symbol, shape: Shape) -> Symbol:
    """Add a view with merged axes, of a copy where no strides can express it."""
    model = _model(lowering, x)
    if not np.may_share_memory(model.reshape(shape), model):
        x = elementwise(lowering, np.positive, x)
    return reshaped(lowering, x, shape)


def _model(lowering: DeviceLowering, x: Symbol) -> Any:
    """Return an array with the strides of a value."""
    step = lowering.made.get(x)
    if step is None or step.kind is not StepKind.VIEW:
        return np.empty(shape_of(x), np.int8)
    return lowering.maps.get(x, step.run)(_model(lowering, step.inputs[0]))


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
