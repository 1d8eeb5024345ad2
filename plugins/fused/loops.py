"""Loops: groups of steps as functions that LLVM compiles, each element read and written once.

A loop contains only operations with a single correct rounding, so that its results are NumPy's, bit
for bit; sums are over the first axis, in NumPy's order. A loop cannot warn as NumPy does
(``numpy.errstate``). If the processor has set a flag for such a warning, NumPy runs the group once
more, and warns.

A loop is text in LLVM's intermediate representation. Its function is called from Python with the
arrays of a group, outputs first. It checks that they are as the plan says (type, dtype, shape,
order in memory), and calls the loop with their memory. If they are not, or the processor has set a
flag that NumPy would warn of, it calls ``otherwise`` with the same arguments. It does not depend on
the process, so its machine code can be cached.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from functools import cache, partial
from itertools import count
from math import prod
from platform import machine
from typing import Any, TypeAlias

import numpy as np

from ...core.extend import Symbol
from ..planned import Emitter, LoopGroup, PlanStep, Shape, StepKind, shape_of
from .compiler import (
    DATA,
    DTYPE,
    DTYPES,
    FLAGS,
    FUNCTION,
    HEADER,
    ORDERED,
    RANK,
    SHAPE,
    STATE,
    compiled,
)
from .forms import FUNCTIONS, TRANSCENDENTAL, TYPES, constant, conversion, form_of

# -- the text of a loop ----------------------------------------------------------------------------


#: From this number of operations, a group lets other threads run meanwhile.
_LONG = 2**14
#: LLVM masks the remainder of loops with fewer rounds than this.
_SHORT = 16
#: The number of times that a loop is repeated for its warnings before it is given up.
_MOST_REPEATED = 10
_MEMORY = {**TYPES, "bool": "i8"}
#: A value, and how it is read: element by element by default.
Way: TypeAlias = tuple[Symbol, str]
#: Other ways, in a loop over (o, b, h): the distance of elements along each axis.
_WAYS: dict[str, Callable[[int, int, int], list[int]]] = {
    "slopes": lambda o, b, h: [1, o, 0],
    "rows": lambda o, b, h: [h, 0, 1],
    "turned": lambda o, b, h: [1, 0, o],
}


def source(group: LoopGroup, exact: Container[str]) -> str:
    """Return the text of a group's loop.

    Parameters
    ----------
    group
        A group of steps that have forms.
    exact
        As for :func:`~.forms.form_of`.
    """
    return _Source(group, exact).text


class _Source:
    def __init__(self, group: LoopGroup, exact: Container[str]) -> None:
        self.group = group
        self.exact = exact
        self.arrays = [*group.outputs, *group.inputs]
        self.lines: list[str] = []
        self.called: set[str] = set()
        self._numbers = count()
        self._block = "start"
        self._strides()
        self._loop()
        loop, self.lines = self.lines, []
        alone = all("@llvm." in name for name in self.called)
        self._entry()
        parameters = ", ".join(f"ptr noalias %m{i}" for i in range(len(self.arrays)))
        names = dict.fromkeys(np.dtype(x.dtype).name for x in self.arrays)
        symbols = ["array_type", "_Py_NoneStruct"]
        symbols += [f"{kind}_{name}" for name in names for kind in ("dtype", "type")]
        self.text = "\n".join(
            [
                *(f"@{name} = external global i8" for name in symbols),
                "declare void @PyEval_RestoreThread(ptr)",
                "declare void @Py_IncRef(ptr)",
                *sorted(self.called),
                f"define internal i32 @loop({parameters}) noinline nounwind {{",
                *loop,
                "}",
                f"define ptr @{FUNCTION}(ptr %self, ptr %args, i64 %count) {{",
                *self.lines,
                "}",
                *self._hints(alone),
                "",
            ]
        )

    def _hints(self, alone: bool) -> list[str]:
        """Return the hints for a short loop; LLVM warns if it cannot follow them."""
        length = self.lengths[-1] if self.lengths else 1
        if not alone or length < 4:
            return ["!0 = distinct !{!0, !1}", '!1 = !{!"llvm.loop.vectorize.enable", i1 false}']
        return [
            "!0 = distinct !{!0, !1, !2}",
            f'!1 = !{{!"llvm.loop.vectorize.width", i32 {8 if length >= 8 else 4}}}',
            '!2 = !{!"llvm.loop.vectorize.enable", i1 true}',
        ]

    # -- lines -------------------------------------------------------------------------------------

    def _new(self, text: str) -> str:
        """Add an instruction; return the name of its value."""
        if text.startswith("call"):
            self.called.add(_declaration(text))
        name = f"%v{next(self._numbers)}"
        self.lines.append(f"  {name} = {text}")
        return name

    def _at(self, pointer: str, places: Any, kind: str = "i8") -> str:
        return self._new(f"getelementptr inbounds {kind}, ptr {pointer}, i64 {places}")

    def _load(self, kind: str, pointer: str, offset: int = 0) -> str:
        return self._new(f"load {kind}, ptr {self._at(pointer, offset) if offset else pointer}")

    def _label(self, name: str) -> None:
        self.lines.append(f"{name}:")
        self._block = name

    # -- the loop ----------------------------------------------------------------------------------

    def _strides(self) -> None:
        """Find the loops, as few as possible, and the strides of all arrays in each."""
        whole = self.group.shape
        found = {(x, ""): _broadcast(shape_of(x), whole) for x in self.group.outputs}
        for step in self.group.members:
            for x, how in _ways(step):
                found[x, how] = _WAYS[how](*whole) if how else _broadcast(shape_of(x), whole)
        self.lengths: list[int] = []
        self.strides: dict[Way, list[int]] = {way: [] for way in found}
        for axis, length in enumerate(whole):
            if length == 1:
                continue
            here = {way: strides[axis] for way, strides in found.items()}
            pairs = [(self.strides[way], stride * length) for way, stride in here.items()]
            if self.lengths and all(outer[-1] == span for outer, span in pairs):
                self.lengths[-1] *= length
                for way, stride in here.items():
                    self.strides[way][-1] = stride
                continue
            self.lengths.append(length)
            for way, stride in here.items():
                self.strides[way].append(stride)

    def _loop(self) -> None:
        self._label("start")
        # whether anything must be left to NumPy
        self.lines += ["  %left = alloca i32", "  store i32 0, ptr %left"]
        self._pointers = {x: f"%m{i}" for i, x in enumerate(self.arrays)}
        for step in self.group.tails:
            self._nest([prod(shape_of(step.out))], partial(self._begin, step.out))
        self._nest(self.lengths, self._body)
        self.lines.append(f"  ret i32 {self._load('i32', '%left')}")

    def _nest(self, lengths: Sequence[int], body: Callable[[list[str]], None]) -> None:
        """Add nested loops, with a body in the innermost one."""
        opened = []
        for length in lengths:
            n = next(self._numbers)
            self.lines.append(f"  br label %head{n}")
            before = self._block
            self._label(f"head{n}")
            self.lines.append(f"  %k{n} = phi i64 [ 0, %{before} ], [ %n{n}, %tail{n} ]")
            opened.append((n, length))
        body([f"%k{n}" for n, _ in opened])
        # the remainder of a short loop must not use empty lanes: 0 / 0 would set a flag
        said = ", !llvm.loop !0" if lengths == self.lengths and lengths[-1:] < [_SHORT] else ""
        for n, length in reversed(opened):
            self.lines.append(f"  br label %tail{n}")
            self._label(f"tail{n}")
            self.lines += [
                f"  %n{n} = add nuw nsw i64 %k{n}, 1",
                f"  %e{n} = icmp eq i64 %n{n}, {length}",
                f"  br i1 %e{n}, label %done{n}, label %head{n}{said}",
            ]
            self._label(f"done{n}")
            said = ""

    def _begin(self, total: Symbol, places: list[str]) -> None:
        self._store(total, _literal(_FIRST, total.dtype), places[0])

    def _body(self, places: list[str]) -> None:
        group = self.group
        made = {step.out for step in group.steps}
        values = {way: self._element(way, places) for way in self.strides if way[0] not in made}
        stored = set(group.outputs)
        for step in group.steps:
            values[step.out, ""] = self._step(step, values)
        for step in group.steps:
            if step.out in stored:
                self._store(step.out, values[step.out, ""], self._place((step.out, ""), places))
        for step in group.tails:
            kind, place = TYPES[step.out.dtype.name], self._place((step.out, ""), places)
            pointer = self._at(self._pointers[step.out], place, kind)
            total = self._load(kind, pointer)
            total = self._new(f"fadd {kind} {total}, {values[step.inputs[0], '']}")
            self.lines.append(f"  store {kind} {total}, ptr {pointer}")

    def _place(self, way: Way, places: Sequence[str]) -> str:
        """Return the position of the loop's current element."""
        found = "0"
        for place, stride in zip(places, self.strides[way], strict=True):
            if stride:
                part = place if stride == 1 else self._new(f"mul nuw nsw i64 {place}, {stride}")
                found = part if found == "0" else self._new(f"add nuw nsw i64 {found}, {part}")
        return found

    def _element(self, way: Way, places: Sequence[str]) -> str:
        x = way[0]
        kind = _MEMORY[np.dtype(x.dtype).name]
        value = self._load(kind, self._at(self._pointers[x], self._place(way, places), kind))
        return self._new(f"icmp ne i8 {value}, 0") if kind == "i8" else value

    def _store(self, x: Symbol, value: str, place: str) -> None:
        kind = _MEMORY[np.dtype(x.dtype).name]
        if kind == "i8":
            value = self._new(f"zext i1 {value} to i8")
        pointer = self._at(self._pointers[x], place, kind)
        self.lines.append(f"  store {kind} {value}, ptr {pointer}")

    def _step(self, step: PlanStep, values: dict[Way, str]) -> str:
        found = form_of(step, self.exact)
        assert found is not None
        form, dtypes = found
        given, ways = [], iter(_ways(step))
        for x, dtype in zip(step.inputs, dtypes, strict=True):
            if type(x) is Symbol:
                given.append(self._converted(values[next(ways)], x.dtype, dtype))
            else:
                given.append(_literal(x, dtype))
        if callable(form):
            value, left = form(self._new, *given)
            left = self._new(f"zext i1 {left} to i32")
            left = self._new(f"or i32 {self._load('i32', '%left')}, {left}")
            self.lines.append(f"  store i32 {left}, ptr %left")
            return str(value)
        kind = TYPES[np.dtype(dtypes[-1]).name]
        made: list[str] = []
        for text in form:
            text = text.format(*given, *made, t=kind, s={"float": "f32"}.get(kind, "f64"))
            made.append(self._new(text))
        return made[-1] if made else given[-1]

    def _converted(self, value: str, source: Any, target: Any) -> str:
        how = conversion(source, target)
        if not how:
            return value
        kinds = [TYPES[np.dtype(x).name] for x in (source, target)]
        return self._new(how.format(value, a=kinds[0], b=kinds[1]))

    # -- the function that Python calls ------------------------------------------------------------

    def _entry(self) -> None:
        self._label("start")
        pointers = [self._checked(i, x) for i, x in enumerate(self.arrays)]
        self._check(self._new(f"icmp slt i64 {self._load('i64', self._state())}, {_MOST_REPEATED}"))
        flags = FLAGS.get(machine(), 0)
        self._new(f"call i32 @feclearexcept(i32 {flags})")
        long = prod(self.group.shape) * len(self.group.members) >= _LONG
        thread = self._new("call ptr @PyEval_SaveThread()") if long else ""
        given = ", ".join(f"ptr {x}" for x in pointers)
        self.lines.append(f"  %left = call i32 @loop({given})")
        if long:
            self.lines.append(f"  call void @PyEval_RestoreThread(ptr {thread})")
        noted = self._new(f"or i32 %left, {self._new(f'call i32 @fetestexcept(i32 {flags})')}")
        self.lines.append(
            f"  br i1 {self._new(f'icmp eq i32 {noted}, 0')}, label %fine, label %noted"
        )
        self._label("fine")
        self.lines.append("  call void @Py_IncRef(ptr @_Py_NoneStruct)")
        self.lines.append("  ret ptr @_Py_NoneStruct")
        self._label("noted")
        state = self._state()
        times = self._new(f"add i64 {self._load('i64', state)}, 1")
        self.lines.append(f"  store i64 {times}, ptr {state}")
        self.lines.append("  br label %otherwise")
        self._label("otherwise")
        function = self._load("ptr", self._state(), 8)
        found = self._new(
            f"call ptr @PyObject_Vectorcall(ptr {function}, ptr %args, i64 %count, ptr null)"
        )
        self.lines.append(f"  ret ptr {found}")

    def _state(self) -> str:
        return self._load("ptr", "%self", DATA)

    def _check(self, *conditions: str) -> None:
        """Continue if all conditions hold, otherwise go to ``otherwise``."""
        whole, *others = conditions
        for condition in others:
            whole = self._new(f"and i1 {whole}, {condition}")
        label = f"right{next(self._numbers)}"
        self.lines.append(f"  br i1 {whole}, label %{label}, label %otherwise")
        self._label(label)

    def _checked(self, i: int, x: Symbol) -> str:
        """Return the memory of an argument, after checking it against the plan."""
        shape, name = shape_of(x), np.dtype(x.dtype).name
        given = self._load("ptr", "%args", 8 * i)
        kind = self._load("ptr", given, HEADER - 8)
        array = self._new(f"icmp eq ptr {kind}, @array_type")
        if not shape:
            number = self._new(f"icmp eq ptr {kind}, @type_{name}")
            self.lines.append(f"  br i1 {number}, label %number{i}, label %array{i}")
            self._label(f"number{i}")
            inside = self._at(given, HEADER)
            self.lines.append(f"  br label %memory{i}")
            self._label(f"array{i}")
        self._check(array)
        flags = self._new(f"and i32 {self._load('i32', given, STATE)}, {ORDERED}")
        self._check(
            self._new(f"icmp eq i32 {flags}, {ORDERED}"),
            self._new(f"icmp eq i32 {self._load('i32', given, RANK)}, {len(shape)}"),
            self._new(f"icmp eq ptr {self._load('ptr', given, DTYPE)}, @dtype_{name}"),
        )
        if shape:
            lengths = self._load("ptr", given, SHAPE)
            self._check(*(self._same(lengths, axis, n) for axis, n in enumerate(shape)))
        memory = self._load("ptr", given, DATA)
        if shape:
            return memory
        before = self._block
        self.lines.append(f"  br label %memory{i}")
        self._label(f"memory{i}")
        return self._new(f"phi ptr [ {inside}, %number{i} ], [ {memory}, %{before} ]")

    def _same(self, lengths: str, axis: int, length: int) -> str:
        return self._new(f"icmp eq i64 {self._load('i64', lengths, 8 * axis)}, {length}")


