"""The text of kernels for a group of steps, in which sizes, strides and numbers are arguments.

So a kernel is compiled for the dtypes of its arrays and the pattern of their axes, whatever their
sizes. A sum is computed by some threads of one block, always in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ....core.extend import Symbol
from ...planned import LoopGroup, PlanStep, Shape, shape_of
from ..writing.formulas import compute_type, expression, literal, loaded, memory_type, stored
from ..writing.groups import ends_in
from ..writing.source import BLOCK, axes_of, folded, identity, label, merged, prelude

#: The maximum of axes of a loop, after those that all arrays allow to merge are one.
MOST_AXES = 6
#: By the C type that a kernel computes with: that of an argument, and its type in NumPy. A number
#: in double precision is rounded by the kernel, for which NumPy would take longer.
_ARGUMENTS: dict[str, tuple[str, Any]] = {
    "bool": ("bool", np.bool_),
    "signed char": ("int", np.int32),
    "short": ("int", np.int32),
    "int": ("int", np.int32),
    "long long": ("long long", np.int64),
    "unsigned char": ("unsigned int", np.uint32),
    "unsigned short": ("unsigned int", np.uint32),
    "unsigned int": ("unsigned int", np.uint32),
    "unsigned long long": ("unsigned long long", np.uint64),
    "float": ("double", np.float64),
    "double": ("double", np.float64),
}
#: The C type of indices, by the type of arguments.
_INDEX: dict[Any, str] = {np.int32: "int", np.int64: "long long"}


class Place(NamedTuple):
    """The elements of a value: its array, its first element, and its stride along each axis."""

    array: Symbol
    offset: int
    strides: tuple[int, ...]


class Written(NamedTuple):
    """A kernel for a group, with its arguments.

    Attributes
    ----------
    label, text
        A short description, and the kernel in CUDA C.
    arrays
        The symbols of its arrays.
    weak
        What converts the numbers of a call to arguments, which follow the arrays.
    numbers
        The other arguments.
    threads
        The number of threads that have something to do.
    """

    label: str
    text: str
    arrays: list[Symbol]
    weak: list[Callable[[Any], Any]]
    numbers: list[np.generic]
    threads: int


class Writer:
    """Writes a group as one kernel.

    Parameters
    ----------
    group
        Steps over one shape; all its reductions are over the same axes.
    shape
        The shape that they run over, in which the group's own sizes do not matter.
    places
        The places of the group's inputs, with strides along the axes of ``shape``.
    after
        Steps on the results of reductions, and the results that other kernels read.
    weak
        Whether the numbers in the steps are arguments of each call.
    """

    def __init__(
        self,
        group: LoopGroup,
        shape: Shape,
        places: Mapping[Symbol, Place],
        after: tuple[Sequence[PlanStep], Sequence[Symbol]] = ((), ()),
        weak: bool = False,
    ) -> None:
        self._group, self._places, self._after, self._is_weak = group, places, after, weak
        self._reduced = axes_of(group.tails[0]) if group.tails else ()
        whole = tuple(prod(shape[a + 1 :]) for a in range(len(shape)))
        columns = [whole, *(place.strides for place in places.values())]
        roles = [axis in self._reduced for axis in range(len(shape))]
        self._axes = merged(shape, roles, columns)
        self._columns = {x: i + 1 for i, x in enumerate(places)}
        self._row = not group.tails or ends_in(shape, self._reduced)
        self._kept = prod(n for n, inside, _ in self._axes if not inside)
        self._count = prod(n for n, inside, _ in self._axes if inside)
        reach = [prod(shape)]
        for place in places.values():
            spread = zip(shape, place.strides, strict=True)
            reach.append(1 + abs(place.offset) + sum(abs(s) * n for n, s in spread))
        self._index = np.int32 if max(reach) < 2**30 else np.int64
        self._arrays: dict[Symbol, str] = {}
        self._outputs: set[Symbol] = set()
        self._weak: list[Callable[[Any], Any]] = []
        self._weak_types: list[str] = []
        self._numbers: list[np.generic] = []
        self._number_types: list[str] = []
        self._known: dict[Any, str] = {}

    @property
    def fits(self) -> bool:
        """Whether one kernel can do it in good time."""
        lanes = self._lanes()
        quick = self._count <= lanes * _EACH or self._kept * lanes >= _THREADS
        return len(self._axes) <= MOST_AXES and len(self._group.tails) <= _TAILS and quick

    def write(self) -> Written:
        """Return the kernel."""
        kept = [(i, n) for i, (n, inside, _) in enumerate(self._axes) if not inside]
        sums = [(i, n) for i, (n, inside, _) in enumerate(self._axes) if inside]
        if self._group.tails:
            lines, threads = self._reduction(kept, sums)
        else:
            count = self._size(self._kept, "count")
            lines = [
                f"for (I t = blockIdx.x * (I)blockDim.x + threadIdx.x; t < {count};",
                "        t += (I)gridDim.x * blockDim.x) {",
                *_indented([*self._unravelled(kept, "t"), *self._body("t")[0]]),
                "}",
            ]
            threads = self._kept
        text = "\n".join(_indented(lines))
        params = []
        for x, name in self._arrays.items():
            const = "" if x in self._outputs else "const "
            params.append(f"{const}{memory_type(x.dtype)}* {name}")
        params += [f"{kind} w{i}" for i, kind in enumerate(self._weak_types)]
        params += self._number_types
        index = _INDEX[self._index]
        head = f'extern "C" __global__ void KERNEL({", ".join(params)}) {{'
        note = "// reads arrays of any strides"
        source = f"{note}\n{prelude(text)}typedef {index} I;\n{head}\n{text}\n}}\n"
        named = label(self._group.members)
        return Written(named, source, list(self._arrays), self._weak, self._numbers, threads)

    # -- arguments -------------------------------------------------------------------------------

    def _array(self, x: Symbol, written: bool = False) -> str:
        if written:
            self._outputs.add(x)
        return self._arrays.setdefault(x, f"m{len(self._arrays)}")

    def _size(self, value: int, name: str) -> str:
        """Return the name of an argument that is a size or a stride."""
        self._number_types.append(f"{_INDEX[self._index]} {name}")
        self._numbers.append(self._index(value))
        return name

    def _number(self, value: Any, dtype: Any) -> str | None:
        """Return the name of an argument that is a number in a step."""
        if literal(value, dtype) is None:
            return None
        kind = compute_type(dtype)
        declared, argument = _ARGUMENTS[kind]
        if self._is_weak:
            name = f"w{len(self._weak)}"
            self._weak_types.append(declared)
            self._weak.append(_converter(np.dtype(dtype)))
        else:
            key = repr(value), np.dtype(dtype)
            found = self._known.get(key)
            if found is not None:
                return found
            name = f"c{len(self._known)}"
            self._number_types.append(f"{declared} {name}")
            self._numbers.append(argument(_converter(np.dtype(dtype))(value)))
            self._known[key] = f"({kind}){name}"
        return f"({kind}){name}"

    # -- lines -----------------------------------------------------------------------------------

    def _unravelled(self, axes: Sequence[tuple[int, int]], name: str) -> list[str]:
        """Return lines that compute the indices along axes from one number."""
        rest = f"{name}_rest"
        lines = [f"I {rest} = {name};"] if len(axes) > 1 else []
        for number, (i, n) in reversed(list(enumerate(axes))):
            if len(axes) == 1:
                lines.append(f"I k{i} = {name};")
            elif number == 0:
                lines.append(f"I k{i} = {rest};")
            else:
                size = self._size(n, f"size{i}")
                lines += [f"I k{i} = {rest} % {size};", f"{rest} /= {size};"]
        return lines

    def _at(self, x: Symbol, whole: str | None) -> str:
        """Return the index of an input's element."""
        column, offset = self._columns[x], self._places[x].offset
        terms = [] if not offset else [self._size(offset, f"first{column}")]
        if whole and all(strides[column] == strides[0] for _, _, strides in self._axes):
            return " + ".join([*terms, whole])
        return " + ".join([*terms, *self._terms(column)]) or "0"

    def _terms(self, column: int) -> list[str]:
        """Return the terms of an index by the strides along axes; those of results are first."""
        terms = []
        for i, (_, _, strides) in enumerate(self._axes):
            step = strides[column]
            if step == 1:
                terms.append(f"k{i}")
            elif step:
                terms.append(f"k{i} * {self._size(step, f'stride{column}_{i}')}")
        return terms

    def _body(self, whole: str | None) -> tuple[list[str], dict[Symbol, str]]:
        """Return the lines for each element, and the names of values there."""
        names: dict[Symbol, str] = {}
        lines: list[str] = []
        for i, (x, place) in enumerate(self._places.items()):
            at = f"{self._array(place.array)}[{self._at(x, whole)}]"
            names[x] = f"x{i}"
            lines.append(f"{compute_type(x.dtype)} x{i} = {loaded(x.dtype, at)};")
        lines += self._steps(self._group.steps, names, "v")
        outputs = set(self._group.outputs)
        made = [step.out for step in self._group.steps if step.out in outputs]
        if made:
            lines += self._stores(made, names, whole or " + ".join(self._terms(0)) or "0")
        return lines, names

    def _steps(self, steps: Sequence[PlanStep], names: dict[Symbol, str], letter: str) -> list[str]:
        lines = []
        for i, step in enumerate(steps):
            text = expression(step, names, self._number)
            if text is None:
                raise NotImplementedError(step.op)
            lines.append(f"{compute_type(step.out.dtype)} {letter}{i} = {text};")
            names[step.out] = f"{letter}{i}"
        return lines

    def _stores(self, values: Sequence[Symbol], names: dict[Symbol, str], at: str) -> list[str]:
        return [
            f"{self._array(x, written=True)}[{at}] = {stored(x.dtype, names[x])};" for x in values
        ]

    # -- reductions ------------------------------------------------------------------------------

    def _lanes(self) -> int:
        """Return how many threads share a sum."""
        if self._row:
            return 1 if self._count <= 4 else 32 if self._count <= 1024 else BLOCK
        wide = self._kept >= 2**17
        return 1 if self._count <= 8 or wide else 8 if self._count <= 512 else 32

    def _reduction(
        self, kept: Sequence[tuple[int, int]], sums: Sequence[tuple[int, int]]
    ) -> tuple[list[str], int]:
        tails, lanes = self._group.tails, self._lanes()
        each = BLOCK // lanes
        wide, count = self._size(self._kept, "kept"), self._size(self._count, "count")
        # adjacent threads read adjacent elements: of one sum, or of several
        lane, place = ("%", "/") if self._row else ("/", "%")
        by, apart = (lanes, 1) if self._row else (each, each)
        body, _ = self._body(None)
        accumulate = [
            f"a{i} = {folded(step, f'a{i}', self._input_of(step))};" for i, step in enumerate(tails)
        ]
        lines = []
        if lanes > 1:
            lines = [
                f"__shared__ {compute_type(step.out.dtype)} s{i}[{BLOCK}];"
                for i, step in enumerate(tails)
            ]
        lines += [
            f"I lane = threadIdx.x {lane} {by}, place = threadIdx.x {place} {by};",
            f"for (I first = blockIdx.x * (I){each}; first < {wide};",
            f"        first += gridDim.x * (I){each}) {{",
            "    I j = first + place;",
            *[
                f"    {compute_type(step.out.dtype)} a{i} = {identity(step)};"
                for i, step in enumerate(tails)
            ],
            f"    if (j < {wide}) {{",
            *_indented(self._unravelled(kept, "j"), 2),
            f"        for (I r = lane; r < {count}; r += {lanes}) {{",
            *_indented([*self._unravelled(sums, "r"), *body, *accumulate], 3),
            "        }",
            "    }",
        ]
        if lanes > 1:
            lines += _indented(_joined(tails, lanes, apart))
        lines += [
            f"    if (lane == 0 && j < {wide}) {{",
            *_indented(self._ends(), 2),
            "    }",
            "}",
        ]
        return lines, self._kept * lanes

    def _input_of(self, step: PlanStep) -> str:
        (x,) = step.inputs
        for i, made in enumerate(self._group.steps):
            if made.out is x:
                return f"v{i}"
        return f"x{self._columns[x] - 1}"

    def _ends(self) -> list[str]:
        """Return the lines for the results of reductions."""
        steps, outputs = self._after
        names = {step.out: f"a{i}" for i, step in enumerate(self._group.tails)}
        lines = []
        for i, step in enumerate(self._group.tails):  # rounded as in memory
            kind = step.out.dtype
            lines.append(f"a{i} = {loaded(kind, stored(kind, f'a{i}'))};")
        lines += self._steps(steps, names, "e")
        return [*lines, *self._stores(outputs, names, "j")]


