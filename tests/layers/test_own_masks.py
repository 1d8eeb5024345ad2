"""``compute_mask`` of your own layer creates a mask, passes one on, or ends it, as in Keras."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape import layers as L

WORDS = np.array([[1, 2, 0, 0], [3, 1, 4, 0]], "int32")


class Words(L.Layer):
    """Vectors of words, of which 0 is padding, as on Keras's page about masks."""

    def __init__(self, zero: bool = True) -> None:
        super().__init__()
        self.zero = zero

    def build(self, input_shape: Any) -> None:
        self.table = self.add_weight((5, 3), "normal", "table")

    def call(self, x: Any) -> Any:
        return gt.take(self.table, x, axis=0)

    def compute_mask(self, x: Any, mask: Any = None) -> Any:
        return gt.not_equal(x, 0) if self.zero else None


class OfMixin:
    def compute_mask(self, x: Any, mask: Any = None) -> Any:
        return gt.not_equal(x, 0)


class Mixed(OfMixin, L.Embedding):
    def __init__(self) -> None:
        super().__init__(5, 3, embeddings_initializer="normal")


def sequential(layer: Any) -> Any:
    return L.Sequential([layer, L.GlobalAveragePooling1D()])


def functional(layer: Any) -> Any:
    inputs = L.Input((4,), dtype="int32")
    return L.Model(inputs, L.GlobalAveragePooling1D()(layer(inputs)))


@pytest.mark.parametrize("around", [sequential, functional])
@pytest.mark.parametrize(("kind", "args"), [(Words, (True,)), (Words, (False,)), (Mixed, ())])
def test_a_layer_creates_a_mask(kind: Any, args: Any, around: Any, tmp_path: Path) -> None:
    layer = kind(*args)
    model = around(layer)
    got = np.asarray(model(WORDS))
    vectors, seen = np.asarray(layer(WORDS)), (WORDS != 0)[..., None]
    if args == (False,):
        seen = np.ones_like(seen)
    want = (vectors * seen).sum(1) / seen.sum(1)
    np.testing.assert_allclose(got, want, rtol=1e-5)
    gt.save(model, tmp_path / "m.h5")
    np.testing.assert_allclose(gt.load(tmp_path / "m.h5")(WORDS), want, rtol=1e-5)


def test_the_loss_leaves_its_padding_out() -> None:
    class Every(Words):
        def compute_mask(self, x: Any, mask: Any = None) -> Any:
            return gt.not_equal(x, 0)

    layer = Every()
    model = L.Sequential([layer])
    y = np.where((WORDS == 0)[..., None], 1e3, np.asarray(model(WORDS))).astype("float32")
    told = gt.training.evaluate(model, (WORDS, y), loss="mse")
    assert told["loss"] == pytest.approx(0.0, abs=1e-6)


class Halving(L.Layer):
    """It takes every other step, and its mask cannot do without one."""

    def call(self, x: Any) -> Any:
        return x[:, ::2]

    def compute_mask(self, x: Any, mask: Any = None) -> Any:
        return mask[:, ::2]


class Joining(L.Layer):
    def call(self, x: Any) -> Any:
        return x[0] + x[1]

    def compute_mask(self, x: Any, mask: Any = None) -> Any:
        return mask[0]


@pytest.mark.parametrize("masked", [True, False])
def test_a_layer_passes_a_mask_on(masked: bool, tmp_path: Path) -> None:
    words = L.Embedding(5, 3, mask_zero=masked)
    inputs = L.Input((4,), dtype="int32")
    x = words(inputs)
    y = Halving()(Joining()([x, x]))
    model = L.Model(inputs, L.GlobalAveragePooling1D()(y))
    vectors = 2 * np.asarray(words(WORDS))[:, ::2]
    seen = ((WORDS != 0) | (not masked))[:, ::2, None]
    want = (vectors * seen).sum(1) / seen.sum(1)
    np.testing.assert_allclose(model(WORDS), want, rtol=1e-5)
    gt.save(model, tmp_path / "m.h5")
    np.testing.assert_allclose(gt.load(tmp_path / "m.h5")(WORDS), want, rtol=1e-5)


def test_a_mistake_in_it_is_not_passed_over() -> None:
    class Wrong(L.Layer):
        def call(self, x: Any) -> Any:
            return x

        def compute_mask(self, x: Any, mask: Any = None) -> Any:
            return self.no_such_thing

    with pytest.raises(AttributeError, match="no_such_thing"):
        L.Sequential([Wrong(), L.Dense(1)])(np.ones((2, 3, 1)))
