"""The lines of groups, which run in blocks if they are large, and of joined arrays.

A block of rows fits the processor's cache, so that each step finds there what the step before has
computed. The parts of a joined array are computed in place where possible.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from math import prod
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from ....core.extend import Symbol, pays, threads
from ..steps import LoopGroup, PlanStep, Shape, StepKind, bytes_of, shape_of, size_of, symbol_like
from .sharing import PartWriter, SharedLines, aligned_rows, call_into, work_of

if TYPE_CHECKING:
    from .emission import Emission

# -- groups in blocks ------------------------------------------------------------------------------


#: The size in bytes from which a group processes arrays in blocks, and the size of a block.
_LARGE, _BLOCK = 2**18, 2**16
#: The longest rows of which several copies are read at a time, and the minimum number of them.
_FEW, _REPEATED = 2**7, 2**9
#: The least and the largest size of a block if threads share the blocks. Each step takes Python's
#: lock once for a block: with smaller ones, threads mostly wait for it.
_SHARED_LEAST, _SHARED_MOST = 2**18, 2**19


class _Scratch:
    """Buffers of one block, for values that stay inside a group; one set for each thread."""

    def __init__(self, lines: PartWriter, shape: Shape, copies: int, even: bool) -> None:
        self.emission = lines.emission
        self.lines = lines
        self.shape = shape if lines.inline else (copies, *shape)
        self.even = even
        self._owned: dict[str, Any] = {}
        self._held: list[Symbol] = []
        self._free: dict[Any, list[str]] = {}

    def take(self, out: Symbol) -> str:
        """Return an expression for a buffer."""
        free = self._free.get(out.dtype)
        if free:
            return free.pop()
        symbol = symbol_like(out, self.shape)
        name = self.lines.name(self.emission.buffer(symbol))
        if not self.lines.inline:
            self.lines.head.append(f"{name} = {name}[part]")
        expression = name if self.even else f"{name}[:z - a]"
        self._owned[expression] = symbol
        return expression

    def free(self, expressions: Sequence[str], dtype: Any = None) -> None:
        """Take back buffers; only those of one dtype if it is given."""
        for expression in expressions:
            symbol = self._owned.get(expression)
            if symbol is None or (dtype is not None and symbol.dtype != dtype):
                continue
            free = self._free.setdefault(symbol.dtype, [])
            if expression not in free:
                free.append(expression)

    def hold(self, symbol: Symbol) -> str:
        """Return the name of a buffer that lasts until the end of the group."""
        name = self.emission.buffer(symbol)
        self._held.append(symbol)
        return name

    def close(self) -> None:
        """Free the memory for later steps."""
        for symbol in (*self._owned.values(), *self._held):
            slot = self.emission.slots.pop(symbol)
            self.emission.free.setdefault(bytes_of(symbol), []).append(slot)


def write_group(emission: Emission, group: LoopGroup, outputs: Container[Symbol]) -> None:
    """Write the elementwise steps of a group, in blocks if it is large.

    Parameters
    ----------
    emission
        The emission that is being written.
    group
        The group.
    outputs
        The values that are written to arrays; all others stay in one block.
    """
    shape = group.shape
    rows, copies = _blocks(group)
    whole = rows >= shape[0]
    lines = PartWriter(emission, inline=whole)
    names: dict[Symbol, str] = {}
    sliced: dict[str, str] = {}

    def here(x: Symbol) -> str:
        if x in names:
            return names[x]
        name = emission.name(x)
        wide = repeated_shape(x, shape)
        if wide is not None:
            repeated = scratch.hold(symbol_like(x, wide))
            emission.lines.append(f"{repeated}[...] = {name}")
            names[x] = lines.name(repeated)
            return names[x]
        name = lines.name(name)
        if whole or len(shape_of(x)) < len(shape) or shape_of(x)[0] == 1:
            return name
        if name not in sliced:
            sliced[name] = f"part{len(sliced)}"
            lines.body.append(f"{sliced[name]} = {name}[a:z]")
        return sliced[name]

    even = whole or shape[0] % rows == 0
    scratch = _Scratch(lines, (min(rows, shape[0]), *shape[1:]), copies, even)
    last = {x: i for i, step in enumerate(group.steps) for x in step.symbols}
    for i, step in enumerate(group.steps):
        given = step.arguments(here, emission.bind_scalar)
        call = f"{emission.bind(step.run, 'k')}({', '.join(given)}"
        gone = [x for x in dict.fromkeys(step.symbols) if last[x] == i]
        out = step.out
        if step.kind is StepKind.FRESH:
            target = here(out) + "[...]" if out in outputs else names.setdefault(out, f"t{i}")
            lines.body.append(f"{target} = {call})")
        else:
            scratch.free([names[x] for x in gone if x in names], out.dtype)
            target = here(out) if out in outputs else scratch.take(out)
            names[out] = target
            lines.body.append(call_into(step, call, target))
        scratch.free([names[x] for x in gone if names.get(x, target) != target])
    if whole:
        emission.lines += lines.body
    else:
        block = [f"for a in range(first, last, {rows}):", f"    z = min(a + {rows}, last)"]
        lines.body = [*block, *(f"    {line}" for line in lines.body)]
        lines.close(SharedLines(shape[0], work_of(group.steps), rows, copies))
    scratch.close()


def repeated_shape(x: Symbol, shape: Shape) -> Shape | None:
    """Return the shape of copies of a row that a step should read in its place, if it should.

    NumPy runs a loop along the axes that operands have in common. A loop along a few channels takes
    longer to start than to run.

    Parameters
    ----------
    x
        An operand of an elementwise step.
    shape
        The shape of the step.
    """
    mine = shape_of(x)
    if len(shape) < 3 or not mine or size_of(x) != mine[-1] or mine[-1] != shape[-1]:
        return None
    if not 1 < shape[-1] <= _FEW or shape[-2] < 2 or prod(shape[:-1]) < _REPEATED:
        return None
    return shape[-2:]


def arguments_of(emission: Emission, step: PlanStep) -> list[str]:
    """Return the arguments of a step, with copies of its short rows where these are faster."""
    held: list[Symbol] = []

    def here(x: Symbol) -> str:
        wide = repeated_shape(x, step.space) if step.kind is StepKind.ELEMENTWISE else None
        if wide is None:
            return emission.name(x)
        held.append(symbol_like(x, wide))
        name = emission.buffer(held[-1])
        emission.lines.append(f"{name}[...] = {emission.name(x)}")
        return name

    arguments = step.arguments(here, emission.bind_scalar)
    # free for later steps: the result is larger, and does not get these buffers
    for symbol in held:
        emission.free.setdefault(bytes_of(symbol), []).append(emission.slots.pop(symbol))
    return arguments


def in_blocks(group: LoopGroup) -> bool:
    """Return whether a group is so large that it must be split to fit the processor's cache."""
    if not all(step.elementwise for step in group.steps):
        return False
    return len(group.steps) > 1 and group.shape != () and _blocks(group)[0] < group.shape[0]


