"""Rules of convolutions and pooling.

Windows are views: the elements of each window are a row of a matrix, so that a convolution, and
each of its gradients, is one matrix product.
"""

from __future__ import annotations

from functools import partial
from math import prod
from operator import itemgetter, methodcaller
from typing import TYPE_CHECKING, Any

import numpy as np

from .....core.extend import Node, Symbol
from ....ops.network.convolution import conv_windows
from ....ops.network.windows import Windows
from ....planned import (
    PlanStep,
    Rule,
    Shape,
    StepKind,
    elementwise,
    reshaped,
    shape_of,
    symbol_like,
)
from .arrangements import joined

if TYPE_CHECKING:
    from ..lowering import DeviceLowering

_Pads = tuple[tuple[int, int], ...]


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
    one = lowering.number(value, like)
    spread = symbol_like(like, shape)

    def run(x: Any) -> Any:
        return lowering.owner.xp.broadcast_to(x, shape)

    lowering.maps[spread] = lambda x: np.broadcast_to(x, shape)
    return lowering.add(StepKind.VIEW, "broadcast_to", run, (one,), spread, shape=shape)


def _padded(lowering: DeviceLowering, x: Symbol, pads: _Pads, value: float = 0.0) -> Symbol:
    """Add steps that pad the spatial axes with a number, or crop them where pads are negative."""
    cut = tuple(
        slice(max(-a, 0), n - max(-b, 0)) for n, (a, b) in zip(shape_of(x)[1:-1], pads, strict=True)
    )
    if any(a < 0 or b < 0 for a, b in pads):
        x = _part(lowering, x, (slice(None), *cut, slice(None)))
    for axis, (a, b) in enumerate(pads, 1):
        sides = []
        for count in (a, b):
            shape = (*shape_of(x)[:axis], count, *shape_of(x)[axis + 1 :])
            sides.append([_constant(lowering, x, shape, value)] if count > 0 else [])
        if a > 0 or b > 0:
            x = joined(lowering, [*sides[0], x, *sides[1]], axis)
    return x


def _part(lowering: DeviceLowering, x: Symbol, index: tuple[Any, ...]) -> Symbol:
    out = symbol_like(x, np.broadcast_to(np.int8(0), shape_of(x))[index].shape)
    return lowering.add(StepKind.VIEW, "getitem", itemgetter(index), (x,), out, index=index)


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
    (x, w), (out,), params = node.inputs, node.outputs, node.params
    if not _of_floats(node) or params["groups"] != 1:
        return False
    _convolved(lowering, x, w, conv_windows(x, w, params), out)
    return True


def _conv_to_filters(lowering: DeviceLowering, node: Node) -> bool:
    (g, x, like), (out,), params = node.inputs, node.outputs, node.params
    if not _of_floats(node) or params["groups"] != 1:
        return False
    rows = _rows(lowering, x, conv_windows(x, like, params))
    slopes = _matrix(lowering, g)
    flat = symbol_like(out, (shape_of(rows)[1], shape_of(slopes)[1]))
    flat = lowering.add(StepKind.PRODUCT, "matmul", np.matmul, (rows, slopes), flat, left=True)
    reshaped(lowering, flat, shape_of(out), out)
    return True


def _conv_to_images(lowering: DeviceLowering, node: Node) -> bool:
    """Add the convolution of gradients, spaced apart by the strides, with flipped filters."""
    (g, w, like), (out,), params = node.inputs, node.outputs, node.params
    if not _of_floats(node) or params["groups"] != 1:
        return False
    window = shape_of(w)[:-2]
    where = conv_windows(like, w, params)
    for axis, stride in enumerate(where.strides, 1):
        g = _with_zeros_between(lowering, g, axis, stride)
    pads = []
    spans = [(k - 1) * d for k, d in zip(window, where.dilations, strict=True)]
    sizes = zip(shape_of(like)[1:-1], shape_of(g)[1:-1], spans, where.pads, strict=True)
    for n, m, span, (before, _) in sizes:
        left = span - before
        pads.append((left, n + span - m - left))
    g = _padded(lowering, g, tuple(pads))
    turned = _part(lowering, w, (*(slice(None, None, -1) for _ in window), ..., slice(None)))
    order = (*range(len(window)), len(window) + 1, len(window))
    swapped = symbol_like(w, tuple(shape_of(turned)[a] for a in order))
    run = methodcaller("transpose", order)
    swapped = lowering.add(StepKind.VIEW, "transpose", run, (turned,), swapped, axes=order)
    ones = (1,) * len(window)
    there = Windows(shape_of(g)[1:-1], window, ones, "valid", where.dilations)
    _convolved(lowering, g, _copied(lowering, swapped), there, out)
    return True


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
    return _part(lowering, whole, (*(slice(None),) * axis, slice(0, last), ...))


