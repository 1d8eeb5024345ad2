"""Kernels: a group of steps in CUDA C, each element read and written once.

A thread computes one element after another. Where the group ends in sums, a thread adds some of the
elements of one sum, always the same ones in the same order, and further kernels add the partial
sums. So results depend neither on the device nor on chance.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from math import prod
from typing import Any

import numpy as np

from ....core.extend import Symbol
from ...planned import Item, LoopGroup, PlanStep, Shape, StepKind, shape_of, symbol_like
from .formulas import BFLOAT, HALF, compute_type, expression, literal, loaded, memory_type, stored

#: Threads in a block, and the maximum of blocks: the same threads compute the remaining elements.
BLOCK, _MOST_BLOCKS = 256, 2**16
#: Products and sums are rounded separately, as with CuPy's own kernels.
OPTIONS = ("--fmad=false",)
#: The maximum of elements that one thread sums alone; the second is for partial sums.
_ALONE, _ALONE_AT_LAST = 16, 64
#: The minimum and maximum of elements per thread otherwise, and a sufficient number of threads.
_LEAST, _MOST, _THREADS = 4, 32, 2**15

#: What names of ops contain, and names of kernels must not.
_NO_LETTERS = r"\W+"
#: The first lines of kernels that contain a text.
_PRELUDES = {"_half(": HALF, "_bfloat(": BFLOAT}

#: The memory of a value: its array, its first element, and its stride along each axis.
Place = tuple[Symbol, int, tuple[int, ...]]
#: Kernels in order, and the arrays that they use between them.
Written = tuple[list["KernelLaunch"], list[Symbol]]


#: The maximum of steps and sums in a kernel: a compiler takes long over more, and a launch can have
#: up to 512 arrays.
_MOST_STEPS, _MOST_TAILS = 96, 32


class Places:
    """Finds the memory of values, also of views, which kernels read through.

    Parameters
    ----------
    made
        The steps that make values.
    maps
        By view, a function that makes the same view of a NumPy array, if the step's own does not.
    wanted
        The views that must be arrays; those that turn out to be copies are added.
    """

    def __init__(
        self,
        made: Mapping[Symbol, PlanStep],
        maps: Mapping[Symbol, Callable[[Any], Any]],
        wanted: set[Symbol],
    ) -> None:
        self._made, self._maps, self._wanted = made, maps, wanted
        self._models: dict[Symbol, tuple[Symbol, Any, int]] = {}

    def of(self, x: Symbol) -> Place:
        """Return a value's place for kernels: its C contiguous array, offset and strides."""
        home, model, origin = self._model(x)
        place = model.__array_interface__["data"][0] - origin
        return home, place, model.strides

    def _model(self, x: Symbol) -> tuple[Symbol, Any, int]:
        """Return an array of bytes with the offset and strides of a value in its array."""
        views, y = list[Symbol](), x  # from one view of a view to the next, however many there are
        while y not in self._models:
            step = self._made.get(y)
            if step is None or step.kind is not StepKind.VIEW:
                self._models[y] = _own_model(y)
                break
            views.append(y)
            (y,) = step.inputs
        for y in reversed(views):
            step = self._made[y]
            home, model, origin = self._models[step.inputs[0]]
            view = self._maps.get(y, step.run)(model)
            if np.may_share_memory(view, model):
                self._models[y] = home, view, origin
                continue
            self._models[y] = _own_model(y)  # it must be an array, and so must its source
            while y in self._made and self._made[y].kind is StepKind.VIEW:
                self._wanted.add(y)
                (y,) = self._made[y].inputs
        return self._models[x]


def _own_model(x: Symbol) -> tuple[Symbol, Any, int]:
    """Return the model of a value that is an array itself."""
    model = np.empty(shape_of(x), np.int8)
    return x, model, model.__array_interface__["data"][0]


