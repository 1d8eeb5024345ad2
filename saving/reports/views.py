"""Graphs of a file in displayed form: checked as far as needed, neither built nor run.

A listing has one line per step, with inner graphs indented below their step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ..errors import DamagedFile, printable
from ..records.graphs import (
    DEFAULT,
    CustomRecord,
    GraphRecord,
    OpRecord,
    Scalar,
    VariableNode,
)
from ..records.schema import at
from .text import counted, shown, width


@dataclass(frozen=True)
class OuterNames:
    """Objects outside a graph that it refers to.

    Attributes
    ----------
    variables
        By number: the variable's path in the tree, and its shape and dtype.
    constant
        Returns the displayed text of a constant, by the path of its dataset.
    """

    variables: list[tuple[str, str]]
    constant: Callable[[str], str]

    def variable(self, number: Any, where: str) -> tuple[str, str]:
        """Return the path, and the shape and dtype, of a variable."""
        return at(self.variables, number, "variable", where)


@dataclass(frozen=True)
class GraphStep:
    """One node of a graph.

    Attributes
    ----------
    kind
        ``"op"``, ``"custom gradient"``, ``"read"`` or ``"written"``.
    label
        The op's name, the gradient's, or the variable's path.
    inputs, groups
        Numbers of values, and scalars as text. The counts say how many of them belong to each part:
        for a custom gradient its results, its arguments and its saved values, otherwise all of
        them.
    params
        Settings as text, by name.
    first, outputs
        The number of the first output, and the shape and dtype of each.
    graphs
        Inner graphs, each with its role: a parameter's name, or ``"backward"``.
    note
        Further notes.
    """

    kind: str
    label: str
    inputs: list[int | str]
    groups: tuple[int, ...]
    params: dict[str, str]
    first: int
    outputs: list[str]
    graphs: list[tuple[str, GraphView]] = field(default_factory=list)
    note: str = ""


@dataclass(frozen=True)
class GraphView:
    """A graph: its inputs (name, shape and dtype), constants (text, ...), steps and outputs."""

    inputs: list[tuple[str, str]]
    constants: list[tuple[str, str]]
    steps: list[GraphStep]
    outputs: list[int]
    output_specs: list[str]
    updates: list[tuple[str, int]]

    def record(self) -> dict[str, Any]:
        """Return it in the form of its JSON."""
        start = len(self.inputs)
        return {
            "inputs": [
                {"value": i, "name": name, "spec": spec}
                for i, (name, spec) in enumerate(self.inputs)
            ],
            "constants": [
                {"value": start + i, "content": text, "spec": spec}
                for i, (text, spec) in enumerate(self.constants)
            ],
            "steps": [_step_record(step) for step in self.steps],
            "outputs": self.outputs,
            "updates": [{"variable": name, "value": number} for name, number in self.updates],
        }


def _step_record(step: GraphStep) -> dict[str, Any]:
    return {
        "kind": step.kind,
        "label": step.label,
        "inputs": [x if type(x) is int else {"scalar": x} for x in step.inputs],
        "params": step.params,
        "outputs": [{"value": step.first + i, "spec": spec} for i, spec in enumerate(step.outputs)],
        "graphs": [{"name": name, "graph": inner.record()} for name, inner in step.graphs],
        **({"note": step.note} if step.note else {}),
    }


def count_steps(graph: GraphView) -> int:
    """Return the number of nodes, including those of inner graphs."""
    return sum(1 + sum(count_steps(inner) for _, inner in step.graphs) for step in graph.steps)


def view(record: GraphRecord, names: OuterNames) -> GraphView:
    """Return a file's graph in displayed form."""
    where = record.where
    inputs = [(printable(spec.name or "", 60), str(spec)) for spec in record.inputs]
    constants = [(names.constant(dataset), str(spec)) for dataset, spec in record.constants]
    values = [spec for _, spec in (*inputs, *constants)]
    steps = []
    for node in record.nodes:
        steps.append(_step(node, values, names))
        values += steps[-1].outputs
    outputs = [_number(x, len(values), where) for x in record.outputs]
    updates = []
    for pair in record.updates:
        if type(pair) is not list or len(pair) != 2:
            raise DamagedFile(f"{where}: not an update: {str(pair)[:80]}")
        updates.append((names.variable(pair[0], where)[0], _number(pair[1], len(values), where)))
    return GraphView(inputs, constants, steps, outputs, [values[x] for x in outputs], updates)


def _number(number: Any, count: int, where: str) -> int:
    if type(number) is not int or not 0 <= number < count:
        raise DamagedFile(f"{where}: value {str(number)[:40]} is used before it is made")
    return number


