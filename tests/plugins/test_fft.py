"""Fourier transforms: NumPy's values, gradients of two orders, traces of unknown sizes, errors."""

from __future__ import annotations

import array_api_strict as strict
import numpy as np
import pytest
from gradcheck import check_gradients

import gradtape as gt
from gradtape.core.extend import ops

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 5))
Y = RNG.standard_normal((2, 4, 3))
Z = RNG.standard_normal((3, 5)) + 1j * RNG.standard_normal((3, 5))
W = RNG.standard_normal((2, 4, 3)) + 1j * RNG.standard_normal((2, 4, 3))

# name, input, arguments
SAMPLES = [
    *((name, x, {"norm": norm}) for name in ("fft", "ifft") for x in (X, Z)
      for norm in (None, "ortho", "forward")),
    *((name, x, {"n": n, "axis": 0}) for name in ("fft", "ifft") for x in (X, Z) for n in (2, 4)),
    *(("rfft", X, {"n": n, "norm": norm}) for n in (None, 4, 7) for norm in ("backward", "ortho")),
    ("rfft", Y, {"axis": 1, "norm": "forward"}),
    *(("irfft", Z, {"n": n, "norm": norm}) for n in (None, 5, 6, 9, 12)
      for norm in ("backward", "ortho", "forward")),
    ("irfft", X, {"axis": 0}),
    ("hfft", Z, {}),
    ("hfft", Z, {"n": 7, "norm": "ortho"}),
    ("ihfft", X, {}),
    ("ihfft", X, {"n": 4, "axis": 0, "norm": "forward"}),
    *((name, W, {}) for name in ("fftn", "ifftn", "fft2", "ifft2", "irfftn", "irfft2")),
    *((name, Y, {}) for name in ("fftn", "ifftn", "fft2", "ifft2", "rfftn", "rfft2")),
    ("fftn", W, {"s": (3, 5), "axes": (0, 2), "norm": "ortho"}),
    ("fftn", W, {"axes": (1,)}),
    ("fft2", Y, {"s": (-1, 2)}),
    ("rfftn", Y, {"s": (3, 3), "axes": (2, 0), "norm": "forward"}),
    ("rfft2", Y, {"s": (5, 4)}),
    ("irfftn", W, {"s": (3, 3), "axes": (0, 1)}),
    ("irfft2", W, {"s": (4, 5), "norm": "ortho"}),
    *((name, x, {}) for name in ("fftshift", "ifftshift") for x in (X, W)),
    *((name, X, {"axes": axes}) for name in ("fftshift", "ifftshift") for axes in (1, (0, -1))),
]  # fmt: skip


@pytest.fixture(params=SAMPLES, ids=lambda sample: f"{sample[0]}{sample[1].dtype}{sample[2]}")
def sample(request):
    name, x, arguments = request.param
    return name, (lambda x: getattr(gt.fft, name)(x, **arguments)), x, arguments


def test_values_are_numpys(sample):
    name, ours, x, arguments = sample
    want = getattr(np.fft, name)(x, **arguments)
    for result in (ours(gt.constant(x)), getattr(np.fft, name)(gt.constant(x), **arguments)):
        assert result.dtype == want.dtype
        np.testing.assert_allclose(result.numpy(), want, rtol=1e-12, atol=1e-13)


def test_gradients_of_two_orders(sample):
    _, ours, x, _ = sample
    check_gradients(ours, x)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_single_precision_stays_single(sample, dtype):
    name, ours, x, arguments = sample
    x = x.astype(np.result_type(dtype, "complex64") if x.dtype.kind == "c" else dtype)
    c = gt.constant(x)
    with gt.GradientTape() as tape:
        tape.watch(c)
        y = ours(c)
    assert y.dtype == getattr(np.fft, name)(x, **arguments).dtype
    assert tape.gradient(y, c).dtype == x.dtype


def test_one_trace_with_unknown_sizes_gives_values_and_gradients(sample):
    _, ours, x, _ = sample

    def run(x):
        with gt.GradientTape() as tape:
            tape.watch(x)
            y = ours(x)
        return y, tape.gradient(y, x)

    c = gt.constant(x)
    want, grad = run(c)
    unknown = gt.TensorSpec([None] * x.ndim, x.dtype)
    for traced in (gt.function(run), gt.function(input_signature=[unknown])(run)):
        y, slope = traced(c)
        np.testing.assert_allclose(y.numpy(), want.numpy(), atol=1e-13)
        np.testing.assert_allclose(slope.numpy(), grad.numpy(), atol=1e-13)
    output = gt.function(ours).get_concrete_function(c).graph.outputs[0]
    assert output.shape == want.shape
    assert output.dtype == want.dtype


