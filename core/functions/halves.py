"""Splits a graph with its gradient into two graphs, one forward and one back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..base.context import active_batches, recording_to, strictness, tracing_into
from ..base.dtypes import is_differentiable
from ..base.lifetimes import MADE
from ..base.sizes import unsure
from ..base.spec import TensorSpec
from ..errors import TraceError
from ..graphs.graph import Graph
from ..graphs.nodes import Symbol
from ..graphs.optimize import prune
from ..graphs.replay import replay
from ..tape.missing_gradients import severed
from ..tape.tape import GradientTape
from ..tensors.tensor import Tensor


class Halves(NamedTuple):
    """The forward and backward graphs of one graph.

    Attributes
    ----------
    forward : Graph
        Takes the graph's inputs. Returns its outputs, followed by the values that ``back`` needs.
    back : Graph
        Takes these values, and the gradients of the differentiable outputs. Returns the gradients
        of the differentiable inputs, zeros for an input that nothing depends on.
    """

    forward: Graph
    back: Graph


def halved(graph: Graph, arrays: Sequence[Any]) -> Halves | None:
    """Return the halves of a graph for inputs like these, made once for their shapes and dtypes.

    None if the graph assigns variables, or if a part of its gradient is lost. The run on tensors
    that follows then reports the loss.

    Parameters
    ----------
    graph
        A graph as it was traced.
    arrays
        The inputs of the graph.
    """
    if graph.updates or strictness.get() or active_batches.get():
        return None
    key = tuple([(x.shape, x.dtype) for x in arrays])
    if key in graph.halves:
        found: Halves | None = graph.halves[key]
    else:
        specs = [TensorSpec(*spec) for spec in key]
        found = MADE.keep(graph, graph.halves, key, lambda: _halved(graph, specs))
    return found


def _halved(graph: Graph, specs: Sequence[TensorSpec]) -> Halves | None:
    whole = Graph(graph.name)
    try:
        with recording_to(()), tracing_into(whole):
            inputs = [Tensor(whole.input(spec)) for spec in specs]
            sources = [x for x in inputs if is_differentiable(x.dtype)]
            with GradientTape(watch_accessed_variables=False) as tape:
                tape.watch(sources)
                found = replay(graph, inputs)
            targets = [y for y in found if is_differentiable(y.dtype)]
            if any(unsure(y.shape) for y in targets) or severed(tape, found, sources):
                return None
            upstream = [whole.input(TensorSpec(y.shape, y.dtype)) for y in targets]
            gradients = tape.gradient(
                targets,
                sources,
                output_gradients=[Tensor(g) for g in upstream],
                unconnected_gradients="zero",
            )
    except TraceError:  # it cannot be traced
        return None
    given = whole.inputs[: len(specs)]
    forward = _part(whole, whole.nodes, given, [whole.adopt(y.array) for y in found])
    done = {id(node) for node in forward.nodes}
    rest = [node for node in whole.nodes if id(node) not in done]
    back = _part(whole, rest, list(upstream), [whole.adopt(g.array) for g in gradients])
    known = {*given, *(y for node in forward.nodes for y in node.outputs)}
    used = [x for node in back.nodes for x in node.inputs if type(x) is Symbol]
    kept = dict.fromkeys(x for x in [*used, *back.outputs] if x in known)
    for node in reversed(forward.nodes):
        # a view of a kept value is not kept in addition to it
        views = getattr(node.op, "view", None) and all(x in kept for x in node.inputs)
        if views and any(y in kept for y in node.outputs):
            back.nodes.insert(0, node)
            for y in node.outputs:
                kept.pop(y, None)
    forward.outputs, back.inputs = [*forward.outputs, *kept], [*kept, *back.inputs]
    return Halves(forward, back)


def _part(whole: Graph, nodes: Any, inputs: list[Symbol], outputs: list[Symbol]) -> Graph:
    part = Graph(whole.name)
    part.inputs, part.nodes, part.outputs = inputs, list(nodes), outputs
    part.constants = dict(whole.constants)
    return prune(part)
