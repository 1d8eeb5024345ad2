"""Special functions, choices, angles and bits: values, gradients, edges, dtypes, traces."""

from __future__ import annotations

import sys

import array_api_strict as strict
import numpy as np
import pytest
import scipy.special
from gradcheck import check_gradients

import gradtape as gt
from gradtape.errors import BackendUnavailable

REAL = np.array([-1.75, -0.6, 0.3, 0.85, 2.5])
POSITIVE = np.array([0.2, 0.7, 1.3, 2.5])
A, B = np.array([[0.7, -1.4, 2.3]]), np.array([[1.6], [-0.9]])
EDGES = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -2.0])
COUNTS = np.array([[2, -1, 0]])

# name -> (what the reference says, inputs away from kinks)
SAMPLES = {
    "fabs": (np.fabs, [REAL]),
    "cbrt": (np.cbrt, [REAL]),
    "deg2rad": (np.deg2rad, [REAL]),
    "rad2deg": (np.rad2deg, [REAL / 50]),
    "sinc": (np.sinc, [REAL]),
    "nan_to_num": (np.nan_to_num, [REAL]),
    "erf": (scipy.special.erf, [REAL]),
    "erfc": (scipy.special.erfc, [REAL]),
    "lgamma": (scipy.special.gammaln, [REAL]),
    "digamma": (scipy.special.digamma, [REAL]),
    "fmod": (np.fmod, [A, B]),
    "float_power": (np.float_power, [np.abs(A), B]),
    "logaddexp2": (np.logaddexp2, [A, B]),
    "fmax": (np.fmax, [A, B]),
    "fmin": (np.fmin, [A, B]),
    "heaviside": (np.heaviside, [A, B]),
    "copysign": (np.copysign, [A, B]),
    "ldexp": (np.ldexp, [A, COUNTS]),
}
UNARY = [name for name, (_, inputs) in SAMPLES.items() if len(inputs) == 1]
SCIPY = ("erf", "erfc", "lgamma", "digamma")


@pytest.mark.parametrize("name", SAMPLES)
def test_values_and_gradients_of_two_orders(name):
    reference, inputs = SAMPLES[name]
    op = getattr(gt, name)
    np.testing.assert_allclose(op(*inputs).numpy(), reference(*inputs), rtol=1e-14)
    # a power, so that the second order of what is linear is not zero
    check_gradients(lambda *xs: op(*xs) ** 2, *inputs)


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_edges_and_dtypes_are_numpys(name):
    reference, inputs = SAMPLES[name]
    op = getattr(gt, name)
    if len(inputs) == 1:
        pairs = [(EDGES,)]
    elif name == "ldexp":
        pairs = [(EDGES[:, None], COUNTS)]
    else:
        pairs = [(EDGES[:, None], EDGES)]
    np.testing.assert_allclose(op(*pairs[0]).numpy(), reference(*pairs[0]), rtol=1e-15)
    for dtype in ("float16", "float32", "int8", "int32"):
        if name in SCIPY and dtype != "float32":
            continue  # its kernels widen half precision, ours keep it
        xs = [
            x if x is COUNTS else np.abs(x).astype(dtype) + x.dtype.type(1).astype(dtype)
            for x in inputs
        ]
        want = reference(*xs)
        got = op(*xs)
        assert got.dtype == want.dtype
        traced = gt.function(op)(*map(gt.constant, xs))
        assert traced.dtype == want.dtype
        tolerance = 16 * np.finfo(want.dtype).eps if want.dtype.kind == "f" else 0
        np.testing.assert_allclose(got.numpy(), want, rtol=tolerance)
        np.testing.assert_array_equal(traced.numpy(), got.numpy())


@pytest.mark.parametrize("name", SAMPLES)
def test_one_trace_serves_every_shape(name):
    _, inputs = SAMPLES[name]
    op = getattr(gt, name)

    @gt.function(input_signature=[gt.TensorSpec(None, x.dtype) for x in inputs])
    def slopes(*xs):
        floats = [x for x in xs if x.dtype.kind == "f"]
        with gt.GradientTape() as tape:
            tape.watch(floats)
            y = op(*xs)
        return [y, *tape.gradient(y, floats, unconnected_gradients="zero")]

    for xs in (inputs, [x.ravel()[:1] for x in inputs], [x.ravel()[0] for x in inputs]):
        tensors = [gt.constant(x) for x in xs]
        floats = [x for x in tensors if x.dtype.kind == "f"]
        with gt.GradientTape() as tape:
            tape.watch(floats)
            y = op(*tensors)
        want = [y, *tape.gradient(y, floats, unconnected_gradients="zero")]
        for mine, theirs in zip(slopes(*tensors), want, strict=True):
            np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=1e-14)


