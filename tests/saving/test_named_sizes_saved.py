"""Names of sizes are in a file, and what comes of it checks them at each call."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import h5py
import pytest
from fresh_process import run_isolated

import gradtape as gt

pytestmark = pytest.mark.usefixtures("forks")

BATCH = gt.TensorSpec(["batch", 3])
WEIGHTS = gt.TensorSpec(["batch"])
CLASH = (
    "size 'batch' is 2 in axis 0 of argument 'x' and 5 in axis 0 of argument \"more['w']\"; "
    "sizes with the same name must be equal in a call"
)


class Weighted(gt.Module):
    @gt.function(input_signature=[BATCH, {"w": WEIGHTS, "k": gt.TensorSpec([None])}])
    def total(self, x: Any, more: Any) -> Any:
        return gt.sum(gt.sum(x, axis=1) * more["w"]) + gt.sum(more["k"])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    gt.save(Weighted(), tmp_path / "model.h5")
    return tmp_path / "model.h5"


def call(model: Any, n: int, m: int) -> float:
    return float(model.total(gt.ones((n, 3)), {"w": gt.ones(m), "k": gt.ones(4)}))


def test_a_loaded_function_checks_that_equal_names_are_equal_sizes(path: Path) -> None:
    loaded = gt.load(path)
    assert [call(loaded, n, n) for n in (0, 1, 2, 7)] == [4.0, 7.0, 10.0, 25.0]
    with pytest.raises(ValueError, match=re.escape(CLASH)):
        call(loaded, 2, 5)
    (concrete,) = loaded.total.concrete_functions
    assert [spec.names for spec in concrete.specs] == [("batch", None), None, ("batch",)]
    assert gt.saving.verify(path).ok


def test_a_file_loaded_and_saved_again_keeps_the_names(path: Path, tmp_path: Path) -> None:
    gt.save(gt.load(path), tmp_path / "again.h5")
    again = gt.load(tmp_path / "again.h5")
    with pytest.raises(ValueError, match=re.escape(CLASH)):
        call(again, 2, 5)


def test_a_fresh_process_checks_them_too(path: Path) -> None:
    code = """
model = gt.load(sys.argv[1])
try:
    model.total(gt.ones((2, 3)), {"w": gt.ones(5), "k": gt.ones(4)})
except ValueError as error:
    print(error)
"""
    assert CLASH in run_isolated(code, path)


def test_names_are_in_the_text_of_a_file_and_of_its_functions(path: Path) -> None:
    assert "x: float32[batch, 3]" in gt.saving.inspect_text(path)
    assert "float32[batch]" in gt.saving.inspect_text(path)
    with h5py.File(path) as file:
        manifest = json.loads(file["manifest"][()])
        trace = json.loads(file[manifest["functions"][0]["traces"][0]["dataset"]][()])
    specs = [spec.get("names") for spec in trace["graph"]["inputs"]]
    assert specs == [["batch", None], None, ["batch"]]


def test_specs_without_names_are_written_as_before(tmp_path: Path) -> None:
    class Plain(gt.Module):
        @gt.function(input_signature=[gt.TensorSpec([None, 3])])
        def total(self, x: Any) -> Any:
            return gt.sum(x)

    gt.save(Plain(), tmp_path / "model.h5")
    with h5py.File(tmp_path / "model.h5") as file:
        manifest = json.loads(file["manifest"][()])
        text = file[manifest["functions"][0]["traces"][0]["dataset"]][()]
    assert b'"names"' not in text


SQUARE = (gt.TensorSpec([None, "n"]), gt.TensorSpec(["n", "n"]))


@pytest.mark.parametrize("called", [True, False])
def test_samples_have_equal_sizes_where_names_are_equal(called: bool, tmp_path: Path) -> None:
    class Kernel(gt.Module):
        @gt.function
        def apply(self, x: Any, k: Any) -> Any:
            return gt.matmul(x, k)

    model = Kernel()
    if called:
        model.apply(gt.ones((2, 5)), gt.ones((5, 5)))
    model.apply.get_concrete_function(*SQUARE)
    gt.save(model, tmp_path / "model.h5")
    with h5py.File(tmp_path / "model.h5") as file:
        (function,) = json.loads(file["manifest"][()])["functions"]
    shapes = [
        [spec["shape"] for spec in case["inputs"]] for case in function["traces"][-1]["golden"]
    ]
    assert len(shapes) >= 2
    assert all(x[1] == k[0] == k[1] for x, k in shapes)
    assert gt.saving.verify(tmp_path / "model.h5").ok
