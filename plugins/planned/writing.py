"""The lines of groups, which run in blocks if they are large, and of joined arrays.

A block of rows fits the processor's cache, so that each step finds there what the step before has
computed. The parts of a joined array are computed in place where possible.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.extend import Symbol
from .steps import LoopGroup, PlanStep, Shape, StepKind, bytes_of, shape_of, symbol_like

if TYPE_CHECKING:
    from .emission import Emission

# -- groups in blocks ------------------------------------------------------------------------------


#: The size in bytes from which a group processes arrays in blocks, and the size of a block.
_LARGE, _BLOCK = 2**18, 2**16


class _Scratch:
    """Buffers of one block, for values that stay inside a group."""

    def __init__(self, emission: Emission, rows: int, shape: Shape, even: bool) -> None:
        self.emission = emission
        self.shape = (min(rows, shape[0]), *shape[1:])
        self.even = even
        self._owned: dict[str, Any] = {}
        self._free: dict[Any, list[str]] = {}

    def take(self, out: Symbol) -> str:
        """Return an expression for a buffer."""
        free = self._free.get(out.dtype)
        if free:
            return free.pop()
        symbol = symbol_like(out, self.shape)
        name = self.emission.buffer(symbol)
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

    def close(self) -> None:
        """Free the memory for later steps."""
        for symbol in self._owned.values():
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
    rows = _rows(group)
    whole = rows >= shape[0]
    names: dict[Symbol, str] = {}
    body: list[str] = []
    sliced: dict[str, str] = {}

    def here(x: Symbol) -> str:
        if x in names:
            return names[x]
        name = emission.name(x)
        if whole or len(shape_of(x)) < len(shape) or shape_of(x)[0] == 1:
            return name
        if name not in sliced:
            sliced[name] = f"part{len(sliced)}"
            body.append(f"{sliced[name]} = {name}[a:z]")
        return sliced[name]

    scratch = _Scratch(emission, rows, shape, whole or shape[0] % rows == 0)
    last = {x: i for i, step in enumerate(group.steps) for x in step.symbols}
    for i, step in enumerate(group.steps):
        given = step.arguments(here, emission.bind_scalar)
        call = f"{emission.bind(step.run, 'k')}({', '.join(given)}"
        gone = [x for x in dict.fromkeys(step.symbols) if last[x] == i]
        out = step.out
        if step.kind is StepKind.FRESH:
            target = here(out) + "[...]" if out in outputs else names.setdefault(out, f"t{i}")
            body.append(f"{target} = {call})")
        else:
            scratch.free([names[x] for x in gone if x in names], out.dtype)
            target = here(out) if out in outputs else scratch.take(out)
            names[out] = target
            body.append(call_into(step, call, target))
        scratch.free([names[x] for x in gone if names.get(x, target) != target])
    if whole:
        emission.lines += body
    else:
        emission.lines.append(f"for a in range(0, {shape[0]}, {rows}):")
        emission.lines.append(f"    z = min(a + {rows}, {shape[0]})")
        emission.lines += [f"    {line}" for line in body]
    scratch.close()


def call_into(step: PlanStep, call: str, target: str) -> str:
    """Return a call, written up to its last argument, with its output array added."""
    # NumPy requires the keyword for these two, and takes longer to parse it
    named = step.kind is StepKind.KERNEL or step.op in ("maximum", "minimum")
    return f"{call}, {'out=' if named else ''}{target})"


def in_blocks(group: LoopGroup) -> bool:
    """Return whether a group is so large that it must be split to fit the processor's cache."""
    if not all(step.elementwise for step in group.steps):
        return False
    return len(group.steps) > 1 and group.shape != () and _rows(group) < group.shape[0]


def _rows(group: LoopGroup) -> int:
    """Return the number of rows of a block."""
    widest = max(step.out.dtype.itemsize for step in group.steps)
    row = int(np.prod(group.shape[1:], dtype=np.int64)) * widest
    if row * group.shape[0] < _LARGE:
        return group.shape[0]
    return max(1, _BLOCK // row)


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
