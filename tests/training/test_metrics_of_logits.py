"""Metrics of probabilities under losses of logits, and counts in metrics that stay exact."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
import gradtape.compat.tensorflow as tf
from gradtape import training
from gradtape.training.losses.loss import kind_of

LOGITS = np.random.default_rng(0).normal(size=(400, 1)).astype("float32")
YES = (LOGITS + 0.3 * np.random.default_rng(1).normal(size=(400, 1)) > 0).astype("float32")
PROBABILITIES = 1.0 / (1.0 + np.exp(-LOGITS))
OF_PROBABILITIES: list[Callable[..., Any]] = [
    training.metrics.AUC,
    training.metrics.Precision,
    training.metrics.Recall,
    training.metrics.TruePositives,
    training.metrics.FalsePositives,
    training.metrics.TrueNegatives,
    training.metrics.FalseNegatives,
    training.metrics.BinaryIoU,
    functools.partial(training.metrics.F1Score, threshold=0.4, average="macro"),
    functools.partial(training.metrics.FBetaScore, threshold=0.4, average="micro"),
    functools.partial(training.metrics.SensitivityAtSpecificity, 0.5),
    functools.partial(training.metrics.SpecificityAtSensitivity, 0.5),
    functools.partial(training.metrics.PrecisionAtRecall, 0.5),
    functools.partial(training.metrics.RecallAtPrecision, 0.5),
]


def identity() -> Any:
    return gt.layers.Activation("linear")


@pytest.mark.parametrize("compile", [False, True])
@pytest.mark.parametrize("make", OF_PROBABILITIES)
def test_metrics_of_probabilities_follow_the_loss(make: Any, compile: bool) -> None:
    expected = np.ravel(make()(YES, PROBABILITIES).numpy())[0]
    metric, loss = make(), training.losses.BinaryCrossentropy
    for x, given in ((LOGITS, loss()), (PROBABILITIES, loss(from_logits=False))):
        shape = metric.result().shape
        options = {"loss": given, "metrics": [metric], "compile": compile}
        if shape == (1,):
            metric.reset_state()
            metric.meet_loss(kind_of(given))
            found = metric(YES, x).numpy()[0]
        else:
            found = training.evaluate(identity(), (x, YES), **options)[metric.name]
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    np.testing.assert_allclose(np.ravel(make(from_logits=True)(YES, LOGITS))[0], expected)


@pytest.mark.parametrize("make", OF_PROBABILITIES)
@pytest.mark.parametrize("wrong", [-0.5, 1.5, np.nan])
def test_predictions_that_are_no_probabilities_are_refused(make: Any, wrong: float) -> None:
    scores = np.array([[0.2], [wrong], [0.8]], "float32")
    metric = make()
    with pytest.raises(ValueError, match=f"{type(metric).__name__}.*from_logits=True"):
        metric.update_state([[0.0], [1.0], [1.0]], scores)
    metric.update_state([[0.0], [1.0], [1.0]], scores, [1.0, 0.0, 1.0])  # it does not count


def test_compiled_steps_refuse_them_too() -> None:
    x = np.full((400, 1), 0.5, "float32")
    x[300] = 3.0
    options: dict[str, Any] = {"loss": "mse", "metrics": ["AUC"], "batch_size": 4}
    with pytest.raises(ValueError, match=r"AUC.*from_logits=True"):
        training.evaluate(identity(), (x, YES), compile=True, **options)


@pytest.mark.parametrize("make", [*OF_PROBABILITIES, tf.keras.metrics.AUC, tf.keras.metrics.Recall])
def test_own_traced_steps_are_refused_by_the_result(make: Any) -> None:
    metric = make()

    @gt.function
    def step(y: Any, scores: Any) -> None:
        metric.update_state(y, scores)

    step(YES, PROBABILITIES)
    np.testing.assert_array_equal(metric.result(), make()(YES, PROBABILITIES))
    step(YES, LOGITS)
    with pytest.raises(ValueError, match=f"{type(metric).__name__}.*from_logits=True"):
        metric.result()
    metric.reset_state()
    step(YES, PROBABILITIES)
    assert not np.isnan(metric.result()).any()


@pytest.mark.parametrize("compile", [False, True])
def test_nan_among_weights_is_named(compile: bool) -> None:
    metric = training.metrics.Precision()

    def measure() -> Any:
        update = gt.function(metric.update_state) if compile else metric.update_state
        update(YES, PROBABILITIES, np.full(len(YES), np.nan))
        return metric.result()

    with pytest.raises(ValueError, match="sample_weight holds NaN"):
        measure()


def test_categorical_logits_become_probabilities_by_a_softmax() -> None:
    y = np.eye(3, dtype="float32")[np.arange(60) % 3]
    x = np.random.default_rng(0).normal(size=(60, 3)).astype("float32") + y
    p = np.exp(x) / np.exp(x).sum(-1, keepdims=True)
    found = training.evaluate(
        identity(), (x, y), loss="categorical_crossentropy", metrics=["Precision", "AUC"]
    )
    for kind in (training.metrics.Precision, training.metrics.AUC):
        metric = kind()
        assert found[metric.name] == pytest.approx(metric(y, p).item())


def test_an_argument_that_contradicts_the_loss_is_refused() -> None:
    with pytest.raises(ValueError, match=r"AUC: from_logits=False.*takes logits"):
        training.evaluate(
            identity(),
            (LOGITS, YES),
            loss="binary_crossentropy",
            metrics=[training.metrics.AUC(from_logits=False)],
        )


def test_thresholds_of_zero_compare_logits_as_they_are() -> None:
    metrics = [training.metrics.Precision(thresholds=0.0), training.metrics.BinaryAccuracy(0.0)]
    found = training.evaluate(
        identity(), (LOGITS, YES), loss="binary_crossentropy", metrics=metrics
    )
    hits = LOGITS > 0
    assert found["precision"] == pytest.approx(YES[hits].mean())
    assert found["binary_accuracy"] == pytest.approx((hits == YES).mean())


@pytest.mark.parametrize(
    "metric", ["binary_crossentropy", "BinaryCrossentropy", "BinaryAccuracy", "binary_accuracy"]
)
def test_crossentropies_and_accuracies_follow_the_loss(metric: str) -> None:
    loss = training.losses.BinaryCrossentropy
    found = []
    for x, given in ((LOGITS, loss()), (PROBABILITIES, loss(from_logits=False))):
        values = training.evaluate(identity(), (x, YES), loss=given, metrics=[metric])
        found.append([value for name, value in values.items() if name != "loss"])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-4)


def test_the_area_of_one_class_is_not_defined() -> None:
    auc = training.metrics.AUC
    assert np.isnan(auc()([1, 1, 1], [1, 0.5, 0.3]).item())
    assert np.isnan(auc()([0, 0], [1, 0.5]).item())
    assert np.isnan(auc(curve="PR")([0, 0], [1, 0.5]).item())
    assert auc(curve="PR")([1, 1], [1, 0.5]).item() == pytest.approx(1.0)


@pytest.mark.parametrize("compile", [False, True])
def test_counts_beyond_two_to_the_24_are_exact(compile: bool) -> None:
    big = 2.0**24
    mean, hits = training.metrics.Mean(), training.metrics.TruePositives()
    matrix = training.metrics.ConfusionMatrix(2)
    matrix([1], [1])
    mean.count.assign(big)
    hits.true_positives.assign([big])
    matrix.matrix.assign([[0.0, 0.0], [0.0, big]])

    def step(x: Any) -> None:
        mean.update_state(x)
        hits.update_state([1], x)
        matrix.update_state([1], [1])

    run = gt.function(step) if compile else step
    for _ in range(5):
        run(gt.constant(np.ones(1, "float32")))
    assert mean.count.item() == hits.result().item() == matrix.result()[1, 1].item() == big + 5
    assert training.metrics.Sum()(np.array([big + 1.0])).item() == big + 1.0


class Share(training.metrics.Metric):
    """A metric of one's own, with weights of the default dtype."""

    def __init__(self) -> None:
        super().__init__("share")
        self.seen = self.add_weight(name="seen")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        self.seen.assign_add(gt.sum(gt.ones_like(y_true)))


