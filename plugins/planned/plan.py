"""Plans: functions that run a program on NumPy, for the shapes of its inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from threading import RLock
from typing import Any, TypeAlias

from ...core.extend import (
    Backend,
    Graph,
    by_backend,
    compiling,
    joined_pulls,
    node_by_node,
    registry,
    stage,
    unsure,
)
from .emission import Emission
from .grouping import Emitter
from .looping import write_loop
from .lowering import Lowering
from .memory import Packed
from .report import report
from .tracing import at_sizes

Run: TypeAlias = Callable[[Sequence[Any]], list[Any]]
#: A function that runs a program on arrays of certain shapes, and its emission.
Plan: TypeAlias = tuple[Callable[..., list[Any]], Emission | None]

#: The maximum number of input shapes that are planned for; with others, each node is a call.
_SHAPES = 16


def planned(graph: Graph) -> Run:
    """Return a function that runs ``graph`` by plans on NumPy, and node by node elsewhere.

    Parameters
    ----------
    graph
        A traced graph.
    """
    return planned_by(graph, Emitter())


def planned_by(graph: Graph, emitter: Emitter) -> Run:
    """Return a function that runs ``graph`` by plans on NumPy, with groups run by an emitter."""

    def compiler(program: Graph, owner: Backend, arrays: Sequence[Any]) -> Run | None:
        return Plans(program, emitter) if owner is registry().host_backend else None

    return by_backend(graph, compiler)


class Plans:
    """Runs one program on NumPy arrays: by plans, which depend on the shapes of its inputs.

    Parameters
    ----------
    program
        The graph, as returned by ``forward_only``.
    emitter
        Runs groups as loops; by default, NumPy runs all groups.
    """

    def __init__(self, program: Graph, emitter: Emitter | None = None) -> None:
        self.program = program
        self.emitter = emitter or Emitter()
        self._plans: dict[Any, Plan] = {}
        self._telling: dict[Any, Plan] = {}
        self._others: Run | None = None
        self._memory: dict[Any, Packed] = {}
        # two calls at once would write to the same packs
        self._alone = RLock() if program.updates else None

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        """Run the program."""
        # vmap runs a graph on larger arrays than it was traced for
        key = tuple([(x.shape, x.dtype) for x in arrays])
        found = self._plans.get(key)
        if found is None:
            if len(self._plans) >= _SHAPES or not self._is_typed(arrays):
                return self._by_nodes(arrays)
            found = self._plans[key] = self._plan(arrays)
        if self._alone is None:
            return found[0](*arrays)
        with self._alone:
            return found[0](*arrays)

    def watched(self, arrays: Sequence[Any]) -> list[Any]:
        """Run the program by plans that report their steps to watchers."""
        key = tuple([(x.shape, x.dtype) for x in arrays])
        if key not in self._plans:
            return self(arrays)  # the first call plans, and is reported as a whole
        if key not in self._telling:
            with stage("(planning once more, to be watched)"):
                self._telling[key] = self._plan(arrays, telling=True)
        with self._alone or nullcontext():
            return self._telling[key][0](*arrays)

    def _plan(self, arrays: Sequence[Any], telling: bool = False) -> Plan:
        """Return a plan for arrays of these shapes."""
        program = self.program
        pairs = zip(program.inputs, arrays, strict=True)
        if any(unsure(x.shape) or x.shape != array.shape for x, array in pairs):
            try:
                program = joined_pulls(at_sizes(program, arrays))
            except Exception:  # if a shape rule refuses, the kernel gives a better message
                return (lambda *arrays: self._by_nodes(arrays)), None
        with compiling():
            lowered = Lowering(program, registry().host_backend, arrays)
            emission = Emission(lowered, self.emitter, self._memory, telling, write_loop)
            return emission.function(), emission

    def _is_typed(self, arrays: Sequence[Any]) -> bool:
        """Return whether arrays have the dtypes of the trace."""
        pairs = zip(self.program.inputs, arrays, strict=True)
        return all(x.dtype == array.dtype for x, array in pairs)

    def _by_nodes(self, arrays: Sequence[Any]) -> list[Any]:
        if self._others is None:
            self._others = node_by_node(self.program, registry().host_backend, arrays)
        return self._others(arrays)

    def explain(self) -> str:
        """Return a description of how the program runs."""
        plans = list(self._plans.items())
        shaped = [([shape for shape, _ in key], plan[1]) for key, plan in plans]
        parts = [report(self.program, shapes, plan) for shapes, plan in shaped if plan is not None]
        if self._others is not None:
            parts.append(
                f"node by node: more than {_SHAPES} shapes, other dtypes than in the trace, or "
                "shapes that its shape rules cannot determine"
            )
        return "\n".join(parts) or "it has not run yet; it is planned by the shapes of the inputs"
