"""Lies in the manifest, with digests that are right: nothing but a LoadError may come of them."""

from __future__ import annotations

import contextlib
import math
import sys
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from forge import dense, forged, good, put, root
from machine import seconds_of

import gradtape as gt
from gradtape.saving import DamagedFile, LoadError, MissingOp, MissingPlugin, UnsafeFile

pytestmark = pytest.mark.usefixtures("forks")

# Attributes that are none.
STATE: list[Any] = [
    {"same": 99},
    {"same": -1},
    {"same": True},
    {"items": [[1]]},
    {"items": {"a": {"value": 1}}},
    {"items": [[[1], {"value": 1}]]},
    {"dict": [1]},
    {"list": {"a": 1}},
    {"set": [{"list": []}]},
    {"set": {"value": 1}},
    {"range": [1, 2]},
    {"range": [1, 2, 0]},
    {"range": ["a", 2, 1]},
    {"bytes": "xyz"},
    {"bytes": 3},
    {"dtype": "object"},
    {"dtype": 3},
    {"scalar": ["object", 1]},
    {"scalar": ["float32", "1"]},
    {"scalar": ["int8", 1000]},
    {"scalar": ["int64", [1, 2]]},
    {"array": "/nowhere"},
    {"array": "/manifest"},
    {"tensor": "/functions/0"},
    {"tensor": 3},
    {"op": "os.system"},
    {"op": ["add"]},
    {"enum": "Color.RED"},
]

