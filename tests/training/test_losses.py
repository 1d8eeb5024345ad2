"""Losses and metrics against their definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gradcheck import check_gradients

import gradtape as gt
from gradtape import training

RNG = np.random.default_rng(4)


def test_mean_squared_error_is_one_number_per_example() -> None:
    a, b = RNG.normal(size=(5, 3)), RNG.normal(size=(5, 3))
    loss = training.mean_squared_error(a, b)
    np.testing.assert_allclose(loss.numpy(), ((a - b) ** 2).mean(-1))
    check_gradients(training.mean_squared_error, a, b)


def test_a_column_of_predictions_meets_a_vector_of_labels() -> None:
    y, column = RNG.normal(size=5), RNG.normal(size=(5, 1))
    for loss in (
        training.mean_squared_error(y, column),
        training.mean_squared_error(column, y),
    ):
        np.testing.assert_allclose(loss.numpy(), ((y - column[:, 0]) ** 2).mean())
    np.testing.assert_allclose(
        training.mean_squared_error(np.array([1, 2]), np.array([1.5, 2.5], "float32")).numpy(), 0.25
    )


def test_shapes_that_would_broadcast_are_refused() -> None:
    with pytest.raises(ValueError, match=r"y_true has shape \(5, 1\), y_pred has shape \(5, 3\)"):
        training.mean_squared_error(np.zeros((5, 1)), np.zeros((5, 3)))
    with pytest.raises(ValueError, match=r"y_true has shape \(4,\)"):
        training.mean_squared_error(np.zeros(4), np.zeros((5, 4)))


@pytest.mark.parametrize("labels", [[2, 0, 1], [[2], [0], [1]], [2.0, 0.0, 1.0]])
def test_cross_entropy_of_logits(labels: Any) -> None:
    logits = RNG.normal(size=(3, 4))
    logits[0] += 1000.0
    log_p = logits - logits.max(-1, keepdims=True)
    log_p = log_p - np.log(np.exp(log_p).sum(-1, keepdims=True))
    expected = -log_p[np.arange(3), np.ravel(labels).astype(int)]
    for loss in (
        training.sparse_categorical_crossentropy(labels, logits),
        training.sparse_categorical_crossentropy_from_logits(labels, logits),
    ):
        np.testing.assert_allclose(loss.numpy(), expected, rtol=1e-10)


def test_cross_entropy_of_probabilities() -> None:
    p = np.array([[0.2, 0.8], [1.0, 0.0]])
    loss = training.sparse_categorical_crossentropy([1, 1], p, from_logits=False)
    np.testing.assert_allclose(loss.numpy(), [-np.log(0.8), -np.log(1e-7)], rtol=1e-6)


def test_cross_entropy_checks_its_labels() -> None:
    with pytest.raises(ValueError, match="labels must be from 0 to 3"):
        training.sparse_categorical_crossentropy([4, 0], RNG.normal(size=(2, 4)))
    with pytest.raises(ValueError, match="labels"):
        training.sparse_categorical_crossentropy([1, 0, 1], RNG.normal(size=(2, 4)))


@pytest.mark.parametrize(
    "labels", [[1, 0, 1], [[1], [0], [1]], [[0, 1], [1, 0], [0, 1]]], ids=["flat", "column", "hot"]
)
def test_accuracy(labels: Any) -> None:
    predictions = [[0.1, 0.9], [0.2, 0.8], [0.3, 0.7]]
    assert training.accuracy(labels, predictions).numpy().tolist() == [True, False, True]


def test_losses_work_on_unknown_shapes() -> None:
    @gt.function(input_signature=[gt.TensorSpec([None, 3]), gt.TensorSpec([None], "int64")])
    def run(logits: Any, labels: Any) -> Any:
        return training.sparse_categorical_crossentropy(labels, logits)

    logits = RNG.normal(size=(5, 3)).astype("float32")
    labels = RNG.integers(0, 3, 5)
    np.testing.assert_allclose(
        run(logits, labels).numpy(),
        training.sparse_categorical_crossentropy(labels, logits).numpy(),
        rtol=1e-6,
    )