#: The maximum of reductions of a kernel; and of numbers that one thread sums, unless there are
#: enough threads.
_TAILS, _EACH, _THREADS = 8, 2**8, 2**17


def _joined(tails: Sequence[PlanStep], lanes: int, distance: int) -> list[str]:
    """Return lines that reduce the results of the threads that share a sum."""
    at, other = "[threadIdx.x]", f"[threadIdx.x + half * {distance}]"
    return [
        "__syncthreads();",
        *[f"s{i}{at} = a{i};" for i in range(len(tails))],
        f"for (int half = {lanes // 2}; half; half /= 2) {{",
        "    __syncthreads();",
        "    if (lane < half) {",
        *[
            f"        s{i}{at} = {folded(step, f's{i}{at}', f's{i}{other}')};"
            for i, step in enumerate(tails)
        ],
        "    }",
        "}",
        *[f"a{i} = s{i}{at};" for i in range(len(tails))],
    ]


def is_dense(shape: Shape, strides: Sequence[int]) -> bool:
    """Return whether strides are those of a C contiguous array, in elements.

    Parameters
    ----------
    shape, strides
        Those of the array.
    """
    whole = [prod(shape[a + 1 :]) for a in range(len(shape))]
    return all(n == 1 or s == w for n, s, w in zip(shape, strides, whole, strict=True))