def _step(
    node: OpRecord | CustomRecord | VariableNode, values: list[str], names: OuterNames
) -> GraphStep:
    count, where = len(values), node.where
    inputs: list[int | str] = [
        printable(x.value) if type(x) is Scalar else _number(x, count, where) for x in node.inputs
    ]
    if isinstance(node, OpRecord):
        return _op(node, inputs, count, names)
    if isinstance(node, CustomRecord):
        return _custom(node, inputs, values, names)
    label, spec = names.variable(node.number, where)
    return GraphStep(node.kind, label, inputs, (len(inputs),), {}, count, [spec])


def _op(node: OpRecord, inputs: list[int | str], first: int, names: OuterNames) -> GraphStep:
    where, count = node.where, node.witnesses or 0
    if not 0 <= count <= len(inputs):
        raise DamagedFile(f"{where}: 'witnesses' does not fit the inputs")
    kept = len(inputs) - count
    witnesses = [f"%{x}" for x in inputs[kept:]]
    params = {
        printable(key, 60): printable(shown(value, where, witnesses))
        for key, value in node.params.items()
        if key not in node.graphs
    }
    graphs = [(printable(key, 60), view(inner, names)) for key, inner in node.graphs.items()]
    note = ""
    if node.rule != DEFAULT:
        left_out = node.rule is None
        note = "its gradient rule was left out" if left_out else f"gradient: rules.{node.rule}"
    label, outputs = printable(node.op, 80), [str(spec) for spec in node.outputs]
    return GraphStep("op", label, inputs, (kept, count), params, first, outputs, graphs, note)


def _custom(
    node: CustomRecord, inputs: list[int | str], values: list[str], names: OuterNames
) -> GraphStep:
    outputs = [values[x] if type(x) is int else str(x) for x in inputs[: node.results]]
    graphs: list[tuple[str, GraphView]] = []
    backward = node.backward
    if isinstance(backward, GraphRecord):
        graphs, note = [("backward", view(backward, names))], ""
    else:
        note = "saved without its gradient" if backward is None else f"gradient: rules.{backward}"
    groups = (node.results, node.arguments, len(inputs) - node.results - node.arguments)
    label = printable(node.label, 80)
    return GraphStep(
        "custom gradient", label, inputs, groups, {}, len(values), outputs, graphs, note
    )


# -- listings --------------------------------------------------------------------------------------

#: How many lines of a graph are printed unless all are asked for.
MOST_LINES = 2_000
# where shapes and dtypes begin, and how wide a step may be before it pushes its own away
_COLUMN, _INDENT = 56, "    "


def listing(graph: GraphView, most: int | None = MOST_LINES, indent: str = "") -> list[str]:
    """Return the lines of a graph; for a graph of more than ``most`` lines, the first ones."""
    lines: list[str] = []
    for line in _lines(graph, indent):
        if len(lines) == most:
            lines.append(
                f"{indent}... {counted(count_steps(graph), 'step')} in all; "
                f"only the first {most:,} lines are shown"
            )
            break
        lines.append(line)
    return lines


def _lines(graph: GraphView, indent: str) -> Iterator[str]:
    values = [
        *((f"input {name}".rstrip(), spec) for name, spec in graph.inputs),
        *((f"constant {text}", spec) for text, spec in graph.constants),
    ]
    for number, (text, spec) in enumerate(values):
        yield _typed(f"{indent}%{number} = {text}", spec)
    for step in graph.steps:
        numbers = ", ".join(f"%{step.first + i}" for i in range(len(step.outputs)))
        right = step_text(step)
        yield _typed(f"{indent}{numbers} = {right}", ", ".join(step.outputs))
        if step.note:
            yield f"{indent}{_INDENT}({step.note})"
        for name, inner in step.graphs:
            yield f"{indent}{_INDENT}{name}:"
            yield from _lines(inner, indent + 2 * _INDENT)
    for name, number in graph.updates:
        yield f"{indent}update {name} = %{number}"
    yield f"{indent}return {', '.join(f'%{n}' for n in graph.outputs)}"


def step_text(step: GraphStep) -> str:
    """Return a step as text: ``matmul(%0, %1)``."""
    inputs = [f"%{x}" if type(x) is int else str(x) for x in step.inputs]
    if step.kind == "read":
        return f"read {step.label}"
    if step.kind == "written":
        return f"assign {step.label}, {', '.join(inputs)}"
    if step.kind == "custom gradient":
        n, m = step.groups[0], step.groups[0] + step.groups[1]
        saved = f"; saved {', '.join(inputs[m:])}" if inputs[m:] else ""
        given = f"{', '.join(inputs[:n])} of {', '.join(inputs[n:m]) or 'nothing'}"
        return f"custom gradient {step.label}({given}{saved})"
    settings = [f"{key}={value}" for key, value in step.params.items()]
    return f"{step.label}({', '.join([*inputs[: step.groups[0]], *settings])})"


def _typed(left: str, spec: str) -> str:
    return f"{left}{' ' * max(2, _COLUMN - width(left))}{spec}".rstrip()
