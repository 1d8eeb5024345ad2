"""Parts of steps that threads compute at once: ranges of rows of large arrays.

The lines of a part become a function, which the plan calls once or, if it pays, once for each
thread. An element's value does not depend on the part that it is in: elementwise steps are cut
where NumPy's vectors begin, and reductions into rows that stay. Sums over the first axis are not
cut into columns, because NumPy adds whole rows faster.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import gcd, prod
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from ....core.extend import Symbol, in_parallel, parts, pays
from ..steps import PlanStep, Shape, StepKind, bytes_of, shape_of

if TYPE_CHECKING:
    from .emission import Emission

#: NumPy's vectors begin at multiples of this number of elements, and so do lines of the cache.
ALIGNED = 64
#: A step is timed if it reads and writes this number of bytes, on arrays of so many elements.
_TIMED, _SAMPLE = 2**18, 2**12


class SharedLines:
    """Lines of a plan that run for a range of positions, or for several ranges at once.

    Parameters
    ----------
    length, work, multiple, most
        As for :func:`~core.base.pool.parts`.

    Attributes
    ----------
    run
        The function of the lines: of the number of the part, its bounds, and the plan's arrays.
    """

    run: Callable[..., None]

    def __init__(self, length: int, work: int, multiple: int, most: int | None = None) -> None:
        self._cut = length, work, multiple, most

    def __call__(self, *arrays: Any) -> None:
        """Run the lines for all positions."""
        pieces = parts(*self._cut)
        if len(pieces) == 1 or not self.can_share(arrays):
            self.run(0, 0, self._cut[0], *arrays)
            return
        numbers = {a: i for i, (a, _) in enumerate(pieces)}
        run = self.run
        in_parallel(lambda a, z: run(numbers[a], a, z, *arrays), pieces)

    def can_share(self, arrays: Sequence[Any]) -> bool:
        """Return whether parts of these arrays can be computed in any order."""
        return True


class _SharedReduction(SharedLines):
    """A reduction. NumPy adds in the order of memory, which may depend on the parts."""

    def can_share(self, arrays: Sequence[Any]) -> bool:
        """Return whether all arrays are C contiguous: then the order is the same."""
        return all(x.flags.c_contiguous for x in arrays)


class _SharedStep(SharedLines):
    """An elementwise step, whose result is the first array."""

    def can_share(self, arrays: Sequence[Any]) -> bool:
        """Return whether the result overlaps with no input at other positions: ``x + x.T``."""
        out, *given = arrays
        return not any(np.may_share_memory(x, out) and not _same_memory(x, out) for x in given)


def _same_memory(x: Any, y: Any) -> bool:
    memory, other = x.__array_interface__["data"], y.__array_interface__["data"]
    return bool(memory[0] == other[0] and x.strides == y.strides and x.shape == y.shape)


class PartWriter:
    """The lines of one part, which call the arrays of a plan by names of their own.

    Parameters
    ----------
    emission
        The emission that is being written.
    inline
        Whether there is only one part, and its lines become lines of the plan.

    Attributes
    ----------
    head, body
        The lines; ``first`` and ``last`` are the bounds of the part, and ``part`` is its number.
    """

    def __init__(self, emission: Emission, inline: bool = False) -> None:
        self.emission = emission
        self.inline = inline
        self._given: dict[str, str] = {}
        self.head: list[str] = []
        self.body: list[str] = []

    def name(self, array: str) -> str:
        """Return the part's name for what a plan writes as ``array``."""
        if self.inline or array in self.emission.scope:
            return array
        return self._given.setdefault(array, f"p{len(self._given)}")

    def close(self, shared: SharedLines) -> None:
        """Add the function to the plan, and the line that calls it."""
        emission = self.emission
        name = emission.bind(shared, "shared")
        parameters = ", ".join(["part", "first", "last", *self._given.values()])
        head = f"def {name}_run({parameters}):"
        emission.functions.append("\n    ".join([head, *self.head, *self.body]))
        emission.functions.append(f"{name}.run = {name}_run")
        emission.lines.append(f"{name}({', '.join(self._given)})")


