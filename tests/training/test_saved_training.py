"""Training that goes on after a reload is the training that was not interrupted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.layers import Activation, BatchNorm, Dense, Dropout, Flatten, Sequential
from gradtape.training import SGD, Adam, fit

RNG = np.random.default_rng(5)
X = RNG.normal(size=(48, 6)).astype("float32")
LABELS = (X[:, 0] > 0).astype(int)


class Gain(gt.layers.Layer):
    """A layer that nobody registered: it comes back as a module of graphs."""

    def build(self, input_shape: Any) -> None:
        self.gain = self.add_weight((input_shape[-1],), "ones", "gain")

    def call(self, x: Any, training: bool = False) -> Any:
        return x * self.gain * (2.0 if training else 1.0)


@pytest.mark.parametrize(
    "make", [lambda: Adam(0.01), lambda: SGD(0.1), lambda: SGD(0.1, 0.9, True)]
)
def test_a_reloaded_model_and_optimizer_train_on_as_before(make: Any, tmp_path: Path) -> None:
    gt.random.set_seed(0)
    root = gt.Module()
    root.model = Sequential(
        [
            Dense(8, activation=lambda x: gt.tanh(x) * 0.5),
            BatchNorm(scale=False),
            Dropout(0.3),
            Gain(),
            Flatten(),
            Activation("relu"),
            Dense(2, use_bias=False),
        ]
    )
    root.optimizer = make()
    options = {"verbose": False, "seed": 1, "epochs": 2}
    fit(root.model, (X, LABELS), optimizer=root.optimizer, **options)
    for name in ("first.h5", "second.h5"):  # once from the original, once from what was loaded
        gt.save(root, tmp_path / name)
        twin = gt.load(tmp_path / name)
        kinds = [type(layer) for layer in twin.model.layers]
        assert [kind.__name__ for kind in kinds].count("LoadedModule") == 1
        assert kinds[1] is BatchNorm
        assert type(twin.optimizer) is type(root.optimizer)
        np.testing.assert_array_equal(twin.model(X).numpy(), root.model(X).numpy())
        expected = fit(root.model, (X, LABELS), optimizer=root.optimizer, **options)
        resumed = fit(twin.model, (X, LABELS), optimizer=twin.optimizer, **options)
        assert resumed.history == expected.history
        root = twin


@pytest.mark.parametrize("lazy", [False, True])
def test_a_loaded_optimizer_knows_which_variables_its_state_is_for(
    lazy: bool, tmp_path: Path
) -> None:
    def step(root: Any, order: str) -> None:
        gradients = {"a": [1.0, 2.0], "b": [30.0, -4.0]}
        pairs = [(gt.constant(gradients[name]), getattr(root, name)) for name in order]
        root.optimizer.apply_gradients(pairs)

    root = gt.Module()
    root.a, root.b = gt.Variable([1.0, 2.0], name="w"), gt.Variable([1.0, 2.0], name="w")
    root.optimizer = Adam(0.1)
    step(root, "ab")
    gt.save(root, tmp_path / "root.h5")
    gt.save(gt.load(tmp_path / "root.h5"), tmp_path / "again.h5")  # also before it did a step
    for name in ("root.h5", "again.h5"):
        twin = gt.load(tmp_path / name, lazy=lazy)
        step(twin, "ba")
        step(twin, "b")
        alike = gt.load(tmp_path / name)
        step(alike, "ab")
        step(alike, "b")
        for held in ("a", "b"):
            assert getattr(twin, held).tolist() == getattr(alike, held).tolist()
    # other variables than those of the file get the state in their order, as ever
    others = gt.load(tmp_path / "root.h5")
    new = gt.Module()
    new.a, new.b, new.optimizer = gt.Variable([1.0, 2.0]), gt.Variable([1.0, 2.0]), others.optimizer
    assert new.optimizer.unclaimed == 2
    step(new, "ab")
    assert len(new.optimizer.first_moments) == 2
