"""Order statistics and reductions that skip nan: nan, nothing, infinities, integers."""

from __future__ import annotations

import numpy as np
import pytest
from families.statistics import HOLES, X

import gradtape as gt


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
        with pytest.raises(ValueError, match=f"{name}.*are nan"):
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