def _ways(step: PlanStep) -> list[Way]:
    """Return how a step reads each of its arrays."""
    ways = ["", "", ""]
    if step.op == "outer_products":
        ways = ["slopes", "turned" if step.params["turned"] else "rows"]
    return [(x, way) for x, way in zip(step.inputs, ways, strict=False) if type(x) is Symbol]


def _broadcast(shape: Shape, whole: Shape) -> list[int]:
    """Return the strides of an array along the axes of the shape that it broadcasts to."""
    padded = (1,) * (len(whole) - len(shape)) + shape
    return [0 if padded[axis] == 1 else prod(padded[axis + 1 :]) for axis in range(len(whole))]


def _declaration(call: str) -> str:
    """Return the declaration of a called function."""
    head, given = call.removeprefix("call ").rstrip(")").split("(")
    kinds = ", ".join(x.split()[0] for x in given.split(", ") if x)
    pure = " nounwind willreturn memory(none)" if head.split()[0] in ("float", "double") else ""
    return f"declare {head}({kinds}){pure}"


def _literal(value: Any, dtype: Any) -> str:
    number = np.dtype(dtype).type(value)
    if number.dtype.kind != "f":
        return str(int(number)) if number.dtype.kind == "i" else str(bool(number)).lower()
    return constant(float(number))


