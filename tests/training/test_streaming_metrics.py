"""Every metric is what NumPy and scikit-learn give for hard numbers: in pieces, whole, traced."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sklearn.metrics as sk

import gradtape as gt
from gradtape.training import metrics

Array = Any
COUNT = 61
#: Where batches begin: some are empty, some have one example.
CUTS = (0, 0, 1, 2, 2, 15, 16, 40, 61, 61)


def random(seed: int = 0) -> Any:
    return np.random.default_rng(seed)


def narrow(low: float, width: float) -> Array:
    return (low + random(1).random((COUNT, 3)) * width).astype("float32")


#: Probabilities of three classes.
SCORES: dict[str, Array] = {
    "plain": narrow(0.0, 1.0),
    "narrow": narrow(0.991, 0.008),
    "beside a half": narrow(0.5, 2e-5),
    "tied": np.round(narrow(0.0, 1.0), 1),
    "all tied": np.full((COUNT, 3), 0.25, "float32"),
    "0 and 1": np.round(narrow(0.0, 1.0)),
    "tiny": narrow(0.0, 1e-30),
    "float16": narrow(0.0, 1.0).astype("float16"),
}
#: Labels of regressions: factor and offset of normal numbers.
VALUES = {"plain": (1.0, 0.0), "far": (1.0, 1e8), "tiny": (1e-20, 0.0), "huge": (1e100, 0.0)}
WEIGHTS: dict[str, Array] = {
    "none": None,
    "random": random(3).random(COUNT).astype("float32"),
    "some 0": random(4).integers(0, 2, COUNT).astype("float32"),
}
LABELS = random(5).integers(0, 3, COUNT)
HOT = np.eye(3)[LABELS]


def mean(values: Array, weight: Array) -> Any:
    values = np.asarray(values, "float64")
    return np.average(values.reshape(COUNT, -1).mean(1), weights=weight)


def entropy(y: Array, p: Array) -> Array:
    p = np.clip(p.astype("float32"), np.float32(1e-7), np.float32(1 - 1e-7)).astype("float64")
    return -np.where(y == 1, np.log(p), np.log1p(-p))


def top(scores: Array, k: int) -> Array:
    own = np.take_along_axis(scores, LABELS[:, None], 1)
    return (scores > own).sum(1) < k


def largest(p: Array) -> Array:
    return p == p.max(1, keepdims=True)


def counted(y: Array, p: Array, w: Array) -> list[Any]:
    """Return true and false positives, and true and false negatives."""
    w = np.ones(COUNT) if w is None else w.astype("float64")
    yes, found = y == 1, p > 0.5
    kinds = (yes & found, ~yes & found, ~yes & ~found, yes & ~found)
    return [w[kind].sum() for kind in kinds]


def over(a: Any, b: Any) -> Any:
    return a / b if b else 0.0


def rates(y: Array, p: Array, w: Array) -> list[Any]:
    """Return precision, recall and specificity at thresholds below and above every score."""
    found = []
    for t in [*np.unique(p), np.inf]:
        tp, fp, tn, fn = counted(y, np.where(p >= t, 1.0, 0.0), w)
        found.append((over(tp, tp + fp), over(tp, tp + fn), over(tn, tn + fp)))
    return found


def best(which: int, given: int) -> Callable[..., Any]:
    def reference(y: Array, p: Array, w: Array) -> Any:
        return max((r[which] for r in rates(y, p, w) if r[given] >= 0.6), default=0.0)

    return reference


def iou(y: Array, p: Array, w: Array) -> Any:
    matrix = sk.confusion_matrix(y, p, sample_weight=w, labels=range(3))
    union = matrix.sum(0) + matrix.sum(1) - np.diag(matrix)
    return (np.diag(matrix)[union > 0] / union[union > 0]).mean()


def fbeta(y: Array, found: Array, w: Array, beta: float, average: Any = None) -> Any:
    options = {"beta": beta, "average": average, "sample_weight": w, "zero_division": 0}
    return sk.fbeta_score(y, found, **options)


YES = (LABELS == 1).astype("float32")
#: By name: the metric, labels, which of the scores it takes, and its value by definition.
OF_SCORES: dict[str, tuple[Any, Array, Callable[[Array], Array], Callable[..., Any]]] = {
    "Accuracy": (metrics.Accuracy, YES, lambda s: s[:, 1], lambda y, p, w: mean(y == p, w)),
    "BinaryAccuracy": (
        metrics.BinaryAccuracy, YES, lambda s: s[:, 1], lambda y, p, w: mean((p > 0.5) == y, w)
    ),
    "CategoricalAccuracy": (
        metrics.CategoricalAccuracy, HOT, lambda s: s,
        lambda y, p, w: mean(p.argmax(1) == LABELS, w),
    ),
    "SparseCategoricalAccuracy": (
        metrics.SparseCategoricalAccuracy, LABELS, lambda s: s,
        lambda y, p, w: mean(p.argmax(1) == y, w),
    ),
    "SparseTopKCategoricalAccuracy": (
        lambda: metrics.SparseTopKCategoricalAccuracy(2), LABELS, lambda s: s,
        lambda y, p, w: mean(top(p, 2), w),
    ),
    "BinaryCrossentropy": (
        lambda: metrics.BinaryCrossentropy(from_logits=False), YES, lambda s: s[:, 1],
        lambda y, p, w: mean(entropy(y, p), w),
    ),
    "CategoricalCrossentropy": (
        lambda: metrics.CategoricalCrossentropy(from_logits=True), HOT, lambda s: s,
        lambda y, p, w: sk.log_loss(LABELS, softmax(p), sample_weight=w),
    ),
    "SparseCategoricalCrossentropy": (
        lambda: metrics.SparseCategoricalCrossentropy(from_logits=True), LABELS, lambda s: s,
        lambda y, p, w: sk.log_loss(LABELS, softmax(p), sample_weight=w),
    ),
    "AUC": (
        metrics.AUC, YES, lambda s: s[:, 1],
        lambda y, p, w: sk.roc_auc_score(y, p, sample_weight=w),
    ),
    "SensitivityAtSpecificity": (
        lambda: metrics.SensitivityAtSpecificity(0.6), YES, lambda s: s[:, 1], best(1, 2)
    ),
    "SpecificityAtSensitivity": (
        lambda: metrics.SpecificityAtSensitivity(0.6), YES, lambda s: s[:, 1], best(2, 1)
    ),
    "PrecisionAtRecall": (
        lambda: metrics.PrecisionAtRecall(0.6), YES, lambda s: s[:, 1], best(0, 1)
    ),
    "RecallAtPrecision": (
        lambda: metrics.RecallAtPrecision(0.6), YES, lambda s: s[:, 1], best(1, 0)
    ),
    "Precision": (
        metrics.Precision, YES, lambda s: s[:, 1],
        lambda y, p, w: sk.precision_score(y, p > 0.5, sample_weight=w, zero_division=0),
    ),
    "Recall": (
        metrics.Recall, YES, lambda s: s[:, 1],
        lambda y, p, w: sk.recall_score(y, p > 0.5, sample_weight=w, zero_division=0),
    ),
    **{
        name: (
            getattr(metrics, name), YES, lambda s: s[:, 1],
            lambda y, p, w, i=i: counted(y, p, w)[i],
        )
        for i, name in enumerate(
            ("TruePositives", "FalsePositives", "TrueNegatives", "FalseNegatives")
        )
    },
    "ConfusionMatrix": (
        lambda: metrics.ConfusionMatrix(3), LABELS, lambda s: s.argmax(1),
        lambda y, p, w: sk.confusion_matrix(y, p, sample_weight=w, labels=range(3)),
    ),
    "MeanIoU": (lambda: metrics.MeanIoU(3), LABELS, lambda s: s.argmax(1), iou),
    "IoU": (lambda: metrics.IoU(3, [0, 1, 2]), LABELS, lambda s: s.argmax(1), iou),
    "BinaryIoU": (
        metrics.BinaryIoU, YES, lambda s: s[:, 1], lambda y, p, w: iou(y, (p >= 0.5) * 1.0, w)
    ),
    "F1Score": (
        metrics.F1Score, HOT, lambda s: s, lambda y, p, w: fbeta(y, largest(p), w, 1.0)
    ),
    "F1Score of a column": (
        lambda: metrics.F1Score("macro"), YES[:, None], lambda s: s[:, 1:2],
        lambda y, p, w: fbeta(y[:, 0], p[:, 0] > 0.5, w, 1.0, "binary"),
    ),
    "FBetaScore": (
        lambda: metrics.FBetaScore("macro", 2.0, 0.5), HOT, lambda s: s,
        lambda y, p, w: fbeta(y, p > 0.5, w, 2.0, "macro"),
    ),
}  # fmt: skip
#: By name: the metric, and its value for labels and predictions ``(examples, 2)``.
OF_VALUES: dict[str, tuple[Any, Callable[..., Any]]] = {
    "Mean": (metrics.Mean, lambda y, p, w: mean(p, w)),
    "Sum": (metrics.Sum, lambda y, p, w: (p * (1 if w is None else w[:, None])).sum()),
    "MeanSquaredError": (metrics.MeanSquaredError, lambda y, p, w: mean((y - p) ** 2, w)),
    "RootMeanSquaredError": (
        metrics.RootMeanSquaredError,
        lambda y, p, w: mean((y - p) ** 2, w) ** 0.5,
    ),
    "MeanAbsoluteError": (metrics.MeanAbsoluteError, lambda y, p, w: mean(abs(y - p), w)),
    "MeanMetricWrapper": (
        lambda: metrics.MeanMetricWrapper(gt.training.losses.mean_absolute_error),
        lambda y, p, w: mean(abs(y - p), w),
    ),
    "CosineSimilarity": (
        metrics.CosineSimilarity,
        lambda y, p, w: mean((sides(y) * sides(p)).sum(1), w),
    ),
    "R2Score": (metrics.R2Score, lambda y, p, w: sk.r2_score(y, p, sample_weight=w)),
}


def softmax(p: Array) -> Array:
    e = np.exp(p.astype("float64") - p.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def sides(x: Array) -> Array:
    return x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-6)


def check(make: Any, y: Any, p: Any, w: Any, want: Any, rtol: float, in_trace: bool = True) -> None:
    alone = make in (metrics.Mean, metrics.Sum)

    def update(metric: Any, y: Any, p: Any, w: Any) -> None:
        given = (p,) if alone else (y, p)
        metric.update_state(*given, **({} if w is None else {"sample_weight": w}))

    pieces, whole = make(), make()
    update(whole, y, p, w)
    for start, end in itertools.pairwise(CUTS):
        update(pieces, y[start:end], p[start:end], None if w is None else w[start:end])
    found = [whole, pieces]
    if in_trace and w is not None:
        found.append(make())
        gt.function(update)(found[-1], *map(gt.constant, (y, p, w)))
    for metric in found:
        np.testing.assert_allclose(metric.result().numpy(), want, rtol=rtol, atol=1e-300)
    pieces.reset_state()
    update(pieces, y, p, w)
    np.testing.assert_allclose(pieces.result().numpy(), want, rtol=rtol, atol=1e-300)


def test_every_metric_has_a_definition() -> None:
    classes = {
        name
        for name in metrics.__all__
        if isinstance(kind := getattr(metrics, name), type) and issubclass(kind, metrics.Metric)
    }
    assert classes - {"Metric"} == {name.split()[0] for name in (*OF_SCORES, *OF_VALUES)}


@pytest.mark.parametrize("name", OF_SCORES)
def test_metrics_of_scores_are_their_definitions(name: str) -> None:
    make, y, part, reference = OF_SCORES[name]
    for scores in SCORES.values():
        for kind, w in WEIGHTS.items():
            p = part(scores)
            check(make, y, p, w, reference(y, p, w), 2e-5, in_trace=kind == "random")


@pytest.mark.parametrize("name", OF_VALUES)
def test_metrics_of_values_are_their_definitions(name: str) -> None:
    make, reference = OF_VALUES[name]
    for factor, offset in VALUES.values():
        y = random().normal(size=(COUNT, 2)) * factor + offset
        p = y + 0.1 * factor * random(2).normal(size=y.shape)
        for w in WEIGHTS.values():
            check(make, y, p, w, reference(y, p, w), 1e-6)


@pytest.mark.parametrize("name", [*OF_SCORES, *OF_VALUES])
def test_examples_without_weight_say_nothing(name: str) -> None:
    """Nothing counted is 0, or NaN where the measure is not defined."""
    if name in OF_SCORES:
        make, y, part, _ = OF_SCORES[name]
        p = part(SCORES["plain"])
    else:
        make, y, p = OF_VALUES[name][0], HOT, SCORES["plain"]
    metric = make()
    given = (p,) if make in (metrics.Mean, metrics.Sum) else (y, p)
    metric.update_state(*given, sample_weight=np.zeros(COUNT, "float32"))
    found = metric.result().numpy()
    assert np.isnan(found) if name == "AUC" else (found == 0).all()


@pytest.mark.parametrize("columns", [1, 3])
def test_a_compiled_evaluation_measures_what_a_direct_update_does(columns: int) -> None:
    scores, labels = SCORES["narrow"], YES[:, None] if columns == 1 else HOT
    x = scores[:, 1:2] if columns == 1 else scores
    found = {}
    for name, (make, y, part, _) in OF_SCORES.items():
        took = part(scores).shape[1:] in ((), (1,)) if columns == 1 else y is HOT
        if took and "IoU" not in name and name not in ("ConfusionMatrix", "F1Score"):
            found[name.replace(" ", "_")] = make()
    model = gt.layers.Sequential([gt.layers.Activation("linear")])
    results = gt.training.evaluate(
        model, (x, labels), loss="mse", metrics=[*found.values()], batch_size=16
    )
    for metric in found.values():
        got = results[metric.name]
        metric.reset_state()
        metric.update_state(labels, x)
        np.testing.assert_allclose(got, metric.result().numpy(), rtol=1e-6)


@pytest.mark.parametrize("count", [3000, 20000])
def test_areas_of_many_different_scores_are_close(count: int) -> None:
    y = random().integers(0, 2, count)
    p = 0.3 + 1e-4 * random(1).random(count) + 3e-5 * y
    metric = metrics.AUC()
    for start in range(0, count, 500):
        metric.update_state(y[start : start + 500], p[start : start + 500])
    assert metric.result().item() == pytest.approx(sk.roc_auc_score(y, p), abs=1e-3)


@pytest.mark.parametrize("share", [0.5, 0.02, 0.001])
def test_curves_of_rare_labels_are_close(share: float) -> None:
    """Too many different scores are joined, and the few of label 1 must stay apart."""
    draws = random(3)
    y = (draws.random(20000) < share).astype("float32")
    p = 1.0 / (1.0 + np.exp(-(draws.normal(size=20000) + 2.5 * y - 3.0)))
    precision, recall, _ = sk.precision_recall_curve(y, p)
    false, true, _ = sk.roc_curve(y, p)
    wanted = {
        metrics.AUC(): (sk.roc_auc_score(y, p), 3e-3),
        metrics.AUC(curve="PR"): (sk.auc(recall, precision), 5e-3),
        metrics.RecallAtPrecision(0.5): (recall[precision >= 0.5].max(), 0.02),
        metrics.PrecisionAtRecall(0.5): (precision[recall >= 0.5].max(), 0.02),
        metrics.SensitivityAtSpecificity(0.9): (true[false <= 0.1].max(), 0.02),
    }
    for metric, (value, error) in wanted.items():
        for start in range(0, len(y), 400):
            metric.update_state(y[start : start + 400], p[start : start + 400])
        assert metric.result().item() == pytest.approx(value, abs=error), metric


@pytest.mark.parametrize("name", ["TruePositives", "ConfusionMatrix", "Sum"])
def test_counts_beyond_float32_are_exact(name: str) -> None:
    metric = OF_VALUES[name][0]() if name == "Sum" else OF_SCORES[name][0]()
    ones, weight = np.ones(4), np.array([2.0**24, 1.0, 1.0, 1.0])
    for _ in range(2):
        metric.update_state(*(ones,) * (1 if name == "Sum" else 2), sample_weight=weight)
    assert metric.result().numpy().sum() == 2 * (2**24 + 3)


def test_thresholds_that_do_not_separate_scores_are_reported() -> None:
    y, p = [0, 1, 0, 1], [0.991, 0.992, 0.996, 0.999]
    with pytest.warns(UserWarning, match="200 thresholds do not separate"):
        metrics.AUC(num_thresholds=200)(y, p)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert metrics.AUC()(y, p).item() == 0.75
        assert metrics.AUC(num_thresholds=7)(YES, SCORES["plain"][:, 1]).item() > 0


def measured(metric: Any, update: Any, y: Any, p: Any) -> Any:
    update(y, p)
    return metric.result()


@pytest.mark.parametrize("name", OF_SCORES)
def test_scores_that_are_nan_are_wrong_or_refused(name: str) -> None:
    make, y, part, _ = OF_SCORES[name]
    scores = SCORES["plain"].copy()
    scores[3] = np.nan
    metrics_of = {
        "ConfusionMatrix": lambda: metrics.ConfusionMatrix(3, sparse_y_pred=False),
        "MeanIoU": lambda: metrics.MeanIoU(3, sparse_y_pred=False),
        "IoU": lambda: metrics.IoU(3, [0], sparse_y_pred=False),
    }
    make, p = metrics_of.get(name, make), scores if name in metrics_of else part(scores)
    for traced in (False, True):
        metric = make()
        update = gt.function(metric.update_state) if traced else metric.update_state
        if "Accuracy" in name:
            update(y[3:4], p[3:4])
            assert metric.result().item() == 0.0
        elif "Crossentropy" in name:
            update(y, p)
            assert np.isnan(metric.result().item())
        else:
            with pytest.raises(ValueError, match="NaN"):
                measured(metric, update, y, p)


@pytest.mark.parametrize("weight", [None, [1.0, 2.0, 3.0]])
def test_equal_labels_are_explained_by_exact_predictions_only(weight: Any) -> None:
    labels = np.array([0.1, 0.1, 0.1])
    for start in (labels, labels + 1e8):
        for error, score in ((0.0, 1.0), (1e-3, 0.0)):
            metric = metrics.R2Score()
            for i in range(3):
                w = None if weight is None else weight[i : i + 1]
                metric.update_state(start[i : i + 1], start[i : i + 1] + error, sample_weight=w)
            assert metric.result().item() == score


@pytest.mark.parametrize(
    ("measure", "labels"),
    [
        (metrics.accuracy, [0, 1]),
        (metrics.sparse_categorical_accuracy, [0, 1]),
        (metrics.categorical_accuracy, [[1.0, 0.0], [0.0, 1.0]]),
        (metrics.sparse_top_k_categorical_accuracy, [0, 1]),
        (metrics.binary_accuracy, [[1.0, 0.0], [0.0, 1.0]]),
    ],
)
def test_scores_that_are_nan_are_never_right(measure: Any, labels: Any) -> None:
    scores = np.full((2, 2), np.nan, "float32")
    assert not measure(labels, scores).numpy().any()
