"""Order statistics and reductions that skip nan: values, gradients, traces, errors."""

from __future__ import annotations

import numpy as np
import pytest
from samples import check_dtypes, check_traces, check_two_orders, check_values

import gradtape as gt

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 4))
Y = RNG.standard_normal((2, 3, 4))
HOLES = np.array([[1.5, np.nan, 0.3, -2.0], [np.nan, 4.0, 1.0, 2.5], [0.5, 0.25, 3.0, np.nan]])
METHODS = (
    "inverted_cdf averaged_inverted_cdf closest_observation interpolated_inverted_cdf hazen "
    "weibull linear median_unbiased normal_unbiased lower higher midpoint nearest"
).split()


def each(name, *args, **kwargs):
    """The same call of our function and of NumPy's."""
    return [
        lambda *xs, module=module: getattr(module, name)(*xs, *args, **kwargs)
        for module in (gt, np)
    ]


ORDER = {
    "median": (*each("median"), [X]),
    "median axis": (*each("median", axis=1), [X]),
    "median axes": (*each("median", axis=(0, -1), keepdims=True), [Y]),
    "median odd": (*each("median", axis=0, keepdims=True), [X]),
    "quantile": (*each("quantile", 0.3), [X]),
    "quantile ends": (*each("quantile", 1.0, axis=0), [X]),
    "quantile axes": (*each("quantile", 0.61, axis=(1, 0)), [Y]),
    "quantile several": (*each("quantile", [0.0, 0.45, 0.9], axis=-2), [Y]),
    "quantile matrix": (
        *each("quantile", np.array([[0.1, 0.2], [0.3, 0.9]]), axis=1, keepdims=True),
        [X],
    ),
    "quantile keepdims": (*each("quantile", [0.25, 0.5], keepdims=True), [X]),
    "percentile": (*each("percentile", 42.0, axis=0), [X]),
    **{m: (*each("quantile", 0.37, axis=-1, method=m), [X]) for m in METHODS},
    "ptp": (*each("ptp"), [X]),
    "ptp axis": (*each("ptp", axis=1, keepdims=True), [X]),
}
NAN = {
    f"{name} {params}": (*each(name, **params), [HOLES])
    for name in "nansum nanprod nanmax nanmin nanmean nanvar nanstd nanmedian".split()
    for params in ({}, {"axis": 0}, {"axis": (0, 1), "keepdims": True}, {"axis": -1})
}
NAN["nanvar ddof"] = (*each("nanvar", axis=0, ddof=1), [HOLES])
NAN["nancumsum"] = (*each("nancumsum", axis=1), [HOLES])
NAN["nancumprod"] = (*each("nancumprod"), [HOLES])
NAN["nanquantile"] = (*each("nanquantile", 0.3, axis=0), [HOLES])
NAN["nanquantile several"] = (*each("nanquantile", [0.3, 0.9], axis=1, keepdims=True), [HOLES])
NAN["nanpercentile"] = (*each("nanpercentile", [30.0]), [HOLES])
SAMPLES = {**ORDER, **NAN}


def filled(sample):
    """The same functions of the values that are not nan."""
    ours, theirs, _ = sample
    hole = np.isnan(HOLES)
    return (
        lambda x: ours(gt.where(hole, np.nan, x)),
        lambda x: theirs(np.where(hole, np.nan, x)),
        [np.where(hole, 7.0, HOLES)],
    )


@pytest.mark.parametrize("case", SAMPLES)
def test_values_are_numpys(case):
    check_values(SAMPLES[case])


@pytest.mark.parametrize("case", ORDER)
def test_gradients_of_two_orders(case):
    check_two_orders(ORDER[case])


@pytest.mark.parametrize("case", NAN)
def test_gradients_of_two_orders_skip_nan(case):
    check_two_orders(filled(NAN[case]))


@pytest.mark.parametrize("case", SAMPLES)
def test_traces_of_unknown_sizes_agree(case):
    check_traces(SAMPLES[case] if case in ORDER else filled(SAMPLES[case]))


@pytest.mark.parametrize(
    "case", ["median", "median axis", "quantile several", "median axes", "percentile"]
)
def test_traces_of_unknown_rank_agree(case):
    sample = SAMPLES[case]
    check_traces(sample, "sizes" if "axes" in case else "rank")


@pytest.mark.parametrize(
    "case", ["median", "quantile", "ptp axis", "nanmean {}", "nanstd {}", "nanmax {}", "nansum {}"]
)
def test_dtypes_are_numpys(case):
    ours, theirs, _ = SAMPLES[case]
    check_dtypes((ours, theirs, [X]), "float32", "float16", "int32")


