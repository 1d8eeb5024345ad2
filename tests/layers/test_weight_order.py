"""A layer's weights are in the order in which it made them, before and after a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import gradtape as gt


def names(module: gt.Module) -> list[str]:
    return [variable.name for variable in module.variables]


def test_kernels_come_before_biases_and_layers_in_their_order(tmp_path: Path) -> None:
    model = gt.layers.Sequential([gt.layers.Dense(3), gt.layers.BatchNorm(), gt.layers.Dense(2)])
    model(np.ones((2, 4), "float32"))
    expected = [
        "kernel",
        "bias",
        "gamma",
        "beta",
        "moving_mean",
        "moving_variance",
        "kernel",
        "bias",
    ]
    assert names(model) == expected
    assert [v.shape for v in model.layers[0].trainable_variables] == [(4, 3), (3,)]
    gt.save(model, tmp_path / "a.h5")
    assert names(gt.load(tmp_path / "a.h5")) == expected


def test_a_plain_module_keeps_to_sorted_names(tmp_path: Path) -> None:
    class Pair(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            self.second = gt.Variable(2.0, name="second")
            self.first = gt.Variable(1.0, name="first")

    gt.save(Pair(), tmp_path / "a.h5")
    assert names(Pair()) == names(gt.load(tmp_path / "a.h5")) == ["first", "second"]
