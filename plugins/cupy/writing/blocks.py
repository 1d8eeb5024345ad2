"""Block kernels: several groups in one launch, each block of threads on its own slices.

The groups are phases of a block. A value that a later phase reads is in a register of the thread
that computed it; or, if other threads read it, in the block's shared memory or in its own array,
with a barrier between. All threads of a block reach each barrier: those without a slice of their
own compute the last slice once more, and write nothing. Sums are added in a fixed order: each
thread adds some elements, then threads add pairs of their results.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from math import prod

import numpy as np

from ....core.extend import Symbol
from ...planned import LoopGroup, PlanStep
from .formulas import compute_type, expression, loaded, stored
from .places import Place
from .slices import Slices, is_whole, power_from, sums_in_slice
from .source import (
    BLOCK,
    NONE,
    KernelLaunch,
    KernelText,
    axes_of,
    folded,
    identity,
    label,
    merged,
    reach,
    spread,
    unravelled,
)

#: The maximum of parts of a kernel that run side by side, and of bytes that the values of each take
#: in shared memory: together, and with those of sums, they have 48 KiB.
MOST_PARTS, _SHARED = 4, 2**13
#: The maximum of sums that are added up between the same barriers.
_TOGETHER = 4
#: The maximum of rounds of a loop that are written out, so that its values stay in registers.
_UNROLLED = 8
#: The roles of axes: they number the slices, or sums in a slice, or elements of a sum.
_SLICE, _SUM, _ELEMENT = range(3)


def side_by_side(
    parts: Sequence[Slices],
    place: Callable[[Symbol], Place],
    outputs: Container[Symbol] | None = None,
    stores: Mapping[Symbol, Place] = NONE,
) -> list[KernelLaunch]:
    """Return kernels that run groups; several parts are blocks of one launch.

    Parameters
    ----------
    parts
        Groups that are cut into slices.
    place
        A function that returns the place of an input.
    outputs
        The values that are written to their arrays; by default the sums.
    stores
        The places of outputs that are parts of other arrays.
    """
    found = []
    for start in range(0, len(parts), MOST_PARTS):
        text, lines, steps = KernelText(), [], []
        for part in parts[start : start + MOST_PARTS]:
            steps += [step for group in part.groups for step in group.members]
            lines.append((part.blocks, BlockText(text, part, place, outputs, stores).write()))
        found.append(text.launch(label(steps), lines))
    return found


class Values:
    """Where each value that is used in several phases is kept.

    Parameters
    ----------
    slices
        The groups, cut into slices.
    place
        A function that returns the place of an input.

    Attributes
    ----------
    numbers
        Values of one number in a slice: each thread has it.
    own
        Values of which each thread has the elements that it computed.
    shared
        Values in shared memory.
    spilled
        Values that are too large for it, and are in arrays.
    """

    def __init__(self, slices: Slices, place: Callable[[Symbol], Place]) -> None:
        self.numbers = {x for x, layout in slices.layouts.items() if layout.size == 1}
        self.own: set[Symbol] = set()
        self.shared: set[Symbol] = set()
        self.spilled: set[Symbol] = set()
        loops = {step.out for g in slices.groups if not has_sums(slices, g) for step in g.steps}
        left = _SHARED
        for group, x in slices.reads:
            home = place(x)[0]
            if home in self.numbers:
                continue
            if home in loops and self.is_own(slices, group, x, home):
                self.own.add(home)
            elif home not in self.shared:
                each = max(4, np.dtype(home.dtype).itemsize)  # 16-bit numbers are kept as float
                size = slices.layouts[home].size * slices.at_once * each
                size = -(-size // 8) * 8  # where the next one may begin
                small = size <= left
                left -= size * small
                (self.shared if small else self.spilled).add(home)

    def is_own(self, slices: Slices, group: LoopGroup, x: Symbol, home: Symbol) -> bool:
        """Return whether the thread that reads an element of a value has computed it."""
        if has_sums(slices, group) or slices.size(group) != slices.layouts[home].size:
            return False
        return is_whole(slices.reads[group, x], group.shape, slices.spans[group])


def has_sums(slices: Slices, group: LoopGroup) -> bool:
    """Return whether a group has several sums in a slice, which threads share out."""
    return bool(group.tails) and sums_in_slice(group, slices.spans[group])[0] > 1


class BlockText:
    """The text of the blocks of one set of slices.

    Parameters
    ----------
    text
        The kernel that they are part of.
    slices
        The groups, cut into slices.
    place
        A function that returns the place of an input.
    outputs
        The values that are written to their arrays.
    stores
        The places of outputs that are parts of other arrays.
    """

    def __init__(
        self,
        text: KernelText,
        slices: Slices,
        place: Callable[[Symbol], Place],
        outputs: Container[Symbol] | None,
        stores: Mapping[Symbol, Place],
    ) -> None:
        self.text = text
        self.slices = slices
        self.place, self.stores = place, stores
        self.values = Values(slices, place)
        tails = {step.out for group in slices.groups for step in group.tails}
        self.outputs = tails if outputs is None else outputs
        self.names: dict[Symbol, str] = {}  # of numbers and of the threads' own elements
        self.in_shared: dict[Symbol, str] = {}
        self._unread: set[Symbol] = set()  # written since the last barrier
        self.lines: list[str] = []
        spare = slices.count % slices.at_once
        self.on = ["on"] if spare else []

    def write(self) -> list[str]:
        """Return the lines; ``b`` is the number of the block."""
        slices, lines = self.slices, self.lines
        threads, several = slices.threads, slices.at_once
        across, along = (
            (f"t % {several}", f"t / {several}") if slices.turned
            else (f"t / {threads}", f"t % {threads}")
        )  # fmt: skip
        lines += ["const int t = threadIdx.x;", f"const int s = {across}, p = {along};"]
        lines.append(f"I j = b * {several} + s;")
        if self.on:
            lines += [
                f"const bool on = j < {slices.count};",
                f"if (!on) j = {slices.count - 1};",
            ]
        for group in slices.groups:
            self._meet(group)
            _Phase(self, group).write()
        return lines

    def _meet(self, group: LoopGroup) -> None:
        """Wait for all threads if a group reads what others have written."""
        homes = {x: self.place(x)[0] for x in group.inputs}
        own = {
            x for x, home in homes.items()
            if (group, x) in self.slices.reads and self.is_own(group, x, home)
        }  # fmt: skip
        if any(home in self._unread for x, home in homes.items() if x not in own):
            self.barrier()

    def is_own(self, group: LoopGroup, x: Symbol, home: Symbol) -> bool:
        """Return whether a group reads a value from registers."""
        mine = home in self.values.own and self.values.is_own(self.slices, group, x, home)
        return mine or home in self.values.numbers

    def barrier(self) -> None:
        """Wait for all threads of the block."""
        self.lines.append("__syncthreads();")
        self._unread.clear()

    def wrote(self, x: Symbol) -> None:
        """Record that other threads see a value only after a barrier."""
        self._unread.add(x)

    def shared(self, x: Symbol) -> str:
        """Return the name of a value's shared memory."""
        if x not in self.in_shared:
            size = self.slices.layouts[x].size * self.slices.at_once
            self.in_shared[x] = self.text.shared(compute_type(x.dtype), size)
        return self.in_shared[x]

    def at(self, *conditions: str) -> str:
        """Return the start of a line for threads that meet conditions, and have a slice."""
        all_of = [*self.on, *conditions]
        return f"if ({' && '.join(all_of)}) " if all_of else ""


