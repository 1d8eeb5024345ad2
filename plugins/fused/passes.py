"""The passes of a group: loops of instructions, and between them calls of NumPy's inner loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import NamedTuple, TypeAlias

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
        strides = strided.get(x) or contiguous(shape_of(x))
        found[x, how] = _WAYS[how](*whole) if how else _broadcast(shape_of(x), strides, whole)
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
