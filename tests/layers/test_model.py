"""Models as graphs: ``Input`` and ``Model``."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gradcheck import check_gradients

import gradtape as gt
from gradtape import layers as L

RANDOM = np.random.default_rng(0)
A = RANDOM.standard_normal((6, 4)).astype("float32")
B = RANDOM.standard_normal((6, 3)).astype("float32")


@pytest.fixture
def net() -> Any:
    """Two inputs, two outputs, a layer that is called twice, ops between."""
    gt.random.set_seed(0)
    one, two = gt.Input((4,), name="one"), gt.Input((3,), name="two")
    shared = L.Dense(5, activation="relu", name="shared")
    h = shared(one)
    again = shared(L.Dense(4)(L.Concatenate()([h, two])))
    first = L.Dense(2, name="first")(again + h * 2.0)
    second = L.Dense(1, name="second")(L.Dropout(0.5, seed=1)(again))
    return gt.Model([one, two], {"first": first, "second": second}, name="net")


def test_a_model_computes_what_its_layers_do(net: Any) -> None:
    shared, concatenate, dense, first, dropout, second = net.layers
    h = shared(A)
    again = shared(dense(concatenate([h, gt.constant(B)])))
    y = net([A, B])
    np.testing.assert_array_equal(y["first"].numpy(), first(again + h * 2.0).numpy())
    np.testing.assert_array_equal(y["second"].numpy(), second(again).numpy())
    assert np.abs((net([A, B], training=True)["second"] - y["second"]).numpy()).max() > 1e-3
    assert not dropout.trainable_variables


def test_a_model_tells_what_it_is_made_of(net: Any) -> None:
    assert [layer.name for layer in net.layers] == [
        "shared", "concatenate", "dense", "first", "dropout", "second",
    ]  # fmt: skip
    assert net.input_shape == [(None, 4), (None, 3)]
    assert net.output_shape == {"first": (None, 2), "second": (None, 1)}
    assert net.get_layer("shared") is net.get_layer(index=0)
    assert len(net.trainable_variables) == 8  # a shared layer's once
    with pytest.raises(ValueError, match="model 'net' has no layer of name 'third'; it has: sha"):
        net.get_layer("third")
    with pytest.raises(ValueError, match="model 'net' has 6 layers, but no index 6"):
        net.get_layer(index=6)


def test_a_sequence_finds_its_layers_too() -> None:
    model = gt.layers.Sequential([gt.layers.Dense(3, name="hidden"), gt.layers.Dense(1)])
    assert model.get_layer("hidden") is model.get_layer(index=-2) is model.layers[0]
    with pytest.raises(ValueError, match="has no layer of name 'head'; it has: hidden, dense"):
        model.get_layer("head")


def test_inputs_come_by_place_or_by_name(net: Any) -> None:
    expected = net([A, B])["first"].numpy()
    np.testing.assert_array_equal(net({"two": B, "one": A})["first"].numpy(), expected)
    np.testing.assert_array_equal(net((A, B))["first"].numpy(), expected)


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        (A, "model 'net' has 2 inputs, got 1"),
        ([A, A], r"model 'net': expected placeholder two: \(\?, 3\) float32, got .* \(6, 4\)"),
        ({"one": A, "three": B}, r"model 'net' has inputs \['one', 'two'\], got a dictionary of"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(net: Any, inputs: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        net(inputs)


def test_gradients_of_two_orders_go_through_a_model() -> None:
    x = gt.Input((4,))
    net = gt.Model(x, L.Dense(2)(L.Dense(3, activation="tanh")(x)) ** 2)
    net(A)
    check_gradients(lambda x: gt.sum(net(x)), A[:2].astype("float64"), order=2)


@pytest.mark.parametrize("batch", [0, 1, 6])
def test_a_file_and_copies_compute_the_same(net: Any, batch: int, tmp_path: Path) -> None:
    inputs = [A[:batch], B[:batch]]
    expected = net([A, B])["first"].numpy()[:batch]
    gt.save(net, tmp_path / "net.h5")
    copies = [gt.load(tmp_path / "net.h5"), pickle.loads(pickle.dumps(net)), copy.deepcopy(net)]
    for other in copies:
        np.testing.assert_allclose(other(inputs)["first"].numpy(), expected, rtol=1e-5, atol=1e-6)
        assert len(other.trainable_variables) == 8
    for other in copies[1:]:
        other.layers[0].kernel.assign(np.zeros((4, 5)))
        assert net.layers[0].kernel.numpy().any()


def test_models_stand_in_models(net: Any, tmp_path: Path) -> None:
    one, two = gt.Input((4,)), gt.Input((3,))
    outer = gt.Model([one, two], L.Dense(3)(net([one, two])["first"]))
    assert outer.layers[0] is net
    assert outer([A, B]).shape == (6, 3)
    gt.save(outer, tmp_path / "outer.h5")
    expected = outer([A, B]).numpy()
    np.testing.assert_allclose(gt.load(tmp_path / "outer.h5")([A, B]).numpy(), expected, rtol=1e-5)


def test_a_model_runs_in_traces_and_batches(net: Any) -> None:
    expected = net([A, B])["first"].numpy()
    specs = [gt.TensorSpec([None, 4]), gt.TensorSpec([None, 3])]
    traced = gt.function(lambda a, b: net([a, b])["first"], input_signature=specs)
    np.testing.assert_allclose(traced(A, B).numpy(), expected, rtol=1e-5, atol=1e-6)
    batched = gt.vmap(lambda a, b: net([a, b])["first"])(A[:, None], B[:, None])
    np.testing.assert_allclose(batched.numpy()[:, 0], expected, rtol=1e-5, atol=1e-6)


def test_layers_of_several_results_and_arguments() -> None:
    x, mask = gt.Input((None, 2)), gt.Input((None,), dtype="bool")
    y, state = L.GRU(3, return_sequences=True, return_state=True)(x, mask=mask)
    net = gt.Model([x, mask], [y, state])
    data, seen = RANDOM.standard_normal((2, 5, 2)).astype("float32"), np.eye(2, 5) == 0
    expected = net.layers[0](data, mask=seen)
    for got, want in zip(net([data, seen]), expected, strict=True):
        np.testing.assert_array_equal(got.numpy(), want.numpy())


def test_ops_of_placeholders_are_part_of_a_model() -> None:
    x = gt.Input((4,))
    net = gt.Model(x, [x, gt.mean(gt.sin(x) ** 2, axis=1), x[:, 1:3], x * np.arange(4.0)])
    same, mean, part, product = net(A)
    np.testing.assert_array_equal(same.numpy(), A)
    np.testing.assert_allclose(mean.numpy(), (np.sin(A) ** 2).mean(1), rtol=1e-5)
    np.testing.assert_array_equal(part.numpy(), A[:, 1:3])
    np.testing.assert_allclose(product.numpy(), A * np.arange(4.0), rtol=1e-6)


@pytest.mark.parametrize(
    ("do", "error", "said"),
    [
        (
            float,
            gt.errors.TraceError,
            "a tensor's value is not known while a model is built from placeholders",
        ),
        (
            bool,
            gt.errors.TraceError,
            "a tensor's value is not known while a model is built from placeholders",
        ),
        (
            np.asarray,
            gt.errors.TraceError,
            "a tensor's value is not known while a model is built from placeholders",
        ),
        (lambda x: x * gt.Variable([1.0] * 4), gt.errors.TraceError, "put the variable into a lay"),
        (lambda x: gt.Model(x, A), TypeError, "outputs must come from Input, or from layers"),
        (lambda x: gt.Model(gt.Input((4,), name="z"), L.Dense(1)(x)), ValueError, "which is not a"),
        (lambda x: gt.Model([x, gt.Input((2,))], L.Dense(1)(x)), ValueError, "do not need placeh"),
        (lambda x: gt.Model(), TypeError, "give inputs and outputs, or write a subclass"),
        (lambda x: gt.Input((-1,)), ValueError, "Input: sizes are integers of at least 0, or None"),
        (lambda x: gt.Input(), ValueError, "Input: give the shape of an example"),
    ],
)
def test_what_no_model_can_do_is_refused(do: Any, error: Any, said: str) -> None:
    with pytest.raises(error, match=said):
        do(gt.Input((4,), name="x"))


def test_a_model_trains(net: Any) -> None:
    x = gt.Input((4,))
    model = gt.Model(x, L.Dense(1)(L.BatchNormalization()(L.Dense(8, activation="relu")(x))))
    y = (A @ np.ones((4, 1))).astype("float32")
    history = gt.training.fit(model, (A, y), loss="mse", epochs=30, verbose=False, seed=0)
    assert history.history["loss"][-1] < history.history["loss"][0]


def test_a_model_may_be_a_class() -> None:
    class Twice(gt.Model):
        def __init__(self) -> None:
            super().__init__()
            self.dense = L.Dense(4)

        def call(self, x: Any, training: bool = False) -> Any:
            return self.dense(self.dense(x))

    model = Twice()
    assert model(A).shape == (6, 4)
    assert len(model.trainable_variables) == 2


def test_the_list_of_the_layers_does_not_change_the_graph(net: Any) -> None:
    count, want = len(net.trainable_variables), net([A, B])["first"]
    with pytest.raises(TypeError, match="make another model"):
        net.layers.pop()
    with pytest.raises(TypeError, match="make another model"):
        net.layers[0] = L.Dense(7)
    copied = list(net.layers)
    copied.pop()
    assert type(net.layers[:1]) is list
    assert copy.copy(net.layers) == copied + net.layers[-1:]
    with pytest.raises(AttributeError, match="make another model"):
        net.layers = []
    np.testing.assert_array_equal(net([A, B])["first"], want)
    assert len(net.layers) == 6
    assert len(net.trainable_variables) == count


def test_the_list_of_a_class_is_its_own() -> None:
    class Own(L.Model):
        def __init__(self) -> None:
            super().__init__()
            self.layers = [L.Dense(3)]
            self.layers.append(L.Dense(2))

        def call(self, x: Any) -> Any:
            for layer in self.layers:
                x = layer(x)
            return x

    model = Own()
    assert model(A).shape == (6, 2)
    assert len(model.trainable_variables) == 4
