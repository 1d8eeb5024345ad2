"""Rules of convolutions.

Windows are views: the elements of each window are a row of a matrix, so that a convolution, and
each of its gradients, is one matrix product, or one for each group of channels. Many small groups,
and integers, have kernels of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from .....core.extend import Node, Symbol
from ....ops.network.convolution import conv_windows
from ....ops.network.windows import Windows
from ....planned import Rule, StepKind, elementwise, reshaped, shape_of, symbol_like
from .arrangements import broadcasted, joined, part, transposed
from .direct_convolution import direct

if TYPE_CHECKING:
    from ..lowering import DeviceLowering

_Pads = tuple[tuple[int, int], ...]

#: The maximum of groups that have products of their own, and the minimum of channels in each.
_MOST_GROUPS, _LEAST_CHANNELS = 16, 16


def _of_floats(node: Node) -> bool:
    """Return whether all values of a node have one dtype that matrix products support."""
    symbols = [*node.inputs, *node.outputs]
    return all(type(x) is Symbol and x.dtype == symbols[0].dtype for x in symbols) and (
        symbols[0].dtype.char in "efd"
    )


def _copied(lowering: DeviceLowering, x: Symbol) -> Symbol:
    """Add a copy that makes a view contiguous."""
    return elementwise(lowering, np.positive, x)


def _constant(
    lowering: DeviceLowering, like: Symbol, shape: tuple[int, ...], value: float
) -> Symbol:
    """Return an array of one repeated number, with the memory of one element."""
    return broadcasted(lowering, lowering.number(value, like), shape)


def _padded(lowering: DeviceLowering, x: Symbol, pads: _Pads, value: float = 0.0) -> Symbol:
    """Add steps that pad the spatial axes with a number, or crop them where pads are negative."""
    cut = tuple(
        slice(max(-a, 0), n - max(-b, 0)) for n, (a, b) in zip(shape_of(x)[1:-1], pads, strict=True)
    )
    if any(a < 0 or b < 0 for a, b in pads):
        x = part(lowering, x, (slice(None), *cut, slice(None)))
    for axis, (a, b) in enumerate(pads, 1):
        sides = []
        for count in (a, b):
            shape = (*shape_of(x)[:axis], count, *shape_of(x)[axis + 1 :])
            sides.append([_constant(lowering, x, shape, value)] if count > 0 else [])
        if a > 0 or b > 0:
            x = joined(lowering, [*sides[0], x, *sides[1]], axis)
    return x


def _seen(lowering: DeviceLowering, x: Symbol, where: Windows) -> Symbol:
    """Add a view of a padded array's windows: (batch, *windows, *window, channels)."""
    shape, _ = where.view_layout(shape_of(x), shape_of(x))

    def view(xp: Any, x: Any) -> Any:
        return xp.lib.stride_tricks.as_strided(x, *where.view_layout(x.shape, x.strides))

    seen, run = symbol_like(x, shape), partial(view, lowering.owner.xp)
    lowering.maps[seen] = partial(view, np)
    settings = {"strides": where.strides, "dilations": where.dilations}
    return lowering.add(StepKind.VIEW, "windows", run, (x,), seen, shape=shape, **settings)


