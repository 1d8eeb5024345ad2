"""Modules that are equal by their settings and have no hash, as ``@dataclass`` makes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.layers import Dense, Layer, Sequential

pytestmark = pytest.mark.usefixtures("forks")


@dataclass
class Scaled(gt.Module):
    size: int

    def __post_init__(self) -> None:
        super().__init__()
        self.scale = gt.Variable(np.ones(self.size, "float32"))
        self.head = Dense(2)

    @gt.function
    def __call__(self, x: Any) -> Any:
        return self.head(x * self.scale)


@dataclass
class Penalised(Layer):
    rate: float

    def __post_init__(self) -> None:
        super().__init__()

    def build(self, shape: Any) -> None:
        self.scale = self.add_weight(shape[-1:], "ones", "scale")

    def call(self, x: Any) -> Any:
        self.add_loss(self.rate * gt.sum(self.scale))
        return x * self.scale


X = np.ones((1, 3), "float32")


def saved(model: Any, path: Path) -> Any:
    gt.save(model, path)
    return gt.load(path)


def weights(kind: str, **options: Any) -> Callable[[Any, Path], Any]:
    def taken(model: Any, path: Path) -> Any:
        gt.save_weights(model, path.with_suffix(kind), **options)
        other = Scaled(3)
        gt.load_weights(path.with_suffix(kind), other)  # builds the head
        return other

    return taken


WAYS: dict[str, Callable[[Any, Path], Any]] = {
    "model": saved,
    "weights": weights(".weights.h5"),
    "safetensors": weights(".safetensors"),
    "pytorch": weights(".safetensors", layout="pytorch"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.filterwarnings("ignore:save_weights. PyTorch's names")
def test_they_are_saved_and_loaded(way: str, tmp_path: Path) -> None:
    model = Scaled(3)
    model.scale.assign([1.0, 2.0, 3.0])
    expected = model(X).numpy()
    np.testing.assert_array_equal(WAYS[way](model, tmp_path / "m.h5")(X), expected)


def test_equal_ones_keep_their_own_losses_and_weights() -> None:
    model = Sequential([Penalised(1.0), Penalised(1.0)])
    assert model.layers[0] == model.layers[1]
    model(X)
    assert [float(loss) for loss in model.losses] == [3.0, 3.0]
    arrays = {f"layers/{i}/scale": np.full(3, i + 2.0, "float32") for i in range(2)}
    other = Sequential([Penalised(1.0), Penalised(1.0)])
    gt.load_weights(arrays, other)  # the arrays wait for the first call
    np.testing.assert_array_equal(other(X), 6 * X)
    assert [float(loss) for loss in other.losses] == [6.0, 9.0]
