"""Plans with loops: at once if they are asked for, else when a program has run long enough."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Sequence
from functools import partial
from threading import Event, Lock, Thread
from time import perf_counter
from typing import Any
from weakref import WeakSet

from ...core.errors import BackendUnavailable
from ...core.extend import Graph, registry
from .compiler import compiled, unavailable
from .loops import Loops
from .plan import Run, compile_program, planned_by

__all__ = ["fused", "warming"]

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
    return planned_by(graph, lambda: Loops(compiled, inline=True))


def warming(program: Graph, arrays: Sequence[Any]) -> Run | None:
    """Return what runs a program as planned, with loops once another thread has compiled them.

    Loops compute the same bits as NumPy, so nothing depends on when that is.

    Parameters
    ----------
    program
        The graph, as ``forward_only`` gives it.
    arrays
        The arrays of the first call.
    """
    run = compile_program(program, arrays)
    return run if run is None or unavailable() is not None else _Warming(program, run)


class _Warming:
    """A program that is timed until loops are worth their compilation, which a thread then does.

    Parameters
    ----------
    program
        The graph, as ``forward_only`` gives it.
    run
        What runs it meanwhile.
    """

    def __init__(self, program: Graph, run: Run) -> None:
        self._program = program
        self._now = self._planned = run
        self._seconds, self._calls = 0.0, 0
        self._at_work = False
        self._failure: Exception | None = None

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        """Run the program as it can be run by now."""
        if self._now is not self._planned or self._at_work:
            return self._now(arrays)
        start = perf_counter()
        results = self._planned(arrays)
        self._seconds += perf_counter() - start
        self._calls += 1
        if self._seconds > _SECONDS and self._calls >= _CALLS:
            self._at_work = True  # for good, whatever comes of it
            host = registry().host_backend
            _in_background(partial(self._fuse, list(map(host.shape_witness, arrays))))
        return results

    def _fuse(self, arrays: Sequence[Any]) -> None:
        try:
            found = compile_program(self._program, arrays, Loops(_unless_closing))
        except Exception as error:  # the plan without loops is as right
            self._failure = error
        else:
            self._now = found or self._planned

    def explain(self) -> str:
        """Return how the program runs, and when it will run otherwise."""
        if self._failure is not None:
            told = f"loops could not be compiled ({self._failure})"
        elif self._now is not self._planned:
            told = "with loops"
        elif self._at_work:
            told = "loops are being compiled"
        else:
            told = f"loops are compiled once it has run for {_SECONDS} s"
        return f"{told}\n{self._now.explain()}"


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
