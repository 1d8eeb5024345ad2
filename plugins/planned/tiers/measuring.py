"""Loops that are faster than NumPy here: each group is timed once in a process, both ways.

Both ways must give the same bits, so a decision that noise has changed costs time and nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....core.errors import BackendUnavailable
from ....core.extend import Symbol
from ..combining import Emitter
from ..lowering import Lowering
from ..steps import LoopGroup, PlanStep, bytes_of, shape_of
from ..writing import Emission
from .background import BACKGROUND

#: Groups of more bytes are not timed: a loop reads and writes each array once, which is what takes
#: the time there.
_LARGEST = 2**26
#: The number of times that each way is timed, the length of one in seconds, and the ratio from
#: which one time each is enough.
_TIMES, _SECONDS, _CLEAR = 5, 5e-5, 1.5

# WebAssembly has no clock of one thread, and one thread only
thread_time = getattr(time, "thread_time", time.perf_counter)


class LoopSource:
    """An executor's loops, and what is known of them in this process.

    Parameters
    ----------
    emitter
        A function that returns an emitter whose loops give NumPy's bits.

    Attributes
    ----------
    patience
        That of its emitters.
    reasons
        By a group's signature, why NumPy runs the group; None if its loop is faster.
    problem
        Why loops cannot be compiled in this process, if so.
    warning
        What the user has yet to hear of that.
    """

    def __init__(self, emitter: Callable[[], Emitter]) -> None:
        self.patience = emitter().patience
        self.emitter = emitter
        self.reasons: dict[Any, str | None] = {}
        self.problem: str | None = None
        self.warning: str | None = None
        self._warned = False

    def failed(self, error: BaseException) -> str:
        """Note that a plan with loops could not be made; return why."""
        told = in_words(error)
        if not self.reasons:  # no loop has ever been compiled
            self.problem = told
        if not isinstance(error, BackendUnavailable) and not self._warned:
            self._warned = True
            self.warning = (
                f"loops could not be compiled ({told}); NumPy runs compiled functions instead. "
                "GRADTAPE_EXECUTOR=planned selects that without a warning"
            )
        return told


class MeasuredLoops(Emitter):
    """Runs groups as loops where that is faster than NumPy.

    Parameters
    ----------
    source
        Where the loops come from.
    """

    def __init__(self, source: LoopSource) -> None:
        self._source = source
        self._loops = source.emitter()

    def takes(self, step: PlanStep) -> bool:
        """Return whether the emitter takes a step."""
        return self._loops.takes(step)

    def reduces(self, step: PlanStep) -> bool:
        """Return whether the emitter takes a reduction as a group of its own."""
        return self._loops.reduces(step)

    def loop(self, group: LoopGroup) -> Callable[..., Any] | None:
        """Return the emitter's loop of a group; None if it has none, or if NumPy is faster."""
        BACKGROUND.checkpoint()
        loop = self._loops.loop(group)
        if loop is None:
            return None
        key, reasons = group.signature(), self._source.reasons
        if key not in reasons:
            BACKGROUND.checkpoint()
            reasons[key] = self._measured(group)
        return loop if reasons[key] is None else None

    def reason(self, group: LoopGroup) -> str | None:
        """Return why NumPy runs a group."""
        return self._source.reasons.get(group.signature()) or self._loops.reason(group)

    def _measured(self, group: LoopGroup) -> str | None:
        """Return why NumPy should run a group; None if its loop is faster."""
        symbols = [*group.outputs, *group.inputs]
        if sum(map(bytes_of, symbols)) > _LARGEST:
            return None
        trial = _Trial(group)
        loop = self._loops.loop(trial)
        if loop is None:
            return None
        ways = GroupAlone(group).function(loop), GroupAlone(group).function()
        arrays = [_values(x, i, group.strides.get(x)) for i, x in enumerate(symbols)]
        with np.errstate(all="ignore"):
            mine, other = _times(ways, arrays)
            if not trial.left and not _agree((ways[0], group.by_numpy), arrays, len(group.outputs)):
                return "its loop does not give NumPy's bits"
        if mine <= other or trial.left:  # what it leaves to NumPy depends on the values
            return None
        return f"measured: {in_microseconds(mine)} as a loop, {in_microseconds(other)} as ufuncs"


