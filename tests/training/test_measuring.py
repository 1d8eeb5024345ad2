"""``evaluate`` and ``predict``, and validation in ``fit``: how many batches, and compiled."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape import layers, training

X = np.random.default_rng(0).normal(size=(20, 3)).astype("float32")
Y = X @ np.ones((3, 2), "float32")
FORMS = {
    "arrays": lambda: (X, Y),
    "batches": lambda: [(X[i : i + 4], Y[i : i + 4]) for i in range(0, 20, 4)],
    "dataset": lambda: gt.data.Dataset.from_tensor_slices((X, Y)).batch(4),
    "generator": lambda: ((X[i : i + 4], Y[i : i + 4]) for i in range(0, 20, 4)),
}


def net() -> Any:
    model = layers.Sequential([layers.Dense(2, kernel_initializer="ones"), layers.Dropout(0.5)])
    model(X)
    return model


@pytest.mark.parametrize("form", FORMS)
def test_a_number_of_steps_takes_the_first_batches(form: str) -> None:
    model, make = net(), FORMS[form]
    found = training.evaluate(model, make(), loss="mse", batch_size=4, steps=2)
    assert found == training.evaluate(model, (X[:8], Y[:8]), loss="mse", batch_size=4)
    inputs = X if form == "arrays" else (x for x, _ in make()) if form == "generator" else make()
    if form != "batches":  # in a list they are several inputs
        out = training.predict(model, inputs, batch_size=4, steps=3)
        np.testing.assert_array_equal(out.numpy(), model(X[:12]).numpy())
    with pytest.raises(ValueError, match="5 batches, fewer than 6 steps"):
        training.evaluate(model, make(), loss="mse", batch_size=4, steps=6)


@pytest.mark.parametrize("form", ["arrays", "batches", "dataset"])
def test_validation_on_some_batches_begins_anew_each_time(form: str) -> None:
    model = net()
    run = training.fit(
        model,
        (X, Y),
        loss="mse",
        optimizer=training.SGD(0.0),
        epochs=3,
        verbose=0,
        validation_data=FORMS[form](),
        validation_steps=2,
        validation_batch_size=4,
    )
    expected = training.evaluate(model, (X[:8], Y[:8]), loss="mse", batch_size=4)["loss"]
    assert run.history["val_loss"] == [expected] * 3


def test_batches_of_validation_have_a_size_of_their_own() -> None:
    sizes: list[int] = []

    class Seen(layers.Layer):
        def call(self, x: Any, training: bool = False) -> Any:
            if not training:
                sizes.append(len(x))
            return x

    model = layers.Sequential([Seen(), layers.Dense(2)])
    options: dict[str, Any] = {"loss": "mse", "verbose": 0, "compile": False}
    training.fit(model, (X, Y), validation_split=0.5, validation_batch_size=5, **options)
    assert sizes[-2:] == [5, 5]
    training.fit(model, (X, Y), validation_data=(X, Y), validation_batch_size=20, **options)
    assert sizes[-1] == 20


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"validation_steps": 2}, "validation_steps needs validation_data"),
        ({"validation_steps": 0, "validation_split": 0.5}, "validation_steps must be a positive"),
        ({"validation_steps": 9, "validation_split": 0.5}, "1 batches, fewer than 9 steps"),
        ({"validation_batch_size": 0, "validation_split": 0.5}, "validation_batch_size must be"),
    ],
)
def test_settings_of_validation_that_mean_nothing(options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        training.fit(net(), (X, Y), loss="mse", verbose=0, **options)


@pytest.mark.parametrize("compile", [True, "auto", False])
def test_compiled_values_are_those_of_python(compile: Any) -> None:
    model = net()
    x, y = np.repeat(X, 20, 0), np.repeat(Y, 20, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = training.evaluate(model, (x, y), loss="mse", batch_size=4, compile=compile)
        out = training.predict(model, x, batch_size=4, compile=compile)
    expected = training.evaluate(model, (x, y), loss="mse", batch_size=4, compile=False)
    assert found == pytest.approx(expected, rel=1e-6)
    np.testing.assert_allclose(out.numpy(), model(x).numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("structure", ["list", "dict", "tuple"])
def test_compiled_predictions_keep_their_structure(structure: str) -> None:
    x = gt.Input((3,))
    a, b = layers.Dense(2)(x), layers.Dense(1)(x)
    kinds: dict[str, Any] = {"list": [a, b], "dict": {"b": b, "a": a}, "tuple": (a, b)}
    model = gt.Model(x, kinds[structure])
    found, expected = training.predict(model, X, batch_size=4, compile=True), model(X)
    assert type(found) is type(expected)
    flat = list(found.items() if structure == "dict" else enumerate(found))
    for key, value in flat:
        np.testing.assert_allclose(value.numpy(), expected[key].numpy(), rtol=1e-5, atol=1e-6)


def test_steps_that_cannot_be_traced_run_in_python_and_say_so_once() -> None:
    class Reading(layers.Layer):
        def call(self, x: Any) -> Any:
            return x * float(gt.sum(x)) if float(gt.sum(x)) > 1e9 else x

    model = layers.Sequential([Reading()])
    x = np.repeat(X, 20, 0)
    with pytest.warns(UserWarning, match="the prediction step cannot be compiled") as told:
        out = training.predict(model, x, batch_size=4)
    assert len(told) == 1
    np.testing.assert_array_equal(out.numpy(), x)
    with pytest.warns(UserWarning, match="the validation step cannot be compiled") as told:
        training.evaluate(model, (x, x), loss="mse", batch_size=4)
    assert len(told) == 1
    with pytest.raises(gt.errors.TraceError, match="compile='auto' runs it in Python"):
        training.predict(model, x, batch_size=4, compile=True)


def test_predict_takes_batches_as_loaders_give_them() -> None:
    model, expected = net(), net()(X).numpy()
    pairs = [[X[i : i + 4], Y[i : i + 4]] for i in range(0, 20, 4)]
    two = gt.Model([a := gt.Input((3,)), b := gt.Input((3,))], layers.Add()([a, b]))
    for batches in (iter(pairs), ([x] for x, _ in pairs), ((x, y, y) for x, y in pairs)):
        np.testing.assert_array_equal(training.predict(model, batches).numpy(), expected)
    several = (([x, x],) for x, _ in pairs)
    np.testing.assert_array_equal(training.predict(two, several).numpy(), X + X)


def test_predict_refuses_examples_that_are_not_in_batches() -> None:
    examples = gt.data.Dataset.from_tensor_slices((X, Y))
    with pytest.raises(ValueError, match=r"returns shape \(2,\) for inputs of shape \(3,\)"):
        training.predict(net(), examples)
    with pytest.raises(ValueError, match=r"batch 0 has .* positive length"):
        training.fit(net(), examples, loss="mse", verbose=0)


def test_weights_of_classes_are_for_classes() -> None:
    with pytest.raises(ValueError, match="class_weight needs labels that are classes"):
        training.fit(net(), (X, Y[:, :1]), loss="mse", class_weight={0: 2.0}, verbose=0)


def test_random_predictions_are_drawn_once_each() -> None:
    class Noisy(layers.Layer):
        def call(self, x: Any) -> Any:
            return x + gt.random.normal(x.shape)

    found = []
    for compile in (False, True):
        gt.random.set_seed(3)
        out = training.predict(layers.Sequential([Noisy()]), X, batch_size=4, compile=compile)
        found.append(out.numpy())
    np.testing.assert_allclose(*found, rtol=1e-6)
