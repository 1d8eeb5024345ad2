"""The cost of a sample, estimated before it is run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...core.extend import ConcreteFunction, CustomGradient, Graph, is_differentiable, shape_in_run

# What gradients of gradients, and gradients at several batches, are taken of: arrays of so many
# elements in all. Of larger ones than the second there is one sample.
_MOST_WEIGHED, _MOST_REPEATED = 2**16, 2**22


def is_light(concrete: ConcreteFunction, inputs: Sequence[np.ndarray[Any, Any]]) -> bool:
    """Return whether inputs and variables are so small that all their gradients cost little.

    They must not make saving much slower.
    """
    return _elements(concrete, inputs) <= _MOST_WEIGHED


def is_heavy(concrete: ConcreteFunction, inputs: Sequence[np.ndarray[Any, Any]]) -> bool:
    """Return whether inputs and variables are so large that even one more run costs too much."""
    return _elements(concrete, inputs) > _MOST_REPEATED


def _elements(concrete: ConcreteFunction, inputs: Sequence[np.ndarray[Any, Any]]) -> int:
    read = sum(math.prod(v.shape) for v in concrete.graph.variables if is_differentiable(v.dtype))
    return read + sum(x.size for x in inputs)


def output_bytes(concrete: ConcreteFunction, inputs: Sequence[np.ndarray[Any, Any]]) -> int:
    """Return the total size in bytes of the results of all steps of a trace, at least.

    A tape keeps most of them. Sizes that only a run knows count as nothing, and a graph inside an
    op counts as if it ran once.
    """
    graph = concrete.graph
    return _bytes_of(graph, {**dict(zip(graph.inputs, inputs, strict=True)), **graph.constants})


def _bytes_of(graph: Graph, arrays: Mapping[Any, Any]) -> int:
    total = 0
    for node in graph.nodes:
        for symbol in node.outputs:
            shape = shape_in_run(symbol, arrays) or ()
            total += math.prod(n or 0 for n in shape) * symbol.dtype.itemsize
        inner = [x for x in node.params.values() if isinstance(x, Graph)]
        if isinstance(node.op, CustomGradient) and isinstance(node.op.backward, Graph):
            inner.append(node.op.backward)
        total += sum(_bytes_of(x, {**arrays, **x.constants}) for x in inner)
    return total
