"""``verify`` computes what a stranger's file says: within limits of memory and time."""

from __future__ import annotations

import math
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rewriting import Draft, rewritten

import gradtape as gt
from gradtape.cli import main

SPEC = [gt.TensorSpec([None])]


class Plain(gt.Module):
    """A function that its file says something else of."""

    @gt.function(input_signature=SPEC)
    def f(self, x: Any) -> Any:
        return gt.sum(gt.tile(x, (2,)))


class Endless(gt.Module):
    """A loop within a loop within a loop: each ends, and all of them together do not."""

    @gt.function(input_signature=[gt.TensorSpec([])])
    def f(self, x: Any) -> Any:
        def loop(body: Any, x: Any) -> Any:
            def step(i: Any, x: Any) -> Any:
                return i + 1, body(x)

            return gt.while_loop(lambda i, x: i < 3, step, (gt.constant(0), x))[1]

        return loop(lambda x: loop(lambda x: loop(lambda x: x + 1.0, x), x), x)


def bomb(path: Path, times: int) -> Path:
    """Let a small file repeat its input ``times`` times."""
    gt.save(Plain(), path)

    def change(draft: Draft) -> None:
        record = draft.json("/functions/0")
        (node,) = (n for n in record["graph"]["nodes"] if n.get("op") == "tile")
        node["params"]["reps"] = {"tuple": [times]}
        draft.put(record, "/functions/0")

    return rewritten(path, change)


def patient(path: Path) -> Path:
    """Let every loop of a file take 9,000 steps."""
    gt.save(Endless(), path)

    def lengthen(tree: Any) -> None:
        if isinstance(tree, list):
            for item in tree:
                lengthen(item)
        elif isinstance(tree, dict):
            if tree.get("op") == "less":
                tree["inputs"] = [9000 if x == 3 else x for x in tree["inputs"]]
                tree["inputs"] = [
                    {"scalar": 9000} if isinstance(x, dict) else x for x in tree["inputs"]
                ]
            for item in tree.values():
                lengthen(item)

    def change(draft: Draft) -> None:
        record = draft.json("/functions/0")
        lengthen(record)
        draft.put(record, "/functions/0")

    return rewritten(path, change)


@pytest.mark.parametrize("hand", [False, True], ids=["apart", "in this process"])
def test_a_small_file_cannot_take_all_memory(hand: bool, tmp_path: Path) -> None:
    path = bomb(tmp_path / "a.h5", 2**31)
    assert path.stat().st_size < 20_000
    plugin = SimpleNamespace(gradtape_ops=gt.hookimpl(lambda: ()))
    if hand:
        gt.register_plugin(plugin, "by_hand")
    try:
        with pytest.raises(gt.saving.UnsafeFile, match=r"more than 1,073,\d+,\d+ bytes") as error:
            gt.saving.verify(path)
        assert str(error.value).startswith(str(path))
        assert "plain.f for x (3,)" in str(error.value)
    finally:
        if hand:
            gt.unregister_plugin("by_hand")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system limits no memory")
def test_memory_that_no_shape_tells_is_limited_by_the_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Hidden(gt.Module):
        """What takes memory is inside a loop, whose sizes depend on values."""

        @gt.function(input_signature=SPEC)
        def f(self, x: Any) -> Any:
            k = gt.cast(gt.sum(x * 0.0), "int64") + 2**27
            return gt.sum(gt.ones((k,)) * x[0])

    gt.save(Hidden(), tmp_path / "a.h5", golden=False)
    draft = Draft.of(tmp_path / "a.h5")
    manifest = draft.json()
    case = {"case": "/golden/0/0", "elements": "spread"}
    case["inputs"] = [{"shape": [3], "dtype": "float32"}]
    case["values"] = [{"shape": [], "dtype": "float32", "name": "output 0"}]
    manifest["functions"][0]["traces"][0]["golden"] = [case]
    draft.put(manifest)
    draft.arrays["/golden/0/0/float32"] = np.array([1, 2, 3, 2**27], "float32")
    draft.write(tmp_path / "a.h5")
    with pytest.raises(gt.saving.UnsafeFile, match="takes more than 100,000,000 bytes"):
        gt.saving.verify(tmp_path / "a.h5", max_memory=1e8)
    assert gt.saving.verify(tmp_path / "a.h5", max_memory=8e9).ok


def test_a_file_that_never_ends_is_ended(tmp_path: Path) -> None:
    path = patient(tmp_path / "a.h5")
    with pytest.raises(gt.saving.UnsafeFile, match="takes longer than 4 s; raise max_seconds"):
        gt.saving.verify(path, max_seconds=4)


def test_the_command_line_has_the_limits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = bomb(tmp_path / "a.h5", 2**20)
    assert main(["verify", str(path), "--max-memory", "1e6"]) == 1
    assert "takes more than 1,000,000 bytes; raise max_memory" in capsys.readouterr().err
    path = patient(tmp_path / "b.h5")
    assert main(["verify", str(path), "--max-seconds", "3"]) == 1
    assert "takes longer than 3 s" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["verify", str(path), "--max-seconds", "0"])
    assert "must be a number greater than 0" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["max_memory", "max_seconds"])
@pytest.mark.parametrize("limit", [0, -1.0, math.nan])
def test_limits_are_above_0(name: str, limit: float, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"verify: {name} must be above 0"):
        gt.saving.verify(tmp_path / "a.h5", **{name: limit})


def test_both_processes_report_the_same(tmp_path: Path) -> None:
    model = gt.layers.Sequential([gt.layers.Dense(3, activation=lambda x: gt.sin(x) * x)])
    model(np.ones((2, 4), "float32"))
    gt.save(model, tmp_path / "a.h5")
    report = gt.saving.verify(tmp_path / "a.h5")
    here = gt.saving.verify(tmp_path / "a.h5", max_memory=math.inf, max_seconds=math.inf)
    assert report == here
    assert report.ok
    assert report.table() == here.table()


def test_errors_of_the_other_process_are_raised_here(tmp_path: Path) -> None:
    with pytest.raises(gt.saving.FileMissing, match="there is no such file"):
        gt.saving.verify(tmp_path / "a.h5")
    (tmp_path / "b.h5").write_bytes(b"nothing")
    with pytest.raises(gt.saving.NotAGradtapeFile):
        gt.saving.verify(tmp_path / "b.h5")
    with pytest.raises(LookupError, match="nowhere"):
        gt.saving.verify(tmp_path / "b.h5", "nowhere")


def test_without_an_interpreter_this_process_computes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gt.save(Plain(), tmp_path / "a.h5")
    monkeypatch.setattr("sys.executable", "")
    assert gt.saving.verify(tmp_path / "a.h5").ok
