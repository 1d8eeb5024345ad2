"""Losses are scaled so that gradients do not underflow, and steps skipped where they overflow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pretend_gpu
import pytest

import gradtape as gt
from gradtape.datasets import load_digits
from gradtape.layers import BatchNorm, Dense, Sequential
from gradtape.mixed_precision import LossScaleOptimizer
from gradtape.training import SGD, Adam, fit

PLUGIN = pretend_gpu.Plugin("distant")


@pytest.fixture(autouse=True)
def plugin() -> Iterator[None]:
    gt.register_plugin(PLUGIN, "distant")
    yield
    gt.unregister_plugin("distant")


def values(optimizer: Any) -> tuple[float, int, int]:
    return (
        optimizer.dynamic_scale.item(),
        optimizer.step_counter.item(),
        optimizer.iterations.item(),
    )


def stepping(optimizer: Any, variables: Any, traced: bool) -> Any:
    def step(*gradients: Any) -> None:
        optimizer.apply_gradients(zip(gradients, variables, strict=True))

    return gt.function(step) if traced else step


@pytest.mark.parametrize("backend", ["numpy", "jax", "distant"])
@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("make", [lambda: SGD(0.5, 0.9), lambda: Adam(0.1)])
def test_steps_that_overflow_are_skipped_whole(make: Any, traced: bool, backend: str) -> None:
    with gt.backend(backend):
        v, w = gt.Variable([1.0, 2.0]), gt.Variable(3.0)
        optimizer = LossScaleOptimizer(make(), initial_scale=8.0, dynamic_growth_steps=2)
        step = stepping(optimizer, (v, w), traced)
        fine = gt.constant([8.0, -8.0]), gt.constant(16.0)
        spoilt = gt.constant([np.inf, 0.0]), gt.constant(1.0)
        told = []

        def state() -> list[Any]:
            return [
                x.value.to("numpy").tolist() for x in (v, w, *optimizer.inner_optimizer.variables)
            ]

        step(*fine)
        before = state()
        told.append(values(optimizer))
        step(*spoilt)
        assert state() == before
        told.append(values(optimizer))
        for _ in range(3):
            step(*fine)
            told.append(values(optimizer))
    assert told == [(8.0, 1, 1), (4.0, 0, 1), (4.0, 1, 2), (8.0, 0, 3), (8.0, 1, 4)]
    assert state() != before


@pytest.mark.parametrize("traced", [False, True])
def test_the_steps_are_those_of_the_optimizer_inside(traced: bool) -> None:
    v, w = gt.Variable([1.0, 2.0]), gt.Variable([1.0, 2.0])
    scaling = LossScaleOptimizer(Adam(0.1, clipnorm=0.5), initial_scale=1024.0)
    scaled, plain = stepping(scaling, [v], traced), stepping(Adam(0.1, clipnorm=0.5), [w], traced)
    for g in ([3.0, 4.0], [0.1, -0.2]):
        scaled(gt.constant(g) * 1024.0)  # clipped as what it is of the loss that is meant
        plain(gt.constant(g))
    np.testing.assert_array_equal(v.numpy(), w.numpy())


def test_minimize_scales_by_itself() -> None:
    w = gt.Variable(3.0)
    optimizer = LossScaleOptimizer("sgd")
    optimizer.learning_rate = 0.5
    optimizer.minimize(lambda: w * w, [w])
    assert w.item() == 0.0
    assert optimizer.inner_optimizer.learning_rate.item() == 0.5


def test_scales_stay_between_bounds() -> None:
    w = gt.Variable(1.0)
    top = LossScaleOptimizer(SGD(0.0), initial_scale=2.0**64, dynamic_growth_steps=1)
    top.apply_gradients([(gt.constant(1.0), w)])
    assert top.dynamic_scale.item() == 2.0**64
    low = LossScaleOptimizer(SGD(0.0), initial_scale=2.0**-13)
    low.apply_gradients([(gt.constant(np.nan), w)])
    with pytest.raises(FloatingPointError, match="not finite at any scale"):
        low.apply_gradients([(gt.constant(np.nan), w)])
    stepping(low, [w], True)(gt.constant(np.nan))
    assert (w.item(), low.dynamic_scale.item()) == (1.0, 2.0**-14)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (lambda: LossScaleOptimizer(SGD(), initial_scale=0.0), ValueError),
        (lambda: LossScaleOptimizer(SGD(), initial_scale=np.inf), ValueError),
        (lambda: LossScaleOptimizer(SGD(), dynamic_growth_steps=0), ValueError),
        (lambda: LossScaleOptimizer(LossScaleOptimizer(SGD())), TypeError),
        (lambda: LossScaleOptimizer(3), TypeError),
        (lambda: LossScaleOptimizer("sgd").apply_gradients([(None, gt.Variable(1.0))]), ValueError),
        (
            lambda: LossScaleOptimizer("sgd").apply_gradients([(gt.ones(2), gt.Variable(1.0))]),
            ValueError,
        ),
    ],
)
def test_wrong_arguments_are_refused(wrong: Any, error: Any) -> None:
    with pytest.raises(error):
        wrong()


# -- fit -----------------------------------------------------------------------------------------

RNG = np.random.default_rng(5)
X = RNG.normal(size=(64, 4)).astype("float32")
Y = (X @ np.array([[1.0], [-2.0], [0.5], [0.0]])).astype("float32")


def underflowing(policy: str) -> Any:
    """Return a model whose gradients are too small for float16, and data for it."""
    gt.random.set_seed(0)
    with gt.mixed_precision.policy(policy):
        return Sequential([Dense(8, activation="tanh"), Dense(1)]), (X, Y * 1e-5)


def test_gradients_that_underflow_train_once_the_loss_is_scaled() -> None:
    def gradients(scale: float) -> list[Any]:
        model, (x, y) = underflowing("mixed_float16")
        model(x)
        for v in model.trainable_variables:
            v.assign(v * 1e-3)
        with gt.GradientTape() as tape:
            loss = gt.mean(gt.training.mean_squared_error(y, model(x))) * scale
        return [(g / scale).numpy() for g in tape.gradient(loss, list(model.trainable_variables))]

    assert not np.any(gradients(1.0)[0])
    assert np.all(gradients(2.0**15)[0])


def test_a_run_that_learns_nothing_without_scaling_learns_with_it() -> None:
    def run(scaling: bool) -> float:
        gt.random.set_seed(0)
        layer = Dense(1, dtype="mixed_float16", kernel_initializer="zeros", use_bias=False)
        layer(X)
        before = layer.kernel.numpy().copy()
        inner = SGD(2e6)
        optimizer = LossScaleOptimizer(inner) if scaling else inner
        for _ in range(30):
            with gt.GradientTape() as tape:
                small = layer(X) * 1e-7  # so are the gradients behind it: float16 ends at 6e-8
                error = small.astype("float32") - Y * 1e-7
                loss = gt.mean(error * error) * 1e7
                target = optimizer.scale_loss(loss)
            optimizer.apply_gradients([(tape.gradient(target, layer.kernel), layer.kernel)])
        return float(np.abs(layer.kernel.numpy() - before).max())

    assert run(False) == 0.0
    assert run(True) > 0.1


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_digits_are_learnt_as_well_as_in_float32(policy: str) -> None:
    (x, y), held_out = load_digits()

    def accuracy(of: str) -> float:
        gt.random.set_seed(1)
        with gt.mixed_precision.policy(of):
            layers = [Dense(48, activation="relu"), BatchNorm(), Dense(10)]
        model = Sequential(layers)
        fit(model, (x, y), epochs=8, optimizer=Adam(2e-3), seed=1, verbose=False)
        return gt.training.evaluate(model, held_out)["accuracy"]

    exact = accuracy("float32")
    assert exact > 0.9
    assert accuracy(policy) > exact - 0.02


def test_fit_scales_where_a_layer_computes_in_float16_and_says_so(capsys: Any) -> None:
    gt.random.set_seed(0)
    for policy, said in (("mixed_float16", 1), ("mixed_bfloat16", 0), ("float32", 0)):
        model = Sequential([Dense(1, dtype=policy)])
        inner = SGD(0.01)
        fit(model, (X, Y), loss="mse", epochs=2, optimizer=inner)
        assert capsys.readouterr().out.count("LossScaleOptimizer") == said
        assert inner.iterations.item() in ((1, 2, 3) if said else (4,))
    fit(Sequential([Dense(1, dtype="mixed_float16")]), (X, Y), loss="mse", verbose=False)
    assert capsys.readouterr().out == ""


def test_a_scale_too_large_for_the_first_steps_ends_no_run() -> None:
    gt.random.set_seed(0)
    model = Sequential([Dense(1, dtype="mixed_float16")])
    optimizer = LossScaleOptimizer(SGD(0.05), initial_scale=2.0**40)
    run = fit(model, (X, Y), loss="mse", epochs=40, optimizer=optimizer, verbose=False)
    assert optimizer.dynamic_scale.item() < 2.0**20
    assert 40 < optimizer.iterations.item() < 80
    assert run.history["loss"][-1] < 0.05 * run.history["loss"][0]


def test_a_loss_that_is_nan_still_ends_the_run() -> None:
    model = Sequential([Dense(1, dtype="mixed_float16")])
    with pytest.raises(FloatingPointError, match="the loss is nan"):
        fit(model, (X * np.nan, Y), loss="mse", verbose=False)


def test_gradients_that_are_never_finite_end_the_run() -> None:
    @gt.custom_gradient
    def broken(x: Any) -> Any:
        return x, lambda g: g * np.nan

    gt.random.set_seed(0)
    model = Sequential([Dense(1, dtype="mixed_float16"), broken])
    model(X)
    before = model.get_weights()
    with pytest.raises(FloatingPointError, match="not finite at any scale"):
        fit(model, (X, Y), loss="mse", epochs=40, verbose=False)
    for old, new in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize("executor", ["plain", "default"])
def test_a_compiled_step_trains_as_the_eager_one(executor: str) -> None:
    def trained(compiled: bool) -> Any:
        gt.random.set_seed(0)
        model = Sequential([Dense(8, activation="tanh"), Dense(1)])
        with gt.mixed_precision.policy("mixed_float16"):
            model = Sequential([Dense(8, activation="tanh"), Dense(1)])
        model(X[:1])
        optimizer = LossScaleOptimizer(Adam(0.01), initial_scale=2.0**24, dynamic_growth_steps=5)

        def step(x: Any, y: Any) -> Any:
            with gt.GradientTape() as tape:
                loss = gt.mean(gt.training.mean_squared_error(y, model(x)))
                scaled = optimizer.scale_loss(loss)
            variables = list(model.trainable_variables)
            optimizer.apply_gradients(zip(tape.gradient(scaled, variables), variables, strict=True))
            return loss

        run = gt.function(step, executor=executor) if compiled else step
        with np.errstate(over="ignore", invalid="ignore"):
            losses = [run(gt.constant(X), gt.constant(Y)).item() for _ in range(25)]
        return losses, values(optimizer)

    eager, compiled = trained(False), trained(True)
    np.testing.assert_allclose(compiled[0], eager[0], rtol=5e-3)
    assert compiled[1] == eager[1]
    assert eager[1][2] < 25  # some were skipped


# -- files ---------------------------------------------------------------------------------------


def test_a_run_goes_on_from_its_checkpoint_with_its_scale(tmp_path: Path) -> None:
    def run(epochs: int, resume: bool, path: Path) -> Any:
        gt.random.set_seed(0)
        with gt.mixed_precision.policy("mixed_float16"):
            model = Sequential([Dense(8, activation="tanh"), Dense(1)])
        data = (X, Y)
        options = {"loss": "mse", "optimizer": Adam(0.01), "seed": 3, "verbose": False}
        fit(model, data, epochs=epochs, checkpoint=path, resume=resume, **options)
        return model.get_weights()

    whole = run(4, False, tmp_path / "whole.h5")
    run(2, False, tmp_path / "parts.h5")
    parts = run(4, True, tmp_path / "parts.h5")
    for a, b in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_saved_training_goes_on_where_it_was(tmp_path: Path) -> None:
    class Training(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = gt.Variable([1.0, 2.0])
            self.optimizer = LossScaleOptimizer(Adam(0.1), 64.0, 3)

        @gt.function(input_signature=[gt.TensorSpec([2])])
        def step(self, g: Any) -> Any:
            self.optimizer.apply_gradients([(g, self.w)])
            return self.w.value

    training = Training()
    for g in ([64.0, 0.0], [np.nan, 0.0], [32.0, 32.0]):
        training.step(gt.constant(g))
    gt.save(training, tmp_path / "training.h5")
    again = gt.load(tmp_path / "training.h5")
    assert values(again.optimizer) == values(training.optimizer) == (32.0, 1, 2)
    assert type(again.optimizer.inner_optimizer) is Adam
    for g in ([32.0, 8.0], [32.0, 8.0], [np.inf, 8.0]):
        np.testing.assert_array_equal(
            again.step(gt.constant(g)).numpy(), training.step(gt.constant(g)).numpy()
        )
    assert values(again.optimizer) == values(training.optimizer)
    assert gt.saving.verify(tmp_path / "training.h5").ok
    again.optimizer.apply_gradients([(gt.constant([1.0, 1.0]), again.w)])
    training.optimizer.apply_gradients([(gt.constant([1.0, 1.0]), training.w)])
    np.testing.assert_array_equal(again.w.numpy(), training.w.numpy())


def test_a_checkpoint_restores_scale_counter_and_slots(tmp_path: Path) -> None:
    def made() -> tuple[Any, Any]:
        return gt.Variable([1.0, 2.0]), LossScaleOptimizer(Adam(0.1), 16.0)

    w, optimizer = made()
    for g in ([np.inf, 0.0], [1.0, 2.0], [3.0, 4.0]):
        optimizer.apply_gradients([(gt.constant(g), w)])
    gt.training.Checkpoint(w=w, optimizer=optimizer).save(tmp_path / "run.h5")
    v, other = made()
    gt.training.Checkpoint(w=v, optimizer=other).restore(tmp_path / "run.h5")
    assert values(other) == values(optimizer) == (8.0, 2, 2)
    for x, of in ((w, optimizer), (v, other)):
        of.apply_gradients([(gt.constant([1.0, 1.0]), x)])
    np.testing.assert_array_equal(v.numpy(), w.numpy())


OPTIONS = {
    "decay": {"weight_decay": 0.1},
    "averages": {"use_ema": True, "ema_momentum": 0.5, "ema_overwrite_frequency": 2},
    "gathered": {"gradient_accumulation_steps": 2, "clipnorm": 0.5},
}


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("name", OPTIONS)
def test_options_are_those_of_the_optimizer_inside(name: str, traced: bool) -> None:
    starts = [1.0, 2.0], [1.0, 2.0]
    v, w = (gt.Variable(x, name="kernel") for x in starts)
    b, c = (gt.Variable(x, name="bias") for x in starts)
    plain = Adam(0.1, **OPTIONS[name])
    outer = LossScaleOptimizer(Adam(0.1, **OPTIONS[name]), initial_scale=8.0)
    for optimizer in (plain, outer):
        optimizer.exclude_from_weight_decay(var_names=["bias"])
    scaled, own = stepping(outer, [v, b], traced), stepping(plain, [w, c], traced)
    for g in ([3.0, 4.0], [0.1, -0.2], [1.0, 0.0], [-1.0, 2.0]):
        scale = outer.dynamic_scale.item()
        if g[1] == 0.0:  # a step that is skipped is none at all
            scaled(gt.constant([np.nan, 0.0]), gt.constant([1.0, 1.0]))
            scale = outer.dynamic_scale.item()
        scaled(gt.constant(g) * scale, gt.constant(g) * scale)
        own(gt.constant(g), gt.constant(g))
    outer.finalize_variable_values([v, b])
    plain.finalize_variable_values([w, c])
    np.testing.assert_array_equal(v.numpy(), w.numpy())
    np.testing.assert_array_equal(b.numpy(), c.numpy())
    assert outer.iterations.item() == plain.iterations.item() == 4


@pytest.mark.parametrize("compile", [False, True])
def test_fit_ends_with_the_averages_of_an_optimizer_that_scales(compile: bool) -> None:
    gt.random.set_seed(0)
    model = Sequential([Dense(3, dtype="mixed_float16")])
    inner = SGD(0.1, use_ema=True, ema_momentum=0.9)
    labels = (X[:, 0] > 0).astype("int64")
    gt.training.fit(
        model, (X, labels), epochs=2, optimizer=inner, verbose=0, compile=compile, seed=0
    )
    for weight, mean in zip(model.trainable_variables, inner.weight_averages, strict=True):
        np.testing.assert_array_equal(weight.numpy(), mean.numpy())


def test_lbfgs_is_refused_with_why() -> None:
    with pytest.raises(TypeError, match="LBFGS evaluates losses itself"):
        LossScaleOptimizer("lbfgs")


@pytest.mark.parametrize("compile", [False, True])
def test_compiled_and_eager_runs_scale_alike(compile: bool) -> None:
    gt.random.set_seed(0)
    with gt.mixed_precision.policy("mixed_float16"):
        model = Sequential([Dense(8, activation="tanh"), Dense(3)])
    optimizer = LossScaleOptimizer(SGD(0.1), initial_scale=2.0**40, dynamic_growth_steps=3)
    labels = (X[:, 0] > 0).astype("int64")
    data = (X, labels)
    history = gt.training.fit(
        model, data, epochs=30, optimizer=optimizer, verbose=0, compile=compile, seed=0
    )
    assert history.history["loss"][-1] < history.history["loss"][0]
    assert 2.0**-14 < optimizer.dynamic_scale.item() < 2.0**40
    assert optimizer.iterations.item() > 0
