"""Memory: how long values are needed, their arrays while a program runs, and packed variables."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ...core.extend import Symbol, has_unknown_sizes
from ..packing import FlatArrays, hold, joined
from .combining import FlatUpdate
from .steps import LoopGroup, PlanStep, Shape, StepKind, shape_of

# -- lifetimes -------------------------------------------------------------------------------------


def lifetimes(
    moments: Sequence[Any], needed: Iterable[Symbol], given: Iterable[Symbol]
) -> tuple[set[Symbol], dict[Symbol, int]]:
    """Return the values that need their own arrays, and the last moment at which each is read.

    A value that leaves the function needs its own array, and so does a value with a view that
    leaves it. A read of a view is a read of its source. A call may return a view of an argument,
    unless the op's record says otherwise; to assume one keeps its inputs for longer, and is safe.

    Parameters
    ----------
    moments
        Steps, groups and stacks, in the order in which they run.
    needed
        The values that other code holds after the last moment.
    given
        The values that are read once more after the last moment.
    """
    fresh = set(needed)
    last: dict[Symbol, int] = dict.fromkeys(given, len(moments))
    for moment in range(len(moments) - 1, -1, -1):
        item = moments[moment]
        for step in item.members:
            views = step.kind is StepKind.VIEW or (
                step.kind is StepKind.CALL and step.view is not False
            )
            until = max((last.setdefault(x, moment) for x in step.outputs), default=moment)
            for x in step.symbols:
                last[x] = max(last.get(x, moment), until if views else moment)
                if views and any(y in fresh for y in step.outputs):
                    fresh.add(x)
    return fresh, last


class ViewStrides:
    """The strides of views of arrays that are C contiguous.

    Parameters
    ----------
    steps
        The steps of a program.
    models
        Arrays with the strides of its inputs, if those may not be C contiguous.
    """

    def __init__(
        self, steps: Iterable[PlanStep], models: Mapping[Symbol, Any] | None = None
    ) -> None:
        self._views = {
            step.out: step
            for step in steps
            if step.kind is StepKind.VIEW
            and not any(has_unknown_sizes(x.shape) for x in (step.out, *step.symbols))
        }
        self._models: dict[Symbol, Any] = dict(models or {})

    def of(self, group: LoopGroup) -> dict[Symbol, Shape]:
        """Return the strides in bytes of the inputs that are not C contiguous."""
        models = ((x, self.model(x)) for x in group.inputs)
        return {x: model.strides for x, model in models if not model.flags.c_contiguous}

    def source(self, x: Symbol) -> Symbol:
        """Return the value that a value is a view of; itself if it is none."""
        while x in self._views:
            x = self._views[x].inputs[0]
        return x

    def model(self, x: Symbol) -> Any:
        """Return an array with the strides that a value will have."""
        waiting = [x]
        while waiting[-1] in self._views and waiting[-1] not in self._models:
            waiting.append(self._views[waiting[-1]].inputs[0])
        array = self._models.get(waiting[-1])
        if array is None:
            array = np.empty(shape_of(waiting[-1]), waiting[-1].dtype)  # without touching it
        for view in reversed(waiting[:-1]):
            array = self._models[view] = self._views[view].run(array)
        return array


# -- buffers and packed variables ------------------------------------------------------------------


#: The maximum number of sets of buffers that are kept for the next calls, and of their bytes.
_KEPT, _KEPT_BYTES = 4, 2**28


class Arena:
    """The buffers of a running call; each call has its own set.

    Buffers share memory if the plan says so: each is in a *slot*.
    """

    def __init__(self) -> None:
        self._slots: list[int] = []
        self._makers: list[Callable[[list[Any], list[Any]], Any]] = []
        self._numbers: dict[Any, int] = {}
        self._first: tuple[list[Any], list[Any]] = [], []
        self._free: deque[tuple[Any, ...]] = deque()

    @property
    def bytes(self) -> int:
        """The size of one set of buffers."""
        return sum(self._slots)

    @property
    def count(self) -> int:
        """The number of arrays in a set."""
        return len(self._makers)

    def slot(self, size: int) -> int:
        """Add memory of ``size`` bytes; return its number."""
        self._slots.append(size)
        return len(self._slots) - 1

    def buffer(self, slot: int, shape: Shape, dtype: np.dtype[Any]) -> int:
        """Return the number of the array at the start of a slot; make it if necessary."""

        def make(memory: list[Any], arrays: list[Any]) -> Any:
            return np.ndarray(shape, dtype, memory[slot])

        return self._number((slot, shape, dtype), make)

    def view(self, source: int, of: Callable[[Any], Any]) -> int:
        """Return the number of a view of an array; make it if necessary."""
        return self._number((source, of), lambda memory, arrays: of(arrays[source]))

    def row(self, source: int, place: int) -> int:
        """Return the number of one row of an array; make it if necessary."""
        return self._number(
            (source, "row", place), lambda memory, arrays: arrays[source][place, ...]
        )

    def _number(self, key: Any, maker: Callable[[list[Any], list[Any]], Any]) -> int:
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._makers)
            self._makers.append(maker)
        return number

    def model(self, number: int) -> Any:
        """Return an array like one of a set, including strides; its values do not matter."""
        return self._made(self._first, number + 1)[number]

    def seal(self) -> None:
        """Decide how many sets to keep, once all buffers are known; keep the first one."""
        self._free = deque(maxlen=min(_KEPT, _KEPT_BYTES // max(1, self.bytes)))
        self.give(tuple(self._made(self._first, self.count)))
        self._first = [], []

    def make(self) -> tuple[Any, ...]:
        """Return a new set of arrays."""
        return tuple(self._made(([], []), self.count))

    def _made(self, begun: tuple[list[Any], list[Any]], count: int) -> list[Any]:
        """Extend the memory and the arrays of a set to ``count`` arrays."""
        memory, arrays = begun
        memory += [np.empty(size, np.uint8) for size in self._slots[len(memory) :]]
        for maker in self._makers[len(arrays) : count]:
            arrays.append(maker(memory, arrays))
        return arrays

    def take(self) -> tuple[Any, ...]:
        """Return a set that no other call uses."""
        try:
            return self._free.pop()
        except IndexError:
            return self.make()

    def give(self, arrays: tuple[Any, ...]) -> None:
        """Keep a set for another call."""
        self._free.append(arrays)


class Packed:
    """Variables in flat arrays, of which they hold parts.

    There are two sets of flat arrays. New values are written to the set that variables do not hold.
    So other code that reads a variable meanwhile gets an old value, and nothing has changed if the
    update fails. If other code still holds a part of the set to be written, that set is abandoned
    and a new one is made.

    Attributes
    ----------
    columns
        The variables of each flat array; columns whose values the update reads come first.
    variables
        All variables, in the order of the parts.
    """

    def __init__(self, pack: FlatUpdate) -> None:
        self._bounds = pack.bounds
        self._size = pack.group.shape[0]
        known = {column[0].id: column for column in (*pack.held.values(), *pack.written.values())}
        self.columns = list(known.values())
        places = {number: k for k, number in enumerate(known)}
        self._places = [places[column[0].id] for column in pack.written.values()]
        self._reads = len(pack.held)
        self._read = [v for column in pack.held.values() for v in column]
        self.variables = [v for column in self.columns for v in column]
        self._now: FlatArrays | None = None
        self._new: FlatArrays | None = None
        self._spare: FlatArrays | None = None

    @property
    def bytes(self) -> int:
        """The size of both sets of arrays."""
        return 2 * sum(self._size * column[0].dtype.itemsize for column in self.columns)

    def begin(self) -> list[Any]:
        """Return the flat arrays to read, and those to write to."""
        now = self._now
        if now is None or not hold(self._read, now.parts):
            now = self._now = self._made([joined(column, np) for column in self.columns])
        new = self._spare
        if new is None or not new.is_alone():
            new = self._made([np.empty(self._size, c[0].dtype) for c in self.columns])
        self._new = new
        return [*now.arrays[: self._reads], *[new.arrays[k] for k in self._places]]

    @property
    def new(self) -> list[Any]:
        """The new values, as the parts of :attr:`variables`."""
        assert self._new is not None
        return self._new.parts

    def end(self) -> None:
        """Record that the variables have received the new values."""
        self._spare, self._now, self._new = self._now, self._new, None

    def _made(self, arrays: list[Any]) -> FlatArrays:
        return FlatArrays.of(self._bounds, arrays)
