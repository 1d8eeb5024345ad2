"""docs/format.md against reality: a reader written from the page alone, on a file kept for ever."""

from __future__ import annotations

import hashlib
import json
import math
import operator
import re
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from odd_modules import with_rules
from xxhash import xxh3_128_digest

import gradtape as gt
from gradtape.core.base.sizes import KINDS
from gradtape.saving.container import profile
from gradtape.saving.records import schema
from gradtape.saving.records.loaded import LoadedModule

HERE = Path(__file__).parent
GOLDEN = sorted((HERE / "golden").glob("v*.h5"))
PAGE = HERE.parents[1] / "docs" / "format.md"


# -- a reader that knows the page, h5py and NumPy --------------------------------------------------


def array_digest(array: np.ndarray[Any, Any]) -> str:
    head = f"{array.dtype.name}[{', '.join(map(str, array.shape))}]".encode()
    little = array.astype(array.dtype.newbyteorder("<"))
    return hashlib.sha256(head + little.tobytes(order="C")).hexdigest()


def digest(path: str, held: Any) -> bytes:
    if isinstance(held, bytes):
        kind, data = f"text[{len(held)}]", held
    else:
        array = np.asarray(held)
        kind = f"{array.dtype.name}[{', '.join(map(str, array.shape))}]"
        data = array.astype(array.dtype.newbyteorder("<")).tobytes(order="C")
    parts = [xxh3_128_digest(data[i : i + 2**24]) for i in range(0, len(data), 2**24)]
    return xxh3_128_digest(f"{path} {kind}\n".encode() + b"".join(parts))


def value_of(encoded: Any) -> Any:
    if isinstance(encoded, list):
        return [value_of(x) for x in encoded]
    if not isinstance(encoded, dict):
        return encoded
    ((tag, content),) = encoded.items()
    if tag == "float":
        return float(content)
    if tag == "complex":
        return complex(float(content[0]), float(content[1]))
    if tag == "tuple":
        return tuple(value_of(x) for x in content)
    return {key: value_of(x) for key, x in content.items()}


def formula_of(formula: Any, witnesses: list[Any]) -> Any:
    """Return what a formula of the sizes of arrays is."""
    if not isinstance(formula, list):
        return value_of(formula)
    kind, *rest = formula
    if kind == "size":
        return witnesses[rest[0]].shape[rest[1]]
    if kind == "value":
        return int(witnesses[rest[0]])
    return FORMULAS[kind](*(formula_of(part, witnesses) for part in rest))


def settled(encoded: Any, witnesses: list[Any]) -> Any:
    """Return a parameter with numbers in the place of formulas."""
    if isinstance(encoded, list):
        return [settled(x, witnesses) for x in encoded]
    if isinstance(encoded, dict) and list(encoded) == ["size"]:
        return formula_of(encoded["size"], witnesses)
    if isinstance(encoded, dict) and list(encoded) == ["tuple"]:
        return tuple(settled(x, witnesses) for x in encoded["tuple"])
    return value_of(encoded)


FORMULAS: dict[str, Any] = {
    "+": lambda *xs: sum(xs[1:], xs[0]),
    "*": lambda *xs: math.prod(xs[1:], start=xs[0]),
    "max": lambda *xs: max(xs),
    "min": lambda *xs: min(xs),
    "-": operator.sub,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "neg": operator.neg,
    "abs": abs,
    "floor": math.floor,
    "ceil": math.ceil,
    "trunc": math.trunc,
    "round": round,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "int": int,
}


OPS = {
    "add": np.add,
    "exp": np.exp,
    "multiply": np.multiply,
    "sin": np.sin,
    "broadcast_to": np.broadcast_to,
    "reshape": np.reshape,
    "concatenate": lambda *arrays, axis: np.concatenate(arrays, axis),
    "size_value": lambda like, value, dtype: np.asarray(value, dtype),
    "getitem": lambda x, index: x[
        tuple(slice(*i[1:]) if isinstance(i, tuple) and i[0] == "slice" else i for i in index)
    ],
}


