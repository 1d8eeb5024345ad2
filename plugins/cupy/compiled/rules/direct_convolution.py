"""Convolutions without products of matrices: a thread adds up each element of the result.

For groups of few channels, such as those of depthwise convolutions, and for integers.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from .....core.extend import Node, Symbol
from ....ops.network.windows import Windows
from ....planned import shape_of, symbol_like
from ...writing.elements import Writer, unravelled, written
from ...writing.formulas import compute_type, stored
from ...writing.source import KernelLaunch, Written
from .windows import names, places_in_window, windows_of_place

if TYPE_CHECKING:
    from ..lowering import DeviceLowering

#: A sufficient number of threads, and the minimum of numbers that each of them adds.
_THREADS, _LEAST = 2**17, 16


def direct(
    lowering: DeviceLowering, node: Node, operands: tuple[Symbol, Symbol], where: Windows
) -> bool:
    """Add the kernels of a convolution, or of one of its gradients.

    Parameters
    ----------
    lowering
        The lowering to which the step is added.
    node
        The convolution.
    operands
        The inputs that are not there for their shape only.
    where
        The windows on the images.
    """
    (out,), name, groups = node.outputs, node.op.name, node.params.get("groups", 1)
    if out.dtype.kind == "b" or any(x.dtype != out.dtype for x in operands):
        return False
    write = _WRITERS[name]
    return written(lowering, name, operands, out, lambda writer: write(writer, where, groups))


def _forward(writer: Writer, where: Windows, groups: int) -> Written:
    w, out = writer.step.inputs[1], writer.step.out
    rank, (each, filters) = len(where.sizes), shape_of(w)[-2:]
    opening, closing = places_in_window(where)
    kind, last = compute_type(out.dtype), f"k{rank + 1}"
    x = writer.read(0, ["k0", *names("i", where), "first + c"])
    weight = writer.read(1, [*names("p", where), "c", last])
    lines = [
        f"{kind} sum = 0;",
        f"I first = {last} / {filters // groups} * {each};",
        *opening,
        f"for (I c = 0; c < {each}; c++) sum = sum + {x} * {weight};",
        *closing,
    ]
    return writer.kernel(lines, "sum")


def _to_images(writer: Writer, where: Windows, groups: int) -> Written:
    w, out = writer.step.inputs[1], writer.step.out
    rank, (each, filters) = len(where.sizes), shape_of(w)[-2:]
    opening, closing = windows_of_place(where)
    kind, last, width = compute_type(out.dtype), f"k{rank + 1}", filters // groups
    g = writer.read(0, ["k0", *names("o", where), "first + f"])
    weight = writer.read(1, [*names("p", where), f"{last} % {each}", "first + f"])
    lines = [
        f"{kind} sum = 0;",
        f"I first = {last} / {each} * {width};",
        *opening,
        f"for (I f = 0; f < {width}; f++) sum = sum + {g} * {weight};",
        *closing,
    ]
    return writer.kernel(lines, "sum")


def _to_filters(writer: Writer, where: Windows, groups: int) -> Written:
    """Let threads share the sum over all windows, and others add what they found."""
    g, out, rank = writer.step.inputs[0], writer.step.out, len(where.sizes)
    each, filters = shape_of(out)[-2:]
    elements, count = prod(shape_of(out)), shape_of(g)[0] * prod(where.out)
    parts = max(1, min(-(-count // _LEAST), _THREADS // elements))
    wide = np.dtype(np.float32) if out.dtype == np.float16 else out.dtype
    found = out if parts == 1 else symbol_like(out, (parts, *shape_of(out)), wide)
    kind = compute_type(out.dtype)
    at = [f"w{axis} * {s} + k{axis - 1} * {d} - {a}" for axis, (s, d, (a, _)) in
          enumerate(zip(where.strides, where.dilations, where.pads, strict=True), 1)]  # fmt: skip
    inside = [f"i{axis} >= 0 && i{axis} < {n}" for axis, n in enumerate(where.sizes, 1)]
    image = writer.read(1, ["w0", *names("i", where), "channel"])
    slope = writer.read(0, ["w0", *names("w", where), f"k{rank + 1}"])
    body = [
        f"I e = t % {elements};",
        *unravelled(shape_of(out), "e"),
        f"I channel = k{rank + 1} / {filters // groups} * {each} + k{rank};",
        f"{kind} sum = 0;",
        f"for (I n = t / {elements}; n < {count}; n += {parts}) {{",
        *(f"    {line}" for line in unravelled((shape_of(g)[0], *where.out), "n", "w")),
        *(f"    I i{axis} = {text};" for axis, text in enumerate(at, 1)),
        f"    if ({' && '.join(inside)}) sum = sum + {image} * {slope};",
        "}",
        f"out[t] = {stored(found.dtype, 'sum')};",
    ]
    first = writer.launch(body, found, parts * elements)
    if parts == 1:
        return [first], []
    return [first, _added(writer, found, parts, elements)], [found]


def _added(writer: Writer, found: Symbol, parts: int, elements: int) -> KernelLaunch:
    out = writer.step.out
    body = [
        f"{compute_type(out.dtype)} sum = 0;",
        f"for (I n = 0; n < {parts}; n++) sum = sum + g0[n * {elements} + t];",
        f"out[t] = {stored(out.dtype, 'sum')};",
    ]
    return writer.launch(body, out, elements, [found])


_WRITERS: dict[str, Callable[[Writer, Windows, int], Written]] = {
    "conv": _forward,
    "conv_to_images": _to_images,
    "conv_transpose": _to_images,
    "conv_to_filters": _to_filters,
}
