"""``Lambda``: functions as layers, saved as graphs."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fresh_process import probe_isolated

import gradtape as gt
from gradtape import layers as L

X = np.random.default_rng(0).standard_normal((3, 5, 4)).astype("float32")


def swish(x: Any, beta: Any = 1.0) -> Any:
    return x * gt.nn.sigmoid(beta * x)


def of_two() -> Any:
    one, two = gt.Input((5, 4)), gt.Input((5, 4))
    return gt.Model([one, two], L.Dense(2)(L.Lambda(lambda both: both[0] * both[1])([one, two])))


def of_one(layer: Any) -> Any:
    x = gt.Input((None, 4))
    return gt.Model(x, layer(L.Dense(3)(x)))


MODELS = {
    "in a row": lambda: L.Sequential([L.Dense(3), L.Lambda(swish, arguments={"beta": 2.0})]),
    "in a graph": lambda: of_one(L.Lambda(lambda x: gt.sum(swish(x), axis=1), output_shape=(3,))),
    "of sizes": lambda: of_one(
        L.Lambda(lambda x: gt.reshape(x, (x.shape[0], x.shape[1] * x.shape[2])))
    ),
    "of several": of_two,
    "at each step": lambda: L.TimeDistributed(L.Lambda(swish)),
    "a function in a graph": lambda: of_one(lambda x: swish(x, 2.0)),
    "an op in a graph": lambda: of_one(gt.sin),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_file_has_what_the_function_computes(name: str, tmp_path: Path) -> None:
    net = MODELS[name]()
    given: Any = [X, X] if name == "of several" else X
    y = net(given).numpy()
    gt.save(net, tmp_path / "a.h5")
    again = gt.load(tmp_path / "a.h5")
    np.testing.assert_allclose(again(given).numpy(), y, rtol=1e-6)
    for batch in (0, 1, 2):
        part = [x[:batch] for x in given] if name == "of several" else X[:batch]
        np.testing.assert_allclose(again(part).numpy(), y[:batch], rtol=1e-5, atol=1e-6)
    slopes = []
    for model in (net, again):
        with gt.GradientTape() as tape:
            loss = gt.sum(model(given, training=True) ** 2)
        slopes.append(tape.gradient(loss, list(model.trainable_variables)))
    for one, two in zip(*slopes, strict=True):
        np.testing.assert_allclose(one.numpy(), two.numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(copy.deepcopy(net)(given).numpy(), y)


def test_a_process_without_the_function_runs_the_file(tmp_path: Path) -> None:
    net = L.Sequential([L.Lambda(swish)])
    net(X)
    gt.save(net, tmp_path / "a.h5")
    (found,) = probe_isolated(tmp_path / "a.h5", [("__call__", [X], {})])
    np.testing.assert_array_equal(found[0], net(X).numpy())


def test_a_function_hears_of_training_and_masks(tmp_path: Path) -> None:
    net = L.Sequential([L.Lambda(lambda x, training: x * 2.0 if training else x)])
    net(X)
    gt.save(net, tmp_path / "a.h5")
    for model in (net, gt.load(tmp_path / "a.h5")):
        np.testing.assert_array_equal(model(X, training=True).numpy(), X * 2)
        np.testing.assert_array_equal(model(X).numpy(), X)


@pytest.mark.parametrize(
    "make",
    [
        lambda w: L.Lambda(lambda x: x * w),
        lambda w: L.Lambda(L.Dense(3)),
        lambda w: L.Sequential([L.Lambda(lambda x: x * w)]),
        lambda w: of_one(L.Lambda(lambda x: x * w)),
        lambda w: gt.function(L.Lambda(lambda x: x * w)),
    ],
)
def test_a_variable_that_would_not_train_is_refused(make: Any) -> None:
    w = gt.Variable(2.0, name="w")
    with pytest.raises(ValueError, match=r"layer 'lambda' \(Lambda\): its function uses the vari"):
        make(w)(X)


def test_a_configuration_makes_the_layer_again() -> None:
    layer = L.Lambda(swish, arguments={"beta": 3.0}, name="swish")
    again = L.Lambda.from_config(layer.get_config())
    assert again.name == "swish"
    np.testing.assert_array_equal(again(X).numpy(), layer(X).numpy())
    with pytest.raises(TypeError, match="Lambda: expected a function, got 3"):
        L.Lambda(3)
