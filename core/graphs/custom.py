"""Custom gradients as nodes: what traces a gradient function into a graph of its own."""

from __future__ import annotations

from typing import Any

from ..base.context import tracing_into
from ..base.spec import TensorSpec
from ..batches.batched import outermost
from ..batches.boundary import HIDE, InBatch
from ..errors import TraceError
from ..tensors.tensor import Tensor
from .capture import Closure
from .graph import Graph
from .nodes import CustomGradient, Refusal, Symbol

__all__ = ["add_custom"]


def add_custom(
    name: str, graph: Graph, backward: Any, inputs: list[Any], results: list[Any]
) -> list[Any]:
    """Return what stands for results with a gradient of their own in the graph that is traced."""
    level = outermost((*inputs, *results))
    if level < graph.level:  # batches from around a branch: it takes them in as one example
        inputs, results = ([graph.adopt(x) for x in part] for part in (inputs, results))
        level = 0
    if level:  # the node is one for all examples
        lowered = InBatch(backward, inputs, results, level)
        rows = add_custom(name, graph, lowered, lowered.inputs, lowered.results)
        return [HIDE.raw(array, level=level) for array in rows]
    if not any(type(array) is Symbol for array in (*results, *inputs)):
        return results
    rule, connected, saved = _trace_backward(name, graph, backward, results)
    kind = CustomGradient(name, len(results), len(inputs), rule, connected)
    return list(graph.custom(kind, results, inputs, saved))


def _trace_backward(
    name: str, graph: Graph, backward: Any, results: list[Any]
) -> tuple[Graph | Refusal, tuple[bool, ...], list[Any]]:
    """Trace a gradient function into a graph; say why if that cannot be done."""
    inner = Graph(f"{name}_gradient", parent=graph)
    closure = Closure(inner)
    with tracing_into(inner, closure):
        upstream = [
            Tensor(inner.input(TensorSpec(x.shape, x.dtype, f"g{i}")))
            for i, x in enumerate(results)
        ]
        own = dict.fromkeys(inner.inputs)
        try:
            grads = backward(upstream)
        except TraceError as error:
            code = getattr(backward.grad_fn, "__code__", None)
            line = f"{code.co_filename}:{code.co_firstlineno}" if code else "?"
            return Refusal(name, line, str(error)), (False,) * len(backward.specs), []
        inner.outputs = [closure.symbol(g) for g in grads if g is not None]
    if closure.tensors:
        inner.closure = closure
    inner.inputs = [x for x in inner.inputs if x not in own] + list(own)
    return inner, tuple(g is not None for g in grads), list(inner.captures)
