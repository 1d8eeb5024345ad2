"""The functions of a file: their names, and the arguments and contents of each trace."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import DamagedFile, printable
from ..reading.contents import Contents
from ..records import manifest
from ..records.graphs import CustomRecord, GraphRecord, RuleRecord, Scalar, TracedRecord
from ..records.schema import take
from .text import counted, shown
from .tree import ModuleRecord

# How much of a trace's arguments is shown, and with how many names a mistyped one is compared.
_LONGEST, _MOST_COMPARED = 2_000, 2_000


@dataclass(frozen=True)
class TraceRecord:
    """One trace: its name (``model.__call__#1``), arguments as text, samples, and its graph.

    ``keys`` is the JSON of what else the file says of it.
    """

    name: str
    dataset: str
    arguments: list[str]
    results: str
    nodes: int
    samples: int
    not_sampled: str
    custom_gradients: list[str]
    graph: GraphRecord
    keys: dict[str, Any]

    def heading(self) -> str:
        """Return the trace as one line: ``(x: float32[?, 3]): 7 nodes, 1 golden sample``."""
        samples = counted(self.samples, "golden sample") if self.samples else "no golden samples"
        reason = f" ({self.not_sampled})" if self.not_sampled and not self.samples else ""
        given = printable(", ".join(self.arguments), _LONGEST)
        return f"({given}): {counted(self.nodes, 'node')}, {samples}{reason}"


@dataclass(frozen=True)
class FunctionRecord:
    """One function: its names, its parameters' JSON, and its traces.

    ``place`` is its path in the tree. It is the same for the same function of a file in which
    modules have other names.
    """

    names: list[str]
    place: str
    seen_sizes: bool
    parameters: list[Any]
    traces: list[TraceRecord]


def functions_of(contents: Contents, modules: Mapping[int, ModuleRecord]) -> list[FunctionRecord]:
    """Return the functions of a file in order, with each name given to only one of them."""
    owners: dict[int, list[tuple[str, str]]] = {}
    places: dict[int, str] = {}
    for number, record in enumerate(contents.manifest.modules):
        module, path = modules[number], modules[number].path
        held = dict(record.functions)
        for key, encoded in (record.config or {}).items() if record.known is not None else ():
            if type(encoded) is dict and "function" in encoded:
                held[key] = encoded["function"]
        for key, held_number in held.items():
            key = printable(key)
            label = (f"{module.name}.{key}", f"{path or module.name}.{key}")
            owners.setdefault(_number(held_number), []).append(label)
            places.setdefault(_number(held_number), f"{path}.{key}")
    for key, held_number in contents.manifest.signatures.items():
        name = f"signatures.{printable(key)}"
        owners.setdefault(_number(held_number), []).append((name, name))
        places.setdefault(_number(held_number), name)
    uses = Counter(short for labels in owners.values() for short, _ in labels)
    taken: set[str] = set()
    found = []
    for number, function in enumerate(contents.manifest.functions):
        own = printable(function.name)
        labels = [
            short if uses[short] == 1 else long for short, long in owners.get(number, [(own, own)])
        ]
        names = [_free(label, number, taken) for label in labels]
        place = _free(f"at {places[number]}" if number in places else f"at {own}", number, taken)
        found.append(_function(contents, function, names, place))
    return found


def _number(number: Any) -> int:
    if type(number) is not int:
        raise DamagedFile(f"manifest: no function {str(number)[:40]}")
    return number


def _free(label: str, number: int, taken: set[str]) -> str:
    """Return an unused function name, because an untrusted file may repeat names and paths."""
    name = f"{label}@{number}" if label in taken else label
    taken.add(name)
    return name


def _function(
    contents: Contents, record: manifest.FunctionRecord, names: list[str], place: str
) -> FunctionRecord:
    positional = [
        printable(take(item, "name", str, "parameter"))
        for item in record.parameters
        if not take(item, "kind", str, "parameter").startswith(("keyword", "var"))
    ]
    traces = [
        _trace(contents, trace, f"{names[0]}#{i}", positional)
        for i, trace in enumerate(record.traces, 1)
    ]
    return FunctionRecord(names, place, record.sizes == "seen", record.parameters, traces)


def _trace(
    contents: Contents, trace: manifest.TraceRecord, name: str, positional: list[str]
) -> TraceRecord:
    record = TracedRecord.read(contents.json(trace.dataset), "function")
    keys = {"arguments": record.arguments, "results": record.results}
    keys |= {"added": record.added} if record.added is not None else {}
    keys |= {"masks": record.masks} if record.masks is not None else {}
    return TraceRecord(
        name,
        trace.dataset,
        _arguments(record.arguments, positional),
        printable(shown(record.results, "results")),
        len(record.graph.nodes),
        len(trace.golden or ()),
        printable(trace.not_sampled),
        _custom_gradients(record.graph),
        record.graph,
        keys,
    )


def extra_outputs(trace: TraceRecord) -> list[str]:
    """Return lines that describe the added losses and masks among the outputs of a trace."""
    words = {"added": "adds to the loss", "masks": "masks of the results"}
    return [
        f"{told}: outputs {printable(str(trace.keys[key]))}"
        for key, told in words.items()
        if key in trace.keys
    ]


def _arguments(encoded: Any, names: list[str]) -> list[str]:
    """Return arguments as ``x: float32[?, 3]`` and ``training=False``."""
    pair = take(encoded, "tuple", list, "arguments")
    if len(pair) != 2:
        raise DamagedFile("function: its arguments are not a pair")
    args = take(pair[0], "tuple", list, "arguments")
    labels = [*names, *(f"{i}" for i in range(len(names), len(args)))]
    given = [*zip(labels, args, strict=False), *take(pair[1], "dict", dict, "arguments").items()]
    return [
        f"{printable(name)}{': ' if type(item) is dict and 'spec' in item else '='}"
        f"{printable(shown(item, 'arguments'))}"
        for name, item in given
    ]


def _custom_gradients(graph: GraphRecord) -> list[str]:
    labels = []
    for node in graph.nodes:
        if not isinstance(node, CustomRecord):
            continue
        label, backward = printable(node.label, 80), node.backward
        if not isinstance(backward, GraphRecord):
            left_out = backward is None
            labels.append(
                f"{label} ({'its gradient was left out' if left_out else f'rules.{backward}'})"
            )
            continue
        nested = _custom_gradients(backward)
        inside = f", with {', '.join(nested)} inside" if nested else ""
        labels.append(f"{label} (gradient of {counted(len(backward.nodes), 'node')}{inside})")
    return labels


def rules_of(contents: Contents) -> list[FunctionRecord]:
    """Return a file's gradient rules, each as a function ``rules.NUMBER``."""
    found = []
    for number, dataset in enumerate(contents.manifest.rules):
        text = contents.json(dataset)
        record = RuleRecord.read(text, f"rule {number}")
        inputs = [printable(repr(x.value) if type(x) is Scalar else x) for x in record.inputs]
        trace = TraceRecord(
            f"rules.{number}",
            dataset,
            [f"gradient of {printable(record.label, 80)}", *inputs],
            "",
            len(record.graph.nodes),
            0,
            "",
            _custom_gradients(record.graph),
            record.graph,
            {key: value for key, value in text.items() if key != "graph"},
        )
        found.append(FunctionRecord([trace.name], trace.name, False, [], [trace]))
    return found


def find(functions: list[FunctionRecord], name: str) -> list[TraceRecord]:
    """Return all traces of a function, by any of its names, or one trace, by ``name#number``.

    Raises
    ------
    LookupError
        If there is none; the message lists the existing ones.
    """
    traces = {trace.name: [trace] for function in functions for trace in function.traces}
    for function in functions:
        for label in function.names:
            traces[label] = function.traces
            for i, trace in enumerate(function.traces, 1):
                traces[f"{label}#{i}"] = [trace]
    if name in traces:
        return traces[name]
    labels = [label for function in functions for label in function.names]
    listed = ", ".join(labels[:30]) + (", ..." if len(labels) > 30 else "")
    close = difflib.get_close_matches(name[:200], list(traces)[:_MOST_COMPARED], n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    raise LookupError(
        f"no graph is called {printable(name)!r}{hint} The file has: {listed or 'no functions'}"
        if hint
        else f"no graph is called {printable(name)!r}; the file has: {listed or 'no functions'}"
    )