MANIFESTS: dict[str, tuple[Any, type[LoadError]]] = {
    # names
    "attribute __class__": (
        lambda m: put(root(m)["attributes"], "__class__", {"value": 1}),
        UnsafeFile,
    ),
    "attribute __dict__": (
        lambda m: put(root(m)["attributes"], "__dict__", {"dict": {}}),
        UnsafeFile,
    ),
    "attribute with a dot": (lambda m: put(root(m)["attributes"], "a.b", {"value": 1}), UnsafeFile),
    "attribute empty": (lambda m: put(root(m)["attributes"], "", {"value": 1}), UnsafeFile),
    "attribute variables": (
        lambda m: put(root(m)["attributes"], "variables", {"value": 1}),
        UnsafeFile,
    ),
    "attribute own_leaves": (
        lambda m: put(root(m)["attributes"], "own_leaves", {"variable": 0}),
        UnsafeFile,
    ),
    "attribute private": (
        lambda m: put(root(m)["attributes"], "_gradtape_calls", {"value": 1}),
        UnsafeFile,
    ),
    "attribute _name": (lambda m: put(root(m)["attributes"], "_name", {"variable": 0}), UnsafeFile),
    "function __class__": (lambda m: put(root(m)["functions"], "__class__", 0), UnsafeFile),
    "function __del__": (lambda m: put(root(m)["functions"], "__del__", 0), UnsafeFile),
    "function to": (lambda m: put(root(m)["functions"], "to", 0), UnsafeFile),
    "function functions": (lambda m: put(root(m)["functions"], "functions", 0), UnsafeFile),
    "signature a-b": (lambda m: put(m["signatures"], "a-b", 0), UnsafeFile),
    "module name": (lambda m: put(root(m), "name", "a b"), UnsafeFile),
    "signatures over an attribute": (
        lambda m: (
            put(m["signatures"], "f", 0),
            put(root(m)["attributes"], "signatures", {"value": 1}),
        ),
        DamagedFile,
    ),
    "a method of a layer": (
        lambda m: put(dense(m)["attributes"], "call", {"variable": 0}),
        UnsafeFile,
    ),
    "a property of a layer": (
        lambda m: put(dense(m)["attributes"], "built", {"module": 0}),
        UnsafeFile,
    ),
    "a method of a layer as plain state": (
        lambda m: put(dense(m), "extra", {"get_config": {"value": 1}}),
        UnsafeFile,
    ),
    "an object of a layer as plain state": (
        lambda m: put(dense(m), "extra", {"kernel_initializer": {"value": 1}}),
        DamagedFile,
    ),
    "a variable as plain state": (
        lambda m: put(dense(m), "extra", {"note": {"list": [{"variable": 0}]}}),
        DamagedFile,
    ),
    **{
        f"attribute {name}": (
            lambda m, name=name: put(root(m)["attributes"], name, {"value": 1}),
            UnsafeFile,
        )
        for name in ("trainable", "untraced", "class_name", "_attribute_order", "saved_as")
    },
    **{
        f"state {next(iter(lie))} {i}": (
            lambda m, lie=lie: put(root(m)["attributes"], "n", lie),
            LoadError,
        )
        for i, lie in enumerate(STATE)
    },
    "absorbed as text": (lambda m: put(root(m), "absorbed", "w"), DamagedFile),
    # numbers
    "function number": (lambda m: put(root(m)["functions"], "cube", 99), DamagedFile),
    "function number negative": (lambda m: put(root(m)["functions"], "cube", -1), DamagedFile),
    "function number true": (lambda m: put(root(m)["functions"], "cube", True), DamagedFile),
    "variable number": (lambda m: put(root(m)["attributes"], "w", {"variable": 99}), DamagedFile),
    "frozen variable": (lambda m: put(root(m), "frozen", [99]), DamagedFile),
    "frozen variable negative": (lambda m: put(root(m), "frozen", [-1]), DamagedFile),
    "frozen true": (lambda m: put(root(m), "frozen", True), DamagedFile),
    "sizes as a number": (lambda m: put(m["functions"][0], "sizes", 3), DamagedFile),
    "module number": (lambda m: put(root(m)["attributes"], "up", {"module": -2}), DamagedFile),
    "no modules": (lambda m: put(m, "modules", []), DamagedFile),
    "huge integer": (lambda m: put(root(m)["attributes"], "n", {"value": 2**70}), DamagedFile),
    "number as text": (
        lambda m: put(root(m)["attributes"], "n", {"value": {"float": "1" * 100}}),
        DamagedFile,
    ),
    "no number": (
        lambda m: put(root(m)["attributes"], "n", {"value": {"float": "x"}}),
        DamagedFile,
    ),
    "unknown tag": (lambda m: put(root(m)["attributes"], "n", {"pickle": "gASV"}), DamagedFile),
    "two tags": (lambda m: put(root(m)["attributes"], "n", {"value": 1, "module": 0}), DamagedFile),
    # variables
    "variable dtype object": (lambda m: put(m["variables"][0], "dtype", "object"), UnsafeFile),
    "variable dtype unlike its dataset": (
        lambda m: put(m["variables"][0], "dtype", "float64"),
        DamagedFile,
    ),
    "variable shape": (lambda m: put(m["variables"][0], "shape", [2**62, 2**62]), DamagedFile),
    "variable shape unknown": (lambda m: put(m["variables"][0], "shape", [None]), DamagedFile),
    "variable trainable": (lambda m: put(m["variables"][0], "trainable", 1), DamagedFile),
    "variable at the manifest": (
        lambda m: put(m["variables"][0], "dataset", "/manifest"),
        DamagedFile,
    ),
    "variable at a text": (
        lambda m: put(m["variables"][0], "dataset", "/functions/0"),
        DamagedFile,
    ),
    "variable elsewhere": (
        lambda m: put(m["variables"][0], "dataset", "/../../etc/passwd"),
        DamagedFile,
    ),
    # classes and plugins
    "class by a Python path": (lambda m: put(root(m), "class", "os.system"), MissingPlugin),
    "class builtins": (lambda m: put(root(m), "class", "builtins.eval"), MissingPlugin),
    "class as a list": (lambda m: put(root(m), "class", ["layers.Dense"]), DamagedFile),
    "required op": (lambda m: m["requires"][0]["ops"].append("evil::op"), MissingOp),
    "required plugin": (
        lambda m: m["requires"].append(
            {
                "plugin": "evil",
                "distribution": "evil-dist",
                "version": "1",
                "ops": ["evil::op"],
                "modules": [],
            }
        ),
        MissingPlugin,
    ),
    "config with a surplus key": (
        lambda m: put(dense(m)["config"], "evil", {"value": 1}),
        DamagedFile,
    ),
    "config with another type": (
        lambda m: put(dense(m)["config"], "units", {"value": "10"}),
        DamagedFile,
    ),
    "config with a list for a number": (
        lambda m: put(dense(m)["config"], "units", {"value": [1]}),
        DamagedFile,
    ),
    "config with an unknown op": (
        lambda m: put(dense(m)["config"], "activation", {"op": "os.system"}),
        MissingOp,
    ),
    "config with an unknown name": (
        lambda m: put(dense(m)["config"], "activation", {"value": "os.system"}),
        MissingPlugin,
    ),
    "config naming a module": (
        lambda m: put(dense(m)["config"], "activation", {"import": "os.system"}),
        DamagedFile,
    ),
    "config with an unknown function": (
        lambda m: put(dense(m)["config"], "activation", {"function": 99}),
        DamagedFile,
    ),
    "initializer by a Python path": (
        lambda m: put(
            dense(m)["config"],
            "kernel_initializer",
            {"value": {"dict": {"name": "os.system", "config": {"dict": {}}}}},
        ),
        MissingPlugin,
    ),
    "dtype of a layer": (
        lambda m: put(dense(m)["config"], "dtype", {"value": "object"}),
        DamagedFile,
    ),
    # parameters
    "parameter kind": (
        lambda m: put(m["functions"][0]["parameters"][0], "kind", "evil"),
        DamagedFile,
    ),
    "parameter name": (
        lambda m: put(m["functions"][0]["parameters"][0], "name", "a b"),
        DamagedFile,
    ),
    "parameter with a name that fills a screen": (
        lambda m: put(m["functions"][0]["parameters"][0], "name", "x" * 10**5),
        DamagedFile,
    ),
    **{
        f"number {text!r}": (
            lambda m, text=text: put(root(m)["attributes"], "n", {"value": {"float": text}}),
            DamagedFile,
        )
        # Python's float reads all of these
        for text in ("1_0", " 1 ", "1e999", "infinity", "-nan", "+1", ".5", "\uff11", "1\n")
    },
    "parameter without a name": (
        lambda m: put(m["functions"][0]["parameters"][0], "name", ""),
        DamagedFile,
    ),
    "parameters out of order": (
        lambda m: m["functions"][0]["parameters"].insert(0, {"name": "k", "kind": "keyword_only"}),
        DamagedFile,
    ),
    "default not encoded": (
        lambda m: put(m["functions"][0]["parameters"][1], "default", {"x": 1}),
        DamagedFile,
    ),
    "trace elsewhere": (
        lambda m: put(m["functions"][0]["traces"][0], "dataset", "/manifest"),
        DamagedFile,
    ),
    "golden elsewhere": (
        lambda m: put(m["functions"][0]["traces"][0]["golden"][0], "case", "/variables"),
        DamagedFile,
    ),
    "golden of another size": (
        lambda m: put(m["functions"][0]["traces"][0]["golden"][0]["inputs"][0], "shape", [2**40]),
        DamagedFile,
    ),
    "golden of an unknown size": (
        lambda m: put(m["functions"][0]["traces"][0]["golden"][0]["inputs"][0], "shape", None),
        DamagedFile,
    ),
}