def joining(step: PlanStep, places: Sequence[Place], lengths: Sequence[int], rows: int) -> Written:
    """Return the kernel that concatenates C contiguous arrays.

    Parameters
    ----------
    step
        The step.
    places
        The places of its inputs.
    lengths
        The number of elements of each input in one row of the result.
    rows
        The number of these rows.
    """
    if len(places) > _PARTS:
        raise NotImplementedError
    kind, total = memory_type(step.out.dtype), sum(lengths)
    names = {place.array: "" for place in places}
    names = {x: f"m{i}" for i, x in enumerate(names)}
    index = np.int32 if rows * total < 2**30 else np.int64
    numbers: list[np.generic] = [index(rows * total), index(total)]
    params, parts, end = ["count", "total"], [], 0
    for i, (place, length) in enumerate(zip(places, lengths, strict=True)):
        begin, end = end, end + length
        numbers += [index(end), index(length), index(place.offset - begin)]
        params += [f"end{i}", f"length{i}", f"first{i}"]
        parts.append(f"i < end{i} ? {names[place.array]}[row * length{i} + first{i} + i]")
    parts[-1] = parts[-1].partition(" ? ")[2]
    declared = [
        *(f"const {kind}* {name}" for name in names.values()),
        f"{kind}* out",
        *(f"{_INDEX[index]} {name}" for name in params),
    ]
    text = "\n".join([
        f"typedef {_INDEX[index]} I;",
        f'extern "C" __global__ void KERNEL({", ".join(declared)}) {{',
        "    for (I t = blockIdx.x * (I)blockDim.x + threadIdx.x; t < count;",
        "            t += (I)gridDim.x * blockDim.x) {",
        "        I row = t / total, i = t % total;",
        f"        out[t] = {' : '.join(parts)};",
        "    }",
        "}",
    ])  # fmt: skip
    return Written(step.op, f"{text}\n", [*names, step.out], [], numbers, rows * total)


