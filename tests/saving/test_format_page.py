"""docs/format.md against reality: a reader written from the page alone, on a file kept for ever."""

from __future__ import annotations

import inspect
import json
import math
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from independent_reader import FORMULAS, Reader, plain, spread, weights
from odd_modules import with_rules

import gradtape as gt
from gradtape.core.base.sizes import KINDS
from gradtape.hints import Lacking
from gradtape.saving.container import limits
from gradtape.saving.container.hdf5 import profile
from gradtape.saving.records import schema
from gradtape.saving.records.loaded import LoadedModule

pytestmark = pytest.mark.usefixtures("forks")

HERE = Path(__file__).parent
FILES = sorted((HERE / "golden").glob("v*.h5"))
GOLDEN = [path for path in FILES if path.stem.count("_") == 1]
#: Named in the page, in no golden file.
UNWRITTEN: set[str] = set()
PAGE = HERE.parents[1] / "docs" / "format.md"


def test_a_reader_written_from_the_page_knows_which_sizes_are_equal(tmp_path: Path) -> None:
    class Pair(gt.Module):
        @gt.function(input_signature=[gt.TensorSpec(["n", 3]), gt.TensorSpec(["n", None])])
        def total(self, x: Any, y: Any) -> Any:
            return gt.sum(x) + gt.sum(y)

    gt.save(Pair(), tmp_path / "pair.h5")
    trace, _ = Reader(tmp_path / "pair.h5").trace("total")
    loaded = gt.load(tmp_path / "pair.h5").total
    for shape, other in [((2, 3), (2, 3)), ((2, 3), (1, 3)), ((2, 4), (2, 4)), ((3, 3), (3, 0))]:
        given = [np.ones(shape, "float32"), np.ones(other, "float32")]
        fits = Reader(tmp_path / "pair.h5").takes(trace, given)
        assert fits == (shape[1] == 3 and shape[0] == other[0])
        if fits:
            loaded(*given)
        else:
            with pytest.raises(ValueError, match="argument"):
                loaded(*given)


