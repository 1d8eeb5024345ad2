"""Runs a graph op by op on tensors, so that tapes record it and other traces include it.

``lifted`` so computes those values of a trace that do not depend on its arguments.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from ..base.array_types import TensorSpec
from ..base.context import (
    Setting,
    active_batches,
    active_graph,
    active_tapes,
    effect_masks,
    init_scope,
    meaning,
    running,
    tracing_into,
)
from ..base.dtypes import computing_in
from ..base.sizes import Size, dims_of
from ..base.table import ops
from ..batches.batched import key_for_examples, of_each_example, outermost
from ..errors import GradientError
from ..ops.dispatch import backend_of, is_transformed, settled, to_numpy
from ..tensors.assignment import Stream, exclusive
from ..tensors.convert import of_backend, on_device_of, own_array
from ..tensors.custom_records import record_custom
from ..tensors.op import Op
from ..tensors.tensor import Tensor
from .custom_gradients import add_custom
from .graph import Graph
from .nodes import CustomGradient, Node, NotSaved, Refusal, SharedRule, Symbol, Written
from .optimize import local_constants


def replay(graph: Graph, inputs: Sequence[Tensor]) -> list[Tensor]:
    """Run ``graph`` on tensors through public ops; return its outputs.

    Variables change together, after the last node, so that an error leaves them unchanged.
    """
    with Setting(running, (*running.get(), graph)), exclusive(graph.updates):
        if active_graph.get() is None:
            move_shared_stream(graph, [x.array for x in inputs])
        return _replay(graph, inputs)


def move_shared_stream(graph: Graph, arrays: Sequence[Any]) -> None:
    """Move the stream that all functions share to where ``graph`` runs, if the graph draws from it.

    That is the device of its first array; without arrays, of its first variable; without both, the
    current one.
    The caller holds the locks of what the graph assigns.
    """
    stream = Stream.shared
    if stream is None or stream not in graph.updates:
        return
    places = arrays or (v.array for v in graph.variables if not isinstance(v, Stream))
    like = next(map(of_backend, places), None)
    if like is None:
        like = own_array(np.empty(0))
    if not is_transformed(like):
        owner, mine = backend_of(like), stream.array
        # arrays of a backend whose plugin was removed have no device
        if type(mine) is not type(like) or owner.device(mine) != owner.device(like):
            stream.set_array(on_device_of(to_numpy(mine), Tensor(like)).array)


def _replay(graph: Graph, inputs: Sequence[Tensor]) -> list[Tensor]:
    values: dict[Symbol, Tensor] = dict(zip(graph.inputs, inputs, strict=True))
    for symbol, array in local_constants(graph, [x.array for x in inputs]).items():
        values[symbol] = Tensor(array)
    if graph.closure is not None and active_tapes.get():
        graph.closure.report_constants(active_tapes.get())
        for symbol, tensor in graph.closure.tensors.items():
            if symbol in values and values[symbol].array is tensor.array:  # on the same backend
                values[symbol] = tensor
    drawn = bool(active_batches.get())
    for node in graph.nodes:
        op = node.op
        given = [values[x] if type(x) is Symbol else x for x in node.inputs]
        if isinstance(op, Op):
            if drawn and op.random:
                given[0] = key_for_examples(given[0])
            given, params = node.settled(given)  # type: ignore[assignment]
            if op.effect:
                given = [_acts(given[0]), *given[1:]]
            run = run_with_masked_effects if effect_masks() and node.graphs else _run
            result = run(op, given, params)
            outputs = result if isinstance(result, list) else [result]
        elif isinstance(op, CustomGradient):
            outputs = _replay_custom(op, given)
        elif isinstance(op, Written):
            variable = op.variable
            value = variable.read_as(given[0].array)
            for tape in active_tapes.get():
                why = f"assigning variable {variable.name!r} passes no gradient to the value"
                tape.record_break(given, [value], why)
            outputs = [value]
        else:
            with computing_in(None):  # casts are in the graph
                outputs = [op.variable.value]
        values.update(zip(node.outputs, outputs, strict=True))
    for variable, symbol in graph.updates.items():
        variable.check_shape(values[symbol].shape)
    new = settled([values[symbol].array for symbol in graph.updates.values()])
    for variable, array in zip(graph.updates, new, strict=True):
        variable.assign(Tensor(array))
    outputs = [values[symbol] for symbol in graph.outputs]
    return (
        outputs
        if graph.closure is None
        else graph.closure.report_lost_reads(outputs, active_tapes.get())
    )


def _acts(acts: Tensor) -> Tensor:
    """Return the examples that an effect applies to, of those that it was traced for."""
    for chosen in effect_masks():
        acts = ops["logical_and"](acts, chosen)
    return acts


def _run(op: Op, given: Sequence[Any], params: dict[str, Any]) -> Any:
    return op(*given, **params)


def run_with_masked_effects(op: Op, given: Sequence[Any], params: dict[str, Any]) -> Any:
    """Run an op that runs graphs, with their effects only for the examples that are meant.

    Their mask is one more input of the op and its graphs, so that it gets into loops and batches as
    other values do.
    """
    graphs = [] if params.get("order") else [x for x in params.values() if isinstance(x, Graph)]
    if not effect_masks() or not any(node.acts for graph in graphs for node in graph.nodes):
        return op(*given, **params)
    first, *others = effect_masks()
    for mask in others:
        first = ops["logical_and"](first, mask)
    masked = {k: _masked(x) if isinstance(x, Graph) else x for k, x in params.items()}
    with meaning(()):
        return op(*given, first, **masked)


def _masked(graph: Graph) -> Graph:
    """Return a graph with one more input: whether it has its effects."""
    result = Graph(graph.name)
    with tracing_into(result):
        shapes = zip(graph.inputs, own_shapes(graph.inputs), strict=True)
        inputs = [result.input(TensorSpec(shape, x.dtype)) for x, shape in shapes]
        mask = result.input(TensorSpec((), "bool"))
        with meaning((Tensor(mask),)):
            found = replay(graph, [Tensor(x) for x in inputs])
        result.outputs = [result.adopt(y.array) for y in found]
    return result


def own_shapes(inputs: Sequence[Symbol]) -> list[Any]:
    """Return the shapes of a graph's inputs, with None for sizes that they do not determine.

    Such a size was computed outside the graph, from sizes that no input has.
    """
    sizes = [n for x in inputs for n in x.shape or () if isinstance(n, Size)]
    told = {n.dim for n in sizes}
    return [
        x.shape and tuple(n if told.issuperset(dims_of(n)) else None for n in x.shape)
        for x in inputs
    ]


def _replay_custom(kind: CustomGradient, handles: Sequence[Tensor]) -> list[Tensor]:
    """Run a custom gradient node of a graph on tensors."""
    n, m = kind.results, kind.results + kind.arguments
    results, arguments = list(handles[:n]), list(handles[n:m])
    graph = active_graph.get()
    arrays: list[Any] = [x.array for x in results]
    given = [x.array for x in arguments]
    backward = _Replayed(kind, handles)
    if graph is not None:
        if outermost((*arrays, *given)):
            arrays = add_custom(kind.label, graph, backward, given, arrays)
        else:
            arrays = graph.custom(kind, arrays, given, [x.array for x in backward.saved])
    outputs = [Tensor(array) for array in arrays]
    record_custom(kind.label, arguments, outputs, backward, kind.lost)
    return outputs


class _Replayed:
    """The gradient function of a custom gradient node: its graph, run on tensors."""

    grad_fn = code = None

    def __init__(self, kind: CustomGradient, handles: Sequence[Tensor]) -> None:
        n, m = kind.results, kind.results + kind.arguments
        self.kind = kind
        self.saved = list(handles[m:])
        self.specs = [(x.shape, x.dtype) for x in handles[n:m]]
        self.lost = set(kind.lost)
        self.refusal = kind.rule if isinstance(kind.rule, Refusal) else None
        # a rule of its own cannot contain its node
        shared = type(kind.backward) is SharedRule
        self.function = ("rule", id(kind.backward)) if shared else None
        self.key = kind.connected
        # for a trace; a tape need not keep them
        traced = active_graph.get() is not None
        self.given = [x.array for x in handles] if traced else []
        self.inputs = self.given[n:m]

    def again(self, given: list[Tensor]) -> tuple[_Replayed, list[Any]]:
        """Run the node on other tensors; return its gradient function and results."""
        return _Replayed(self.kind, given), [x.array for x in given[: self.kind.results]]

    def __call__(
        self, upstream: Sequence[Tensor], ended: Collection[int] = ()
    ) -> list[Tensor | None]:
        rule = self.kind.rule
        if isinstance(rule, Refusal):
            advice = (
                "Save it again with custom_gradients=True"
                if isinstance(rule, NotSaved)
                else "Call the function outside gradtape.function"
            )
            raise GradientError(f"{rule}. {advice}.")
        grads = iter(replay(rule, [*self.saved, *upstream]))
        found = [next(grads) if connected else None for connected in self.kind.connected]
        return of_each_example(found, upstream)


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