@pytest.mark.parametrize("name", [n for n in SAMPLES if n not in (*SCIPY, "float_power")])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_portable_kernels_run_on_a_strict_library(name):
    reference, inputs = SAMPLES[name]
    kernel = gt.registry().ops[name].kernel
    given = [strict.asarray(x) for x in inputs]
    run = getattr(strict, kernel)(*given) if isinstance(kernel, str) else kernel(strict, *given)
    np.testing.assert_allclose(np.asarray(run), reference(*inputs), rtol=1e-13)


# -- what each is careful about --------------------------------------------------------------------


def slope(fn, *xs):
    xs = [gt.constant(x) for x in xs]
    with gt.GradientTape() as tape:
        tape.watch(xs)
        y = fn(*xs)
    return [None if g is None else g.tolist() for g in tape.gradient(y, xs)]


def test_sinc_is_exact_near_zero_at_every_order():
    points = np.array([-0.7, -1e-3, -1e-9, 0.0, 1e-5, 0.3, 0.62, 0.65, 3.2])
    check_gradients(gt.sinc, points, order=4)

    def derivative(fn):
        def at(x):
            with gt.GradientTape() as tape:
                tape.watch(x)
                y = fn(x)
            return tape.gradient(y, x)

        return at

    fn, orders = gt.sinc, []
    for _ in range(4):
        fn = derivative(fn)
        orders.append(fn(gt.constant(np.float64(0.0))).item())
    assert orders == pytest.approx([0.0, -(np.pi**2) / 3, 0.0, np.pi**4 / 5])


def test_holomorphic_functions_take_complex_numbers():
    z = np.array([0.5 + 0.25j, -0.1 + 0.02j, 0.0, 1.5 - 0.5j])
    np.testing.assert_allclose(gt.sinc(z).numpy(), np.sinc(z), rtol=1e-13)
    np.testing.assert_allclose(gt.erf(z).numpy(), scipy.special.erf(z), rtol=1e-14)
    check_gradients(gt.sinc, z)
    check_gradients(gt.erf, z)
    assert gt.erf(z.astype("complex64")).dtype == "complex64"


def test_nan_loses_and_ties_go_to_the_first():
    x, y = [np.nan, 1.0, np.nan, 2.0], [3.0, np.nan, np.nan, 2.0]
    for op in (gt.fmax, gt.fmin):
        np.testing.assert_array_equal(op(x, y).numpy(), np.array([3.0, 1.0, np.nan, 2.0], "f4"))
        assert slope(op, x, y) == [[0.0, 1.0, 1.0, 1.0], [1.0, 0.0, 0.0, 0.0]]
    assert slope(lambda x: gt.fmax(x, 2.0), [1.0, 3.0, np.nan]) == [[0.0, 1.0, 0.0]]


def test_nan_to_num_replaces_values_and_stops_their_gradients():
    np.testing.assert_array_equal(gt.nan_to_num(EDGES).numpy(), np.nan_to_num(EDGES))
    got = gt.nan_to_num(EDGES, nan=7.0, posinf=8.0, neginf=-8.0)
    assert got.tolist() == [0.0, 0.0, 8.0, -8.0, 7.0, 1.0, -2.0]
    assert slope(gt.nan_to_num, EDGES) == [[1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0]]
    z = np.array([complex(np.nan, 1.0), complex(2.0, np.inf)], "complex64")
    np.testing.assert_array_equal(gt.nan_to_num(z).numpy(), np.nan_to_num(z))
    check_gradients(gt.nan_to_num, np.array([1.0 + 2.0j]))
    with gt.GradientTape() as tape:
        tape.watch(x := gt.constant(z))
        parts = [gt.real(y := gt.nan_to_num(x)), gt.imag(y)]
    assert tape.gradient(parts, x).tolist() == [1j, 1.0]
    assert gt.nan_to_num([1, 2]).dtype == "int64"
    with pytest.raises(ValueError, match="copy=True"):
        gt.nan_to_num(EDGES, copy=False)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_slopes_at_kinks():
    assert slope(gt.fabs, [0.0]) == [[0.0]]
    assert slope(gt.copysign, [0.0, 2.0], [-1.0, -1.0]) == [[0.0, -1.0], [0.0, 0.0]]
    assert slope(gt.heaviside, [0.0, 2.0], [0.5, 0.5]) == [[0.0, 0.0], [1.0, 0.0]]
    assert slope(gt.logaddexp2, [-np.inf], [-np.inf]) == [[0.0], [0.0]]
    assert slope(gt.cbrt, [0.0]) == [[np.inf]]


