"""Transposed convolutions, pooling: gradients, traces, torch's values, dtypes, kernels."""

from __future__ import annotations

import array_api_strict as strict
import numpy as np
import pytest
from families.convolution import RNG, R
from gradcheck import check_gradients
from samples import check_runs_in_traces

import gradtape as gt
from gradtape.core.extend import ops

POOLS = [
    ((2, 5, 2), 2, {}),
    ((2, 5, 2), 2, {"padding": "same"}),
    ((1, 4, 5, 2), (2, 3), {"strides": 1}),
    ((1, 5, 5, 1), 3, {"strides": 2, "padding": "same"}),
    ((1, 5, 4, 1), (2, 1), {"padding": ((1, 1), (0, 0)), "strides": (3, 2)}),
]
TRANSPOSED = [
    ((2, 3, 3), (2, 2, 3), {}),
    ((1, 3, 2), (3, 1, 2), {"strides": 2, "padding": "same"}),
    ((1, 3, 2, 2), (3, 2, 2, 2), {"strides": (2, 3)}),
    ((1, 3, 3, 1), (3, 3, 2, 1), {"strides": 2, "padding": 1, "dilations": (1, 2)}),
]


def apart(*shape):
    """Numbers that differ by more than the steps of finite differences."""
    return RNG.permutation(np.linspace(-2.0, 2.0, int(np.prod(shape)))).reshape(shape)


@pytest.mark.parametrize(("x", "w", "settings"), TRANSPOSED)
def test_transposed_convolution_is_the_adjoint(x, w, settings):
    x, w = R(*x), R(*w)
    y = gt.nn.conv_transpose(x, w, **settings)
    other = R(*y.shape)
    back = gt.nn.conv(other, w, **settings)
    assert back.shape == x.shape
    assert np.sum(y.numpy() * other) == pytest.approx(np.sum(back.numpy() * x))
    check_gradients(lambda x, w: gt.nn.conv_transpose(x, w, **settings), x, w)


