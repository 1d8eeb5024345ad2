"""Padding does not count in losses and metrics of a model whose output carries a mask."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape import layers, training

IDS = np.array([[1, 2, 0, 0], [3, 0, 0, 0], [4, 3, 2, 1], [0, 2, 0, 3], [1, 0, 0, 0]], "int32")
Y = np.array([[0, 1, 2, 0], [1, 1, 0, 2], [2, 2, 1, 0], [0, 0, 1, 1], [2, 0, 1, 2]], "int32")
W = np.array([[1, 2, 3, 4], [0.5, 1, 1, 1], [1, 0, 2, 1], [1, 1, 1, 3], [2, 1, 1, 1]], "float32")
#: What Keras 3 gives: after evaluate and after two epochs of fit, without and with weights.
KERAS = {
    (False, "evaluate"): {"loss": [1.1177978515625], "accuracy": [0.3], "weighted": [0.3]},
    (True, "evaluate"): {"loss": [1.53615975], "accuracy": [0.3], "weighted": [0.22222222]},
    # the metrics of its compiled training count padding, on JAX; those of its evaluate do not
    (False, "fit"): {"loss": [1.17696106, 1.2043277]},
    (True, "fit"): {"loss": [1.69195688, 1.80222452]},
}


def tagger(kind: str = "functional") -> Any:
    """Return a model of classes for each step, with the weights that Keras' had."""
    embed = layers.Embedding(5, 3, mask_zero=True)
    rest = [layers.SimpleRNN(4, return_sequences=True), layers.Dense(3, activation="softmax")]
    if kind == "sequential":
        model: Any = layers.Sequential([embed, *rest])
    else:
        ids = gt.Input((4,), dtype="int32")
        first = layers.Sequential([embed]) if kind == "nested" else embed
        x = first(ids)
        for layer in [layers.Sequential(rest)] if kind == "nested" else rest:
            x = layer(x)
        model = gt.Model(ids, x)
    model(IDS)
    for k, v in enumerate(v for layer in [embed, *rest] for v in layer.variables):
        n = int(np.prod(v.shape))
        v.assign((np.sin(np.arange(n) * 0.7 + k) * 0.5).reshape(v.shape).astype("float32"))
    return model


def options() -> dict[str, Any]:
    return {
        "loss": training.losses.SparseCategoricalCrossentropy(from_logits=False),
        "metrics": ["sparse_categorical_accuracy"],
        "weighted_metrics": [training.metrics.SparseCategoricalAccuracy("weighted")],
        "batch_size": 2,
    }


@pytest.mark.parametrize("compile", [False, True])
@pytest.mark.parametrize("kind", ["functional", "nested", "sequential"])
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("method", ["evaluate", "fit"])
def test_padding_counts_nowhere_as_in_keras(
    kind: str, weights: bool, method: str, compile: bool
) -> None:
    model = tagger(kind)
    data = (IDS, Y, W) if weights else (IDS, Y)
    # Keras weights the losses of batches by their examples, and gradtape by what they average over
    batches = [[x[i : i + 2] for x in data] for i in range(0, 5, 2)]
    sgd, found = training.SGD(0.5), {}
    for _ in range(2 if method == "fit" else 1):
        total = 0.0
        for batch in batches:
            if method == "fit":
                once = {"optimizer": sgd, "shuffle": False, "verbose": 0, "compile": compile}
                run = training.fit(model, tuple(batch), **once, **options()).history
                value = run["loss"][0]
                if not weights:
                    assert run["sparse_categorical_accuracy"] == pytest.approx(run["weighted"])
            else:
                value = training.evaluate(model, tuple(batch), **options())["loss"]
            total += value * len(batch[0]) / 5
        found.setdefault("loss", []).append(total)
    if method == "evaluate":
        values = training.evaluate(model, data, compile=compile, **options())
        found |= {name: [value] for name, value in values.items() if name != "loss"}
    expected = KERAS[weights, method]
    names = {"accuracy": "sparse_categorical_accuracy"}
    for name, value in expected.items():
        np.testing.assert_allclose(found[names.get(name, name)], value, rtol=2e-5, err_msg=name)


@pytest.mark.parametrize("compile", [False, True])
@pytest.mark.parametrize(
    "metric", ["accuracy", training.metrics.SparseTopKCategoricalAccuracy(1), training.accuracy]
)
def test_metrics_of_hits_are_weighted_where_there_is_padding(metric: Any, compile: bool) -> None:
    model, seen = tagger(), IDS != 0
    hits = training.predict(model, IDS).numpy().argmax(-1) == Y
    given = {"loss": options()["loss"], "metrics": [], "weighted_metrics": [metric]}
    for weights in (W, W[:, 0], W.astype("int64") + 1):
        found = training.evaluate(model, (IDS, Y, weights), compile=compile, batch_size=2, **given)
        share = weights[:, None] if weights.ndim == 1 else weights
        expected = (hits * share)[seen].sum() / (share * seen).sum()
        np.testing.assert_allclose(list(found.values())[1], expected, rtol=1e-6)


@pytest.mark.parametrize(
    "loss",
    [
        "mse",
        training.losses.MeanSquaredError(),
        training.losses.MeanSquaredError("none"),
        lambda y, p: gt.mean((y - p) ** 2, axis=-1),
        lambda y, p: (y - p) ** 2,
    ],
)
def test_whatever_the_loss_is_padding_does_not_count(loss: Any) -> None:
    model = layers.Sequential([layers.Embedding(5, 3, mask_zero=True), layers.Dense(2)])
    y = np.random.default_rng(0).normal(size=(5, 4, 2)).astype("float32")
    seen = IDS != 0
    expected = ((model(IDS).numpy() - y) ** 2)[seen].mean()
    found = training.evaluate(model, (IDS, y), loss=loss, metrics=["mse"], batch_size=5)
    np.testing.assert_allclose([found["loss"], found["mse"]], expected, rtol=1e-5)
    other = np.where(seen[..., None], y, 1e3).astype("float32")
    assert training.evaluate(model, (IDS, other), loss=loss, metrics=["mse"], batch_size=5) == found