def in_microseconds(seconds: float) -> str:
    """Return a duration as text."""
    return f"{round(seconds * 1e6, 1 if seconds < 1e-4 else None):,} µs"


def in_words(error: BaseException) -> str:
    """Return why there are no loops, in one line."""
    expected = isinstance(error, BackendUnavailable)
    told = str(error) if expected else f"{type(error).__name__}: {error}"
    return " ".join(told.split())[:300]


class _Trial(LoopGroup):
    """A group that is timed; ``left`` says whether its loop left a call to NumPy."""

    __slots__ = ("left",)

    def __init__(self, group: LoopGroup) -> None:
        for name in LoopGroup.__slots__:
            setattr(self, name, getattr(group, name))
        self.left = False

    def by_numpy(self, *arrays: Any) -> None:
        self.left = True


class GroupAlone(Emission):
    """A group as a plan of its own, ``function(*outputs, *inputs)``.

    Parameters
    ----------
    group
        The group.
    """

    def __init__(self, group: LoopGroup) -> None:
        targets = {x: f"o{i}" for i, x in enumerate(group.outputs)}
        super().__init__(_Steps(group), Emitter(), placed=targets, carried=0)

    def function(self, loop: Callable[..., Any] | None = None) -> Callable[..., list[Any]]:
        """Write and compile the function: a loop's call, by default NumPy's steps."""
        for x in self.lowered.inputs:
            self.names[x] = f"x{len(self.names)}"
        given = [self.names[x] for x in (*self.lowered.outputs, *self.lowered.inputs)]
        if loop is None:
            self.run_moments()
        else:
            self.lines.append(f"{self.bind(loop, 'loop')}({', '.join(given)})")
        self.lines.append("give(arena)")
        return self.compiled(given)


class _Steps(Lowering):
    """The steps of a group, as a program of their own."""

    def __init__(self, group: LoopGroup) -> None:
        self.steps = group.members
        self.inputs, self.outputs = list(group.inputs), list(group.outputs)
        self.known, self.reads, self.updates = {}, {}, {}


def _values(x: Symbol, seed: int, strides: Sequence[int] | None) -> Any:
    """Return an array for a value: numbers that cause no warnings in most computations."""
    shape, dtype = shape_of(x), np.dtype(x.dtype)
    array = np.empty(shape, dtype)
    if strides is not None:
        ends = [(n - 1) * stride for n, stride in zip(shape, strides, strict=True)]
        start = -sum(end for end in ends if end < 0)
        memory = np.empty(start + sum(end for end in ends if end > 0) + dtype.itemsize, np.uint8)
        array = np.ndarray(shape, dtype, memory, start, strides)
    numbers = np.random.default_rng(seed).random(shape, np.float32)
    if dtype.kind == "b":
        array[...] = numbers < 0.5
    else:
        array[...] = numbers + 0.5 if dtype.kind in "fc" else 1 + 3 * numbers
    return array


def _agree(ways: Sequence[Callable[..., Any]], arrays: Sequence[Any], count: int) -> bool:
    """Return whether both functions write the same to the first arrays: a plugin's loop may not."""
    written = []
    for run in ways:
        for x in arrays[:count]:
            x.fill(1)
        run(*arrays)
        written.append([x.tobytes() for x in arrays[:count]])
    return written[0] == written[1]


def _times(ways: Sequence[Callable[..., Any]], arrays: Sequence[Any]) -> list[float]:
    """Return the shortest time of a call of each function, in seconds.

    It is the processor time of this thread: while it waits for other threads, nothing counts.
    """
    repeats = []
    for run in ways:
        run(*arrays)
        start = thread_time()
        run(*arrays)
        repeats.append(max(1, int(_SECONDS / max(thread_time() - start, 1e-7))))
    best = [float("inf")] * len(ways)
    for _ in range(_TIMES):
        for i, run in enumerate(ways):
            BACKGROUND.checkpoint()
            start = thread_time()
            for _ in range(repeats[i]):
                run(*arrays)
            best[i] = min(best[i], (thread_time() - start) / repeats[i])
        if max(best) > _CLEAR * min(best):
            break
    return best
