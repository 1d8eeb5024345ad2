"""Shape rules are given what a stranger wrote: they may refuse it, not build what it describes."""

from __future__ import annotations

import inspect
import os
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fuzz.commands import Clock

import gradtape as gt
from gradtape.saving import LoadError
from gradtape.saving.reading.graphs import GraphReader
from gradtape.saving.reading.modules import restore_config
from gradtape.saving.records.schema import encode

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="graphs are read in forks")

HUGE = 2**47
SIZE = ["size", 0, 0]
# As JSON: what a file may say of a parameter.
PARAMETERS: dict[str, Any] = {
    "huge": HUGE,
    "-huge": -HUGE,
    "2**31": 2**31,
    "pair": {"tuple": [HUGE, HUGE]},
    "pairs": {"tuple": [{"tuple": [HUGE, HUGE]}, {"tuple": [HUGE, HUGE]}]},
    "range": {"tuple": list(range(1000))},
    "ones": {"tuple": [1] * 1000},
    "list": [HUGE],
    "text": "x" * 20_000,
    "long einsum": "a" * 4000 + "->" + "a" * 4000,
    "many operands": "ab," * 1000 + "ab->ab",
    "null": None,
    "1e308": {"float": "1e308"},
    "complex": {"complex": ["nan", "1"]},
    "large size": {"size": ["*", SIZE, HUGE]},
    "sizes": {"tuple": [{"size": ["*", SIZE, 10**9]}] * 2},
    "nested": eval('{"tuple": [' * 50 + "1" + "]}" * 50),
    "slices": {"tuple": [{"tuple": ["slice", None, None, {"tuple": []}]}] * 1000},
    "graph": {
        "graph": {
            "name": "g",
            "inputs": [{"shape": [2, 3], "dtype": "float32"}] * 500,
            "constants": [],
            "nodes": [],
            "outputs": [0] * 500,
            "updates": [],
        }
    },
}
SHAPES: tuple[Any, ...] = ([2, 3], [2, 2**24, 2**24], [None] * 32)
MANY = 300


def encoded(value: Any) -> Any:
    try:
        return encode(value, "a default")
    except gt.saving.SaveError:
        return None


def graphs(name: str) -> Iterator[tuple[str, Any]]:
    """Yield graphs of one node, each with one odd parameter."""
    op = gt.registry().ops[name]
    count = len([x for x in op.inputs if not x.startswith("*")])
    counts = [count] if count else []
    if count < len(op.inputs):
        counts += [count + 2, MANY]
    defaults = {k: encoded(v) for k, v in op.defaults.items() if v is not inspect.Parameter.empty}
    for shape in SHAPES:
        for n in counts:
            for parameter in op.defaults or [""]:
                for label, value in PARAMETERS.items():
                    if n == MANY and label != "huge":
                        continue
                    params = {**dict.fromkeys(op.defaults, value), **defaults}
                    if parameter:
                        params[parameter] = value
                    open_size = "size" in label
                    node = {"op": name, "params": params, "outputs": []}
                    node["inputs"] = [0] * (n + open_size)
                    node |= {"witnesses": 1} if open_size else {}
                    yield (
                        f"{shape}, {n} inputs, {parameter}={label}",
                        {
                            "name": "hostile",
                            "inputs": [{"shape": shape, "dtype": "float32"}],
                            "constants": [],
                            "nodes": [node],
                            "outputs": [],
                            "updates": [],
                        },
                    )


def refused(read: Any, *arguments: Any) -> str | None:
    """Return what is wrong with how something is read, if anything is."""
    start = time.thread_time()
    said = None
    try:
        with warnings.catch_warnings(action="ignore"):
            read(*arguments)
    except LoadError as error:
        if isinstance(error.__context__, MemoryError):
            said = "it asks for memory"
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
    took = time.thread_time() - start
    return said or (f"it takes {took:.1f} s" if took > 1.0 else None)


def wrong(names: list[str], cases: Any) -> list[Any]:
    """Return what is wrong with cases by name; each name's cases are read in one fork."""
    from fuzz.files.workers import Pool

    def read(number: int) -> tuple[str, str | None]:
        for label, arguments in cases(names[number]):
            said = refused(*arguments)
            if said is not None:
                return names[number], f"{label}: {said}"
        return names[number], None

    found = list(Pool(read, 0, 2, Clock(None, len(names)), hang=60.0).results())
    assert len(found) == len(names)
    return [(label, said) for _, label, said in found if said is not None]


def test_a_shape_rule_takes_no_time_or_memory_for_any_parameter() -> None:
    def cases(name: str) -> Iterator[Any]:
        for label, record in graphs(name):
            reader = GraphReader(gt.registry(), [], None)
            yield label, (reader.graph, record, "f", None)

    assert wrong(sorted(x for x in gt.registry().ops if "::" not in x), cases) == []


def test_a_constructor_takes_no_time_or_memory_for_any_configuration() -> None:
    def cases(name: str) -> Iterator[Any]:
        cls = gt.registry().modules[name]
        parameters = inspect.signature(cls).parameters.values()
        keys = [x.name for x in parameters if x.kind in (x.POSITIONAL_OR_KEYWORD, x.KEYWORD_ONLY)]
        needed = [x.name for x in parameters if x.default is x.empty and x.name in keys]
        for key in keys:
            for label, value in PARAMETERS.items():
                if "size" not in label and label != "graph":
                    for others in (3, value, "relu"):
                        config = {k: {"value": others} for k in needed} | {key: {"value": value}}
                        yield f"{key}={label}", (restore_config, cls, config, {}.get, "module")

    assert wrong(sorted(gt.registry().modules), cases) == []


def test_many_inputs_of_many_axes_are_bounded(tmp_path: Path) -> None:
    from forge import forged, graph, node

    def many(records: list[Any]) -> None:
        axes = {"shape": [1] * 32, "dtype": "float32"}
        whole = graph(records, "project")
        item = node(records, "sum", "project")
        whole["inputs"][0] = axes
        item |= {"op": "concatenate", "inputs": [0] * 400_000, "params": {"axis": 0}}

    with pytest.raises(LoadError):
        gt.load(forged(tmp_path / "many.h5", graphs=many))