def _rows(lowering: DeviceLowering, x: Symbol, where: Windows) -> Symbol:
    """Add a matrix with a row for each window."""
    seen = _copied(lowering, _seen(lowering, _padded(lowering, x, where.pads), where))
    count = shape_of(x)[0] * prod(where.out)
    return reshaped(lowering, seen, (count, prod(shape_of(seen)) // count))


def _matrix(lowering: DeviceLowering, x: Symbol) -> Symbol:
    return reshaped(lowering, x, (prod(shape_of(x)[:-1]), shape_of(x)[-1]))


def _convolved(lowering: DeviceLowering, x: Symbol, w: Symbol, where: Windows, out: Symbol) -> None:
    rows, filters = _rows(lowering, x, where), _matrix(lowering, w)
    flat = symbol_like(out, (shape_of(rows)[0], shape_of(filters)[1]))
    flat = lowering.add(StepKind.PRODUCT, "matmul", np.matmul, (rows, filters), flat)
    reshaped(lowering, flat, shape_of(out), out)


def _conv(lowering: DeviceLowering, node: Node) -> bool:
    x, w = node.inputs
    return _in_groups(lowering, node, (x, w), conv_windows(x, w, node.params), _convolved)


def _conv_to_filters(lowering: DeviceLowering, node: Node) -> bool:
    g, x, like = node.inputs
    where = conv_windows(x, like, node.params)
    return _in_groups(lowering, node, (g, x), where, _filters)


def _conv_to_images(lowering: DeviceLowering, node: Node) -> bool:
    g, w, like = node.inputs
    return _in_groups(lowering, node, (g, w), conv_windows(like, w, node.params), _images)


def _conv_transpose(lowering: DeviceLowering, node: Node) -> bool:
    """Add the steps of the gradient of a convolution."""
    (x, w), (out,) = node.inputs, node.outputs
    return _in_groups(lowering, node, (x, w), conv_windows(out, w, node.params), _images)


def _in_groups(
    lowering: DeviceLowering,
    node: Node,
    operands: tuple[Symbol, Symbol],
    where: Windows,
    run: Callable[[DeviceLowering, Symbol, Symbol, Windows, Symbol], None],
) -> bool:
    """Add products for each group of channels, or one kernel for all if groups are small."""
    (out,), groups = node.outputs, node.params.get("groups", 1)
    whole = _of_floats(node)
    if whole and groups == 1:
        run(lowering, operands[0], operands[1], where, out)
        return True
    widths = [shape_of(x)[-1] // groups for x in (*operands, out)]
    if not whole or groups > _MOST_GROUPS or min(widths) < _LEAST_CHANNELS:
        return direct(lowering, node, operands, where)
    parts = []
    for group in range(groups):
        first, second = (_channels(lowering, x, group, groups) for x in operands)
        found = symbol_like(out, (*shape_of(out)[:-1], widths[-1]))
        run(lowering, first, second, where, found)
        parts.append(lowering.look(found))
    joined(lowering, parts, len(shape_of(out)) - 1, out)
    return True


def _channels(lowering: DeviceLowering, x: Symbol, group: int, groups: int) -> Symbol:
    width = shape_of(x)[-1] // groups
    return _copied(lowering, part(lowering, x, (..., slice(group * width, (group + 1) * width))))


def _filters(lowering: DeviceLowering, g: Symbol, x: Symbol, where: Windows, out: Symbol) -> None:
    rows, slopes = _rows(lowering, x, where), _matrix(lowering, g)
    flat = symbol_like(out, (shape_of(rows)[1], shape_of(slopes)[1]))
    flat = lowering.add(StepKind.PRODUCT, "matmul", np.matmul, (rows, slopes), flat, left=True)
    reshaped(lowering, flat, shape_of(out), out)


def _images(lowering: DeviceLowering, g: Symbol, w: Symbol, where: Windows, out: Symbol) -> None:
    """Add the convolution of gradients, spaced apart by the strides, with flipped filters."""
    window = where.kernel
    for axis, stride in enumerate(where.strides, 1):
        g = _with_zeros_between(lowering, g, axis, stride)
    pads = []
    spans = [(k - 1) * d for k, d in zip(window, where.dilations, strict=True)]
    sizes = zip(where.sizes, shape_of(g)[1:-1], spans, where.pads, strict=True)
    for n, m, span, (before, _) in sizes:
        left = span - before
        pads.append((left, n + span - m - left))
    g = _padded(lowering, g, tuple(pads))
    turned = part(lowering, w, (*(slice(None, None, -1) for _ in window), ..., slice(None)))
    order = (*range(len(window)), len(window) + 1, len(window))
    swapped = transposed(lowering, turned, order)
    ones = (1,) * len(window)
    there = Windows(shape_of(g)[1:-1], window, ones, "valid", where.dilations)
    _convolved(lowering, g, _copied(lowering, swapped), there, out)


def _with_zeros_between(lowering: DeviceLowering, x: Symbol, axis: int, stride: int) -> Symbol:
    """Add steps that insert zeros between elements along an axis."""
    shape = shape_of(x)
    if stride == 1 or shape[axis] == 1:
        return x
    column = reshaped(lowering, x, (*shape[: axis + 1], 1, *shape[axis + 1 :]))
    zeros = (*shape[: axis + 1], stride - 1, *shape[axis + 1 :])
    both = joined(lowering, [column, _constant(lowering, x, zeros, 0.0)], axis + 1)
    whole = reshaped(lowering, both, (*shape[:axis], shape[axis] * stride, *shape[axis + 1 :]))
    last = (shape[axis] - 1) * stride + 1
    return part(lowering, whole, (*(slice(None),) * axis, slice(0, last), ...))


RULES: dict[str, Rule] = {
    "conv": _conv,
    "conv_to_filters": _conv_to_filters,
    "conv_to_images": _conv_to_images,
    "conv_transpose": _conv_transpose,
}
