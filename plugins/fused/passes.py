"""The passes of a group: loops of instructions, and between them calls of NumPy's inner loops.

Besides, the axes of loops, and the memory of what one pass leaves to another.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ...core.extend import Symbol
from ..planned import LoopGroup, PlanStep, Shape, shape_of
from .inner_loops import InnerLoop

#: A value, and how it is read: element by element by default.
Way: TypeAlias = tuple[Symbol, str]
#: Other ways, in a loop over (o, b, h): the distance of elements along each axis.
_WAYS: dict[str, Callable[[int, int, int], list[int]]] = {
    "slopes": lambda o, b, h: [1, o, 0],
    "rows": lambda o, b, h: [h, 0, 1],
    "turned": lambda o, b, h: [1, 0, o],
}


class Pass(NamedTuple):
    """One loop over a block, and the calls after it.

    Attributes
    ----------
    steps
        The steps of the loop.
    tails
        The reductions of their results, or of values from before.
    calls
        The steps that run as NumPy's inner loops, each on the whole block.
    """

    steps: list[PlanStep]
    tails: list[PlanStep]
    calls: list[PlanStep]


def passes_of(group: LoopGroup, calls: Mapping[PlanStep, InnerLoop]) -> list[Pass]:
    """Return the passes of a group.

    Parameters
    ----------
    group
        The group.
    calls
        The inner loops of the steps that have no form.
    """
    # a call is in the first pass that has its operands; another step in the last pass before which
    # nothing needs it, so that few values must be kept from one pass to the next
    ready: dict[Symbol, int] = {}
    places: dict[PlanStep, int] = {}
    for step in group.members:
        places[step] = max((ready.get(x, 0) for x in step.symbols), default=0)
        ready[step.out] = places[step] + (step in calls)
    needed: dict[Symbol, int] = {}
    for step in reversed(group.members):
        if step not in calls and step not in group.tails:
            places[step] = needed.get(step.out, places[step])
        for x in step.symbols:
            needed[x] = min(needed.get(x, places[step]), places[step])
    found = [Pass([], [], []) for _ in range(1 + max(ready.values(), default=0))]
    for step in group.steps:
        here = found[places[step]]
        (here.calls if step in calls else here.steps).append(step)
    for step in group.tails:
        found[places[step]].tails.append(step)
    return found


class Buffers:
    """The values that loops and inner loops leave to each other, as blocks of elements.

    The moments of a pass are twice its number, for the loop, and the next odd one, for the calls. A
    buffer is written at one moment, and read until another one. Then it may hold another value.

    Parameters
    ----------
    passes
        The passes.
    calls
        As for :func:`passes_of`.
    homes
        The values that are in arrays.
    in_place
        A function of a value and a dtype that returns whether an inner loop can read the value
        where it is.

    Attributes
    ----------
    copies
        For each pass, the values that its loop copies for inner loops, and to which dtype.
    places
        The number of a buffer, by a value and the name of a dtype.
    sizes
        The size of an element of each buffer.
    """

    def __init__(
        self,
        passes: Sequence[Pass],
        calls: Mapping[PlanStep, InnerLoop],
        homes: Container[Symbol],
        in_place: Callable[[Any, Any], bool],
    ) -> None:
        self.copies: list[list[tuple[Symbol, Any]]] = [[] for _ in passes]
        self.places: dict[tuple[Symbol, str], int] = {}
        self.sizes: list[int] = []
        self._homes = homes
        self._made = {step.out: 2 * n for n, each in enumerate(passes) for step in each.steps}
        self._made |= {step.out: 2 * n + 1 for n, each in enumerate(passes) for step in each.calls}
        self._written: dict[tuple[Symbol, str], int] = {}
        self._read: dict[tuple[Symbol, str], int] = {}
        for n, each in enumerate(passes):
            for x, _ in (way for step in (*each.steps, *each.tails) for way in ways_of(step)):
                self._note(x, x.dtype, 2 * n)
            for step in each.calls:
                for x, dtype in zip(step.inputs, calls[step].dtypes, strict=False):
                    if not in_place(x, dtype):
                        self._note(x, dtype, 2 * n + 1)
                self._note(step.out, step.out.dtype, 2 * n + 1)
        self._place()

    def _note(self, x: Symbol, dtype: Any, moment: int) -> None:
        """Note that a value is read as a dtype at a moment, or written by an inner loop."""
        key, made, in_loop = (x, np.dtype(dtype).name), self._made.get(x), moment % 2 == 0
        if made is not None and x.dtype == dtype:
            if x in self._homes or (in_loop and moment == made):
                return
            self._written[key] = made
        elif in_loop:  # an element of an input
            return
        elif key not in self._written:
            self._written[key] = moment - 1
            self.copies[moment // 2].append((x, dtype))
            self._note(x, x.dtype, moment - 1)
        self._read[key] = max(self._read.get(key, 0), moment)

    def _place(self) -> None:
        """Give each value a buffer, one whose value is not read any more if there is one."""
        held: dict[int, int] = {}  # the last moment at which a buffer is read
        for key, moment in sorted(self._written.items(), key=lambda item: item[1]):
            size = np.dtype(key[1]).itemsize
            free = (n for n, end in held.items() if end < moment and self.sizes[n] == size)
            number = next(free, len(self.sizes))
            if number == len(self.sizes):
                self.sizes.append(size)
            held[number] = self._read[key]
            self.places[key] = number


def axes_of(
    group: LoopGroup, strided: Mapping[Symbol, Sequence[int]]
) -> tuple[list[int], dict[Way, list[int]]]:
    """Return the lengths of a group's loops, as few as possible, and the strides of values.

    Parameters
    ----------
    group
        The group.
    strided
        The strides, in elements, of the inputs that are not C contiguous.
    """
    whole = group.shape
    found: dict[Way, list[int]] = {}
    for x, how in ((x, how) for step in group.members for x, how in ways_of(step)):
        own = strided.get(x) or contiguous(shape_of(x))
        found[x, how] = _WAYS[how](*whole) if how else _broadcast(shape_of(x), own, whole)
    for x in group.outputs:
        found[x, ""] = _broadcast(shape_of(x), contiguous(shape_of(x)), whole)
    lengths: list[int] = []
    strides: dict[Way, list[int]] = {way: [] for way in found}
    for axis, length in enumerate(whole):
        if length == 1 and (lengths or axis < len(whole) - 1):
            continue
        here = {way: each[axis] for way, each in found.items()}
        pairs = [(strides[way], stride * length) for way, stride in here.items()]
        if lengths and all(outer[-1] == span for outer, span in pairs):
            lengths[-1] *= length
            for way, stride in here.items():
                strides[way][-1] = stride
            continue
        lengths.append(length)
        for way, stride in here.items():
            strides[way].append(stride)
    return lengths, strides


def ways_of(step: PlanStep) -> list[Way]:
    """Return how a step reads each of its arrays."""
    ways = ["", "", ""]
    if step.op == "outer_products":
        ways = ["slopes", "turned" if step.params["turned"] else "rows"]
    return [(x, way) for x, way in zip(step.inputs, ways, strict=False) if type(x) is Symbol]


def contiguous(lengths: Sequence[int]) -> list[int]:
    """Return the strides of a C contiguous array."""
    return [prod(lengths[axis + 1 :]) for axis in range(len(lengths))]


def _broadcast(shape: Shape, strides: Sequence[int], whole: Shape) -> list[int]:
    """Return the strides of an array along the axes of the shape that it broadcasts to."""
    own = [0 if n == 1 else stride for n, stride in zip(shape, strides, strict=True)]
    return [0] * (len(whole) - len(shape)) + own
