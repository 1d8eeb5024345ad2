"""``get_config`` of a class that extends a layer and passes arguments on to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape import layers as L

X = np.random.default_rng(0).normal(size=(2, 5, 3)).astype("float32")


def subclasses(base: Any) -> dict[str, Any]:
    class Keywords(base):  # type: ignore[misc]
        def __init__(self, units: int, **kwargs: Any) -> None:
            super().__init__(units, **kwargs)

    class Rules(base):  # type: ignore[misc]
        def __init__(self, units: int, **rules: Any) -> None:
            super().__init__(units, **rules)

    class Anything(base):  # type: ignore[misc]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)

    class Further(base):  # type: ignore[misc]
        def __init__(self, units: int, factor: float = 3.0, **kwargs: Any) -> None:
            super().__init__(units, **kwargs)
            self.factor = factor

    class Deeper(Further):
        def __init__(self, *args: Any, other: int = 1, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.other = other

    class Hidden(base):  # type: ignore[misc]
        def __init__(self, units: int, factor: float = 3.0, **kwargs: Any) -> None:
            super().__init__(units, **kwargs)
            self._factor = factor

        def get_config(self) -> dict[str, Any]:
            return {**super().get_config(), "factor": self._factor}

    return {x.__name__: x for x in (Keywords, Rules, Anything, Further, Deeper, Hidden)}


NAMES = list(subclasses(L.GRU))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("base", [L.SimpleRNN, L.LSTM, L.GRU, L.GRUCell])
def test_it_has_the_settings_that_were_passed_on(base: Any, name: str) -> None:
    kind = subclasses(base)[name]
    given = {"use_bias": False, "activation": "relu", "kernel_initializer": "ones", "name": "a"}
    want = base(4, **given).get_config()
    further = {"Further": {"factor": 5.0}, "Hidden": {"factor": 5.0}}
    own = further.get(name, {"factor": 5.0, "other": 2} if name == "Deeper" else {})
    layer = kind(4, **given, **own)
    assert layer.get_config() == {**want, **own}
    assert kind.from_config(layer.get_config()).get_config() == layer.get_config()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("compatible", [False, True])
def test_it_runs_in_both_directions(name: str, compatible: bool, tmp_path: Path) -> None:
    import gradtape.compat.tensorflow as tf

    layers: Any = tf.keras.layers if compatible else L
    kind = subclasses(layers.GRU)[name]
    settings = {"use_bias": False, "activation": "relu", "return_sequences": True}
    model = layers.Bidirectional(kind(2, **settings))
    got = model(X)
    assert got.shape == (2, 5, 4)
    back = model.backward_layer
    assert (back.use_bias, back.return_sequences, back.go_backwards) == (False, True, True)
    gt.save(model, tmp_path / "m.h5")
    np.testing.assert_allclose(gt.load(tmp_path / "m.h5")(X), got, rtol=1e-5, atol=1e-6)


def test_an_argument_that_it_does_not_keep_is_named() -> None:
    class Renamed(L.GRU):
        def __init__(self, hidden: int, **kwargs: Any) -> None:
            super().__init__(hidden, **kwargs)

    with pytest.raises(TypeError, match=r"Renamed: .*'hidden'.* set self.hidden, or define get_"):
        L.Bidirectional(Renamed(3))


def test_a_place_that_it_fills_keeps_its_setting() -> None:
    class Small(L.Conv2D):
        def __init__(self, filters: int, **kwargs: Any) -> None:
            super().__init__(filters, kernel_size=3, **kwargs)

    config = Small(4, padding="same", kernel_regularizer="l2").get_config()
    assert (config["filters"], config["padding"], config["kernel_size"]) == (4, "same", (3, 3))
    assert config["kernel_regularizer"]["name"] == "l2"