@pytest.mark.parametrize("name", MANIFESTS)
def test_lies_in_the_manifest(name: str, path: Path) -> None:
    change, kind = MANIFESTS[name]

    def edit(manifest: Any) -> None:
        change(manifest)

    forged(path, manifest=edit)
    for read in (gt.load, gt.saving.verify):
        with pytest.raises(kind) as caught:
            read(path)
        assert str(caught.value).startswith(str(path))
    with contextlib.suppress(LoadError):
        gt.saving.inspect_text(path)


@pytest.mark.parametrize("shape", [[3, 2], [1], [0]])
def test_diff_and_inspect_refuse_a_shape_that_is_not_that_of_the_data(
    shape: list[int], path: Path
) -> None:
    right = path.with_suffix(".right.h5")
    right.write_bytes(good(path).read_bytes())
    forged(path, manifest=lambda m: put(m["variables"][0], "shape", shape))
    for read in (
        lambda: gt.saving.diff(path, right),
        lambda: gt.saving.diff(right, path),
        lambda: gt.saving.diff(path, path),
        lambda: gt.saving.inspect(path, statistics=True),
    ):
        with pytest.raises(DamagedFile, match="variable 0 is declared") as caught:
            read()
        assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize("apart", [False, True])
def test_a_sample_with_other_inputs_than_its_trace_takes_is_told(path: Path, apart: bool) -> None:
    def change(manifest: Any) -> None:
        golden = manifest["functions"][0]["traces"][0]["golden"]
        golden.append({"case": "/golden", "inputs": [], "values": []})

    forged(path, manifest=change)
    limits: Any = {} if apart else {"max_memory": math.inf, "max_seconds": math.inf}
    with pytest.raises(DamagedFile, match="a sample of 0 inputs, for a trace that takes 1"):
        gt.saving.verify(path, **limits)


def test_golden_values_of_no_axes_are_refused(path: Path) -> None:
    def change(draft: Any) -> None:
        name = next(x for x in draft.arrays if x.startswith("/golden/"))
        draft.arrays[name] = draft.arrays[name].reshape(-1)[:1].reshape(())

    forged(path, draft=change)
    with pytest.raises(DamagedFile, match="its arrays are not flat"):
        gt.load(path)


def test_a_dataset_has_one_use(path: Path) -> None:
    def shared(manifest: Any) -> None:
        record = manifest["variables"][0]
        manifest["variables"] += [dict(record) for _ in range(100)]

    template = path.read_bytes()
    forged(path, manifest=shared)
    for read in (gt.load, lambda path: gt.load(path, lazy=True)):
        with pytest.raises(UnsafeFile, match="is used twice"):
            read(path)
    path.write_bytes(template)
    forged(
        path,
        draft=lambda draft: draft.arrays.update({"/constants/77": draft.arrays["/variables/w"]}),
    )
    with pytest.raises(DamagedFile, match="nothing uses /constants/77"):
        gt.load(path)


