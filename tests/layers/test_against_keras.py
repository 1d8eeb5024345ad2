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
    return [random.standard_normal(shape).astype("float32") for shape in shapes]


def told(row: Any) -> str:
    settings = "-".join(f"{key}={value}" for key, value in {**row[1], **row[4]}.items())
    return f"{row[0]}-{settings}"[:70]


def made(name: str, settings: dict[str, Any], module: Any = layers) -> Any:
    if name == "Bidirectional":
        inner, arguments = settings["layer"]
        settings = {**settings, "layer": getattr(module, inner)(**arguments)}
    return getattr(module, name)(**settings)


@pytest.mark.parametrize("row", ROWS, ids=told)
def test_results_are_those_of_keras(row: Any) -> None:
    name, settings, shapes, several, arguments, expected = row
    layer, xs = made(name, settings), drawn(shapes)
    for key in ("mask", "attention_mask"):  # one, or one for each input
        if key in arguments:
            mask = arguments[key]
            both = name in ("Attention", "AdditiveAttention")
            arguments = {
                **arguments,
                key: [np.array(m, bool) for m in mask] if both else np.array(mask, bool),
            }

    def call() -> Any:
        if name == "MultiHeadAttention":
            return layer(*xs, **arguments)
        return layer(xs if several else xs[0], **arguments)

    call()
    weights = [0.5 * w for w in drawn([v.shape for v in layer.variables])]
    if name == "BatchNormalization":
        weights[3] = abs(weights[3])
    layer.set_weights(weights)
    found = call()
    results = list(found) if isinstance(found, tuple) else [found]
    assert [list(y.shape) for y in results] == [shape for shape, _ in expected]
    for y, (_, total) in zip(results, expected):
        values = y.numpy().astype("float64").ravel()
        sizes = np.abs(values).sum() + 1
        assert abs((values * np.cos(np.arange(values.size))).sum() - total) < 1e-5 * sizes + 1e-5