# -- loops -----------------------------------------------------------------------------------------


#: A compiler takes seconds for this number of steps, and minutes for ten times as many.
_MOST_STEPS = 400
#: From this number of steps, a loop is worth digits that differ from NumPy's.
_SEVERAL = 3


class FusedLoops(Emitter):
    """Runs groups as loops."""

    def takes(self, step: PlanStep) -> bool:
        """Return whether loops compute a step as NumPy does.

        Parameters
        ----------
        step
            The step.
        """
        if len(step.outputs) != 1:  # several, for example of a `cond`
            return False
        if any(np.dtype(x.dtype).name not in DTYPES for x in (*step.symbols, *step.outputs)):
            return False
        if step.kind is StepKind.REDUCTION:
            return _is_sum_of_rows(step)
        if not (step.elementwise or step.op == "outer_products") or step.space == ():
            return False
        if step.op in ("maximum", "minimum") and not _LAST_OF_ZEROS:
            return False
        return form_of(step, _exact_for(step)) is not None

    def loop(self, group: LoopGroup) -> Callable[..., Any] | None:
        """Return a function that runs a group, or None if a loop cannot, or would not pay.

        Parameters
        ----------
        group
            The group.
        """
        steps = group.members
        if not all(map(self.takes, steps)):  # as of updates, which packs combine whatever they are
            return None
        exact = frozenset[str]().union(*map(_exact_for, steps))
        few = len(steps) < _SEVERAL and any(step.op in TRANSCENDENTAL - exact for step in steps)
        if few or len(steps) > _MOST_STEPS:
            return None
        return compiled(source(group, exact), group.by_numpy)


