"""BatchNorm against hand-written NumPy, Keras' facts, and finite differences."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gradcheck import check_gradients

import gradtape as gt
from gradtape import layers
from gradtape.core.extend import ops

RNG = np.random.default_rng(1)


def by_hand(
    x: Any, axis: int = -1, gamma: Any = 1.0, beta: Any = 0.0, epsilon: float = 1e-3
) -> Any:
    axes = tuple(i for i in range(x.ndim) if i != axis % x.ndim)
    mean, var = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    along = [1] * x.ndim
    along[axis] = -1
    gamma, beta = np.reshape(gamma, (-1,)), np.reshape(beta, (-1,))
    y = (x - mean) / np.sqrt(var + epsilon) * gamma.reshape(along if gamma.size > 1 else ())
    return y + beta.reshape(along if beta.size > 1 else ()), mean.ravel(), var.ravel()


@pytest.mark.parametrize(
    ("shape", "axis"),
    [((6, 4), -1), ((6, 4), 1), ((6, 4), 0), ((3, 4, 5), 1), ((2, 4, 3, 3), 1), ((2, 3, 3, 4), -1)],
)
def test_training_normalises_by_the_batch(shape: tuple[int, ...], axis: int) -> None:
    x = RNG.normal(2.0, 3.0, shape)
    channels = shape[axis]
    layer = layers.BatchNorm(axis=axis)
    layer(x)
    gamma, beta = RNG.normal(size=channels), RNG.normal(size=channels)
    layer.gamma.assign(gamma)
    layer.beta.assign(beta)
    y, mean, var = by_hand(x, axis, gamma, beta)
    np.testing.assert_allclose(layer(x, training=True).numpy(), y, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(layer.moving_mean.numpy(), mean * 0.01, rtol=1e-10)
    np.testing.assert_allclose(layer.moving_variance.numpy(), 0.99 + var * 0.01, rtol=1e-10)


def test_moving_statistics_follow_keras_rule_with_the_biased_variance() -> None:
    layer = layers.BatchNorm(momentum=0.7)
    mean, var = np.zeros(3), np.ones(3)
    for _ in range(5):
        x = RNG.normal(1.0, 2.0, (8, 3))
        layer(x, training=True)
        mean = mean * 0.7 + x.mean(0) * 0.3
        var = var * 0.7 + x.var(0) * 0.3
    np.testing.assert_allclose(layer.moving_mean.numpy(), mean, rtol=1e-12)
    np.testing.assert_allclose(layer.moving_variance.numpy(), var, rtol=1e-12)
    assert layer.moving_mean.dtype == "float64"


@pytest.mark.parametrize(("shape", "axis"), [((6, 4), -1), ((3, 4, 5), 1)])
def test_inference_is_the_default_and_uses_the_moving_statistics(
    shape: tuple[int, ...], axis: int
) -> None:
    layer = layers.BatchNorm(axis=axis)
    x = RNG.normal(size=shape)
    np.testing.assert_allclose(layer(x).numpy(), x / np.sqrt(1 + 1e-3), rtol=1e-12)
    for variable in layer.variables:
        variable.assign(RNG.uniform(0.5, 2.0, 4))
    along = [1] * x.ndim
    along[axis] = -1
    gamma, beta, mean, var = (
        v.numpy().reshape(along)
        for v in (layer.gamma, layer.beta, layer.moving_mean, layer.moving_variance)
    )
    before = layer.moving_mean.numpy().copy()
    expected = (x - mean) / np.sqrt(var + 1e-3) * gamma + beta
    np.testing.assert_allclose(layer(x).numpy(), expected, rtol=1e-10)
    np.testing.assert_allclose(layer(x, training=False).numpy(), expected, rtol=1e-10)
    np.testing.assert_array_equal(layer.moving_mean.numpy(), before)


def test_moving_statistics_have_no_gradient() -> None:
    layer = layers.BatchNorm()
    x = gt.constant(RNG.normal(size=(5, 3)))
    layer(x)
    moving = [layer.moving_mean, layer.moving_variance]
    for training in (False, True):
        with gt.GradientTape() as tape:
            y = gt.sum(layer(x, training=training) ** 3)
        assert set(tape.watched_variables()) == {layer.gamma, layer.beta}
        assert tape.gradient(y, moving) == [None, None]
    assert not layer.moving_mean.trainable


def test_the_update_of_the_moving_mean_is_not_recorded() -> None:
    layer = layers.BatchNorm()
    x = gt.constant(RNG.normal(size=(5, 3)))
    with gt.GradientTape() as tape:
        tape.watch(x)
        layer(x, training=True)
        y = gt.sum(layer.moving_mean * 2.0)
    assert tape.gradient(y, x) is None


@pytest.mark.parametrize(
    ("shape", "axis"), [((5, 3), -1), ((5, 3), 0), ((2, 3, 4), 1), ((2, 4, 3), 2), ((1, 3), -1)]
)
def test_gradients_in_training_to_second_order(shape: tuple[int, ...], axis: int) -> None:
    channels = shape[axis]

    def all_outputs(x: Any, gamma: Any, beta: Any) -> Any:
        return ops["batch_norm_training"](x, gamma, beta, axis=axis, epsilon=0.1)

    def result(x: Any, gamma: Any, beta: Any) -> Any:
        return all_outputs(x, gamma, beta)[0]

    arguments = (RNG.normal(size=shape), RNG.normal(size=channels), RNG.normal(size=channels))
    check_gradients(result, *arguments)
    check_gradients(all_outputs, *arguments)


def test_gradients_through_the_layer_match_finite_differences() -> None:
    layer = layers.BatchNorm()
    weights = RNG.normal(size=(7, 4))

    def loss(x: Any) -> Any:
        return gt.sum(layer(x, training=True) * weights)

    check_gradients(loss, RNG.normal(size=(7, 4)))
    check_gradients(lambda x: gt.sum(layer(x) * weights), RNG.normal(size=(7, 4)))


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("scale", [True, False])
def test_center_and_scale(center: bool, scale: bool) -> None:
    layer = layers.BatchNorm(center=center, scale=scale)
    x = RNG.normal(3.0, 2.0, (6, 4))
    with gt.GradientTape() as tape:
        y = layer(x, training=True)
        loss = gt.sum(y * y * y)
    assert (layer.gamma is not None, layer.beta is not None) == (scale, center)
    assert len(layer.trainable_variables) == center + scale
    np.testing.assert_allclose(y.numpy(), by_hand(x)[0], rtol=1e-9, atol=1e-12)
    for g in tape.gradient(loss, layer.trainable_variables):
        assert g.shape == (4,)
    assert layer(x).shape == x.shape


@pytest.mark.parametrize("shape", [(1, 3), (1, 1), (4, 1)])
def test_a_batch_of_one_and_a_single_channel(shape: tuple[int, ...]) -> None:
    layer = layers.BatchNorm()
    x = gt.constant(RNG.normal(size=shape))
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = layer(x, training=True)
        loss = gt.sum(y * y)
    g = tape.gradient(loss, x)
    assert np.isfinite(y.numpy()).all()
    assert np.isfinite(g.numpy()).all()
    if shape[0] == 1:
        assert not y.numpy().any()
        assert not g.numpy().any()


def test_half_precision_does_not_overflow() -> None:
    layer = layers.BatchNorm()
    x = np.full((4096, 2), 30.0, dtype="float16")
    x[::2] = 32.0
    y = layer(x, training=True)
    assert y.dtype == "float16"
    np.testing.assert_allclose(np.abs(y.numpy()), 1.0, atol=2e-3)


def test_integers_are_taken_as_floats() -> None:
    x = np.array([[1, 5], [3, 9]])
    y = layers.BatchNorm()(x, training=True)
    np.testing.assert_allclose(y.numpy(), by_hand(x.astype("float32"))[0], rtol=1e-5)
    assert y.dtype == "float32"


def test_in_a_trace_with_an_unknown_batch() -> None:
    layer, eager = layers.BatchNorm(), layers.BatchNorm()

    @gt.function(input_signature=[gt.TensorSpec([None, 3], "float64")])
    def run(x: Any) -> Any:
        with gt.GradientTape() as tape:
            tape.watch(x)
            y = layer(x, training=True)
            loss = gt.sum(y * y * y)
        return y, tape.gradient(loss, [x, layer.gamma])

    for count in (4, 7):
        x = gt.constant(RNG.normal(size=(count, 3)))
        y, (gx, ggamma) = run(x)
        with gt.GradientTape() as tape:
            tape.watch(x)
            expected = eager(x, training=True)
            loss = gt.sum(expected * expected * expected)
        egx, eggamma = tape.gradient(loss, [x, eager.gamma])
        for a, b in ((y, expected), (gx, egx), (ggamma, eggamma)):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(layer.moving_mean.numpy(), eager.moving_mean.numpy(), rtol=1e-12)
    np.testing.assert_allclose(
        layer.moving_variance.numpy(), eager.moving_variance.numpy(), rtol=1e-12
    )


def test_unknown_rank() -> None:
    layer, eager = layers.BatchNorm(), layers.BatchNorm()
    x = RNG.normal(size=(4, 3)).astype("float32")
    layer(x), eager(x)
    calm = gt.function(input_signature=[gt.TensorSpec(None)])(lambda x: layer(x))
    busy = gt.function(input_signature=[gt.TensorSpec(None)])(lambda x: layer(x, training=True))
    for shape in ((4, 3), (2, 5, 3)):
        x = RNG.normal(size=shape).astype("float32")
        np.testing.assert_allclose(busy(x).numpy(), eager(x, training=True).numpy(), rtol=1e-5)
        np.testing.assert_allclose(calm(x).numpy(), eager(x).numpy(), rtol=1e-5)
    other = layers.BatchNorm(axis=1)
    other(RNG.normal(size=(4, 3)).astype("float32"))
    turned = gt.function(input_signature=[gt.TensorSpec(None)])(lambda x: other(x))
    with pytest.raises(ValueError, match="rank of its input must be known"):
        turned(x)


def test_errors_name_layer_axis_and_shape() -> None:
    with pytest.raises(ValueError, match=r"'batch_norm'.*no axis 2.*\(4, 3\)"):
        layers.BatchNorm(axis=2)(RNG.normal(size=(4, 3)))
    layer = layers.BatchNorm(name="norm")
    layer(RNG.normal(size=(4, 3)))
    with pytest.raises(ValueError, match=r"'norm'.*3 channels on axis -1.*\(4, 5\)"):
        layer(RNG.normal(size=(4, 5)))
    with pytest.raises(ValueError, match=r"\(0, 3\) has no elements"):
        layer(np.zeros((0, 3)), training=True)
    with pytest.raises(ValueError, match=r"momentum must be in \[0, 1\], got 1.5"):
        layers.BatchNorm(momentum=1.5)
    with pytest.raises(ValueError, match="epsilon must not be negative"):
        layers.BatchNorm(epsilon=-1.0)
    unknown = gt.function(input_signature=[gt.TensorSpec([3, None])])(layers.BatchNorm())
    with pytest.raises(ValueError, match="axis -1 of its input must be known"):
        unknown(np.zeros((3, 4), "float32"))


def test_restored_by_setting_variables() -> None:
    layer = layers.BatchNorm(scale=False)
    x = RNG.normal(size=(6, 4))
    layer(x, training=True)
    twin = layers.BatchNorm.from_config(layer.get_config())
    for name, variable in layer.named_variables.items():
        setattr(twin, name, gt.Variable(variable.numpy(), trainable=variable.trainable))
    np.testing.assert_array_equal(twin(x).numpy(), layer(x).numpy())
    np.testing.assert_array_equal(twin(x, training=True).numpy(), layer(x, training=True).numpy())
    np.testing.assert_array_equal(twin.moving_mean.numpy(), layer.moving_mean.numpy())
    assert twin.gamma is None


@pytest.mark.parametrize(("shape", "told"), [((1, 3), True), ((1, 2, 3), False), ((2, 3), False)])
def test_a_batch_of_one_value_per_channel_is_told_of(shape: tuple[int, ...], told: bool) -> None:
    layer = gt.layers.BatchNorm()
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        layer(gt.ones(shape), training=True)
        layer(gt.ones((1, 3)), training=False)
    assert ["one value per channel" in str(x.message) for x in found] == [True] * told


def test_saving_does_not_warn_of_its_own_samples(tmp_path: Path) -> None:
    model = gt.layers.Sequential([gt.layers.Dense(3), gt.layers.BatchNorm()])
    model(gt.ones((4, 2)), training=True)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        gt.save(model, tmp_path / "m.h5")
    assert told == []


def test_a_synchronized_layer_is_the_same_alone(tmp_path: Path) -> None:
    x = RNG.normal(size=(6, 3)).astype("float32")
    plain, shared = gt.layers.BatchNorm(), gt.layers.BatchNorm(synchronized=True)
    assert (plain(x, training=True).numpy() == shared(x, training=True).numpy()).all()
    assert (plain.moving_variance.numpy() == shared.moving_variance.numpy()).all()
    assert "synchronized" not in plain.get_config()  # files of it are what they were
    assert gt.layers.BatchNorm.from_config(shared.get_config()).synchronized
    gt.save(gt.layers.Sequential([shared]), tmp_path / "m.h5")
    (layer,) = gt.load(tmp_path / "m.h5").layers
    assert layer.synchronized is True
    assert (layer(x).numpy() == shared(x).numpy()).all()
    with pytest.raises(TypeError, match="synchronized is True or False, got 1"):
        gt.layers.BatchNorm(synchronized=1)


def test_a_subclass_is_saved_without_a_warning(tmp_path: Path) -> None:
    class Own(layers.BatchNorm):
        pass

    layer = Own()
    layer(np.ones((3, 4), "float32"))
    with warnings.catch_warnings(action="error"):
        gt.save(layer, tmp_path / "own.h5")