def _blocks(group: LoopGroup) -> tuple[int, int]:
    """Return the number of rows of a block, and of threads that may share the blocks."""
    widest = max(step.out.dtype.itemsize for step in group.steps)
    row = int(np.prod(group.shape[1:], dtype=np.int64)) * widest
    size = row * group.shape[0]
    if size < _LARGE:
        return group.shape[0], 1
    copies = min(threads(), size // _SHARED_LEAST)
    if copies > 1 and pays(work_of(group.steps)):
        blocks = copies * -(-size // (copies * _SHARED_MOST))  # as many for each thread
        multiple = aligned_rows(group.shape)
        rows = -(-group.shape[0] // (blocks * multiple)) * multiple
        if rows < group.shape[0]:
            return rows, copies
    return max(1, _BLOCK // row), 1


# -- parts of joined arrays ------------------------------------------------------------------------


#: The maximum size in bytes of a result whose memory exists before its parts are computed.
_LARGEST_JOINED = 2**20
#: Steps that write to arrays of any strides.
_PLACED = frozenset({StepKind.ELEMENTWISE, StepKind.JOIN})


def placed_parts(
    emission: Emission, items: Iterable[Any], others: Iterable[LoopGroup]
) -> dict[Symbol, list[str]]:
    """Make parts of results be computed in place; return the names of the parts.

    Parameters
    ----------
    emission
        The emission, before the items are written.
    items
        The groups and steps that run as ufuncs, which write to arrays of any strides.
    others
        The groups that run as loops, which write to contiguous arrays.
    """
    steps = [step for x in items for step in ([x] if isinstance(x, PlanStep) else x.steps)]
    made = {step.out for step in steps if step.kind in _PLACED}
    contiguous = {step.out for group in others for step in group.steps}
    found = {}
    for step in reversed(steps):  # a part may be joined of parts
        if (
            step.kind is not StepKind.JOIN
            or step.out in emission.fresh
            or bytes_of(step.out) > _LARGEST_JOINED
        ):
            continue
        free = {x for x, n in Counter(step.inputs).items() if n == 1 and x in made}
        if step.params["axis"] == 0 and step.out not in emission.names:
            free |= {x for x, n in Counter(step.inputs).items() if n == 1 and x in contiguous}
        free -= emission.fresh | set(emission.names)
        if free:
            found[step.out] = _parts(emission, step, free)
    return found


def _parts(emission: Emission, step: PlanStep, free: set[Symbol]) -> list[str]:
    """Return the names of a result's parts; they become the names of the ``free`` values."""
    out, axis = step.out, step.params["axis"]
    number: int | None
    if out not in emission.names:
        slot = emission.arena.slot(bytes_of(out))
        made = emission.arena.buffer(slot, shape_of(out), np.dtype(out.dtype))
        emission.names[out] = emission.array(made)
    number = emission.number_of(out)
    parts, end = [], 0
    for x in step.inputs:
        start, end = end, end + shape_of(x)[axis]
        index = (*[slice(None)] * axis, slice(start, end))
        if number is None:  # a row of a stack, different at each step
            part = f"{emission.name(out)}_{start}"
            emission.lines.append(f"{part} = {emission.name(out)}[{':, ' * axis}{start}:{end}]")
        else:
            part = emission.array(emission.arena.view(number, itemgetter(index)))
        if x in free:
            emission.names[x] = part
        parts.append(part)
    return parts


def write_parts(emission: Emission, step: PlanStep, placed: Mapping[Symbol, list[str]]) -> bool:
    """Copy the parts of a result that are elsewhere; return False if it has no places for them.

    Parameters
    ----------
    emission
        The emission that is being written.
    step
        The step that joins the parts.
    placed
        The result of :func:`placed_parts`.
    """
    parts = placed.get(step.out)
    if parts is None:
        return False
    for x, part in zip(step.inputs, parts, strict=True):
        if emission.name(x) != part:
            emission.lines.append(f"{part}[...] = {emission.name(x)}")
    return True
