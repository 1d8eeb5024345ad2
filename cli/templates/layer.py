"""A layer that files can name."""

from __future__ import annotations

__all__ = ["FILES", "GROUP", "NEEDS", "TEST_NEEDS", "USE", "WHAT"]

WHAT, GROUP, NEEDS, TEST_NEEDS = "A layer", '"gradtape.modules"', "", ""
USE = """\
import gradtape as gt
from $module import Scale

model = gt.layers.Sequential([gt.layers.Dense(4), Scale(start=2.0)])
assert model(gt.ones((1, 3))).shape == (1, 4)
gt.save(model, "model.h5")
assert type(gt.load("model.h5").layers[1]) is Scale
"""
FILES = {
    "src/$module/__init__.py": '''\
"""A layer for gradtape."""

from .layers import Scale

__all__ = ["Scale"]
''',
    "src/$module/plugin.py": '''\
"""The plugin, which gradtape imports when a file first asks for classes."""

from collections.abc import Mapping

from gradtape.plugin import hookimpl, saved_classes

from . import layers

#: The version of gradtape.plugin that this was written for: see gradtape.plugin.API.
gradtape_api = (1, 0)


@hookimpl
def gradtape_modules() -> Mapping[str, type]:
    return saved_classes(vars(layers))
''',
    "src/$module/layers.py": '''\
"""The layers. What a class computes and its name in files never change."""

from typing import Any

import gradtape as gt


class Scale(gt.layers.Layer, saved_as="$module.Scale"):
    """Multiplies each feature by a weight, which is trained."""

    def __init__(self, start: float = 1.0, name: str | None = None) -> None:
        super().__init__(name=name)
        self.start = start

    def build(self, shape: Any) -> None:
        """Create the weights, when the number of features is known."""
        self.factor = self.add_weight((shape[-1],), "ones", name="factor")
        self.factor.assign(self.factor * self.start)

    def call(self, x: Any) -> Any:
        """Return the product."""
        return x * self.factor

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that create the layer again."""
        return {"start": self.start, "name": self.name}
''',
    "tests/test_layer.py": '''\
"""The layer computes, trains, and comes back from a file."""

import gradtape as gt
import numpy as np

from $module import Scale


def test_values_and_gradients():
    layer = Scale(start=2.0)
    x = gt.constant([[1.0, 3.0]])
    with gt.GradientTape() as tape:
        loss = gt.sum(layer(x) ** 2)
    assert layer(x).tolist() == [[2.0, 6.0]]
    assert tape.gradient(loss, layer.factor).tolist() == [4.0, 36.0]


def test_a_model_is_saved_with_the_layer(tmp_path):
    model = gt.layers.Sequential([gt.layers.Dense(4), Scale(start=2.0)])
    x = np.ones((2, 3), "float32")
    want = model(x).numpy()
    gt.save(model, tmp_path / "model.h5")
    assert gt.saving.verify(tmp_path / "model.h5")
    again = gt.load(tmp_path / "model.h5")
    assert type(again.layers[1]) is Scale
    np.testing.assert_array_equal(again(x).numpy(), want)


def test_gradtape_finds_the_plugin():
    owner = gt.registry().owner("module", "$module.Scale")
    assert owner is not None and owner.distribution == "$name"
''',
}