def _is_sum_of_rows(step: PlanStep) -> bool:
    """Return whether a step sums rows, which NumPy adds in order (unlike numbers in a row)."""
    (x,) = step.inputs
    shape, axis = shape_of(x), step.params["axis"]
    axes = axis if type(axis) is tuple else (axis,)
    if len(shape) < 2 or None in axes or sorted(axes) != [*range(len(shape) - 1)]:
        return False
    rows = shape[-1] > 1 and prod(shape[:-1]) > 1
    return step.op == "add" and rows and x.dtype.kind == "f" and x.dtype == step.out.dtype


#: What NumPy adds the first row to: of the two zeros, the one that its sum of -0 is.
_FIRST = float(np.add.reduce(np.full((3, 2), -0.0), 0)[0])


def _ties() -> bool:
    """Return whether NumPy's ``maximum`` of a zero and a negative zero is the second one here."""
    zeros, negative = np.zeros(37, np.float32), np.full(37, -0.0, np.float32)
    both = ((zeros, negative), (negative, zeros))
    pairs = [(f(a, b), b) for f in (np.maximum, np.minimum) for a, b in both]
    return all((np.signbit(found) == np.signbit(b)).all() for found, b in pairs)


_LAST_OF_ZEROS = _ties()


def _exact_for(step: PlanStep) -> frozenset[str]:
    single = step.op in FUNCTIONS and step.out.dtype == np.float32
    return _exact() if single else frozenset()


