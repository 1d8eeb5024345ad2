"""Labels that a loss or a metric cannot mean are refused: all of them, wherever they come from."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape import training
from gradtape.training import losses, metrics

#: The losses that say which labels they take, and their ranges.
RANGES = {
    name: function.label_range
    for name in losses.__all__
    if hasattr(function := getattr(losses, name), "label_range")
}
BINARY_METRICS = {
    "AUC", "BinaryIoU", "F1Score", "FBetaScore", "FalseNegatives", "FalsePositives", "Precision",
    "PrecisionAtRecall", "Recall", "RecallAtPrecision", "SensitivityAtSpecificity",
    "SpecificityAtSensitivity", "TrueNegatives", "TruePositives",
}  # fmt: skip


def model() -> Any:
    return gt.layers.Sequential([gt.layers.Dense(2, activation="sigmoid")])


def labels(values: tuple[float, float], dtype: str) -> np.ndarray:
    return np.resize(np.array(values).astype(dtype), (4, 2))


def test_losses_of_classes_and_shares_have_ranges() -> None:
    of_numbers = {"huber", "log_cosh", "poisson", "cosine_similarity"}
    functions = {n for n in losses.__all__ if inspect.isfunction(getattr(losses, n))} - {"get"}
    others = {n for n in functions - {*RANGES} if not n.startswith(("mean_", "sparse_"))}
    assert others == of_numbers


@pytest.mark.parametrize("way", ["call", "compiled", "eager", "batches", "evaluate", "object"])
@pytest.mark.parametrize("name", sorted(RANGES))
def test_labels_out_of_the_range_of_a_loss_are_refused(name: str, way: str) -> None:
    low, high = RANGES[name]
    wrong = [labels((0, -2), "int8"), labels((0.5, -1.5), "float32")]
    if high < np.inf:
        wrong += [labels((0, 255), "uint8"), labels((0.0, 1.5), "float64")]
    x = np.ones((4, 3), "float32")
    function = getattr(losses, name)
    kind = next(c for c in map(losses.__dict__.get, losses.__all__) if of(c) is function)
    quiet: dict[str, Any] = {"epochs": 1, "verbose": 0}
    for y in wrong:
        run = {
            "call": lambda y=y: function(y, np.full(y.shape, 0.5)),
            "compiled": lambda y=y: training.fit(model(), (x, y), loss=name, compile=True, **quiet),
            "eager": lambda y=y: training.fit(model(), (x, y), loss=name, compile=False, **quiet),
            "batches": lambda y=y: training.fit(model(), [(x, y)], loss=name, **quiet),
            "evaluate": lambda y=y: training.evaluate(model(), (x, y), loss=name),
            "object": lambda y=y: training.fit(model(), (x, y), loss=kind(), **quiet),
        }[way]
        with pytest.raises(ValueError, match=rf"labels.* must be .*from {low:g}"):
            run()


def of(kind: Any) -> Any:
    """Return the function that a class of losses calls."""
    return getattr(kind, "function", None) if inspect.isclass(kind) else None


@pytest.mark.parametrize("name", sorted(RANGES))
def test_labels_at_the_ends_of_the_range_are_taken(name: str) -> None:
    low, high = RANGES[name]
    y = labels((low, min(high, 1.0) + 1e-6), "float32")
    dense = gt.layers.Dense(2)
    training.fit(dense, (np.ones((4, 3), "float32"), y), loss=name, epochs=1, verbose=0)
    assert np.isfinite(getattr(losses, name)(y, np.full(y.shape, 0.5, "float32")).numpy()).all()


def test_a_function_of_your_own_says_its_range() -> None:
    def loss(y_true: Any, y_pred: Any) -> Any:
        return gt.mean(gt.abs(y_true - y_pred), axis=-1)

    loss.label_range = (0, 10)
    data = np.ones((4, 3), "float32"), labels((0, 11), "uint8")
    with pytest.raises(ValueError, match="the labels of loss must be from 0 to 10, got 0 to 11"):
        training.fit(model(), data, loss=loss, epochs=1, verbose=0)


def made(name: str) -> Any:
    needs = {"AtRecall": 0.5, "AtPrecision": 0.5, "AtSpecificity": 0.5, "AtSensitivity": 0.5}
    given = [value for end, value in needs.items() if name.endswith(end)]
    return getattr(metrics, name)(*given)


def test_the_table_of_binary_metrics_is_complete() -> None:
    y, p = np.array([[0, 1], [1, 0]]), np.array([[0.2, 0.9], [0.7, 0.4]])
    found = set()
    for name in metrics.__all__:
        kind = getattr(metrics, name)
        if inspect.isclass(kind) and hasattr(kind, "take_logits"):
            made(name)(y, p)
            found.add(name)
    assert found == BINARY_METRICS


@pytest.mark.parametrize("bad", [-1.0, 0.9, 255.0, 2.0])
@pytest.mark.parametrize("name", sorted(BINARY_METRICS))
def test_a_binary_metric_refuses_other_labels(name: str, bad: float) -> None:
    y = np.array([[0.0, 1.0], [1.0, 0.0], [bad, 1.0]], "float32")
    p = np.array([[0.2, 0.9], [0.7, 0.4], [0.6, 0.3]], "float32")
    with pytest.raises(ValueError, match=r"0 or 1|a class is"):
        made(name)(y, p)
    metric = made(name)
    metric.update_state(y[:2], p[:2])  # it creates its sums
    step = gt.function(lambda y, p: metric.update_state(y, p))
    step(y, p)
    with pytest.raises(ValueError, match="labels"):
        metric.result()
    weighted = made(name)
    if name not in ("F1Score", "FBetaScore", "BinaryIoU"):
        weighted.update_state(y, p, np.array([[1, 1], [1, 1], [0, 1]], "float32"))
        assert np.isfinite(weighted.result().numpy()).all()


@pytest.mark.parametrize("compile", [True, False])
def test_a_metric_in_fit_refuses_other_labels(compile: bool) -> None:
    x, y = np.ones((4, 3), "float32"), labels((-1, 1), "int8")
    for metric in (metrics.AUC(), metrics.Precision(), metrics.F1Score()):
        with pytest.raises(ValueError, match="labels"):
            training.fit(
                model(),
                (x, y),
                loss="hinge",
                metrics=[metric],
                epochs=1,
                verbose=0,
                compile=compile,
            )
