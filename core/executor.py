"""The plain executor: a loop over a graph's nodes on raw arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .graph import Graph, Read, Symbol
from .optimize import forward_only
from .replay import local_constants

__all__ = ["plain"]


def plain(graph: Graph) -> Callable[[Sequence[Any]], list[Any]]:
    """Compile ``graph`` to a function from raw input arrays to raw output arrays.

    Variables are read when it runs, and change together after the last node.
    """
    program = forward_only(graph)
    slot: dict[Symbol, int] = {}
    for symbol in (*program.inputs, *program.constants):
        slot[symbol] = len(slot)
    literals: list[Any] = []
    first_free = len(slot) + sum(len(node.outputs) for node in program.nodes)

    def place(x: Any) -> int:
        if type(x) is Symbol:
            return slot[x]
        literals.append(x)
        return first_free + len(literals) - 1

    steps: list[tuple[Any, tuple[int, ...], dict[str, Any], tuple[int, ...]]] = []
    last_use: dict[int, int] = {}
    for i, node in enumerate(program.nodes):
        inputs = tuple(place(x) for x in node.inputs)
        for symbol in node.outputs:
            slot[symbol] = len(slot)
        outputs = tuple(slot[symbol] for symbol in node.outputs)
        steps.append((node.op, inputs, node.params, outputs))
        last_use.update(dict.fromkeys((*inputs, *outputs), i))
    results = [slot[symbol] for symbol in program.outputs]
    updates = [(variable, slot[symbol]) for variable, symbol in program.updates.items()]
    kept = {
        *results,
        *(index for _, index in updates),
        *range(first_free, first_free + len(literals)),
    }
    drops: list[list[int]] = [[] for _ in steps]
    for index, i in last_use.items():
        if index not in kept:
            drops[i].append(index)

    # where the constants go is looked up once, unless the first input changes its type
    known: dict[type, dict[Symbol, Any]] = {}

    def run(arrays: Sequence[Any]) -> list[Any]:
        values: list[Any] = list(arrays)
        if program.constants:
            kind = type(arrays[0]) if arrays else type(None)
            here = known.get(kind)
            if here is None:
                here = known[kind] = local_constants(program, arrays)
            values += here.values()
        values += [None] * (first_free - len(values))
        values += literals
        for (op, inputs, params, outputs), drop in zip(steps, drops, strict=True):
            if isinstance(op, Read):
                values[outputs[0]] = op.variable.array
            elif len(outputs) == 1:
                values[outputs[0]] = op.raw(*[values[i] for i in inputs], **params)
            else:
                for index, array in zip(
                    outputs, op.raw(*[values[i] for i in inputs], **params), strict=True
                ):
                    values[index] = array
            for index in drop:
                values[index] = None
        for variable, index in updates:
            variable.set_array(values[index])
        return [values[index] for index in results]

    return run