def test_fmod_has_the_sign_of_the_dividend():
    x, y = np.array([-7.5, 7.5, -7.5]), np.array([2.0, -2.0, -2.0])
    assert gt.fmod(x, y).tolist() == np.fmod(x, y).tolist()
    assert slope(gt.fmod, x, y)[1] == [3.0, 3.0, -3.0]


def test_polygamma_and_the_third_derivative_of_lgamma():
    x = np.array([0.4, 1.7, -0.5])
    for n in range(4):
        want = scipy.special.polygamma(n, x)
        np.testing.assert_allclose(gt.polygamma(n, x).numpy(), want, rtol=1e-13)
    check_gradients(gt.lgamma, x, order=3)
    with pytest.raises(ValueError, match=r"polygamma.*-1"):
        gt.polygamma(-1, x)


def test_special_functions_keep_float_dtypes_and_widen_integers():
    for name in SCIPY:
        op = getattr(gt, name)
        assert op(np.ones(2, "float16")).dtype == "float16"
        assert op(np.ones(2, "int8")).dtype == "float64"
        assert gt.function(op)(gt.constant(np.ones(2, "int8"))).dtype == "float64"


def test_without_scipy_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.special", None)
    with pytest.raises(BackendUnavailable, match=r"erf.*pip install scipy"):
        gt.erf([1.0])
    assert gt.sinc(0.0).item() == 1.0


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_modf_and_divmod_are_numpys():
    x = np.array([-3.25, 2.75, np.inf, -np.inf, -0.0])
    for ours, theirs in zip(gt.modf(x), np.modf(x), strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs)
        np.testing.assert_array_equal(np.signbit(ours.numpy()), np.signbit(theirs))
    check_gradients(lambda x: gt.modf(x)[0] ** 2, REAL)
    for ours, theirs in zip(gt.divmod(A, B), np.divmod(A, B), strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs)
    assert gt.modf([3])[0].dtype == "float64"


def test_float_power_is_in_double_precision():
    assert gt.float_power([2, 3], -1).tolist() == [0.5, 1.0 / 3.0]
    assert gt.float_power(np.float32(2.0), 2).dtype == "float64"
    assert gt.float_power(2j, 2).dtype == "complex128"
    x = gt.constant([2.0])
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = gt.float_power(x, 3)
    g = tape.gradient(y, x)
    assert (g.tolist(), g.dtype) == ([12.0], np.float32)


def test_bits_and_signs():
    x, y = np.array([12, 10, -1]), np.array([3, 2, 1])
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"):
        np.testing.assert_array_equal(getattr(gt, name)(x, y).numpy(), getattr(np, name)(x, y))
    np.testing.assert_array_equal(gt.invert(x).numpy(), ~x)
    np.testing.assert_array_equal(gt.signbit(EDGES).numpy(), np.signbit(EDGES))
    np.testing.assert_array_equal(gt.isposinf(EDGES).numpy(), np.isposinf(EDGES))
    np.testing.assert_array_equal(gt.isneginf(EDGES).numpy(), np.isneginf(EDGES))
    np.testing.assert_array_equal(
        gt.nextafter(1.0, [2.0]).numpy(), np.nextafter(1.0, [2.0], dtype="f4")
    )
    with pytest.raises(TypeError, match="bitwise_and"):
        gt.bitwise_and([1.0], [2.0])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("equal_nan", [False, True])
def test_isclose_is_numpys(equal_nan):
    a, b = EDGES[:, None], EDGES + np.array([0, 0, 0, 0, 0, 1e-9, 1e-3])
    got = gt.isclose(a, b, equal_nan=equal_nan).numpy()
    np.testing.assert_array_equal(got, np.isclose(a, b, equal_nan=equal_nan))


def test_shape_errors_name_the_op():
    for name in ("fmod", "fmax", "copysign", "heaviside", "logaddexp2"):
        op = getattr(gt, name)
        for run in (op, gt.function(op)):
            with pytest.raises(ValueError, match=rf"{name}.*\(?2"):
                run(gt.ones(2), gt.ones(3))
