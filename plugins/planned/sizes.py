"""Programs of which sizes are open, at the sizes of one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.extend import Graph, Op, Read, Symbol, TensorSpec

__all__ = ["at_sizes"]


def at_sizes(program: Graph, arrays: Sequence[Any]) -> Graph:
    """Return a program as it would have been traced with inputs of known shapes.

    Sizes that depend on values stay open.

    Parameters
    ----------
    program
        The graph, as ``forward_only`` gives it.
    arrays
        Arrays of the shapes.
    """
    graph = Graph(program.name)
    values: dict[Symbol, Any] = {}
    for symbol, array in zip(program.inputs, arrays, strict=True):
        values[symbol] = graph.input(TensorSpec(array.shape, symbol.dtype, symbol.name))
    for symbol, constant in program.constants.items():
        values[symbol] = graph.constant(constant)
    for node in program.nodes:
        if isinstance(node.op, Read):
            values[node.outputs[0]] = graph.read(node.op.variable)
            continue
        assert isinstance(node.op, Op)
        given = [values[x] if type(x) is Symbol else x for x in node.inputs]
        inputs, params = node.settled(given)
        result = graph.add(node.op, inputs, params)
        results = result if isinstance(result, list) else [result]
        values.update(zip(node.outputs, results, strict=True))
    graph.outputs = [values[symbol] for symbol in program.outputs]
    graph.updates = {variable: values[symbol] for variable, symbol in program.updates.items()}
    return graph