#: The maximum of arrays that one kernel concatenates.
_PARTS = 64


def filling(out: Symbol, number: Any) -> Written:
    """Return the kernel that fills an array with a number.

    Parameters
    ----------
    out
        The array.
    number
        The number.
    """
    kind, (declared, argument) = compute_type(out.dtype), _ARGUMENTS[compute_type(out.dtype)]
    text = stored(out.dtype, f"({kind})number")
    count = prod(shape_of(out))
    index = np.int32 if count < 2**30 else np.int64
    lines = [
        f'extern "C" __global__ void KERNEL({memory_type(out.dtype)}* out, {_INDEX[index]} count,',
        f"        {declared} number) {{",
        f"    for ({_INDEX[index]} t = blockIdx.x * blockDim.x + threadIdx.x; t < count;",
        "            t += gridDim.x * blockDim.x)",
        f"        out[t] = {text};",
        "}",
    ]
    text = "\n".join(lines)
    value = argument(_converter(np.dtype(out.dtype))(number))
    return Written("fill", f"{prelude(text)}{text}\n", [out], [], [index(count), value], count)


def _indented(lines: Sequence[str], times: int = 1) -> list[str]:
    return [f"{'    ' * times}{line}" for line in lines]


def _converter(dtype: np.dtype[Any]) -> Callable[[Any], Any]:
    """Return what makes an argument of a Python number; one that is too large may raise."""
    argument = _ARGUMENTS[compute_type(dtype)][1]
    if argument is not np.float64:
        return lambda value: argument(dtype.type(value))
    if dtype.itemsize > 2:
        return float

    def rounded(value: Any) -> float:
        with np.errstate(over="ignore"):  # which is infinite
            return float(dtype.type(value))

    return rounded