class Sized(gt.Module):
    """Shapes, bounds and numbers that are made of sizes."""

    @gt.function(input_signature=[gt.TensorSpec([None, 3]), gt.TensorSpec([], "int64")])
    def parts(self, x: Any, k: Any) -> Any:
        n = x.shape[0]
        odd = (n & 1) + (n > 2) + round(n / 3) + math.ceil(n**0.5) + abs(n - 2)
        top = x[: (n + 1) // 2] * n**0.5
        zeros = gt.zeros((-n % 4, 3))
        many = gt.ones((k, np.maximum(n // 2, 1)))
        return gt.concatenate([top, zeros], axis=0), gt.reshape(x, (n * 3,)), many, odd


def test_a_reader_written_from_the_page_computes_with_sizes(tmp_path: Path) -> None:
    path = tmp_path / "sized.h5"
    gt.save(Sized(), path)
    reader = Reader(path)
    trace, _ = reader.trace("parts")
    for n in range(7):
        x = np.linspace(-1, 1, 3 * n, dtype="float32").reshape(n, 3)
        found = reader.outputs(trace["graph"], [x, np.asarray(n // 2)])
        expected = gt.load(path).parts(x, n // 2)
        eager = Sized.parts.python_function(None, gt.constant(x), n // 2)
        for got, want, live in zip(found, expected, eager, strict=True):
            np.testing.assert_array_equal(got, want)
            np.testing.assert_array_equal(got, live)


class Network(gt.Module):
    """Ops of many families, one after another."""

    @gt.function(input_signature=[gt.TensorSpec([None, 8, 8, 2]), gt.TensorSpec([None], "int64")])
    def loss(self, x: Any, labels: Any) -> Any:
        w = gt.reshape(gt.linspace(-1.0, 1.0, 3 * 3 * 2 * 4), (3, 3, 2, 4))
        y = gt.nn.relu(gt.nn.conv2d(gt.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0))), w, padding="same"))
        y = gt.nn.avg_pool2d(gt.nn.max_pool2d(y, 2, padding=1), 2)
        y = (
            gt.einsum("bijc,bkjc->bik", y, gt.cumsum(y, axis=1))
            + gt.std(y, axis=(1, 2, 3))[:, None, None]
        )
        flat = gt.reshape(gt.nn.gelu(y / 10.0), (x.shape[0], -1))
        logits = gt.stack([gt.sort(flat, axis=1)[:, i] for i in (0, 2, -1)], axis=1)
        shares = gt.one_hot(labels, 3) * 0.9 + 0.05
        return (
            gt.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits),
            gt.nn.softmax(logits) * shares,
            gt.linalg.norm(flat, axis=1),
            gt.erf(logits),
        )


def test_a_reader_written_from_the_page_computes_a_network(tmp_path: Path) -> None:
    gt.save(Network(), tmp_path / "net.h5")
    reader, loaded = Reader(tmp_path / "net.h5"), gt.load(tmp_path / "net.h5")
    trace, _ = reader.trace("loss")
    for n in (1, 3):
        x = np.sin(np.arange(n * 128.0)).reshape(n, 8, 8, 2).astype("float32")
        labels = np.arange(n) % 3
        found = reader.outputs(trace["graph"], [x, labels])
        for got, want in zip(found, loaded.loss(x, labels), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


class Slopes(gt.Module):
    """Gradients, of orders 1 and 2, of ops that run graphs."""

    @gt.function(input_signature=[gt.TensorSpec([3])])
    def slopes(self, x: Any) -> Any:
        def loops(x: Any) -> Any:
            grown = gt.while_loop(lambda y: gt.sum(y * y) < 20.0, lambda y: y * 1.5 + gt.sin(y), x)
            last, each = gt.scan(lambda c, y: (gt.tanh(c + y), c * y), gt.constant(0.5), grown)
            return gt.sum(each) + gt.cond(last > 0.0, lambda: last * last, lambda: gt.sin(last))

        return gt.grad(loops)(x), gt.grad(lambda x: gt.sum(gt.grad(loops)(x) ** 2))(x)


def test_a_reader_written_from_the_page_computes_gradients_of_loops(tmp_path: Path) -> None:
    gt.save(Slopes(), tmp_path / "slopes.h5")
    reader, loaded = Reader(tmp_path / "slopes.h5"), gt.load(tmp_path / "slopes.h5")
    trace, _ = reader.trace("slopes")
    orders = {(n["op"], n["params"].get("order")) for n in trace["graph"]["nodes"]}
    assert orders >= {(op, n) for op in ("cond", "scan", "while_loop") for n in (0, 1, 2)}
    for x in (np.array([0.3, -0.2, 0.5], "float32"), np.array([-1.0, 0.4, 0.1], "float32")):
        found = reader.outputs(trace["graph"], [x])
        for got, want in zip(found, loaded.slopes(x), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)


def test_the_page_names_every_kind_of_formula() -> None:
    page = PAGE.read_text().partition("### Formulas")[2].partition("## 7")[0].replace("\\", "")
    assert set(re.findall(r'\["([^"]+)"', page)) - {"size", "value", "//"} == {*KINDS} - {"//"}
    assert {*FORMULAS} == {*KINDS}


def cases(reader: Reader) -> list[tuple[Any, Any]]:
    """Return the graph of each trace with each of its golden cases."""
    traces = [trace for function in reader.manifest["functions"] for trace in function["traces"]]
    return [
        (without_losses(reader.json(trace["dataset"])), case)
        for trace in traces
        for case in trace.get("golden", [])
    ]


def without_losses(trace: Any) -> Any:
    """Return the graph of a trace without the outputs that are added to the loss, and masks."""
    outputs = enumerate(trace["graph"]["outputs"])
    others = [*trace.get("added", ()), *trace.get("masks", ())]
    results = [value for i, value in outputs if i not in others]
    return {**trace["graph"], "outputs": results}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_reader_written_from_the_page_computes_what_the_file_says(path: Path) -> None:
    reader = Reader(path)
    reader.modules()
    for graph, case in cases(reader):
        inputs, expected = reader.case(case)
        found = reader.computed(graph, inputs, list(expected))
        assert list(found) == list(expected)
        for name, value in expected.items():
            own = spread(found[name], case.get("elements"))
            assert (own.dtype, own.shape) == (value.dtype, value.shape)
            np.testing.assert_allclose(own, value, rtol=1e-4, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_a_reader_written_from_the_page_assigns_variables(path: Path) -> None:
    reader = Reader(path)
    trace, _ = reader.trace("cube")
    assert trace["results"]["dict"]["cube"] == {"output": 0}
    count = reader.manifest["modules"][0]["attributes"]["count"]["variable"]
    _, updates = reader.run(trace["graph"], [np.ones(3, "float32")])
    assert updates == {count: plain(reader.variables[count]) + 2}


def test_a_reader_written_from_the_page_reads_every_kind_of_attribute() -> None:
    reader = Reader(HERE / "golden" / "v2_1.h5")
    root, _, net, *_ = reader.modules()
    state = root["state"]
    assert repr(state["numbers"]) == "(-9223372036854775808, nan, -inf, -0.0, -0j)"
    assert state["sets"] == [{1, 2}, frozenset({"a", (1.5, None)})]
    assert state["keys"][2, None] is reader.variables[0]
    assert [state["keys"][key] for key in (1, 0.5, 3)] == ["one", [], {}]
    assert state["array"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert state["tensor"].tolist() == [[1.5]]
    assert [x.dtype.name for x in state["scalars"]] == ["float32", "int8", "bool", "complex64"]
    assert state["dtype"] == "float16"
    assert state["ranges"] == [range(1, 9, 3), slice(None, -1, None)]
    assert (state["bytes"], state["op"]) == (b"\x00\xff", np.tanh)
    assert root["again"][0] is state
    assert root["net"] is net
    assert net["note"][1] == {"n": 1}


def test_the_golden_file_holds_every_kind_of_record() -> None:
    page = re.sub(r"\s+", " ", PAGE.read_text())
    reader = Reader(HERE / "golden" / "v2_4.h5")
    written = set(re.findall(r'"(\w+)":', json.dumps(reader.manifest)))
    traces = [f["traces"] for f in reader.manifest["functions"]]
    for record in [trace for some in traces for trace in some] + reader.manifest["rules"]:
        written |= set(re.findall(r'"(\w+)":', json.dumps(reader.json(record["dataset"]))))
    attributes = page.partition("An ATTRIBUTE is one of")[2].partition("Names of attributes")[0]
    kinds = set(re.findall(r'`\{"(\w+)":', page)) | set(re.findall(r'`\{"(\w+)":', attributes))
    modules = page.partition("## 5. Modules")[2].partition("An ATTRIBUTE")[0]
    kinds |= set(re.findall(r"\| `(\w+)` \|", modules))
    assert kinds - written <= UNWRITTEN


def test_compressed_files_of_every_version_are_read_for_ever() -> None:
    path = HERE / "golden" / "v2_0_gzip.h5"
    reader = Reader(path)
    (large,) = reader.modules()
    assert reader.file["variables/table"].compression == "gzip"
    for table in (plain(large["table"]), gt.load(path).table.numpy()):
        assert table.tolist() == [[*range(64)] * 4] * 8


def test_checkpoints_of_every_version_are_restored_for_ever() -> None:
    path = HERE / "golden" / "v2_0_checkpoint.h5"
    (state,) = Reader(path).modules()
    layers = gt.layers
    model = layers.Sequential([layers.Dense(4), layers.BatchNorm(), layers.Dense(2)])
    model(gt.ones((5, 3)))
    optimizer, own = gt.training.Adam(0.5), gt.random.Generator()
    rngs = np.random.default_rng(), random.Random()
    checkpoint = gt.training.Checkpoint(
        model=model,
        optimizer=optimizer,
        streams={"own": own},
        numpy=rngs[0],
        python=rngs[1],
        step=0,
    )
    checkpoint.restore(path)
    assert checkpoint.step == state["step"] == 3
    assert [rngs[0].random(), rngs[1].random()] == [
        np.random.default_rng(1).random(),
        random.Random(1).random(),
    ]
    assert own.state.numpy().tolist() == plain(state["streams"]["own"]["state"]).tolist() == [7, 0]
    held = plain(state["model"]["layers"]["2"]["kernel"])
    np.testing.assert_array_equal(model.layers[2].kernel.numpy(), held)
    moments = state["optimizer"]["first_moments"]["model"]["layers"]
    names = [("0", "kernel"), ("0", "bias"), ("1", "gamma"), ("1", "beta"), ("2", "kernel")]
    for variable, (layer, name) in zip(optimizer.first_moments, names, strict=False):
        np.testing.assert_array_equal(variable.numpy(), plain(moments[layer][name]))


def test_a_reader_written_from_the_page_knows_which_elements_are_stored(tmp_path: Path) -> None:
    class Wave(gt.Module):
        @gt.function(input_signature=[gt.TensorSpec([None, 12000])])
        def wave(self, x: Any) -> Any:
            return gt.sin(x)

    gt.save(Wave(), tmp_path / "wave.h5")
    reader = Reader(tmp_path / "wave.h5")
    trace, record = reader.trace("wave")
    assert [case["inputs"][0]["shape"][0] for case in record["golden"]] == [3, 2, 1]
    for case in record["golden"]:
        assert case["elements"] == "spread"
        (x,), expected = reader.case(case)
        (y,) = reader.outputs(trace["graph"], [x])
        assert expected["output 0"].shape == (max(256, x.size // 64),)
        np.testing.assert_array_equal(spread(y), expected["output 0"])
        slope = np.cos(x) * weights(y, 0)
        np.testing.assert_allclose(spread(slope), expected["gradient of input 0"], rtol=1e-5)
    (x,), expected = reader.case(record["golden"][0])
    second = -np.sin(x) * weights(x, 0) * weights(x, 0)
    found = expected["second gradient of input 0"]
    np.testing.assert_allclose(spread(second), found, rtol=1e-4, atol=1e-6)


def test_a_reader_written_from_the_page_runs_the_rules_of_ops(tmp_path: Path) -> None:
    module = gt.Module("odd")
    module.f = gt.function(lambda x: gt.exp(x), input_signature=[gt.TensorSpec([None])])
    with with_rules({"exp": lambda g, x: 3.0 * g * gt.exp(x)}):
        gt.save(module, tmp_path / "odd.h5")
    reader = Reader(tmp_path / "odd.h5")
    trace, _ = reader.trace("f")
    (node,) = trace["graph"]["nodes"]
    place = reader.manifest["rules"][node["rule"]]["dataset"]
    rule = json.loads(reader.file[place][()])
    assert (rule["op"], rule["params"], rule["connected"]) == ("exp", node["params"], [True])
    assert [x["op"] for x in rule["graph"]["nodes"] if x.get("rule") == node["rule"]] == ["exp"]
    x, upstream = np.linspace(-1, 1, 5, dtype="float32"), np.arange(5, dtype="float32")
    (found,) = reader.outputs(rule["graph"], [x, np.exp(x), upstream])
    np.testing.assert_array_equal(found, 3.0 * upstream * np.exp(x))


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_files_of_every_version_load_and_verify_for_ever(path: Path) -> None:
    report = gt.saving.verify(path)
    assert report.ok, report.table()
    loaded = gt.load(path)
    assert loaded.cube(2.0)["cube"].item() == 8.0
    assert loaded.scale.numpy().tolist() == [0.5, -1.5, 2.0]
    assert loaded.wave.dtype == np.complex128
    assert loaded.parts[0] is loaded.scale
    assert loaded.this is loaded
    assert type(loaded.net) is gt.layers.Sequential
    x = gt.constant(2.0)
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = loaded.cube(x)["cube"]
    assert tape.gradient(y, x).item() == 40.0


def test_a_file_tells_which_of_its_functions_are_for_the_sizes_seen() -> None:
    reader = Reader(HERE / "golden" / "v2_0.h5")
    functions = reader.manifest["modules"][0]["functions"]
    told = {name: reader.manifest["functions"][i].get("sizes") for name, i in functions.items()}
    assert told == {"__call__": "seen"} | dict.fromkeys(["cube", "share", "pick", "loop", "noise"])
    assert reader.trace("__call__")[0]["graph"]["inputs"][0]["shape"] == [5, 3]


def test_there_is_a_file_of_the_present_version() -> None:
    major, minor = schema.VERSION
    assert HERE / "golden" / f"v{major}_{minor}.h5" in GOLDEN


# -- the words of the page -------------------------------------------------------------------------


def test_the_page_states_the_limits_names_and_types_that_the_code_has() -> None:
    page = re.sub(r"\s+", " ", PAGE.read_text())
    major, minor = schema.VERSION
    assert f"# The file format, version {major}.{minor}" in page
    assert f"more than {limits.MAX_OBJECTS:,} objects" in page
    assert f"deeper than {limits.MAX_DEPTH};" in page
    assert f"a rank above {limits.MAX_RANK}" in page
    assert f"more than {schema.MAX_NODES:,} nodes" in page
    assert f"texts above {limits.MAX_TEXT:,} bytes" in page
    assert f"({limits.MAX_BYTES // 2**30} GiB" in page
    assert limits.SEGMENT.pattern.removesuffix(r"\Z").replace("(?:", "(") in page
    assert schema.IDENTIFIER.pattern.removesuffix(r"\Z") in page
    listed = page.partition("MUST NOT be one of")[2].partition(". `config`")[0]
    names = {name for name in dir(LoadedModule) if not name.startswith(("__", "_gradtape"))}
    public = {x for x in names if type(inspect.getattr_static(LoadedModule, x)) is not Lacking}
    assert set(re.findall(r"`(\w+)`", listed)) == public | {"_name"}
    rows = re.findall(r"\| `(\w+)` \| `((?:[0-9a-f]{2} ?)+)` \|", page)
    assert {name: bytes.fromhex(x) for name, x in rows if name != "8"} == profile.DATATYPES
    listed = page.partition("one of these dtypes:")[2].partition(".")[0]
    assert set(re.findall(r"`(\w+)`", listed)) == set(limits.DTYPES)


def test_the_page_names_every_key_of_the_json() -> None:
    page = PAGE.read_text()
    documents = []
    for path in FILES:
        reader = Reader(path)
        traces = [trace for f in reader.manifest["functions"] for trace in f["traces"]]
        documents += [reader.manifest, *reader.rules, *(reader.json(x["dataset"]) for x in traces)]
    found: set[str] = set()
    free = {
        "attributes",
        "extra",
        "checkpoint",
        "functions",
        "signatures",
        "digests",
        "config",
        "dict",
        "untraced",
        "params",
    }

    def visit(tree: Any, keyed: bool) -> None:
        if isinstance(tree, list):
            for item in tree:
                visit(item, False)
        elif isinstance(tree, dict):
            for key, item in tree.items():
                if not keyed:
                    found.add(key)
                visit(item, not keyed and key in free and isinstance(item, dict))

    for document in documents:
        visit(document, False)
    missing = {key for key in found if f"`{key}`" not in page and f'"{key}"' not in page}
    assert not missing
