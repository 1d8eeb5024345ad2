"""Metrics beside what Keras 3 gave for the same numbers, without and with weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt
import gradtape.compat.tensorflow as tf
from gradtape.training import metrics

RANDOM = np.random.default_rng(0)
Y = RANDOM.integers(0, 2, 40).astype("float32")
P = np.round(np.clip(Y * 0.3 + RANDOM.random(40) * 0.7, 0, 1), 3).astype("float32")
W = RANDOM.random(40).astype("float32")
C = RANDOM.integers(0, 4, 40)
S = RANDOM.random((40, 4)).astype("float32")
H = np.eye(4, dtype="float32")[C]
D = RANDOM.integers(0, 4, 40)
R = RANDOM.random((40, 2)).astype("float32")
T = (R + 0.3 * RANDOM.random((40, 2))).astype("float32")
DATA = {"Y": Y, "P": P, "C": C, "S": S, "H": H, "D": D, "R": R, "T": T}

#: The metric, its settings, labels and predictions, Keras' value, and that with weights, which
#: Keras rounds to integers for intersections over unions.
KERAS: list[tuple[str, dict[str, Any], str, Any, Any]] = [
    ("TruePositives", {}, "YP", 16.0, 10.0741825),
    ("FalsePositives", {"thresholds": [0.2, 0.7]}, "YP", [14.0, 0.0], [8.0652866, 0.0]),
    ("TrueNegatives", {}, "YP", 13.0, 8.616559),
    ("FalseNegatives", {}, "YP", 7.0, 3.6903679),
    ("Precision", {}, "YP", 0.8, 0.8255398),
    ("Precision", {"thresholds": [0.2, 0.7]}, "YP", [0.6216216, 1.0], [0.6305384, 1.0]),
    ("Precision", {"top_k": 2}, "HS", 0.1875, 0.2115593),
    ("Precision", {"class_id": 1}, "HS", 0.047619, 0.0569624),
    ("Precision", {"top_k": 2, "class_id": 1}, "HS", 0.1052632, 0.0798374),
    ("Recall", {}, "YP", 0.6956522, 0.7318934),
    ("Recall", {"top_k": 2}, "HS", 0.375, 0.4231185),
    ("AUC", {}, "YP", 0.8030691, 0.8551364),
    ("AUC", {"curve": "PR"}, "YP", 0.8596761, 0.890947),
    ("AUC", {"num_thresholds": 7}, "YP", 0.8158568, 0.8576007),
    ("AUC", {"num_thresholds": 7, "curve": "PR"}, "YP", 0.8538409, 0.8839633),
    ("AUC", {"summation_method": "minoring"}, "YP", 0.8030691, 0.8551364),
    ("AUC", {"curve": "PR", "summation_method": "majoring"}, "YP", 0.8628147, 0.8935895),
    ("SensitivityAtSpecificity", {"specificity": 0.6}, "YP", 0.7391304, 0.7835581),
    ("SpecificityAtSensitivity", {"sensitivity": 0.6}, "YP", 0.7647059, 0.8923891),
    ("PrecisionAtRecall", {"recall": 0.6}, "YP", 0.8, 0.8825796),
    ("RecallAtPrecision", {"precision": 0.6}, "YP", 1.0, 1.0),
    ("F1Score", {}, "HS", [0.2, 0.0, 0.173913, 0.3], [0.2305915, 0.0, 0.1401039, 0.3134246]),
    ("F1Score", {"average": "macro"}, "HS", 0.1684782, 0.17103),
    ("F1Score", {"average": "micro", "threshold": 0.5}, "HS", 0.2834645, 0.3099621),
    ("F1Score", {"average": "weighted"}, "HS", 0.1816304, 0.194722),
    (
        "FBetaScore",
        {"beta": 2.0, "threshold": 0.4},
        "HS",
        [0.5405406, 0.2586206, 0.3225806, 0.5],
        [0.5198984, 0.2466717, 0.3424709, 0.5394181],
    ),
    ("MeanIoU", {"num_classes": 4}, "CD", 0.177709, None),
    (
        "MeanIoU",
        {"num_classes": 4, "sparse_y_true": False, "sparse_y_pred": False},
        "HS",
        0.095705,
        None,
    ),
    ("IoU", {"num_classes": 4, "target_class_ids": [0, 2]}, "CD", 0.1588235, None),
    ("MeanIoU", {"num_classes": 4, "ignore_class": 3}, "CD", 0.1379006, None),
    ("BinaryIoU", {"threshold": 0.4}, "YP", 0.4630682, None),
    ("R2Score", {}, "TR", 0.5623708, 0.5381988),
    ("R2Score", {"class_aggregation": None}, "TR", [0.5443374, 0.5804041], [0.4971202, 0.5792775]),
    ("R2Score", {"class_aggregation": "variance_weighted_average"}, "TR", 0.5621335, 0.5395243),
    ("Accuracy", {}, "CD", 0.3, 0.3119541),
    ("BinaryAccuracy", {}, "YP", 0.725, 0.7625738),
    ("BinaryAccuracy", {"threshold": 0.3}, "HS", 0.3625, 0.3399577),
    ("CategoricalAccuracy", {}, "HS", 0.175, 0.1861179),
    ("SparseCategoricalAccuracy", {}, "CS", 0.175, 0.1861179),
    ("SparseTopKCategoricalAccuracy", {"k": 2}, "CS", 0.375, 0.4231184),
    ("CategoricalCrossentropy", {"from_logits": True}, "HS", 1.475301, 1.472335),
    ("SparseCategoricalCrossentropy", {"from_logits": True}, "CS", 1.475301, 1.472335),
    ("BinaryCrossentropy", {"from_logits": True}, "HS", 0.8878317, 0.8918138),
    ("CategoricalCrossentropy", {"from_logits": False}, "HS", 1.6739975, 1.6906987),
    ("SparseCategoricalCrossentropy", {"from_logits": False}, "CS", 1.6739975, 1.6906987),
    ("BinaryCrossentropy", {"from_logits": False}, "HS", 1.1510452, 1.1767751),
    ("CosineSimilarity", {}, "TR", 0.9840083, 0.9881707),
    ("MeanSquaredError", {}, "TR", 0.0352282, 0.0355354),
    ("RootMeanSquaredError", {}, "TR", 0.1876918, 0.1885085),
    ("MeanAbsoluteError", {}, "TR", 0.1685955, 0.1688942),
]
CUTS = (slice(0, 15), slice(15, 40))
STATEFUL = [
    name
    for module in (metrics.curves, metrics.scores, metrics.stateful)
    for name in module.__all__
    if name[0].isupper()
]


def of(name: str, settings: dict[str, Any], data: str, weight: Any = None) -> Any:
    metric = getattr(metrics, name)(**settings)
    for cut in CUTS:
        part = None if weight is None else weight[cut]
        metric.update_state(DATA[data[0]][cut], DATA[data[1]][cut], sample_weight=part)
    return metric


@pytest.mark.parametrize(("name", "settings", "data", "plain", "weighted"), KERAS)
def test_values_are_keras(name: str, settings: Any, data: str, plain: Any, weighted: Any) -> None:
    np.testing.assert_allclose(of(name, settings, data).result().numpy(), plain, rtol=3e-6)
    if weighted is not None:
        found = of(name, settings, data, W).result().numpy()
        np.testing.assert_allclose(found, weighted, rtol=3e-6)


@pytest.mark.parametrize(("name", "settings", "data", "plain", "weighted"), KERAS)
def test_metrics_begin_anew_and_come_back_from_files(
    name: str, settings: Any, data: str, plain: Any, weighted: Any, tmp_path: Path
) -> None:
    metric = of(name, settings, data)
    gt.save(metric, tmp_path / "m.h5", golden=False)
    loaded = gt.load(tmp_path / "m.h5")
    np.testing.assert_array_equal(loaded.result().numpy(), metric.result().numpy())
    assert loaded.get_config() == metric.get_config()
    metric.reset_state()
    loaded.reset_state()
    for one in (metric, loaded):
        for cut in CUTS:
            one.update_state(DATA[data[0]][cut], DATA[data[1]][cut])
        np.testing.assert_allclose(one.result().numpy(), plain, rtol=3e-6)


@pytest.mark.parametrize("name", ["Precision", "AUC", "MeanIoU", "R2Score"])
def test_updates_may_be_traced(name: str) -> None:
    _, settings, data, plain, _ = next(case for case in KERAS if case[0] == name)
    metric = getattr(metrics, name)(**settings)
    first, second = (DATA[x] for x in data)
    metric.update_state(first, second)
    metric.reset_state()
    update = gt.function(lambda a, b: metric.update_state(a, b))
    for cut in CUTS:
        update(gt.constant(first[cut]), gt.constant(second[cut]))
    np.testing.assert_allclose(metric.result().numpy(), plain, rtol=3e-6)


def test_every_metric_is_compared() -> None:
    others = {"ConfusionMatrix", "Mean", "MeanMetricWrapper", "Metric", "Sum"}
    assert {*STATEFUL, *metrics.objects.__all__} == {name for name, *_ in KERAS} | others


def test_classes_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="a class is 4; with num_classes=4, classes are from 0"):
        metrics.MeanIoU(4)([0, 4], [0, 1])
    with pytest.raises(ValueError, match="a class is -1; with num_classes=2"):
        metrics.confusion_matrix([0, -1], [0, 1], 2)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: metrics.Precision(1.5), "Precision: thresholds must be between 0 and 1"),
        (lambda: metrics.AUC(1), "AUC: num_thresholds must be an integer from 2 to 65536"),
        (lambda: metrics.AUC(2**40), "AUC: num_thresholds must be an integer from 2 to 65536"),
        (lambda: metrics.IoU(2, [2]), "IoU: target_class_ids must be from 0 to 1"),
        (lambda: metrics.IoU(2, [-1]), "IoU: target_class_ids must be from 0 to 1"),
        (lambda: metrics.AUC(curve="PQ"), "AUC: curve must be 'ROC' or 'PR'"),
        (lambda: metrics.F1Score("mean"), "F1Score: average must be one of"),
        (lambda: metrics.R2Score("mean"), "R2Score: class_aggregation must be"),
        (lambda: metrics.RecallAtPrecision(2.0), "RecallAtPrecision: precision must be between"),
        (lambda: metrics.MeanIoU(0), "MeanIoU: num_classes must be positive"),
    ],
)
def test_settings_out_of_range_are_refused(make: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make()


@pytest.mark.parametrize(
    "kind", [metrics.ConfusionMatrix, metrics.MeanIoU, tf.keras.metrics.MeanIoU]
)
def test_classes_of_a_traced_update_are_refused_by_the_result(kind: Any) -> None:
    metric = kind(3)
    update = gt.function(metric.update_state)
    update(gt.constant([0, 2]), gt.constant([0, 1]))
    np.testing.assert_array_equal(metric.result(), kind(3)([0, 2], [0, 1]))
    update(gt.constant([0, 3]), gt.constant([0, 1]))
    with pytest.raises(ValueError, match=f"{kind.__name__}.* not from 0 to 2"):
        metric.result()
    metric.reset_state()
    assert not np.isnan(metric.result()).any()


@pytest.mark.parametrize("kind", [metrics.ConfusionMatrix, metrics.MeanIoU, metrics.IoU])
@pytest.mark.parametrize("wrong", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_scores_are_not_taken_for_classes(kind: Any, wrong: int, dtype: str) -> None:
    metric = kind(3, [1]) if kind is metrics.IoU else kind(3)
    whole, scores = np.array([0, 1, 2], dtype), np.array([0.25, 1.75, 1], dtype)
    metric.update_state(whole, whole)
    before = metric.result().numpy()
    given = (scores, whole) if wrong == 0 else (whole, scores)
    with pytest.raises(ValueError, match=r"a class is (0.25|1.75), which is not whole"):
        metric.update_state(*given)
    np.testing.assert_array_equal(metric.result(), before)
    update = gt.function(metric.update_state)
    update(*map(gt.constant, given))
    with pytest.raises(ValueError, match=f"{kind.__name__}.* or not whole"):
        metric.result()


@pytest.mark.parametrize(("predicted", "score"), [([2.0, 2.0, 2.0], 0.0), ([1.0, 1.0, 1.0], 1.0)])
def test_labels_without_variance_are_met_or_not(predicted: list[float], score: float) -> None:
    assert metrics.R2Score()([1.0, 1.0, 1.0], predicted).item() == score
    assert np.isnan(metrics.R2Score()([1.0, np.nan, 1.0], predicted).item())


def test_the_best_of_equal_predictions_are_as_many_as_asked_for() -> None:
    assert metrics.Precision(top_k=1)([[0, 1, 0]], [[0.5, 0.5, 0.1]]).item() == 0.0
    assert metrics.Recall(top_k=2)([[1, 0, 1]], [[0.5, 0.5, 0.5]]).item() == 0.5


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="confusion_matrix: y_true has shape"):
        metrics.MeanIoU(2)([[0, 1, 1], [1, 1, 1]], [[0, 1], [1, 1], [0, 0]])
    column = metrics.Precision()([0, 1, 1], [0.9, 0.8, 0.7], [[1.0], [1.0], [2.0]]).item()
    assert column == 0.75
    with pytest.raises(ValueError, match="sample_weight of shape"):
        metrics.Precision()([0, 1], [0.9, 0.8], [[1.0, 2.0]])


@pytest.mark.parametrize("name", ["ConfusionMatrix", "MeanIoU"])
def test_a_metric_of_many_classes_takes_no_memory_before_its_first_batch(name: str) -> None:
    metric = getattr(metrics, name)(2**24)
    assert not metric.variables
