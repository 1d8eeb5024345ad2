"""Files that lie about the steps of each variable: each lie is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rewriting import Draft

import gradtape as gt
from gradtape.saving import DamagedFile

NUMBERS = {
    "negative": np.int64(-1),
    "huge": np.int64(2**63 - 1),
    "NaN": np.float64("nan"),
    "narrow": np.int8(126),  # which could not count on
    "unsigned": np.uint64(2**63),
    "a truth": np.bool_(True),
    "several": np.zeros(3, "int64"),
}
COUNTER = {"variable": "/variables/o/step_counts/0"}
LISTS: dict[str, Any] = {
    "a number": {"value": 3},
    "a text": {"value": "x"},
    "nothing": {"value": None},
    "a set": {"set": []},
    "a dictionary": {"dict": {"a": COUNTER}},
    "pairs": {"items": [[0, COUNTER]]},
    "a counter": COUNTER,
    "a module": {"module": 0},
    "numbers": {"list": [{"value": 3}, {"value": 4}]},
    "an op": {"list": [{"op": "add"}]},
    "a number among counters": {"list": [COUNTER, {"value": 3}]},
    "lists": {"list": [{"list": [COUNTER]}] * 2},
    "itself": {"list": [{"same": 0}]},
    "another list": {"same": 0},
    "weights": {"list": [{"variable": "/variables/m/a"}] * 2},
    "learning rates": {"list": [{"variable": "/variables/o/learning_rate"}] * 2},
    "more than were trained": {"list": [COUNTER] * 3},
    "far more than were trained": {"list": [COUNTER] * 10_000},
}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root, root.m, root.o = gt.Module(), gt.Module(), gt.training.Adam(0.1)
    root.m.a, root.m.b = gt.Variable([1.0, 2.0]), gt.Variable([3.0])
    for names in ("a", "b", "a"):
        weights = [getattr(root.m, name) for name in names]
        root.o.apply_gradients([(gt.ones_like(w), w) for w in weights])
    path = tmp_path_factory.mktemp("counts") / "counts.h5"
    gt.save(root, path)
    return path


def refused(template: Path, path: Path, change: Callable[[Draft, Any], Any]) -> None:
    draft = Draft.of(template)
    manifest = draft.json()
    change(draft, manifest)
    draft.put(manifest)
    draft.write(path)
    for lazy in (False, True):
        with pytest.raises(DamagedFile, match=r"step_counts|number of steps|iterations"):
            gt.load(path, lazy=lazy)


def numbered(value: Any, manifest: Any) -> Any:
    """Return an attribute with the numbers of its variables for their datasets."""
    if isinstance(value, list):
        return [numbered(item, manifest) for item in value]
    if not isinstance(value, dict):
        return value
    datasets = [record["dataset"] for record in manifest["variables"]]
    return {
        key: datasets.index(item) if key == "variable" else numbered(item, manifest)
        for key, item in value.items()
    }


@pytest.mark.parametrize("name", LISTS)
def test_what_is_no_list_of_counters_is_refused(name: str, template: Path, tmp_path: Path) -> None:
    def change(draft: Draft, manifest: Any) -> None:
        attributes = manifest["modules"][2]["attributes"]
        attributes["step_counts"] = numbered(LISTS[name], manifest)

    refused(template, tmp_path / "lie.h5", change)


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("dataset", ["step_counts/0", "iterations"])
def test_what_is_no_count_is_refused(
    name: str, dataset: str, template: Path, tmp_path: Path
) -> None:
    def change(draft: Draft, manifest: Any) -> None:
        value, path = np.asarray(NUMBERS[name]), f"/variables/o/{dataset}"
        record = next(x for x in manifest["variables"] if x["dataset"] == path)
        draft.arrays[path] = value
        record.update(dtype=value.dtype.name, shape=list(value.shape))

    refused(template, tmp_path / "lie.h5", change)
