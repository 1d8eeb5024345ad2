"""Plans with loops: at once if they are asked for, else when a program has run long enough."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Sequence
from functools import partial
from threading import Event, Lock, Thread
from time import perf_counter
from typing import Any
from weakref import WeakSet

from ....core.errors import BackendUnavailable
from ....core.extend import Graph, registry
from ..emitter import Emitter
from ..plan import Plan, Plans, Run, planned_by
from .compiler import compiled, unavailable
from .loops import Loops

__all__ = ["Warming", "fused"]

#: Loops are compiled for a program that has run for so many seconds in so many calls.
_SECONDS, _CALLS = 0.1, 3


def fused(graph: Graph) -> Run:
    """Return what runs ``graph`` on NumPy with loops that numba compiles at the first call.

    Functions such as ``sin`` are in loops over few elements, and may differ from NumPy's in the
    last place.

    Parameters
    ----------
    graph
        A graph as it was traced.

    Raises
    ------
    BackendUnavailable
        If numba is missing, with what to install.
    """
    reason = unavailable()
    if reason is not None:
        raise BackendUnavailable(f"executor 'fused': {reason}")
    return planned_by(graph, Loops(compiled, inline=True))


class Warming(Plans):
    """What runs a program as planned, and with loops once a thread has compiled them.

    It does so when a plan has run for some time. Loops compute the same bits as NumPy, so nothing
    depends on when they are ready.

    Parameters
    ----------
    program
        The graph, as ``forward_only`` gives it.
    """

    def __init__(self, program: Graph) -> None:
        super().__init__(program, Emitter())
        self._failure: Exception | None = None

    def plan(self, key: Any, arrays: Sequence[Any]) -> Plan:
        """Return a plan that is timed until loops are worth their compilation."""
        function, emission = super().plan(key, arrays)
        if unavailable() is not None:
            return function, emission
        witnesses = list(map(registry().host_backend.shape_witness, arrays))
        seconds, calls, at_work = 0.0, 0, False

        def timed(*arrays: Any) -> list[Any]:
            nonlocal seconds, calls, at_work
            if at_work:
                return function(*arrays)
            start = perf_counter()
            results = function(*arrays)
            seconds += perf_counter() - start
            calls += 1
            if seconds > _SECONDS and calls >= _CALLS:
                at_work = True  # for good, whatever comes of it
                _in_background(partial(self._fuse, key, witnesses))
            return results

        return timed, emission

    def _fuse(self, key: Any, arrays: Sequence[Any]) -> None:
        try:
            found = self.plan_by(Loops(_unless_closing), arrays)
        except Exception as error:  # the plan without loops is as right
            self._failure = error
        else:
            if found[1].loops:
                self._plans[key] = found

    def explain(self) -> str:
        """Say how the program runs."""
        told = super().explain()
        if self._failure is not None:
            told += f"\n  loops could not be compiled: {self._failure}"
        return told


_one_at_a_time = Lock()
_threads: WeakSet[Thread] = WeakSet()
_closing = Event()


def _in_background(job: Callable[[], None]) -> None:
    def run() -> None:
        with _one_at_a_time:
            if not _closing.is_set():
                job()

    thread = Thread(target=run, name="gradtape loops", daemon=True)
    _threads.add(thread)
    thread.start()


def _unless_closing(source: str) -> Callable[..., int]:
    if _closing.is_set():
        raise RuntimeError("the interpreter is closing")
    return compiled(source)


@atexit.register
def _close() -> None:
    """Wait for the loop that is being compiled: the compiler is not to be stopped in the midst."""
    _closing.set()
    for thread in list(_threads):
        thread.join()
