"""Indices of arrays and slices on a library that takes arrays for all axes or for none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from strict_backend import NAME

import gradtape as gt

pytestmark = pytest.mark.usefixtures("strict")

X = np.arange(24.0).reshape(2, 3, 4)
ROWS, COLUMNS = np.array([1, -1, 0]), np.array([[0], [-2]])
MASK = X.sum(2) > 20

#: Indices as NumPy defines them: arrays together, apart, with integers, masks and new axes.
INDICES: list[Any] = [
    (ROWS,),
    (slice(None), ROWS),
    (..., ROWS),
    (slice(None), slice(None, None, 2), ROWS),
    (1, ROWS),
    (ROWS, 0),
    (ROWS, slice(None), 1),
    (ROWS, slice(1, 3), COLUMNS),
    (slice(None), COLUMNS, ROWS),
    (None, ROWS),
    (slice(1, None, -1), ROWS, None),
    (ROWS, None, COLUMNS),
    (MASK,),
    (slice(None), np.array([True, False, True])),
    (np.array([True, False]), slice(None), np.array([3])),
    (np.zeros((0,), int),),
    (np.array(1), ROWS),
]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_an_index_selects_and_has_gradients_as_on_numpy(index: Any) -> None:
    found = []
    for place in ("numpy", NAME):
        x = gt.constant(X).to(place)
        where = tuple(gt.constant(p).to(place) if isinstance(p, np.ndarray) else p for p in index)
        with gt.GradientTape() as tape:
            tape.watch(x)
            y = x[where] ** 2
        new = x.at[where].set(-1.0)
        found.append([t.to("numpy").numpy() for t in (y, tape.gradient(y, x), new)])
    np.testing.assert_array_equal(found[0][0], X[index] ** 2)
    for mine, right in zip(found[1], found[0], strict=True):
        np.testing.assert_array_equal(mine, right)


@pytest.mark.parametrize("wrong", [(np.array([2]),), (slice(None), np.array([-4]))], ids=str)
def test_an_index_out_of_bounds_is_refused(wrong: Any) -> None:
    where = tuple(gt.constant(p).to(NAME) if isinstance(p, np.ndarray) else p for p in wrong)
    with pytest.raises(IndexError, match="out of bounds for axis"):
        gt.constant(X).to(NAME)[where]
