"""``fit`` as it runs by default beside ``fit(compile=False)``: whole runs, traces included.

A round trains the same model from the same weights in both ways, in turns; what counts is the
median of the rounds' ratios of processor time. The losses of the last epochs are compared.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from timing import as_markdown

import gradtape as gt

Model = Callable[[], Any]


def digits_model() -> Any:
    """Return Dense, BatchNorm, relu and Dense over 64 pixels."""
    return gt.layers.Sequential(
        [gt.layers.Dense(128), gt.layers.BatchNorm(), gt.nn.relu, gt.layers.Dense(10)]
    )


def deep_model() -> Any:
    """Return six layers of 64 units."""
    hidden = [
        layer
        for _ in range(6)
        for layer in (gt.layers.Dense(64, activation="relu"), gt.layers.Dropout(0.1))
    ]
    return gt.layers.Sequential([*hidden, gt.layers.Dense(10)])


def image_model() -> Any:
    """Return a small convolutional network."""
    return gt.layers.Sequential(
        [
            lambda x: gt.reshape(x, (-1, 8, 8, 1)),
            gt.layers.Conv2D(16, 3, activation="relu"),
            gt.layers.MaxPooling2D(2),
            gt.layers.Flatten(),
            gt.layers.Dense(10),
        ]
    )


def recurrent_model() -> Any:
    """Return an LSTM that reads an image row by row."""
    return gt.layers.Sequential(
        [lambda x: gt.reshape(x, (-1, 8, 8)), gt.layers.LSTM(32), gt.layers.Dense(10)]
    )


def run(make: Model, data: Any, compile: Any, epochs: int) -> tuple[float, float]:
    """Return the seconds of a run, and its last loss."""
    gt.random.set_seed(0)
    model = make()
    model(data[0][:2])
    start = time.process_time()
    history = gt.training.fit(
        model, data, epochs=epochs, seed=0, verbose=0, compile=compile, validation_split=0.2
    )
    return time.process_time() - start, history.history["loss"][-1]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    data, _ = gt.datasets.load_digits()
    models = {
        "digits": digits_model,
        "6 layers, Dropout": deep_model,
        "convolution": image_model,
        "LSTM of 32 units": recurrent_model,
    }
    lines = [["fit, eager ÷ default", "1 epoch", "2 epochs", "5 epochs", "20 epochs"]]
    for name, make in models.items():
        cells = [name]
        for epochs in (1, 2, 5, 20):
            ratios = []
            for _ in range(rounds):
                (eager, loss), (default, same) = (
                    run(make, data, compile, epochs) for compile in (False, "auto")
                )
                np.testing.assert_allclose(loss, same, rtol=0.02)
                ratios.append(eager / default)
            cells.append(f"{statistics.median(ratios):.2f}")
        lines.append(cells)
    print(as_markdown(lines))


if __name__ == "__main__":
    main()
