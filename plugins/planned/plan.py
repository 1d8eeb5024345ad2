"""Plans: what runs a program on NumPy, and what it says of itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import RLock
from typing import Any

from ...core.extend import Backend, Graph, by_backend, registry
from .emission import Emission, Emitter
from .lowering import Lowering

__all__ = ["Run", "compile_program", "planned", "planned_by"]

Run = Callable[[Sequence[Any]], list[Any]]


def planned(graph: Graph) -> Run:
    """Return what runs ``graph`` on NumPy as planned; on other backends, node by node.

    Parameters
    ----------
    graph
        A graph as it was traced.
    """
    return planned_by(graph, Emitter)


def planned_by(graph: Graph, emitter: Callable[[], Emitter]) -> Run:
    """Return what runs ``graph`` on NumPy as planned, with groups run by an emitter."""

    def compiler(program: Graph, owner: Backend, arrays: Sequence[Any]) -> Run | None:
        if owner is not registry().host_backend:
            return None
        return compile_program(program, arrays, emitter())

    return by_backend(graph, compiler)


def compile_program(
    program: Graph, arrays: Sequence[Any], emitter: Emitter | None = None
) -> Run | None:
    """Return what runs a program on NumPy's arrays.

    Parameters
    ----------
    program
        The graph, as ``forward_only`` gives it.
    arrays
        The arrays of the first call.
    emitter
        Who runs groups as loops; NumPy's ufuncs by default.
    """
    lowered = Lowering(program, registry().host_backend, arrays)
    emission = Emission(lowered, emitter or Emitter())
    function = emission.function()
    alone = RLock()

    def run(arrays: Sequence[Any]) -> list[Any]:
        if not emission.packs:
            return function(*arrays)
        with alone:
            return function(*arrays)

    run.emission = emission
    run.explain = lambda: "\n".join(f"loop: {g}" for g in emission.loops)
    return run
