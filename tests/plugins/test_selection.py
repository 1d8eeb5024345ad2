"""Arranging, padding, choosing: integers, complex values, what has no gradient."""

from __future__ import annotations

import numpy as np
import pytest
from families.selection import SAMPLES, V, X
from samples import check_two_orders

import gradtape as gt


@pytest.mark.parametrize("mode", ["linear_ramp", "maximum", "mean", "median", "minimum", "wrap"])
def test_padding_of_integers_rounds_as_numpys(mode):
    x = np.array([[9, 2, 4], [1, 8, 2]])
    got = gt.pad(x, ((2, 3), (1, 0)), mode=mode)
    np.testing.assert_array_equal(got.numpy(), np.pad(x, ((2, 3), (1, 0)), mode=mode))


def test_a_number_has_no_sides_to_pad():
    for mode in ("constant", "edge", "mean", "linear_ramp"):
        assert gt.pad(2.5, 3, mode=mode).shape == np.pad(2.5, 3, mode=mode).shape == ()


def test_complex_values_keep_their_parts():
    z = X + 1j * X[::-1]
    for name in ("pad edge", "hstack", "rot90 1", "compress"):
        ours, theirs, inputs = SAMPLES[name]
        check_two_orders((ours, theirs, [z] * len(inputs)))


# -- what has no gradient --------------------------------------------------------------------------


@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted(side):
    edges, values = np.array([1.0, 2.0, 2.0, 5.0]), np.array([[0.0, 2.0], [9.0, 5.0]])
    got = gt.searchsorted(edges, values, side=side)
    np.testing.assert_array_equal(got.numpy(), np.searchsorted(edges, values, side=side))
    assert gt.searchsorted(edges, 2.0, side).item() == np.searchsorted(edges, 2.0, side)
    mixed, order = edges[::-1].copy(), np.array([3, 2, 1, 0])
    got = gt.searchsorted(mixed, values, side, sorter=order)
    np.testing.assert_array_equal(got.numpy(), np.searchsorted(edges, values, side=side))
    traced = gt.function(lambda x: gt.searchsorted(edges, x, side))
    np.testing.assert_array_equal(traced(values).numpy(), np.searchsorted(edges, values, side))


def test_unique_in_all_its_forms():
    x = np.array([[3, 1, 3], [2, 1, 3]])
    for ours, theirs in zip(
        gt.unique(x, return_index=True, return_inverse=True, return_counts=True),
        np.unique(x, return_index=True, return_inverse=True, return_counts=True),
        strict=True,
    ):
        np.testing.assert_array_equal(ours.numpy(), theirs)
    assert gt.unique(x).tolist() == [1, 2, 3]
    assert [y.tolist() for y in gt.unique_counts(x)] == [[1, 2, 3], [2, 1, 3]]
    assert gt.unique_inverse(x)[1].shape == (2, 3)
    assert len(gt.unique_all(x)) == 4
    assert gt.unique_values(x).tolist() == [1, 2, 3]
    assert gt.function(gt.unique)(gt.constant(x)).tolist() == [1, 2, 3]


def test_positions_of_what_is_not_zero():
    x = np.array([[3, 0, 2], [0, 1, 5]])
    for ours, theirs in zip(gt.nonzero(x), np.nonzero(x), strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs)
    np.testing.assert_array_equal(gt.argwhere(x).numpy(), np.argwhere(x))
    np.testing.assert_array_equal(gt.flatnonzero(x).numpy(), np.flatnonzero(x))
    traced = gt.function(gt.nonzero)(gt.constant(x))
    np.testing.assert_array_equal(traced[1].numpy(), np.nonzero(x)[1])


def test_isin_and_argpartition():
    x = np.array([[3, 0, 2], [0, 1, 5]])
    np.testing.assert_array_equal(gt.isin(x, [0, 5]).numpy(), np.isin(x, [0, 5]))
    assert gt.isin(x, [0, 5], invert=True).sum().item() == 3
    indices = gt.argpartition(X, 1, axis=0)
    np.testing.assert_array_equal(indices.numpy(), np.argpartition(X, 1, axis=0))


# -- errors ----------------------------------------------------------------------------------------


def test_an_axis_of_unknown_size_is_split_into_parts():
    split = gt.function(
        lambda x: gt.array_split(x, 2), input_signature=[gt.TensorSpec([None], "float64")]
    )
    for mine, want in zip(split(V), np.array_split(V, 2), strict=True):
        np.testing.assert_array_equal(mine, want)
