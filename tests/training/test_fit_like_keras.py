"""Weights, metrics with state and several outputs in fit, beside what Keras 3 gave."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.extend import map_structure
from gradtape.layers import Add, Dense, Sequential, Subtract
from gradtape.training import SGD, evaluate, fit, losses, metrics

R = np.random.RandomState(0)
X = R.randn(12, 3).astype("float32")
C = R.randint(0, 3, 12)
Y = (X[:, 0] > 0).astype("float32")
T = R.randn(12, 2).astype("float32")
W = R.uniform(0.2, 2, 12).astype("float32")
K = (R.randn(3, 3) * 0.5).astype("float32")
K2 = (R.randn(3, 2) * 0.5).astype("float32")
K1 = (R.randn(3, 1) * 0.5).astype("float32")
TURNED = X[::-1].copy()

WEIGHTS = {
    "loss": [1.0995706, 1.0572926],
    "accuracy": [0.5, 0.5],
    "weighted": [0.5533275, 0.5533275],
    "val_loss": [1.0475806, 1.01149],
    "val_accuracy": [0.5, 0.5833333],
    "val_weighted": [0.5533275, 0.6500453],
}
CLASS_WEIGHT = {
    "loss": [1.6023358, 1.4769486],
    "accuracy": [0.5, 0.4166667],
    "weighted": [0.4615385, 0.4230769],
}
STATEFUL = {
    "loss": [0.7557986, 0.6499437],
    "auc": [0.35, 0.45],
    "precision": [0.875, 0.8888889],
    "recall": [0.7, 0.8],
    "val_loss": [0.5766575, 0.4994559],
    "val_auc": [np.nan, np.nan],  # labels of one class, for which Keras says 0
    "val_precision": [1.0, 1.0],
    "val_recall": [0.8571429, 0.8571429],
}
OUTPUTS = {
    "loss": [1.7267276, 1.4386319],
    "kind_loss": [1.2888278, 1.1666174],
    "place_loss": [1.4596667, 0.9067147],
    "kind_accuracy": [0.4166667, 0.3333333],
    "place_mae": [1.0174855, 0.8039724],
}
VALIDATED = {
    "val_loss": [1.8961583, 1.870441],
    "val_kind_loss": [1.7550715, 1.7333446],
    "val_place_loss": [0.4702897, 0.4569878],
    "val_kind_accuracy": [0.5, 0.5],
    "val_place_mae": [0.5596812, 0.5507432],
}

compiled = pytest.mark.parametrize("compile", [True, False])


def given(kernel: Any) -> Any:
    return lambda shape, dtype: gt.constant(kernel)


def dense(kernel: Any, **options: Any) -> Dense:
    return Dense(kernel.shape[1], kernel_initializer=given(kernel), **options)


def run(model: Any, data: Any, **options: Any) -> dict[str, list[float]]:
    settings = {"optimizer": SGD(0.1), "batch_size": 5, "epochs": 2, "shuffle": False}
    return fit(model, data, verbose=False, **{**settings, **options}).history


def assert_like(history: Any, expected: Any) -> None:
    assert list(history) == list(expected)
    for name, values in expected.items():
        np.testing.assert_allclose(history[name], values, rtol=2e-5, atol=1e-6, err_msg=name)


# -- weights ---------------------------------------------------------------------------------------


@compiled
@pytest.mark.parametrize("how", ["arrays", "batches", "column", "dataset"])
@pytest.mark.parametrize("loss", ["sparse_categorical_crossentropy", None])
def test_weights_of_examples(compile: bool, how: str, loss: Any) -> None:
    data: Any = (X, C, W)
    if how == "batches":
        data = [(X[i : i + 5], C[i : i + 5], W[i : i + 5]) for i in (0, 5, 10)]
    elif how == "column":
        data = (X, C, W[:, None])
    elif how == "dataset":
        data = gt.data.Dataset.from_tensor_slices((X, C, W)).batch(5)
    history = run(
        Sequential([dense(K)]),
        data,
        loss=loss or losses.SparseCategoricalCrossentropy(),
        metrics=["accuracy"],
        weighted_metrics=[metrics.SparseCategoricalAccuracy("weighted")],
        validation_data=(X, C, W),
        compile=compile,
    )
    assert_like(history, WEIGHTS)


@compiled
@pytest.mark.parametrize("labels", [C, np.eye(3, dtype="float32")[C], C[:, None]])
def test_weights_of_classes(compile: bool, labels: Any) -> None:
    hot = labels.shape == (12, 3)
    history = run(
        Sequential([dense(K)]),
        (X, labels),
        loss="categorical_crossentropy" if hot else "sparse_categorical_crossentropy",
        metrics=["accuracy"],
        weighted_metrics=[
            (metrics.CategoricalAccuracy if hot else metrics.SparseCategoricalAccuracy)("weighted")
        ],
        class_weight={0: 2.0, 2: 0.5},
        compile=compile,
    )
    assert_like(history, CLASS_WEIGHT)


def test_weights_of_classes_and_examples_are_multiplied() -> None:
    table = {0: 2.0, 2: 0.5}
    both = W * [table.get(c, 1.0) for c in C]
    one, two = Sequential([dense(K)]), Sequential([dense(K)])
    assert run(one, (X, C, W), class_weight=table)["loss"] == run(two, (X, C, both))["loss"]


@pytest.mark.parametrize("loss", ["mse", losses.MeanSquaredError(), losses.mean_squared_error])
@pytest.mark.parametrize("column", [True, False])
def test_weights_of_numbers_are_of_each_example(loss: Any, column: bool) -> None:
    found = evaluate(
        Sequential([dense(K1)]),
        (X, Y[:, None] if column else Y, W),
        loss=loss,
        metrics=[],
        weighted_metrics=["mae"],
    )
    errors = (X @ K1)[:, 0] - Y
    assert found["loss"] == pytest.approx((W * errors**2).mean(), rel=1e-5)
    expected = (W * abs(errors)).sum() / W.sum()
    assert found["mae"] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"class_weight": [1.0, 2.0]}, TypeError, "class_weight must be a dictionary of weights"),
        ({"class_weight": {"a": 1.0}}, ValueError, "non-negative integers"),
        (
            {"class_weight": {0: -1.0}},
            ValueError,
            "finite weights that are not negative, got 0: -1.0",
        ),
        ({"loss": lambda y, p: gt.mean(p)}, ValueError, "returns one number for a batch"),
        ({"metrics": [metrics.F1Score()]}, ValueError, "'f1_score' has .*, .*average="),
        ({"metrics": [metrics.Sum()]}, TypeError, "Sum is not a metric of labels"),
        ({"compile": "yes"}, ValueError, "compile is 'auto', True or False, got 'yes'"),
    ],
)
def test_weights_and_metrics_that_mean_nothing(options: Any, error: Any, message: str) -> None:
    hot = np.eye(3, dtype="float32")[C]
    with pytest.raises(error, match=message):
        run(Sequential([dense(K)]), (X, hot, W), **{"loss": "categorical_crossentropy", **options})


# -- metrics with state ----------------------------------------------------------------------------


@compiled
@pytest.mark.parametrize("named", [True, False])
def test_metrics_with_state_begin_anew_with_each_epoch(compile: bool, named: bool) -> None:
    auc = metrics.AUC()
    history = run(
        Sequential([dense(K1, activation="sigmoid")]),
        (X, Y[:, None]),
        loss=losses.BinaryCrossentropy(from_logits=False),
        metrics=["AUC", "Precision", "Recall"]
        if named
        else [auc, metrics.Precision(), metrics.Recall()],
        validation_data=(X[:7], Y[:7, None]),
        compile=compile,
    )
    assert_like(history, STATEFUL)
    if not named:
        assert auc.result().item() == pytest.approx(history["val_auc"][-1], nan_ok=True)


def test_a_run_resumed_within_an_epoch_has_the_state_of_its_metrics(tmp_path: Any) -> None:
    def net() -> Any:
        return Sequential([dense(K1, activation="sigmoid")])

    options = {
        "loss": losses.BinaryCrossentropy(from_logits=False),
        "checkpoint": tmp_path / "run.h5",
        "batch_size": 3,
    }
    whole = run(net(), (X, Y[:, None]), metrics=["AUC"], **options)

    class Stop(Exception):
        pass

    class Press:
        def on_train_batch_end(self, batch: int, logs: Any) -> None:
            if batch == 2:
                raise Stop

    (tmp_path / "run.h5").unlink()
    options["save_every"] = 2
    with pytest.raises(Stop):
        run(net(), (X, Y[:, None]), metrics=["AUC"], callbacks=[Press()], **options)
    resumed = run(net(), (X, Y[:, None]), metrics=["AUC"], resume=True, **options)
    assert resumed == whole


# -- several inputs and outputs --------------------------------------------------------------------


def two(as_dict: bool = False) -> gt.Model:
    a, b = gt.Input((3,), name="a"), gt.Input((3,), name="b")
    kind, place = dense(K, name="kind"), dense(K2, name="place")
    outputs = [kind(Add()([a, b])), place(Subtract()([a, b]))]
    if as_dict:
        return gt.Model([a, b], dict(zip(("kind", "place"), outputs)))
    return gt.Model([a, b], outputs)


@compiled
def test_several_inputs_and_outputs_in_lists(compile: bool) -> None:
    history = run(
        two(),
        ([X, TURNED], [C, T]),
        loss=["sparse_categorical_crossentropy", "mse"],
        loss_weights=[1.0, 0.3],
        metrics=[["accuracy"], ["mae"]],
        validation_data=([X, X], [C, T]),
        compile=compile,
    )
    assert_like(history, OUTPUTS | VALIDATED)


@compiled
@pytest.mark.parametrize("how", ["arrays", "batches", "dataset"])
@pytest.mark.parametrize("as_dict", [True, False])
def test_several_inputs_and_outputs_in_dictionaries(compile: bool, how: str, as_dict: bool) -> None:
    x = {"a": X, "b": TURNED}
    y: Any = {"kind": C, "place": T} if as_dict else [C, T]
    data: Any = (x, y)
    if how == "batches":
        data = [map_structure(lambda a, i=i: a[i : i + 5], data) for i in (0, 5, 10)]
    elif how == "dataset":
        data = gt.data.Dataset.from_tensor_slices((x, {"kind": C, "place": T})).batch(5)
        if not as_dict:
            data = data.map(lambda x, y: (x, (y["kind"], y["place"])))
    history = run(
        two(as_dict),
        data,
        loss={"kind": "sparse_categorical_crossentropy", "place": "mse"},
        loss_weights={"place": 0.3},
        metrics={"place": ["mae"], "kind": "accuracy"},
        compile=compile,
    )
    assert_like(history, OUTPUTS)


class Pair(gt.Module):
    """A model that does not say what it returns."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = dense(K), dense(K)

    def __call__(self, x: Any) -> Any:
        return self.one(x), self.two(x)