@pytest.mark.parametrize(("x", "w", "settings"), TRANSPOSED)
def test_one_trace_of_transposed_convolutions_with_unknown_sizes(x, w, settings):
    def run(x, w):
        return gt.nn.conv_transpose(x, w, **settings)

    check_runs_in_traces((run, None, [R(*x), R(*w)]), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("pool", [gt.nn.max_pool, gt.nn.avg_pool])
@pytest.mark.parametrize(("shape", "window", "settings"), POOLS)
def test_pooling_has_gradients_and_traces(pool, shape, window, settings):
    def run(x):
        return pool(x, window, **settings)

    check_gradients(run, apart(*shape))
    check_runs_in_traces((run, None, [apart(*shape)]), rtol=1e-12, atol=1e-13)


def test_pooling_values():
    x = gt.constant(np.arange(12.0).reshape(1, 3, 4, 1))
    assert gt.nn.max_pool(x, 2)[0, :, :, 0].tolist() == [[5.0, 7.0]]
    assert gt.nn.avg_pool(x, 2)[0, :, :, 0].tolist() == [[2.5, 4.5]]
    same = gt.nn.avg_pool(x, 2, padding="same")[0, :, :, 0]
    assert same.tolist() == [[2.5, 4.5], [8.5, 10.5]]  # padding is not counted
    negative = gt.nn.max_pool(x - 100.0, 2, padding="same")[0, :, :, 0]
    assert negative.tolist() == [[-95.0, -93.0], [-91.0, -89.0]]  # nor is it the largest
    assert gt.nn.max_pool(gt.constant([[[3], [5], [4]]]), 2, 1).tolist() == [[[5], [5]]]


def test_of_elements_that_tie_the_first_has_the_gradient():
    x = gt.ones((1, 4, 1))
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = gt.nn.max_pool(x, 2)
    assert tape.gradient(y, x)[0, :, 0].tolist() == [1.0, 0.0, 1.0, 0.0]


def test_torch_agrees():
    torch = pytest.importorskip("torch")
    x, w = R(2, 6, 5, 4), R(3, 2, 2, 6)
    t = torch.tensor(np.moveaxis(x, -1, 1), requires_grad=True)
    k = torch.tensor(np.transpose(w, (3, 2, 0, 1)), requires_grad=True)
    y = torch.nn.functional.conv2d(t, k, stride=2, padding=1, groups=2)
    y.sin().sum().backward()
    a, b = gt.constant(x), gt.constant(w)
    with gt.GradientTape() as tape:
        tape.watch([a, b])
        z = gt.nn.conv2d(a, b, strides=2, padding=1, groups=2)
        loss = gt.sum(gt.sin(z))
    ga, gb = tape.gradient(loss, [a, b])
    np.testing.assert_allclose(np.moveaxis(z.numpy(), -1, 1), y.detach().numpy())
    np.testing.assert_allclose(np.moveaxis(ga.numpy(), -1, 1), t.grad.numpy())
    np.testing.assert_allclose(np.transpose(gb.numpy(), (3, 2, 0, 1)), k.grad.numpy())


def test_dtypes():
    x, w = gt.constant(R(1, 4, 1), "float32"), gt.constant(R(2, 1, 1))
    for filters, want in ((w, "float64"), (w.astype("float32"), "float32")):
        with gt.GradientTape() as tape:
            tape.watch([x, filters])
            y = gt.nn.conv1d(x, filters)
        assert y.dtype == want
        grads = tape.gradient(y, [x, filters])
        assert [g.dtype for g in grads] == [x.dtype, filters.dtype]


def test_nothing():
    w = gt.ones((2, 1, 3))
    assert gt.nn.conv1d(gt.zeros((0, 4, 1)), w).shape == (0, 3, 3)
    assert gt.nn.conv1d(gt.zeros((2, 1, 1)), w).shape == (2, 0, 3)
    assert gt.nn.max_pool(gt.zeros((2, 1, 1)), 2).shape == (2, 0, 1)


SETTINGS = [
    ((1, 5, 4), (3, 4, 6), {"strides": (2,), "padding": "same", "dilations": (1,), "groups": 1}),
    ((2, 6, 4), (2, 2, 6), {"strides": (1,), "padding": "valid", "dilations": (2,), "groups": 2}),
    ((1, 5, 3), (3, 1, 6), {"strides": (2,), "padding": ((1, 2),), "dilations": (1,), "groups": 3}),
]


@pytest.mark.parametrize("block", [1, 300, 2000, 1 << 21])
@pytest.mark.parametrize(("x", "w", "settings"), SETTINGS)
def test_portable_and_numpy_kernels_agree(x, w, settings, block, monkeypatch):
    monkeypatch.setattr("gradtape.plugins.numpy.network._BLOCK", block)
    x, w = R(*x), R(*w)
    registry = gt.registry()
    y = registry.ops["conv"].kernel(np, x, w, **settings)
    plain = {name: value for name, value in settings.items() if name != "groups"}
    calls = [
        ("conv", (x, w), settings),
        ("conv_to_images", (y, w, x), settings),
        ("conv_to_filters", (y, x, w), settings),
    ]
    if settings["groups"] == 1:
        calls.append(("conv_transpose", (y, w), plain))
    for name, arrays, params in calls:
        kernel = registry.ops[name].kernel
        want = kernel(np, *arrays, **params)
        np.testing.assert_allclose(
            registry.kernels[name, "numpy"](*arrays, **params), want, atol=1e-13
        )
        portable = kernel(strict, *map(strict.asarray, arrays), **params)
        np.testing.assert_allclose(np.asarray(portable), want, atol=1e-13)


@pytest.mark.parametrize("padding", ["same", "valid"])
def test_pooling_kernels_need_no_more_than_the_array_api(padding):
    x = R(1, 5, 4, 2)
    params = {"window": (2, 2), "strides": (2, 1), "padding": padding}
    y = ops["max_pool"].raw(x, **params)
    for name, arrays in [
        ("max_pool", (x,)),
        ("max_pool_scatter", (y, x, y)),
        ("max_pool_gather", (x, x, y)),
        ("avg_pool", (x,)),
        ("avg_pool_scatter", (y, x)),
    ]:
        kernel = gt.registry().ops[name].kernel
        mine = kernel(strict, *map(strict.asarray, arrays), **params)
        np.testing.assert_allclose(np.asarray(mine), ops[name].raw(*arrays, **params))
