"""Rules of ops along lines: running sums, positions of extremes, products, and sorting.

A thread walks along a line, or finds the rank of one element by comparing it with all others of its
line. So lines must be short; other arrays are left to the op's own kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from .....core.extend import Node, Symbol
from ....planned import Rule, Shape, shape_of
from ...writing.elements import Writer, indices, unravelled, written
from ...writing.formulas import compute_type, kind_of, stored
from ...writing.source import Written

if TYPE_CHECKING:
    from ..lowering import DeviceLowering

#: The maximum of elements in a line that a thread walks along, and in one that is sorted.
_MOST_WALKED, _MOST_SORTED = 4096, 2048
#: The maximum of comparisons in one kernel.
_MOST_COMPARED = 2**30


def _axes(x: Symbol, axis: Any) -> tuple[int, ...]:
    rank = len(shape_of(x))
    if axis is None:
        return tuple(range(rank))
    return tuple(a % rank for a in ((axis,) if isinstance(axis, int) else axis))


def _length(x: Symbol, axes: Sequence[int]) -> int:
    return prod(shape_of(x)[a] for a in axes)


def _by_axes(shape: Shape, axes: Sequence[int], number: str) -> list[str]:
    """Return lines that define the indices of some axes by a number, the last axis fastest."""
    lines, step = [], 1
    for place in range(len(axes) - 1, -1, -1):
        n = shape[axes[place]]
        text = number if step == 1 else f"{number} / {step}"
        lines.append(f"I k{axes[place]} = {text} % {n};" if n > 1 else f"I k{axes[place]} = 0;")
        step *= n
    return lines


def _begun(x: Symbol, axes: Sequence[int]) -> tuple[int, list[str]]:
    """Return the number of lines, and text that defines the indices of the line ``t``."""
    kept = [a for a in range(len(shape_of(x))) if a not in axes]
    return _length(x, kept), _by_axes(shape_of(x), kept, "t")


def _place(out: Symbol) -> str:
    """Return the place of the element with the indices ``k0``, ``k1``, ... in a result."""
    steps, step = [], 1
    for axis in range(len(shape_of(out)) - 1, -1, -1):
        steps.append(f"k{axis} * {step}")
        step *= shape_of(out)[axis]
    return " + ".join(steps[::-1]) or "0"


# -- running results -------------------------------------------------------------------------------


def _walk(
    lowering: DeviceLowering,
    node: Node,
    start: Callable[[Writer], Sequence[str]],
    each: Callable[[Writer], Sequence[str]],
    result: str,
) -> bool:
    """Add a kernel that walks along each line, in either direction, and writes at each step."""
    (out,), x = node.outputs, node.inputs[-1]
    axes = _axes(x, node.params.get("axis", 0))
    length, back = _length(x, axes), node.params.get("reverse", False)
    if any(kind_of(y.dtype) not in "fiub" for y in node.inputs) or length > _MOST_WALKED:
        return False

    def write(writer: Writer) -> Written:
        count, lines = _begun(x, axes)
        body = [
            *lines,
            *start(writer),
            f"for (I s = 0; s < {length}; s++) {{",
            f"    I n = {f'{length - 1} - s' if back else 's'};",
            *(f"    {line}" for line in _by_axes(shape_of(x), axes, "n")),
            *(f"    {line}" for line in each(writer)),
            f"    out[{_place(out)}] = {stored(out.dtype, result)};",
            "}",
        ]
        return [writer.launch(body, out, count)], []

    return written(lowering, node.op.name, node.inputs, out, write)


def _cumulative(sign: str, start: int) -> Rule:
    def rule(lowering: DeviceLowering, node: Node) -> bool:
        (x,), (out,) = node.inputs, node.outputs
        kind = compute_type(out.dtype) if kind_of(out.dtype) in "fiub" else ""
        return _walk(
            lowering,
            node,
            lambda writer: [f"{kind} sum = {start};"],
            lambda writer: [f"sum = sum {sign} ({kind}){writer.read(0, indices(x))};"],
            "sum",
        )

    return rule


def _recurrence(lowering: DeviceLowering, node: Node) -> bool:
    (a, b), (out,) = node.inputs, node.outputs
    if kind_of(out.dtype) not in "fiu" or shape_of(a) != shape_of(b):
        return False
    kind = compute_type(out.dtype)

    def each(writer: Writer) -> list[str]:
        factor, term = (f"({kind}){writer.read(i, indices(out))}" for i in (0, 1))
        return [f"{kind} b = {term};", f"sum = s ? b + {factor} * sum : b;"]

    return _walk(lowering, node, lambda writer: [f"{kind} sum = 0;"], each, "sum")


def _running_place(lowering: DeviceLowering, node: Node) -> bool:
    (x,) = node.inputs
    return kind_of(x.dtype) in "fiub" and _walk(
        lowering,
        node,
        lambda writer: [f"{compute_type(x.dtype)} best = 0;", "long long found = 0;"],
        lambda writer: _better(writer, x, "<" if node.params.get("lowest") else ">", "s"),
        "found",
    )


def _better(writer: Writer, x: Symbol, sign: str, number: str) -> list[str]:
    """Return lines that note the first of the best elements so far; nan is better than others."""
    return [
        f"{compute_type(x.dtype)} v = {writer.read(0, indices(x))};",
        f"if (!{number} || (best == best && (v {sign} best || v != v))) {{",
        f"    best = v; found = {number};",
        "}",
    ]


# -- one result of a line --------------------------------------------------------------------------


def _reduced(
    lowering: DeviceLowering,
    node: Node,
    start: Sequence[str],
    each: Callable[[Writer], Sequence[str]],
    result: str,
) -> bool:
    """Add a kernel with a thread for each line, which writes one element."""
    (x,), (out,) = node.inputs, node.outputs
    axes = _axes(x, node.params.get("axis"))
    length = _length(x, axes)
    if length > _MOST_WALKED:
        return False

    def write(writer: Writer) -> Written:
        count, lines = _begun(x, axes)
        body = [
            *lines,
            *start,
            f"for (I n = 0; n < {length}; n++) {{",
            *(f"    {line}" for line in (*_by_axes(shape_of(x), axes, "n"), *each(writer))),
            "}",
            f"out[t] = {stored(out.dtype, result)};",
        ]
        return [writer.launch(body, out, count)], []

    return written(lowering, node.op.name, node.inputs, out, write)


def _extreme_place(sign: str) -> Rule:
    def rule(lowering: DeviceLowering, node: Node) -> bool:
        (x,) = node.inputs
        if kind_of(x.dtype) not in "fiub":
            return False
        start = [f"{compute_type(x.dtype)} best = 0;", "long long found = 0;"]
        return _reduced(lowering, node, start, lambda w: _better(w, x, sign, "n"), "found")

    return rule


def _prod(lowering: DeviceLowering, node: Node) -> bool:
    (x,), (out,) = node.inputs, node.outputs
    if kind_of(out.dtype) not in "fiu" or kind_of(x.dtype) not in "fiub":
        return False
    kind = compute_type(out.dtype)

    def each(writer: Writer) -> list[str]:
        return [f"product = product * ({kind}){writer.read(0, indices(x))};"]

    return _reduced(lowering, node, [f"{kind} product = 1;"], each, "product")


def _count_nonzero(lowering: DeviceLowering, node: Node) -> bool:
    (x,) = node.inputs

    def each(writer: Writer) -> list[str]:
        return [f"found += {writer.read(0, indices(x))} != 0;"]

    return kind_of(x.dtype) in "fiub" and _reduced(
        lowering, node, ["long long found = 0;"], each, "found"
    )


# -- sorting ---------------------------------------------------------------------------------------


def _sorting(result: str) -> Rule:
    """Return the rule of an op that writes something of each element at its rank.

    Parameters
    ----------
    result
        What it writes: ``v``, the element, or its index ``k``.
    """

    def rule(lowering: DeviceLowering, node: Node) -> bool:
        (x,), (out,) = node.inputs, node.outputs
        rank = len(shape_of(x))
        axis = node.params.get("axis", -1) % max(rank, 1)
        if not rank or kind_of(x.dtype) not in "fiub" or not _is_short(x, axis):
            return False

        def write(writer: Writer) -> Written:
            kind, others = compute_type(x.dtype), indices(x)
            others[axis] = "e"
            body = [
                *unravelled(shape_of(x)),
                f"{kind} v = {writer.read(0, indices(x))};",
                "I rank = 0;",
                f"for (I e = 0; e < {shape_of(x)[axis]}; e++) {{",
                f"    {kind} u = {writer.read(0, others)};",
                "    bool less = u < v || (v != v && u == u);",
                "    bool more = v < u || (u != u && v == v);",
                f"    if (less || (!more && e < k{axis})) rank++;",
                "}",
                f"I k = k{axis};",
                f"k{axis} = rank;",
                f"out[{_place(out)}] = {stored(out.dtype, result)};",
            ]
            return [writer.launch(body, out, prod(shape_of(x)))], []

        return written(lowering, node.op.name, (x,), out, write)

    return rule


def _is_short(x: Symbol, axis: int) -> bool:
    length = shape_of(x)[axis]
    return length <= _MOST_SORTED and prod(shape_of(x)) * length <= _MOST_COMPARED


def _unsort(lowering: DeviceLowering, node: Node) -> bool:
    (g, order), (out,) = node.inputs, node.outputs
    axis = node.params["axis"] % max(len(shape_of(out)), 1)
    if not shape_of(out) or shape_of(g) != shape_of(order) or not _is_short(out, axis):
        return False

    def write(writer: Writer) -> Written:
        at = indices(out)
        at[axis] = "e"
        lines = [
            f"{compute_type(out.dtype)} found = 0;",
            f"for (I e = 0; e < {shape_of(out)[axis]}; e++) {{",
            f"if ({writer.read(1, at)} == k{axis}) found = {writer.read(0, at)};",
            "}",
        ]
        return writer.kernel(lines, "found")

    return written(lowering, "unsort", (g, order), out, write)


RULES: dict[str, Rule] = {
    "argmax": _extreme_place(">"),
    "argmin": _extreme_place("<"),
    "argsort": _sorting("k"),
    "count_nonzero": _count_nonzero,
    "cumprod": _cumulative("*", 1),
    "cumsum": _cumulative("+", 0),
    "prod": _prod,
    "recurrence": _recurrence,
    "running_place": _running_place,
    "sort": _sorting("v"),
    "sort_order": _sorting("k"),
    "unsort": _unsort,
}
