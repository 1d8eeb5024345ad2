"""Rules of pooling: each element of a result has its own thread, which looks at all its windows.

So windows may overlap, and no two threads add to one element.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from .....core.extend import Node, Symbol
from ....ops.network.pooling import pool_windows
from ....ops.network.windows import Windows
from ....planned import Rule
from ...writing.elements import Writer, indices, written
from ...writing.formulas import compute_type, kind_of, literal
from ...writing.source import Written
from .windows import names, place_by_number, places_in_window, windows_of_place

if TYPE_CHECKING:
    from ..lowering import DeviceLowering


def _max_pool(lowering: DeviceLowering, node: Node) -> bool:
    (x,), (out,) = node.inputs, node.outputs
    where, lowest = pool_windows(x, **node.params), _lowest(x)

    def write(writer: Writer) -> Written:
        opening, closing = places_in_window(where)
        kind = compute_type(x.dtype)
        return writer.kernel(
            [
                f"{kind} best = {lowest};",
                *opening,
                f"{kind} here = {writer.read(0, _at(where))};",
                "best = best != best || best > here ? best : here;",
                *closing,
            ],
            "best",
        )

    return lowest is not None and written(lowering, "max_pool", (x,), out, write)


def _max_pool_scatter(lowering: DeviceLowering, node: Node) -> bool:
    """Add gradients of the windows in which an element is the first of the largest ones."""
    (g, x, largest), (out,) = node.inputs, node.outputs
    where, lowest = pool_windows(x, **node.params), _lowest(x)

    def write(writer: Writer) -> Written:
        opening, closing = windows_of_place(where)
        kind, total = compute_type(x.dtype), compute_type(g.dtype)
        window = ["k0", *names("o", where), f"k{len(where.sizes) + 1}"]
        number = "0"
        for axis, size in enumerate(where.kernel, 1):
            number = f"({number} * {size} + p{axis})"
        return writer.kernel(
            [
                f"{total} sum = 0;",
                f"{kind} mine = {writer.read(1, indices(x))};",
                *opening,
                f"{kind} best = {writer.read(2, window)};",
                "bool first = mine == best || mine != mine;",
                f"I end = {number};",
                "for (I e = 0; first && e < end; e++) {",
                *place_by_number(where, "e", "o"),
                f"{kind} other = {lowest};",
                f"if (inside) other = {writer.read(1, _at(where))};",
                "if (other == best || other != other) first = false;",
                "}",
                f"if (first) sum = sum + {writer.read(0, window)};",
                *closing,
            ],
            "sum",
        )

    return lowest is not None and written(lowering, "max_pool_scatter", (g, x, largest), out, write)


def _max_pool_gather(lowering: DeviceLowering, node: Node) -> bool:
    """Add a kernel that picks from each window at its first largest element."""
    (d, x, largest), (out,) = node.inputs, node.outputs
    where, lowest = pool_windows(x, **node.params), _lowest(x)

    def write(writer: Writer) -> Written:
        kind = compute_type(x.dtype)
        return writer.kernel(
            [
                f"{compute_type(d.dtype)} found = 0;",
                f"{kind} best = {writer.read(2, indices(largest))};",
                f"for (I e = 0; e < {prod(where.kernel)}; e++) {{",
                *place_by_number(where, "e"),
                f"{kind} other = {lowest};",
                f"if (inside) other = {writer.read(1, _at(where))};",
                "if (other != best && other == other) continue;",
                f"if (inside) found = {writer.read(0, _at(where))};",
                "break;",
                "}",
            ],
            "found",
        )

    return lowest is not None and written(lowering, "max_pool_gather", (d, x, largest), out, write)


def _avg_pool(lowering: DeviceLowering, node: Node) -> bool:
    (x,), (out,) = node.inputs, node.outputs
    where = pool_windows(x, **node.params)

    def write(writer: Writer) -> Written:
        opening, closing = places_in_window(where)
        kind = compute_type(x.dtype)
        lines = [f"{kind} sum = 0; I count = 0;", *opening]
        lines += [f"sum = sum + {writer.read(0, _at(where))};", "count++;", *closing]
        return writer.kernel(lines, f"sum / ({kind})(count ? count : 1)")

    return kind_of(x.dtype) == "f" and written(lowering, "avg_pool", (x,), out, write)


def _avg_pool_scatter(lowering: DeviceLowering, node: Node) -> bool:
    (g, like), (out,) = node.inputs, node.outputs
    where = pool_windows(like, **node.params)

    def write(writer: Writer) -> Written:
        opening, closing = windows_of_place(where)
        kind = compute_type(g.dtype)
        count = []
        for axis, size in enumerate(where.sizes, 1):
            start = f"(o{axis} * {where.strides[axis - 1]} - {where.pads[axis - 1][0]})"
            end = f"({start} + {where.kernel[axis - 1]})"
            count.append(f"(({end} < {size} ? {end} : {size}) - ({start} > 0 ? {start} : 0))")
        window = ["k0", *names("o", where), f"k{len(where.sizes) + 1}"]
        share = f"{writer.read(0, window)} / ({kind})({' * '.join(count)})"
        lines = [f"{kind} sum = 0;", *opening, f"sum = sum + {share};", *closing]
        return writer.kernel(lines, "sum")

    return kind_of(g.dtype) == "f" and written(lowering, "avg_pool_scatter", (g,), out, write)


def _at(where: Windows) -> list[str]:
    """Return the indices of an element of a window in the images."""
    return ["k0", *names("i", where), f"k{len(where.sizes) + 1}"]


def _lowest(x: Symbol) -> str | None:
    """Return the smallest number of a dtype; None if it has none."""
    if x.dtype.kind in "iu":
        return literal(np.iinfo(x.dtype).min, x.dtype)
    return literal(float("-inf"), x.dtype) if kind_of(x.dtype) == "f" else None


RULES: dict[str, Rule] = {
    "max_pool": _max_pool,
    "max_pool_scatter": _max_pool_scatter,
    "max_pool_gather": _max_pool_gather,
    "avg_pool": _avg_pool,
    "avg_pool_scatter": _avg_pool_scatter,
}
