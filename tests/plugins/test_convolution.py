"""Convolutions and pooling: torch's values, gradients of two orders, traces, kernels, errors."""

from __future__ import annotations

import array_api_strict as strict
import numpy as np
import pytest
from gradcheck import check_gradients

import gradtape as gt
from gradtape.core.extend import ops
from gradtape.plugins.numpy.convolution_kernels import KERNELS

RNG = np.random.default_rng(0)


def R(*shape):
    return RNG.standard_normal(shape)


def apart(*shape):
    """Numbers that differ by more than the steps of finite differences."""
    return RNG.permutation(np.linspace(-2.0, 2.0, int(np.prod(shape)))).reshape(shape)


def loops(x, w, strides=1, padding="valid", dilations=1, groups=1):
    """A convolution over one or two axes, by its definition."""
    count = w.ndim - 2
    strides, dilations = ((n,) * count if np.ndim(n) == 0 else n for n in (strides, dilations))
    spans = [(k - 1) * d + 1 for k, d in zip(w.shape, dilations)]
    if padding == "valid":
        pads = [(0, 0)] * count
    elif padding == "same":
        totals = [max((-(-n // s) - 1) * s + span - n, 0)
                  for n, s, span in zip(x.shape[1:-1], strides, spans)]  # fmt: skip
        pads = [(t // 2, t - t // 2) for t in totals]
    else:
        pads = [tuple(p) for p in np.broadcast_to(padding, (count, 2))]
    x = np.pad(x, [(0, 0), *pads, (0, 0)])
    out = [(n - span) // s + 1 for n, span, s in zip(x.shape[1:-1], spans, strides)]
    y = np.zeros((len(x), *out, w.shape[-1]), np.result_type(x, w))
    each, per = w.shape[-2], w.shape[-1] // groups
    for at in np.ndindex(*out):
        corner = [i * s for i, s in zip(at, strides)]
        seen = x[(slice(None), *(slice(c, c + span, d) for c, span, d in
                                 zip(corner, spans, dilations)))]  # fmt: skip
        for f in range(w.shape[-1]):
            g = f // per
            part = seen[..., g * each : (g + 1) * each] * w[..., f]
            y[(slice(None), *at, f)] = part.reshape(len(x), -1).sum(1)
    return y


CONVOLUTIONS = [
    ((2, 5, 2), (3, 2, 3), {}),
    ((2, 6, 2), (3, 2, 2), {"strides": 2, "padding": "same"}),
    ((1, 7, 1), (2, 1, 2), {"dilations": 3, "padding": (2, 1)}),
    ((1, 4, 4), (2, 2, 4), {"groups": 2}),
    ((1, 4, 5, 2), (2, 3, 2, 2), {}),
    ((1, 5, 4, 2), (3, 3, 2, 2), {"padding": "same", "strides": (2, 1)}),
    ((1, 5, 5, 1), (2, 2, 1, 2), {"dilations": (2, 3), "padding": ((1, 0), (2, 1))}),
    ((1, 4, 4, 2), (2, 2, 1, 4), {"groups": 2, "padding": 1, "strides": 2}),
    ((1, 4, 3, 4), (2, 2, 2, 2), {"groups": 2}),
    ((2, 3, 3, 2), (1, 1, 2, 3), {}),
]
POOLS = [
    ((2, 5, 2), 2, {}),
    ((2, 5, 2), 2, {"padding": "same"}),
    ((1, 4, 5, 2), (2, 3), {"strides": 1}),
    ((1, 5, 5, 1), 3, {"strides": 2, "padding": "same"}),
    ((1, 5, 4, 1), (2, 1), {"padding": ((1, 1), (0, 0)), "strides": (3, 2)}),
]
CASES = {
    **{
        f"conv {x} {w} {s}": (lambda x, w, s=s: gt.nn.conv(x, w, **s),
                              lambda x, w, s=s: loops(x, w, **s), [R(*x), R(*w)])
        for x, w, s in CONVOLUTIONS
    },
    "conv complex": (lambda x, w: gt.nn.conv1d(x, w), loops,
                     [R(1, 4, 2) + 1j * R(1, 4, 2), R(2, 2, 1) + 1j * R(2, 2, 1)]),
    "depthwise": (
        lambda x, w: gt.nn.depthwise_conv(x, w, padding="same"),
        lambda x, w: loops(x, w.reshape(2, 2, 1, 6), padding="same", groups=2),
        [R(1, 3, 4, 2), R(2, 2, 2, 3)],
    ),
}  # fmt: skip
TRANSPOSED = [
    ((2, 3, 3), (2, 2, 3), {}),
    ((1, 3, 2), (3, 1, 2), {"strides": 2, "padding": "same"}),
    ((1, 3, 2, 2), (3, 2, 2, 2), {"strides": (2, 3)}),
    ((1, 3, 3, 1), (3, 3, 2, 1), {"strides": 2, "padding": 1, "dilations": (1, 2)}),
]


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


def test_values_are_those_of_the_definition(case):
    ours, theirs, inputs = case
    want = theirs(*inputs)
    result = ours(*map(gt.constant, inputs))
    assert result.shape == want.shape
    np.testing.assert_allclose(result.numpy(), want, atol=1e-13)


def test_gradients_of_two_orders(case):
    ours, _, inputs = case
    check_gradients(ours, *inputs)


@pytest.mark.parametrize(("x", "w", "settings"), TRANSPOSED)
def test_transposed_convolution_is_the_adjoint(x, w, settings):
    x, w = R(*x), R(*w)
    y = gt.nn.conv_transpose(x, w, **settings)
    other = R(*y.shape)
    back = gt.nn.conv(other, w, **settings)
    assert back.shape == x.shape
    assert np.sum(y.numpy() * other) == pytest.approx(np.sum(back.numpy() * x))
    check_gradients(lambda x, w: gt.nn.conv_transpose(x, w, **settings), x, w)


def traced_as_eager(ours, *inputs):
    xs = [gt.constant(x) for x in inputs]

    def run(*xs):
        with gt.GradientTape() as tape:
            tape.watch(xs)
            y = ours(*xs)
        return [y, *tape.gradient(y, list(xs))]

    want = run(*xs)
    shapes = [[None] * x.ndim for x in xs]
    specs = [gt.TensorSpec(s, x.dtype) for s, x in zip(shapes, xs, strict=True)]
    for traced in (gt.function(run), gt.function(input_signature=specs)(run)):
        for mine, theirs in zip(traced(*xs), want, strict=True):
            np.testing.assert_allclose(mine.numpy(), theirs.numpy(), atol=1e-13)
    output = gt.function(ours).get_concrete_function(*xs).graph.outputs[0]
    assert (output.shape, output.dtype) == (want[0].shape, want[0].dtype)


@pytest.mark.parametrize(("x", "w", "settings"), CONVOLUTIONS)
def test_one_trace_of_convolutions_with_unknown_sizes(x, w, settings):
    traced_as_eager(lambda x, w: gt.nn.conv(x, w, **settings), R(*x), R(*w))


@pytest.mark.parametrize(("x", "w", "settings"), TRANSPOSED)
def test_one_trace_of_transposed_convolutions_with_unknown_sizes(x, w, settings):
    traced_as_eager(lambda x, w: gt.nn.conv_transpose(x, w, **settings), R(*x), R(*w))


@pytest.mark.parametrize("pool", [gt.nn.max_pool, gt.nn.avg_pool])
@pytest.mark.parametrize(("shape", "window", "settings"), POOLS)
def test_pooling_has_gradients_and_traces(pool, shape, window, settings):
    def run(x):
        return pool(x, window, **settings)

    check_gradients(run, apart(*shape))
    traced_as_eager(run, apart(*shape))


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


@pytest.mark.parametrize(("x", "w", "settings"), SETTINGS)
def test_portable_and_numpy_kernels_agree(x, w, settings):
    x, w = R(*x), R(*w)
    registry = gt.registry().ops
    y = registry["conv"].kernel(np, x, w, **settings)
    plain = {name: value for name, value in settings.items() if name != "groups"}
    calls = [
        ("conv", (x, w), settings),
        ("conv_to_images", (y, w, x), settings),
        ("conv_to_filters", (y, x, w), settings),
    ]
    if settings["groups"] == 1:
        calls.append(("conv_transpose", (y, w), plain))
    for name, arrays, params in calls:
        kernel = registry[name].kernel
        want = kernel(np, *arrays, **params)
        np.testing.assert_allclose(KERNELS[name](*arrays, **params), want, atol=1e-13)
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


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: gt.nn.conv(x, R(2, 3, 1)), ValueError, r"conv.*\(1, 4, 2\).*2 channels"),
        (lambda x: gt.nn.conv(x, R(2, 2, 2, 1)), ValueError, r"conv.*as many axes"),
        (lambda x: gt.nn.conv2d(x, R(2, 2, 2)), ValueError, "conv2d.*2 spatial axes"),
        (lambda x: gt.nn.conv(x, R(2, 2)), ValueError, "conv.*at least one spatial axis"),
        (lambda x: gt.nn.conv(x, R(2, 1, 3), groups=2), ValueError, "conv.*3 filters.*2 groups"),
        (lambda x: gt.nn.conv(x, R(2, 2, 1), strides=0), ValueError, "conv.*strides.*positive"),
        (lambda x: gt.nn.conv(x, R(2, 2, 1), strides=1.5), TypeError, "conv.*strides.*1.5"),
        (lambda x: gt.nn.conv(x, R(2, 2, 1), padding="full"), ValueError, "conv.*padding.*'full'"),
        (lambda x: gt.nn.conv(x, R(2, 2, 1), padding=-1), ValueError, "conv.*padding.*-1"),
        (lambda x: gt.nn.conv_transpose(x, R(2, 2, 1)), ValueError, "conv_transpose.*do not fit"),
        (lambda x: gt.nn.max_pool(x, (2, 2)), ValueError, "max_pool.*windows.*1 positive"),
        (lambda x: gt.nn.avg_pool(x > 0, 2), TypeError, "avg_pool.*bool"),
        (lambda x: gt.nn.max_pool(x > 0, 2), TypeError, "max_pool.*bool"),
        (lambda x: gt.nn.avg_pool(x[0], 2), ValueError, "avg_pool.*spatial"),
    ],
)
def test_errors_name_the_op_eagerly_and_traced(call, error, words):
    for run in (call, gt.function(call)):
        with pytest.raises(error, match=f"(?s){words}"):
            run(gt.constant(R(1, 4, 2)))