@pytest.mark.parametrize("batches", [True, False])
def test_labels_tell_of_several_outputs(batches: bool) -> None:
    data: Any = (X, [C, C])
    history = run(Pair(), [data] if batches else data, batch_size=12)
    names = [f"output_{i}_{value}" for value in ("loss", "accuracy") for i in (0, 1)]
    assert list(history) == ["loss", *names]
    assert history["loss"][0] == pytest.approx(2 * history["output_0_loss"][0], rel=1e-6)


def test_weights_of_examples_may_differ_by_output() -> None:
    loss = {"kind": "sparse_categorical_crossentropy", "place": "mse"}
    y = {"kind": C, "place": T}
    ones = np.ones(12, "float32")
    found = evaluate(two(True), ([X, X], y, {"kind": W, "place": ones}), loss=loss)
    assert found["place_loss"] == evaluate(two(True), ([X, X], y), loss=loss)["place_loss"]
    assert found["kind_loss"] == evaluate(two(True), ([X, X], y, W), loss=loss)["kind_loss"]


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        ([C, T], {"loss": ["mse"]}, r"loss has 1 entries for 2 outputs; give one for each \(kind,"),
        (
            [C, T],
            {"loss": {"sort": "mse"}},
            "loss has 'sort', which is not an output; there are kind,",
        ),
        ([C], {"loss": "mse"}, "y is a list of 1, but the outputs are kind, place"),
        (C, {"loss": "mse"}, "data: y is one tensor, but the outputs are kind, place"),
        ([C, T], {"loss_weights": [1.0, "a"]}, "loss_weights must be finite numbers, got 'a'"),
        ([C, T], {"metrics": ["mae"]}, r"metrics has 1 entries for 2 outputs"),
        ([C, T], {"metrics": "mae"}, r"metrics for 2 outputs must be a dictionary"),
        ([C, T], {"class_weight": {0: 2.0}}, "class_weight is for one output"),
    ],
)
def test_several_outputs_that_do_not_fit(data: Any, options: Any, message: str) -> None:
    settings = {"loss": ["sparse_categorical_crossentropy", "mse"], **options}
    with pytest.raises(ValueError, match=message):
        run(two(), ([X, X], data), **settings)


def test_a_list_of_arrays_may_be_one_array_of_examples() -> None:
    whole = run(Sequential([dense(K)]), (X, C))
    assert run(Sequential([dense(K)]), (list(X), list(C))) == whole


def test_a_metric_with_and_without_weights_has_keras_names() -> None:
    model = Sequential([Dense(3)])
    both: dict[str, Any] = {"metrics": ["accuracy"], "weighted_metrics": ["accuracy"]}
    history = fit(model, (X, C, W), verbose=0, compile=False, optimizer=SGD(0.0), **both).history
    assert list(history) == ["loss", "accuracy", "weighted_accuracy"]
    right = model(X).numpy().argmax(1) == C
    assert history["accuracy"] == pytest.approx([right.mean()])
    assert history["weighted_accuracy"] == pytest.approx([(right * W).sum() / W.sum()])

    place = gt.Input((3,))
    two = gt.Model(place, {"a": Dense(1)(place), "b": Dense(3)(place)})
    told: dict[str, Any] = {key: {"b": value} for key, value in both.items()}
    measured = evaluate(two, (X, {"b": C}), loss={"b": "sparse_categorical_crossentropy"}, **told)
    assert list(measured)[-2:] == ["b_accuracy", "b_weighted_accuracy"]
