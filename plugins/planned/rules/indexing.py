"""Rules of indexing without index arrays: reads are views, and their adjoints sums or joins.

The adjoint of reads adds each gradient to zeros, at the index of its read. If the reads tile an
axis, as those of queries, keys and values in one product do, the result is the parts, joined. If
each read takes everything, as ``x[:, None]`` does, the result is a sum. Other reads overlap, or
leave gaps; their adjoint is the kernel's.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from ....core.extend import Node, Symbol, decode_index
from ..lowering import reshaped
from ..steps import PlanStep, Shape, StepKind, shape_of, symbol_like

if TYPE_CHECKING:
    from ..lowering import Lowering

#: The first and the last position on each axis, plus one.
Region = tuple[tuple[int, int], ...]


def basic_index(index: Any) -> tuple[Any, ...] | None:
    """Return an op's ``index`` for NumPy; None if it has arrays or sizes that only a run knows.

    Parameters
    ----------
    index
        The parameter of an op.
    """
    if any(type(part) is tuple and part[0] == "array" for part in index):
        return None
    found = decode_index(index, ())
    known = all(
        part is None or part is Ellipsis or type(part) is int or _is_known(part) for part in found
    )
    return found if known else None


def _is_known(part: Any) -> bool:
    if type(part) is not slice:
        return False
    return all(x is None or type(x) is int for x in (part.start, part.stop, part.step))


def region_of(shape: Shape, index: tuple[Any, ...]) -> Region | None:
    """Return the box that an index selects; None if it skips elements or reverses their order.

    Parameters
    ----------
    shape
        The shape of the indexed array.
    index
        The result of :func:`basic_index`.
    """
    parts = [part for part in index if part is not None]
    missing = len(shape) - len(parts)
    if Ellipsis in parts:
        place = parts.index(Ellipsis)
        parts[place : place + 1] = [slice(None)] * (missing + 1)
    else:
        parts += [slice(None)] * missing
    region = []
    for size, part in zip(shape, parts, strict=True):
        if type(part) is int:
            region.append((part % size, part % size + 1))
            continue
        start, stop, step = part.indices(size)
        if step != 1:
            return None
        region.append((start, stop))
    return tuple(region)


def read(lowering: Lowering, node: Node) -> bool:
    """Add a view for a read by slices, integers and new axes."""
    x, (out,) = node.inputs[0], node.outputs
    index = basic_index(node.params["index"])
    if index is None or not lowering.on_host or shape_of(out) == ():
        return False
    before = (1,) * (len(shape_of(out)) - len(shape_of(x)))
    if shape_of(out) == before + shape_of(x) and region_of(shape_of(x), index) == _all_of(x):
        lowering.spread(out, x)
    lowering.add(StepKind.VIEW, "getitem", itemgetter(index), (x,), out, index=index)
    return True


def place(lowering: Lowering, node: Node) -> bool:
    """Add a view for the adjoint of a read that takes everything."""
    g, (out,) = node.inputs[0], node.outputs
    index = basic_index(node.params["index"])
    if index is None or not lowering.on_host or region_of(shape_of(out), index) != _all_of(out):
        return False
    if shape_of(g) == shape_of(out):
        lowering.same(out, g)
    else:
        reshaped(lowering, g, shape_of(out), out)
    return True


def place_all(lowering: Lowering, node: Node) -> bool:
    """Add the adjoint of several reads, as sums of those with equal indices, joined."""
    _, *gradients = node.inputs
    (out,), indices = node.outputs, [basic_index(index) for index in node.params["indices"]]
    if not lowering.on_host or out.dtype.char not in "fd" or None in indices:
        return False
    if any(g.dtype != out.dtype for g in gradients):
        return False
    parts: dict[Region, list[Symbol]] = {}
    for g, index in zip(gradients, indices, strict=True):
        assert index is not None
        region = region_of(shape_of(out), index)
        if region is None:
            return False
        parts.setdefault(region, []).append(g)
    if len(parts) == 1:
        ((region, found),) = parts.items()
        if region != _all_of(out):
            return False
        _sum(lowering, found, out)
        return True
    axis = _tiled_axis(shape_of(out), sorted(parts))
    if axis is None:
        return False
    joined = []
    for region in sorted(parts):
        part = symbol_like(out, tuple(stop - start for start, stop in region))
        joined.append(_sum(lowering, parts[region], part))
    lowering.add(StepKind.JOIN, "concatenate", np.concatenate, joined, out, axis=axis)
    return True


def _all_of(x: Symbol) -> Region:
    return tuple((0, size) for size in shape_of(x))


def _tiled_axis(shape: Shape, regions: Sequence[Region]) -> int | None:
    """Return the only axis that regions divide, if they cover it without overlaps."""
    whole = tuple((0, size) for size in shape)
    axes = {i for region in regions for i, side in enumerate(region) if side != whole[i]}
    if len(axes) != 1:
        return None
    (axis,) = axes
    end = 0
    for region in regions:
        start, stop = region[axis]
        if start != end:
            return None
        end = stop
    return axis if end == shape[axis] else None


def _sum(lowering: Lowering, gradients: Sequence[Symbol], out: Symbol) -> Symbol:
    """Add steps that add gradients to zero, which makes a zero of a negative zero."""
    total = reshaped(lowering, gradients[0], shape_of(out))
    zero = np.zeros((), out.dtype)
    ends = [symbol_like(out) for _ in gradients[1:]] + [out]
    step = StepKind.ELEMENTWISE
    total = lowering.append(PlanStep(step, "add", np.add, (total, 0.0), (ends[0],), scalars=[zero]))
    for g, end in zip(gradients[1:], ends[1:], strict=True):
        g = reshaped(lowering, g, shape_of(out))
        total = lowering.add(step, "add", np.add, (total, g), end)
    return total
