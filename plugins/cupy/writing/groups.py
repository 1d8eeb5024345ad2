"""Kernels: a group of steps in CUDA C, each element read and written once.

A thread computes one element after another. Where the group ends in sums, a thread adds some of the
elements of one sum, always the same ones in the same order, and further kernels add the partial
sums. So results depend neither on the device nor on chance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

from ....core.extend import Symbol
from ...planned import Item, LoopGroup, PlanStep, Shape, shape_of, symbol_like
from .blocks import side_by_side
from .formulas import compute_type, expression, loaded, memory_type, stored
from .places import Place
from .slices import cut
from .source import (
    NONE,
    KernelLaunch,
    Written,
    axes_of,
    folded,
    identity,
    index_type,
    label,
    merged,
    prelude,
    reach,
    spread,
    unravelled,
)

#: The maximum of elements that one thread sums alone.
_ALONE = 16
#: The minimum and maximum of elements per thread otherwise, and a sufficient number of threads.
_LEAST, MOST, _THREADS = 4, 32, 2**15
#: The maximum of parts of a sum that one block adds up.
_FINISHED = 2**12

#: The maximum of steps and sums in a kernel: a compiler takes long over more, and a launch can have
#: up to 512 arrays.
_MOST_STEPS, _MOST_TAILS = 96, 32


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


def in_parts(group: LoopGroup, least: int = _LEAST) -> list[LoopGroup]:
    """Return a group that adds up parts of the sums, and groups that add up what it leaves.

    Parameters
    ----------
    group
        A group with sums.
    least
        The minimum of elements of a part.
    """
    count, kept = _sums_of(group)
    each = max(count * kept // _THREADS, -(-count // _FINISHED))
    parts = -(-count // max(least, min(MOST, each)))
    fast = ends_in(group.shape, axes_of(group.tails[0]))
    first, rest = LoopGroup(group.shape), []
    first.steps = list(group.steps)
    for step in group.tails:
        x = symbol_like(step.out, (kept, parts) if fast else (parts, kept))
        params = {**step.params, "parts": parts}
        first.tails.append(PlanStep(step.kind, step.op, step.run, step.inputs, (x,), params))
        params = {"axis": int(fast), "keepdims": False}
        last = PlanStep(step.kind, step.op, step.run, (x,), step.outputs, params)
        rest.append(LoopGroup.of_reduction(last))
    read = set(group.outputs)
    first.close(lambda x: x in read)
    return [first, *rest]


def is_one_launch(group: LoopGroup) -> bool:
    """Return whether a group's threads are enough to add up its sums, or parts of them."""
    return not group.tails or "parts" in group.tails[0].params or _sums_of(group)[0] <= _ALONE


def _sums_of(group: LoopGroup) -> tuple[int, int]:
    """Return the number of elements of a sum, and the number of sums of each kind."""
    count = prod(group.shape[a] for a in axes_of(group.tails[0]))
    return count, prod(group.shape) // count


def launches(
    group: LoopGroup,
    place: Callable[[Symbol], Place],
    stores: Mapping[Symbol, Place] = NONE,
    least: int = _LEAST,
) -> Written:
    """Return the kernels that run a group, and the arrays that they use between them.

    Parameters
    ----------
    group
        The group; all its reductions are over the same axes.
    place
        A function that returns the place of an input.
    stores
        The places of outputs that are parts of other arrays.
    least
        The minimum of elements that a thread adds up.
    """
    if is_one_launch(group):
        return [_Source(group, place, stores).launch()], []
    first, *rest = in_parts(group, least)
    found, _ = launches(first, place, stores)
    scratch = [step.out for step in first.tails]
    slices = [cut([part], _as_it_lies) for part in rest]
    some = [part for part in slices if part is not None]
    if len(some) == len(slices):
        return found + side_by_side(some, _as_it_lies), scratch
    for part in rest:
        more, between = launches(part, _as_it_lies, least=MOST)
        found, scratch = found + more, scratch + between
    return found, scratch


def _as_it_lies(x: Symbol) -> Place:
    return x, 0, tuple(prod(shape_of(x)[a + 1 :]) for a in range(len(shape_of(x))))


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
        stores: Mapping[Symbol, Place],
    ) -> None:
        self.group = group
        self.parts = parts = group.tails[0].params.get("parts", 1) if group.tails else 1
        self.reduced = axes_of(group.tails[0]) if group.tails else ()
        self.fast = bool(group.tails) and ends_in(group.shape, self.reduced)
        self._arrays: dict[Symbol, str] = {}
        self._written: set[Symbol] = set()
        self._places = {x: place(x) for x in group.inputs}
        self._stores = {step.out: stores[step.out] for step in group.steps if step.out in stores}
        both = {**self._places, **self._stores}
        rank = len(group.shape)
        strides = {x: spread(at, x, rank) for x, at in both.items()}
        whole = [prod(group.shape[a + 1 :]) for a in range(rank)]
        roles = [a in self.reduced for a in range(rank)]
        self._axes = merged(group.shape, roles, [tuple(whole), *strides.values()])
        self._columns: dict[Symbol | None, int] = {None: 0}
        self._columns.update((x, i + 1) for i, x in enumerate(strides))
        size = prod(group.shape)
        read = [reach(at, x) for x, at in both.items()]
        self.index = index_type([size, size * max(1, parts), *read])

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
            lines += [f"    {line}" for line in unravelled(kept, "j")]
            for i, step in enumerate(group.tails):
                lines.append(f"    {compute_type(step.out.dtype)} a{i} = {identity(step)};")
            lines.append(f"    for (I r = p; r < {count}; r += {self.parts}) {{")
            lines += [f"        {line}" for line in (*unravelled(sums, "r"), *body)]
            lines += ["    }", *(f"    {line}" for line in ends)]
        else:
            lines += [f"    {line}" for line in (*unravelled(kept, "t"), *body)]
        lines.append("}")
        params = []
        for x, name in self._arrays.items():
            const = "" if x in self._written else "const "
            params.append(f"{const}{memory_type(x.dtype)}* {name}")
        text = "\n".join(f"    {line}" for line in lines)
        head = f'extern "C" __global__ void KERNEL({", ".join(params)}) {{'
        source = f"{prelude(text)}typedef {self.index} I;\n{head}\n{text}\n}}\n"
        return KernelLaunch(label(group.members), source, list(self._arrays), threads)

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
                home, offset, _ = self._stores.get(step.out, (step.out, 0, None))
                at = self._at(step.out if step.out in self._stores else None, offset)
                body.append(f"{self._array(home, written=True)}[{at}] = {value};")
        ends: list[str] = []
        for i, step in enumerate(group.tails):
            body.append(f"a{i} = {folded(step, f'a{i}', names[step.inputs[0]])};")
            total = stored(step.out.dtype, f"a{i}")
            ends.append(f"{self._array(step.out, written=True)}[t] = {total};")
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