class KernelLaunch:
    """One kernel, with its arguments.

    Attributes
    ----------
    label
        A short description of its computation.
    name, source
        The kernel's name, which contains the label, and its text.
    arrays
        The symbols of its arguments, all of them C contiguous arrays.
    blocks
        The number of blocks, of ``BLOCK`` threads each; by default enough for ``threads``.
    """

    __slots__ = ("arrays", "blocks", "label", "name", "source")

    def __init__(
        self,
        label: str,
        text: str,
        arrays: Sequence[Symbol],
        threads: int,
        blocks: int | None = None,
    ) -> None:
        self.label = label
        digest = sha256(text.encode()).hexdigest()[:12]
        self.name = f"gradtape_{re.sub(_NO_LETTERS, '_', label)}_{digest}"
        self.source = text.replace("KERNEL", self.name)
        self.arrays = list(arrays)
        if blocks is None:
            blocks = max(1, min(-(-threads // BLOCK), _MOST_BLOCKS))
        self.blocks = blocks


def axes_of(step: PlanStep) -> tuple[int, ...]:
    """Return the axes of a reduction."""
    axis, rank = step.params["axis"], len(step.space)
    axes = range(rank) if axis is None else (axis,) if isinstance(axis, int) else axis
    return tuple(sorted(a % rank for a in axes))


def split(item: Item) -> list[Item]:
    """Split a group into parts that can be kernels: few steps each, and sums over equal axes."""
    if not isinstance(item, LoopGroup):
        return [item]
    parts: list[LoopGroup] = []
    for start in range(0, len(item.steps), _MOST_STEPS):
        parts.append(LoopGroup(item.shape))
        parts[-1].steps = item.steps[start : start + _MOST_STEPS]
    tails: dict[tuple[int, ...], list[PlanStep]] = {}
    for step in item.tails:
        tails.setdefault(axes_of(step), []).append(step)
    for alike in tails.values():
        for start in range(0, len(alike), _MOST_TAILS):
            if not parts or parts[-1].tails:
                parts.append(LoopGroup(item.shape))
            parts[-1].tails = alike[start : start + _MOST_TAILS]
    return list(parts)


def launches(group: LoopGroup, place: Callable[[Symbol], Place]) -> Written:
    """Return the kernels that run a group, and the arrays that they use between them.

    Parameters
    ----------
    group
        The group; all its reductions are over the same axes.
    place
        A function that returns the place of an input.
    """
    if not group.tails:
        return [_Source(group, place, 1, {}).launch()], []
    found: list[KernelLaunch] = []
    scratch: list[Symbol] = []
    axes = axes_of(group.tails[0])
    count = prod(group.shape[a] for a in axes)
    kept = prod(group.shape) // count
    parts = _parts(count, kept, _ALONE)
    partial = {step: symbol_like(step.out, (parts * kept,)) for step in group.tails if parts > 1}
    found.append(_Source(group, place, parts, partial).launch())
    fast = ends_in(group.shape, axes)
    for step, x in partial.items():
        scratch.append(x)
        found += _rest(step, x, parts, kept, fast, scratch)
    return found, scratch


def _rest(
    step: PlanStep, x: Symbol, count: int, kept: int, fast: bool, scratch: list[Symbol]
) -> list[KernelLaunch]:
    """Return the kernels that reduce the threads' partial results."""
    found: list[KernelLaunch] = []
    while count > 1:
        shape, axis = ((kept, count), 1) if fast else ((count, kept), 0)
        source = symbol_like(x, shape)
        group = LoopGroup(shape)
        parts = _parts(count, kept, _ALONE_AT_LAST)
        out = step.out if parts == 1 else symbol_like(x, (parts * kept,))
        params = {"axis": axis, "keepdims": False}
        last = PlanStep(StepKind.REDUCTION, step.op, step.run, (source,), (out,), params)
        group.tails.append(last)
        group.close(lambda x: False)
        home, strides = x, (shape[1], 1)
        partial = {} if parts == 1 else {last: out}
        place = (home, 0, strides)
        found.append(_Source(group, _always(place), parts, partial).launch())
        if parts > 1:
            scratch.append(out)
        x, count = out, parts
    return found


def _always(place: Place) -> Callable[[Symbol], Place]:
    return lambda x: place


def _parts(count: int, kept: int, alone: int) -> int:
    """Return the number of threads that share one sum."""
    if count <= alone:
        return 1
    each = max(_LEAST, min(_MOST, count * kept // _THREADS))
    return -(-count // each)


def ends_in(shape: Shape, axes: Sequence[int]) -> bool:
    """Return whether adjacent elements belong to one sum."""
    long = [a for a, n in enumerate(shape) if n > 1]
    return not long or long[-1] in axes


class _Source:
    """The text of one kernel."""

    def __init__(
        self,
        group: LoopGroup,
        place: Callable[[Symbol], Place],
        parts: int,
        partial: dict[PlanStep, Symbol],
    ) -> None:
        self.group = group
        self.parts = parts
        self.partial = partial
        self.reduced = axes_of(group.tails[0]) if group.tails else ()
        self.fast = bool(group.tails) and ends_in(group.shape, self.reduced)
        self._arrays: dict[Symbol, str] = {}
        self._written: set[Symbol] = set()
        self._places = {x: place(x) for x in group.inputs}
        rank = len(group.shape)
        strides: dict[Any, tuple[int, ...]] = {}
        for x, (_, _, steps) in self._places.items():
            mine = shape_of(x)
            spread = [0 if n == 1 else step for n, step in zip(mine, steps, strict=True)]
            strides[x] = (*[0] * (rank - len(mine)), *spread)
        whole = [prod(group.shape[a + 1 :]) for a in range(rank)]
        self._axes = merged_axes(group.shape, self.reduced, [tuple(whole), *strides.values()])
        self._columns = {None: 0, **{x: i + 1 for i, x in enumerate(strides)}}
        reach = [prod(group.shape), prod(group.shape) * max(1, parts)]
        reach += [1 + o + sum(abs(s) * n for n, s in zip(shape_of(x), st, strict=True))
                  for x, (_, o, st) in self._places.items()]  # fmt: skip
        self.index = "int" if max(reach) < 2**30 else "long long"

    def launch(self) -> KernelLaunch:
        """Return the kernel with its arguments."""
        group = self.group
        body, ends = self._body()
        kept = [(i, n) for i, (n, reduced, _) in enumerate(self._axes) if not reduced]
        sums = [(i, n) for i, (n, reduced, _) in enumerate(self._axes) if reduced]
        wide, count = prod(n for _, n in kept), prod(n for _, n in sums)
        threads = wide * self.parts
        lines = [f"for (I t = blockIdx.x * (I)blockDim.x + threadIdx.x; t < {threads};",
                 "        t += (I)gridDim.x * blockDim.x) {"]  # fmt: skip
        if group.tails:
            split = (f"t / {self.parts}", f"t % {self.parts}")
            other = (f"t % {wide}", f"t / {wide}")
            j, p = split if self.fast else other
            lines += [f"    I j = {j};", f"    I p = {p};"]
            lines += [f"    {line}" for line in _unravelled(kept, "j")]
            for i, step in enumerate(group.tails):
                lines.append(f"    {compute_type(step.out.dtype)} a{i} = {identity_of(step)};")
            lines.append(f"    for (I r = p; r < {count}; r += {self.parts}) {{")
            lines += [f"        {line}" for line in (*_unravelled(sums, "r"), *body)]
            lines += ["    }", *(f"    {line}" for line in ends)]
        else:
            lines += [f"    {line}" for line in (*_unravelled(kept, "t"), *body)]
        lines.append("}")
        params = []
        for x, name in self._arrays.items():
            const = "" if x in self._written else "const "
            params.append(f"{const}{memory_type(x.dtype)}* {name}")
        text = "\n".join(f"    {line}" for line in lines)
        head = f'extern "C" __global__ void KERNEL({", ".join(params)}) {{'
        source = f"{prelude(text)}typedef {self.index} I;\n{head}\n{text}\n}}\n"
        return KernelLaunch(label_of(group), source, list(self._arrays), threads)

    def _array(self, x: Symbol, written: bool = False) -> str:
        if written:
            self._written.add(x)
        return self._arrays.setdefault(x, f"m{len(self._arrays)}")

    def _body(self) -> tuple[list[str], list[str]]:
        """Return the lines for each element, and those for each thread's sums."""
        group = self.group
        names: dict[Symbol, str] = {}
        body: list[str] = []
        outputs = set(group.outputs)
        for i, (x, (home, offset, _)) in enumerate(self._places.items()):
            at = f"{self._array(home)}[{self._at(x, offset)}]"
            names[x] = f"x{i}"
            body.append(f"{compute_type(x.dtype)} x{i} = {loaded(x.dtype, at)};")
        for i, step in enumerate(group.steps):
            text = expression(step, names)
            assert text is not None
            body.append(f"{compute_type(step.out.dtype)} v{i} = {text};")
            names[step.out] = f"v{i}"
        for step in group.steps:
            if step.out in outputs:
                value = stored(step.out.dtype, names[step.out])
                name = self._array(step.out, written=True)
                body.append(f"{name}[{self._at(None, 0)}] = {value};")
        ends: list[str] = []
        for i, step in enumerate(group.tails):
            body.append(f"a{i} = {folded(step, f'a{i}', names[step.inputs[0]])};")
            target = self.partial.get(step, step.out)
            at = "t" if step in self.partial else "j"
            total = stored(target.dtype, f"a{i}")
            ends.append(f"{self._array(target, written=True)}[{at}] = {total};")
        return body, ends

    def _at(self, x: Symbol | None, offset: int) -> str:
        """Return the index of an input's element, or of an output's."""
        column = self._columns[x]
        terms = [str(offset)] if offset else []
        for i, (_, _, strides) in enumerate(self._axes):
            step = strides[column]
            if step:
                terms.append(f"k{i}" if step == 1 else f"k{i} * ({step})")
        return " + ".join(terms) or "0"


def joining(step: PlanStep, place: Callable[[Symbol], Place]) -> Written:
    """Return the kernel that concatenates arrays along an axis.

    Parameters
    ----------
    step
        A step of the kind ``JOIN``.
    place
        A function that returns the place of an input.
    """
    out, axis = step.out, step.params["axis"]
    shape, kind = shape_of(out), memory_type(out.dtype)
    places = [place(x) for x in step.inputs]
    spread = [
        tuple(0 if n == 1 else stride for n, stride in zip(shape_of(x), strides, strict=True))
        for x, (_, _, strides) in zip(step.inputs, places, strict=True)
    ]
    axes = merged_axes(shape, (axis,), spread)
    # the joined axis; all others are merged into axes before and after it
    at = next((f"k{i}" for i, (_, inside, _) in enumerate(axes) if inside), "0")
    names = {home: f"m{i}" for i, home in enumerate(dict.fromkeys(home for home, _, _ in places))}
    end, parts = 0, []
    for number, (x, (home, offset, _)) in enumerate(zip(step.inputs, places, strict=True)):
        begun, end = end, end + shape_of(x)[axis]
        terms = [str(offset - begun * spread[number][axis])]
        terms += [
            f"k{i} * ({steps[number]})" for i, (*_, steps) in enumerate(axes) if steps[number]
        ]
        parts.append(f"{at} < {end} ? {names[home]}[{' + '.join(terms)}]")
    parts[-1] = parts[-1].partition(" ? ")[2]
    total = prod(shape)
    reach = [total, *(1 + abs(o) + sum(abs(s) * n for n, s in zip(shape, st, strict=True))
                      for st, (_, o, _) in zip(spread, places, strict=True))]  # fmt: skip
    index = "int" if max(reach) < 2**30 else "long long"
    lines = _unravelled([(i, n) for i, (n, _, _) in enumerate(axes)], "t")
    params = [f"const {kind}* {name}" for name in names.values()]
    text = "\n".join([
        f"typedef {index} I;",
        f'extern "C" __global__ void KERNEL({", ".join([*params, f"{kind}* out"])}) {{',
        f"    for (I t = blockIdx.x * (I)blockDim.x + threadIdx.x; t < {total};",
        "            t += (I)gridDim.x * blockDim.x) {",
        *(f"        {line}" for line in lines),
        f"        out[t] = {' : '.join(parts)};",
        "    }",
        "}",
    ])  # fmt: skip
    return [KernelLaunch(step.op, f"{text}\n", [*names, out], total)], []


#: A length, whether it is reduced, and the strides of all arrays.
_Axis = tuple[int, bool, tuple[int, ...]]


def merged_axes(
    shape: Shape, reduced: Sequence[int], strides: Sequence[tuple[int, ...]]
) -> list[_Axis]:
    """Return the axes of a loop, with neighbours merged where all arrays allow it."""
    axes: list[_Axis] = []
    for a, n in enumerate(shape):
        if n == 1:
            continue
        mine, inside = tuple(s[a] for s in strides), a in reduced
        if axes:
            before, same, outer = axes[-1]
            if same == inside and all(o == m * n for o, m in zip(outer, mine, strict=True)):
                axes[-1] = (before * n, inside, mine)
                continue
        axes.append((n, inside, mine))
    return axes


def _unravelled(axes: Sequence[tuple[int, int]], name: str) -> list[str]:
    """Return lines that compute the indices along axes from one number."""
    lines = [f"I {name}0 = {name};"] if len(axes) > 1 else []
    for number, (i, n) in reversed(list(enumerate(axes))):
        source = f"{name}0" if len(axes) > 1 else name
        lines.append(f"I k{i} = {source};" if number == 0 else f"I k{i} = {source} % {n};")
        if number:
            lines.append(f"{source} /= {n};")
    return lines


def identity_of(step: PlanStep) -> str:
    """Return the number that a reduction starts from."""
    # negative zero plus any number is that number, also if it is negative zero
    start = {"add": -0.0, "maximum": float("-inf"), "minimum": float("inf")}[step.op]
    text = literal(step.out.dtype.kind == "b" or start, step.out.dtype)  # the minimum of booleans
    assert text is not None
    return text


def folded(step: PlanStep, so_far: str, x: str) -> str:
    """Return the result of a reduction so far with one more number."""
    if step.op == "add":
        return f"{so_far} + {x}"
    sign = ">" if step.op == "maximum" else "<"
    return f"{so_far} {sign} {x} || {so_far} != {so_far} ? {so_far} : {x}"


def prelude(text: str) -> str:
    """Return the first lines of a kernel with a text."""
    return "".join(part for name, part in _PRELUDES.items() if name in text)


def label_of(group: LoopGroup) -> str:
    """Return a short description of a group's computation, for profiles."""
    words = dict.fromkeys(step.op for step in group.members)
    return "_".join([*words][:4])


@lru_cache(maxsize=4096)
def compiled(xp: Any, name: str, source: str) -> Any:
    """Return a kernel; CuPy caches compiled kernels in files, by their source."""
    kernel = xp.RawKernel(source, name, OPTIONS)
    kernel.compile()
    return kernel
