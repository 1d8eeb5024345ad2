"""Lies about gradient rules that call their own functions: only a LoadError comes of them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rewriting import Draft

import gradtape as gt
from gradtape.saving import LoadError


@gt.custom_gradient
def sine(x: Any) -> Any:
    return gt.sin(x), lambda u: u * cosine(x)


@gt.custom_gradient
def cosine(x: Any) -> Any:
    return gt.cos(x), lambda u: -u * sine(x)


class Victim(gt.Module):
    def __init__(self) -> None:
        super().__init__("victim")
        self.scale = gt.Variable([1.0, 2.0])

    @gt.function(input_signature=[gt.TensorSpec([None, 3])])
    def f(self, x: Any) -> Any:
        return gt.sum(sine(x * 2.0), axis=1)

    @gt.function(input_signature=[gt.TensorSpec([])])
    def g(self, x: Any) -> Any:
        return gt.cond(x > 0.0, lambda: sine(x), lambda: x)

    @gt.function(input_signature=[gt.TensorSpec([2])])
    def h(self, x: Any) -> Any:
        captured = x * 3.0

        @gt.custom_gradient
        def scaled(y: Any) -> Any:
            return y * captured, lambda u: u * captured

        return scaled(x) * self.scale


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shared") / "good.h5"
    gt.save(Victim(), path)
    return path


def nodes(graph: Any) -> Any:
    """Yield the nodes of a graph in JSON, with those of graphs inside it."""
    for node in graph["nodes"]:
        yield node
        inner = [x["graph"] for x in node.get("params", {}).values() if isinstance(x, dict)]
        for each in [*inner, node.get("backward")]:
            if isinstance(each, dict):
                yield from nodes(each)


def rule_paths(draft: Draft) -> list[str]:
    return [item["dataset"] for item in draft.json()["rules"]]


def in_rule(change: Callable[[Any], Any], number: int = 0) -> Callable[[Draft], None]:
    def edit(draft: Draft) -> None:
        path = rule_paths(draft)[number]
        record = draft.json(path)
        change(record)
        draft.put(record, path)

    return edit


def in_references(change: Callable[[Any], Any]) -> Callable[[Draft], None]:
    """Change every node of every text that refers to a rule."""

    def edit(draft: Draft) -> None:
        count = 0
        for path in [x for x in draft.texts if x.startswith(("/functions/", "/rules/"))]:
            record = draft.json(path)
            for node in nodes(record["graph"]):
                if type(node.get("backward")) is int:
                    change(node)
                    count += 1
            draft.put(record, path)
        assert count

    return edit


def in_manifest(change: Callable[[Any], Any]) -> Callable[[Draft], None]:
    def edit(draft: Draft) -> None:
        record = draft.json()
        change(record)
        draft.put(record)

    return edit


def in_captures(change: Callable[[Any], Any]) -> Callable[[Draft], None]:
    """Change the node whose gradient leaves out what its function captures."""

    def edit(draft: Draft) -> None:
        for path in [x for x in draft.texts if x.startswith("/functions/")]:
            record = draft.json(path)
            for node in nodes(record["graph"]):
                if "lost" in node:
                    change(node)
                    draft.put(record, path)
                    return
        raise AssertionError

    return edit


def read_variable(record: Any) -> None:
    """Make the rule's graph read a variable, in an op's branch too."""
    graph = record["graph"]
    count = len(graph["inputs"]) + len(graph["constants"])
    made = sum(len(node.get("outputs", [0])) for node in graph["nodes"])
    graph["nodes"].append({"read": 99, "inputs": []})
    graph["outputs"] = [count + made]


def only_itself(record: Any) -> None:
    """Make the rule's graph nothing but a node that refers to the rule."""
    graph = record["graph"]
    saved = len(graph["inputs"]) - 1
    node = {
        "custom_gradient": "again",
        "inputs": [saved, 0, *range(saved)],
        "results": 1,
        "arguments": 1,
        "connected": [True],
        "backward": 0,
    }
    graph.update(nodes=[node], constants=[], outputs=[saved + 1], updates=[])


def many_references(record: Any) -> None:
    """Make the rule refer to itself more often than graphs may have nodes."""
    only_itself(record)
    record["graph"]["nodes"] *= 2**15 + 1


