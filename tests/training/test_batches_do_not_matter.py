"""Losses and metrics of ``evaluate`` are the same for every size of the batches."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape import layers, training
from gradtape.training import losses

STEPS = [0, 1, 6, 2, 0, 0, 3]  # batches of size 1 and 2 include some of padding only
RNG = np.random.default_rng(0)
X = np.where(np.arange(6) < np.array(STEPS)[:, None], 1.0, 0.0)[..., None]
X = (X * RNG.normal(size=(7, 6, 2))).astype("float32")
NUMBERS = RNG.normal(size=(7, 6, 3)).astype("float32")
CLASSES = np.where(RNG.random((7, 6)) < 0.4, -1, RNG.integers(0, 3, (7, 6)))
WEIGHTS = {
    "none": None,
    "examples": RNG.random(7).astype("float32"),
    "steps": RNG.random((7, 6)).astype("float32"),
}


class Fourth(losses.Loss):
    def call(self, y_true: Any, y_pred: Any) -> Any:
        return gt.mean((y_true - y_pred) ** 4, axis=-1)


class Doubled(losses.MeanSquaredError):
    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        return 2.0 * super().__call__(y_true, y_pred, sample_weight)


def squared(y_true: Any, y_pred: Any) -> Any:
    return (y_true - y_pred) ** 2


def of_batch(y_true: Any, y_pred: Any) -> Any:
    return gt.mean((y_true - y_pred) ** 2)


REDUCTIONS = ("sum_over_batch_size", "mean", "sum", "none", None)
LOSSES: list[tuple[Any, Any]] = [
    ("mse", NUMBERS),
    (squared, NUMBERS),
    *((losses.Huber(reduction=x), NUMBERS) for x in REDUCTIONS),
    *((Fourth(x), NUMBERS) for x in REDUCTIONS),
    *((losses.SparseCategoricalCrossentropy(True, -1, x), CLASSES) for x in REDUCTIONS),
    (functools.partial(losses.sparse_categorical_crossentropy, ignore_class=-1), CLASSES),
]


def model(masked: bool) -> Any:
    rules: Any = {"kernel_regularizer": "l2", "activity_regularizer": "l1"}
    start = [layers.Masking(0.0)] if masked else []
    found = layers.Sequential([*start, layers.Dense(3, **rules)])
    found(X)
    return found


def values(net: Any, data: Any, size: int, **goals: Any) -> dict[str, float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a mask that does not fit the loss
        return training.evaluate(net, data, batch_size=size, **goals)


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("case", range(len(LOSSES)))
def test_every_loss_is_that_of_one_batch(case: int, masked: bool, weights: str) -> None:
    loss, y = LOSSES[case]
    net, weight = model(masked), WEIGHTS[weights]
    data = (X, y) if weight is None else (X, y, weight)
    metrics = ["accuracy"] if y is CLASSES else ["mse", training.metrics.MeanAbsoluteError()]
    goals = {"loss": loss, "metrics": metrics, "weighted_metrics": metrics[:1]}
    if y is not CLASSES:
        goals["weighted_metrics"] = [training.metrics.MeanSquaredError("weighted")]
    else:
        goals["weighted_metrics"] = [training.metrics.SparseCategoricalAccuracy("weighted")]
    expected = values(net, data, 7, **goals)
    for size in (1, 2, 3):
        assert values(net, data, size, **goals) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("loss", [of_batch, Doubled()])
def test_numbers_for_a_whole_batch_count_by_examples(loss: Any) -> None:
    net = model(masked=False)
    expected = values(net, (X, NUMBERS), 7, loss=loss)
    assert values(net, (X, NUMBERS), 2, loss=loss) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("shares", [None, [0.5, 2.0]])
def test_each_output_counts_its_own_values(shares: Any) -> None:
    given = gt.Input((6, 2))
    masked = layers.Masking(0.0)(given)
    outputs = [layers.Dense(3, name="a")(masked), layers.Dense(3, name="b")(given)]
    net = gt.Model(given, outputs)
    net(X)
    sizes = [1, 2, 3]
    for kinds in (["mse", "mae"], [losses.MeanSquaredError("sum"), losses.Huber()]):
        goals = {"loss": kinds, "loss_weights": shares, "metrics": [["mse"], ["mse"]]}
        expected = values(net, (X, [NUMBERS, NUMBERS]), 7, **goals)
        assert len(expected) == 5
        for size in sizes:
            found = values(net, (X, [NUMBERS, NUMBERS]), size, **goals)
            assert found == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("compile", [False, True])
def test_fit_and_its_validation_do_not_depend_on_the_size(compile: bool) -> None:
    net = model(masked=True)
    run = training.fit(
        net,
        (X, NUMBERS),
        loss="mse",
        optimizer=training.SGD(0.0),
        batch_size=2,
        validation_data=(X[:5], NUMBERS[:5]),
        validation_batch_size=3,
        verbose=0,
        compile=compile,
    )
    whole = values(net, (X, NUMBERS), 7, loss="mse")["loss"]
    held_out = values(net, (X[:5], NUMBERS[:5]), 5, loss="mse")["loss"]
    assert run.history["loss"][0] == pytest.approx(whole, rel=1e-5)
    assert run.history["val_loss"][0] == pytest.approx(held_out, rel=1e-5)


def test_an_ignored_class_and_padding_both_do_not_count() -> None:
    net = model(masked=True)
    loss = losses.SparseCategoricalCrossentropy(ignore_class=-1)
    counts = (CLASSES >= 0) & (X != 0).any(-1)
    each = losses.sparse_categorical_crossentropy(np.maximum(CLASSES, 0), net(X)).numpy()
    assert loss(CLASSES, net(X)).item() == pytest.approx(each[counts].mean(), rel=1e-5)


def test_a_sum_is_the_sum_of_all_batches() -> None:
    net = model(masked=False)
    loss = losses.MeanSquaredError("sum")
    penalty = values(net, (X, NUMBERS), 7, loss=loss)["loss"] - loss(NUMBERS, net(X)).item()
    found = values(net, (X, NUMBERS), 2, loss=loss)["loss"]
    assert found == pytest.approx(loss(NUMBERS, net(X)).item() + penalty, rel=1e-5)
