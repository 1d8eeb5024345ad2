"""Values, dtypes, shapes and errors at the edges of NumPy's functions, in tables by family."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.testing import check_gradients

INF, NAN = np.inf, np.nan
INTEGERS = "int8 uint8 int16 uint16 int32 uint32 int64 uint64".split()
REALS = ["bool", *INTEGERS, "float16", "float32", "float64"]
NUMBERS = [*REALS, "complex64", "complex128"]
Call = Callable[..., Any]


def array(values: Any, dtype: str = "float64") -> np.ndarray[Any, Any]:
    return np.array(values, dtype)


def same(call: Call, *arrays: Any, exact: bool = False) -> None:
    """Check a call against NumPy: values, dtypes and shapes, or the type of the error."""
    tensors = [gt.constant(x) for x in arrays]
    with np.errstate(all="ignore"):
        try:
            wanted = call(*arrays)
        except Exception as error:
            # NumPy has private types for casts
            with pytest.raises(TypeError if isinstance(error, TypeError) else type(error)):
                call(*tensors)
            return
        found = call(*tensors)
    several = isinstance(wanted, (tuple, list))
    for mine, right in zip(
        found if several else [found], wanted if several else [wanted], strict=True
    ):
        right = np.asarray(right)
        assert isinstance(mine, gt.Tensor)
        assert (mine.dtype, mine.shape) == (right.dtype, right.shape)
        double = right.dtype.kind not in "fc" or np.finfo(right.dtype).precision > 6
        near = 0.0 if exact else 1e-12 if double else 1e-3
        np.testing.assert_allclose(mine.numpy(), right, rtol=near, atol=near)


# -- quantiles -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", INTEGERS)
def test_quantiles_of_integers_do_not_overflow(dtype: str) -> None:
    ends = np.iinfo(dtype)
    x = array([ends.min, ends.max, ends.max - 1, ends.min + 3, 7], dtype)
    for rows in (x[:4], x, x[1:3]):
        for name, args in {
            "median": (),
            "nanmedian": (),
            "quantile": (0.3,),
            "nanquantile": (0.7,),
            "percentile": (41,),
            "nanpercentile": (90.0,),
        }.items():
            want = getattr(np, name)(rows.astype("float64"), *args)  # NumPy's own overflow
            for call in (getattr(gt, name), getattr(np, name)):
                found = call(gt.constant(rows), *args)
                assert found.dtype == "float64"
                np.testing.assert_allclose(found, want, rtol=1e-15)


def test_quantiles_of_half_precision_do_not_overflow() -> None:
    x = array([-60000, 60000, 59000, -1], "float16")
    for name, args in (("median", ()), ("nanmedian", ()), ("quantile", (0.4,))):
        found = getattr(gt, name)(x, *args)
        assert found.dtype == "float16"
        want = getattr(np, name)(x.astype("float64"), *args)
        np.testing.assert_allclose(found, want, rtol=1e-3)


@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
def test_the_dtype_of_quantiles_is_numpys(name: str) -> None:
    f = getattr(np, name)
    for dtype in REALS:
        x = array([1, 0, 3, 4], dtype)
        for q in (0.3, 1, array(0.3), array([0.3]), array(0.25, "float32"), array([1], "int64")):
            same(lambda a, q=q: f(a, q), x)
            same(lambda a, q=q: f(a, q, method="nearest"), x)
        same(lambda a: f(a, True), x)
    for q in (None, 1j, NAN, -0.1, np.zeros((1, 1, 1))):
        same(lambda a, q=q: f(a, q), x)


def test_quantiles_of_nothing_are_numpys() -> None:
    for shape in ((0,), (0, 3), (3, 0)):
        for dtype in ("bool", "int8", "float32"):
            for axis in (None, 0, -1):
                for f in (np.median, np.nanmedian):
                    same(lambda a, f=f, axis=axis: f(a, axis=axis), np.zeros(shape, dtype))
                for f in (np.quantile, np.nanquantile):
                    same(lambda a, f=f, axis=axis: f(a, 0.3, axis=axis), np.zeros(shape, dtype))
    assert np.isnan(gt.nanquantile(np.zeros((0, 3)), [0.1, 0.2], axis=0).numpy()).all()
    assert gt.nanquantile(np.zeros((0, 3)), [0.1, 0.2], axis=0).shape == (2, 3)


def test_a_quantile_beside_an_infinity_is_infinite() -> None:
    # NumPy gives nan for shares above a half
    x = gt.constant([-INF, 1.0, INF])
    for f in (gt.quantile, gt.nanquantile):
        assert f(x, [0.0, 0.2, 0.4, 0.5, 0.6, 0.9]).tolist() == [-INF, -INF, -INF, 1.0, INF, INF]
        assert np.isnan(f(x[::2], 0.4).item())


def of_fractions(f: Call, q: Any) -> Call:
    return lambda t: f(t, q)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_quantiles_have_gradients_at_promoted_dtypes(dtype: str) -> None:
    x = array([0.3, 2.0, -1.0, 5.0], dtype)
    q = array([0.2, 0.7])
    for f in (gt.quantile, gt.nanquantile):
        with gt.GradientTape() as tape:
            t = gt.constant(x)
            tape.watch(t)
            y = f(t, q)
        assert y.dtype == "float64"
        assert tape.gradient(y, t).dtype == dtype
        check_gradients(lambda t, f=f: f(t, q) ** 2, x.astype("float64"))
        batch = gt.constant(np.stack([x, x * 2]))
        want = np.stack([np.quantile(row, q) for row in batch.numpy()])
        np.testing.assert_allclose(gt.vmap(of_fractions(f, q))(batch), want, rtol=1e-6)
        unknown = gt.function(of_fractions(f, q), input_signature=[gt.TensorSpec([None], dtype)])
        np.testing.assert_allclose(unknown(gt.constant(x)), want[0], rtol=1e-6)


# -- covariances and condition numbers -------------------------------------------------------------

OBSERVED = array([[1.0, 4.0, 2.0, 8.0], [0.5, -1.0, 3.0, 2.0]])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("rowvar", [True, False])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (4,), (0, 3), (3, 0), (1, 4), (2, 4), (2, 2, 2)])
def test_covariances_of_few_or_no_observations_are_numpys(
    shape: tuple[int, ...], rowvar: bool
) -> None:
    x = np.linspace(-1.0, 2.0, int(np.prod(shape))).reshape(shape) ** 2
    for ddof in (None, 0, 4, 9, 1.5):
        same(lambda x, ddof=ddof: np.cov(x, rowvar=rowvar, ddof=ddof), x)
    for dtype in (None, "float32", "complex64"):
        same(lambda x, dtype=dtype: np.cov(x, rowvar=rowvar, dtype=dtype), x)
        same(lambda x, dtype=dtype: np.corrcoef(x, rowvar=rowvar, dtype=dtype), x)
    for other in (x, np.ones((1, 4)), np.zeros((0, 3))):
        same(lambda x, y: np.cov(x, y, rowvar=rowvar), x, other)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["fweights", "aweights"])
@pytest.mark.parametrize(
    "weights",
    [
        [1],
        [1, 2, 3, 4],
        [1.0, 2.0, 3.0, 4.0],
        [1.5, 2, 3, 4],
        [0, 0, 0, 0],
        [-1, 1, 1, 1],
        2,
        [[1]],
    ],
    ids=str,
)
def test_covariances_take_the_weights_that_numpy_takes(name: str, weights: Any) -> None:
    same(lambda x, w: np.cov(x, **{name: w}), OBSERVED, np.asarray(weights))
    same(lambda x, w: np.cov(x, **{name: w}, ddof=9), OBSERVED, np.asarray(weights))


def test_covariances_of_weighted_observations_have_gradients() -> None:
    w = array([1.0, 0.5, 2.0, 3.0])
    check_gradients(lambda x, w: gt.cov(x, aweights=w) ** 2, OBSERVED, w)
    check_gradients(gt.corrcoef, OBSERVED + 0.0)
    near = OBSERVED[0] * 3.0
    assert abs(gt.corrcoef(OBSERVED[0], near).numpy()).max() <= 1.0


@pytest.mark.parametrize("p", [None, 1, -1, 2, -2, INF, -INF, "fro"])
@pytest.mark.parametrize("shape", [(2, 2), (3, 2, 2), (0, 0), (2, 0, 0), (0, 2, 2)])
def test_singular_matrices_have_an_infinite_condition_number(
    p: Any, shape: tuple[int, ...]
) -> None:
    same(lambda x: np.linalg.cond(x, p), np.zeros(shape))
    x = np.broadcast_to(array([[2.0, 1.0], [0.3, 4.0]]), shape if shape[-1] == 2 else (2, 2)).copy()
    if x.size > 4:
        x[1] = 1.0
    if p is None or x.size <= 4:
        same(lambda x: np.linalg.cond(x, p), x)
    check_gradients(lambda x: gt.linalg.cond(x, p), array([[2.0, 1.0], [0.3, 4.0]]))
    batch = gt.constant(np.stack([np.zeros((2, 2)), array([[2.0, 1.0], [0.3, 4.0]])]))
    found = gt.vmap(lambda x: gt.linalg.cond(x, p))(batch)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(found, np.linalg.cond(batch.numpy(), p))


# -- truth, casts and rounding ---------------------------------------------------------------------

COMPLEX = array([[1j, 0, 2], [0, 0, NAN], [0, 1j, complex(0, NAN)]], "complex128")


def test_complex_numbers_are_true_unless_they_are_0() -> None:
    for z in (COMPLEX, COMPLEX.astype("complex64"), COMPLEX[0, 0], COMPLEX[:0]):
        found = gt.cast(z, "bool")
        assert found.dtype == "bool"
        np.testing.assert_array_equal(found, z.astype(bool))
        for f in (np.all, np.any):
            same(lambda z, f=f: f(z, where=[True, False, True]), z)
            same(f, z)
    same(lambda z: np.count_nonzero(z, axis=0), COMPLEX)
    traced = gt.function(lambda z: gt.cast(z, "bool"))
    np.testing.assert_array_equal(traced(gt.constant(COMPLEX)), COMPLEX != 0)
    np.testing.assert_array_equal(gt.vmap(lambda z: gt.all(z, where=True))(COMPLEX), [0, 0, 0])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("f", [np.var, np.std, np.nanvar, np.nanstd])
def test_variances_in_another_dtype_are_numpys(f: Call, dtype: str) -> None:
    z = array([1 + 2j, 3 - 1j, 0.5j], "complex128")
    for x in (z, z.real.copy(), z.real.astype("int32")):
        same(lambda x: f(x, dtype=dtype), x)
        same(lambda x: f(x, dtype=dtype, ddof=1, keepdims=True), x)
    if dtype == "float64" and f in (np.var, np.std):
        check_gradients(lambda x: f(x, dtype=dtype), z.real.copy())
        check_gradients(lambda x: f(x + 1j * x**2, dtype=dtype), z.real.copy())


def test_rounding_is_numpys() -> None:
    whole = array([1234567, -1250, 15, -25])
    edges = array([INF, -INF, NAN, -0.0, 1.005, 2675.0, 1e300])
    parts = [complex(a, b) for a in edges for b in edges]
    for decimals in (0, 1, 2, -1, -2, 1.5, None, True):
        for f in (np.round, np.around):
            same(lambda x, f=f, d=decimals: f(x, d), whole.astype("int64"), exact=True)
            same(lambda x, f=f, d=decimals: f(x, d), np.array([2**62 + 1, 5]), exact=True)
            same(lambda x, f=f, d=decimals: f(x, d), edges, exact=True)
            same(lambda x, f=f, d=decimals: f(x, d), array(parts, "complex128"), exact=True)
            same(lambda x, f=f, d=decimals: f(x, d), array([1, 0], "bool"))
    assert gt.round(array(700.0, "float16"), 2).item() == 700.0  # NumPy: inf


# -- extrema ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("f", [np.nanargmax, np.nanargmin, np.nanmax, np.nanmin])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_nan_extrema_of_complex_numbers_skip_what_has_a_nan_part(f: Call, dtype: str) -> None:
    for values in (
        [complex(NAN, 1), 1 + 2j, 1 + 1j],
        [complex(1, NAN), 1 + 2j, 3],
        [complex(INF, 2), complex(0, NAN), complex(-INF, 5)],
    ):
        same(f, array(values, dtype))
        rows = array([values, values[::-1]], dtype)
        same(lambda x: f(x, axis=1), rows)
        found = gt.vmap(f)(gt.constant(rows))
        np.testing.assert_array_equal(found, f(rows, axis=1))
    if f in (np.nanargmax, np.nanargmin):
        same(f, array([NAN, complex(0, NAN)], dtype))


# -- ranges ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [d for d in NUMBERS if d != "float16"])
def test_ranges_of_every_dtype_are_numpys(dtype: str) -> None:
    low, high = array([1, 0], dtype), array([7, 1], dtype)
    for a, b in ((low, high), (high, low)):
        for num, endpoint in ((0, True), (1, True), (1, False), (4, True), (4, False)):
            same(lambda a, b, n=num, e=endpoint: np.linspace(a, b, n, e), a, b)
            same(lambda a, b, n=num, e=endpoint: np.logspace(a, b, n, e), a, b)
            for kind in ("int32", "uint8", "complex64", "bool"):
                if dtype.startswith("complex"):
                    continue
                same(lambda a, b, n=num, k=kind: np.linspace(a, b, n, dtype=k), a, b)
        for other in (2, 2.5, 1j, array(3, "float32")):
            if dtype != "complex64":
                same(lambda a, o=other: np.linspace(a, o, 3), a)
                same(lambda b, o=other: np.linspace(o, b, 3), b)
    if dtype != "bool":
        same(lambda a: np.geomspace(a, 9, 4, dtype="float64"), array([2, 5], dtype))


def test_ranges_of_half_precision_do_not_overflow() -> None:
    found = gt.linspace(gt.constant(array(-60000, "float16")), array(60000, "float16"), 3)
    assert found.dtype == "float16"
    assert found.tolist() == [-60000.0, 0.0, 60000.0]


def test_ranges_of_complex_numbers_keep_their_imaginary_parts() -> None:
    for f in (gt.linspace, gt.logspace, gt.geomspace):
        found = f(1.0, 2j, 3)
        assert found.dtype == "complex64"
        np.testing.assert_allclose(found, getattr(np, f.__name__)(1.0, 2j, 3), rtol=1e-5)
    assert gt.linspace(np.float64(0), 1, 3).dtype == "float64"
    assert gt.linspace(0, 1, 3).dtype == "float32"


def test_ranges_refuse_what_numpy_refuses() -> None:
    x = array([1.0, 2.0])
    for f in (np.linspace, np.logspace, np.geomspace):
        for num in (-1, 2.5, None):
            same(lambda x, f=f, n=num: f(x, 3.0, n), x)
        same(lambda x, f=f: f(x, np.ones(3), 2), x)
    same(lambda x: np.geomspace(x, 0.0, 3), x)
    same(lambda x: np.geomspace(0.0, x, 3), x)


def test_ranges_have_gradients() -> None:
    low, high, base = array([0.5, 1.0]), array([2.0, 3.0]), array([2.0, 1.5])
    for f in (gt.linspace, gt.logspace, gt.geomspace):
        for endpoint in (True, False):
            check_gradients(lambda a, b, f=f, e=endpoint: f(a, b, 4, endpoint=e) ** 2, low, high)
    check_gradients(lambda a, c: gt.logspace(a, 2.0, 3, base=c), low, base)
    unknown = gt.function(
        lambda a, b: gt.geomspace(a, b, 3), input_signature=[gt.TensorSpec([None], "float64")] * 2
    )
    np.testing.assert_allclose(unknown(low, high), np.geomspace(low, high, 3))
    np.testing.assert_allclose(
        gt.vmap(lambda a, b: gt.linspace(a, b, 3))(low, high), np.linspace(low, high, 3, axis=1)
    )


# -- histograms ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint8", "int64", "bool"])
def test_histograms_have_numpys_edges_and_counts(dtype: str) -> None:
    rng = np.random.default_rng(3)
    for scale, offset in ((1.0, 0.0), (1e3, 5.0), (1e-3, 1e3)):
        x = (
            (rng.random(60) * scale + offset).astype(dtype)
            if dtype != "int8"
            else rng.integers(-128, 127, 60, dtype="int8")
        )
        for bins in (1, 7, 23, [0.0, 0.5, 2.0], [1.0], []):
            same(lambda x, b=bins: np.histogram(x, b)[0], x)
            same(lambda x, b=bins: np.histogram_bin_edges(x, b), x) if np.ndim(bins) == 0 else None
    weights = [rng.integers(0, 5, 60).astype(w) for w in ("int32", "float32", "complex64")]
    for w in weights:
        same(lambda x, w: np.histogram(x, 5, weights=w)[0], x, w)


def test_a_value_on_a_float32_edge_is_in_numpys_bin() -> None:
    x = np.linspace(0, 1, 24, dtype="float32")
    for bins in range(1, 40):
        same(lambda x, b=bins: np.histogram(x, b)[0], x)


@pytest.mark.parametrize("f", [np.histogram, np.histogram_bin_edges], ids=["counts", "edges"])
def test_histograms_refuse_what_has_no_bins(f: Call) -> None:
    for values in ([1.0, NAN], [1.0, INF], [1.0, -INF]):
        same(lambda x: f(x, 3), array(values))
    for bins in ([[1.0, 2.0]], 0, -1, 2.5, [2.0, 1.0], "best"):
        same(lambda x, b=bins: f(x, b), array([1.0, 2.0]))
    same(lambda x: f(x, 50), array([1.0, np.nextafter(1.0, 2.0)]))
    with pytest.raises(TypeError, match="no order"):
        f(gt.constant([1j, 2.0]))
    with pytest.raises(TypeError, match="cannot choose bins"):
        gt.histogram([1.0, 2.0], "auto", weights=[1.0, 2.0])


# -- interpolation and differences -----------------------------------------------------------------


def test_interpolation_is_exact_where_samples_are_infinite_or_the_same() -> None:
    x = array([-2, -1, -0.5, 0, 0.5, 1, 2, 2.5, 3, 4, INF, -INF, NAN])
    grids = [[-1, 0, 2, 3], [0, 0, 1, 1], [-1, 0, 0, 3]]
    for grid in grids:
        for samples in ([1, 2, 3, 4], [INF, 1, -INF, 2], [NAN, 1, 2, 3], [1, INF, INF, 2]):
            same(np.interp, x, array(grid), array(samples))
            same(lambda x, xp, fp: np.interp(x, xp, fp, -9.0, NAN), x, array(grid), array(samples))
    same(np.interp, x[:-1], array([1.0]), array([5.0]))  # of nan NumPy gives 5


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_periodic_interpolation_far_from_0_is_precise(dtype: str) -> None:
    x = array([-1e6, 123456.0, 0.1, 359.9], dtype)
    xp, fp = array([10.0, 350.0, 6.3, 200.7], dtype), array([1.0, 2.0, 3.0, 4.0], dtype)
    found = gt.interp(x, xp, fp, period=360)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, np.interp(x, xp, fp, period=360), rtol=1e-6)
    if dtype == "float64":
        check_gradients(lambda x, fp: gt.interp(x, xp, fp, period=360), x[2:], fp)
        check_gradients(lambda x: gt.interp(x, np.sort(xp), fp), array([7.0, 99.0, 350.0 - 1e-3]))
    batch = gt.constant(np.stack([x, x + 1]))
    found = gt.vmap(lambda x: gt.interp(x, xp, fp, period=360))(batch)
    want = np.interp(batch.numpy(), xp, fp, period=360)
    np.testing.assert_allclose(found, want, rtol=1e-5)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_differences_have_numpys_dtypes(dtype: str) -> None:
    x = array([1, 0, 4, 6], dtype)
    for other in NUMBERS:
        y = array([2, 1], other)
        same(lambda x, y: np.diff(x, prepend=y), x, y)
        same(lambda x, y: np.diff(x, append=y[0], n=2), x, y)
        same(lambda x, y: np.ediff1d(x, to_begin=y), x, y)
        same(lambda x, y: np.ediff1d(x, to_end=y), x, y)
    if dtype[0] in "iub":
        same(lambda x: np.diff(x, prepend=3), x)
    same(lambda x: np.diff(x, n=0, axis=7), x)
    for period in (2 * np.pi, 4, 5, 7.5, np.float32(3)):
        for discont in (None, 1, 4):
            same(lambda x, p=period, d=discont: np.unwrap(x, d, period=p), x)


def test_what_an_integer_does_not_hold_is_refused() -> None:
    for call in (
        lambda: gt.ediff1d(np.array([1, 2], "int8"), to_end=300),
        lambda: gt.choose(np.array([0, 1]), [np.array([1, 2], "int8"), 300]),
        lambda: gt.unwrap(np.array([1, 2], "uint8"), period=5),
    ):
        with pytest.raises(OverflowError):
            call()


@pytest.mark.parametrize("dtype", ["uint8", "int8", "bool"])
def test_integrals_of_integers_do_not_wrap(dtype: str) -> None:
    y, x = array([1, 0, 1, 1], dtype), np.array([200, 100, 0, 250], "uint8")
    want = np.trapezoid(y.astype("float64"), x.astype("float64"))
    assert gt.trapezoid(y, x).item() == want


# -- padding, choices, sizes, powers ---------------------------------------------------------------


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("mode", ["mean", "median", "maximum", "linear_ramp", "reflect", "edge"])
def test_padding_keeps_the_dtype_and_numpys_values(mode: str, dtype: str) -> None:
    x = array([[3, 0, 1, 7], [1, 1, 0, 2]], dtype)
    same(lambda x: np.pad(x, ((1, 2), (3, 0)), mode), x)
    if mode == "linear_ramp":
        for ends in (1, (3, 0), ((1, 2), (3, 4))):
            same(lambda x, e=ends: np.pad(x, 3, mode, end_values=e), x)
    if mode in ("mean", "median", "maximum"):
        same(lambda x: np.pad(x, 2, mode, stat_length=2), x)
    if mode == "reflect":
        same(lambda x: np.pad(x, 1, mode, reflect_type="odd"), x)
    if mode == "edge":
        same(lambda x: np.pad(x, 1, mode, stat_length=2), x)


def test_ramps_of_padding_have_gradients() -> None:
    for ends in (0.0, (1.0, -2.0)):
        check_gradients(
            lambda x, e=ends: gt.pad(x, 2, "linear_ramp", end_values=e) ** 2, array([[1.0, 3.0]])
        )
    traced = gt.function(
        lambda x: gt.pad(x, 2, "linear_ramp"), input_signature=[gt.TensorSpec([None], "float64")]
    )
    np.testing.assert_allclose(traced(array([1.0, 3.0])), np.pad([1.0, 3.0], 2, "linear_ramp"))


@pytest.mark.parametrize("numbers", [[0, 1, 0], [True, False, True], 1, [[1], [0]]], ids=str)
@pytest.mark.parametrize("dtype", ["bool", "int64", "uint8", "uint64"])
def test_choices_promote_as_numpys(numbers: Any, dtype: str) -> None:
    places = np.asarray(numbers).astype(dtype)
    for first in ("int8", "uint16", "float32", "complex64"):
        one = array([3, 4, 5], first)
        for second in (7, 2, True, array([1, 2, 3], "int16"), array(2, "float64")):
            same(lambda n, one, s=second: np.choose(n, [one, s]), places, one)
            same(lambda n, one, s=second: np.choose(n, [one, s], mode="wrap"), places, one)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_an_empty_array_is_resized_in_its_dtype(dtype: str) -> None:
    for shape in ((2, 2), 3, 0, (), (0, 2)):
        same(lambda x, s=shape: np.resize(x, s), array([], dtype))
    if dtype[0] != "c":
        same(np.frexp, array([0, 1, 3], dtype))


def test_powers_of_booleans_are_numpys() -> None:
    x = array([True, False])
    for y in (0, 1, 2, 3, array(2, "int8"), array(2, "uint16")):
        same(lambda x, y=y: np.power(x, y), x)
        same(lambda x, y=y: x**y, x)


# -- tuples in an index ----------------------------------------------------------------------------

CUBE = np.arange(60.0).reshape(5, 4, 3)
INDICES: list[Any] = [
    ((0, 1, 0), (3, 3, 2)),
    ((0, 1, 0),),
    ((0, 1, 0), slice(None), (1, 2, 0)),
    ((0, 1), [3, 2]),
    (((0, 1), (1, 0)), 0),
    ((),),
    (((),),),
    (..., (0, 1)),
    (None, (0, 1)),
    ((True, False, True, False, True),),
    ((0, 1), (0, 1, 2)),
    ((0, 9),),
    ((1.5, 2),),
    ((None,),),
    (range(2), (0, 1)),
    range(3),
    ((-1, -5), ..., 1),
]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_a_tuple_within_an_index_is_an_array(index: Any) -> None:
    same(lambda x: x[index], CUBE)
    try:
        want = CUBE.copy()
        want[index] = 7.0
    except IndexError:
        with pytest.raises(IndexError):
            gt.constant(CUBE).at[index].set(7.0)
        with pytest.raises(IndexError):
            gt.function(lambda x: x[index])(gt.constant(CUBE))
        return
    np.testing.assert_array_equal(gt.constant(CUBE).at[index].set(7.0), want)
    for shape in ((5, 4, 3), (None, None, None)):
        spec = gt.TensorSpec(shape, "float64")
        traced = gt.function(lambda x: x[index], input_signature=[spec])
        np.testing.assert_array_equal(traced(gt.constant(CUBE)), CUBE[index])
    check_gradients(lambda x: x[index] ** 2, CUBE / 60)
    batch = np.stack([CUBE, CUBE + 1])
    found = gt.vmap(lambda x: x[index])(batch)
    np.testing.assert_array_equal(found, np.stack([x[index] for x in batch]))


def test_a_tuple_within_an_index_is_saved(tmp_path: Any) -> None:
    module = gt.Module()
    module.pick = gt.function(
        lambda x: x[(0, 1, 0), (3, 3, 2)], input_signature=[gt.TensorSpec([5, 4, 3], "float64")]
    )
    gt.save(module, tmp_path / "picked.gt")
    found = gt.load(tmp_path / "picked.gt").pick(gt.constant(CUBE))
    np.testing.assert_array_equal(found, CUBE[(0, 1, 0), (3, 3, 2)])


# -- sizes that a trace does not know --------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda x: gt.interp([0.5], x, gt.constant([2.0, 1.0, 4.0])),
        lambda x: gt.polyfit(gt.constant([0.0, 1.0, 2.0]), x, 1),
        lambda x: gt.polyfit(gt.constant([0.0, 1.0, 2.0]), gt.constant([0.0, 1.0, 4.0]), 1, w=x),
        lambda x: gt.histogram(x, 3, range=(0, 4), weights=gt.constant([2.0, 1.0, 4.0]))[0],
        lambda x: gt.polyint(gt.constant([1.0, 2.0]), 3, x),
        lambda x: gt.lexsort((x, gt.constant([1.0, 1.0, 0.0]))),
    ],
    ids=["interp", "polyfit", "polyfit w", "histogram", "polyint", "lexsort"],
)
def test_an_unknown_size_may_be_the_one_that_is_needed(call: Call) -> None:
    x = gt.constant([1.0, 2.0, 3.0])
    traced = gt.function(call, input_signature=[gt.TensorSpec([None], "float32")])
    np.testing.assert_allclose(traced(x), call(x), rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gt.digitize([1.0], [1j, 2.0]), "digitize: complex numbers have no order"),
        (lambda: gt.lexsort(3.0), "lexsort: keys must be a sequence"),
    ],
)
def test_sorting_refuses_what_has_no_order_and_what_is_no_key(call: Call, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call()
