"""An inspection as text and as JSON."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ..errors import LoadError, printable
from .functions import FunctionRecord, TraceRecord
from .text import counted
from .tree import ModuleRecord, Row
from .views import GraphView, OuterNames, view

if TYPE_CHECKING:
    from .inspection import Inspection, Requirement


def view_of(found: Inspection, trace: TraceRecord) -> GraphView:
    """Return the graph of a trace in displayed form."""
    labels = [(variable.path, variable.spec) for variable in found.tree.variables]
    names = OuterNames(labels, lambda dataset: found.constants.get(dataset, "..."))
    try:
        return view(trace.graph, names)
    except LoadError as error:
        raise type(error)(f"{found.path}: {error}") from None


def table(found: Inspection) -> str:
    """Return an inspection as text."""
    lines = [*_heading(found), "", "Modules", *(_row(found, row) for row in found.tree.rows)]
    lines += ["", "Functions", *_function_lines(found.functions)]
    if found.rules:
        lines += ["", "Gradient rules", *_function_lines(found.rules)]
    lines += ["", "Plugins needed", *_plugin_lines(found.requires)]
    return "\n".join(lines)


def _heading(found: Inspection) -> list[str]:
    trainable = sum(variable.trainable for variable in found.tree.variables)
    others = [f"{kind} {size:,}" for kind, size in found.parts.items() if kind != "variables"]
    return [
        f"{printable(os.path.basename(found.path))}: gradtape format {found.format}, "
        f"{found.bytes:,} bytes",
        f"  {counted(len(found.tree.variables), 'variable')} ({trainable} trainable) of "
        f"{found.parts['variables']:,} bytes; bytes of other contents: {', '.join(others)}",
    ]


def _row(found: Inspection, row: Row) -> str:
    indent = "  " * (row.depth + 1)
    name = f"{row.name}: " if row.name else ""
    if row.what == "variable" and row.number is not None:
        variable = found.tree.variables[row.number]
        trains = "" if variable.trainable else ", not trainable"
        trains = ", a stream of random numbers" if variable.stream else trains
        kept = ", kept as " if variable.path.startswith("captured/") else ", the same as "
        kept = kept + variable.path if variable.path != row.path else ""
        return f"{indent}{name}{variable.spec}{trains}{kept}"
    if row.what in ("module", "link") and row.number is not None:
        module = found.tree.modules[row.number]
        above = " (shown above)" if row.what == "link" else ""
        return f"{indent}{name}{module.name} ({module.kind}){above}"
    return f"{indent}{name.removesuffix(': ')}{' = ' if row.what == 'value' else ': '}{row.text}"


def _function_lines(functions: list[FunctionRecord]) -> list[str]:
    lines: list[str] = []
    for function in functions:
        sizes = " (saved for the sizes seen)" if function.seen_sizes else ""
        lines.append(f"  {', '.join(function.names)}{sizes}")
        for trace in function.traces:
            lines.append(f"    {trace.heading()}")
            lines += [f"      custom gradient {x}" for x in trace.custom_gradients[:100]]
            more = len(trace.custom_gradients) - 100
            lines += [f"      and {more:,} more"] if more > 0 else []
    return lines or ["  none"]


def _plugin_lines(requires: list[Requirement]) -> list[str]:
    lines = []
    for item in requires:
        label = f"{item.distribution} {item.version}".strip() or "no distribution"
        lines.append(
            f"  {item.plugin} ({label}): {', '.join([*item.modules, *item.names, *item.ops])}"
        )
        if item.missing:
            lines.append(f"    missing here: {', '.join(item.missing)}")
    return lines or ["  none"]


# -- JSON ------------------------------------------------------------------------------------------


def record_of(found: Inspection) -> dict[str, Any]:
    """Return an inspection in the form of its JSON."""
    return {
        "path": found.path,
        "format": found.format,
        "bytes": found.bytes,
        "parts": found.parts,
        "modules": [_module_record(module) for _, module in sorted(found.tree.modules.items())],
        "variables": [
            {
                "path": variable.path,
                "name": variable.name,
                "dtype": variable.dtype,
                "shape": variable.shape,
                "trainable": variable.trainable,
                "bytes": variable.bytes,
                **({"stream": variable.stream} if variable.stream else {}),
                **({"spread": vars(found.spreads[i])} if found.spreads else {}),
            }
            for i, variable in enumerate(found.tree.variables)
        ],
        "functions": [_function_record(function) for function in found.functions],
        "rules": [_function_record(rule) for rule in found.rules],
        "requires": [vars(item) for item in found.requires],
        "history": found.tree.history,
    }


def _module_record(module: ModuleRecord) -> dict[str, Any]:
    return {
        "path": module.path,
        "name": module.name,
        "class": module.known,
        "class_name": module.class_name,
        "frozen": module.frozen,
        "config": module.config,
        "values": module.values,
        "untraced": module.untraced,
    }


def _function_record(function: FunctionRecord) -> dict[str, Any]:
    return {
        "names": function.names,
        "sizes": "seen" if function.seen_sizes else "open",
        "traces": [_trace_record(trace) for trace in function.traces],
    }


def _trace_record(trace: TraceRecord) -> dict[str, Any]:
    return {
        "name": trace.name,
        "arguments": trace.arguments,
        "results": trace.results,
        "nodes": trace.nodes,
        "samples": trace.samples,
        "not_sampled": trace.not_sampled,
        "custom_gradients": trace.custom_gradients,
    }