LIES: dict[str, Callable[[Draft], None]] = {
    "no such rule": in_references(lambda n: n.update(backward=99)),
    "a negative rule": in_references(lambda n: n.update(backward=-1)),
    "a rule that is true": in_references(lambda n: n.update(backward=True)),
    "a rule that is a text": in_references(lambda n: n.update(backward="0")),
    "a rule that is a float": in_references(lambda n: n.update(backward=0.0)),
    "a rule of another shape": in_references(lambda n: n.update(backward=1 - n["backward"])),
    "a saved value missing": in_references(lambda n: n["inputs"].pop()),
    "a saved value too many": in_references(lambda n: n["inputs"].append(0)),
    "nothing connected": in_references(lambda n: n.update(connected=[False])),
    "connected twice": in_references(lambda n: n.update(connected=[True, True])),
    "results as arguments": in_references(lambda n: n.update(results=2, arguments=0)),
    "more gradients": in_rule(lambda r: r["gradients"].append(r["gradients"][0])),
    "no gradients": in_rule(lambda r: r.update(gradients=[])),
    "gradients that are no list": in_rule(lambda r: r.update(gradients={})),
    "gradients missing": in_rule(lambda r: r.pop("gradients")),
    "gradients of another dtype": in_rule(lambda r: r["gradients"][0].update(dtype="float64")),
    "gradients of another shape": in_rule(lambda r: r["gradients"][0].update(shape=[7])),
    "gradients that its graph does not give": in_rule(
        lambda r: (r["gradients"].append(r["gradients"][0]), r["graph"].update(outputs=[0]))
    ),
    "a graph missing": in_rule(lambda r: r.pop("graph")),
    "a graph that is a number": in_rule(lambda r: r.update(graph=0)),
    "a graph without outputs": in_rule(lambda r: r["graph"].update(outputs=[])),
    "a graph with fewer inputs": in_rule(lambda r: r["graph"]["inputs"].pop()),
    "an input of another dtype": in_rule(
        lambda r: r["graph"]["inputs"][0].update(dtype="complex64")
    ),
    "an input of another rank": in_rule(lambda r: r["graph"]["inputs"][0].update(shape=[1] * 9)),
    "a label that is a number": in_rule(lambda r: r.update(custom_gradient=3)),
    "a rule of an op and of custom gradients": in_rule(lambda r: r.pop("custom_gradient")),
    "a variable that is not there": in_rule(read_variable),
    "more nodes than a file may have": in_rule(many_references),
    "the rule of an op that is one of custom gradients": lambda draft: _op_refers(draft),
    "a rule missing": in_manifest(lambda m: m["rules"].pop()),
    "a rule twice": in_manifest(lambda m: m["rules"].append(m["rules"][0])),
    "too many rules": in_manifest(lambda m: m.update(rules=m["rules"] * 1001)),
    "lost: connected": in_captures(lambda n: n.update(lost=[0])),
    "lost: negative": in_captures(lambda n: n.update(lost=[-1])),
    "lost: too large": in_captures(lambda n: n.update(lost=[9])),
    "lost: a boolean": in_captures(lambda n: n.update(lost=[True])),
    "lost: not a list": in_captures(lambda n: n.update(lost={})),
    "beyond: not a boolean": in_captures(lambda n: n.update(backward=None, beyond=1)),
}


def _op_refers(draft: Draft) -> None:
    for path in [x for x in draft.texts if x.startswith("/functions/")]:
        record = draft.json(path)
        for node in nodes(record["graph"]):
            if node.get("op") == "multiply":
                node["rule"] = 0
        draft.put(record, path)


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_about_shared_rules_is_refused(lie: str, good: Path, tmp_path: Path) -> None:
    draft = Draft.of(good)
    LIES[lie](draft)
    draft.write(tmp_path / "bad.h5")
    with pytest.raises(LoadError):
        gt.load(tmp_path / "bad.h5")
    for look in (gt.saving.inspect, gt.saving.verify):  # they may read less, and end
        with contextlib.suppress(LoadError):
            look(tmp_path / "bad.h5")


def test_a_rule_that_is_nothing_but_itself_loads_and_every_derivative_ends(
    good: Path, tmp_path: Path
) -> None:
    draft = Draft.of(good)
    in_rule(only_itself)(draft)
    draft.write(tmp_path / "loop.h5")
    loaded = gt.load(tmp_path / "loop.h5")
    slope = lambda x: gt.sum(loaded.f(x))  # noqa: E731
    x = gt.ones((2, 3))
    for _ in range(4):
        slope = (lambda f: lambda x: gt.sum(gt.grad(f)(x)))(slope)
        slope(x)
        gt.function(slope)(x)
    gt.vmap(loaded.g)(gt.ones(3))
    gt.saving.verify(tmp_path / "loop.h5")
    str(loaded.f.concrete_functions[0].graph)
    gt.saving.inspect(tmp_path / "loop.h5")
    gt.saving.diff(tmp_path / "loop.h5", good)
    gt.save(loaded, tmp_path / "again.h5")


def test_a_graph_in_an_op_may_not_use_variables_through_a_rule(good: Path, tmp_path: Path) -> None:
    def edit(record: Any) -> None:
        graph = record["graph"]
        graph["nodes"].append({"read": 0, "inputs": []})

    draft = Draft.of(good)
    for number in range(len(rule_paths(draft))):  # one of them is that of a branch
        in_rule(edit, number)(draft)
    draft.write(tmp_path / "reads.h5")
    with pytest.raises(LoadError, match="inside an op uses a variable"):
        gt.load(tmp_path / "reads.h5")
