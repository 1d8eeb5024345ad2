"""``class_weight``: what labels it takes, and classes that do not occur."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from gradtape import layers, training

X = np.ones((4, 2), "float32")


def run(y: Any, table: dict[int, float], **options: Any) -> Any:
    model = layers.Sequential([layers.Dense(3 if np.ndim(y) < 3 else 1)])
    options = {"loss": "sparse_categorical_crossentropy", "verbose": 0, **options}
    return training.fit(model, (X, y), class_weight=table, **options)


@pytest.mark.parametrize(
    ("y", "loss"),
    [
        ([[0, 1, 1], [0, 0, 0], [1, 0, 0], [0, 0, 1]], "binary_crossentropy"),
        ([[0, 0, 0]] * 4, "binary_crossentropy"),
        ([[1, 1, 1]] * 4, "mse"),
        ([[0, 1, 0]] * 4, "sparse_categorical_crossentropy"),  # a class for each of three steps
    ],
)
def test_several_labels_per_example_are_refused(y: Any, loss: str) -> None:
    with pytest.raises(ValueError, match="class_weight needs one class per example"):
        run(np.array(y, "float32"), {0: 0.1, 1: 0.9}, loss=loss)


@pytest.mark.parametrize(
    "y",
    [
        np.eye(3)[[0, 1, 2, 1]],
        np.eye(3)[[0, 1, 2, 1]] * 0.7 + 0.1,  # smoothed
        2 * np.eye(3)[[0, 1, 2, 1]] - 1,
    ],
)
def test_one_class_in_several_numbers_is_taken(y: Any) -> None:
    found = run(y.astype("float32"), {1: 0.0}, loss="mse", optimizer=training.SGD(0.0), seed=0)
    again = run(y.astype("float32"), {0: 0.0, 2: 0.0}, loss="mse", optimizer="sgd", seed=0)
    weights = [np.array(w, "float32") for w in ([1, 0, 1, 0], [0, 1, 0, 1])]
    for history, weight in zip((found, again), weights, strict=True):
        model = layers.Sequential([layers.Dense(3)])
        options = {"loss": "mse", "verbose": 0, "seed": 0, "optimizer": training.SGD(0.0)}
        same = training.fit(model, (X, y.astype("float32"), weight), **options)
        assert history.history["loss"] == pytest.approx(same.history["loss"])


@pytest.mark.parametrize("batches", [False, True])
def test_classes_that_do_not_occur_give_one_warning(batches: bool) -> None:
    y = np.array([0, 1, 0, 1])
    data: Any = [(X[:2], y[:2]), (X[2:], y[2:])] if batches else (X, y)
    model = layers.Sequential([layers.Dense(2)])
    with pytest.warns(UserWarning, match="classes 5, 7, which do not occur in data") as told:
        training.fit(model, data, class_weight={5: 2.0, 1: 3.0, 7: 0.5}, epochs=2, verbose=0)
    assert len(told) == 1


@pytest.mark.parametrize("table", [{0: 2.0, 1: 3.0}, {0: 2.0, 5: 1.0}, {}])
def test_there_is_no_warning_without_a_reason(table: dict[int, float]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(np.array([0, 1, 0, 1]), table)
        half = [(X[:2], np.array([0, 0])), (X[2:], np.array([1, 1]))]
        model = layers.Sequential([layers.Dense(3)])
        training.fit(model, half, class_weight=table, steps_per_epoch=1, verbose=0)
