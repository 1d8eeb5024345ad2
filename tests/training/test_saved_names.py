"""What files call classes: never changed, and said by the class itself."""

from __future__ import annotations

import doctest
import importlib
import json
import pkgutil
import re
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import gradtape as gt
from gradtape.core.extend import hookimpl, saved_classes

# the names in files that exist: a name on this page is for ever
PAGE = (Path(__file__).parents[2] / "docs" / "format-classes.md").read_text(encoding="utf-8")
ROWS = (line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `"))
NAMES = {name for row in ROWS for name in re.findall(r"`((?:layers|training)\.[\w.]+)`", row)}


def test_the_names_in_files_stay() -> None:
    modules = gt.registry().modules
    ours = {name for name in modules if name.partition(".")[0] in ("layers", "training")}
    assert ours == NAMES
    for name in ours:
        assert modules[name].saved_as == name
        package, _, attribute = name.rpartition(".")
        assert getattr(importlib.import_module(f"gradtape.{package}"), attribute) is modules[name]


def test_a_plugin_lists_the_classes_that_say_their_name(tmp_path: Path) -> None:
    class Scale(gt.layers.Layer, saved_as="acme.Scale"):
        def build(self, input_shape: Any) -> None:
            self.factor = self.add_weight((input_shape[-1],), "ones")

        def call(self, x: Any) -> Any:
            return x * self.factor

    class Other(Scale):
        pass

    assert Other.saved_as is None
    assert saved_classes({"Scale": Scale, "Other": Other, "n": 3}) == {"acme.Scale": Scale}

    class Twin(gt.Module, saved_as="acme.Scale"):
        pass

    with pytest.raises(ValueError, match=r"are both saved as 'acme.Scale'"):
        saved_classes({"Scale": Scale}, {"Again": Scale, "Twin": Twin})

    class Plugin:
        @staticmethod
        @hookimpl
        def gradtape_modules() -> Any:
            return saved_classes({"Scale": Scale})

    gt.register_plugin(Plugin(), "acme")
    try:
        layer = Scale()
        layer(np.ones((2, 3)))
        gt.save(layer, tmp_path / "scale.h5")
        assert type(gt.load(tmp_path / "scale.h5")) is Scale
    finally:
        gt.unregister_plugin("acme")


def test_classes_of_the_tensorflow_names_are_saved_as_graphs(tmp_path: Path) -> None:
    import gradtape.compat.tensorflow as tf

    root = tf.Module()
    root.model = tf.keras.Sequential([tf.keras.layers.Dense(2)])
    root.optimizer, root.metric = tf.keras.optimizers.RMSprop(), tf.keras.metrics.Mean()
    root.model(np.ones((1, 3)))
    gt.save(root, tmp_path / "root.h5")
    with h5py.File(tmp_path / "root.h5") as file:
        manifest = json.loads(file["manifest"][()])
    kinds = {record["class_name"]: record["class"] for record in manifest["modules"]}
    names = ("Module", "Sequential", "Dense", "RMSprop", "Mean")
    assert kinds == dict.fromkeys(names)


@pytest.mark.parametrize(
    "name",
    [
        info.name
        for package in ("layers", "training")
        for info in pkgutil.walk_packages(
            importlib.import_module(f"gradtape.{package}").__path__, f"gradtape.{package}."
        )
    ],
)
def test_the_examples_of_docstrings_run(name: str) -> None:
    module = importlib.import_module(name)
    assert doctest.testmod(module, extraglobs={"gt": gt, "np": np}).failed == 0