class _Phase:
    """The text of one group."""

    def __init__(self, block: BlockText, group: LoopGroup) -> None:
        self.block, self.group = block, group
        self.text, self.slices = block.text, block.slices
        self.span = self.slices.spans[group]
        self.size = self.slices.size(group)
        self.names: dict[Symbol, str] = {}
        self.sums, self.each = sums_in_slice(group, self.span)
        self._strides: dict[object, tuple[int, ...]] = {}
        self._offsets: dict[object, int] = {}
        shape, rank = group.shape, len(group.shape)
        gone = axes_of(group.tails[0]) if group.tails else ()
        first, last = self.span or (0, 0)
        roles = [
            _SLICE if first <= a < last else _ELEMENT if a in gone else _SUM for a in range(rank)
        ]
        inside = [1 if role == _SLICE else n for role, n in zip(roles, shape, strict=True)]
        self._add("out", 0, _products(shape))
        self._add("inside", 0, [n * (role != _SLICE) for n, role in zip(_products(inside), roles)])
        left = [1 if a in gone else n for a, n in enumerate(shape)]
        self._add("sum", 0, [n * (a not in gone) for a, n in enumerate(_products(left))])
        for step in group.steps:
            if step.out in block.stores:
                place = block.stores[step.out]
                self._add(step, place[1], spread(place, step.out, rank))
                self.text.reaches.append(reach(place, step.out))
        for x in group.inputs:
            place = block.place(x)
            local = self.slices.reads.get((group, x))
            if local is not None and place[0] in block.values.shared:
                self._add(x, *local)
            else:
                self._add(x, place[1], spread(place, x, rank))
                self.text.reaches.append(reach(place, x))
        self.text.reaches.append(prod(shape) + BLOCK)
        self._axes = merged(shape, roles, list(self._strides.values()))
        self._columns = {key: i for i, key in enumerate(self._strides)}

    def _add(self, key: object, offset: int, strides: Sequence[int]) -> None:
        self._strides[key], self._offsets[key] = tuple(strides), offset

    # -- indices ---------------------------------------------------------------------------------

    def _index(self, key: object, more: str = "") -> str:
        offset = self._offsets[key]
        terms = [*([more] if more else []), *([str(offset)] if offset else [])]
        for i, (_, _, strides) in enumerate(self._axes):
            step = strides[self._columns[key]]
            if step:
                terms.append(f"k{i}" if step == 1 else f"k{i} * ({step})")
        return " + ".join(terms) or "0"

    def _in_shared(self, x: Symbol, key: object) -> str:
        size = self.slices.layouts[x].size
        return f"{self.block.shared(x)}[{self._index(key, f's * {size}')}]"

    def _unravelled(self, number: str, *roles: int) -> list[str]:
        axes = [(i, n) for i, (n, role, _) in enumerate(self._axes) if role in roles]
        return unravelled(axes, number)

    def _varies(self, x: Symbol) -> bool:
        """Return whether an input differs within a slice."""
        column = self._columns[x]
        return any(role != _SLICE and strides[column] for _, role, strides in self._axes)

    # -- phases ----------------------------------------------------------------------------------

    def write(self) -> None:
        """Add the lines of the group."""
        lines = self.block.lines
        if self.size == 1:
            self._numbers()
        elif self.sums > 1 and self.group.tails:
            lines.append("{")
            self._several_sums()
            lines.append("}")
        else:
            self._loop()

    def _load(self, x: Symbol) -> str:
        """Return an input's element at the current indices."""
        home = self.block.place(x)[0]
        inside = (self.group, x) in self.slices.reads
        if inside and home in self.block.values.shared:
            return self._in_shared(home, x)
        return loaded(x.dtype, f"{self.text.array(home)}[{self._index(x)}]")

    def _known(self, x: Symbol) -> str | None:
        """Return the name of an input that is in registers."""
        home = self.block.place(x)[0]
        if (self.group, x) not in self.slices.reads or not self.block.is_own(self.group, x, home):
            return None
        name = self.block.names[home]
        return name if home in self.block.values.numbers else f"{name}[q]"

    def _number(self, x: Symbol, value: str, inner: list[str]) -> str:
        """Declare a variable of all later phases; add the line that sets it."""
        name = self.text.name("v")
        self.block.lines.append(f"{compute_type(x.dtype)} {name};")
        inner.append(f"{name} = {value};")
        return name

    def _numbers(self) -> None:
        """Add the lines of a group with one number in a slice, which all threads compute."""
        inner = self._unravelled("j", _SLICE)
        for x in self.group.inputs:
            self.names[x] = self._known(x) or self._number(x, self._load(x), inner)
        for step in self.group.steps:
            value = _expression(step, self.names)
            self.names[step.out] = self._number(step.out, value, inner)
        for step in self.group.tails:  # of one element
            self.names[step.out] = self.names[step.inputs[0]]
        for step in self.group.members:
            self.block.names[step.out] = self.names[step.out]
            inner += self._stored(step, "j" if self.span else "0", "p == 0")
        self.block.lines += ["{", *inner, "}"]

    def _stored(self, step: PlanStep, index: str, *conditions: str) -> list[str]:
        """Return the lines that write a result to its array, if it has one."""
        x = step.out
        if x not in self.block.outputs:
            return []
        home = x
        if step in self._columns:
            home, index = self.block.stores[x][0], self._index(step)
        first = ["b == 0", "s == 0"] if self.span is None else []
        name = self.text.array(home, written=True)
        self.block.wrote(x)
        value = stored(x.dtype, self.names[x])
        return [f"{self.block.at(*conditions, *first)}{name}[{index}] = {value};"]

    def _loop(self) -> None:
        """Add the loop of a group with at most one sum of each kind in a slice."""
        block, group, lines = self.block, self.group, self.block.lines
        rounds, threads = self.slices.rounds(group), self.slices.threads
        for step in group.steps:
            if step.out in block.values.own:
                name = block.names[step.out] = self.text.name("v")
                lines.append(f"{compute_type(step.out.dtype)} {name}[{rounds}];")
        totals = [self.text.name("a") for _ in group.tails]
        for step, name in zip(group.tails, totals, strict=True):
            lines.append(f"{compute_type(step.out.dtype)} {name} = {identity(step)};")
        lines += ["{", *self._unravelled("j", _SLICE)]
        body = self._inputs(lines)
        body += self._steps("inside")
        for step, name in zip(group.tails, totals, strict=True):
            body.append(f"{name} = {folded(step, name, self.names[step.inputs[0]])};")
        if rounds <= _UNROLLED:
            lines.append("#pragma unroll")
        lines += [f"for (int q = 0; q < {rounds}; q++) {{", f"I e = p + q * {threads};"]
        guard = f"if (e < {self.size}) " if self.size % threads else ""
        lines += [f"{guard}{{", *self._unravelled("e", _SUM, _ELEMENT), *body, "}", "}", "}"]
        base = "s" if self.slices.turned else f"s * {threads}"
        self._total(totals, base, min(threads, power_from(self.size)), 1)
        for step, name in zip(group.tails, totals, strict=True):
            lines.append(f"{name} = {_rounded(step.out, name)};")
            self.names[step.out] = block.names[step.out] = name
            lines += self._stored(step, "j", "p == 0")

    def _inputs(self, before: list[str]) -> list[str]:
        """Return the lines that read inputs; those that are the same in a slice come before."""
        body: list[str] = []
        for x in self.group.inputs:
            known = self._known(x)
            name = self.names[x] = known or self.text.name("x")
            if known is None:
                (body if self._varies(x) else before).append(
                    f"{compute_type(x.dtype)} {name} = {self._load(x)};"
                )
        return body

    def _steps(self, inside: str, *conditions: str) -> list[str]:
        """Return the lines of the elementwise steps, and those that keep their results."""
        lines = []
        for step in self.group.steps:
            name = self.text.name("v")
            value = _expression(step, self.names)
            lines.append(f"{compute_type(step.out.dtype)} {name} = {value};")
            self.names[step.out] = name
        for step in self.group.steps:
            x, name = step.out, self.names[step.out]
            if x in self.block.names:
                lines.append(f"{self.block.names[x]}[q] = {name};")
            if x in self.block.values.shared:
                own = f"if ({' && '.join(conditions)}) " if conditions else ""
                lines.append(f"{own}{self._in_shared(x, inside)} = {name};")
                self.block.wrote(x)
            lines += self._stored(step, self._index("out"), *conditions)
        return lines

    def _several_sums(self) -> None:
        """Add the lines of a group with several sums in a slice, shared out among threads."""
        group, lines, threads = self.group, self.block.lines, self.slices.threads
        lines += self._unravelled("j", _SLICE)
        lanes = min(threads, power_from(self.sums))
        each = threads // lanes  # threads of a sum
        near = self._axes[-1][1] == _ELEMENT  # adjacent elements are of one sum
        lane, part = (f"p / {each}", f"p % {each}") if near else (f"p % {lanes}", f"p / {lanes}")
        lines += [f"const int lane = {lane}, part = {part};"]
        alone = each == 1
        if alone:
            lines += [f"for (I u = lane; u < {self.sums}; u += {lanes}) {{"]
        else:
            lines += [f"const bool mine = lane < {self.sums};"]
            lines += [f"I u = mine ? lane : {self.sums - 1};"]
        lines += self._unravelled("u", _SUM)
        totals = [self.text.name("a") for _ in group.tails]
        for step, name in zip(group.tails, totals, strict=True):
            lines.append(f"{compute_type(step.out.dtype)} {name} = {identity(step)};")
        mine = [] if alone else ["mine"]
        body: list[str] = []
        body += self._inputs(body)
        body += self._steps("inside", *mine)
        for step, name in zip(group.tails, totals, strict=True):
            body.append(f"{name} = {folded(step, name, self.names[step.inputs[0]])};")
        lines += [f"for (I r = part; r < {self.each}; r += {each}) {{"]
        lines += [*self._unravelled("r", _ELEMENT), *body, "}"]
        if not alone:
            slot = f"({'lane * ' + str(each) if near else 'lane'})"
            turned = self.slices.turned
            base = f"{slot} * {self.slices.at_once} + s" if turned else f"s * {threads} + {slot}"
            self._total(totals, base, each, 1 if near else lanes, part="part")
        ending = [] if alone else ["mine", "part == 0"]
        for step, name in zip(group.tails, totals, strict=True):
            lines.append(f"{name} = {_rounded(step.out, name)};")
            self.names[step.out] = name
            if step.out in self.block.values.shared:
                own = f"if ({' && '.join(ending)}) " if ending else ""
                size = self.slices.layouts[step.out].size
                lines.append(f"{own}{self.block.shared(step.out)}[s * {size} + u] = {name};")
                self.block.wrote(step.out)
            lines += self._stored(step, self._index("sum"), *ending)
        lines += ["}"] if alone else []

    def _total(
        self, totals: Sequence[str], base: str, threads: int, spacing: int, part: str = "p"
    ) -> None:
        """Add the lines that add up the threads' sums, in pairs."""
        tails = self.group.tails
        if threads == 1 or not tails:
            return
        lines = self.block.lines
        distance = spacing * (self.slices.at_once if self.slices.turned else 1)
        for start in range(0, len(tails), _TOGETHER):
            some = range(start, min(start + _TOGETHER, len(tails)))
            kinds = [compute_type(tails[i].out.dtype) for i in some]
            rows = self.text.scratch(kinds)
            both = list(zip(some, rows, strict=True))
            lines += [f"{row}[t] = {totals[i]};" for i, row in both]
            lines.append(f"for (int half = {threads // 2}; half; half /= 2) {{")
            self.block.barrier()
            lines.append(f"if ({part} < half) {{")
            other = f"t + half * {distance}" if distance > 1 else "t + half"
            for i, row in both:
                kind = compute_type(tails[i].out.dtype)
                lines.append(f"const {kind} y{i} = {row}[t], z{i} = {row}[{other}];")
                lines.append(f"{row}[t] = {folded(tails[i], f'y{i}', f'z{i}')};")
            lines += ["}", "}"]
            self.block.barrier()
            lines += [f"{totals[i]} = {row}[{base}];" for i, row in both]


def _expression(step: PlanStep, names: dict[Symbol, str]) -> str:
    text = expression(step, names)
    assert text is not None
    return text


def _rounded(x: Symbol, text: str) -> str:
    """Return a sum as it is read from memory."""
    return loaded(x.dtype, stored(x.dtype, text))


def _products(shape: Sequence[int]) -> list[int]:
    """Return the strides of an array of a shape, of one element after another."""
    return [prod(shape[a + 1 :]) for a in range(len(shape))]
