"""Metrics: functions against NumPy, objects over batches, and what fit makes of both."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape import training
from gradtape.training import losses, metrics

P = np.array([[0.1, 0.9], [0.8, 0.2], [0.3, 0.7]])
SPARSE, HOT, MANY = [1, 0, 0], np.eye(2)[[1, 0, 0]], np.array([[0, 1], [1, 1], [0, 0]])
ENTROPY = -np.log([0.9, 0.8, 0.3]).mean()

CASES = [
    (lambda: metrics.Accuracy(), [1, 2, 3], [1, 2, 4], 2 / 3),
    (lambda: metrics.SparseCategoricalAccuracy(), SPARSE, P, 2 / 3),
    (lambda: metrics.CategoricalAccuracy(), HOT, P, 2 / 3),
    (lambda: metrics.BinaryAccuracy(), MANY, P, 4 / 6),
    (lambda: metrics.BinaryAccuracy(threshold=0.05), MANY, P, 3 / 6),
    (lambda: metrics.SparseTopKCategoricalAccuracy(k=1), SPARSE, P, 2 / 3),
    (lambda: metrics.SparseTopKCategoricalAccuracy(k=2), SPARSE, P, 1.0),
    (lambda: metrics.SparseCategoricalCrossentropy(), SPARSE, np.log(P), ENTROPY),
    (lambda: metrics.SparseCategoricalCrossentropy(from_logits=False), SPARSE, P, ENTROPY),
    (lambda: metrics.CategoricalCrossentropy(), HOT, np.log(P), ENTROPY),
    (lambda: metrics.BinaryCrossentropy(from_logits=False), HOT, P, ENTROPY),
    (lambda: metrics.MeanSquaredError(), P + 0.5, P, 0.25),
    (lambda: metrics.RootMeanSquaredError(), P + 0.5, P, 0.5),
    (lambda: metrics.MeanAbsoluteError(), P + 0.5, P, 0.5),
    (lambda: metrics.CosineSimilarity(), 2 * P, P, 1.0),
    (lambda: metrics.MeanMetricWrapper(losses.huber, delta=0.25), P + 0.5, P, 0.09375),
]


@pytest.mark.parametrize(("make", "labels", "predictions", "expected"), CASES)
def test_a_metric_is_the_same_by_batches(
    make: Any, labels: Any, predictions: Any, expected: float
) -> None:
    whole, parts = make(), make()
    assert whole(labels, predictions).item() == pytest.approx(expected, rel=1e-5)
    for i in range(3):
        parts.update_state(labels[i : i + 1], predictions[i : i + 1])
    assert parts.result().item() == pytest.approx(expected, rel=1e-5)
    parts.reset_state()
    assert parts.result().item() == 0.0
    assert parts.name.islower()
    assert parts.trainable_variables == ()


def test_every_metric_has_its_case() -> None:
    covered = {type(make()).__name__ for make, *_ in CASES}
    assert covered == {*metrics.objects.__all__} - {"Metric", "Mean", "Sum"}


def test_weights_of_examples() -> None:
    metric = metrics.MeanAbsoluteError()
    metric.update_state([[0.0], [0.0]], [[1.0], [4.0]], sample_weight=[3.0, 1.0])
    assert metric.result().item() == 7 / 4
    metric = metrics.BinaryAccuracy()
    metric.update_state([1, 0], [[0.9], [0.9]], sample_weight=[[1.0], [0.0]])
    assert metric.count.item() > 0


def test_means_and_sums() -> None:
    mean, total = metrics.Mean(), metrics.Sum("all")
    assert mean.result().item() == 0.0
    for values in ([1.0, 3.0], 5.0):
        mean.update_state(values)
        total.update_state(values)
    assert (mean.result().item(), total.result().item()) == (3.0, 9.0)
    assert mean([3.0], sample_weight=[2.0]).item() == 3.0
    assert (mean.name, total.name) == ("mean", "all")


def test_a_metric_in_a_traced_step() -> None:
    metric = metrics.SparseCategoricalAccuracy()

    @gt.function
    def step(labels: Any, logits: Any) -> Any:
        return metric(labels, logits)

    assert step(gt.constant(SPARSE), gt.constant(P)).item() == pytest.approx(2 / 3)
    assert step(gt.constant([0, 0, 0]), gt.constant(P)).item() == pytest.approx(0.5)


def test_metrics_of_ones_own_need_an_update() -> None:
    class Longest(metrics.Metric):
        def update_state(self, values: Any) -> None:
            self.total.assign(max(self.total.item(), float(len(values))))

        def result(self) -> Any:
            return self.total.value

    longest = Longest()
    longest.update_state([1, 2, 3])
    assert longest([1]).item() == 3.0
    with pytest.raises(NotImplementedError, match="Metric: define update_state"):
        metrics.Metric().update_state(1.0)


def test_fit_takes_metrics_by_name_and_as_objects() -> None:
    x, labels = np.random.default_rng(0).normal(size=(20, 3)), np.arange(20) % 2
    model = gt.layers.Sequential([gt.layers.Dense(2)])
    given = ["accuracy", metrics.SparseCategoricalAccuracy(name="again"), "categorical_accuracy"]
    run = training.fit(
        model,
        (x, np.eye(2)[labels]),
        loss="categorical_crossentropy",
        metrics=given,
        verbose=False,
    )
    history = run.history
    assert list(history) == ["loss", "accuracy", "again", "categorical_accuracy"]
    for name in ("again", "categorical_accuracy"):
        assert history[name] == pytest.approx(history["accuracy"])
    measured = training.evaluate(
        model, (x, np.eye(2)[labels]), loss="mse", metrics=["mse", metrics.MeanAbsoluteError()]
    )
    assert list(measured) == ["loss", "mse", "mean_absolute_error"]
    assert measured["loss"] == pytest.approx(measured["mse"])


@pytest.mark.parametrize("metric", [metrics.Mean(), metrics.Sum()])
def test_what_takes_no_labels_is_refused(metric: Any) -> None:
    with pytest.raises(TypeError, match=f"{type(metric).__name__} is not a metric of labels and"):
        metrics.get([metric])


def test_names_of_metrics() -> None:
    assert list(metrics.get("accuracy")) == ["accuracy"]
    with pytest.raises(ValueError, match="unknown metric 'auc'; did you mean 'AUC'"):
        metrics.get(["auc"])
    with pytest.raises(ValueError, match="two metrics are called 'mse'"):
        metrics.get(["mse", metrics.MeanSquaredError(name="mse")])


@pytest.mark.parametrize(("make", "labels", "predictions", "expected"), CASES[:-1])
def test_a_saved_metric_goes_on(
    make: Any, labels: Any, predictions: Any, expected: float, tmp_path: Path
) -> None:
    root = gt.Module()
    root.metric = make()
    root.metric.update_state(labels, predictions)
    gt.save(root, tmp_path / "metric.h5")
    found = gt.load(tmp_path / "metric.h5").metric
    assert type(found) is type(root.metric)
    assert found.get_config() == root.metric.get_config()
    found.update_state(labels, predictions)
    assert found.result().item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("labels", [[0.0, 1.0, 1.0], [-1.0, 1.0, 1.0], [0.05, 0.95, 0.95]])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_binary_accuracy_takes_the_side_of_any_label_of_yes_or_no(labels, dtype) -> None:
    y = np.array(labels, dtype)[:, None]
    right = gt.training.metrics.binary_accuracy(y, [[-2.0], [3.0], [-1.0]], threshold=0.0)
    assert right.tolist() == [1.0, 1.0, 0.0]


def error_above(limit: float, y: Any, predicted: Any) -> Any:
    return gt.cast(gt.abs(y - predicted) > limit, "float32")


class WorstError:
    def __call__(self, y: Any, predicted: Any) -> Any:
        return gt.max(gt.abs(y - predicted), axis=-1)


class Named(WorstError):
    name = "worst"


@pytest.mark.parametrize("which", ["metrics", "weighted_metrics"])
def test_names_of_histories_hold_no_addresses(which: str) -> None:
    given = [
        functools.partial(error_above, 0.5),
        functools.partial(functools.partial(error_above), 1.0),
        WorstError(),
        WorstError(),
        Named(),
        functools.partial(losses.huber, delta=2.0),
    ]
    model = gt.layers.Sequential([gt.layers.Dense(1)])
    data = (np.ones((4, 2), "float32"), np.ones((4, 1), "float32"))
    found = training.evaluate(model, data, loss="mse", **{which: given})
    names = ["error_above", "error_above_2", "worst_error", "worst_error_2", "worst", "huber"]
    assert list(found) == ["loss", *names]
