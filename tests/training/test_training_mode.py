"""Whether layers train: told to the model, and handed on to all that is called inside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.layers import BatchNorm, Dense, Dropout, Layer, Sequential
from gradtape.training import SGD, evaluate, fit, predict

X = np.random.default_rng(0).normal(2.0, 3.0, size=(32, 3)).astype("float32")
Y = X[:, :1]


class Body(gt.Module):
    """A module that normalises and drops."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.drop, self.last = BatchNorm(), Dropout(0.5, seed=1), Dense(1)

    def body(self, x: Any) -> Any:
        return self.last(self.drop(self.norm(x)))


class Without(Body):
    def __call__(self, x: Any) -> Any:
        return self.body(x)


class Forgetting(Body):
    def __call__(self, x: Any, training: bool = False) -> Any:
        return self.body(x)


class Traced(Body):
    @gt.function
    def __call__(self, x: Any) -> Any:
        return self.body(x)


class TracedForgetting(Body):
    @gt.function
    def __call__(self, x: Any, training: bool = False) -> Any:
        return self.body(x)


class TracedInside(Body):
    def __call__(self, x: Any) -> Any:
        return self.traced(x)

    @gt.function
    def traced(self, x: Any) -> Any:
        return self.body(x)


class Nested(Body):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Forgetting()

    def __call__(self, x: Any) -> Any:
        return self.inner(x)


class AsLayer(Layer):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Sequential([BatchNorm(), Dropout(0.5, seed=1), Dense(1)])

    def call(self, x: Any) -> Any:
        return self.inner(x)


MODELS = [Without, Forgetting, Traced, TracedForgetting, TracedInside, Nested, AsLayer]


def parts(model: Any) -> tuple[BatchNorm, Dropout]:
    found = {type(module): module for module in model.submodules if module.variables}
    return found[BatchNorm], found[Dropout]


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("called_before", [False, True])
def test_fit_trains_layers_whatever_the_models_call_hands_on(
    kind: Any, called_before: bool
) -> None:
    model = kind()
    if called_before:
        model(X)
    fit(model, (X, Y), loss="mse", optimizer=SGD(0.0), epochs=2, verbose=False)
    norm, drop = parts(model)
    assert (norm.moving_mean.numpy() != 0.0).all()
    assert drop.state.numpy()[1] == 2
    # and at inference nothing moves or drops, traced before or not
    mean = norm.moving_mean.numpy().copy()
    once = predict(model, X).numpy()
    np.testing.assert_array_equal(once, model(X).numpy())
    evaluate(model, (X, Y), loss="mse")
    np.testing.assert_array_equal(norm.moving_mean.numpy(), mean)
    fit(model, (X, Y), loss="mse", optimizer=SGD(0.0), verbose=False)
    assert (norm.moving_mean.numpy() != mean).all()


def test_a_direct_call_hands_training_on_as_fit_does() -> None:
    for model in (Forgetting(), Sequential([AsLayer()]), AsLayer()):
        model(X, training=True)
        norm, _ = parts(model)
        mean = norm.moving_mean.numpy().copy()
        assert (mean != 0.0).all()
        model(X, training=False)
        model(X)
        np.testing.assert_array_equal(norm.moving_mean.numpy(), mean)
    by_place = Forgetting()
    by_place(X, True)
    assert (by_place.norm.moving_mean.numpy() != 0.0).all()


def test_what_a_call_says_itself_holds() -> None:
    class AtInference(Body):
        def __call__(self, x: Any, training: bool = False) -> Any:
            return self.last(self.norm(x, training=False))

    model = AtInference()
    fit(model, (X, Y), loss="mse", verbose=False)
    assert (model.norm.moving_mean.numpy() == 0.0).all()


