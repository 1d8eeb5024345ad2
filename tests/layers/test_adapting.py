"""``Normalization.adapt``: statistics of inputs, whatever form the data have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape import layers as L

X = np.random.default_rng(0).normal(size=(8, 3)).astype("float32") + 1
Y = np.zeros((8, 3), "float32")
WEIGHTS = np.full(8, 9.0, "float32")
slices = gt.data.Dataset.from_tensor_slices


def _generator(*parts: Any) -> Iterator[Any]:
    for i in range(0, 8, 4):
        batch = tuple(part[i : i + 4] for part in parts)
        yield batch if len(batch) > 1 else batch[0]


@pytest.mark.parametrize(
    "data",
    [
        X,
        gt.constant(X),
        X.tolist(),
        [X[:3], X[3:]],
        slices(X).batch(4),
        slices(X),
        slices((X, Y)).batch(4),
        slices((X, Y)),
        slices((X, Y, WEIGHTS)).batch(4),
        _generator(X),
        map(list, _generator(X, Y)),
        [[X[:4], Y[:4, 0]], [X[4:], Y[4:, 0]]],
        [[X[:4], Y[:4], WEIGHTS[:4]], [X[4:], Y[4:], WEIGHTS[4:]]],
        [[X[:4]], [X[4:]]],
        [list(X[:2]), list(X[2:5]), list(X[5:])],
        _generator(X, Y),
        _generator(X, Y, WEIGHTS),
        zip(X, WEIGHTS, strict=True),
        [tuple(row) for row in X.tolist()],
    ],
    ids=lambda data: type(data).__name__,
)
def test_only_inputs_count(data: Any) -> None:
    layer = L.Normalization()
    layer.adapt(data)
    np.testing.assert_allclose(layer.mean, X.mean(0), rtol=1e-5)
    np.testing.assert_allclose(layer.variance, X.var(0), rtol=1e-4)


def test_numbers_with_labels() -> None:
    layer = L.Normalization(axis=None)
    layer.adapt(slices((X[:, 0], WEIGHTS)))
    np.testing.assert_allclose(layer.mean, X[:, 0].mean(), rtol=1e-5)


@pytest.mark.parametrize(
    ("data", "error", "told"),
    [
        ((X, Y), TypeError, r"takes inputs without labels, got a tuple of 2 arrays; .* adapt\(x\)"),
        ([{"a": X}], TypeError, "takes arrays of numbers, or batches of them, got a dict"),
        ([[[1.0], [1.0, 2.0]]], TypeError, "takes arrays of numbers, .* got a list"),
        ([X, X[:, :2]], ValueError, "all need the same features"),
        ([], ValueError, "adapt got no examples"),
        (np.where(X[2, 1] == X, np.nan, X), ValueError, r"NaN or infinity \(features 1\); replace"),
        ([X, np.full((2, 3), np.inf)], ValueError, r"infinity \(features 0, 1, 2\)"),
        (
            X[:, 0],
            ValueError,
            r"one example of 8 features; .* x\[:, None\], or the layer axis=None",
        ),
        (X[:, 0].tolist(), ValueError, "one example of 8 features"),
    ],
)
def test_what_is_no_data_is_refused(data: Any, error: Any, told: str) -> None:
    with pytest.raises(error, match=told):
        L.Normalization().adapt(data)


def test_one_column_of_numbers() -> None:
    for axis, x in ((None, X[:, 0]), (-1, X[:, :1])):
        layer = L.Normalization(axis=axis)
        layer.adapt(x)
        np.testing.assert_allclose(np.std(layer(x)), 1.0, rtol=1e-5)
    with pytest.raises(ValueError, match="adapt got NaN or infinity; replace"):
        L.Normalization(axis=None).adapt([1.0, np.nan])


def test_lists_of_one_array_keep_their_axes() -> None:
    x = np.random.default_rng(1).normal(size=(6, 2, 4))
    layer, other = L.Normalization(axis=1), L.Normalization(axis=1)
    layer.adapt([[gt.constant(x[:3])], [gt.constant(x[3:])]])
    other.adapt(x)
    np.testing.assert_allclose(layer.mean, other.mean, atol=1e-6)
