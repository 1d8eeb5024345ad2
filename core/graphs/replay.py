"""Running a graph op by op on tensors, so that tapes record it and other traces absorb it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base.context import active_batches, active_tapes
from ..functions.custom import replay_custom
from ..ops.backend import backend_for_type
from ..ops.op import Op, is_transformed
from ..tensors.tensor import Tensor
from ..transforms.vmap import key_for_examples
from .graph import CustomGradient, Graph, Symbol, Written

__all__ = ["local_constants", "replay"]


def replay(graph: Graph, inputs: Sequence[Tensor]) -> list[Tensor]:
    """Run ``graph`` on tensors through public ops; return its outputs.

    Variables change together, after the last node, so that an error leaves them as they were.
    """
    values: dict[Symbol, Tensor] = dict(zip(graph.inputs, inputs, strict=True))
    for symbol, array in local_constants(graph, [x.array for x in inputs]).items():
        values[symbol] = Tensor(array)
    if graph.closure is not None and active_tapes.get():
        graph.closure.tell()
        for symbol, tensor in graph.closure.tensors.items():
            if symbol in values and values[symbol].array is tensor.array:  # on the same backend
                values[symbol] = tensor
    drawn = bool(active_batches.get())
    for node in graph.nodes:
        op = node.op
        given = [values[x] if type(x) is Symbol else x for x in node.inputs]
        if isinstance(op, Op):
            if drawn and op.name.startswith("random_"):
                given[0] = key_for_examples(given[0])
            result = op(*given, **node.params)
            outputs = result if isinstance(result, list) else [result]
        elif isinstance(op, CustomGradient):
            outputs = replay_custom(op, given)
        elif isinstance(op, Written):
            variable, value = op.variable, Tensor.with_id(given[0].array, op.variable.id)
            for tape in active_tapes.get():
                if variable.trainable:
                    tape.accessed(variable)
                why = f"assigning variable {variable.name!r} passes no gradient to the value"
                tape.record_break(given, [value], why)
            outputs = [value]
        else:
            outputs = [op.variable.value]
        values.update(zip(node.outputs, outputs, strict=True))
    for variable, symbol in graph.updates.items():
        variable.check_shape(values[symbol].shape)
    for variable, symbol in graph.updates.items():
        variable.assign(Tensor(values[symbol].array))
    return [values[symbol] for symbol in graph.outputs]


def local_constants(graph: Graph, arrays: Sequence[Any]) -> dict[Symbol, Any]:
    """Return a graph's constants on the backend and device that its inputs or variables are on."""
    constants = graph.constants
    if not constants:
        return constants
    candidates = [*arrays, *(variable.array for variable in graph.variables)]
    for array in candidates:
        if is_transformed(array):
            continue
        here = backend_for_type(type(array))
        moved = {}
        for symbol, constant in constants.items():
            owner = backend_for_type(type(constant))
            if owner is not here:
                constant = here.asarray(owner.to_numpy(constant), device=here.device(array))
            moved[symbol] = constant
        return moved
    return constants
