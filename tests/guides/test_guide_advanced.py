"""What the guide "Advanced automatic differentiation" states, Jacobians apart, in our names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gradtape as gt


def test_stop_recording_leaves_out_what_is_computed_meanwhile() -> None:
    x, y = gt.Variable(2.0), gt.Variable(3.0)
    with gt.GradientTape() as tape:
        x_sq = x * x
        with tape.stop_recording():
            y_sq = y * y
        z = x_sq + y_sq
    grad = tape.gradient(z, {"x": x, "y": y})
    assert z.numpy() == 13.0
    assert grad["x"].numpy() == 4.0
    assert grad["y"] is None


def test_reset_throws_out_what_was_recorded() -> None:
    x, y = gt.Variable(2.0), gt.Variable(3.0)
    with gt.GradientTape() as tape:
        y_sq = y * y
        tape.reset()
        z = x * x + y_sq
    grad = tape.gradient(z, {"x": x, "y": y})
    assert grad["x"].numpy() == 4.0
    assert grad["y"] is None


def test_stop_gradient_stops_one_path() -> None:
    x, y = gt.Variable(2.0), gt.Variable(3.0)
    with gt.GradientTape() as tape:
        y_sq = y**2
        z = x**2 + gt.stop_gradient(y_sq)
    grad = tape.gradient(z, {"x": x, "y": y})
    assert z.numpy() == 13.0
    assert grad["x"].numpy() == 4.0
    assert grad["y"] is None


@gt.custom_gradient
def clip_gradients(y):
    def backward(dy):
        return gt.clip_by_norm(dy, 0.5)

    return y, backward


def test_clipping_an_intermediate_gradient() -> None:
    v = gt.Variable(2.0)
    with gt.GradientTape() as tape:
        output = clip_gradients(v * v)
    assert tape.gradient(output, v).numpy() == 2.0


class Clipper(gt.Module):
    @gt.function(input_signature=[gt.TensorSpec(None)])
    def call_custom_grad(self, x):
        return clip_gradients(x)


def test_a_custom_gradient_is_saved_with_its_module(tmp_path: Path) -> None:
    model = Clipper()
    gt.save(model, tmp_path / "model.h5")
    loaded = gt.load(tmp_path / "model.h5")
    for module in (model, loaded):
        v = gt.Variable(2.0)
        with gt.GradientTape() as tape:
            output = module.call_custom_grad(v * v)
        assert output.numpy() == 4.0
        assert tape.gradient(output, v).numpy() == 2.0

    v = gt.Variable([3.0, 4.0])  # one trace serves every rank
    with gt.GradientTape() as tape:
        output = loaded.call_custom_grad(v)
    np.testing.assert_allclose(
        tape.gradient(output, v, output_gradients=gt.constant([3.0, 4.0])), [0.3, 0.4], rtol=1e-6
    )


def test_two_tapes_watch_different_tensors() -> None:
    x0, x1 = gt.constant(0.0), gt.constant(0.0)
    with gt.GradientTape() as tape0, gt.GradientTape() as tape1:
        tape0.watch(x0)
        tape1.watch(x1)
        ys = gt.sum(gt.sin(x0) + gt.nn.sigmoid(x1))
    assert tape0.gradient(ys, x0).numpy() == 1.0
    assert tape1.gradient(ys, x1).numpy() == 0.25


def test_each_of_two_tapes_knows_nothing_of_the_others_source() -> None:
    x0, x1 = gt.constant(0.0), gt.constant(0.0)
    with gt.GradientTape() as tape0, gt.GradientTape() as tape1:
        tape0.watch(x0)
        tape1.watch(x1)
        ys = gt.sin(x0) + gt.nn.sigmoid(x1)
    assert tape0.gradient(ys, x1) is None
    assert tape1.gradient(ys, x0) is None


def test_second_derivative_from_nested_tapes() -> None:
    x = gt.Variable(1.0)
    with gt.GradientTape() as outer:
        with gt.GradientTape() as inner:
            y = x * x * x
        first = inner.gradient(y, x)
    assert first.numpy() == 3.0
    assert outer.gradient(first, x).numpy() == 6.0


@pytest.fixture
def layer() -> gt.layers.Dense:
    return gt.layers.Dense(10, activation=gt.nn.relu)


def test_input_gradient_regularisation(layer: gt.layers.Dense) -> None:
    x = gt.random.normal([7, 5])
    with gt.GradientTape(persistent=True) as outer:
        with gt.GradientTape(watch_accessed_variables=False) as inner:
            inner.watch(x)
            out = gt.sum(layer(x) ** 2)
        g1 = inner.gradient(out, x)
        magnitude = gt.linalg.norm(g1)
    assert g1.shape == (7, 5)
    gradients = outer.gradient(magnitude, layer.trainable_variables)
    assert [g.shape for g in gradients] == [v.shape for v in layer.trainable_variables]
    d_kernel, d_bias = outer.gradient(magnitude, [layer.kernel, layer.bias])
    assert (d_kernel.shape, d_bias.shape) == ((5, 10), (10,))

    # by hand, g1 = 2 relu(x W + b) Wᵀ: a difference along W shows that |g1| changes as predicted
    start, bias = np.float64(layer.kernel), np.float64(layer.bias)
    direction = np.random.default_rng(0).normal(size=(5, 10))

    def norm_of_input_gradient(w: np.ndarray) -> float:
        y = np.maximum(np.float64(x) @ w + bias, 0.0)
        return float(np.linalg.norm(2.0 * y @ w.T))

    step = 1e-6
    ahead = norm_of_input_gradient(start + step * direction)
    behind = norm_of_input_gradient(start - step * direction)
    slope = np.sum(d_kernel.numpy() * direction)
    np.testing.assert_allclose(slope, (ahead - behind) / (2 * step), rtol=1e-3)


def test_the_shapes_of_that_regularisation_are_those_of_kernel_and_bias(
    layer: gt.layers.Dense,
) -> None:
    layer(gt.random.normal([7, 5]))
    assert layer.kernel.shape == (5, 10)
    assert layer.bias.shape == (10,)
