"""Forms of a call that NumPy takes: optional arguments, odd dtypes, ufuncs' methods."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from samples import cross_in_a_plane

import gradtape as gt
from gradtape.testing import check_gradients

WIDE = np.arange(6.0).reshape(2, 3) - 1.5
SOME = np.array([True, False, True])
DTYPES = ("float64", "float32", "float16", "int64", "int8", "bool", "complex128")


def same(got: Any, want: Any, rtol: float = 1e-6) -> None:
    want = np.asarray(want)
    assert got.shape == want.shape
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=1e-2 if want.dtype == "float16" else rtol)


REDUCTIONS: dict[str, dict[str, Any]] = {
    "sum": {"where": SOME, "initial": 2},
    "prod": {"where": SOME, "initial": 2},
    "mean": {"where": SOME},
    "var": {"where": SOME, "ddof": 1},
    "std": {"where": SOME, "ddof": 1},
    "max": {"where": SOME, "initial": -1},
    "min": {"where": SOME, "initial": 1},
    "any": {"where": SOME},
    "all": {"where": SOME},
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_of_some_elements(name: str, dtype: str) -> None:
    x, options = WIDE.astype(dtype), REDUCTIONS[name]
    t = gt.constant(x)
    for axis in (1, (0, 1), None):
        want = getattr(np, name)(x, axis=axis, **options)
        same(getattr(gt, name)(t, axis=axis, **options), want)
        same(getattr(np, name)(t, axis=axis, **options), want)
        same(getattr(t, name)(axis=axis, **options), want)
        traced = gt.function(lambda t, axis=axis: getattr(gt, name)(t, axis=axis, **options))
        same(traced(t), want)


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std", "max", "min"])
def test_reductions_of_some_elements_have_gradients(name: str) -> None:
    options = REDUCTIONS[name]
    check_gradients(lambda x: getattr(gt, name)(x, axis=1, **options), WIDE)


def test_gradients_reach_what_a_reduction_starts_from() -> None:
    check_gradients(lambda x, y: gt.sum(x, initial=y), WIDE, np.array(2.0))
    check_gradients(lambda x, y: gt.max(x, axis=0, initial=y), WIDE, np.array(1.0))


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std"])
def test_reductions_in_another_dtype(name: str) -> None:
    for dtype in ("float32", "float64", "float16"):
        want = getattr(np, name)(WIDE, axis=0, dtype=dtype)
        same(getattr(gt, name)(gt.constant(WIDE), axis=0, dtype=dtype), want)
        same(getattr(gt.constant(WIDE), name)(axis=0, dtype=dtype), want)


def test_extremes_of_nothing_are_what_they_start_from() -> None:
    empty = np.zeros((2, 0))
    for keepdims in (False, True):
        want = np.max(empty, axis=1, initial=3, keepdims=keepdims)
        same(gt.max(gt.constant(empty), axis=1, initial=3, keepdims=keepdims), want)


def test_reductions_refuse_what_numpy_refuses() -> None:
    x = gt.constant(WIDE)
    with pytest.raises(ValueError, match=r"max: where= needs initial="):
        gt.max(x, where=SOME)
    for where in (SOME[:2], np.ones((1, 2, 3), bool)):
        with pytest.raises(ValueError, match="sum: "):
            gt.sum(x, where=where)


PADS: list[tuple[Any, dict[str, Any]]] = [
    (2, {"mode": "reflect", "reflect_type": "odd"}),
    (((3, 9), (5, 0)), {"mode": "reflect", "reflect_type": "odd"}),
    (((7, 2), (1, 8)), {"mode": "symmetric", "reflect_type": "odd"}),
    ((1, 2), {"constant_values": (3, 4)}),
    (((1, 2), (0, 1)), {"constant_values": ((3, 4), (5, 6))}),
    ({0: 1}, {}),
    ({-1: (1, 2), 0: 1}, {"mode": "edge"}),
    ([(1,), (2,)], {}),
    ([[2]], {"mode": "linear_ramp", "end_values": [[5]]}),
]


@pytest.mark.parametrize(("width", "options"), PADS)
def test_pad(width: Any, options: dict[str, Any]) -> None:
    for x in (WIDE, np.array([[1, 7]]), WIDE.astype("float32")):
        want = np.pad(x, width, **options)
        same(gt.pad(gt.constant(x), width, **options), want)
        same(np.pad(gt.constant(x), width, **options), want)
        same(gt.function(lambda t: gt.pad(t, width, **options))(gt.constant(x)), want)
    check_gradients(lambda x: gt.pad(x, width, **options), WIDE)


def test_pad_refuses_what_numpy_refuses() -> None:
    for width in (1.5, {0: 1.5}):
        with pytest.raises(TypeError, match="pad: pad_width must hold integers"):
            gt.pad(gt.constant(WIDE), width)
    with pytest.raises(ValueError, match=r"pad: 3 pairs"):
        gt.pad(gt.constant(WIDE), 1, constant_values=((1, 2), (3, 4), (5, 6)))


METHODS = (
    "inverted_cdf averaged_inverted_cdf closest_observation interpolated_inverted_cdf hazen "
    "weibull linear median_unbiased normal_unbiased lower higher midpoint nearest"
).split()


@pytest.mark.parametrize("method", METHODS)
def test_quantiles_of_what_is_not_nan(method: str) -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(9, 12))
    x[rng.random(x.shape) < 0.4] = np.nan
    x[:, 5], x[2] = np.nan, np.arange(12.0)
    for q in (0.0, 0.3, [0.25, 0.5, 1.0], [[0.1, 0.2], [0.9, 0.75]]):
        for axis in (0, (0, 1), None):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                want = np.nanquantile(x, q, axis=axis, method=method)
            same(gt.nanquantile(gt.constant(x), q, axis=axis, method=method), want)
            same(np.nanquantile(gt.constant(x), q, axis=axis, method=method), want)
        want = np.nanpercentile(x[2], np.multiply(q, 100), method=method)
        same(gt.nanpercentile(gt.constant(x[2]), np.multiply(q, 100), method=method), want)
    with pytest.raises(ValueError, match="nanquantile: 'nope' is not a valid method"):
        gt.nanquantile(gt.constant(x), 0.5, method="nope")


def test_medians_of_complex_numbers() -> None:
    x = np.array([[1 + 2j, 3 - 1j, 2, 2 + 4j], [1j, 0, 5, -1j]])
    for name in ("median", "nanmedian"):
        for axis in (None, 0, 1):
            same(getattr(gt, name)(gt.constant(x), axis=axis), getattr(np, name)(x, axis=axis))
    x[0, 1] = np.nan
    assert np.isnan(gt.median(gt.constant(x)).numpy())
    same(gt.nanmedian(gt.constant(x), axis=1), np.nanmedian(x, axis=1))
    with pytest.raises(TypeError, match="nanquantile: complex"):
        gt.nanquantile(gt.constant(x), 0.5)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_hermitian_matrices(dtype: str) -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=(2, 3, 3)).astype(dtype)
    if dtype == "complex128":
        a = a + 1j * rng.normal(size=a.shape)
    t = gt.constant(a)
    u, s, vh = gt.linalg.svd(t, hermitian=True)
    want = np.linalg.svd(a, hermitian=True)
    same(s, want.S)
    lower = np.tril(a, -1)
    whole = lower + lower.conj().mT + np.eye(3) * a.real
    np.testing.assert_allclose((u * s[:, None]) @ vh, whole, atol=1e-12)
    same(gt.linalg.svd(t, compute_uv=False, hermitian=True), want.S)
    np.testing.assert_allclose(gt.linalg.pinv(t, hermitian=True), np.linalg.inv(whole))
    same(
        gt.linalg.matrix_rank(t, hermitian=True, tol=[0.5, 99.0]),
        np.linalg.matrix_rank(a, hermitian=True, tol=[0.5, 99.0]),
    )
    for values in (
        lambda a: gt.linalg.pinv(a, hermitian=True),
        lambda a: gt.linalg.svd(a, compute_uv=False, hermitian=True),
    ):
        check_gradients(lambda a, values=values: values(a + gt.conj(a).mT), a, order=1)


def test_rank_of_vectors_and_dtype_of_a_rank() -> None:
    for x in (LINE := np.arange(3.0), LINE * 0, np.array(5.0)):
        assert gt.linalg.matrix_rank(gt.constant(x)).item() == np.linalg.matrix_rank(x)
    b = np.ones(2)
    assert gt.linalg.lstsq(gt.constant(WIDE), b)[2].dtype == np.linalg.lstsq(WIDE, b)[2].dtype


def test_cross_products_in_a_plane() -> None:
    rng = np.random.default_rng(1)
    for m, n in ((2, 2), (2, 3), (3, 2)):
        a, b = rng.normal(size=(4, m)), rng.normal(size=(4, n))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            expected = cross_in_a_plane(a, b)
            same(gt.cross(gt.constant(a), gt.constant(b)), expected)
            same(gt.cross(gt.constant(a.T), gt.constant(b.T), axis=0), expected.T)
        with pytest.warns(DeprecationWarning, match="cross"):
            gt.cross(gt.constant(a), gt.constant(b))


def test_transforms_over_an_axis_twice() -> None:
    for name, options in (
        ("fftn", {"axes": (0, 0)}),
        ("ifftn", {"axes": (0, 1, 0)}),
        ("fft2", {"axes": (1, -1)}),
        ("fftn", {"s": (4, 5), "axes": (0, 0)}),
        ("rfftn", {"axes": (0, 0)}),
        ("rfftn", {"s": (4, 5), "axes": (1, 1)}),
        ("irfftn", {"axes": (1, 1)}),
    ):
        want = getattr(np.fft, name)(WIDE, **options)
        np.testing.assert_allclose(
            getattr(gt.fft, name)(gt.constant(WIDE), **options), want, atol=1e-12
        )


def test_angles_in_degrees() -> None:
    x = np.array([1 + 1j, -2.0, 3j])
    same(gt.angle(gt.constant(x), deg=True), np.angle(x, deg=True))
    same(np.angle(gt.constant(x), deg=True), np.angle(x, deg=True))


def test_a_condition_alone() -> None:
    x = gt.constant(WIDE)
    for got, want in zip(gt.where(x > 0), np.where(WIDE > 0), strict=True):
        same(got, want)
    with pytest.raises(ValueError, match="where: give both"):
        gt.where(x > 0, x)


UFUNC_METHODS: list[tuple[Any, str, tuple[Any, ...], dict[str, Any]]] = [
    (np.add, "reduce", (), {}),
    (np.add, "reduce", (1,), {}),
    (np.add, "reduce", (), {"axis": None, "keepdims": True, "initial": 2.0}),
    (np.add, "reduce", (), {"axis": (0, 1), "where": SOME, "dtype": "float32"}),
    (np.multiply, "reduce", (), {"axis": 1}),
    (np.maximum, "reduce", (), {"axis": -1}),
    (np.minimum, "reduce", (), {"initial": 0.0}),
    (np.logical_and, "reduce", (), {}),
    (np.logical_or, "reduce", (), {"axis": 1, "keepdims": True}),
    (np.add, "accumulate", (), {}),
    (np.multiply, "accumulate", (), {"axis": 1}),
]


@pytest.mark.parametrize(("ufunc", "method", "args", "options"), UFUNC_METHODS)
def test_ufunc_methods(ufunc: Any, method: str, args: Any, options: Any) -> None:
    call = getattr(ufunc, method)
    same(call(gt.constant(WIDE), *args, **options), call(WIDE, *args, **options))


@pytest.mark.parametrize("ufunc", [np.add, np.subtract, np.power, np.maximum, np.arctan2, np.less])
def test_outer_of_a_ufunc(ufunc: Any) -> None:
    x, y = np.abs(WIDE), np.array([1.0, 2.0, 3.0, 4.0])
    same(ufunc.outer(gt.constant(x), y), ufunc.outer(x, y))
    same(ufunc.outer(y, gt.constant(x)), ufunc.outer(y, x))
    same(ufunc.outer(gt.constant(x), 2.0), ufunc.outer(x, 2.0))


def test_logaddexp_reduce_is_logsumexp() -> None:
    same(np.logaddexp.reduce(gt.constant(WIDE), axis=1), np.logaddexp.reduce(WIDE, axis=1))


def test_other_methods_of_ufuncs_say_what_to_use() -> None:
    x = gt.constant(WIDE)
    for call, match in (
        (lambda: np.add.at(x, 0, 1.0), r"numpy.add.at .* x.at\[index\].add\(values\)"),
        (lambda: np.maximum.at(x, 0, 1.0), r"x.at\[index\].set\(values\)"),
        (lambda: np.add.reduceat(x, [0, 1]), r"numpy.add.reduceat .*segment_sum"),
        (lambda: np.subtract.reduce(x), r"numpy.subtract.reduce .* gradtape.subtract"),
        (lambda: np.subtract.accumulate(x), r"numpy.subtract.accumulate .* gradtape.subtract"),
        (lambda: np.add.reduce(x, out=np.zeros(3)), r"numpy.add.reduce with \['out'\]"),
        (lambda: np.add(x, 1.0, where=SOME), r"\['where'\] .* gradtape.where"),
        (lambda: np.add(x, 1.0, out=np.zeros((2, 3))), r"\['out'\] .* tensor never changes"),
    ):
        with gt.GradientTape(), pytest.raises(TypeError, match=match):
            call()


def test_dtypes_of_booleans_and_small_integers() -> None:
    for dtype in ("bool", "int8", "int16", "int32", "float16", "float32"):
        x = np.array([1, 0, 1]).astype(dtype)
        for name in ("conj", "angle", "modf", "cov", "corrcoef"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                got, want = getattr(gt, name)(gt.constant(x)), getattr(np, name)(x)
            if name == "modf":
                got, want = got[0], want[0]
            assert got.dtype == want.dtype, (name, dtype)
        same(gt.vecdot(gt.constant(x), gt.constant(x)), np.vecdot(x, x))


def test_vectors_that_do_not_fit() -> None:
    x = gt.constant([1.0, 2.0, 3.0])
    for other in (2.0, x[:1], x[:2]):
        with pytest.raises(ValueError, match="vecdot: "):
            gt.vecdot(x, other)
    with pytest.raises(TypeError, match="gradient: booleans"):
        gt.gradient(x > 0)


def test_numbers_beside_tensors_keep_numpys_dtype() -> None:
    x = np.arange(3.0)
    for name in ("atleast_1d", "meshgrid", "broadcast_arrays"):
        got, want = (getattr(np, name)(1.5, y)[0] for y in (gt.constant(x), x))
        same(got, want)
