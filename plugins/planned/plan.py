"""Plans: what runs a program on NumPy, at the sizes that it meets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from threading import RLock
from typing import Any, TypeAlias

from ...core.extend import (
    Backend,
    Graph,
    by_backend,
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

__all__ = ["Plans", "Run", "planned", "planned_by"]

Run: TypeAlias = Callable[[Sequence[Any]], list[Any]]
#: What runs a program on arrays of certain shapes, and what it was written from.
Plan: TypeAlias = tuple[Callable[..., list[Any]], Emission | None]

#: How many shapes of the inputs are planned for; of further ones, each node is a call.
_SHAPES = 16


def planned(graph: Graph) -> Run:
    """Return what runs ``graph`` on NumPy as planned; on other backends, node by node.

    Parameters
    ----------
    graph
        A graph as it was traced.
    """
    return planned_by(graph, Emitter())


def planned_by(graph: Graph, emitter: Emitter) -> Run:
    """Return what runs ``graph`` on NumPy as planned, with groups that an emitter runs."""

    def compiler(program: Graph, owner: Backend, arrays: Sequence[Any]) -> Run | None:
        return Plans(program, emitter) if owner is registry().host_backend else None

    return by_backend(graph, compiler)


class Plans:
    """What runs one program on NumPy's arrays: plans, by the shapes of its inputs.

    Parameters
    ----------
    program
        The graph, as ``forward_only`` gives it.
    emitter
        Who runs groups as loops; by default, nobody.
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
        """Run the program by plans that tell whoever watches of their steps."""
        key = tuple([(x.shape, x.dtype) for x in arrays])
        if key not in self._plans:
            return self(arrays)  # the first call plans, and is told of as a whole
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
            except Exception:  # a shape rule may refuse what the kernel then says in better words
                return (lambda *arrays: self._by_nodes(arrays)), None
        lowered = Lowering(program, registry().host_backend, arrays)
        emission = Emission(lowered, self.emitter, self._memory, telling, write_loop)
        return emission.function(), emission

    def _is_typed(self, arrays: Sequence[Any]) -> bool:
        """Whether arrays have the dtypes that the program was traced for."""
        pairs = zip(self.program.inputs, arrays, strict=True)
        return all(x.dtype == array.dtype for x, array in pairs)

    def _by_nodes(self, arrays: Sequence[Any]) -> list[Any]:
        if self._others is None:
            self._others = node_by_node(self.program, registry().host_backend, arrays)
        return self._others(arrays)

    def explain(self) -> str:
        """Say how the program runs."""
        plans = list(self._plans.items())
        shaped = [([shape for shape, _ in key], plan[1]) for key, plan in plans]
        parts = [report(self.program, shapes, plan) for shapes, plan in shaped if plan is not None]
        if self._others is not None:
            parts.append(
                f"node by node: more than {_SHAPES} shapes, other dtypes than it was traced for, "
                "or shapes that its shape rules do not tell"
            )
        return "\n".join(parts) or "it has not run yet; it is planned by the shapes of the inputs"
