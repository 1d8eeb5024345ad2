"""Records every kernel, rule, graph and step while a profile's block runs, as events.

An event has its place in the user's program: a line, and the layers around it.
"""

from __future__ import annotations

import sys
import threading
import tracemalloc
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from time import perf_counter_ns
from types import FrameType
from typing import Any

from ..core.extend import (
    Backend,
    Stopwatch,
    Tensor,
    Watcher,
    backend_of,
    next_id,
    reporting_steps,
    watching,
)
from .places import Place, Places

#: How often the cost of recording is measured, on so many steps each time.
_TRIALS, _STEPS = 5, 16


class Event:
    """A kernel, gradient rule, graph or step that ran.

    Attributes
    ----------
    name
        The name of an op, of a step of a plan, of a function or of a stage.
    kind
        ``"kernel"`` or ``"rule"`` of an op, ``"graph"``, ``"step"`` of a graph or the program, or
        ``"excluded"`` for work that is done only because of the profile.
    phase
        ``"forward"``, ``"backward"``, ``"compiled"`` or ``"other"``.
    place
        The source line and the layers.
    parent
        The enclosing event.
    seconds, inner
        The event's duration, and the total duration of the recorded events inside it.
    noting
        The nanoseconds spent on recording it and the events inside it.
    bytes, peak
        The size of its results, and the peak of host memory above the level at its start, if
        measured.
    """

    __slots__ = (
        "before",
        "began",
        "bytes",
        "inner",
        "kind",
        "name",
        "noting",
        "parent",
        "peak",
        "phase",
        "place",
        "seconds",
        "start",
        "stop",
        "thread",
        "watch",
    )

    def __init__(
        self, name: str, kind: str, phase: str, place: Place, parent: Event | None, watch: Any
    ) -> None:
        self.name, self.kind, self.phase, self.place = name, kind, phase, place
        self.parent, self.watch = parent, watch
        self.thread = self.bytes = self.peak = self.began = self.before = 0
        self.noting = 0
        self.seconds = self.inner = 0.0
        self.start: Any = None
        self.stop: Any = None

    @property
    def own(self) -> float:
        """The seconds without the events inside it."""
        return max(0.0, self.seconds - self.inner)

    @property
    def around(self) -> Iterator[Event]:
        """The enclosing events, the innermost first."""
        event = self.parent
        while event is not None:
            yield event
            event = event.parent

    def within(self, kind: str) -> bool:
        """Return whether it, or an event around it, is of a kind."""
        return self.kind == kind or any(event.kind == kind for event in self.around)


