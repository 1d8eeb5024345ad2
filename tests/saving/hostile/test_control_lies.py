"""Lies in the graphs that ops run: nothing but a LoadError may come of them."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forge import forged, node, put

import gradtape as gt
from gradtape.saving import DamagedFile, LoadError


def loops(x: gt.Tensor) -> gt.Tensor:
    y = gt.cond(gt.sum(x) > 0, lambda: x * x, lambda: gt.sin(x))
    z = gt.while_loop(lambda i, z: i < 3, lambda i, z: (i + 1, gt.tanh(z)), (0, y))[1]
    return gt.grad(lambda v: gt.sum(gt.scan(lambda c, e: (c * e, c), v[0], v)[1]))(z)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("good") / "loops.h5"
    module = gt.Module()
    module.loops = gt.function(loops, input_signature=[gt.TensorSpec([None], "float64")])
    gt.save(module, path)
    return path.read_bytes()


@pytest.fixture
def path(template: bytes, tmp_path: Path) -> Path:
    (tmp_path / "loops.h5").write_bytes(template)
    return tmp_path / "loops.h5"


def params(records: list[Any], op: str) -> Any:
    return node(records, op, "loops")["params"]


def inner(records: list[Any], op: str, key: str) -> Any:
    return params(records, op)[key]["graph"]


LIES: dict[str, Any] = {
    "no graph": lambda r: put(params(r, "cond"), "true", 1),
    "a text for a graph": lambda r: put(params(r, "cond"), "true", {"graph": "x"}),
    "a graph without inputs": lambda r: put(inner(r, "cond", "true"), "inputs", []),
    "an input of another dtype": lambda r: put(
        inner(r, "cond", "true")["inputs"][0], "dtype", "int64"
    ),
    "an output less": lambda r: put(inner(r, "cond", "false"), "outputs", []),
    "graphs exchanged": lambda r: put(
        params(r, "while_loop"), "cond", copy.deepcopy(params(r, "while_loop")["body"])
    ),
    "too many loop variables": lambda r: put(params(r, "while_loop"), "count", 7),
    "a negative number of them": lambda r: put(params(r, "while_loop"), "count", -1),
    "true of them": lambda r: put(params(r, "while_loop"), "count", True),
    "no limit but a text": lambda r: put(params(r, "while_loop"), "most", "many"),
    "a carry too many": lambda r: put(params(r, "scan"), "carried", 2),
    "nothing scanned": lambda r: put(params(r, "scan"), "scanned", 0),
    "an order too high": lambda r: put(params(r, "scan"), "order", 5),
    "an order of true": lambda r: put(params(r, "scan"), "order", True),
    "an order below": lambda r: put(params(r, "scan"), "order", -1),
    "a length of its own": lambda r: put(params(r, "scan"), "length", 2.5),
    "an update inside": lambda r: put(inner(r, "cond", "true"), "updates", [[0, 0]]),
    "a variable inside": lambda r: inner(r, "cond", "true")["nodes"].insert(
        0, {"read": 0, "inputs": []}
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_about_a_graph_inside_is_damage(lie: str, path: Path) -> None:
    with pytest.raises(LoadError):
        gt.load(forged(path, graphs=LIES[lie]))
    with pytest.raises(DamagedFile):
        gt.load(path)


def places(tree: Any, found: list[Any]) -> list[Any]:
    """Return every container and key of JSON."""
    for key in tree.keys() if isinstance(tree, dict) else range(len(tree)):
        found.append((tree, key))
        if isinstance(tree[key], (dict, list)):
            places(tree[key], found)
    return found


@pytest.mark.parametrize("seed", range(60))
def test_random_changes_load_right_or_not_at_all(seed: int, path: Path) -> None:
    rng = random.Random(seed)
    x = np.array([0.5, -0.2, 0.8])
    want = gt.load(path).loops(x).numpy()

    def change(records: list[Any]) -> None:
        tree, key = rng.choice(places(records[0]["graph"], []))
        others = [0, 1, -1, True, None, "x", 2.5, [], {}, {"graph": {}}, 10**6, "float32"]
        tree[key] = json.loads(json.dumps(rng.choice(others)))

    try:
        loaded = gt.load(forged(path, graphs=change))
    except LoadError:
        return
    if not hasattr(loaded, "loops"):
        return
    try:  # it is a graph of known ops with fitting shapes: another program, but a sound one
        got = loaded.loops(x).numpy()
    except (ValueError, TypeError, IndexError, ArithmeticError):
        return
    assert got.dtype == want.dtype
