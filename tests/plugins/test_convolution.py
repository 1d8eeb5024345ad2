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
    monkeypatch.setattr("gradtape.plugins.numpy.convolution._BLOCK", block)
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


def random_windows(rng, channels):
    """Draw the shapes of images and filters, and settings of a convolution that fit."""
    n = int(rng.integers(1, 4))
    kernel, strides, dilations = (rng.integers(1, high, n).tolist() for high in (4, 3, 3))
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    sizes = [span + int(rng.integers(0, 12 // n)) for span in spans]
    pads = tuple((int(a), int(b)) for a, b in rng.integers(0, 4, (n, 2)))
    settings = {
        "strides": tuple(strides),
        "padding": ["same", "valid", pads][rng.integers(3)],
        "dilations": tuple(dilations),
    }
    shape = (int(rng.integers(1, 4)), *sizes, channels)
    return shape, (*kernel, channels, int(rng.integers(1, 20))), settings


@pytest.mark.parametrize("seed", range(30))
def test_depthwise_kernels_agree_for_random_windows(seed):
    rng = np.random.default_rng(seed)
    groups, times = rng.integers(2, 5, 2).tolist()
    shape, (*kernel, _, _), settings = random_windows(rng, groups)
    settings["groups"] = groups
    x, w = (rng.integers(-4, 5, s).astype("f") for s in (shape, (*kernel, 1, groups * times)))
    if seed % 3 == 0:
        w = w[..., :groups]
    registry = gt.registry()
    y = registry.ops["conv"].kernel(np, x, w, **settings)
    g = rng.integers(-4, 5, y.shape).astype("f")
    for name, arrays in [
        ("conv", (x, w)),
        ("conv_to_images", (g, w, x)),
        ("conv_to_filters", (g, x, w)),
    ]:
        want = registry.ops[name].kernel(np, *arrays, **settings)
        out = np.full(want.shape, np.nan, want.dtype)
        assert registry.kernels[name, "numpy"](*arrays, **settings, out=out) is out
        np.testing.assert_array_equal(out, want)


def array_in_any_layout(rng, values):
    """Return the same values, perhaps with other strides."""
    return values if rng.integers(2) else np.asfortranarray(values)


@pytest.mark.parametrize("seed", range(60))
def test_kernels_agree_for_random_windows(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    block = [1, 300, 1 << 20][seed % 3]
    monkeypatch.setattr("gradtape.plugins.numpy.convolution._BLOCK", block)
    shape, filters, settings = random_windows(rng, int(rng.integers(1, 7)))
    dtype = ["f", "d", "D"][rng.integers(3)]
    x, w = (rng.integers(-4, 5, s).astype(dtype) for s in (shape, filters))
    registry = gt.registry()
    y = registry.ops["conv"].kernel(np, x, w, **settings)
    g = rng.integers(-4, 5, y.shape).astype(dtype)
    for name, arrays in [
        ("conv", (x, w)),
        ("conv_to_images", (g, w, x)),
        ("conv_to_filters", (g, x, w)),
        ("conv_transpose", (g, w)),
    ]:
        kernel = registry.kernels[name, "numpy"]
        want = registry.ops[name].kernel(np, *arrays, **settings)
        arrays = [array_in_any_layout(rng, a) for a in arrays]
        found = kernel(*arrays, **settings)
        np.testing.assert_array_equal(found, want)  # exact, since they sum integers
        assert found.dtype == want.dtype
        out = np.full(want.shape, np.nan, want.dtype)
        assert kernel(*arrays, **settings, out=out) is out
        np.testing.assert_array_equal(out, want)


def random_pooling(rng):
    """Draw images with ties, infinities and perhaps nan, and the parameters of an op of pools."""
    n = int(rng.integers(1, 4))
    window = tuple(rng.integers(1, 4, n).tolist())
    apart = rng.integers(3)  # adjacent windows most of the time
    strides = window if apart else tuple(rng.integers(1, 4, n).tolist())
    sizes = [k + int(rng.integers(0, 8)) for k in window]
    dtype = ["f", "d", "e", "i"][rng.integers(4)]
    x = rng.integers(-2, 3, (int(rng.integers(1, 4)), *sizes, int(rng.integers(1, 5))))
    x = x.astype(dtype)
    if dtype != "i":
        x[rng.random(x.shape) < 0.1] = -np.inf
        if rng.integers(2):
            x[rng.random(x.shape) < 0.1] = np.nan
    padding = ["valid", "same"][rng.integers(2)]
    return x, {"window": window, "strides": strides, "padding": padding}


@pytest.mark.parametrize("seed", range(60))
def test_pooling_kernels_agree_for_random_windows(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    monkeypatch.setattr("gradtape.plugins.numpy.pooling._BLOCK", [1, 300, 1 << 20][seed % 3])
    x, params = random_pooling(rng)
    registry = gt.registry()
    y = registry.ops["max_pool"].kernel(np, x, **params)
    g = rng.standard_normal(y.shape).astype(x.dtype if x.dtype.kind == "f" else "d")
    g[rng.random(y.shape) < 0.1] = np.inf
    calls = [("max_pool", (x,)), ("max_pool_scatter", (g, x, y))]
    if x.dtype.kind == "f":
        calls += [("avg_pool", (x,)), ("avg_pool_scatter", (g, x))]
    for name, arrays in calls:
        kernel = registry.kernels[name, "numpy"]
        with np.errstate(invalid="ignore"):
            want = registry.ops[name].kernel(np, *arrays, **params)
            arrays = [array_in_any_layout(rng, a) for a in arrays]
            found = kernel(*arrays, **params)
            out = np.full(want.shape, 77, want.dtype)
            assert kernel(*arrays, **params, out=out) is out
        np.testing.assert_array_equal(found, want)
        np.testing.assert_array_equal(out, want)
        assert found.dtype == want.dtype


@pytest.mark.parametrize("executor", ["planned", "fused"])
@pytest.mark.parametrize("shape", [(5, 16, 16, 3), (70, 16, 16, 8), (9, 32, 32, 16), (600, 5)])
def test_a_compiled_function_of_short_rows_has_the_bits_of_the_plain_one(shape, executor):
    if executor == "fused":
        pytest.importorskip("llvmlite")
    channels = shape[-1]
    x, (a, b) = R(*shape).astype("f"), R(2, channels).astype("f")
    c = R(*(1,) * (len(shape) - 1), channels).astype("f")

    def run(x, a, b, c):
        y = gt.clip(gt.tanh(x * a + b) - c, gt.minimum(a, b), gt.maximum(a, b))
        axes = tuple(range(len(shape) - 1))
        sums = gt.sum(y * x, axis=axes), gt.sum(y * x - c, axis=axes, keepdims=True)
        return y, x + a, *sums, gt.sum(-0.0 * gt.abs(x), axis=axes)

    found = (gt.function(run, executor=how)(x, a, b, c) for how in (executor, "plain"))
    for mine, theirs in zip(*found, strict=True):
        np.testing.assert_array_equal(mine, theirs)
        np.testing.assert_array_equal(np.signbit(mine), np.signbit(theirs))


@pytest.mark.parametrize("executor", ["planned", "fused"])
def test_a_compiled_step_has_the_bits_of_the_plain_one(executor):
    if executor == "fused":
        pytest.importorskip("llvmlite")
    images, labels = R(4, 9, 9, 1).astype("f"), np.array([0, 1, 2, 1])
    shapes = [(3, 3, 1, 4), (4,), (2, 2, 4, 3), (3,), (12, 3)]
    weights = [R(*shape).astype("f") for shape in shapes]

    def trained(how):
        variables = [gt.Variable(w) for w in weights]
        optimizer = gt.training.Adam(0.01)

        @gt.function(executor=how)
        def step(x, labels):
            a, b, c, d, e = variables
            with gt.GradientTape() as tape:
                tape.watch(x)
                h = gt.nn.max_pool2d(gt.nn.relu(gt.nn.conv2d(x, a, padding="same") + b), 2)
                h = gt.nn.avg_pool2d(gt.nn.conv2d(h, c, padding="same") + d, 2)
                logits = gt.reshape(h, (-1, 12)) @ e
                loss = gt.mean(
                    gt.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
                )
            *grads, to_x = tape.gradient(loss, [*variables, x])
            optimizer.apply_gradients(zip(grads, variables, strict=True))
            return loss, to_x

        found = [step(gt.constant(images), labels) for _ in range(3)]
        return [a.numpy() for pair in found for a in pair] + [v.numpy() for v in variables]

    for mine, theirs in zip(trained(executor), trained("plain"), strict=True):
        np.testing.assert_array_equal(mine, theirs)


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