@pytest.mark.parametrize("compile", [False, True])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_a_loss_that_overrides_its_call_is_the_same_for_every_batch_size(
    reduction: str, compile: bool
) -> None:
    class Called(training.losses.MeanSquaredError):
        def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
            return super().__call__(y_true, y_pred, sample_weight)

    class Fixed(training.losses.MeanSquaredError):
        def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
            super().__call__(y_true, y_pred)
            return gt.constant(3.0)

    data = (IDS, np.eye(3, dtype="float32")[Y])
    model = tagger()
    expected = training.evaluate(model, data, loss=training.losses.MeanSquaredError(reduction))
    for size in (1, 2, 5):
        given: dict[str, Any] = {"batch_size": size, "compile": compile}
        found = training.evaluate(model, data, loss=Called(reduction), **given)
        np.testing.assert_allclose(found["loss"], expected["loss"], rtol=1e-5)
        assert training.evaluate(model, data, loss=Fixed(), **given) == {"loss": 3.0}


def test_metrics_with_state_leave_padding_out() -> None:
    model = layers.Sequential(
        [layers.Embedding(5, 3, mask_zero=True), layers.Dense(1, activation="sigmoid")]
    )
    y = (np.arange(20).reshape(5, 4, 1) % 3 == 0).astype("float32")
    metrics = [training.metrics.Precision(), training.metrics.AUC()]
    loss = training.losses.BinaryCrossentropy(from_logits=False)
    found = training.evaluate(model, (IDS, y), loss=loss, metrics=metrics)
    seen = IDS != 0
    for metric in metrics:
        metric.reset_state()
        metric.update_state(y[seen], model(IDS).numpy()[seen])
        np.testing.assert_allclose(found[metric.name], float(metric.result()), rtol=1e-6)


def test_a_batch_of_padding_alone_counts_as_nothing() -> None:
    model = layers.Sequential([layers.Embedding(5, 3, mask_zero=True), layers.Dense(1)])
    data = (np.zeros((2, 3), "int32"), np.ones((2, 3, 1), "float32"))
    model(data[0])
    before = [v.numpy() for v in model.variables]
    run = training.fit(model, data, loss="mse", metrics=["mae"], optimizer="sgd", verbose=0)
    assert run.history == {"loss": [0.0], "mae": [0.0]}
    assert all(map(np.array_equal, [v.numpy() for v in model.variables], before))


def test_a_loss_object_in_a_loop_of_ones_own_sees_the_mask() -> None:
    model = layers.Sequential([layers.Embedding(5, 3, mask_zero=True), layers.Dense(2)])
    y = np.ones((5, 4, 2), "float32")
    out = model(IDS)
    expected = ((out.numpy() - y) ** 2)[IDS != 0].mean()
    assert training.losses.MeanSquaredError()(y, out).item() == pytest.approx(expected, rel=1e-5)
    metric = training.metrics.MeanSquaredError()
    assert metric(y, out).item() == pytest.approx(expected, rel=1e-5)
    alike = gt.constant(out.numpy())  # nothing is known of it
    assert training.losses.MeanSquaredError()(y, alike).item() != pytest.approx(expected)


def test_a_loss_of_one_number_says_that_padding_counts() -> None:
    model = layers.Sequential([layers.Embedding(5, 3, mask_zero=True), layers.Dense(2)])
    y = np.ones((5, 4, 2), "float32")
    with pytest.warns(UserWarning, match="padding counts unless the function leaves it out"):
        training.evaluate(model, (IDS, y), loss=lambda y, p: gt.mean((y - p) ** 2))


class Own(gt.layers.Layer):
    """A model with a call of its own, which hands no mask on."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self.inner = layers.Embedding(5, 3, mask_zero=True)

    def call(self, x: Any) -> Any:
        return gt.exp(self.inner(x))


def test_a_mask_that_does_not_reach_the_output_is_told(tmp_path: Any) -> None:
    y = np.ones((5, 4, 3), "float32")
    with pytest.warns(UserWarning, match="no mask reaches the model's output"):
        training.evaluate(Own(), (IDS, y), loss="mse")
    gt.save(tagger(), tmp_path / "a.h5")
    pooled = layers.Sequential([layers.Embedding(5, 3, mask_zero=True), layers.LSTM(2)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        training.evaluate(Own(), (IDS, y, (IDS != 0).astype("float32")), loss="mse")
        training.evaluate(pooled, (IDS, y[:, 0, :2]), loss="mse")
        training.evaluate(gt.load(tmp_path / "a.h5"), (IDS, Y), loss=options()["loss"])


def test_a_resumed_epoch_goes_on_with_what_did_not_count(tmp_path: Any) -> None:
    class Cut(Exception):
        pass

    class Cutting(training.Callback):
        def on_train_batch_end(self, batch: int, logs: dict[str, float]) -> None:
            if batch == 1:
                raise Cut

    def run(**more: Any) -> Any:
        more = {**options(), "optimizer": "sgd", "shuffle": False, "verbose": 0, **more}
        return training.fit(tagger(), (IDS, Y), **more)

    whole = run()
    keep = {"checkpoint": tmp_path / "run.h5", "save_every": 1}
    with pytest.raises(Cut):
        run(callbacks=[Cutting()], **keep)
    assert run(resume=True, **keep).history == whole.history
