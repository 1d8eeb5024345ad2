"""Plans: what runs a program on NumPy, at the sizes that it meets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from threading import RLock
from typing import Any

from ...core.extend import Backend, Graph, by_backend, node_by_node, registry, unsure
from .emission import Emission, Emitter
from .lowering import Lowering
from .memory import Packed
from .report import report
from .sizes import at_sizes

__all__ = ["compile_program", "planned"]

Run = Callable[[Sequence[Any]], list[Any]]

#: How many shapes of the inputs are planned for; of further ones, each node is a call.
_SHAPES = 16


def planned(graph: Graph) -> Run:
    """Return what runs ``graph`` on NumPy as planned; on other backends, node by node.

    Parameters
    ----------
    graph
        A graph as it was traced.
    """

    def compiler(program: Graph, owner: Backend, arrays: Sequence[Any]) -> Run | None:
        return compile_program(program, arrays) if owner is registry().host_backend else None

    return by_backend(graph, compiler)


def compile_program(program: Graph, arrays: Sequence[Any], emitter: Emitter | None = None) -> Run:
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
    return _Plans(program, emitter or Emitter())


class _Plans:
    """The plans of one program, by the shapes of its inputs."""

    def __init__(self, program: Graph, emitter: Emitter) -> None:
        self.program = program
        self.emitter = emitter
        self._open = [i for i, x in enumerate(program.inputs) if unsure(x.shape)]
        self._plans: dict[Any, tuple[Callable[..., list[Any]], Emission]] = {}
        self._others: Run | None = None
        self._memory: dict[Any, Packed] = {}
        # two calls at once would write to the same packs
        self._alone: Any = RLock() if program.updates else nullcontext()

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        """Run the program."""
        key = tuple([arrays[i].shape for i in self._open]) if self._open else ()
        found = self._plans.get(key)
        if found is None:
            if len(self._plans) >= _SHAPES:
                return self._by_nodes(arrays)
            found = self._plans[key] = self._planned(arrays)
        with self._alone:
            return found[0](*arrays)

    def _planned(self, arrays: Sequence[Any]) -> tuple[Callable[..., list[Any]], Emission]:
        program = self.program
        if self._open:
            try:
                program = at_sizes(program, arrays)
            except Exception:  # a shape rule may refuse what the kernel then says in better words
                program = self.program
        lowered = Lowering(program, registry().host_backend, arrays)
        emission = Emission(lowered, self.emitter, self._memory)
        return emission.function(), emission

    def _by_nodes(self, arrays: Sequence[Any]) -> list[Any]:
        if self._others is None:
            self._others = node_by_node(self.program, registry().host_backend, arrays)
        return self._others(arrays)

    def explain(self) -> str:
        """Say how the program runs."""
        plans = list(self._plans.items())
        parts = [report(self.program, key if self._open else None, plan[1]) for key, plan in plans]
        if self._others is not None:
            parts.append(f"more than {_SHAPES} shapes: all others node by node")
        return "\n".join(parts) or "it has not run yet; it is planned by the shapes of the inputs"