def test_what_is_recomputed_is_what_was_computed() -> None:
    class Plain(Body):
        def __call__(self, x: Any) -> Any:
            return self.last(self.norm(x))

    class Again(Plain):
        def __call__(self, x: Any) -> Any:
            return gt.recompute_grad(super().__call__)(x)

    weights = []
    for kind in (Plain, Again):
        gt.random.set_seed(0)
        model = kind()
        fit(model, (X, Y), loss="mse", optimizer=SGD(0.1), shuffle=False, verbose=False)
        weights.append([v.numpy() for v in model.trainable_variables])
    for a, b in zip(*weights, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_a_saved_function_is_what_it_does_when_called(tmp_path: Path) -> None:
    model = Traced()
    fit(model, (X, Y), loss="mse", verbose=False)
    gt.save(model, tmp_path / "model.h5")
    loaded = gt.load(tmp_path / "model.h5")
    np.testing.assert_allclose(loaded(X).numpy(), model(X).numpy(), rtol=1e-5)
    np.testing.assert_array_equal(loaded(X).numpy(), loaded(X).numpy())
    forgetting = Forgetting()
    fit(forgetting, (X, Y), loss="mse", verbose=False)
    gt.save(forgetting, tmp_path / "forgetting.h5")
    loaded = gt.load(tmp_path / "forgetting.h5")
    fit(loaded, (X, Y), loss="mse", optimizer=SGD(0.0), verbose=False)
    assert (loaded.norm.moving_mean.numpy() != forgetting.norm.moving_mean.numpy()).all()


def test_a_loaded_model_without_a_trace_of_training_is_not_trained(tmp_path: Path) -> None:
    class Keywords(Without):
        def __call__(self, x: Any, **options: Any) -> Any:
            return super().__call__(x)

    model = Keywords()
    model(X)
    gt.save(model, tmp_path / "model.h5")
    loaded = gt.load(tmp_path / "model.h5")
    with pytest.raises(
        ValueError, match=r"'keywords' holds its call at inf.*def __call__\(self, x, training=F"
    ):
        fit(loaded, (X, Y), loss="mse", verbose=False)
    evaluate(loaded, (X, Y), loss="mse")
    loaded.trainable = False  # inference is what is wanted

    class Head(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            self.base, self.last = loaded, Dense(1)

        def __call__(self, x: Any) -> Any:
            return self.last(self.base(x))

    fit(Head(), (X, Y), loss="mse", verbose=False)


def test_a_traced_step_follows_what_is_frozen() -> None:
    model = Sequential([Dense(4), BatchNorm(), Dense(1)])
    model(X)
    optimizer = SGD(0.1)
    traces: list[int] = []

    @gt.function
    def step(x: Any, y: Any) -> Any:
        traces.append(1)
        with gt.GradientTape() as tape:
            loss = gt.mean((model(x, training=True) - y) ** 2)
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    first, norm, last = model.layers

    def moved() -> list[bool]:
        held = [first.kernel, norm.moving_mean, last.kernel]
        before = [v.numpy().copy() for v in held]
        step(gt.constant(X), gt.constant(Y))
        return [bool((v.numpy() != old).any()) for v, old in zip(held, before, strict=True)]

    assert moved() == [True, True, True]
    assert moved() == [True, True, True]
    assert len(traces) == 1
    first.trainable = False
    assert moved() == [False, True, True]
    norm.trainable = False
    assert moved() == [False, False, True]
    first.trainable = norm.trainable = True
    assert moved() == [True, True, True]
    last.kernel.trainable = False
    assert moved() == [True, True, False]
    made = len(traces)
    moved()
    assert len(traces) == made


def test_two_traced_steps_that_freeze_in_turns_are_traced_once_each() -> None:
    one, two = Dense(1), Dense(1)
    model, traces = Sequential([one, two]), []
    model(X)

    @gt.function
    def slopes(x: Any, which: int) -> Any:
        traces.append(which)
        with gt.GradientTape() as tape:
            loss = gt.sum(model(x) ** 2)
        return tape.gradient(loss, list(model.trainable_variables))

    for _ in range(3):
        for which, (trained, frozen) in enumerate([(one, two), (two, one)]):
            trained.trainable, frozen.trainable = True, False
            found = slopes(gt.constant(X), which)
            assert [g.shape for g in found] == [v.shape for v in trained.variables]
    assert traces == [0, 1]
