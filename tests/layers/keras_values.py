"""Write Keras' values into ``keras_values.json``: ``KERAS_BACKEND=jax python keras_values.py``.

A row without values gets them; see ``test_against_keras.py`` for what a row has.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import keras
import numpy as np
from test_against_keras import drawn, drawn_weights, made, masks

FILE = Path(__file__).parent / "keras_values.json"


def values(row: Any) -> list[Any]:
    """Return what Keras gives for a row, as the row has it."""
    name, settings, shapes, several, arguments = row[:5]
    layer, xs = made(name, settings, keras.layers), drawn(shapes)
    arguments = masks(name, arguments)

    def call() -> Any:
        if name == "MultiHeadAttention":
            return layer(*xs, **arguments)
        return layer(xs if several else xs[0], **arguments)

    call()
    layer.set_weights(drawn_weights(name, layer.get_weights()))
    found = call()
    results = found if isinstance(found, (list, tuple)) else [found]
    return [told(np.asarray(y, "float64")) for y in results]


def told(y: Any) -> list[Any]:
    """Return the shape of a result, and a sum that knows the order of its elements."""
    return [list(y.shape), round(float((y.ravel() * np.cos(np.arange(y.size))).sum()), 5)]


if __name__ == "__main__":
    given = json.loads(FILE.read_text())
    rows = [row if len(row) > 5 else [*row, values(row)] for row in given]
    lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    FILE.write_text(f"[\n{lines}\n]\n")