class _SharedSum:
    """The sum of all elements of an array, with the bits of ``add.reduce``.

    NumPy sums contiguous floats in pairs: the sum of an array is that of its first half, whose size
    is a multiple of 8, plus that of its second half, down to 128 elements. Halves of halves can be
    summed at once.

    Parameters
    ----------
    work
        As for :func:`~core.base.pool.parts`.
    """

    def __init__(self, work: int) -> None:
        self._work = work

    def __call__(self, x: Any) -> Any:
        """Return the sum."""
        add_reduce: Callable[..., Any] = np.add.reduce  # whose stubs know no array for a number
        count = len(parts(x.size, self._work, 256))
        if count == 1 or not x.flags.c_contiguous:
            return add_reduce(x, None)
        bounds = [0, x.size]
        while len(bounds) <= count:
            halves = [a + (z - a) // 16 * 8 for a, z in pairwise(bounds)]
            bounds = sorted([*bounds, *halves])
        flat, sums = x.reshape(-1), np.empty(len(bounds) - 1, x.dtype)

        def run(first: int, last: int) -> None:
            add_reduce(flat[bounds[first] : bounds[last]], None, None, sums[first, ...])

        in_parallel(run, list(pairwise(range(len(bounds)))))
        while len(sums) > 1:
            sums = add_reduce(sums.reshape(-1, 2), 1)
        return sums[0]


def aligned_rows(shape: Shape) -> int:
    """Return the least number of rows after which elements are aligned."""
    return ALIGNED // gcd(ALIGNED, prod(shape[1:]))


def call_into(step: PlanStep, call: str, target: str) -> str:
    """Return a call, written up to its last argument, with its output array added."""
    # NumPy requires the keyword for these two, and takes longer to parse it
    named = step.kind is StepKind.KERNEL or step.op in ("maximum", "minimum")
    return f"{call}, {'out=' if named else ''}{target})"


def work_of(steps: Sequence[PlanStep]) -> int:
    """Return the work of steps, for :func:`~core.base.pool.parts`."""
    return int(sum(_bytes_of(step) * _weight_of(step) for step in steps))


def _bytes_of(step: PlanStep) -> int:
    """Return the bytes that a step reads and writes."""
    return sum(map(bytes_of, (*step.symbols, *step.outputs)))


def _weight_of(step: PlanStep) -> float:
    """Return how many times longer than a sum of as many bytes a step takes, by timing both."""
    size = _bytes_of(step)
    if size < _TIMED:
        return 1.0
    shape: Shape = (_SAMPLE,)
    if step.kind is StepKind.REDUCTION:
        shape = (max(1, _SAMPLE // prod(step.space[1:])), *step.space[1:])
    given = step.arguments(lambda x: np.ones(shape, x.dtype))
    summed = np.ones(max(1, prod(shape) * size // (12 * prod(step.space))), np.float32)
    try:
        with np.errstate(all="ignore"):
            if step.kind is StepKind.REDUCTION:
                taken = _seconds(lambda: step.run(*given, step.params["axis"]))
            elif step.kind is StepKind.ELEMENTWISE:
                out = np.empty(shape, step.out.dtype)
                taken = _seconds(lambda: step.run(*given, out=out))
            else:
                return 1.0
    except Exception:  # the step itself says why
        return 1.0
    return max(1.0, taken / _seconds(lambda: np.add(summed, summed, out=summed)))


def _seconds(function: Callable[[], Any]) -> float:
    """Return the least time that a function takes, of several runs."""
    times = [perf_counter()]
    for _ in range(4):
        function()
        times.append(perf_counter())
    return min(b - a for a, b in pairwise(times))


def write_shared(emission: Emission, step: PlanStep, target: str | None) -> bool:
    """Write an elementwise step or a reduction in parts; return False if that cannot pay.

    Parameters
    ----------
    emission
        The emission that is being written.
    step
        The step.
    target
        The array to which it writes; None for a new one.
    """
    if step.kind not in (StepKind.ELEMENTWISE, StepKind.REDUCTION):
        return False
    work = work_of([step])
    if not pays(work):
        return False
    if _sums_all(step):
        name = emission.bind(_SharedSum(work), "shared")
        result = f"{name}({emission.name(step.inputs[0])})"
        if target is None and not shape_of(step.out):
            emission.lines.append(f"{emission.name(step.out)} = {result}")
            return True
        emission.lines.append(f"{_array_for(emission, step, target)}[...] = {result}")
        return True
    multiple = _multiple(step)
    if multiple is None:
        return False
    lines = PartWriter(emission)
    out = lines.name(_array_for(emission, step, target))  # the first array
    place = "[first:last]"

    def here(x: Symbol) -> str:
        return lines.name(emission.name(x)) + (place if _has_rows(step, x) else "")

    given = step.arguments(here, emission.bind_scalar)
    call = f"{emission.bind(emission.quickest(step), 'k')}({', '.join(given)}"
    kind: type[SharedLines]
    if step.kind is StepKind.REDUCTION:
        kind, params = _SharedReduction, step.params
        call += f", {params['axis']!r}, None, {out}{place}, {params['keepdims']})"
    else:
        kind, call = _SharedStep, call_into(step, call, out + place)
    lines.body.append(call)
    lines.close(kind(step.space[0], work, multiple))
    return True


def _array_for(emission: Emission, step: PlanStep, target: str | None) -> str:
    """Return the name of the array for a step's result; add the line that makes it if necessary."""
    if target is None:
        target = emission.name(step.out)
        emission.lines.append(f"{target} = {emission.empty(step.out)}")
    return target


def _sums_all(step: PlanStep) -> bool:
    """Return whether a step sums all elements of an array, in NumPy's pairs."""
    x = step.inputs[0]
    if step.run != np.add.reduce or not step.space or x.dtype != step.out.dtype:
        return False
    # NumPy sums float16 in float32 and rounds once
    return x.dtype.char in "fd" and bytes_of(step.out) == x.dtype.itemsize


def _multiple(step: PlanStep) -> int | None:
    """Return a divisor of the numbers of rows of parts; None if there can be only one part."""
    space = step.space
    if not space:
        return None
    found = aligned_rows(space)
    if step.kind is StepKind.REDUCTION:
        axis = step.params["axis"]
        axes = range(len(space)) if axis is None else [axis] if isinstance(axis, int) else axis
        if any(a % len(space) == 0 for a in axes):
            return None
        # a single row would be summed in another order
        found = max(2, ALIGNED // max(1, bytes_of(step.out) // space[0]))
    return found if space[0] >= 2 * found else None


def _has_rows(step: PlanStep, x: Symbol) -> bool:
    """Return whether an input has the rows of a step, and does not broadcast along them."""
    shape, space = shape_of(x), step.space
    return len(shape) == len(space) and shape[0] == space[0]
