"""Computes those values of a trace that do not depend on its arguments."""

from __future__ import annotations

from typing import Any

from ..base.context import init_scope
from .graph import Graph
from .nodes import Node, Symbol
from .replay import replay


def lifted(symbol: Symbol) -> Any:
    """Return the array that a run would compute for a symbol, if it depends on no argument.

    Variables have their current values. A variable's initial value can therefore come from a trace.

    Parameters
    ----------
    symbol
        A value of a graph that is being traced.

    Returns
    -------
    object
        The array; the symbol itself, if it depends on an argument.
    """
    graph: Any = symbol.graph
    needed: set[Symbol] = {symbol}
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if needed.intersection(node.outputs):
            kept.append(node)
            needed.update(x for x in node.inputs if type(x) is Symbol)
    if needed.intersection(graph.inputs):
        return symbol
    alone = Graph("an initial value")
    alone.nodes, alone.outputs = kept[::-1], [symbol]
    alone.constants = {x: array for x, array in graph.constants.items() if x in needed}
    with init_scope():
        return replay(alone, [])[0].array