class Recorder(Watcher):
    """Records the events of a block.

    Parameters
    ----------
    memory
        Whether to measure the peak of host memory too, with ``tracemalloc``.
    limit
        The maximum number of events to keep. Further events are only counted.

    Attributes
    ----------
    events
        The events, in the order of their starts.
    seconds
        The duration of the block.
    clocks
        The names of the clocks that measured.
    dropped
        The number of events beyond the limit.
    """

    def __init__(self, memory: bool, limit: int) -> None:
        self.events: list[Event] = []
        self.seconds = 0.0
        self.clocks: set[str] = set()
        self.dropped = 0
        self._memory = memory
        self._limit = limit
        self._host = Stopwatch()
        self._watches: dict[int, Stopwatch] = {}
        self._by_type: dict[type, Stopwatch] = {}
        self._local = threading.local()
        self._rules: dict[Any, Callable[..., Any]] = {}
        # the kernels that made tensors, found by the tensors' ids, which increase with time
        self._marks: list[int] = []
        self._made: list[Event] = []
        #: What recording an event costs, in nanoseconds: within its time, and around it.
        self._costs = (0, 0)
        self._open = False
        self._stack: ExitStack | None = None

    # -- the block -----------------------------------------------------------------------------

    def open(self, outermost: FrameType) -> None:
        """Begin the block in a frame."""
        if self._stack is not None:
            raise RuntimeError(
                "this profile has already been used; create another one with gradtape.profile()"
            )
        self._places = Places(outermost)
        with ExitStack() as stack:
            if self._memory and not tracemalloc.is_tracing():
                tracemalloc.start()
                stack.callback(tracemalloc.stop)
            self._costs = _costs(self._memory)
            stack.enter_context(watching(self))
            stack.enter_context(reporting_steps())
            self._stack = stack.pop_all()
        self._open = True
        self._began = perf_counter_ns()

    def close(self) -> None:
        """End the block: wait for devices and read their clocks."""
        assert self._stack is not None
        self._open, self.over = False, True
        try:
            for watch in self._watches.values():
                watch.settle()  # once, at the end: no step waits for a device
            self.seconds = (perf_counter_ns() - self._began) / 1e9
            self._measure()
        finally:
            self._stack.close()
            self._places.forget()
            self._marks.clear()
            self._made.clear()
            self._rules.clear()
            self._by_type.clear()

    def _measure(self) -> None:
        """Read the durations of events from the clocks, and release the clocks' objects."""
        ended = [event for event in self.events if event.stop is not None]
        for event in ended:
            event.seconds = event.watch.seconds(event.start, event.stop)
            if event.watch.clock == self._host.clock:
                event.seconds = max(0.0, event.seconds - event.noting / 1e9)
            if event.parent is not None:
                event.parent.inner += event.seconds
            self.clocks.add(event.watch.clock)
        for event in ended:
            event.start = event.stop = event.watch = None
        self.events = [event for event in ended if not event.within("excluded")]

    # -- what runs -------------------------------------------------------------------------------

    def kernel(
        self,
        name: str,
        backend: Backend,
        kernel: Callable[..., Any],
        arrays: Sequence[Any],
        params: dict[str, Any],
    ) -> Any:
        """Run a kernel and record it."""
        if not self._open:
            return kernel(*arrays, **params)
        with self._noting(name, "kernel", self._watch_of(backend)) as event:
            result = kernel(*arrays, **params)
            self._end(event, result)
        event.bytes = _bytes_of(result)
        # tensors made of the result get ids from here up to the mark of the next kernel
        self._marks.append(next_id())
        self._made.append(event)
        return result

    @contextmanager
    def backward(self) -> Iterator[None]:
        """Record the events in a ``with`` block as a backward pass."""
        local = self._local
        before = getattr(local, "phase", "forward")
        local.phase = "backward"
        try:
            yield
        finally:
            local.phase = before

    def rule(self, output: int, name: str, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Return a gradient rule that is recorded under the line and layer of its op."""
        if not output and (name, rule) in self._rules:
            return self._rules[name, rule]

        def run(g: Any, *rest: Any, **keywords: Any) -> Any:
            if not self._open:
                return rule(g, *rest, **keywords)
            maker = self._maker(output)
            place = None if maker is None else maker.place
            with self._noting(name, "rule", self._watch_for(g), place) as event:
                result = rule(g, *rest, **keywords)
                self._end(event, result)
            event.bytes = _bytes_of(result)
            return result

        if not output:
            self._rules[name, rule] = run
        return run

    def graph(
        self,
        name: str,
        executor: str,
        run: Callable[[Sequence[Any]], list[Any]],
        arrays: Sequence[Any],
    ) -> list[Any]:
        """Run a compiled graph and record it."""
        if not self._open:
            return run(arrays)
        before = getattr(self._local, "phase", "forward")
        self._local.phase = "compiled"
        try:
            watch = self._watch_for(arrays)
            with self._noting(f"{name} ({executor})", "graph", watch) as event:
                result = run(arrays)
                self._end(event, result)
            event.bytes = _bytes_of(result)
        finally:
            self._local.phase = before
        return result

    @contextmanager
    def excluded(self) -> Iterator[None]:
        """Leave what runs in a ``with`` block out of the events."""
        if not self._open:
            yield
            return
        with self._noting("the profile", "excluded", self._host) as event:
            yield
            self._end(event, None)

    def begin(self, name: str, like: Any = None, nbytes: int = 0, planned: bool = True) -> None:
        """Record the start of a step."""
        if self._open:
            event = self._begin(name, "step", self._watch_for(like))
            event.bytes = nbytes
            event.phase = "compiled" if planned and event.phase == "compiled" else "other"

    def end(self) -> None:
        """Record the end of a step."""
        event = self._current()
        if self._open and event is not None:
            self._end(event, None)
            self._local.event = event.parent

    # -- events --------------------------------------------------------------------------------

    def _current(self) -> Event | None:
        found: Event | None = getattr(self._local, "event", None)
        return found

    @contextmanager
    def _noting(
        self, name: str, kind: str, watch: Stopwatch, place: Place | None = None
    ) -> Iterator[Event]:
        """Record an event; events inside it that an error interrupted end with it."""
        event = self._begin(name, kind, watch, place)
        try:
            yield event
        finally:
            last = self._current()
            while last is not None and last is not event.parent:
                if last.stop is None:
                    self._end(last, None)
                last = last.parent
            self._local.event = event.parent

    def _begin(self, name: str, kind: str, watch: Stopwatch, place: Place | None = None) -> Event:
        entered = perf_counter_ns()
        parent = self._current()
        if place is None:
            inside = parent is not None and (parent.kind == "rule" or parent.phase == "compiled")
            place = parent.place if parent is not None and inside else self._places.here()
        phase = getattr(self._local, "phase", "forward")
        event = Event(name, kind, phase, place, parent, watch)
        event.thread = threading.get_ident()
        if len(self.events) < self._limit:
            self.events.append(event)
        else:
            self.dropped += 1
        self._local.event = event
        if self._memory:
            self._look_at_memory(parent)
            event.before, _ = tracemalloc.get_traced_memory()
        event.start = watch.start(name)
        event.noting, around = self._costs
        now = perf_counter_ns()
        event.began = now - self._began
        if parent is not None:
            parent.noting += now - entered + around
        return event

    def _end(self, event: Event, result: Any) -> None:
        event.stop = event.watch.stop(result)
        left, parent = perf_counter_ns(), event.parent
        if self._memory:
            self._look_at_memory(event)
            if parent is not None:
                parent.peak = max(parent.peak, event.peak)
            event.peak = max(0, event.peak - event.before)
        if parent is not None:
            parent.noting += event.noting + perf_counter_ns() - left

    def _look_at_memory(self, event: Event | None) -> None:
        """Assign the peak of host memory since the last measurement to an event."""
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        if event is not None:
            event.peak = max(event.peak, peak)

    def _maker(self, output: int) -> Event | None:
        """Return the event that made a tensor."""
        place = bisect_left(self._marks, output) - 1
        return self._made[place] if output and place >= 0 else None

    # -- clocks ----------------------------------------------------------------------------------

    def _watch_of(self, backend: Backend) -> Stopwatch:
        found = self._watches.get(id(backend))
        if found is None:
            found = self._watches[id(backend)] = backend.stopwatch()
        return found

    def _watch_for(self, like: Any) -> Stopwatch:
        """Return the clock of the backend of an array; the host's clock if there is no array."""
        while type(like) in (list, tuple, Tensor):
            if type(like) is Tensor:
                like = like.array
            else:
                like = next((x for x in like if x is not None), None)
        found = self._by_type.get(type(like))
        if found is None:
            try:
                found = self._watch_of(backend_of(like))
            except TypeError:  # an array of a trace or batch, or not an array
                found = self._host
            self._by_type[type(like)] = found
        return found


def _costs(memory: bool) -> tuple[int, int]:
    """Return what recording a step costs that its clock cannot see, in nanoseconds.

    Returns
    -------
    tuple of int
        What an empty step takes, and what a step takes from the one around it besides.
    """
    trial = Recorder(memory, 2 * _TRIALS)
    trial._places = Places(sys._getframe())
    trial._began, trial._open = perf_counter_ns(), True
    inside, around = [], []
    for _ in range(_TRIALS):
        with trial._noting("", "graph", trial._host) as whole:
            for _ in range(_STEPS):
                trial.begin("")
                trial.end()
            trial._end(whole, None)
        steps = [event.stop - event.start for event in trial.events[-_STEPS:]]
        inside.append(sorted(steps)[_STEPS // 2])
        around.append((whole.stop - whole.start - whole.noting - sum(steps)) // _STEPS)
        trial.events.clear()
    return min(inside), max(0, min(around))


def _bytes_of(result: Any) -> int:
    """Return the bytes of an array, or of all arrays in a list."""
    if type(result) in (list, tuple):
        return sum(map(_bytes_of, result))
    if type(result) is Tensor:
        result = result.array
    size = getattr(result, "nbytes", 0)
    return size if type(size) is int else 0
