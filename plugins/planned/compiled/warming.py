"""Plans with loops: at once if they are asked for, else when a program has run long enough."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

from ....core.errors import BackendUnavailable
from ....core.extend import Graph, registry
from ..emitter import Emitter
from ..plan import Plan, Plans, Run, planned_by
from .compiler import compiled, in_another_process, unavailable
from .loops import Loops

__all__ = ["Warming", "fused"]

#: Loops are compiled for a plan that has run for so many seconds: it takes about as long.
_SECONDS = 1.0
#: After how many calls it asks again whether they are compiled.
_PATIENCE = 16


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
    """What runs a program as planned, and with loops once another process has compiled them.

    It does so when a plan has run for some time. Loops compute the same bits as NumPy, so nothing
    depends on when they are ready. A thread of this process would not do: the compiler is Python
    code, and holds up whoever computes meanwhile.

    Parameters
    ----------
    program
        The graph, as ``forward_only`` gives it.
    """

    def __init__(self, program: Graph) -> None:
        super().__init__(program, Emitter())
        self._told = unavailable() or f"loops are compiled when a plan has run for {_SECONDS:g} s"

    def plan(self, key: Any, arrays: Sequence[Any]) -> Plan:
        """Return a plan that is timed until loops are worth their compilation."""
        function, emission = super().plan(key, arrays)
        if unavailable() is not None or emission is None:
            return function, emission
        witnesses = list(map(registry().host_backend.shape_witness, arrays))
        seconds, waits = 0.0, 0
        ready: Callable[[], bool] | None = None

        def timed(*arrays: Any) -> list[Any]:
            nonlocal seconds, waits, ready
            if ready is None:
                start = perf_counter()
                results = function(*arrays)
                seconds += perf_counter() - start
                if seconds > _SECONDS:
                    ready = self._compile(witnesses)
                return results
            waits += 1
            if waits % _PATIENCE == 0 and ready():
                self._fuse(key, witnesses, function, emission)
            return function(*arrays)

        return timed, emission

    def _compile(self, arrays: Sequence[Any]) -> Callable[[], bool]:
        """Let another process compile the loops; return what says whether it has."""
        sources: list[str] = []

        def noted(source: str) -> Callable[..., int]:
            sources.append(source)
            return lambda *arrays: 0

        self.plan_by(Loops(noted), arrays)
        self._told = "loops are being compiled"
        try:
            return in_another_process(sources)
        except OSError as error:
            self._told = f"loops could not be compiled: {error}"
            return lambda: False

    def _fuse(self, key: Any, arrays: Sequence[Any], function: Any, emission: Any) -> None:
        """Replace a plan by one with loops, or by itself untimed if that cannot be."""
        try:
            self._plans[key] = self.plan_by(Loops(compiled), arrays)
            self._told = ""
        except Exception as error:  # the plan without loops is as right
            self._plans[key] = function, emission
            self._told = f"loops could not be compiled: {error}"

    def explain(self) -> str:
        """Say how the program runs."""
        told = super().explain()
        return f"{told}\n  {self._told}" if self._told and self._plans else told
