"""Losses and metrics against their definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gradcheck import check_gradients

import gradtape as gt
from gradtape import training
from gradtape.training import losses

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


# -- every function --------------------------------------------------------------------------------

EPSILON = 1e-7
P = RNG.uniform(0.1, 0.9, size=(4, 3))
Q = RNG.uniform(0.1, 0.9, size=(4, 3))


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def binary(y: Any, p: Any) -> Any:
    return -(y * np.log(p) + (1 - y) * np.log(1 - p)).mean(-1)


def cosine(y: Any, p: Any) -> Any:
    lengths = np.linalg.norm(y, axis=-1) * np.linalg.norm(p, axis=-1)
    return -(y * p).sum(-1) / lengths


def huber(y: Any, p: Any, delta: float) -> Any:
    e = np.abs(y - p)
    return np.where(e <= delta, e * e / 2, delta * (e - delta / 2)).mean(-1)


# labels and predictions on no kink
FORMULAS = {
    "mean_squared_error": lambda y, p: ((y - p) ** 2).mean(-1),
    "mean_absolute_error": lambda y, p: np.abs(y - p).mean(-1),
    "mean_absolute_percentage_error": lambda y, p: 100 * (np.abs(y - p) / y).mean(-1),
    "mean_squared_logarithmic_error": lambda y, p: ((np.log1p(y) - np.log1p(p)) ** 2).mean(-1),
    "huber": lambda y, p: huber(y, p, 1.0),
    "hinge": lambda y, p: np.maximum(1 - y * p, 0).mean(-1),
    "kl_divergence": lambda y, p: (y * np.log(y / p)).sum(-1),
    "log_cosh": lambda y, p: np.log(np.cosh(p - y)).mean(-1),
    "poisson": lambda y, p: (p - y * np.log(p + EPSILON)).mean(-1),
    "cosine_similarity": cosine,
    "binary_crossentropy": lambda y, p: binary(y, sigmoid(p)),
    "categorical_crossentropy": lambda y, p: -(y * np.log(softmax(p))).sum(-1),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_a_loss_follows_its_formula(name: str) -> None:
    loss = losses.get(name)
    np.testing.assert_allclose(loss(P, Q).numpy(), FORMULAS[name](P, Q), rtol=1e-10)
    if name == "categorical_crossentropy":  # as TensorFlow's, its gradient is for distributions
        hot = np.eye(3)[[0, 2, 1, 1]]
        check_gradients(lambda logits: loss(hot, logits), Q)
    else:
        check_gradients(loss, P, Q)
    traced = gt.function(loss, input_signature=[gt.TensorSpec((None, 3), "float64")] * 2)
    np.testing.assert_allclose(traced(P, Q).numpy(), loss(P, Q).numpy(), rtol=1e-12)
    assert loss(P.astype("float32"), Q.astype("float32")).dtype == "float32"


@pytest.mark.parametrize("name", FORMULAS)
def test_no_loss_broadcasts(name: str) -> None:
    with pytest.raises(ValueError, match=rf"{name}: y_true has shape \(4, 1\), .* \(4, 3\)"):
        losses.get(name)(P[:, :1], Q)


def test_every_loss_has_its_test() -> None:
    known = {*losses.errors.__all__, *losses.crossentropies.__all__}
    sparse = {name for name in known if name.startswith("sparse")}
    elsewhere = {name for name in known if "focal" in name}  # compared with Keras
    elsewhere |= {"categorical_hinge", "dice", "squared_hinge", "tversky"}
    assert known == {*FORMULAS, *sparse, *elsewhere}


def test_losses_of_probabilities_are_cut_off() -> None:
    y, p = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])
    wrong = -np.log(EPSILON)
    loss = losses.binary_crossentropy(y, p, from_logits=False)
    np.testing.assert_allclose(loss.numpy(), [wrong], rtol=1e-6)
    loss = losses.categorical_crossentropy(y, p, from_logits=False)
    np.testing.assert_allclose(loss.numpy(), [wrong], rtol=1e-6)
    np.testing.assert_allclose(
        losses.categorical_crossentropy(P, 3.0 * softmax(Q), from_logits=False).numpy(),
        losses.categorical_crossentropy(P, Q).numpy(),
        rtol=1e-10,
    )


def test_smoothed_labels() -> None:
    hot = np.eye(3)[[0, 2, 1, 1]]
    for loss, smooth in (
        (losses.binary_crossentropy, 0.9 * hot + 0.05),
        (losses.categorical_crossentropy, 0.9 * hot + 0.1 / 3),
    ):
        found = loss(hot, Q, label_smoothing=0.1)
        np.testing.assert_allclose(found.numpy(), loss(smooth, Q).numpy(), rtol=1e-10)


def test_hinge_takes_zeros_for_minus_ones() -> None:
    signs = np.array([[-1.0, 1.0, 1.0]])
    found = losses.hinge((signs + 1) / 2, Q[:1])
    np.testing.assert_allclose(found.numpy(), losses.hinge(signs, Q[:1]).numpy())


def test_classes_on_another_axis_and_labels_that_are_ignored() -> None:
    logits, labels = RNG.normal(size=(2, 4, 3)), RNG.integers(0, 4, size=(2, 3))
    moved = np.moveaxis(logits, 1, -1)
    found = losses.sparse_categorical_crossentropy(labels, logits, axis=1)
    expected = losses.sparse_categorical_crossentropy(labels, moved).numpy().copy()
    np.testing.assert_allclose(found.numpy(), expected)
    hot = np.moveaxis(np.eye(4)[labels], -1, 1)
    found = losses.categorical_crossentropy(hot, logits, axis=1)
    np.testing.assert_allclose(found.numpy(), expected)
    labels[0, 0] = 255
    found = losses.sparse_categorical_crossentropy(labels, moved, ignore_class=255)
    expected[0, 0] = 0.0
    np.testing.assert_allclose(found.numpy(), expected)
    mean = losses.SparseCategoricalCrossentropy(ignore_class=255)
    assert mean(labels, moved).item() == pytest.approx(expected.sum() / 5)
    nothing = mean(np.full((2, 3), 255), moved)
    assert nothing.item() == 0.0
    weights = np.array([1.0, 0.5])
    weighted = (expected * weights[:, None]).sum() / 5
    assert mean(labels, moved, sample_weight=weights).item() == pytest.approx(weighted)


# -- objects ---------------------------------------------------------------------------------------

OBJECTS = [name for name in losses.objects.__all__ if name != "Loss"]


@pytest.mark.parametrize("name", OBJECTS)
def test_an_object_reduces_its_function(name: str) -> None:
    kind = getattr(losses, name)
    y, p = (np.array([0, 2, 1, 1]), Q) if name.startswith("Sparse") else (P, Q)
    values = kind.function(y, p).numpy()
    assert kind()(y, p).item() == pytest.approx(values.mean())
    assert kind(reduction="mean")(y, p).item() == pytest.approx(values.mean())
    assert kind(reduction="sum")(y, p).item() == pytest.approx(values.sum())
    np.testing.assert_allclose(kind(reduction="none")(y, p).numpy(), values)
    if not values.ndim:  # of all examples together: none has a weight
        return
    weights = np.array([[1.0], [0.0], [2.0], [0.5]])
    for weight in (weights, weights[:, 0]):
        weighted = (values * weights[:, 0]).mean()
        assert kind()(y, p, sample_weight=weight).item() == pytest.approx(weighted)
    assert kind().__name__ == kind().name
    assert kind(name="mine").__name__ == "mine"
    assert type(losses.get(name)) is kind


def test_a_loss_of_ones_own() -> None:
    class Fourth(losses.Loss):
        def call(self, y_true: Any, y_pred: Any) -> Any:
            return gt.mean((y_true - y_pred) ** 4, axis=-1)

    assert Fourth().name == "fourth"
    assert Fourth("sum")(gt.ones((2, 2)), gt.zeros((2, 2))).item() == 2.0
    with pytest.raises(ValueError, match=r"Fourth: reduction must be one of .*, got 'median'"):
        Fourth("median")
    with pytest.raises(NotImplementedError, match="define call"):
        losses.Loss()(1.0, 2.0)


@pytest.mark.parametrize("loss", ["mse", "MeanSquaredError", losses.MeanSquaredError()])
def test_fit_takes_a_loss_by_any_name_and_as_an_object(loss: Any) -> None:
    gt.random.set_seed(0)
    model = gt.layers.Sequential([gt.layers.Dense(3)])
    run = training.fit(
        model, (P, Q), loss=loss, metrics=["mae", losses.huber], epochs=1, verbose=False, seed=0
    )
    assert list(run.history) == ["loss", "mae", "huber"]


def test_a_binary_loss_has_no_accuracy_of_classes_by_default() -> None:
    model = gt.layers.Sequential([gt.layers.Dense(1)])
    labels = (P[:, :1] > 0.5).astype("float64")
    run = training.fit(model, (P, labels), loss="binary_crossentropy", verbose=False)
    assert list(run.history) == ["loss"]


def test_short_names_and_unknown_ones() -> None:
    for short, name in losses.SHORT_NAMES.items():
        assert losses.get(short) is getattr(losses, name)
    with pytest.raises(ValueError, match=r"unknown loss 'Loss'; known: .*mean_absolute_error.*mse"):
        losses.get("Loss")
    with pytest.raises(ValueError, match="unknown loss 3"):
        losses.get(3)
    with pytest.raises(ValueError, match="huber: delta must be above 0, got 0"):
        losses.huber(P, Q, 0)
    with pytest.raises(ValueError, match="Huber: delta must be above 0, got -1"):
        losses.Huber(-1)
