"""The readable form of a graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..base.spec import describe
from ..ops.dispatch import to_numpy
from .nodes import BaseGraph, CustomGradient, Read, SharedRule, Symbol, Written, nodes_within


def graph_text(graph: BaseGraph) -> str:
    """Return the graph as text, one line per node, with nested graphs indented below it.

    The rules that nodes share follow.
    """
    ops: list[Any] = [node.op for node in nodes_within(graph)]
    shared = dict.fromkeys(
        x for op in ops if type(x := getattr(op, "backward", None)) is SharedRule
    )
    rules = {rule: f"rule {i}" for i, rule in enumerate(shared)}
    text = _text(graph, "", rules)
    for rule, name in rules.items():
        found = rule.graph
        text += f"\n{name}, the gradient of {rule.label}:\n"
        text += _text(found, "  ", rules) if isinstance(found, BaseGraph) else f"  {found}"
    return text


def _text(graph: BaseGraph, indent: str, rules: Mapping[SharedRule, str]) -> str:
    names: dict[Symbol, str] = {}
    arguments = []
    for i, symbol in enumerate(graph.inputs):
        names[symbol] = f"%{symbol.name or f'arg{i}'}"
        arguments.append(f"{names[symbol]}: {describe(symbol.shape, symbol.dtype)}")
    lines = [f"{indent}graph {graph.name}({', '.join(arguments)}):"]

    def show(x: Any) -> str:
        return names[x] if type(x) is Symbol else repr(x)

    for symbol, array in graph.constants.items():
        names[symbol] = f"%c{len(names)}"
        lines.append(f"{indent}  {_typed(names[symbol], symbol)} = constant {_short(array)}")
    for node in graph.nodes:
        for symbol in node.outputs:
            names[symbol] = f"%{len(names)}"
        left = ", ".join(_typed(names[symbol], symbol) for symbol in node.outputs)
        inputs = [show(x) for x in node.inputs]
        op = node.op
        if isinstance(op, CustomGradient):
            n, m = op.results, op.results + op.arguments
            right = (
                f"custom_gradient {op.label}({', '.join(inputs[:n])}; of {', '.join(inputs[n:m])}"
                + (f"; saved {', '.join(inputs[m:])})" if inputs[m:] else ")")
            )
        elif isinstance(op, Written):
            right = f"assign {op.variable.name!r}, {inputs[0]}"
        elif isinstance(op, Read):
            right = f"read {op.variable.name!r}"
        else:
            plain = {k: v for k, v in node.params.items() if not isinstance(v, BaseGraph)}
            settings = [f"{key}={value!r}" for key, value in plain.items()]
            right = f"{op.name}({', '.join(inputs + settings)})"
            if op.stored is not None:
                right += ", with a stored gradient rule"
        lines.append(f"{indent}  {left} = {right}")
        if isinstance(op, CustomGradient) and not isinstance(op.backward, BaseGraph):
            lines.append(f"{indent}    {rules.get(op.backward, op.backward)}")
        lines += [_text(inner, indent + "    ", rules) for inner in node.graphs]
    lines.append(f"{indent}  return {', '.join(show(x) for x in graph.outputs)}")
    return "\n".join(lines)


def _typed(name: str, symbol: Symbol) -> str:
    return f"{name}: {describe(symbol.shape, symbol.dtype)}"


def _short(array: Any) -> str:
    if int(np.prod(array.shape)) > 6:
        return "..."
    return np.array2string(to_numpy(array), separator=", ").replace("\n", "")
