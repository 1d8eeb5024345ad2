"""Lies in the graphs, with digests that are right: nothing but a LoadError may come of them."""

from __future__ import annotations

import contextlib
import copy
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from forge import forged, function, graph, node, put

import gradtape as gt
from gradtape.saving import DamagedFile, LoadError, MissingOp, UnsafeFile

pytestmark = pytest.mark.usefixtures("forks")


def named(record: Any, names: Any, arguments: bool = False) -> None:
    """Give the sizes of an input names, and those of the argument if it is to be consistent."""
    put(graph(record, "project")["inputs"][0], "names", names)
    if arguments:
        project = next(r for r in record if r["name"].endswith("project"))
        positional = project["arguments"]["tuple"][0]["tuple"]
        put(positional[0]["spec"], "names", names)


CUSTOM = "custom_gradient"
GRAPHS: dict[str, tuple[Any, type[LoadError]]] = {
    "undefined value": (lambda r: put(node(r, "multiply")["inputs"], 0, 10_000), DamagedFile),
    "negative value": (lambda r: put(node(r, "multiply")["inputs"], 0, -1), DamagedFile),
    "a value used before it is made": (
        lambda r: put(node(r, "multiply")["inputs"], 0, len(graph(r)["nodes"])),
        DamagedFile,
    ),
    "value of true": (lambda r: put(node(r, "multiply")["inputs"], 0, True), DamagedFile),
    "scalar text": (lambda r: put(node(r, "multiply")["inputs"], 0, {"scalar": "x"}), DamagedFile),
    "scalar tuple": (
        lambda r: put(node(r, "multiply")["inputs"], 0, {"scalar": {"tuple": []}}),
        DamagedFile,
    ),
    "no scalar": (lambda r: put(node(r, "multiply")["inputs"], 0, {}), DamagedFile),
    "only scalars": (
        lambda r: put(node(r, "multiply"), "inputs", [{"scalar": 1}, {"scalar": 2}]),
        DamagedFile,
    ),
    "unknown op": (lambda r: put(node(r, "multiply"), "op", "os.system"), MissingOp),
    "op __class__": (lambda r: put(node(r, "multiply"), "op", "__class__"), MissingOp),
    "another op of the same inputs": (
        lambda r: put(node(r, "multiply"), "op", "less"),
        DamagedFile,
    ),
    "too many inputs": (lambda r: node(r, "multiply")["inputs"].append(0), DamagedFile),
    "too few inputs": (lambda r: node(r, "multiply")["inputs"].pop(), DamagedFile),
    "no inputs": (lambda r: put(node(r, "multiply"), "inputs", []), DamagedFile),
    "surplus parameter": (lambda r: put(node(r, "multiply")["params"], "evil", 1), DamagedFile),
    "missing parameter": (lambda r: put(node(r, "sum", "project"), "params", {}), DamagedFile),
    "axis out of range": (
        lambda r: put(node(r, "sum", "project")["params"], "axis", 7),
        DamagedFile,
    ),
    "axis of text": (
        lambda r: put(node(r, "sum", "project")["params"], "axis", "evil"),
        DamagedFile,
    ),
    "axis of a dictionary": (
        lambda r: put(node(r, "sum", "project")["params"], "axis", {"dict": {}}),
        DamagedFile,
    ),
    "claimed shape": (
        lambda r: put(node(r, "matmul", "project")["outputs"][0], "shape", [4, 4]),
        DamagedFile,
    ),
    "claimed dtype": (
        lambda r: put(node(r, "matmul", "project")["outputs"][0], "dtype", "int8"),
        DamagedFile,
    ),
    "claimed dtype object": (
        lambda r: put(node(r, "matmul", "project")["outputs"][0], "dtype", "object"),
        UnsafeFile,
    ),
    "another output": (
        lambda r: node(r, "multiply")["outputs"].append({"shape": None, "dtype": "int8"}),
        DamagedFile,
    ),
    "input shapes": (lambda r: put(graph(r, "project")["inputs"][0], "shape", [3]), DamagedFile),
    "names of sizes: another": (lambda r: named(r, ["columns", None]), DamagedFile),
    "names of sizes: none": (lambda r: graph(r, "project")["inputs"][0].pop("names"), DamagedFile),
    "names of sizes: too many": (lambda r: named(r, ["rows", None, "n"], True), DamagedFile),
    "names of sizes: of a known one": (lambda r: named(r, ["rows", "n"], True), DamagedFile),
    "names of sizes: no identifier": (
        lambda r: named(r, ["__import__('os')", None], True),
        DamagedFile,
    ),
    "names of sizes: long": (lambda r: named(r, ["n" * 2000, None], True), DamagedFile),
    "names of sizes: no text": (lambda r: named(r, [3, None], True), DamagedFile),
    "names of sizes: no list": (lambda r: named(r, {"tuple": ["rows", None]}, True), DamagedFile),
    "names of sizes: a text": (lambda r: named(r, "ab", True), DamagedFile),
    "names of a constant's sizes": (
        lambda r: put(graph(r)["constants"][0], "names", ["n"]),
        DamagedFile,
    ),
    "input dtype": (lambda r: put(graph(r)["inputs"][0], "dtype", "int8"), DamagedFile),
    "a surplus input": (
        lambda r: graph(r)["inputs"].append({"shape": [], "dtype": "int8"}),
        DamagedFile,
    ),
    "constant shape": (lambda r: put(graph(r)["constants"][0], "shape", [2**40]), DamagedFile),
    "constant at a variable": (
        lambda r: put(graph(r)["constants"][0], "dataset", "/variables/w"),
        UnsafeFile,
    ),
    "constant that is no record": (lambda r: put(graph(r)["constants"], 0, 3), DamagedFile),
    "output": (lambda r: put(graph(r)["outputs"], 0, 999), DamagedFile),
    "result": (lambda r: put(function(r), "results", {"output": 99}), DamagedFile),
    "result with a specification": (
        lambda r: put(function(r), "results", {"spec": {"shape": [], "dtype": "int8"}}),
        DamagedFile,
    ),
    "arguments": (lambda r: put(function(r), "arguments", [1]), DamagedFile),
    "arguments with an output": (
        lambda r: put(
            function(r), "arguments", {"tuple": [{"tuple": [{"output": 0}]}, {"dict": {}}]}
        ),
        DamagedFile,
    ),
    "updates dropped": (lambda r: put(graph(r), "updates", []), DamagedFile),
    "updates of another variable": (lambda r: put(graph(r)["updates"][0], 0, 1), DamagedFile),
    "updates of another kind": (lambda r: put(graph(r), "updates", [{}]), DamagedFile),
    "an unknown variable": (lambda r: put(node(r, "read"), "read", 99), DamagedFile),
    "a variable by name": (lambda r: put(node(r, "read"), "read", "w"), DamagedFile),
    "a variable read twice": (
        lambda r: graph(r)["nodes"].append(copy.deepcopy(node(r, "read"))),
        DamagedFile,
    ),
    "a read with inputs": (lambda r: put(node(r, "read"), "inputs", [0]), DamagedFile),
    "a value of another shape is assigned": (
        lambda r: put(node(r, "written"), "written", 1),
        DamagedFile,
    ),
    "an assignment without a value": (lambda r: put(node(r, "written"), "inputs", []), DamagedFile),
    "a number is assigned": (
        lambda r: put(node(r, "written"), "inputs", [{"scalar": 1}]),
        DamagedFile,
    ),
    "two kinds": (lambda r: put(node(r, "multiply"), "read", 0), DamagedFile),
    "no kind": (lambda r: node(r, "multiply").pop("op"), DamagedFile),
    "node of another type": (lambda r: put(graph(r)["nodes"], 0, [1]), DamagedFile),
    "custom gradient: results": (lambda r: put(node(r, CUSTOM), "results", 0), DamagedFile),
    "custom gradient: many results": (lambda r: put(node(r, CUSTOM), "results", 99), DamagedFile),
    "custom gradient: arguments": (lambda r: put(node(r, CUSTOM), "arguments", -1), DamagedFile),
    "custom gradient: connected": (lambda r: put(node(r, CUSTOM), "connected", [1]), DamagedFile),
    "custom gradient: not connected": (
        lambda r: put(node(r, CUSTOM), "connected", [False]),
        DamagedFile,
    ),
    "custom gradient: scalar": (
        lambda r: put(node(r, CUSTOM)["inputs"], 0, {"scalar": 1}),
        DamagedFile,
    ),
    "custom gradient: other inputs": (
        lambda r: put(node(r, CUSTOM)["backward"]["inputs"][0], "dtype", "int8"),
        DamagedFile,
    ),
    "custom gradient: more outputs": (
        lambda r: node(r, CUSTOM)["backward"]["outputs"].append(0),
        DamagedFile,
    ),
    "custom gradient: assigns": (
        lambda r: node(r, CUSTOM)["backward"]["nodes"].append(
            {"written": 0, "inputs": [0], "outputs": []}
        ),
        DamagedFile,
    ),
    "custom gradient: another shape": (
        lambda r: node(r, CUSTOM)["backward"].update(
            nodes=[
                {
                    "op": "equal",
                    "inputs": [0, 0],
                    "params": {},
                    "outputs": [{"shape": None, "dtype": "bool"}],
                }
            ],
            outputs=[
                len(node(r, CUSTOM)["backward"]["inputs"])
                + len(node(r, CUSTOM)["backward"]["constants"])
            ],
        ),
        DamagedFile,
    ),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_lies_in_a_graph(name: str, path: Path) -> None:
    change, kind = GRAPHS[name]
    forged(path, graphs=change)
    for read in (gt.load, gt.saving.verify):
        with pytest.raises(kind) as caught:
            read(path)
        assert str(caught.value).startswith(str(path))
    with contextlib.suppress(LoadError):
        gt.saving.inspect_text(path)


def test_parameters_that_would_allocate_much_allocate_nothing_at_load(path: Path) -> None:
    """Shape rules see what strangers wrote; none of them may build what it describes."""
    huge = 2**45
    ops = gt.registry().ops
    candidates = [
        ("tile", {"reps": {"tuple": [huge, huge]}}),
        ("repeat", {"repeats": huge, "axis": 0}),
        ("pad", {"pad_width": {"tuple": [{"tuple": [huge, huge]}]}}),
        ("one_hot", {"depth": huge}),
        ("broadcast_to", {"shape": {"tuple": [huge, huge, 3]}}),
        ("reshape", {"shape": {"tuple": [huge, huge]}}),
        ("split", {"sections": huge, "axis": 0}),
        ("split", {"indices": {"tuple": [huge]}, "axis": 0}),
        ("full_like", {"value": huge}),
        ("eye", {"n": huge}),
        ("arange", {"stop": huge}),
        ("linspace", {"num": huge}),
        ("diag", {"k": huge}),
        ("einsum", {"equation": "a" * 100_000 + "->" + "a" * 100_000}),
        ("squeeze", {"axis": {"tuple": list(range(10_000))}}),
        ("expand_dims", {"axis": {"tuple": list(range(10_000))}}),
        ("cumsum", {"axis": huge}),
        ("roll", {"shift": huge, "axis": 0}),
    ]
    found = 0
    template = path.read_bytes()
    for op, params in candidates:
        if op not in ops:
            continue
        found += 1
        path.write_bytes(template)

        def edit(records: list[Any], op: str = op, params: Any = params) -> None:
            item = node(records, "sum", "project")
            item["op"], item["inputs"] = op, item["inputs"][:1]
            known = {k: v for k, v in ops[op].defaults.items() if isinstance(v, (bool, int, str))}
            item["params"] = {**known, **params}

        forged(path, graphs=edit)
        tracemalloc.start()
        with pytest.raises(LoadError):
            gt.load(path)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 100 * 2**20, f"{op} took {peak:,} bytes"
    assert found >= 5
