"""``compiled``: a graph as a function of raw arrays, by the executor that is selected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base.table import registry
from ..tensors.tensor import Tensor
from ..tensors.variable import exclusive
from .graph import Graph
from .nodes import Run
from .replay import replay

__all__ = ["compiled"]


def compiled(graph: Graph) -> Run:
    """Return what runs a graph, made by the selected executor on first use."""
    if graph.run is None:
        run = _naming(graph, registry().executor()(graph))
        graph.run = _alone(graph, run) if graph.updates else run
    return graph.run


def _alone(graph: Graph, run: Run) -> Run:
    """Let no other thread change what the graph assigns between its reads and its assignments."""
    held = exclusive(graph.updates)

    def run_alone(arrays: Sequence[Any]) -> list[Any]:
        with held:
            return run(arrays)

    return run_alone


def _naming(graph: Graph, execute: Run) -> Run:
    def run(arrays: Sequence[Any]) -> list[Any]:
        try:
            return execute(arrays)
        except (IndexError, TypeError, ValueError):
            # one op at a time, the failing one names itself; nothing is assigned on this way
            replay(graph.without_updates(), [Tensor(x) for x in arrays])
            raise

    return run
