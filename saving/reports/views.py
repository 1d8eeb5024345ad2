"""Graphs of a file in displayed form: checked as far as needed, neither built nor run.

A listing has one line per step, with inner graphs indented below their step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ..errors import DamagedFile, printable
from ..records.schema import at, decode, take
from ..records.specs import read_spec
from .text import counted, shown, width


@dataclass(frozen=True)
class Names:
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
class Step:
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
    graphs: list[tuple[str, View]] = field(default_factory=list)
    note: str = ""


@dataclass(frozen=True)
class View:
    """A graph: its inputs (name, shape and dtype), constants (text, ...), steps and outputs."""

    inputs: list[tuple[str, str]]
    constants: list[tuple[str, str]]
    steps: list[Step]
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


def _step_record(step: Step) -> dict[str, Any]:
    return {
        "kind": step.kind,
        "label": step.label,
        "inputs": [x if type(x) is int else {"scalar": x} for x in step.inputs],
        "params": step.params,
        "outputs": [{"value": step.first + i, "spec": spec} for i, spec in enumerate(step.outputs)],
        "graphs": [{"name": name, "graph": inner.record()} for name, inner in step.graphs],
        **({"note": step.note} if step.note else {}),
    }


def count_steps(graph: View) -> int:
    """Return the number of nodes, including those of inner graphs."""
    return sum(1 + sum(count_steps(inner) for _, inner in step.graphs) for step in graph.steps)


def view(record: Any, names: Names, where: str) -> View:
    """Return a file's graph from its JSON."""
    inputs = []
    for item in take(record, "inputs", list, where):
        spec = read_spec(item, where)
        inputs.append((printable(spec.name or "", 60), str(spec)))
    constants = [
        (names.constant(take(item, "dataset", str, where)), _spec({**item, "name": None}, where))
        for item in take(record, "constants", list, where)
    ]
    values = [spec for _, spec in (*inputs, *constants)]
    steps = []
    for i, item in enumerate(take(record, "nodes", list, where)):
        steps.append(_step(item, values, names, f"{where}: node {i}"))
        values += steps[-1].outputs
    outputs = [_number(x, len(values), where) for x in take(record, "outputs", list, where)]
    updates = []
    for pair in take(record, "updates", list, where):
        if type(pair) is not list or len(pair) != 2:
            raise DamagedFile(f"{where}: not an update: {str(pair)[:80]}")
        updates.append((names.variable(pair[0], where)[0], _number(pair[1], len(values), where)))
    return View(inputs, constants, steps, outputs, [values[x] for x in outputs], updates)


def _spec(record: Any, where: str) -> str:
    return str(read_spec(record, where))


def _number(number: Any, count: int, where: str) -> int:
    if type(number) is not int or not 0 <= number < count:
        raise DamagedFile(f"{where}: value {str(number)[:40]} is used before it is made")
    return number


def _input(item: Any, count: int, where: str) -> int | str:
    if type(item) is dict:
        return printable(decode(item.get("scalar")))
    return _number(item, count, where)


def _step(item: Any, values: list[str], names: Names, where: str) -> Step:
    inputs = [_input(x, len(values), where) for x in take(item, "inputs", list, where)]
    first = len(values)
    kinds = [key for key in ("op", "custom_gradient", "read", "written") if key in item]
    if len(kinds) != 1:
        raise DamagedFile(f"{where} has no single kind: {kinds}")
    (kind,) = kinds
    if kind == "op":
        return _op(item, inputs, first, names, where)
    if kind == "custom_gradient":
        return _custom(item, inputs, values, names, where)
    label, spec = names.variable(item[kind], where)
    return Step(kind, label, inputs, (len(inputs),), {}, first, [spec])


def _op(item: Any, inputs: list[int | str], first: int, names: Names, where: str) -> Step:
    count = take(item, "witnesses", int, where) if "witnesses" in item else 0
    if not 0 <= count <= len(inputs):
        raise DamagedFile(f"{where}: 'witnesses' does not fit the inputs")
    kept = len(inputs) - count
    witnesses = [f"%{x}" for x in inputs[kept:]]
    params: dict[str, str] = {}
    graphs = []
    for key, value in take(item, "params", dict, where).items():
        name = printable(key, 60)
        if type(value) is dict and set(value) == {"graph"}:
            graphs.append((name, view(value["graph"], names, f"{where}: {name}")))
        else:
            params[name] = printable(shown(value, where, witnesses))
    outputs = [_spec(x, where) for x in take(item, "outputs", list, where)]
    label = printable(take(item, "op", str, where), 80)
    note = ""
    if "rule" in item:
        number = take(item, "rule", (int, type(None)), where)
        note = "its gradient rule was left out" if number is None else f"gradient: rules.{number}"
    return Step("op", label, inputs, (kept, count), params, first, outputs, graphs, note)


def _custom(
    item: Any, inputs: list[int | str], values: list[str], names: Names, where: str
) -> Step:
    label = printable(take(item, "custom_gradient", str, where), 80)
    results, arguments = take(item, "results", int, where), take(item, "arguments", int, where)
    saved = len(inputs) - results - arguments
    if results < 0 or arguments < 0 or saved < 0:
        raise DamagedFile(f"{where}: custom gradient {label!r}: the counts do not fit")
    outputs = [values[x] if type(x) is int else str(x) for x in inputs[:results]]
    record = take(item, "backward", (dict, int, type(None)), where)
    graphs = []
    note = "saved without its gradient" if record is None else f"gradient: rules.{record}"
    if type(record) is dict:
        graphs, note = [("backward", view(record, names, f"{where}: {label}"))], ""
    groups = (results, arguments, saved)
    return Step("custom gradient", label, inputs, groups, {}, len(values), outputs, graphs, note)


# -- listings --------------------------------------------------------------------------------------

#: How many lines of a graph are printed unless all are asked for.
MOST_LINES = 2_000
# where shapes and dtypes begin, and how wide a step may be before it pushes its own away
_COLUMN, _INDENT = 56, "    "


def listing(graph: View, most: int | None = MOST_LINES, indent: str = "") -> list[str]:
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


def _lines(graph: View, indent: str) -> Iterator[str]:
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


def step_text(step: Step) -> str:
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