def test_one_trace_serves_every_rank():
    @gt.function(input_signature=[gt.TensorSpec(None, "float64")])
    def traced(x):
        with gt.GradientTape() as tape:
            tape.watch(x)
            y = gt.fft.irfft(gt.fft.rfft(x, n=4) * 2.0, n=4)
        return y, tape.gradient(y, x)

    for x in (X, Y, X[0]):
        y, slope = traced(gt.constant(x))
        np.testing.assert_allclose(y.numpy(), 2 * np.fft.irfft(np.fft.rfft(x, 4), 4), atol=1e-13)
        assert slope.shape == x.shape


def test_round_trips():
    np.testing.assert_allclose(gt.fft.ifft(gt.fft.fft(Z)).numpy(), Z)
    np.testing.assert_allclose(gt.fft.irfftn(gt.fft.rfftn(X), X.shape).numpy(), X)
    np.testing.assert_allclose(gt.fft.hfft(gt.fft.ihfft(X), 5).numpy(), X)
    np.testing.assert_array_equal(gt.fft.ifftshift(gt.fft.fftshift(X)).numpy(), X)


def test_frequencies_are_numpys():
    assert gt.fft.fftfreq(5, 0.1).dtype == "float32"
    for name in ("fftfreq", "rfftfreq"):
        ours = getattr(gt.fft, name)(6, 0.25, dtype="float64")
        np.testing.assert_array_equal(ours.numpy(), getattr(np.fft, name)(6, 0.25))


def test_other_dtypes_become_complex_as_in_numpy():
    for dtype in ("int32", "bool", "float16"):
        x = (X > 0).astype(dtype)
        for name in ("fft", "rfft", "ifft"):
            want = getattr(np.fft, name)(x)
            got = getattr(gt.fft, name)(gt.constant(x))
            assert got.dtype == want.dtype
            np.testing.assert_allclose(got.numpy(), want, atol=1e-3 if dtype == "float16" else 0)


def test_a_convolution_by_spectra_has_the_gradient_of_the_sum():
    kernel = RNG.standard_normal(5)

    def circular(x, kernel):
        return np.fft.irfft(np.fft.rfft(x) * np.fft.rfft(kernel), n=5)

    x, k = gt.constant(X), gt.constant(kernel)
    direct = sum(kernel[i] * np.roll(X, i, axis=-1) for i in range(5))
    np.testing.assert_allclose(circular(x, k).numpy(), direct)
    check_gradients(circular, X, kernel)


@pytest.mark.parametrize(
    ("name", "arrays", "params"),
    [
        ("fftn", (W,), {"axes": (0, 2), "norm": "ortho"}),
        ("ifftn", (Y,), {"axes": (-1,), "norm": "forward"}),
        ("rfft", (Y,), {"axis": 1, "norm": "backward"}),
        ("rfft_adjoint", (W, Y), {"axis": -1, "norm": "ortho"}),
        ("irfft", (W,), {"n": None, "axis": 1, "norm": "backward"}),
        ("irfft_adjoint", (Y,), {"n": 3, "axis": -1, "norm": "backward"}),
        ("crop_or_pad", (Y,), {"sizes": (1, 5), "axes": (0, -1)}),
        ("crop_or_pad_like", (Y, X), {"axes": (-1,)}),
        ("fftshift", (Y,), {"axes": None, "inverse": True}),
    ],
)
def test_kernels_need_no_more_than_the_array_api(name, arrays, params):
    if name == "rfft_adjoint":
        arrays = (arrays[0][..., :2], arrays[1])
    kernel = gt.registry().ops[name].kernel
    mine = kernel(strict, *(strict.asarray(x) for x in arrays), **params)
    np.testing.assert_allclose(np.asarray(mine), ops[name].raw(*arrays, **params), atol=1e-14)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: gt.fft.fft(x, axis=2), ValueError, "fft.*axis 2"),
        (lambda x: gt.fft.fft(x, n=0), ValueError, "fft.*at least 1, got 0"),
        (lambda x: gt.fft.fft(x, norm="up"), ValueError, "fft.*norm.*'up'"),
        (lambda x: gt.fft.fft(x[:, :0]), ValueError, r"fft.*\(3, 0\).*no points"),
        (lambda x: gt.fft.fft(x, axis=(0, 1)), TypeError, "fft.*integer"),
        (lambda x: gt.fft.rfft(gt.fft.fft(x)), TypeError, "rfft.*complex128.*use fft"),
        (lambda x: gt.fft.fftn(x, s=(3,), axes=(0, 1)), ValueError, "fftn.*sizes"),
        (lambda x: gt.fft.rfftn(x, axes=()), ValueError, "rfftn.*at least one axis"),
        (lambda x: gt.fft.fftshift(x, 3), ValueError, "fftshift.*axis 3"),
    ],
)
def test_errors_name_the_op_eagerly_and_traced(call, error, words):
    for run in (call, gt.function(call)):
        with pytest.raises(error, match=f"(?s){words}"):
            run(gt.constant(X))