@cache
def _exact() -> frozenset[str]:
    """Return the single-precision functions that equal this NumPy's, bit for bit, here."""
    x = np.linspace(-85, 85, 2048, dtype=np.float32)
    x[:3] = 0.0, -0.0, np.nan
    positive = np.geomspace(1e-37, 1e37, len(x), dtype=np.float32)
    whole = LoopGroup(x.shape)
    nowhere: Any = None
    symbols = [Symbol(nowhere, x.shape, x.dtype) for _ in (*FUNCTIONS, x, positive)]
    for name, out in zip(FUNCTIONS, symbols, strict=False):
        given = symbols[-1 if name == "log" else -2]
        whole.steps.append(
            PlanStep(StepKind.ELEMENTWISE, name, getattr(np, name), (given,), (out,))
        )
    whole.close(lambda symbol: True)
    values = dict(zip(symbols, [*(np.ones_like(x) for _ in FUNCTIONS), x, positive], strict=True))
    run = compiled(source(whole, FUNCTIONS), lambda *arrays: None)
    run(*(values[symbol] for symbol in (*whole.outputs, *whole.inputs)))
    pairs = [(step, step.run(values[step.inputs[0]])) for step in whole.steps]
    return frozenset(step.op for step, right in pairs if _same_bits(values[step.out], right))


def _same_bits(x: Any, y: Any) -> bool:
    return bool(((x.view(np.int32) == y.view(np.int32)) | (np.isnan(x) & np.isnan(y))).all())
