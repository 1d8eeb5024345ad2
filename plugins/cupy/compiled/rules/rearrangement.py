"""Rules of ops that move elements to places that only shapes decide.

NumPy moves the elements' numbers, and a kernel reads the elements by the result, a table. Where a
result is a view, it is one here as well.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from .....core.extend import Node, Symbol, kernel_of, registry
from ....planned import Rule, StepKind, reshaped, shape_of, symbol_like, view_kernel
from ...writing.elements import Writer, indices, unravelled, written
from ...writing.formulas import kind_of, literal
from ...writing.source import Written
from .arrangements import part

if TYPE_CHECKING:
    from ..lowering import DeviceLowering

#: The maximum of elements of a table.
_MOST_IN_TABLE = 2**22


def _sources(node: Node) -> tuple[Any, list[Any]] | None:
    """Return, for each result, the element's number at each place, and the numbers elsewhere.

    None if a result is not made of elements and of one other number.
    """
    x = node.inputs[0]
    kind = np.dtype(np.float64 if kind_of(x.dtype) == "f" else np.int64)
    likes = [symbol_like(like, None, kind) for like in node.inputs[1:]]
    run = view_kernel(kernel_of(node, registry().host_backend), likes)
    numbers = np.arange(prod(shape_of(x))).reshape(shape_of(x))
    # what is the same for elements of other values is no element
    found = [run((numbers + 2**start).astype(kind)) for start in (40, 41)]
    first, second = found if node.several else [[y] for y in found]
    tables, fills = [], []
    for a, b in zip(first, second, strict=True):
        if a.dtype != kind or b.dtype != kind:
            return None
        fixed = a == b
        others = np.unique(a[fixed])
        table = np.where(fixed, -1, a - 2.0**40)
        right = table == np.where(fixed, -1, b - 2.0**41)
        if len(others) > 1 or not (right & (table >= -1) & (table < numbers.size)).all():
            return None
        tables.append(np.asarray(table, np.int32))
        fills.append(others.item() if others.size else 0)
    return tables, fills


def _by_table(lowering: DeviceLowering, node: Node) -> bool:
    """Add a kernel for each result, which reads the elements that a table tells."""
    x, outs = node.inputs[0], node.outputs
    sizes = [prod(shape_of(y)) for y in (x, *outs)]
    if kind_of(x.dtype) not in "fiub" or max(sizes) > _MOST_IN_TABLE:
        return False
    found = _sources(node)
    if found is None or any(y.dtype != x.dtype for y in outs):
        return False
    for out, table, fill in zip(outs, *found, strict=True):
        number = literal(bool(fill) if x.dtype.kind == "b" else fill, x.dtype)
        if number is None or table.shape != shape_of(out):
            return False
        where = symbol_like(out, None, table.dtype)
        lowering.known[where] = lowering.uploaded(table)
        if not written(lowering, node.op.name, (x, where), out, _picking(x, number)):
            return False
    return True


def _picking(x: Symbol, fill: str) -> Any:
    def write(writer: Writer) -> Written:
        out = writer.step.out
        lines = [f"I s = {writer.read(1, indices(out))};", *unravelled(shape_of(x), "s", "j")]
        return writer.kernel(lines, f"s < 0 ? {fill} : {writer.read(0, indices(x, 'j'))}")

    return write


def _copied_from(
    lowering: DeviceLowering, node: Node, x: Symbol, at: list[str], inside: str, fill: str | None
) -> bool:
    """Add a kernel that reads each element of the result at computed indices."""
    (out,) = node.outputs
    if fill is None:
        return False

    def write(writer: Writer) -> Written:
        return writer.kernel([], f"{inside} ? {writer.read(0, at)} : {fill}")

    return written(lowering, node.op.name, (x,), out, write)


def _pad(lowering: DeviceLowering, node: Node) -> bool:
    (x,), (out,) = node.inputs, node.outputs
    widths = node.params["pad_width"]
    widths = widths * len(shape_of(x)) if len(widths) == 1 else widths
    at, tests = [], ["true"]
    for axis, (n, (before, after)) in enumerate(zip(shape_of(x), widths, strict=True)):
        at.append(f"k{axis} - {before}")
        if before or after:
            tests.append(f"k{axis} >= {before} && k{axis} < {before + n}")
    known = kind_of(x.dtype) in "fiub" and x.dtype == out.dtype
    fill = literal(node.params.get("value", 0), x.dtype) if known else None
    return _copied_from(lowering, node, x, at, f"({' && '.join(tests)})", fill)


def _repeat(lowering: DeviceLowering, node: Node) -> bool:
    (x,), (out,), axis = node.inputs, node.outputs, node.params.get("axis")
    if axis is None or not shape_of(x):
        x, axis = reshaped(lowering, x, (prod(shape_of(x)),)), 0
    at = indices(x)
    axis %= len(at)
    at[axis] = f"k{axis} / {node.params['repeats']}"
    return len(shape_of(out)) == len(at) and _copied_from(lowering, node, x, at, "true", "0")


def _tile(lowering: DeviceLowering, node: Node) -> bool:
    (x,), (out,) = node.inputs, node.outputs
    extra = len(shape_of(out)) - len(shape_of(x))
    at = [f"k{extra + axis} % {n}" for axis, n in enumerate(shape_of(x))]
    return _copied_from(lowering, node, x, at, "true", "0")


def _flip(lowering: DeviceLowering, node: Node) -> bool:
    """Add a view back to front."""
    (x,), (out,), axis = node.inputs, node.outputs, node.params.get("axis")
    rank = len(shape_of(x))
    axes = range(rank) if axis is None else (axis,) if isinstance(axis, int) else axis
    turned = {a % rank for a in axes}
    back = slice(None, None, -1)
    index = tuple(back if a in turned else slice(None) for a in range(rank))
    part(lowering, x, index, out)
    return True


def _unpad(lowering: DeviceLowering, node: Node) -> bool:
    """Add a view of the inner elements."""
    (x,), (out,) = node.inputs, node.outputs
    widths = node.params["pad_width"]
    widths = widths * len(shape_of(x)) if len(widths) == 1 else widths
    index = tuple(slice(a, n - b) for n, (a, b) in zip(shape_of(x), widths, strict=True))
    part(lowering, x, index, out)
    return True


def _triangle(lowering: DeviceLowering, node: Node) -> bool:
    """Add a choice by a mask."""
    (x,), (out,) = node.inputs, node.outputs
    if kind_of(x.dtype) not in "fiub" or x.dtype != out.dtype:
        return False
    *_, rows, columns = shape_of(out)
    keep = kernel_of(node, registry().host_backend)(np.ones((rows, columns), bool))
    mask = symbol_like(out, (rows, columns), np.dtype(bool))
    lowering.known[mask] = lowering.uploaded(keep)
    lowering.add(StepKind.ELEMENTWISE, "where", np.where, (mask, x, 0), out)
    return True


def _added_copies(
    lowering: DeviceLowering, x: Symbol, blocks: list[int], axes: tuple[int, ...], out: Symbol
) -> bool:
    """Add the sum over the axes along which copies lie."""
    if x.dtype != out.dtype or x.dtype.char not in "fd":
        return False
    kept = tuple(n for a, n in enumerate(blocks) if a not in axes)
    total, params = symbol_like(out, kept), {"axis": axes, "keepdims": False}
    x = reshaped(lowering, x, tuple(blocks))
    total = lowering.add(StepKind.REDUCTION, "add", np.add.reduce, (x,), total, **params)
    reshaped(lowering, total, shape_of(out), out)
    return True


def _unrepeat(lowering: DeviceLowering, node: Node) -> bool:
    (x, _), (out,), axis = node.inputs, node.outputs, node.params["axis"]
    flat = axis is None or not shape_of(out)
    shape = [prod(shape_of(out))] if flat else list(shape_of(out))
    along = 0 if flat else axis % len(shape)
    blocks = [*shape[: along + 1], node.params["repeats"], *shape[along + 1 :]]
    return _added_copies(lowering, x, blocks, (along + 1,), out)


def _untile(lowering: DeviceLowering, node: Node) -> bool:
    (x, _), (out,), reps = node.inputs, node.outputs, node.params["reps"]
    rank = max(len(shape_of(out)), len(reps))
    times = [1] * (rank - len(reps)) + list(reps)
    sizes = [1] * (rank - len(shape_of(out))) + list(shape_of(out))
    blocks = [n for pair in zip(times, sizes, strict=True) for n in pair]
    return _added_copies(lowering, x, blocks, tuple(range(0, 2 * rank, 2)), out)


#: Ops whose result only moves elements of the first input, whatever they are.
_MOVING = (
    "crop_or_pad crop_or_pad_like diag diagonal diagonal_adjoint fftshift pad_picked roll shift "
    "split_like"
).split()
RULES: dict[str, Rule] = {
    **dict.fromkeys(_MOVING, _by_table),
    "flip": _flip,
    "pad": _pad,
    "repeat": _repeat,
    "tile": _tile,
    "unpad": _unpad,
    "tril": _triangle,
    "triu": _triangle,
    "unrepeat_like": _unrepeat,
    "untile_like": _untile,
}