def test_nan_makes_order_statistics_nan():
    with np.errstate(invalid="ignore"):
        for name, args in (("median", ()), ("quantile", (0.0,)), ("quantile", ([0.0, 1.0],))):
            for axis in (None, 0, 1):
                x = HOLES.copy()
                x[2, 3] = 1.0
                got = getattr(gt, name)(x, *args, axis=axis).numpy()
                np.testing.assert_array_equal(got, getattr(np, name)(x, *args, axis=axis))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_nothing_has_no_middle():
    for name in ("median", "nanmedian"):
        for params in ({}, {"axis": 0}, {"axis": 0, "keepdims": True}):
            got = getattr(gt, name)(X[:0], **params).numpy()
            np.testing.assert_array_equal(got, getattr(np, name)(X[:0], **params))


def test_infinities():
    x = np.array([np.inf, 1.0, np.inf, -np.inf])
    assert gt.median(np.array([np.inf, np.inf])).item() == np.inf
    # an element itself, beside an infinity that has no weight: NumPy says nan
    assert gt.quantile(x, 1 / 3).item() == 1.0


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_slices_of_nan_alone():
    x = np.array([[np.nan, np.nan], [1.0, np.nan]])
    for name in "nansum nanprod nanmax nanmin nanmean nanvar nanstd nanmedian".split():
        got = getattr(gt, name)(x, axis=1).numpy()
        np.testing.assert_array_equal(got, getattr(np, name)(x, axis=1))
    for name in ("nanargmax", "nanargmin"):
        with pytest.raises(ValueError, match=f"{name}.*only nan"):
            getattr(gt, name)(x, axis=1)


def test_positions_that_skip_nan():
    for name in ("nanargmax", "nanargmin"):
        for axis in (None, 0, 1):
            got = getattr(gt, name)(HOLES, axis=axis).numpy()
            np.testing.assert_array_equal(got, getattr(np, name)(HOLES, axis=axis))
        assert getattr(gt, name)([3, 1]).tolist() == getattr(np, name)([3, 1])


def test_integers_have_no_nan():
    x = np.array([[3, 1], [2, 8]])
    for name in "nansum nanprod nanmax nanmin nanmean nanvar nanstd nanmedian".split():
        got = getattr(gt, name)(x, axis=0)
        want = getattr(np, name)(x, axis=0)
        np.testing.assert_array_equal(got.numpy(), want)
        assert got.dtype == want.dtype


def test_complex_numbers_are_summed_and_spread():
    z = np.array([1 + 2j, np.nan, 3 - 1j, 0.5j])
    for name in ("nansum", "nanprod", "nanmean", "nanvar", "nanstd"):
        got, want = getattr(gt, name)(z), getattr(np, name)(z)
        np.testing.assert_allclose(got.numpy(), want)
        assert got.dtype == want.dtype


def test_the_gradient_of_no_spread_is_zero():
    x = gt.constant([2.0, np.nan, 2.0])
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = gt.nanstd(x)
    assert tape.gradient(y, x).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: gt.median(x, axis=2), ValueError, "median.*axis 2"),
        (lambda x: gt.median(x, axis=(0, 0)), ValueError, "median.*duplicate"),
        (lambda x: gt.quantile(x[:0], 0.5), ValueError, r"quantile.*no elements.*\(0, 4\)"),
        (lambda x: gt.nanquantile(x[:0], [0.5]), ValueError, "nanquantile.*no elements"),
        (lambda x: gt.median(x, axis="a"), TypeError, "median.*'a'"),
        (lambda x: gt.quantile(x, 1.5), ValueError, r"quantile.*\[0, 1\].*1.5"),
        (lambda x: gt.percentile(x, -1), ValueError, r"percentile.*\[0, 100\].*-1"),
        (lambda x: gt.quantile(x, 0.5, method="best"), ValueError, "best"),
        (lambda x: gt.nanmax(x, axis=2), ValueError, "max.*axis 2"),
        (lambda x: gt.nanargmax(x, axis=0.5), TypeError, "nanargmax.*0.5"),
        (lambda x: gt.ptp(x, axis=5), ValueError, "axis 5"),
    ],
)
def test_errors_eagerly_and_traced(call, error, words):
    for run in (call, gt.function(call)):
        with pytest.raises(error, match=f"(?s){words}"):
            run(gt.constant(X))