def test_json_is_bounded_before_it_is_parsed(path: Path) -> None:
    """Seven hundred thousand nodes, thirty million empty lists, or thirty million brackets."""
    template = path.read_bytes()
    node = '{"op":"sin","inputs":[0],"params":{},"outputs":[{"shape":null,"dtype":"int8"}]},'
    texts = {
        "nodes": f'{{"nodes":[{node * 700_000}0]}}',
        "lists": "[" + "[]," * 10_000_000 + "0]",
        "deep": "[" * 30_000_000,
        "quotes": '"' * 30_000_000,
        "escapes": '"' + "\\" * 15_000_000 + '"',
        "zigzag": ("[" * 60 + "]" * 60 + ",") * 8_000,
    }
    for name, text in texts.items():
        path.write_bytes(template)
        forged(path, manifest=lambda _, text=text: text)
        for read in (gt.load, gt.saving.inspect_text):
            start = time.thread_time()
            with pytest.raises(LoadError):
                read(path)
            assert time.thread_time() - start < seconds_of(1.0), name


def test_a_writer_refuses_what_readers_refuse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = gt.Module("m")
    module.values = list(range(400))
    monkeypatch.setattr("gradtape.saving.records.schema.MAX_TOKENS", 300)
    with pytest.raises(gt.saving.SaveError, match="300 tokens as JSON, which readers refuse"):
        gt.save(module, tmp_path / "m.h5")


def test_graphs_of_too_many_nodes_are_refused_by_writers_and_readers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Unrolled(gt.Module):
        def __call__(self, x: Any) -> Any:
            for _ in range(30):
                x = gt.sin(x)
            return x

    module = Unrolled()
    module(gt.ones((2, 3)))
    gt.save(module, tmp_path / "m.h5")
    monkeypatch.setattr("gradtape.saving.reading.graphs.MAX_NODES", 29)
    with pytest.raises(gt.saving.UnsafeFile, match="graphs have more than 29 nodes together"):
        gt.load(tmp_path / "m.h5")
    monkeypatch.setattr("gradtape.saving.writing.graphs.MAX_NODES", 29)
    with pytest.raises(gt.saving.SaveError, match=r"more than 29 nodes .* gradtape\.scan"):
        gt.save(module, tmp_path / "m.h5")
    gt.save(module, tmp_path / "m.h5", functions=False)


def test_configurations_that_ask_for_much_allocate_nothing_at_load(path: Path) -> None:
    forged(path, manifest=lambda m: put(dense(m)["config"], "units", {"value": 2**50}))
    tracemalloc.start()
    with pytest.raises(gt.saving.LoadError, match="'kernel' has shape"):
        gt.load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50 * 2**20


def test_nothing_is_executed_or_opened_while_loading(path: Path) -> None:
    """An audit hook sees every file that Python opens, every process and every import."""
    gt.load(path)  # imports and discovers what is needed
    opened: list[Any] = []
    watching = [True]

    def hook(event: str, args: Any) -> None:
        if watching[0] and event in (
            "open",
            "exec",
            "compile",
            "import",
            "os.system",
            "subprocess.Popen",
            "marshal.loads",
            "pickle.find_class",
            "socket.connect",
            "ctypes.dlopen",
        ):
            opened.append((event, *args[:1]))

    sys.addaudithook(hook)
    try:
        gt.load(path)
        gt.saving.inspect_text(path)
    finally:
        watching[0] = False
    allowed = [("open", str(path)), *(("import", name) for name in sys.modules)]
    assert [x for x in opened if x not in allowed] == []


def test_what_a_stranger_wrote_is_escaped_and_cut_in_errors(path: Path) -> None:
    def named(manifest: Any) -> None:
        root(manifest)["class"] = "\x1b[2J\u202e"
        manifest["requires"] = [{"plugin": "\n\x1b[2J" * 9_000, "distribution": "", "version": ""}]
        manifest["requires"][0] |= {"ops": ["\x07" * 90_000], "modules": []}

    forged(path, manifest=named)
    for read in (gt.load, gt.saving.verify):
        with pytest.raises(LoadError) as caught:
            read(path)
        assert str(caught.value).isprintable()
        assert len(str(caught.value)) < 50_000


def test_terminal_control_characters_are_not_printed(path: Path) -> None:
    def edit(manifest: Any) -> None:
        root(manifest)["class_name"] = "\x1b[2Jevil\u202e\udcff"

    forged(path, manifest=edit)
    text = gt.saving.inspect_text(path)
    assert r"\x1b[2Jevil\u202e\udcff" in text
    assert text.isascii() or text.isprintable() or "\x1b" not in text
    assert "\x1b" not in text
