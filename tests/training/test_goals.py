"""What is minimised and measured: labels that are not there, outputs by name, shares of losses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape import layers, training

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(12, 3)).astype("float32")
Y = {"a": X @ np.ones((3, 2), "float32"), "b": X[:, :1]}
QUIET: dict[str, Any] = {"optimizer": "sgd", "verbose": 0, "shuffle": False, "epochs": 2}


class Squeezed(layers.Layer):
    """Wants its output to be small."""

    def call(self, x: Any) -> Any:
        self.add_loss(gt.mean(x**2))
        return x


def two_outputs(kind: type = dict) -> Any:
    x = gt.Input((3,), name="x")
    a, b = layers.Dense(2, name="a")(x), layers.Dense(1, name="b")(x)
    model = gt.Model(x, {"a": a, "b": b} if kind is dict else kind([a, b]))
    for i, v in enumerate(model.variables):
        v.assign(np.full(v.shape, 0.1 * (i + 1), "float32"))
    return model


@pytest.mark.parametrize("compile", [False, True])
@pytest.mark.parametrize(
    "data", [(X, None), [(X,)] * 3, [(X, None)] * 3, gt.data.Dataset([(X,)] * 3)]
)
def test_what_layers_add_is_minimised_without_labels(data: Any, compile: bool) -> None:
    model = layers.Sequential([layers.Dense(2), Squeezed()])
    run = training.fit(model, data, loss=None, compile=compile, validation_data=(X, None), **QUIET)
    assert list(run.history) == ["loss", "val_loss"]
    assert run.history["loss"][1] < run.history["loss"][0]
    found = training.evaluate(model, (X, None), loss=None, batch_size=12)
    assert found["loss"] == pytest.approx(float(np.mean(model(X).numpy() ** 2)), rel=1e-5)


@pytest.mark.parametrize(
    ("data", "options"),
    [((X, None), {}), ([(X,)], {"loss": "mse"}), ((X, None), {"loss": None, "metrics": ["mse"]})],
)
def test_labels_that_are_needed_are_asked_for(data: Any, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="there are no labels, but loss= or metrics= needs them"):
        training.fit(layers.Sequential([layers.Dense(2)]), data, verbose=0, **options)


def test_without_a_loss_there_has_to_be_another() -> None:
    with pytest.raises(ValueError, match="there is no loss: give loss="):
        training.fit(layers.Sequential([layers.Dense(2)]), (X, None), loss=None, verbose=0)


@pytest.mark.parametrize("kind", [dict, list, tuple])
@pytest.mark.parametrize(
    ("y", "loss"),
    [
        ({"a": Y["a"]}, {"a": "mse"}),
        ({"a": Y["a"], "b": None}, {"a": "mse"}),
        (Y, {"a": "mse", "b": None}),
        ([Y["a"]], {"a": "mse"}),
    ],
)
def test_an_output_without_a_loss_needs_no_labels(kind: type, y: Any, loss: Any) -> None:
    if kind is dict and isinstance(y, list):
        pytest.skip("labels in a list are for outputs in a list")
    model = two_outputs(kind)
    kept = model.get_layer("b").kernel.numpy()
    run = training.fit(model, (X, y), loss=loss, **{**QUIET, "optimizer": "adam"})
    assert np.array_equal(model.get_layer("b").kernel.numpy(), kept)
    alone = gt.Model(model.inputs, model.get_layer("a")(model.inputs))
    assert list(run.history) == ["loss", "a_loss"]
    assert training.evaluate(alone, (X, Y["a"]), loss="mse")["loss"] < run.history["loss"][0]


@pytest.mark.parametrize("kind", [dict, list, tuple])
@pytest.mark.parametrize("compile", [False, True])
def test_outputs_have_losses_metrics_shares_and_weights_by_name(kind: type, compile: bool) -> None:
    model = two_outputs(kind)
    predicted = {name: model.get_layer(name)(X).numpy() for name in "ab"}
    w = np.arange(12, dtype="float32")
    found = training.evaluate(
        model,
        (X, Y, {"b": w}),
        loss={"a": "mse", "b": "mae"},
        loss_weights={"a": 0.5, "b": 2.0},
        metrics={"b": ["mse"]},
        weighted_metrics={"b": ["mae"]},
        batch_size=12,
        compile=compile,
    )
    far = {name: np.abs(predicted[name] - Y[name]) for name in "ab"}
    a, b = np.mean(far["a"] ** 2), np.mean(far["b"][:, 0] * w)
    expected = {
        "loss": 0.5 * a + 2 * b,
        "a_loss": a,
        "b_loss": b,
        "b_mse": np.mean(far["b"] ** 2),
        "b_mae": (far["b"][:, 0] * w).sum() / w.sum(),
    }
    assert found == pytest.approx(expected, rel=1e-5)


def test_the_only_output_may_be_named() -> None:
    x = gt.Input((3,))
    model = gt.Model(x, layers.Dense(2, name="a")(x))
    found = training.evaluate(model, (X, Y["a"]), loss={"a": "mse"}, metrics={"a": ["mae"]})
    assert found == training.evaluate(model, (X, Y["a"]), loss="mse", metrics=["mae"])


def test_labels_of_an_output_that_is_measured_are_asked_for() -> None:
    with pytest.raises(ValueError, match=r"y has \['a'\], but the outputs are a, b"):
        training.fit(two_outputs(), (X, {"a": Y["a"]}), loss="mse", verbose=0)
    with pytest.raises(ValueError, match=r"but the outputs are a, b"):
        training.fit(two_outputs(), (X, {**Y, "c": Y["a"]}), loss="mse", verbose=0)


ONES = np.ones(12, "float32")


@pytest.mark.parametrize(
    ("kind", "weight", "told"),
    [
        (dict, {"aa": ONES}, r"sample_weight has \['aa'\], but the outputs are a, b"),
        (list, {"a": ONES, "bb": ONES}, "sample_weight has .* but the outputs are a, b"),
        (list, [ONES], "sample_weight is a list of 1, but the outputs are a, b"),
        (list, [ONES, ONES, ONES], "sample_weight is a list of 3, but the outputs are a, b"),
        (dict, [ONES, ONES], "sample_weight is a list of 2, but the outputs are a, b"),
    ],
)
@pytest.mark.parametrize("batches", [False, True])
def test_weights_of_other_outputs_are_refused(
    kind: type, weight: Any, told: str, batches: bool
) -> None:
    data: Any = (X, Y, weight)
    for run in (training.fit, training.evaluate):
        with pytest.raises(ValueError, match=told):
            run(two_outputs(kind), [data] if batches else data, loss="mse")


def test_weights_in_a_dictionary_for_a_model_of_one_output_are_refused() -> None:
    model = layers.Sequential([layers.Dense(1)])
    with pytest.raises(ValueError, match="dict of 1, but there is one output; give one array"):
        training.evaluate(model, (X, Y["b"], {"b": ONES}), loss="mse")


@pytest.mark.parametrize("kind", [dict, list])
def test_an_output_may_be_without_weights_or_loss(kind: type) -> None:
    model, half = two_outputs(kind), 0.5 * ONES
    plain = training.evaluate(model, (X, Y), loss="mse")
    for weight in ({"a": half}, {"a": half, "b": None}):
        found = training.evaluate(model, (X, Y, weight), loss="mse")
        assert found["a_loss"] == pytest.approx(plain["a_loss"] / 2)
        assert found["b_loss"] == pytest.approx(plain["b_loss"])
    loss = {"b": "mse"}
    found = training.evaluate(model, (X, [Y["b"]], [half]), loss=loss)
    assert found["b_loss"] == pytest.approx(plain["b_loss"] / 2)


def test_one_metric_object_for_several_outputs_is_refused() -> None:
    metric = training.metrics.MeanAbsoluteError()
    for given in ([[metric], [metric]], {"a": metric, "b": [metric]}):
        with pytest.raises(ValueError, match=r"one metric object.*: MeanAbsoluteError\(\.\.\.\)"):
            training.fit(two_outputs(list), (X, Y), loss="mse", metrics=given)
    own = {name: training.metrics.MeanAbsoluteError() for name in "ab"}
    found = training.evaluate(two_outputs(list), (X, Y), loss="mse", metrics=own)
    assert found["a_mean_absolute_error"] != found["b_mean_absolute_error"]