# -- pooling ---------------------------------------------------------------------------------------


def _pool_windows(x: Symbol, window: Shape, strides: Shape, padding: Any) -> Windows:
    return Windows(shape_of(x)[1:-1], window, strides, padding, (1,) * len(window))


def _max_pool(lowering: DeviceLowering, node: Node) -> bool:
    (x,), (out,), params = node.inputs, node.outputs, node.params
    if not _of_floats(node):
        return False
    where = _pool_windows(x, **params)
    seen = _seen(lowering, _padded(lowering, x, where.pads, float("-inf")), where)
    rank = len(where.kernel)
    axes = tuple(range(1 + rank, 1 + 2 * rank))
    settings = {"axis": axes, "keepdims": False}
    lowering.add(StepKind.REDUCTION, "maximum", np.maximum.reduce, (seen,), out, **settings)
    return True


def _max_pool_scatter(lowering: DeviceLowering, node: Node) -> bool:
    """Add steps that give each position in adjacent windows its gradient, or 0."""
    (g, x, largest), (out,), params = node.inputs, node.outputs, node.params
    where = _pool_windows(x, **params)
    whole = tuple(n * k for n, k in zip(where.out, where.kernel, strict=True))
    beside = where.strides == where.kernel and where.sizes == whole
    if not _of_floats(node) or not beside or any(map(any, where.pads)):
        return False
    shares = {}
    taken: Symbol | None = None
    truth = partial(elementwise, lowering, dtype=np.dtype(bool))
    for place, part in where.parts():
        here = _part(lowering, x, (slice(None), *part, slice(None)))
        hit = truth(np.equal, here, largest)
        hit = truth(np.logical_or, hit, truth(np.not_equal, here, here))
        if taken is None:
            taken = hit
        else:
            free = truth(np.logical_not, taken)
            hit, taken = truth(np.logical_and, hit, free), truth(np.logical_or, taken, hit)
        share = PlanStep(StepKind.ELEMENTWISE, "where", np.where, (hit, g, 0.0), (symbol_like(g),))
        shares[place] = lowering.append(share)
    lowering.same(out, _interleaved(lowering, shares, where))
    return True


def _interleaved(
    lowering: DeviceLowering, shares: dict[tuple[int, ...], Symbol], where: Windows
) -> Symbol:
    """Add steps that move the positions of all windows to their places in the array."""
    for axis in range(len(where.kernel), 0, -1):
        rows: dict[tuple[int, ...], list[Symbol]] = {}
        for place, x in shares.items():
            shape = shape_of(x)
            column = reshaped(lowering, x, (*shape[: axis + 1], 1, *shape[axis + 1 :]))
            rows.setdefault(place[:-1], []).append(column)
        shares = {}
        for place, columns in rows.items():
            both = joined(lowering, columns, axis + 1)
            shape = shape_of(both)
            merged = (*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :])
            shares[place] = reshaped(lowering, both, merged)
    (whole,) = shares.values()
    return whole


RULES: dict[str, Rule] = {
    "conv": _conv,
    "conv_to_filters": _conv_to_filters,
    "conv_to_images": _conv_to_images,
    "max_pool": _max_pool,
    "max_pool_scatter": _max_pool_scatter,
}
