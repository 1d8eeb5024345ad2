"""``class_weight``: what labels it takes, and classes that do not occur."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import gradtape as gt
import gradtape.compat.tensorflow as tf
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
        ([[[1, 0, 1], [0, 1, 0]]] * 4, "categorical_crossentropy"),
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


STEPS = np.random.default_rng(0).normal(size=(4, 3, 2)).astype("float32")
PLACES = np.array([[0, 1, 2], [2, 2, 0], [1, 0, 1], [0, 2, 1]])  # a class for each of three steps


@pytest.mark.parametrize("examples", [None, (4,), (4, 1), (4, 3)])
@pytest.mark.parametrize(
    ("loss", "y"),
    [
        ("categorical_crossentropy", np.eye(3, dtype="float32")[PLACES]),
        ("sparse_categorical_crossentropy", PLACES),
        ("sparse_categorical_crossentropy", PLACES[..., None]),
        ("binary_crossentropy", np.float32(PLACES[..., None] == 1)),
    ],
)
def test_labels_of_steps_weigh_each_step(loss: str, y: Any, examples: Any) -> None:
    table = {0: 0.5, 1: 3.0}
    weights = np.float32([0.5, 3.0, 1.0])[y[..., 0].astype(int) if y.shape[-1] == 1 else PLACES]
    given: Any = ()
    if examples is not None:
        given = (np.arange(1, 1 + np.prod(examples)).reshape(examples),)
        weights = weights * given[0].reshape(4, -1)

    def losses(data: Any, **options: Any) -> Any:
        model = layers.Sequential([layers.Dense(1 if loss.startswith("binary") else 3)])
        options = {"loss": loss, "verbose": 0, "seed": 0, "epochs": 2, **options}
        gt.random.set_seed(0)
        return training.fit(model, data, **options).history["loss"]

    found = losses((STEPS, y, *given), class_weight=table)
    assert found == pytest.approx(losses((STEPS, y, np.float32(weights))))


def test_labels_of_steps_are_for_known_losses() -> None:
    def loss(y_true: Any, y_pred: Any) -> Any:
        return gt.mean((y_true - y_pred) ** 2, axis=(1, 2))

    model = layers.Sequential([layers.Dense(3)])
    data = (STEPS, np.eye(3, dtype="float32")[PLACES])
    with pytest.raises(ValueError, match=r"labels of each step.*cross-entropy.*sample_weight"):
        training.fit(model, data, loss=loss, class_weight={0: 2.0}, verbose=0)


@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.parametrize("shape", [(4,), (4, 1)])
def test_weights_of_examples_may_be_a_column(shape: tuple[int, ...], dtype: str) -> None:
    given = np.array([1, 2, 0, 3], dtype).reshape(shape)
    options: dict[str, Any] = {
        "loss": "sparse_categorical_crossentropy",
        "verbose": 0,
        "seed": 0,
    }
    found = []
    for weight, table in ((given, {1: 0.5}), (np.float32([1, 1, 0, 1.5]), None)):
        model = layers.Sequential([layers.Dense(3)])
        data = (X, np.array([0, 1, 2, 1]), weight)
        gt.random.set_seed(0)
        found.append(training.fit(model, data, class_weight=table, **options).history["loss"])
    assert found[0] == pytest.approx(found[1])


def test_a_step_on_one_batch_multiplies_both() -> None:
    data = {"x": STEPS, "y": np.eye(3, dtype="float32")[PLACES]}
    examples, found = np.arange(4.0), []
    both = np.float32([0.5, 3.0, 1.0])[PLACES] * examples[:, None]
    for weight, table in ((examples, {0: 0.5, 1: 3.0}), (both, None)):
        net = tf.keras.Sequential([layers.Dense(3, kernel_initializer="ones")])
        net.compile("sgd", "categorical_crossentropy")
        found.append(net.train_on_batch(**data, sample_weight=weight, class_weight=table))
    assert found[0] == pytest.approx(found[1])


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