def test_own_metrics_count_exactly() -> None:
    metric = Share()
    metric.seen.assign(2.0**24)
    metric.update_state(np.ones(1, "float32"), None)
    assert metric.seen.item() == 2**24 + 1


def _ends(metric: Any, **_: Any) -> None:
    """A run that fails, as the loss takes logits but the metric probabilities."""
    if isinstance(metric, training.metrics.BinaryAccuracy):
        return  # it has no such argument
    metric.take_logits(False)
    with pytest.raises(ValueError, match="leave the argument out"):
        training.evaluate(identity(), (LOGITS, YES), loss="binary_crossentropy", metrics=[metric])
    metric.take_logits(None)


def _own_steps(metric: Any, **_: Any) -> None:
    class Stepping(tf.keras.Sequential):
        def train_step(self, data: Any) -> Any:
            return super().train_step(data)

    net = Stepping([gt.layers.Dense(1)])
    net.compile("sgd", gt.training.losses.BinaryCrossentropy(), metrics=[metric])
    net.fit(LOGITS, YES, verbose=0)


USES: dict[str, Callable[..., Any]] = {
    "evaluate": lambda metric, **given: training.evaluate(identity(), (LOGITS, YES), **given),
    "fit": lambda metric, **given: training.fit(
        gt.layers.Sequential([gt.layers.Dense(1)]), (LOGITS, YES), verbose=0, **given
    ),
    "own steps": _own_steps,
    "an error": _ends,
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("name", ["BinaryAccuracy", "Recall", "AUC"])
def test_a_metric_takes_probabilities_again_after_a_run(name: str, use: str) -> None:
    make = getattr(training.metrics, name)
    expected, metric = make()(YES, PROBABILITIES).item(), make()
    USES[use](metric, loss="binary_crossentropy", metrics=[metric])
    metric.reset_state()
    assert metric(YES, PROBABILITIES).item() == expected


def test_a_callback_may_evaluate_with_the_metrics_of_the_run() -> None:
    found = []
    for nested in (False, True):
        gt.random.set_seed(0)
        net, metric = gt.layers.Sequential([gt.layers.Dense(1)]), training.metrics.BinaryAccuracy()

        def other(
            epoch: int, logs: Any, net: Any = net, metric: Any = metric, nested: bool = nested
        ) -> None:
            if nested:
                training.evaluate(net, (LOGITS, YES), loss="mse", metrics=[metric])

        given: dict[str, Any] = {"loss": "binary_crossentropy", "metrics": [metric], "seed": 0}
        run = training.fit(net, (LOGITS, YES), epochs=3, verbose=0, callbacks=[other], **given)
        found.append(run.history["binary_accuracy"])
    assert found[0] == found[1]
