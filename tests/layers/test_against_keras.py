"""Layers beside what Keras 3 gave on JAX for the same inputs and weights.

``keras_values.json`` has a row for each call: the class, its settings, the shapes of the inputs,
whether they come in a list, arguments of the call, and of each result the shape and the sum of its
elements times cosines, which knows their order. Inputs and weights are drawn with seed 0.
``keras_values.py`` writes the values.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradtape import layers

ROWS = json.loads((Path(__file__).parent / "keras_values.json").read_text(encoding="utf-8"))


def drawn(shapes: Any) -> list[Any]:
    random = np.random.default_rng(0)
    return [
        random.integers(0, 5, shape[1:]).astype("int32")
        if shape[:1] == ["int"]
        else random.standard_normal(shape).astype("float32")
        for shape in shapes
    ]


def told(row: Any) -> str:
    settings = "-".join(f"{key}={value}" for key, value in {**row[1], **row[4]}.items())
    return f"{row[0]}-{settings}"[:70]


def made(name: str, settings: dict[str, Any], module: Any = layers) -> Any:
    given = dict(settings)
    for key in {"layer", "cell", "cells"}.intersection(given):  # a name and settings, or a list
        value = given[key]
        several = key == "cells"
        parts = [made(*part, module) for part in (value if several else [value])]
        given[key] = parts if several else parts[0]
    return getattr(module, name)(**given)


def masks(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return arguments with arrays for masks: one, or one for each input."""
    both = name in ("Attention", "AdditiveAttention")
    return {
        key: x if "mask" not in key or isinstance(x, bool)
        else [np.array(m, bool) for m in x] if both and key == "mask"
        else np.array(x, bool)
        for key, x in arguments.items()
    }  # fmt: skip


def drawn_weights(name: str, weights: Any) -> list[Any]:
    """Return weights for the layer, in place of those that it has."""
    if name == "Normalization":
        return list(weights)
    if any(w.dtype.kind != "f" for w in weights):  # the state of random numbers
        return list(weights)
    found = [0.5 * w for w in drawn([list(w.shape) for w in weights])]
    if name == "BatchNormalization":
        found[3] = abs(found[3])
    return found


@pytest.mark.parametrize("row", ROWS, ids=told)
def test_results_are_those_of_keras(row: Any) -> None:
    name, settings, shapes, several, arguments, expected = row
    layer, xs = made(name, settings), drawn(shapes)
    arguments = masks(name, arguments)

    def call() -> Any:
        if name == "MultiHeadAttention":
            return layer(*xs, **arguments)
        return layer(xs if several else xs[0], **arguments)

    call()
    layer.set_weights(drawn_weights(name, layer.get_weights()))
    found = call()
    results = list(found) if isinstance(found, tuple) else [found]
    assert [list(y.shape) for y in results] == [shape for shape, _ in expected]
    for y, (_, total) in zip(results, expected):
        values = y.numpy().astype("float64").ravel()
        sizes = np.abs(values).sum() + 1
        assert abs((values * np.cos(np.arange(values.size))).sum() - total) < 1e-5 * sizes + 1e-5
