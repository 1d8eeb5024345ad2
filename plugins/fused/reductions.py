"""The text of a reduction that is not part of a group, in LLVM's intermediate representation.

NumPy calls its inner loop once for each row that it sums, or for each row that it adds to others,
so that short rows take more time to call than to add. Here one loop goes through all rows, in
NumPy's order: rows are added to others one after another, and the elements of a row in eight
partial sums, which are added in pairs. Rows of more than 128 elements are halved before (pairwise
summation; the order is that of ``pairwise_sum`` in NumPy's source). A greatest or least element
does not depend on the order, unless it is nan or a zero: these are left to NumPy.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np

from ..planned import PlanStep, shape_of
from .compiler import FUNCTION
from .forms import TYPES
from .writer import Writer, literal

#: What NumPy's sums start with: 0, or a negative zero, which keeps that of the elements.
ZERO = np.add.reduce(np.full((2, 2), -0.0), 0)[0]
#: The partial sums of a row, and the number of elements from which a row is halved first.
_LANES, _WHOLE = 8, 128
#: The maximum length of a row that is summed, of one whose greatest element is found, and of one
#: that is added to others; NumPy is fast at longer ones. The maximum number of elements that one
#: row of the result depends on.
_LONGEST, _SEARCHED, _WIDEST, _MOST = 1024, 256, 512, 2**17
_GREATER = {"maximum": "ogt", "minimum": "olt"}


class Rows(NamedTuple):
    """The axes of a reduction, as few as possible: those before, those reduced, those after."""

    outer: int
    length: int
    inner: int


def rows_of(step: PlanStep) -> Rows | None:
    """Return the axes of a reduction that a loop can compute, or None.

    Parameters
    ----------
    step
        A step that reduces.
    """
    (x,), axis = step.inputs, step.params["axis"]
    if x.dtype.char not in "fd" or x.dtype != step.out.dtype or x.shape is None:
        return None
    if axis is None or (step.op != "add" and step.op not in _GREATER):
        return None
    shape = shape_of(x)
    axes = sorted(i % len(shape) for i in (axis if type(axis) is tuple else (axis,)))
    if not axes or axes != list(range(axes[0], axes[-1] + 1)):
        return None
    first, last = axes[0], axes[-1] + 1
    found = Rows(prod(shape[:first]), prod(shape[first:last]), prod(shape[last:]))
    if found.outer < 2 or found.length < 2 or not found.inner:
        return None
    if found.inner == 1:
        return found if found.length <= (_LONGEST if step.op == "add" else _SEARCHED) else None
    if step.op != "add" or found.inner > _WIDEST or found.length * found.inner > _MOST:
        return None
    return found


def text_of(step: PlanStep, rows: Rows) -> str:
    """Return the text of ``loop(inner loops, first row, end, memory of the arrays)``.

    Parameters
    ----------
    step
        The reduction.
    rows
        The result of :func:`rows_of`.
    """
    writer = Writer()
    reduction = _Reduction(writer, step, rows)
    with writer.loop("%from", "%to") as row:
        reduction.write(row)
    left = writer.load("i32", "%left")
    entry = Writer()
    out, x = (entry.load("ptr", "%memory", 8 * i) for i in range(2))
    return "\n".join(
        [
            "define internal i32 @loop(i64 %from, i64 %to, ptr noalias %out, ptr noalias %x) "
            "noinline nounwind {",
            *writer.lines,
            f"  ret i32 {left}",
            "}",
            f"define i32 @{FUNCTION}(ptr %table, i64 %from, i64 %to, ptr %memory) {{",
            *entry.lines,
            "  ; a call that computes all rows passes 0",
            "  %all = icmp eq i64 %to, 0",
            f"  %last = select i1 %all, i64 {rows.outer}, i64 %to",
            f"  %given = call i32 @loop(i64 %from, i64 %last, ptr {out}, ptr {x})",
            "  ret i32 %given",
            "}",
            "",
        ]
    )


class _Reduction:
    """Writes the instructions that reduce one row."""

    def __init__(self, writer: Writer, step: PlanStep, rows: Rows) -> None:
        self._new, self._writer = writer.new, writer
        self._kind = TYPES[np.dtype(step.out.dtype).name]
        self._zero = literal(ZERO, step.out.dtype)
        self._wide = f"<{_LANES} x {self._kind}>"
        self._rows = rows
        self._order = _GREATER.get(step.op)
        writer.lines.append("  %left = alloca i32")
        writer.store("i32", "0", "%left")

    def write(self, row: str) -> None:
        """Write the reduction of the row at a position."""
        writer, kind = self._writer, self._kind
        start = writer.new(f"mul nuw nsw i64 {row}, {self._rows.length * self._rows.inner}")
        source = writer.at("%x", start, kind)
        if self._rows.inner > 1:
            self._columns(source, row)
            return
        if self._order is None:
            value = self._new(
                f"fadd {kind} {self._zero}, {self._sum(source, 0, self._rows.length)}"
            )
        else:
            value = self._best(source, self._rows.length)
        writer.store(kind, value, writer.at("%out", row, kind))

    def _columns(self, source: str, row: str) -> None:
        """Add rows to rows: the sums of one column after another, all of which LLVM keeps."""
        writer, kind, (_, count, inner) = self._writer, self._kind, self._rows
        target = writer.at("%out", writer.new(f"mul nuw nsw i64 {row}, {inner}"), kind)
        with writer.loop("0", inner) as column:
            writer.store(kind, self._zero, writer.at(target, column, kind))
        with writer.loop("0", count) as place:
            part = writer.at(source, writer.new(f"mul nuw nsw i64 {place}, {inner}"), kind)
            with writer.loop("0", inner) as column:
                sums = writer.at(target, column, kind)
                element = writer.load(kind, writer.at(part, column, kind))
                total = writer.new(f"fadd {kind} {writer.load(kind, sums)}, {element}")
                writer.store(kind, total, sums)

    # -- one row -------------------------------------------------------------------------------

    def _element(self, source: str, place: int) -> str:
        return self._writer.load(self._kind, self._writer.at(source, place, self._kind))

    def _elements(self, source: str, place: int) -> str:
        pointer = self._writer.at(source, place, self._kind)
        size = 4 if self._kind == "float" else 8
        return self._new(f"load {self._wide}, ptr {pointer}, align {size}")

    def _halves(self, value: str, lanes: int) -> tuple[str, str]:
        """Return the elements at even and odd positions."""
        parts = []
        for first in range(2):
            places = ", ".join(f"i32 {i}" for i in range(first, lanes, 2))
            wide = f"<{lanes} x {self._kind}>"
            text = f"{wide} {value}, {wide} poison, <{lanes // 2} x i32> <{places}>"
            parts.append(self._new(f"shufflevector {text}"))
        return parts[0], parts[1]

    def _sum(self, source: str, start: int, count: int) -> str:
        if count > _WHOLE:
            half = count // 2
            half -= half % _LANES
            first = self._sum(source, start, half)
            second = self._sum(source, start + half, count - half)
            return self._new(f"fadd {self._kind} {first}, {second}")
        done, total = count - count % _LANES, self._zero
        if done:
            total = self._elements(source, start)
            for place in range(_LANES, done, _LANES):
                more = self._elements(source, start + place)
                total = self._new(f"fadd {self._wide} {total}, {more}")
            for lanes in (8, 4, 2):
                even, odd = self._halves(total, lanes)
                total = self._new(f"fadd <{lanes // 2} x {self._kind}> {even}, {odd}")
            total = self._new(f"extractelement <1 x {self._kind}> {total}, i32 0")
        for place in range(done, count):
            total = self._new(f"fadd {self._kind} {total}, {self._element(source, start + place)}")
        return total

    def _best(self, source: str, count: int) -> str:
        """Return the greatest or least element; leave a nan or a zero to NumPy."""
        read, kind, truth = self._element, self._kind, "i1"
        places = list(range(count))
        if count >= _LANES:
            read, kind, truth = self._elements, self._wide, f"<{_LANES} x i1>"
            # the last elements once more, instead of a rest
            places = [*range(0, count - _LANES, _LANES), count - _LANES]
        value = read(source, places[0])
        odd = self._new(f"fcmp uno {kind} {value}, {value}")
        for place in places[1:]:
            other = read(source, place)
            value = self._better(value, other, kind, truth)
            nan = self._new(f"fcmp uno {kind} {other}, {other}")
            odd = self._new(f"or {truth} {odd}, {nan}")
        if count >= _LANES:
            for lanes in (8, 4, 2):
                half = f"<{lanes // 2} x {self._kind}>"
                value = self._better(*self._halves(value, lanes), half, f"<{lanes // 2} x i1>")
            value = self._new(f"extractelement <1 x {self._kind}> {value}, i32 0")
            bits = self._new(f"bitcast <{_LANES} x i1> {odd} to i{_LANES}")
            odd = self._new(f"icmp ne i{_LANES} {bits}, 0")
        zero = self._new(f"fcmp oeq {self._kind} {value}, 0.0")
        left = self._new(f"or i1 {odd}, {zero}")
        self._writer.note(self._new(f"zext i1 {left} to i32"), "%left")
        return value

    def _better(self, x: str, y: str, kind: str, truth: str) -> str:
        """Return the better element of each pair that has no nan."""
        better = self._new(f"fcmp {self._order} {kind} {x}, {y}")
        return self._new(f"select {truth} {better}, {kind} {x}, {kind} {y}")
