"""``inspect``: one summary as text, JSON, pictures and a page; nothing of a file steers them."""

from __future__ import annotations

import copy
import json
import random
import re
import warnings
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rewriting import Draft, rewritten

import gradtape as gt

pytestmark = pytest.mark.usefixtures("forks")

GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.h5"))
#: What a name in a file may try: tags, quotes, escapes, directions, halves of characters.
EVIL = "\"><script>alert(1)</script><img src=x onerror='x()'>\x1b[2J\u202e\ud800&#x9b;' onload=\"x"


class Model(gt.Module):
    """Loops, branches, a custom gradient, sizes that are open, values of many kinds."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = gt.Variable([1.0, np.nan, np.inf])
        self.empty = gt.Variable(np.zeros((0, 3)))
        self.wave = gt.Variable(np.exp(1j * np.arange(9)))
        self.huge = gt.Variable(np.array([1e308, -1e308, 5e-324]))
        self.count = gt.Variable(0)
        self.dense = gt.layers.Dense(2, activation=lambda x: gt.tanh(x))
        self.dense(np.ones((1, 3), "float32"))
        self.again = self.dense
        self.rate = 0.25
        self.history = {"loss": [2.0, 1.0, float("nan")], "val_loss": [2.5, 1.5, 1.25]}

    @gt.function(input_signature=[gt.TensorSpec(["n", 3]), gt.TensorSpec([])])
    def solve(self, x: Any, k: Any) -> Any:
        @gt.custom_gradient
        def held(x: Any) -> Any:
            return gt.round(x), lambda g: g * 2.0

        self.count.assign_add(1)
        _, y = gt.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, gt.sin(y)), (0, x))
        z = gt.cond(k > 0, lambda: y * 2.0, lambda: gt.exp(y))
        return held(self.dense(z)), gt.zeros(((x.shape[0] + 1) // 2,)) + gt.constant([1.0])


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("files") / "model.h5"
    serve = gt.function(lambda x: x * 2.0, input_signature=[gt.TensorSpec([None])])
    with warnings.catch_warnings(action="ignore"):  # float64 is meant
        gt.save(Model(), path, signatures={"serve": serve})
    return path


# -- text ------------------------------------------------------------------------------------------


def test_a_graph_is_listed_with_what_is_inside_its_steps(path: Path) -> None:
    text = gt.saving.inspect(path).graph_text("model.solve")
    assert text.startswith("model.solve#1 (x: float32[n, 3], k: float32[])\n  %0 = input x ")
    for pattern in (
        r"%\d+ = read count +int64\[\]",
        r"%\d+, %\d+ = while_loop\(.*count=",
        r"      cond:\n          %0 = input +int64\[\]",
        r"      body:\n",
        r"      true:\n",
        r"      false:\n",
        r"custom gradient held\(%\d+ of %\d+\) +float32\[\?, 2\]\n      backward:\n",
        r"          %\d+ = multiply\(%0, 2\.0\) ",
        r"broadcast_to\(%\d+, shape=\(\(%0\.shape\[0\] \+ 1\) // 2,\)\) +float32\[\?\]",
        r"constant \[1\.\] +float32\[1\]",
        r"  update count = %\d+\n  return %\d+, %\d+\n  results: \(output 0, output 1\)$",
    ):
        assert re.search(pattern, text), pattern


def test_a_function_is_found_by_each_of_its_names_and_its_traces_by_number(path: Path) -> None:
    found = gt.saving.inspect(path)
    assert found.graph_text("signatures.serve") == found.graph_text("signatures.serve#1")
    assert "dense.activation" in found.table()
    with pytest.raises(LookupError, match=r"did you mean model\.solve\? The file has: .*serve"):
        found.graph_text("model.solv")
    with pytest.raises(LookupError, match=r"'\\\\x1b\[2J' ?; the file has"):
        found.graph_text("\x1b[2J")


def test_functions_of_modules_with_one_name_are_told_apart_by_their_place(tmp_path: Path) -> None:
    layers = [gt.layers.Dense(2, activation=lambda x: gt.sin(x)) for _ in range(2)]
    model = gt.layers.Sequential(layers)
    model(np.ones((1, 2), "float32"))
    gt.save(model, tmp_path / "a.h5")
    found = gt.saving.inspect(tmp_path / "a.h5")
    for name in ("layers/0.activation", "layers/1.activation"):
        assert name in found.table()
        assert "sin" in found.graph_text(name)


def test_a_picture_of_one_of_several_traces_needs_its_number(tmp_path: Path) -> None:
    class Two(gt.Module):
        def __call__(self, x: Any, training: bool = False) -> Any:
            return x * 2.0 if training else x

    model = Two()
    for training in (True, False):
        model(np.ones(2, "float32"), training=training)
    gt.save(model, tmp_path / "a.h5")
    found = gt.saving.inspect(tmp_path / "a.h5")
    with pytest.raises(LookupError, match=r"has 2 traces; choose one of two\.__call__#1, two"):
        found.graph_svg("two.__call__")
    assert "<svg" in found.graph_svg("two.__call__#2")


def test_plain_values_and_second_places_are_in_the_tree(path: Path) -> None:
    table = gt.saving.inspect_text(path)
    assert "rate = 0.25" in table
    assert "history = {loss: [2.0, 1.0, nan], val_loss: [2.5, 1.5, 1.25]}" in table
    assert "again: dense (layers.Dense) (shown above)" in table


def test_files_saved_without_custom_gradients_are_described(tmp_path: Path) -> None:
    gt.save(Model(), tmp_path / "a.h5", custom_gradients=False)
    found = gt.saving.inspect(tmp_path / "a.h5", statistics=True)
    assert "custom gradient held (its gradient was left out)" in found.table()
    assert "(saved without its gradient)" in found.graph_text("model.solve")
    assert "gradient left out" in found.graph_svg("model.solve")
    assert "its gradient was left out" in found.html()


# -- JSON ------------------------------------------------------------------------------------------


def strict(text: str) -> Any:
    def refuse(name: str) -> Any:
        raise AssertionError(name)

    assert text.isascii()
    assert "\x1b" not in text
    return json.loads(text, parse_constant=refuse)


def test_json_has_the_documented_keys_and_no_nan(path: Path) -> None:
    record = strict(gt.saving.inspect(path, statistics=True).json())
    assert set(record) == {
        *("path", "format", "bytes", "parts", "modules", "variables", "functions", "rules"),
        "requires",
        "history",
    }
    scale = next(x for x in record["variables"] if x["path"] == "scale")
    assert (scale["spread"]["nans"], scale["spread"]["infinities"]) == (1, 1)
    assert record["history"]["loss"] == [2.0, 1.0, "nan"]
    (graph,) = strict(gt.saving.inspect(path).graph_json("model.solve"))
    kinds = {step["kind"] for step in graph["graph"]["steps"]}
    assert kinds == {"op", "custom gradient", "read", "written"}


def test_a_verification_is_json_too(path: Path) -> None:
    record = strict(gt.saving.verify(path).json())
    assert {"path", "backend", "ok", "checks", "skipped"} <= set(record)
    assert {"function", "case", "ok", "exact", "errors", "problem"} <= set(record["checks"][0])


@pytest.mark.parametrize(
    "array",
    [
        np.random.default_rng(0).standard_normal((1200, 1000)),
        np.arange(7, dtype="int64") - 3,
        np.array([1e308, -1e308, 5e-324]),
        np.array([1e-310, 0.0]),
        np.array([True, False, False]),
        np.exp(1j * np.arange(9)) * np.arange(9),
        np.float16(3.0),
    ],
    ids=["blocks", "integers", "huge", "tiny", "booleans", "complex", "scalar"],
)
def test_spreads_are_those_of_numpy(array: Any, tmp_path: Path) -> None:
    module = gt.Module("m")
    module.w = gt.Variable(array)
    gt.save(module, tmp_path / "a.h5")
    (found,) = gt.saving.inspect(tmp_path / "a.h5", statistics=True).spreads
    values = np.abs(array) if np.iscomplexobj(array) else np.asarray(array, "float64")
    scale = np.max(np.abs(values)) or 1.0
    assert (found.low, found.high) == (values.min(), values.max())
    assert sum(found.counts) == values.size
    np.testing.assert_allclose(found.mean / scale, np.mean(values / scale), rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(found.deviation / scale, np.std(values / scale), rtol=1e-9)
    if found.low < found.high and scale < 1e300 and scale > 1e-300:
        counts, _ = np.histogram(values, len(found.counts))
        assert np.abs(np.asarray(found.counts) - counts).max() <= 2  # at edges, by rounding


# -- pictures and pages ----------------------------------------------------------------------------


class Page(HTMLParser):
    """What a page is made of."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.open: list[str] = []
        self.values: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.values += [value or "" for name, value in attrs if name in ("href", "src")]
        if tag not in ("meta", "wbr", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def looked_through(text: str) -> Page:
    """Check that a page is well made, runs nothing and fetches nothing."""
    page = Page()
    page.feed(text)
    page.close()
    assert page.open == []
    assert not page.tags & {"script", "img", "link", "iframe", "object", "form", "base", "use"}
    assert not [name for name in page.attributes if name.startswith("on") or name == "style"]
    assert all(re.fullmatch(r"#[a-z]+", value) for value in page.values)
    assert "http:" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "url(" not in text
    assert "@import" not in text
    return page


def test_a_page_stands_alone_and_has_all_parts(path: Path) -> None:
    text = gt.saving.inspect(path, statistics=True).html()
    looked_through(text)
    for part in ("Size", "Layers", "Weights", "Training", "Functions", "Samples", "Plugins"):
        assert f"<h2>{part}</h2>" in text
    assert "default-src &#x27;none&#x27;" in text or "default-src 'none'" in text
    assert "1 NaN" in text
    assert "and not run" in text
    assert "nothing of it was run" in text
    assert "<svg" in text


def test_the_policy_of_a_page_allows_its_style_and_no_other(path: Path) -> None:
    import base64
    import hashlib

    text = gt.saving.inspect(path).html()
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
    assert style
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in text
    assert text.count("<style") == 1


def test_a_page_shows_what_was_verified(path: Path) -> None:
    report = gt.saving.verify(path)
    report.checks[0].problem = "<b>off</b>"
    text = gt.saving.inspect(path).html(report)
    looked_through(text)
    assert "mismatch" in text
    assert "&lt;b&gt;off&lt;/b&gt;" in text
    assert f"{len(report.checks) - 1} of {len(report.checks)} verified" in text


@pytest.mark.parametrize("file", GOLDEN, ids=lambda file: file.stem)
def test_every_golden_file_is_described_in_every_form(file: Path) -> None:
    found = gt.saving.inspect(file, statistics=True)
    strict(found.json())
    looked_through(found.html())
    for function in found.functions:
        for trace in function.traces:
            assert found.graph_text(trace.name).startswith(trace.name)
            ET.fromstring(found.graph_svg(trace.name))
            strict(found.graph_json(trace.name))
    if found.functions:
        assert "custom gradient wrong_cube" in found.graph_text("everything.cube")


def test_a_file_of_variables_alone_is_described(tmp_path: Path) -> None:
    module = gt.Module("m")
    module.w = gt.Variable(1.0)
    gt.save(module, tmp_path / "a.h5")
    found = gt.saving.inspect(tmp_path / "a.h5", statistics=True)
    looked_through(found.html())
    assert strict(found.json())["functions"] == []
    with pytest.raises(LookupError, match="the file has: no functions"):
        found.graph_text("m.f")


# -- what strangers wrote --------------------------------------------------------------------------


def renamed(record: Any) -> Any:
    """Return JSON in which every text that a reader only shows is the evil one."""
    if type(record) is list:
        return [renamed(x) for x in record]
    if type(record) is not dict:
        return record
    shown = ("name", "class_name", "custom_gradient", "plugin", "distribution", "version")
    result = {
        key: EVIL if key in shown and type(x) is str else renamed(x) for key, x in record.items()
    }
    if "untraced" in record or "attributes" in record:
        result["untraced"] = {EVIL: EVIL}
        result["attributes"] = {
            **result["attributes"],
            EVIL: {"value": EVIL},
            "history": {"dict": {EVIL: {"list": [{"value": 1}, {"value": 2}]}}},
        }
    return result


def test_names_of_strangers_steer_neither_terminal_nor_page_nor_picture(
    path: Path, tmp_path: Path
) -> None:
    def change(draft: Draft) -> None:
        for name in draft.texts:
            record = draft.json(name)
            record = {
                **record,
                **{key: renamed(x) for key, x in record.items() if key != "digests"},
            }
            if name == "/manifest":
                record["functions"][0]["name"] = EVIL
                record["signatures"] = {EVIL: 0}
            draft.put(record, name)

    hostile = rewritten(path, change, tmp_path / "evil<svg onload=x>.h5")
    found = gt.saving.inspect(hostile, statistics=True)
    texts = [found.table(), *(found.graph_text(f.names[0]) for f in found.functions)]
    for text in texts:
        assert all(line.isprintable() for line in text.split("\n"))
    page = looked_through(found.html())
    assert "svg" in page.tags
    strict(found.json())
    for function in found.functions:
        picture = ET.fromstring(found.graph_svg(function.traces[0].name))
        assert {x.tag.rpartition("}")[2] for x in picture.iter()} <= {
            *("svg", "style", "rect", "text", "g", "path", "title"),
        }
        assert not [k for x in picture.iter() for k in x.attrib if k.startswith("on")]
    other = gt.saving.diff(path, hostile)
    assert other
    assert all(line.isprintable() for line in other.table().split("\n"))
    strict(other.json())


def refusal(path: Path, other: Path) -> str:
    """Describe a file in every form; return the error if it is refused by one of our own."""
    try:
        found = gt.saving.inspect(path, statistics=True)
        for text in (found.table(), found.json(), found.html()):
            assert text
        for function in found.functions:
            for trace in function.traces:
                assert found.graph_text(trace.name)
                assert found.graph_svg(trace.name)
        assert gt.saving.diff(other, path).table()
    except gt.saving.LoadError as error:
        return str(error)
    return ""


JUNK: list[Any] = [
    *(None, True, 0, -1, 99, 2**40, "", "x", [], {}, [1], [[]], {"x": 1}, {"value": {"spec": 1}}),
    *({"float": []}, {"tuple": 1}, {"list": {}}, {"dict": []}, {"module": 0}, {"variable": 10**6}),
    *({"function": "x"}, {"size": ["size", 9, 9]}, {"size": []}, {"graph": {}}, {"complex": [1]}),
]


def mutated(record: Any, draw: random.Random) -> None:
    """Replace, repeat or remove one thing in JSON."""
    places = []
    queue = [record]
    while queue:
        item = queue.pop()
        keys = list(item) if type(item) is dict else range(len(item))
        places += [(item, key) for key in keys]
        queue += [item[key] for key in keys if type(item[key]) in (dict, list)]
    holder, key = draw.choice(places)
    action = draw.random()
    if action < 0.2:
        del holder[key]
    elif action < 0.4:
        holder[key] = copy.deepcopy(draw.choice(places)[0])
    else:
        holder[key] = copy.deepcopy(draw.choice(JUNK))


def test_whatever_the_json_of_a_file_says_only_our_own_errors_are_raised(
    path: Path, tmp_path: Path
) -> None:
    draw = random.Random(5)
    original = Draft.of(path)
    refused = []
    for record in (None, 1, [], "x"):  # in the place of whole records
        for key in ("modules", "variables", "functions", "requires"):
            draft = copy.deepcopy(original)
            manifest = draft.json()
            manifest[key][0] = record
            draft.put(manifest)
            assert refusal(draft.write(tmp_path / "b.h5"), path).startswith(str(tmp_path / "b.h5"))
    for _ in range(100):
        draft = copy.deepcopy(original)
        name = draw.choice(sorted(draft.texts))
        record = draft.json(name)
        mutated(record, draw)
        draft.put(record, name)
        refused.append(refusal(draft.write(tmp_path / "b.h5"), path))
    assert 20 < sum(map(bool, refused)) < 95
    assert all(x.startswith(str(tmp_path / "b.h5")) for x in refused if x)


def test_large_graphs_are_told_in_a_bounded_number_of_words(tmp_path: Path) -> None:
    class Long(gt.Module):
        @gt.function(input_signature=[gt.TensorSpec([None])])
        def run(self, x: Any) -> Any:
            for i in range(1500):
                x = gt.sin(x) + float(i)
            return x

    gt.save(Long(), tmp_path / "a.h5")
    found = gt.saving.inspect(tmp_path / "a.h5")
    text = found.graph_text("long.run")
    assert len(text.splitlines()) < 2_010
    assert "... 3,000 steps in all; only the first 2,000 lines are shown" in text
    picture = found.graph_svg("long.run")
    assert "3,000 steps: too many to draw" in picture
    assert "1,500 of sin" in picture
    assert len(picture) < 10_000
    assert len(found.html()) < 200_000


def test_modules_in_a_long_chain_are_described_so_far_as_they_are_shown(tmp_path: Path) -> None:
    gt.save(gt.Module("m"), tmp_path / "a.h5")

    def chain(draft: Draft) -> None:
        manifest = draft.json()
        manifest["modules"] = [
            {**manifest["modules"][0], "attributes": {"a": {"list": [{"list": [{"module": i}]}]}}}
            for i in range(1, 3000)
        ]
        manifest["modules"].append({**manifest["modules"][0], "attributes": {}})
        draft.put(manifest)

    rewritten(tmp_path / "a.h5", chain, tmp_path / "b.h5")
    found = gt.saving.inspect(tmp_path / "b.h5")
    assert "what is nested deeper is not shown" in found.table()
    looked_through(found.html())
    assert "compared in part" in gt.saving.diff(tmp_path / "b.h5", tmp_path / "b.h5").table()
