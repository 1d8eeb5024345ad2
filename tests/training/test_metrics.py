"""Metrics: functions against NumPy, objects over batches, and what fit makes of both."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape import training
from gradtape.compat import tensorflow as tf
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


class TopError:
    """A metric that is an object without a name."""

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale

    def __call__(self, y: Any, predicted: Any) -> Any:
        return self.scale * gt.max(gt.abs(y - predicted), axis=-1)


class Named(TopError):
    name = "worst"


def scaled_error(y: Any, predicted: Any, scale: float) -> Any:
    return scale * gt.mean(gt.abs(y - predicted), axis=-1)


UNNAMED = {
    "object": (TopError(), "top_error"),
    "object with a name": (Named(), "worst"),
    "partial": (partial(scaled_error, scale=2.0), "scaled_error"),
    "partial of an object": (partial(TopError(2.0)), "top_error"),
    "lambda": (lambda y, p: scaled_error(y, p, 3.0), "<lambda>"),
}


@pytest.mark.parametrize("what", UNNAMED)
@pytest.mark.parametrize("argument", ["metrics", "weighted_metrics"])
def test_names_of_metrics_are_the_same_in_each_run(what: str, argument: str) -> None:
    metric, name = UNNAMED[what]
    x = np.ones((8, 2), "float32")
    options = {"loss": "mse", "verbose": False, argument: [metric]}
    run = gt.training.fit(gt.layers.Dense(2), (x, x), **options)
    assert list(run.history) == ["loss", name]
    measured = gt.training.metrics.MeanMetricWrapper(metric)
    assert measured.name == name.strip("<>")


def test_several_objects_of_a_class_are_metrics_with_numbers() -> None:
    x = np.ones((8, 2), "float32")
    given = [TopError(), TopError(2.0), partial(scaled_error, scale=2.0)]
    options = {"loss": "mse", "verbose": False, "metrics": given}
    run = gt.training.fit(gt.layers.Dense(2), (x, x), **options).history
    assert list(run) == ["loss", "top_error", "top_error_1", "scaled_error"]
    assert run["top_error_1"] == pytest.approx([2 * run["top_error"][0]])


class OwnStep(tf.keras.Sequential):
    def train_step(self, data: Any) -> Any:
        return super().train_step(data)


def test_models_with_their_own_steps_take_metrics_without_a_name() -> None:
    x = np.ones((8, 2), "float32")
    model = OwnStep([gt.layers.Dense(2)])
    model.compile("sgd", "mse", metrics=[lambda y, p: scaled_error(y, p, 2.0), TopError()])
    found = model.fit(x, x, verbose=0).history
    assert list(found) == ["loss", "lambda", "top_error"]
