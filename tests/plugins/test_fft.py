"""Fourier transforms: NumPy's functions of tensors, ranks, round trips, frequencies, dtypes."""

from __future__ import annotations

import numpy as np
import pytest
from families.fft import CALLS, RNG, X, Y, Z
from gradcheck import check_gradients

import gradtape as gt


@pytest.mark.parametrize(("name", "x", "arguments"), CALLS)
def test_numpys_functions_reach_ours(name, x, arguments):
    theirs = getattr(np.fft, name)
    result, want = theirs(gt.constant(x), **arguments), theirs(x, **arguments)
    assert isinstance(result, gt.Tensor)
    assert result.dtype == want.dtype
    np.testing.assert_allclose(result.numpy(), want, rtol=1e-12, atol=1e-13)


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
