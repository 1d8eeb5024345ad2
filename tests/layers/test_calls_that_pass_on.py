"""A subclass whose ``call`` passes its keywords on is used as the class that it extends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape import layers as L

KINDS: list[tuple[Any, tuple[Any, ...]]] = [
    (L.Dropout, (0.5,)),
    (L.BatchNorm, ()),
    (L.GaussianNoise, (0.5,)),
    (L.LSTM, (3,)),
    (L.GRU, (3,)),
    (L.GlobalAveragePooling1D, ()),
]


def extended(kind: Any, some: bool) -> Any:
    class Own(kind):  # type: ignore[misc]
        if some:

            def call(self, x: Any, **kwargs: Any) -> Any:
                return super().call(x, **kwargs)

        else:

            def call(self, *args: Any, **kwargs: Any) -> Any:
                return super().call(*args, **kwargs)

    return Own


class Around(L.Model):
    """A model that does not mention the mode."""

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.layer = layer

    def call(self, x: Any) -> Any:
        return self.layer(x)


def functional(layer: Any) -> Any:
    inputs = L.Input((4, 3))
    return L.Model(inputs, layer(L.Masking()(inputs)))


MODELS: dict[str, Any] = {
    "sequential": lambda layer: L.Sequential([L.Masking(), layer]),
    "functional": functional,
    "subclass": Around,
    "steps": L.TimeDistributed,
    "nested": lambda layer: L.Sequential([layer]),
}


def run(model: Any, x: Any, training: bool) -> Any:
    gt.random.set_seed(3)
    return np.asarray(model(x, training=training))


@pytest.mark.parametrize("some", [True, False])
@pytest.mark.parametrize("around", MODELS)
@pytest.mark.parametrize(("kind", "args"), KINDS, ids=lambda x: getattr(x, "__name__", ""))
def test_it_is_as_the_class_that_it_extends(
    kind: Any, args: Any, around: str, some: bool, tmp_path: Path
) -> None:
    x = np.random.default_rng(0).normal(size=(2, 4, 3)).astype("float32")
    x[:, 2:] = 0
    if around == "steps":
        x = x[..., None]
    models = []
    for each in (kind, extended(kind, some)):
        gt.random.set_seed(1)
        models.append(MODELS[around](each(*args)))
    for training in (True, False):
        want, got = (run(model, x, training) for model in models)
        np.testing.assert_array_equal(got, want)
    if around == "subclass":
        return  # its class has no word for the mode, and so its file has none
    path = tmp_path / "m.h5"
    gt.save(models[1], path)
    loaded = gt.load(path)
    for training in (True, False):  # not one after the other: training moves the statistics
        np.testing.assert_allclose(
            run(loaded, x, training), run(models[0], x, training), rtol=1e-5, atol=1e-6
        )


def test_a_module_passes_training_to_the_module_that_it_extends() -> None:
    class Base(gt.Module):
        def __call__(self, x: Any, training: bool = False) -> Any:
            return x * (2.0 if training else 1.0)

    class Own(Base):
        def __call__(self, x: Any, **kwargs: Any) -> Any:
            return super().__call__(x, **kwargs)

    class Plain(gt.Module):
        def __call__(self, x: Any, **kwargs: Any) -> Any:
            return x * float(len(kwargs) + 1)

    assert float(L.Sequential([Own()])(gt.constant(1.0), training=True)) == 2.0
    assert float(L.Sequential([Plain()])(gt.constant(1.0), training=True)) == 1.0


def test_training_in_its_place_is_taken() -> None:
    layer = extended(L.Dropout, False)(0.5)
    x = np.ones((4, 50), "float32")
    assert (np.asarray(layer(x, True)) == 0).any()
    assert not (np.asarray(layer(x, False)) == 0).any()

    class Outer(L.Model):
        def call(self, x: Any) -> Any:
            return layer(x, False)

    assert not (np.asarray(Outer()(x, training=True)) == 0).any()
