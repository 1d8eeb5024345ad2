"""Files of Keras 2, in which layers with slashes in their names, and models, are nested groups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import gradtape as gt

pytestmark = [pytest.mark.needs("weights"), pytest.mark.usefixtures("forks")]

L = gt.layers


def written(path: Path, names: dict[str, Any]) -> Path:
    with h5py.File(path, "w") as file:
        for name, array in names.items():
            file[name] = array
    return path


def filled(value: float) -> Any:
    return np.full((4, 4), value, "float32")


def dense(name: str) -> Any:
    return L.Dense(4, use_bias=False, name=name)


def kernels(model: Any) -> list[float]:
    return [v.numpy()[0, 0].item() for v in model.variables]


@pytest.mark.parametrize("start", ["", "model_weights/"])
@pytest.mark.parametrize(
    ("names", "mapping"),
    [
        (
            ["a/conv/a/conv/kernel:0", "a/out/a/out/kernel:0"],
            {"a/conv": "layers/0", "a/out": "layers/1"},
        ),
        (
            ["net/a/dense/kernel:0", "net/b/dense/kernel:0"],
            {"net/a/dense": "layers/0", "net/b/dense": "layers/1"},
        ),
        (["net/a/kernel:0", "net/b/kernel:0"], {"net/a": "layers/0", "net/b": "layers/1"}),
        (["a/net/a/kernel:0", "b/net/b/kernel:0"], {"a": "layers/0", "b": "layers/1"}),
        (["a/a/cell/kernel:0", "b/b/cell/kernel:0"], {"a": "layers/0", "b": "layers/1"}),
        (["a/a/cell/kernel:0", "b/b/cell/kernel:0"], {"a/cell": "layers/0", "b/cell": "layers/1"}),
        (["a/a/kernel:0", "b/b/kernel:0"], [("^a/", "layers/0/"), ("^b/", "layers/1/")]),
        (
            ["a/a/kernel:0", "b/b/kernel:0"],
            {"a/kernel": "layers/0/kernel", "b/kernel": "layers/1/kernel"}.__getitem__,
        ),
        (["first/first/kernel:0", "second/second/kernel:0"], None),
    ],
)
def test_layers_are_mapped_by_their_names(
    start: str, names: Any, mapping: Any, tmp_path: Path
) -> None:
    arrays = {start + name: filled(i + 1) for i, name in enumerate(names)}
    path = written(tmp_path / "old.h5", arrays)
    model = L.Sequential([dense("first"), dense("second")])
    assert model.load_weights(path, mapping=mapping).ok
    assert kernels(model) == [1.0, 2.0]


def test_a_part_of_a_name_with_slashes_is_left_out(tmp_path: Path) -> None:
    arrays = {"c/conv/c/conv/kernel:0": filled(3.0), "c/bn/c/bn/gamma:0": np.ones(4, "float32")}
    path = written(tmp_path / "old.h5", arrays)
    model = L.Sequential([dense("first")])
    report = model.load_weights(path, mapping={"c/conv": "layers/0", "c/bn": None})
    assert report.loaded == {"layers/0/kernel": "c/conv/kernel"}
    assert report.left_out == {"c/bn/gamma": "the mapping says so"}
    with pytest.raises(ValueError, match=r"'c/dense' match no name; the file has .*c/bn/gamma"):
        model.load_weights(path, mapping={"c/dense": "layers/0"})


def test_models_in_models_are_found_by_their_names(tmp_path: Path) -> None:
    names = ["encoder/fc1/kernel:0", "encoder/fc2/kernel:0", "head/head/kernel:0"]
    path = written(tmp_path / "old.h5", {name: filled(i + 1) for i, name in enumerate(names)})
    encoder = L.Sequential([dense("fc1"), dense("fc2")], name="encoder")
    x = gt.Input((4,))
    for model in (
        L.Sequential([encoder, dense("head")]),
        gt.Model(x, dense("head")(L.Sequential([dense("fc1"), dense("fc2")], name="encoder")(x))),
    ):
        assert model.load_weights(path).ok
        for name, layer in {layer.name: layer for layer in model.submodules}.items():
            if name in ("fc1", "fc2", "head"):
                assert kernels(layer) == [1.0 + ["fc1", "fc2", "head"].index(name)]
