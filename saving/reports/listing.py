"""A graph as text: one line per step, with inner graphs indented below their step."""

from __future__ import annotations

from collections.abc import Iterator

from .views import Step, View, count_steps
from .words import counted, width

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
