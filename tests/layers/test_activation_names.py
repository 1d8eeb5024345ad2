"""Every activation that layers know by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gradtape as gt
from gradtape import layers
from gradtape.layers.activations import NAMES, OTHER_NAMES

X = np.random.default_rng(2).standard_normal((4, 3))


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_the_op_of_that_name_with_its_defaults(name: str) -> None:
    op = gt.registry().ops[name]
    y = layers.Activation(name)(gt.constant(X))
    np.testing.assert_array_equal(y.numpy(), op(X, **op.defaults).numpy())
    gt.testing.check_gradients(layers.Activation(name), X)


@pytest.mark.parametrize(("other", "name"), OTHER_NAMES.items())
def test_another_name_means_the_same(other: str, name: str) -> None:
    x = gt.constant(X)
    np.testing.assert_array_equal(layers.Activation(other)(x), layers.Activation(name)(x))


def test_a_layer_with_such_an_activation_is_saved(tmp_path: Path) -> None:
    model = layers.Sequential([layers.Dense(2, activation="celu"), layers.Activation("swish")])
    want = model(gt.constant(X, "float32"))
    gt.save(model, tmp_path / "model.h5")
    found = gt.load(tmp_path / "model.h5")
    np.testing.assert_allclose(found(gt.constant(X, "float32")), want, rtol=1e-6)
