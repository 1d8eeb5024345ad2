"""The text of a group's function, in LLVM's intermediate representation.

The function receives the memory of the group's arrays, outputs first (``entry`` has checked them).
It goes through the elements once. If some steps are NumPy's own inner loops, it goes through blocks
instead: each pass computes a block in instructions, then inner loops read the results, and write to
buffers or outputs. The text does not depend on the process, so its machine code can be cached: the
inner loops are in a table, whose address is an argument.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from math import prod
from platform import machine
from typing import Any, NamedTuple

import numpy as np

from ...core.extend import Symbol
from ..planned import LoopGroup, PlanStep, shape_of
from .compiler import FLAGS, FUNCTION
from .forms import TYPES, Form, conversion
from .inner_loops import InnerLoop
from .passes import Buffers, Pass, Way, axes_of, contiguous, passes_of, ways_of
from .reductions import ZERO
from .writer import MEMORY, Writer, literal

#: LLVM masks the remainder of loops with fewer rounds than this.
_SHORT = 16
#: The number of elements of a block, and the bytes of buffers for one, at most.
_BLOCK, _BUFFERS = 1024, 2**15


class Layout(NamedTuple):
    """How a group is called.

    Attributes
    ----------
    axis
        The axis of its loops of which a call computes a part; None if it computes all.
    length
        The length of that axis.
    """

    axis: int | None
    length: int


class Source:
    """The text of a group.

    Parameters
    ----------
    group
        The group.
    forms
        The forms of its elementwise steps.
    calls
        The inner loops of the other elementwise steps.
    large
        Whether a call may compute a part of the group.
    strided
        The strides, in elements, of the inputs that are not C contiguous.

    Attributes
    ----------
    text
        The text.
    layout
        Which part it computes.
    table
        The inner loops, in the order of the table.
    """

    def __init__(
        self,
        group: LoopGroup,
        forms: Mapping[PlanStep, Form],
        calls: Mapping[PlanStep, InnerLoop],
        large: bool = False,
        strided: Mapping[Symbol, Sequence[int]] | None = None,
    ) -> None:
        self.group = group
        self.forms = forms
        self.calls = calls
        self.arrays = [*group.outputs, *group.inputs]
        self.table = list(dict.fromkeys(calls.values()))
        self.lengths, self.strides = axes_of(group, strided or {})
        self.layout = self._layout() if large else Layout(None, 0)
        self._pointers = {x: f"%m{i}" for i, x in enumerate(self.arrays)}
        self._buffers: dict[tuple[Symbol, str], str] = {}
        self._constants: list[str] = []
        self._passes = passes_of(group, calls)
        self._copies: list[list[tuple[Symbol, Any]]] = [[] for _ in self._passes]
        loop = self._writer = Writer()
        self._loop()
        parameters = ["ptr %table", "i64 %from", "i64 %to"]
        parameters += [f"ptr noalias %m{i}" for i in range(len(self.arrays))]
        entry = Writer()
        given = ["ptr %table", "i64 %from", "i64 %to"]
        given += [f"ptr {entry.load('ptr', '%memory', 8 * i)}" for i in range(len(self.arrays))]
        entry.lines.append(f"  %left = call i32 @loop({', '.join(given)})")
        self.text = "\n".join(
            [
                *self._constants,
                *sorted(loop.called),
                f"define internal i32 @loop({', '.join(parameters)}) noinline nounwind {{",
                *loop.lines,
                "}",
                f"define i32 @{FUNCTION}(ptr %table, i64 %from, i64 %to, ptr %memory) {{",
                *entry.lines,
                "  ret i32 %left",
                "}",
                *self._hints(),
                "",
            ]
        )

    def _hints(self) -> list[str]:
        """Return the hints for a short loop; LLVM warns if it cannot follow them."""
        length = self.lengths[-1]
        # every other number of 8 cannot be read 8 at a time
        apart = any(strides[-1] > 1 for strides in self.strides.values())
        if length < 4 or apart:
            return ["!0 = distinct !{!0, !1}", '!1 = !{!"llvm.loop.vectorize.enable", i1 false}']
        return [
            "!0 = distinct !{!0, !1, !2}",
            f'!1 = !{{!"llvm.loop.vectorize.width", i32 {8 if length >= 8 else 4}}}',
            '!2 = !{!"llvm.loop.vectorize.enable", i1 true}',
        ]

    def _layout(self) -> Layout:
        """Return the axis whose parts can be computed apart, with the same results."""
        axis = 0
        if self.group.tails:  # each column is summed in order
            axis = len(self.lengths) - 1
            if axis == 0 or (self.calls and self.lengths[axis] < _BLOCK // 4):
                return Layout(None, 0)
        elif not self.calls and self.lengths[0] < _SHORT:
            axis = self.lengths.index(max(self.lengths))
        return Layout(axis, self.lengths[axis])

    # -- the loop ------------------------------------------------------------------------------

    def _bounds(self, axis: int) -> tuple[str, str]:
        return ("%from", "%to") if axis == self.layout.axis else ("0", f"{self.lengths[axis]}")

    def _loop(self) -> None:
        writer = self._writer
        # whether anything must be left to NumPy
        writer.lines.append("  %left = alloca i32")
        writer.store("i32", "0", "%left")
        self._split = len(self.lengths) - 1
        if self.calls:
            self._cut()
        for step in self.group.tails:
            zero = literal(ZERO, step.out.dtype)
            bounds = self._bounds(len(self.lengths) - 1)
            total = (bounds[0], bounds[1] if bounds[0] != "0" else prod(shape_of(step.out)))
            with writer.loop(*total) as place:
                writer.write(step.out.dtype, zero, self._pointers[step.out], place)
        if self.calls:
            self._blocks()
        else:
            (one,) = self._passes
            with ExitStack() as stack:
                places = [stack.enter_context(x) for x in self._nest(range(len(self.lengths)))]
                self._body(0, one, places, "0")
        writer.lines.append(f"  ret i32 {writer.load('i32', '%left')}")

    def _nest(self, axes: Sequence[int]) -> Iterator[Any]:
        """Give the loops over some axes."""
        for axis in axes:
            start, end = self._bounds(axis)
            yield self._writer.loop(start, end, hint=self._hint(axis, end))

    def _hint(self, axis: int, end: str) -> str:
        # the remainder of a short loop must not use empty lanes: 0 / 0 would set a flag
        short = axis == len(self.lengths) - 1 and end.isdigit() and int(end) < _SHORT
        return ", !llvm.loop !0" if short else ""

    # -- blocks --------------------------------------------------------------------------------

    def _cut(self) -> None:
        """Find the axis that blocks cut, the number of its rows in each, and their buffers."""
        inner = contiguous(self.lengths)
        for axis in range(self.layout.axis or 0, len(inner)):
            self._split, self._inner, self._around = axis, inner[axis], inner[axis:]
            buffers = Buffers(self._passes, self.calls, self._pointers, self._is_in_place)
            most = min(_BLOCK, _BUFFERS // max(1, sum(buffers.sizes)))
            if self._inner <= most:
                break
        self._rows = min(self.lengths[self._split], max(1, most // self._inner))
        self._copies = buffers.copies
        self._buffers = {key: f"%buffer{number}" for key, number in buffers.places.items()}
        for number, size in enumerate(buffers.sizes):
            whole = self._rows * self._inner * size
            self._writer.lines.append(f"  %buffer{number} = alloca [{whole} x i8], align 64")

    def _blocks(self) -> None:
        writer, split = self._writer, self._split
        start, end = self._bounds(split)
        with ExitStack() as stack:
            places = [stack.enter_context(x) for x in self._nest(range(split))]
            if end == str(self._rows):
                rows = end
            else:
                start = stack.enter_context(writer.loop(start, end, self._rows))
                rest = writer.new(f"sub i64 {end}, {start}")
                rows = writer.new(f"call i64 @llvm.umin.i64(i64 {rest}, i64 {self._rows})")
            for number, each in enumerate(self._passes):
                if each.steps or each.tails or self._copies[number]:
                    with ExitStack() as inside:
                        loop = writer.loop("0", rows, hint=self._hint(split, rows))
                        row = inside.enter_context(loop)
                        others = self._nest(range(split + 1, len(self.lengths)))
                        inner = [inside.enter_context(x) for x in others]
                        whole = writer.place([start, row], [1, 1])
                        local = writer.place([row, *inner], self._around)
                        self._body(number, each, [*places, whole, *inner], local)
                for step in each.calls:
                    self._call(step, [*places, start], rows)

    def _is_single(self, x: Any) -> bool:
        return type(x) is not Symbol or prod(shape_of(x)) == 1

    def _is_in_place(self, x: Any, dtype: Any) -> bool:
        """Return whether an inner loop can read an operand where it is."""
        if type(x) is not Symbol:
            return True
        if x not in self._pointers:
            return False
        return x.dtype == dtype and (
            self._is_single(x) or self.strides[x, ""][self._split :] == self._around
        )

    def _call(self, step: PlanStep, places: list[str], rows: str) -> None:
        """Write the call of an inner loop for a block."""
        writer, loop = self._writer, self.calls[step]
        n = writer.number()
        operands = (*step.inputs, step.out)
        addresses, strides = [], []
        for x, dtype in zip(operands, loop.dtypes, strict=True):
            single = self._is_single(x)
            strides.append(0 if single else np.dtype(dtype).itemsize)
            addresses.append(self._address(x, dtype, places))
        kinds = ", ".join(f"i64 {stride}" for stride in strides)
        count = len(operands)
        self._constants.append(f"@strides{n} = private constant [{count} x i64] [{kinds}]")
        begin = writer.lines.index("  %left = alloca i32")
        writer.lines[begin:begin] = [
            f"  %arrays{n} = alloca [{count} x ptr]",
            f"  %length{n} = alloca i64",
        ]
        for i, address in enumerate(addresses):
            writer.store("ptr", address, writer.at(f"%arrays{n}", 8 * i))
        length = rows if self._inner == 1 else writer.new(f"mul nuw nsw i64 {rows}, {self._inner}")
        writer.store("i64", length, f"%length{n}")
        # an inner loop may clear the flags that were set before
        flags = FLAGS.get(machine(), 0)
        writer.note(writer.new(f"call i32 @fetestexcept(i32 {flags})"), "%left")
        place = 24 * self.table.index(loop)
        function, context, data = (writer.load("ptr", "%table", place + 8 * i) for i in range(3))
        failed = writer.new(
            f"call i32 {function}(ptr {context}, ptr %arrays{n}, ptr %length{n}, ptr @strides{n}, "
            f"ptr {data})"
        )
        writer.note(writer.new(f"lshr i32 {failed}, 31"), "%left")
        if loop.silent:
            writer.new(f"call i32 @feclearexcept(i32 {flags})")

    def _address(self, x: Any, dtype: Any, places: list[str]) -> str:
        """Return the memory of an operand of an inner loop."""
        writer = self._writer
        kind = MEMORY[np.dtype(dtype).name]
        if type(x) is not Symbol:
            name = f"@number{writer.number()}"
            self._constants.append(f"{name} = private constant {kind} {literal(x, dtype)}")
            return name
        buffer = self._buffers.get((x, np.dtype(dtype).name))
        if buffer is not None:
            return buffer
        strides = self.strides[x, ""][: self._split + 1]
        return writer.at(self._pointers[x], writer.place(places, strides), kind)

    # -- the instructions of a pass --------------------------------------------------------------

    def _body(self, number: int, each: Pass, places: list[str], local: str) -> None:
        writer = self._writer
        made = {step.out for step in each.steps}
        values: dict[Way, str] = {}
        copies = self._copies[number]
        wanted = [way for step in (*each.steps, *each.tails) for way in ways_of(step)]
        for way in dict.fromkeys([*wanted, *((x, "") for x, _ in copies)]):
            if way[0] not in made:
                values[way] = self._read(way, places, local)
        for step in each.steps:
            values[step.out, ""] = self._step(step, values)
        for step in each.steps:
            x, value = step.out, values[step.out, ""]
            if x in self._pointers:
                place = writer.place(places, self.strides[x, ""])
                writer.write(x.dtype, value, self._pointers[x], place)
            elif (x, x.dtype.name) in self._buffers:
                writer.write(x.dtype, value, self._buffers[x, x.dtype.name], local)
        for x, dtype in copies:
            buffer = self._buffers[x, np.dtype(dtype).name]
            writer.write(dtype, self._converted(values[x, ""], x.dtype, dtype), buffer, local)
        for step in each.tails:
            kind, place = (
                TYPES[step.out.dtype.name],
                writer.place(places, self.strides[step.out, ""]),
            )
            pointer = writer.at(self._pointers[step.out], place, kind)
            total = writer.load(kind, pointer)
            total = writer.new(f"fadd {kind} {total}, {values[step.inputs[0], '']}")
            writer.store(kind, total, pointer)

    def _read(self, way: Way, places: list[str], local: str) -> str:
        x = way[0]
        if x in self._pointers:
            place = self._writer.place(places, self.strides[way])
            return self._writer.read(x.dtype, self._pointers[x], place)
        return self._writer.read(x.dtype, self._buffers[x, x.dtype.name], local)

    def _step(self, step: PlanStep, values: dict[Way, str]) -> str:
        writer = self._writer
        form, dtypes = self.forms[step]
        given, ways = [], iter(ways_of(step))
        for x, dtype in zip(step.inputs, dtypes, strict=True):
            if type(x) is Symbol:
                given.append(self._converted(values[next(ways)], x.dtype, dtype))
            else:
                given.append(literal(x, dtype))
        if callable(form):
            value, left = form(writer.new, *given)
            writer.note(writer.new(f"zext i1 {left} to i32"), "%left")
            return str(value)
        kind = TYPES[np.dtype(dtypes[-1]).name]
        made: list[str] = []
        for text in form:
            text = text.format(*given, *made, t=kind, s={"float": "f32"}.get(kind, "f64"))
            made.append(writer.new(text))
        return made[-1] if made else given[-1]

    def _converted(self, value: str, source: Any, target: Any) -> str:
        how = conversion(source, target)
        if not how:
            return value
        kinds = [TYPES[np.dtype(x).name] for x in (source, target)]
        return self._writer.new(how.format(value, a=kinds[0], b=kinds[1]))
