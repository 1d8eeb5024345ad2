"""Lies about gradient rules of ops and streams of numbers: nothing but a LoadError comes of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from odd_modules import with_rules
from rewriting import Draft

import gradtape as gt
from gradtape.saving import LoadError


class Victim(gt.Module):
    def __init__(self) -> None:
        super().__init__("victim")
        self.generator = gt.random.Generator(3)
        self.scale = gt.Variable([1.0, 2.0])

    @gt.function(input_signature=[gt.TensorSpec([None, 3])])
    def f(self, x: Any) -> Any:
        return gt.sum(gt.exp(x * 2.0), axis=1)

    @gt.function(input_signature=[])
    def draw(self) -> Any:
        return gt.random.normal((2,))


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rules") / "good.h5"
    rules: dict[str, Callable[..., Any]] = {
        "exp": lambda g, x: g * gt.exp(x),
        "sum": lambda g, x, axis: 2.0 * gt.broadcast_to(gt.expand_dims(g, -1), x.shape),
    }
    with with_rules(rules):
        gt.save(Victim(), path)
    return path


def rule_of(draft: Draft, op: str) -> tuple[str, Any]:
    paths = [x["dataset"] for x in draft.json()["rules"]]
    return next((path, draft.json(path)) for path in paths if draft.json(path)["op"] == op)


def node_of(draft: Draft, op: str) -> tuple[str, Any, Any]:
    paths = [path for path in draft.texts if path.startswith("/functions/")]
    for path in paths:
        record = draft.json(path)
        for node in record["graph"]["nodes"]:
            if node.get("op") == op:
                return path, record, node
    raise AssertionError(op)


def in_rule(op: str, change: Callable[[Any], Any]) -> Callable[[Draft], None]:
    def edit(draft: Draft) -> None:
        path, record = rule_of(draft, op)
        change(record)
        draft.put(record, path)

    return edit


def in_node(op: str, change: Callable[[Any], Any]) -> Callable[[Draft], None]:
    def edit(draft: Draft) -> None:
        path, record, node = node_of(draft, op)
        change(node)
        draft.put(record, path)

    return edit


def in_manifest(change: Callable[[Any], Any]) -> Callable[[Draft], None]:
    def edit(draft: Draft) -> None:
        record = draft.json()
        change(record)
        draft.put(record)

    return edit


def stream(value: Any, dtype: str = "int64") -> Callable[[Draft], None]:
    def change(manifest: Any) -> None:
        found = [v for v in manifest["variables"] if v["dtype"] == dtype]
        found[0]["stream"] = value

    return in_manifest(change)


LIES: dict[str, Callable[[Draft], None]] = {
    "no such rule": in_node("exp", lambda n: n.update(rule=7)),
    "a negative rule": in_node("exp", lambda n: n.update(rule=-1)),
    "a rule that is true": in_node("exp", lambda n: n.update(rule=True)),
    "a rule that is a text": in_node("exp", lambda n: n.update(rule="0")),
    "a rule of another op": in_node("multiply", lambda n: n.update(rule=0)),
    "a rule for another axis": in_rule("sum", lambda r: r["params"].update(axis=0)),
    "a rule for another parameter": in_rule("sum", lambda r: r.update(params={})),
    "a rule for another dtype": in_rule("exp", lambda r: r["inputs"][0].update(dtype="float64")),
    "a rule for another rank": in_rule("exp", lambda r: r["inputs"][0].update(shape=[3])),
    "a rule for a number": in_rule("exp", lambda r: r.update(inputs=[{"scalar": 1}])),
    "a rule for no input": in_rule("exp", lambda r: r.update(inputs=[])),
    "a rule for no output": in_rule("exp", lambda r: r.update(outputs=[])),
    "a rule for two outputs": in_rule("exp", lambda r: r.update(outputs=r["outputs"] * 2)),
    "an unknown op": in_rule("exp", lambda r: r.update(op="os.system")),
    "an op of text": in_rule("exp", lambda r: r.update(op=3)),
    "connected to nothing": in_rule("exp", lambda r: r.update(connected=[False])),
    "connected twice": in_rule("exp", lambda r: r.update(connected=[True, True])),
    "connected by a number": in_rule("exp", lambda r: r.update(connected=[1])),
    "no graph": in_rule("exp", lambda r: r.pop("graph")),
    "a graph of another gradient": in_rule("exp", lambda r: r["graph"].update(outputs=[])),
    "a gradient of another shape": in_rule(
        "sum", lambda r: r["graph"].update(outputs=[len(r["graph"]["inputs"]) - 1])
    ),
    "a graph with fewer inputs": in_rule("exp", lambda r: r["graph"]["inputs"].pop()),
    "an input of the graph of another dtype": in_rule(
        "exp", lambda r: r["graph"]["inputs"][0].update(dtype="int64")
    ),
    "apart of text": in_rule("exp", lambda r: r.update(apart="yes")),
    "the text of a function": in_manifest(
        lambda m: m["rules"].append({"dataset": m["functions"][0]["traces"][0]["dataset"]})
    ),
    "a rule twice": in_manifest(lambda m: m["rules"].append(m["rules"][0])),
    "a rule without a place": in_manifest(lambda m: m["rules"].append({})),
    "rules that are no list": in_manifest(lambda m: m.update(rules={})),
    "too many rules": in_manifest(lambda m: m.update(rules=m["rules"] * 501)),
    "a rule missing": in_manifest(lambda m: m["rules"].pop()),
    "a stream of floats": stream("shared", "float32"),
    "a stream of another name": stream("own"),
    "a stream of a number": stream(3),
    "a stream of a negative seed": stream({"drawn": -1}),
    "a stream of text": stream({"drawn": "7"}),
    "a stream of nothing": stream({}),
    "a stream that trains": in_manifest(
        lambda m: [v.update(trainable=True) for v in m["variables"] if "stream" in v]
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_about_rules_or_streams_is_refused(lie: str, good: Path, tmp_path: Path) -> None:
    draft = Draft.of(good)
    LIES[lie](draft)
    draft.write(tmp_path / "bad.h5")
    with pytest.raises(LoadError):
        gt.load(tmp_path / "bad.h5")


def test_a_file_does_not_move_the_shared_generator(good: Path) -> None:
    gt.random.set_seed(4)
    expected = gt.random.normal((2,)).numpy()
    gt.random.set_seed(4)
    loaded = gt.load(good)
    assert np.array_equal(loaded.draw().numpy(), expected)
