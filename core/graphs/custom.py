"""Custom gradients as nodes: traces a gradient function into a separate graph."""

from __future__ import annotations

from typing import Any

from ..base.context import active_tapes, tracing_into
from ..base.spec import TensorSpec
from ..batches.batched import outermost
from ..batches.boundary import HIDE, InBatch
from ..errors import TraceError
from ..tensors.tensor import Tensor
from .capture import Capture, Closure
from .graph import Graph
from .nodes import CustomGradient, Refusal, Symbol

__all__ = ["add_custom"]


def add_custom(
    name: str, graph: Graph, backward: Any, inputs: list[Any], results: list[Any]
) -> list[Any]:
    """Return results with a custom gradient, as values of the traced graph."""
    level = outermost((*inputs, *results))
    if level < graph.level:  # batches from outside a branch: it captures one example's value
        inputs, results = ([graph.adopt(x) for x in part] for part in (inputs, results))
        level = 0
    if level:  # one node serves all examples
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
    """Trace a gradient function into a graph, or return a ``Refusal`` that says why not."""
    inner = Graph(f"{name}_gradient", parent=graph)
    around = _branch_capture(graph)
    closure = Closure(inner, around)
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
    if closure.tensors and around is not None:
        _pass_on(closure, around)
    elif closure.tensors:
        inner.closure = closure
    inner.inputs = [x for x in inner.inputs if x not in own] + list(own)
    return inner, tuple(g is not None for g in grads), list(inner.captures)


def _branch_capture(graph: Graph) -> Capture[Any] | None:
    """Return what captures outer tensors for a graph that is, or is inside, a branch."""
    scope: Graph | None = graph
    while scope is not None and not scope.level:
        scope = scope.parent
    if scope is None:
        return None
    captures = (x for x in active_tapes.get() if isinstance(x, Capture) and x.graph is graph)
    return next(captures, None)


def _pass_on(closure: Closure, around: Capture[Any]) -> None:
    """Make the tensors that only a gradient function uses values of the enclosing graph.

    A branch runs as one op, and gradients reach only its inputs.
    """
    inner = closure.graph
    closure.tell((around,))
    for symbol, tensor in closure.tensors.items():
        del inner.constants[symbol]
        inner.inputs.append(symbol)
        inner.captures.append(around.symbol(tensor))