class Reader:
    """Section by section of the page."""

    def __init__(self, path: Path) -> None:
        self.file = h5py.File(path)
        assert self.file.attrs["format"] == b"gradtape"
        self.manifest = json.loads(self.file["manifest"][()])
        if self.file.attrs["format_version"].split(b".")[0] == b"1":
            self.check_digests_of_format_1()
        else:
            self.check_digests()
        self.variables = [self.file[r["dataset"]][()] for r in self.manifest["variables"]]

    def check_digests(self) -> None:
        found: dict[str, Any] = {}
        self.file.visititems(
            lambda name, x: found.update({f"/{name}": x[()]} if isinstance(x, h5py.Dataset) else {})
        )
        table = found.pop("/digests")
        expected = [digest(path, found[path]) for path in sorted(found)]
        assert [bytes(row) for row in table] == expected
        assert self.file.attrs["digest"].decode() == digest("/digests", table).hex()

    def check_digests_of_format_1(self) -> None:
        text = self.file["manifest"][()]
        assert hashlib.sha256(text).hexdigest().encode() == self.file.attrs["manifest_sha256"]
        for place, wanted in self.manifest["digests"].items():
            held = self.file[place][()]
            own = hashlib.sha256(held).hexdigest() if isinstance(held, bytes) else None
            assert wanted == (own or array_digest(np.asarray(held)))

    def trace(self, name: str) -> tuple[Any, Any]:
        """Return the first trace of a function of the root, and its record."""
        number = self.manifest["modules"][0]["functions"][name]
        record = self.manifest["functions"][number]["traces"][0]
        return json.loads(self.file[record["dataset"]][()]), record

    def takes(self, trace: Any, inputs: list[Any]) -> bool:
        """Return whether a trace is for these tensors."""
        named: dict[str, int] = {}
        for spec, x in zip(trace["graph"]["inputs"], inputs, strict=True):
            shape = spec["shape"]
            if x.dtype != spec["dtype"] or (shape is not None and len(shape) != x.ndim):
                return False
            names = spec.get("names", [None] * x.ndim)
            for size, name, n in zip(shape or x.shape, names, x.shape, strict=True):
                if size not in (None, n) or (name and named.setdefault(name, n) != n):
                    return False
        return True

    def run(self, graph: Any, inputs: list[Any]) -> tuple[list[Any], dict[int, Any], list[Any]]:
        """Return a graph's outputs, its updates, and its custom gradients with their inputs."""
        values = [*inputs, *(self.file[c["dataset"]][()] for c in graph["constants"])]
        custom = []
        for node in graph["nodes"]:
            given = [
                value_of(x["scalar"]) if isinstance(x, dict) else values[x] for x in node["inputs"]
            ]
            if "read" in node:
                values.append(self.variables[node["read"]])
            elif "written" in node:
                values.append(given[0])
            elif "custom_gradient" in node:
                values += given[: node["results"]]
                custom.append((node, given))
            else:
                count = len(given) - node.get("witnesses", 0)
                params = {k: settled(v, given[count:]) for k, v in node["params"].items()}
                made = OPS[node["op"]](*given[:count], **params)
                (spec,) = node["outputs"]
                assert made.dtype == spec["dtype"]
                values.append(made)
        updates = {number: values[i] for number, i in graph["updates"]}
        return [values[i] for i in graph["outputs"]], updates, custom

    def case(self, case: Any) -> tuple[list[Any], dict[str, Any]]:
        """Return a golden case's inputs, and its values by name."""
        position: dict[str, int] = {}
        arrays = []
        for spec in (*case["inputs"], *case["values"]):
            flat = self.file[f"{case['case']}/{spec['dtype']}"][()]
            start = position.get(spec["dtype"], 0)
            size = int(np.prod(spec["shape"], dtype=int))
            arrays.append(flat[start : start + size].reshape(spec["shape"]))
            position[spec["dtype"]] = start + size
        count = len(case["inputs"])
        names = [spec["name"] for spec in case["values"]]
        return arrays[:count], dict(zip(names, arrays[count:], strict=True))


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
        found, _, _ = reader.run(trace["graph"], [x, np.asarray(n // 2)])
        expected = gt.load(path).parts(x, n // 2)
        eager = Sized.parts.python_function(None, gt.constant(x), n // 2)
        for got, want, plain in zip(found, expected, eager, strict=True):
            np.testing.assert_array_equal(got, want)
            np.testing.assert_array_equal(got, plain)


def test_the_page_names_every_kind_of_formula() -> None:
    page = PAGE.read_text().partition("### Formulas")[2].partition("## 7")[0].replace("\\", "")
    assert set(re.findall(r'\["([^"]+)"', page)) - {"size", "value", "//"} == {*KINDS} - {"//"}
    assert {*FORMULAS} == {*KINDS}


def weights(like: Any, i: int) -> Any:
    return np.cos(np.arange(like.size) + 1.0 + i).reshape(like.shape).astype(like.dtype)


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_a_reader_written_from_the_page_computes_what_the_file_says(path: Path) -> None:
    reader = Reader(path)
    trace, record = reader.trace("cube")
    assert trace["results"]["dict"]["cube"] == {"output": 0}
    count = reader.manifest["modules"][0]["attributes"]["count"]["variable"]
    for case in record["golden"]:
        inputs, expected = reader.case(case)
        outputs, updates, [(node, given)] = reader.run(trace["graph"], inputs)
        for i, output in enumerate(outputs):
            np.testing.assert_array_equal(output, expected[f"output {i}"])
        assert updates == {count: reader.variables[count] + 2}
        # the gradient of t1: through the custom gradient for output 0, plainly for output 1
        saved = given[node["results"] + node["arguments"] :]
        upstream = weights(outputs[0], 0)
        (through,), _, _ = reader.run(node["backward"], [*saved, upstream])
        plain = weights(outputs[1], 1)
        while plain.ndim > inputs[0].ndim:
            plain = plain.sum(axis=0)
        np.testing.assert_allclose(through + plain, expected["gradient of input 0"], rtol=1e-5)


def spread(array: Any) -> Any:
    """Return the elements that a file holds of a value."""
    size = array.size
    count = min(max(256, size // 64), 16384)
    if size <= count:
        return array
    step = math.ceil(46368 * size / 75025)
    while math.gcd(step, size) != 1:
        step += 1
    return array.reshape(-1)[[k * step % size for k in range(count)]]


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
        (y,), _, _ = reader.run(trace["graph"], [x])
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
    (found,), _, _ = reader.run(rule["graph"], [x, np.exp(x), upstream])
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
    reader = Reader(HERE / "golden" / "v1_2.h5")
    functions = reader.manifest["modules"][0]["functions"]
    told = {name: reader.manifest["functions"][i].get("sizes") for name, i in functions.items()}
    assert told == {"__call__": "seen", "cube": None, "share": None}
    assert reader.trace("__call__")[0]["graph"]["inputs"][0]["shape"] == [5, 3]


def test_there_is_a_file_of_the_present_version() -> None:
    major, minor = schema.VERSION
    assert HERE / "golden" / f"v{major}_{minor}.h5" in GOLDEN


# -- the words of the page -------------------------------------------------------------------------


def test_the_page_states_the_limits_names_and_types_that_the_code_has() -> None:
    page = re.sub(r"\s+", " ", PAGE.read_text())
    major, minor = schema.VERSION
    assert f"# The file format, version {major}.{minor}" in page
    assert f"more than {profile.MAX_OBJECTS:,} objects" in page
    assert f"deeper than {profile.MAX_DEPTH};" in page
    assert f"a rank above {profile.MAX_RANK}" in page
    assert f"texts above {profile.MAX_TEXT:,} bytes" in page
    assert f"({profile.MAX_BYTES // 2**30} GiB" in page
    assert profile.SEGMENT.pattern.removesuffix(r"\Z").replace("(?:", "(") in page
    assert schema.IDENTIFIER.pattern.removesuffix(r"\Z") in page
    listed = page.partition("MUST NOT be one of")[2].partition(". `config`")[0]
    public = {name for name in dir(LoadedModule) if not name.startswith(("__", "_gradtape"))}
    assert set(re.findall(r"`(\w+)`", listed)) == public | {"_name"}
    listed = page.partition("one of these dtypes:")[2].partition(".")[0]
    assert set(re.findall(r"`(\w+)`", listed)) == profile.DTYPES


def test_the_page_names_every_key_of_the_json_and_no_other() -> None:
    page = PAGE.read_text()
    reader = Reader(GOLDEN[-1])
    documents = [reader.manifest, reader.trace("cube")[0]]
    found: set[str] = set()
    free = {
        "attributes",
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
