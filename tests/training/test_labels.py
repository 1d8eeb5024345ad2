"""Labels as people have them: of every shape and dtype, and those that a loss cannot mean."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.training import losses, metrics

LOGITS = np.array([[2.0, 1.0], [0.0, 3.0], [1.0, 0.5]])
CLASSES = [0, 1, 1]
sparse = losses.sparse_categorical_crossentropy


@pytest.mark.parametrize(
    "labels",
    [
        np.array(CLASSES, "uint8"),
        np.array(CLASSES, "int32"),
        np.array(CLASSES, "float16"),
        np.array(CLASSES, "float64")[:, None],
        np.array(CLASSES, bool),
    ],
    ids=lambda labels: f"{labels.dtype}{list(labels.shape)}",
)
def test_whole_numbers_of_any_dtype_are_classes(labels: Any) -> None:
    expected = sparse(CLASSES, LOGITS).numpy()
    np.testing.assert_array_equal(sparse(labels, LOGITS).numpy(), expected)
    spec = gt.TensorSpec((None, *labels.shape[1:]), labels.dtype)
    traced = gt.function(sparse, input_signature=[spec])
    np.testing.assert_array_equal(traced(labels, LOGITS).numpy(), expected)
    each = gt.vmap(sparse)(labels, LOGITS)
    np.testing.assert_allclose(each.numpy().ravel(), expected)
    assert metrics.accuracy(labels, LOGITS).tolist() == [True, True, False]


@pytest.mark.parametrize(("label", "shown"), [(0.5, "0.5"), (np.nan, "nan"), (np.inf, "inf")])
def test_a_label_that_is_no_class_is_named(label: float, shown: str) -> None:
    labels = np.array([0.0, label, 1.0])
    words = rf"labels of classes must be whole numbers \(0, 1, ...\), got {shown}"
    traced = gt.function(sparse, input_signature=[gt.TensorSpec([None]), gt.TensorSpec([None, 2])])
    for use in (
        lambda: sparse(labels, LOGITS),
        lambda: sparse(labels, LOGITS, ignore_class=0),
        lambda: losses.SparseCategoricalCrossentropy()(labels, LOGITS),
        lambda: metrics.accuracy(labels, LOGITS),
        lambda: metrics.sparse_top_k_categorical_accuracy(labels, LOGITS, k=1),
        lambda: traced(labels.astype("float32"), LOGITS.astype("float32")),
        lambda: gt.vmap(sparse)(labels, LOGITS),
    ):
        with pytest.raises(ValueError, match=words):
            use()


def test_a_negative_label_is_not_counted_from_the_end() -> None:
    assert metrics.sparse_top_k_categorical_accuracy([-1, 1, 1], LOGITS, k=2).tolist() == [
        False,
        True,
        True,
    ]


@pytest.mark.parametrize(
    ("function", "labels", "predictions", "message"),
    [
        (losses.categorical_crossentropy, [[1], [0]], [[0.3], [0.2]], "a single class"),
        (losses.categorical_crossentropy, [1, 0], [[0.3], [0.2]], "y_true has shape"),
        (sparse, [0, 0], [[0.3], [0.2]], "a single class"),
        (sparse, [[0, 1]], [[0.3, 0.2]], "one more axis"),
        (losses.kl_divergence, [1.0, 0.5], [[0.3], [0.2]], "give both the same shape"),
        (losses.cosine_similarity, [1.0, 0.5], [[0.3], [0.2]], "give both the same shape"),
        (metrics.accuracy, [[1], [0]], [[0.3], [0.2]], "use binary_accuracy"),
        (metrics.accuracy, [1, 0], [[0.3], [0.2]], "use binary_accuracy"),
        (metrics.accuracy, [1, 0], [0.3, 0.2], "use binary_accuracy"),
        (metrics.accuracy, [1], [[0.3, 0.2], [0.1, 0.4]], r"give labels of shape \(2,\)"),
        (metrics.accuracy, [[1, 0, 0]], [[0.3, 0.2]], r"give labels of shape \(1,\)"),
        (metrics.categorical_accuracy, [1, 0], [[0.3, 0.2], [0.1, 0.4]], "the same shape"),
        (metrics.categorical_accuracy, [[1], [0]], [[0.3], [0.2]], "a single class"),
        (metrics.Accuracy(), [1, 0], [[1, 0]], "the same shape"),
    ],
)
def test_shapes_that_would_be_misread_are_refused(
    function: Any, labels: Any, predictions: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        function(labels, predictions)


def test_settings_that_mean_nothing_are_refused() -> None:
    for function in (losses.binary_crossentropy, losses.categorical_crossentropy):
        for smoothing in (-0.1, 1.5, np.nan):
            with pytest.raises(ValueError, match=r"label_smoothing must be in \[0, 1\]"):
                function([[0.0, 1.0]], [[0.3, 0.2]], label_smoothing=smoothing)
        with pytest.raises(TypeError, match="from_logits is True or False, got 'no'"):
            function([[0.0, 1.0]], [[0.3, 0.2]], from_logits="no")
    with pytest.raises(TypeError, match="float"):
        sparse([0], [[0.3, 0.2]], ignore_class=0.5)
    with pytest.raises(ValueError, match="k must be at least 1, got 0"):
        metrics.sparse_top_k_categorical_accuracy([0], [[0.3, 0.2]], k=0)


def test_integers_do_not_wrap_round() -> None:
    small, large = np.array([[1]], "uint8"), np.array([[2]], "uint8")
    for loss in (losses.mean_absolute_error, losses.mean_squared_error):
        assert loss(small, large).tolist() == [1.0]


def test_a_loss_of_complex_numbers_is_refused() -> None:
    with pytest.raises(TypeError, match="mean_squared_error: labels and predictions must be real"):
        losses.mean_squared_error([[1.0j]], [[1.0]])


def test_weights_of_examples_weigh_examples_beside_a_column() -> None:
    labels, column, weights = [0.0, 0.0], [[1.0], [4.0]], [1.0, 0.0]
    assert losses.MeanSquaredError()(labels, column, sample_weight=weights).item() == 0.5
    assert losses.MeanSquaredError()(column, labels, sample_weight=weights).item() == 0.5
    error = metrics.MeanAbsoluteError()
    error.update_state(labels, column, sample_weight=weights)
    assert error.result().item() == 1.0
    for bad in ([1.0, 2.0, 3.0], [[1.0, 2.0]]):
        with pytest.raises(ValueError, match=r"sample_weight has shape .* for each example"):
            losses.MeanSquaredError()(labels, column, sample_weight=bad)
    with pytest.raises(ValueError, match=r"but the values have shape \(\)"):
        losses.MeanSquaredError()(labels, [1.0, 4.0], sample_weight=weights)
