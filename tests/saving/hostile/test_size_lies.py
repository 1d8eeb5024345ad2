"""Lies in the formulas of sizes: they are refused, in no time, or mean what they say."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forge import forged, graph, node, put
from machine import seconds_of

import gradtape as gt
from gradtape.saving import DamagedFile, LoadError

pytestmark = pytest.mark.usefixtures("forks")


class Sized(gt.Module):
    """A graph with formulas."""

    @gt.function(input_signature=[gt.TensorSpec([None, 3]), gt.TensorSpec([], "int64")])
    def made(self, x: Any, k: Any, more: int = 2) -> Any:
        return gt.zeros((x.shape[0] // 2 + 1, more)), gt.ones((k, 2))


@pytest.fixture(scope="module")
def sized(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("sized") / "sized.h5"
    gt.save(Sized(), path)
    return path.read_bytes()


SIZE = ["size", 0, 0]


def deep(kind: str, levels: int, *more: Any) -> Any:
    tree: Any = SIZE
    for _ in range(levels):
        tree = [kind, tree, *more]
    return tree


def sums(levels: int) -> Any:
    tree: Any = SIZE
    for i in range(levels):
        tree = ["//", ["*", ["+", tree, ["%", SIZE, 5 + i]], ["+", SIZE, ["%", SIZE, 9], i]], 3]
    return tree


LIES: dict[str, Any] = {
    "a power of powers": ["**", 10, ["**", 10, 10]],
    "a large power": ["**", 10, 10**9],
    "a power with a negative exponent": ["**", 2, -1],
    "powers of a sum": deep("**", 20, 16),
    "a product of large numbers": ["*", *[["**", 2, 4000]] * 2000],
    "powers of a size": ["**", ["*", SIZE, ["**", 10, 300]], 16],
    "a division by zero": ["//", SIZE, 0],
    "a remainder of zero": ["%", SIZE, ["-", 2, 2]],
    "a division of numbers by zero": ["/", 1, 0],
    "no arguments": ["+"],
    "one argument": ["//", SIZE],
    "three arguments": ["%", SIZE, 2, 3],
    "two arguments of a sign": ["neg", SIZE, 2],
    "an unknown kind": ["__import__", "os"],
    "a kind that is a number": [1, SIZE],
    "a kind that is a list": [["size"], 0, 0],
    "text": "n",
    "nothing": [],
    "a truth": True,
    "null": None,
    "an argument of text": ["+", SIZE, "1"],
    "an argument of null": ["+", SIZE, None],
    "a complex number": ["+", SIZE, {"complex": ["1.0", "2.0"]}],
    "a tuple": {"tuple": ["size", 0, 0]},
    "a list in a tag": ["+", SIZE, {"tuple": []}],
    "a size in a size": ["+", SIZE, {"size": SIZE}],
    "a float": {"float": "2.0"},
    "a float of sizes": ["/", SIZE, 2],
    "nan": {"float": "nan"},
    "inf, rounded": ["floor", {"float": "inf"}],
    "a comparison of numbers": ["<", 1, 2],
    "a comparison of sizes": ["<", SIZE, 2],
    "a negative number": -3,
    "a negative size": ["-", ["neg", SIZE], 1],
    "no such witness": ["size", 1, 0],
    "witness -1": ["size", -1, 0],
    "witness true": ["size", True, 0],
    "no such axis": ["size", 0, 2],
    "axis -1": ["size", 0, -1],
    "a float axis": ["size", 0, {"float": "0.0"}],
    "no axis": ["size", 0],
    "the value of an array of floats": ["value", 0],
    "the value of a part": ["value", 0, 0],
    "an integer of 100 bits": 2**100,
    "a complex power": ["**", -2, {"float": "0.5"}],
}


def made(records: list[Any], place: int = 0) -> Any:
    return [n for n in graph(records, "made")["nodes"] if "witnesses" in n][place]


@pytest.mark.parametrize("name", LIES)
def test_a_lie_in_a_formula_is_refused_at_once(name: str, sized: bytes, tmp_path: Path) -> None:
    path = tmp_path / "sized.h5"
    path.write_bytes(sized)
    shape = {"tuple": [{"size": LIES[name]}, 2]}
    forged(path, graphs=lambda r: put(made(r)["params"], "shape", shape))
    start = time.thread_time()
    for read in (gt.load, gt.saving.verify):
        with pytest.raises(LoadError) as caught:
            read(path)
        assert str(caught.value).startswith(str(path))
    with contextlib.suppress(LoadError):
        gt.saving.inspect_text(path)
    assert time.thread_time() - start < seconds_of(5.0)


@pytest.mark.parametrize(
    "change",
    [
        lambda r: put(made(r), "witnesses", 2),
        lambda r: put(made(r), "witnesses", -1),
        lambda r: put(made(r), "witnesses", True),
        lambda r: put(made(r), "witnesses", 99),
        lambda r: made(r).pop("witnesses"),
        lambda r: put(made(r)["inputs"], -1, {"scalar": 3}),
        lambda r: put(made(r)["inputs"], -1, 99),
        lambda r: put(made(r)["inputs"], 0, {"scalar": {"size": SIZE}}),
        lambda r: put(
            next(x for x in r if x["name"] == "made")["arguments"]["tuple"][0]["tuple"],
            2,
            {"size": 2},
        ),
        lambda r: put(made(r)["outputs"][0], "shape", [4, 4]),
        lambda r: put(node(r, "broadcast_to", "made"), "witnesses", None),
    ],
)
def test_lies_about_what_tells_sizes(change: Any, sized: bytes, tmp_path: Path) -> None:
    path = tmp_path / "sized.h5"
    path.write_bytes(sized)
    forged(path, graphs=change)
    with pytest.raises(DamagedFile):
        gt.load(path)


def test_a_default_is_no_size(sized: bytes, tmp_path: Path) -> None:
    path = tmp_path / "sized.h5"
    path.write_bytes(sized)

    def change(manifest: Any) -> None:
        manifest["functions"][0]["parameters"][-1]["default"] = {"size": SIZE}

    forged(path, manifest=change)
    with pytest.raises(DamagedFile):
        gt.load(path)


def test_a_long_formula_takes_no_time(sized: bytes, tmp_path: Path) -> None:
    path = tmp_path / "sized.h5"
    path.write_bytes(sized)
    shape = {"tuple": [{"size": sums(15)}, 2]}
    forged(path, graphs=lambda r: put(made(r)["params"], "shape", shape))
    start = time.thread_time()
    with contextlib.suppress(LoadError):
        gt.load(path)
    assert time.thread_time() - start < seconds_of(2.0)


def test_what_a_formula_says_is_what_a_run_does(sized: bytes, tmp_path: Path) -> None:
    """A formula that a stranger wrote is computed, however it is written."""
    path = tmp_path / "sized.h5"
    path.write_bytes(sized)
    size = [
        "max",
        ["-", ["ceil", ["*", SIZE, {"float": "1.5"}]], 4],
        ["&", ["int", ["<", SIZE, 3]], 1],
    ]
    shape = {"tuple": [{"size": size}, 2]}
    forged(path, graphs=lambda r: put(made(r)["params"], "shape", shape))
    loaded = gt.load(path)
    for n in range(6):
        first, second = loaded.made(np.ones((n, 3), "float32"), n)
        assert first.shape == (max(-(-3 * n // 2) - 4, int(n < 3)), 2)
        assert second.shape == (n, 2)
    with pytest.raises(ValueError, match="negative"):
        loaded.made(np.ones((2, 3), "float32"), -1)
