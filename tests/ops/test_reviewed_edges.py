"""What a review found at edges: infinities, nan, singular matrices, empty arrays, odd arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from samples import cross_in_a_plane

import gradtape as gt
from gradtape.testing import check_gradients

INF, NAN = float("inf"), float("nan")
V = np.array([0.3, 1.1, 2.7, -0.4])
M = np.arange(24.0).reshape(2, 3, 4)
UNKNOWN = gt.TensorSpec((None, None), "float64")


def gradient(f: Callable[..., Any], *values: Any) -> list[np.ndarray[Any, Any]]:
    sources = [gt.constant(np.asarray(v)) for v in values]
    with gt.GradientTape() as tape:
        tape.watch(sources)
        y = f(*sources)
    return [g.numpy() for g in tape.gradient(y, sources)]


def same(call: Callable[[Any], Any], *arrays: Any) -> None:
    """Check a call against NumPy: values and dtypes, or the type of the error."""
    tensors = [gt.constant(np.asarray(x)) for x in arrays]
    try:
        wanted = call(*(np.asarray(x) for x in arrays))
    except Exception as error:
        with pytest.raises(type(error)):
            call(*tensors)
        return
    found = call(*tensors)
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found.numpy(), wanted)


# -- matrices --------------------------------------------------------------------------------------


@pytest.mark.parametrize("f", [np.trace, np.linalg.trace, np.diagonal, np.linalg.diagonal])
def test_the_axes_of_matrices_are_those_of_numpys_function(f: Any) -> None:
    same(f, M)
    same(lambda x: f(x, offset=1), M)
    ours = {np.linalg.trace: gt.linalg.trace, np.linalg.diagonal: gt.linalg.diagonal}.get(
        f, getattr(gt, f.__name__)
    )
    np.testing.assert_array_equal(ours(gt.constant(M)), f(M))


def test_cross_of_unknown_sizes_is_refused_in_words() -> None:
    f = gt.function(lambda a, b: np.cross(a, b), input_signature=[UNKNOWN, UNKNOWN])
    with pytest.raises(ValueError, match=r"^cross: whether vectors have 2 or 3 .* input_signature"):
        f(gt.constant(M[0, :, :2]), gt.constant(M[1, :, :2]))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("sizes", [(3, 2), (2, 3), (2, 2)])
def test_cross_of_short_vectors_is_the_same_in_a_trace(sizes: tuple[int, int]) -> None:
    a, b = (gt.constant(M[i, :, :n]) for i, n in enumerate(sizes))
    signature = [gt.TensorSpec((None, n), "float64") for n in sizes]
    f = gt.function(lambda a, b: np.cross(a, b), input_signature=signature)
    np.testing.assert_array_equal(f(a, b), cross_in_a_plane(a.numpy(), b.numpy()))


def test_vectors_of_a_null_space_have_a_gradient() -> None:
    a = np.array([[1.0, 2.0, 3.0], [2.0, 1.0, 5.0]])

    def normal(x: Any) -> Any:
        n = gt.linalg.svd(x)[2][-1]
        return gt.abs(n) * np.array([1.0, 2.0, 0.5])

    check_gradients(normal, a, order=1)
    check_gradients(lambda x: gt.abs(gt.linalg.svd(x)[0][:, -1]), a.T.copy(), order=1)
    expected = np.cross(a[0], a[1]) / np.linalg.norm(np.cross(a[0], a[1]))
    np.testing.assert_allclose(normal(gt.constant(a)), abs(expected) * [1.0, 2.0, 0.5])


@pytest.mark.parametrize("rank", [1, 2])
def test_determinants_of_singular_matrices_have_second_derivatives(rank: int) -> None:
    factor = np.array([[1.0, 2.0], [0.5, -1.0], [3.0, 0.2]])[:, :rank]
    x = factor @ factor.T
    check_gradients(gt.linalg.det, x, order=2)
    check_gradients(gt.linalg.det, np.zeros((2, 2)), order=2)
    check_gradients(lambda x: gt.linalg.det(x) ** 2, np.stack([x, x + np.eye(3)]), order=2)


def test_errors_of_decompositions_name_them() -> None:
    with pytest.raises(np.linalg.LinAlgError, match=r"^slogdet: no gradient at a singular"):
        gradient(lambda x: gt.linalg.slogdet(x)[1], np.zeros((2, 2)))
    v, m = gt.constant(V), gt.constant(np.eye(4))
    for arrays in ([m, v, m], [m, gt.constant(M), m]):
        with pytest.raises(np.linalg.LinAlgError, match=r"^multi_dot: array 1 must have 2 axes"):
            np.linalg.multi_dot(arrays)


def test_wide_matrices_have_a_qr_gradient_in_a_trace_of_open_sizes() -> None:
    f = gt.function(lambda x: gt.linalg.qr(x)[1], input_signature=[UNKNOWN])
    want = gradient(lambda x: gt.linalg.qr(x)[1], M[0, :2])
    for mine, other in zip(gradient(f, M[0, :2]), want, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-10)


def test_the_upper_factor_reads_the_upper_triangle() -> None:
    x = np.array([[4.0, 1.0], [7.0, 3.0]])
    same(lambda a: np.linalg.cholesky(a, upper=True), x)
    same(lambda a: np.linalg.cholesky(a, upper=True), x + 0.5j * np.array([[0, 1], [3, 0]]))
    (g,) = gradient(lambda a: gt.linalg.cholesky(a, upper=True), x)
    (lower,) = gradient(gt.linalg.cholesky, x.T)
    np.testing.assert_allclose(g, lower.T)


@pytest.mark.parametrize("order", [None, 1, 2, 3, INF, -1, -2, -3, -INF, "fro", "nuc"])
@pytest.mark.parametrize("shape", [(0,), (0, 2), (2, 0)])
def test_norms_of_nothing_are_numpys(shape: tuple[int, ...], order: Any) -> None:
    with np.errstate(all="ignore"):
        same(lambda x: np.linalg.norm(x, order), np.zeros(shape))


# -- infinities and nan ----------------------------------------------------------------------------


def test_quantiles_keep_infinities() -> None:
    x = np.array([1.0, 2.0, INF, NAN])
    for f in (np.nanmedian, lambda a: np.nanquantile(a, 0.5), lambda a: np.nanpercentile(a, 50)):
        assert f(gt.constant(x)) == 2.0
        assert f(gt.constant(np.array([1.0, INF, INF, NAN]))) == INF
        assert f(gt.constant(np.array([-INF, -INF, 1.0, NAN]))) == -INF
    np.testing.assert_array_equal(
        np.nanquantile(gt.constant(x), [0.0, 0.5, 1.0]), np.array([1.0, 2.0, INF])
    )
    np.testing.assert_array_equal(np.quantile(gt.constant([INF, INF]), [0.3, 0.5]), [INF, INF])
    unknown = gt.function(
        lambda a: np.quantile(a, [0.5, 1.0]), input_signature=[gt.TensorSpec((None,), "float64")]
    )
    np.testing.assert_array_equal(unknown(gt.constant([1.0, 2.0, INF], "float64")), [2.0, INF])
    (g,) = gradient(lambda a: np.nanquantile(a, 0.5), x)
    np.testing.assert_array_equal(g, [0.0, 1.0, 0.0, 0.0])


def test_gradients_reach_the_fractions_of_quantiles() -> None:
    q = np.array([0.1, 0.45, 0.8])
    check_gradients(np.quantile, V, q)
    check_gradients(lambda q: np.quantile(gt.constant(M), q, axis=(0, 2)), q[:2])
    check_gradients(lambda q: np.percentile(gt.constant(V), q), np.array(30.0))
    for fraction in (0.0, 1 / 3, 1.0):
        at = gt.constant(fraction, "float64")
        np.testing.assert_allclose(np.quantile(gt.constant(V), at), np.quantile(V, fraction))
    np.testing.assert_allclose(
        np.quantile(gt.constant(V), gt.constant(q), keepdims=True), np.quantile(V, q, keepdims=True)
    )
    (g,) = gradient(lambda q: np.quantile(gt.constant(V), q), 1.0)
    np.testing.assert_allclose(g, 3 * (2.7 - 1.1))  # the slope to the left, there is no other
    same(lambda x: np.quantile(x, 0.3), [2.0])


HOLED = np.array([0.3, np.nan, 2.0, -1.1, np.nan, 4.2, 0.9])


@pytest.mark.parametrize("method", ["linear", "hazen", "weibull", "median_unbiased", "lower"])
def test_gradients_reach_the_fractions_by_every_method(method: str) -> None:
    q = np.array([0.27, 0.47, 0.71])
    check_gradients(lambda q: gt.quantile(V, q, method=method), q, order=1)
    check_gradients(lambda q: gt.nanquantile(HOLED, q, method=method), q, order=1)
    check_gradients(lambda q: gt.nanquantile(HOLED, q, method=method), q[:2].reshape(2, 1), order=1)
    check_gradients(lambda q: gt.nanpercentile(HOLED, q, method=method), np.array(31.0), order=1)
    for fraction in (0.0, 0.25, 0.5, 1.0):
        at = gt.constant(fraction, "float64")
        got = gt.nanquantile(HOLED, at, method=method).item()
        assert got == pytest.approx(np.nanquantile(HOLED, fraction, method=method))
    assert gt.grad(lambda q: gt.nanquantile(HOLED, q))(0.25).item() == pytest.approx(4 * 0.6)


def test_a_slope_is_nan_where_a_neighbour_is() -> None:
    x = np.array([1.0, NAN, 3.0, 4.0, INF, 2.0])
    same(lambda a: np.gradient(a), x)
    even = np.arange(6.0)
    same(lambda a: np.gradient(a, even), x)
    np.testing.assert_allclose(
        np.gradient(gt.constant(x[2:4]), gt.constant([0.0, 1.5], "float64")), [2 / 3, 2 / 3]
    )
    check_gradients(lambda a, at: np.gradient(a, at), V, np.array([0.0, 1.0, 2.0, 3.0]))


@pytest.mark.parametrize("f", [np.logaddexp, np.logaddexp2])
def test_the_gradients_of_infinite_sums_are_limits(f: Any) -> None:
    x, y = np.array([INF, 1.0, -INF, INF, -INF, 2.0]), np.array([1.0, INF, 2.0, INF, -INF, 2.0])
    to_x, to_y = gradient(f, x, y)
    np.testing.assert_allclose(to_x, [1.0, 0.0, 0.0, 0.5, 0.0, 0.5])
    np.testing.assert_allclose(to_y, [0.0, 1.0, 1.0, 0.5, 0.0, 0.5])


def test_the_gradient_of_logsumexp_is_a_limit() -> None:
    (g,) = gradient(gt.logsumexp, [INF, 1.0, -INF])
    np.testing.assert_array_equal(g, [1.0, 0.0, 0.0])
    (g,) = gradient(lambda x: gt.logsumexp(x, axis=1), [[INF, INF], [0.0, 0.0], [-INF, -INF]])
    np.testing.assert_array_equal(g, [[0.5, 0.5], [0.5, 0.5], [0.0, 0.0]])


def test_activations_of_nan() -> None:
    nan = gt.constant([NAN])
    for name in "relu relu6 leaky_relu hard_sigmoid hard_tanh hard_shrink soft_shrink elu".split():
        assert np.isnan(getattr(gt.nn, name)(nan).numpy()).all(), name
    # as in TensorFlow nothing passes; what is nan from above stays nan
    assert gradient(gt.nn.relu, [NAN])[0] == 0.0
    assert np.isnan(gradient(lambda x: gt.nn.relu(x) ** 2, [NAN])[0]).all()


@pytest.mark.parametrize(
    "name", "relu relu6 leaky_relu hard_sigmoid hard_tanh hard_silu elu selu".split()
)
def test_complex_numbers_have_no_rectifier(name: str) -> None:
    with pytest.raises(TypeError, match=rf"^{name}: expected real numbers, got dtype complex64"):
        getattr(gt.nn, name)(gt.constant([1j]))


def test_directions_without_length_have_the_gradient_0() -> None:
    zero, one = np.zeros(2), np.array([1.0, 2.0])
    for x, y in ((zero, one), (one, zero), (zero, zero)):
        for g in gradient(gt.nn.cosine_similarity, x, y):
            np.testing.assert_array_equal(g, 0.0)
    (g,) = gradient(gt.angle, [0j, 1j])
    np.testing.assert_allclose(g, [0.0, -1.0])


def test_every_nan_is_a_value_of_its_own_in_the_standards_functions() -> None:
    x = np.array([NAN, 2.0, NAN, 1.0, 2.0])
    for name in ("unique_values", "unique_counts", "unique_inverse", "unique_all"):
        found, wanted = getattr(np, name)(gt.constant(x)), getattr(np, name)(x)
        if name != "unique_values":
            assert found._fields == wanted._fields
        for mine, theirs in zip(np.atleast_1d(*found), np.atleast_1d(*wanted), strict=True):
            np.testing.assert_array_equal(mine, theirs)
    same(lambda a: np.unique(a), x)
    same(lambda a: np.unique(a, equal_nan=False), x)
    same(lambda a: np.unique(a, axis=0), np.array([[2, 1], [0, 3], [2, 1]]))
    same(lambda a: np.unique(a, axis=1, return_inverse=True)[1], np.array([[2, 1, 2], [0, 3, 0]]))
    same(lambda a: np.union1d(a, a), x)


# -- dtypes and where reductions start -------------------------------------------------------------


@pytest.mark.parametrize("f", [np.cumsum, np.cumprod, np.nancumsum, np.nancumprod])
@pytest.mark.parametrize("dtype", ["i4", "?", "u1", "f4"])
def test_running_results_have_the_dtype_asked_for(f: Any, dtype: str) -> None:
    same(lambda x: f(x, dtype=dtype), [1.7, 0.0, 2.0])
    same(lambda x: f(x, dtype=dtype), [200, 100])


@pytest.mark.parametrize("f", [np.nanmean, np.nanstd, np.nanvar])
def test_a_mean_without_nan_is_of_a_floating_dtype(f: Any) -> None:
    same(lambda x: f(x, dtype="i4"), [1.7, 2.9])
    same(lambda x: f(x, dtype="f4"), [1.5, 2.5])


def test_a_mean_in_integers_casts_first() -> None:
    same(lambda x: np.mean(x, dtype="i4"), [1.7, 2.9])
    same(lambda x: np.mean(x, dtype="i4"), [-1.7, -2.9, 0.9])


def test_isclose_of_integers_and_booleans() -> None:
    same(lambda x: np.isclose(x, np.uint8([2]), atol=5), np.uint8([1]))
    same(lambda x: np.isclose(x, np.int8([127]), rtol=0.1), np.int8([-128]))
    same(lambda x: np.isclose(x, [True, False]), [True, True])


@pytest.mark.parametrize("f", [np.sum, np.prod, np.max, np.min])
def test_a_start_that_the_dtype_does_not_hold(f: Any) -> None:
    same(lambda x: f(x, initial=-1), np.uint8([1, 2]))
    same(lambda x: f(x, initial=7), np.uint8([1, 2]))
    with pytest.raises(OverflowError, match=rf"^{f.__name__}: initial=-1: "):
        f(gt.constant(np.uint8([1, 2])), initial=-1)


def test_an_overflow_names_the_op() -> None:
    x = gt.constant(np.uint8([1]))
    for call, name in ((lambda: x + 300, "add"), (lambda: 300 - x, "subtract")):
        with pytest.raises(OverflowError, match=rf"^{name}: Python integer 300 out of bounds"):
            call()


GAPS = np.array([[1.0, NAN, 3.0], [NAN, 5.0, 7.5]])
KEPT = np.array([[True, True, False], [True, True, True]])


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.nansum(x, initial=2.0, where=KEPT),
        lambda x: np.nanprod(x, axis=0, initial=2.0, where=KEPT),
        lambda x: np.nanmax(x, axis=1, initial=-9.0, where=KEPT),
        lambda x: np.nanmin(x, axis=0, initial=2.0),
        lambda x: np.nanmean(x, axis=1, where=KEPT),
        lambda x: np.nanvar(x, axis=1, where=KEPT),
        lambda x: np.nanstd(x, where=KEPT, ddof=1),
        lambda x: np.nanvar(x, axis=1, mean=np.array([[2.0], [6.0]])),
        lambda x: np.var(x[:, 2:], mean=2.0, ddof=1),
        lambda x: np.std(x[:, 2:], axis=0, mean=np.array([[5.25]])),
        lambda x: np.fmax.reduce(x, axis=1),
        lambda x: np.fmin.reduce(x),
        lambda x: np.maximum.accumulate(x, axis=1),
        lambda x: np.minimum.accumulate(x, axis=0),
    ],
)
def test_reductions_take_what_numpys_take(call: Any) -> None:
    wanted = call(GAPS)
    np.testing.assert_allclose(call(gt.constant(GAPS)).numpy(), wanted, rtol=1e-14)
    assert call(gt.constant(GAPS)).dtype == wanted.dtype


def test_gradients_reach_a_given_mean() -> None:
    check_gradients(lambda x, m: gt.var(x, mean=m), V, np.array([0.4]))


# -- arrays without axes ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "f", [np.cumsum, np.cumprod, np.diff, np.cumulative_sum, np.cumulative_prod, np.mean, np.std]
)
@pytest.mark.parametrize("options", [{}, {"axis": 0}, {"axis": -1}, {"axis": 1}])
def test_numbers_are_reduced_as_numpy_does(f: Any, options: dict[str, int]) -> None:
    same(lambda x: f(x, **options), np.array(2.0))


# -- words and shapes ------------------------------------------------------------------------------


def test_roll_may_name_an_axis_twice() -> None:
    f = gt.function(lambda x: np.roll(x, (1, 1), axis=(0, 0)))
    np.testing.assert_array_equal(f(gt.constant(M)), np.roll(M, (1, 1), axis=(0, 0)))
    same(lambda x: np.roll(x, 1, axis=(0, 0)), M)


@pytest.mark.parametrize("shape", [(0, 1), (1, 0), (0, 3), (3, 0)])
def test_einsum_refuses_a_diagonal_of_nothing_beside_something(shape: tuple[int, int]) -> None:
    for fn in (lambda x: gt.einsum("ii->i", x), gt.function(lambda x: gt.einsum("ii->i", x))):
        with pytest.raises(ValueError, match="einsum"):
            fn(gt.zeros(shape))


def test_einsum_takes_numbers() -> None:
    same(lambda x: np.einsum("ij,->ij", x, 2.0), M[0])


@pytest.mark.parametrize(
    "f",
    [np.concatenate, lambda x: np.poly(x[0]), lambda x: np.roots(x[0])],
    ids=["concatenate", "poly", "roots"],
)
def test_what_numpy_iterates_over_says_what_is_not_known(f: Any) -> None:
    with pytest.raises(TypeError, match=r"rows .* is not known while a function is traced"):
        gt.function(f, input_signature=[UNKNOWN])(gt.constant(M[0]))


def test_complex_numbers_are_not_cast_to_real_ones_by_the_way() -> None:
    with pytest.raises(TypeError, match=r"^concatenate: a cast from complex64 to float32"):
        np.concatenate([gt.constant([1j])], dtype="f4")
    with pytest.raises(TypeError, match=r"^interp: coordinates must be real"):
        np.interp(gt.constant([1j]), gt.constant([0.0, 1.0]), gt.constant([0.0, 1.0]))
    same(lambda x: np.interp(0.3, x, x * 1j), V[:3])


def test_negative_places_to_split_at_count_from_the_end() -> None:
    for cuts in ([2, -1], [-3], [-9, 5]):
        found = np.split(gt.constant(M[0].ravel()), cuts)
        for mine, theirs in zip(found, np.split(M[0].ravel(), cuts), strict=True):
            np.testing.assert_array_equal(mine, theirs)
    f = gt.function(lambda x: np.split(x, [-1])[0], input_signature=[UNKNOWN])
    np.testing.assert_array_equal(f(gt.constant(M[0])), M[0][:-1])


@pytest.mark.parametrize(
    "options",
    [
        {"fweights": np.array([1, 2, 1, 3])},
        {"aweights": np.array([0.1, 0.5, 1.0, 2.0])},
        {"fweights": np.array([1, 2, 1, 3]), "aweights": np.array([0.1, 0.5, 1.0, 2.0])},
        {"bias": True, "dtype": "f4"},
    ],
)
def test_covariances_with_weights(options: dict[str, Any]) -> None:
    found, wanted = np.cov(gt.constant(M[0] ** 2), **options), np.cov(M[0] ** 2, **options)
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-6 if "dtype" in options else 1e-12)


def test_covariances_refuse_what_is_no_weight() -> None:
    x = gt.constant(M[0])
    with pytest.raises(TypeError, match=r"^cov: fweights must be integers"):
        np.cov(x, fweights=np.full(4, 1.5))
    with pytest.raises(RuntimeError, match=r"^cov: .*aweights"):
        np.cov(x, aweights=np.ones(3))
    with pytest.raises(ValueError, match=r"^cov: fweights must not be negative"):
        np.cov(x, fweights=[1, -1, 1, 1])


def test_vecdot_along_another_axis() -> None:
    np.testing.assert_allclose(np.vecdot(gt.constant(M), M, axis=0), np.vecdot(M, M, axis=0))


def test_polynomials_divide_as_numpys() -> None:
    for u, v in (([3.0, 5, 2], [2.0, 1]), ([3.0], [2.0, 1]), ([1, 0, -1], [1, 1]), ([4, 2], [2])):
        found = np.polydiv(gt.constant(np.array(u)), gt.constant(np.array(v)))
        for mine, theirs in zip(found, np.polydiv(np.array(u), np.array(v)), strict=True):
            assert mine.dtype == theirs.dtype
            np.testing.assert_allclose(mine, theirs)
    with pytest.raises(ValueError, match=r"^polydiv: the remainder's size"):
        gt.function(lambda x: gt.polydiv(x, x[:2])[0])(gt.constant(V))


def test_whole_numbers() -> None:
    x = np.array([12, -18, 0, 7], np.int16)
    for call in (
        lambda a: np.gcd(a, np.int16(8)),
        lambda a: np.lcm(a, np.int16(10)),
        np.bitwise_count,
    ):
        same(call, x)


def test_real_if_close() -> None:
    same(np.real_if_close, np.array([1 + 1e-16j, 2.0]))
    same(np.real_if_close, np.array([1 + 1e-3j, 2.0]))
    same(lambda x: np.real_if_close(x, tol=0.1), np.array([1 + 1e-3j, 2.0]))
    with pytest.raises(ValueError, match=r"^real_if_close: its dtype depends on values"):
        gt.function(gt.real_if_close)(gt.constant([1j]))
