"""Integers and booleans in every layer: the same as the numbers in floats."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from layer_cases import FAMILIES

import gradtape as gt

DTYPES = ("uint8", "int8", "int32", "int64", "bool")


def like(inputs: Any, dtype: str) -> Any:
    """Return integers of the shapes of inputs, with the ends of the smallest dtypes among them."""
    ends = {"bool": [0, 1, 1], "uint8": [0, 1, 255, 127, 3, 2, 254]}.get(
        dtype, [0, 1, 127, -128, 3]
    )
    several = isinstance(inputs, list)
    found = [
        x if x.dtype == np.int32 else np.resize(np.roll(ends, i), x.shape).astype(dtype)
        for i, x in enumerate(inputs if several else [inputs])
    ]
    return found if several else found[0]


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_a_layer_of_integers_is_that_of_the_same_floats(name: str, training: bool) -> None:
    case = FAMILIES[name]
    for dtype in DTYPES:
        given = like(case.inputs(2), dtype)
        parts = given if isinstance(given, list) else [given]
        floats = [x if name == "Embedding" else x.astype("float32") for x in parts]
        results = []
        for inputs in (given, floats if isinstance(given, list) else floats[0]):
            gt.random.set_seed(1)
            layer = case.make()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    results.append(np.asarray(layer(inputs, training=training)))
                except (TypeError, ValueError) as error:
                    if dtype != "bool" or "cast them" not in str(error):
                        raise
                    break
        if len(results) == 2:
            found, wanted = results
            np.testing.assert_allclose(found, wanted, 1e-5, 1e-6, err_msg=f"{name} {dtype}")
            if found.dtype.kind == "f":
                assert found.dtype == wanted.dtype, (name, dtype, found.dtype)


def test_layers_of_your_own_functions_get_integers() -> None:
    ids = np.array([[2, 0]], "uint8")
    encode = gt.layers.Activation(lambda x: gt.nn.one_hot(x, 3))
    assert encode(ids).tolist() == gt.layers.Lambda(lambda x: gt.nn.one_hot(x, 3))(ids).tolist()
    assert gt.layers.Activation("exponential")(ids).dtype == np.float32

    class Lookup(gt.layers.Layer):
        def call(self, x: Any) -> Any:
            return x

    assert Lookup()(ids).dtype == np.uint8
    Lookup.takes_integers = False
    assert Lookup()(ids).dtype == np.float32
    assert Lookup(dtype="float64")(ids).dtype == np.float64


def test_a_compiled_fit_takes_images_of_uint8() -> None:
    random = np.random.default_rng(0)
    x, y = random.integers(0, 256, (16, 8, 8, 1)).astype("uint8"), np.arange(16) % 2
    losses = []
    for images in (x, x.astype("float32")):
        gt.random.set_seed(0)
        net = gt.layers.Sequential(
            [
                gt.layers.Conv2D(2, 3, activation="relu"),
                gt.layers.GlobalAveragePooling2D(),
                gt.layers.Dense(2),
            ]
        )
        losses.append(
            gt.training.fit(net, (images, y), epochs=2, verbose=0, seed=0).history["loss"]
        )
    np.testing.assert_allclose(*losses, 1e-5)
