"""NumPy's kernels go another way for many elements: there they agree with the portable ones too."""

from __future__ import annotations

import numpy as np
import pytest
from samples import listed

import gradtape as gt

KERNELS = {
    name: kernel for (name, owner), kernel in gt.registry().kernels.items() if owner == "numpy"
}
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(60, 40))
Y = RANDOM.normal(size=(60, 40))
C = RANDOM.random((60, 40)) < 0.5
ODD = np.where(C, np.nan, np.where(X > 0.5, np.inf, -0.0))
ROWS = RANDOM.integers(-9, 9, size=70)
NEAR_ONE = np.exp(X / 100)
WITH_ZEROS = np.where(RANDOM.random((60, 40)) < 0.02, 0.0, NEAR_ONE)
CUBE = RANDOM.normal(size=(20, 30, 4))
LONG = np.exp(RANDOM.normal(size=3000) / 30)
B4 = RANDOM.normal(size=(50, 4, 4))
SINGULAR = np.concatenate([B4, B4 @ np.diag([1.0, 1.0, 1.0, 0.0]), np.zeros((1, 4, 4))])
STEEP = B4 @ np.diag([1.0, 1e-5, 1e-9, 1.0])
EVERY, FIRST = ("slice", None, None, None), ("array", 0)
ALONG = np.argsort(X, axis=1)

SAMPLES = {
    "where": [
        *(((C, a, b), {}) for a, b in ((X, Y), (X, 0.0), (0.0, X), (X, 0), (ODD, Y), (ODD, 0.0))),
        *(((C, a, b), {}) for a, b in ((X, -0.0), (X, 1.0), (X, Y[:1]), (X.T.copy().T, Y), (0, 1))),
        *(((C, a, b), {}) for a, b in ((X.astype("f"), Y), (X, 1j * Y), (X > 0, C), (X, 0j))),
        ((C, X.astype("f"), Y.astype("f")), {}),
        ((C.T, X.T, Y.T), {}),
    ],
    "getitem": [
        ((X, C), {"index": (FIRST,)}),
        ((X.T, C.T), {"index": (FIRST,)}),
        ((X, C[:, 0]), {"index": (FIRST,)}),
    ],
    "index_add_like": [
        ((X[C], X, C), {"index": (FIRST,)}),
        ((X[ROWS], X, ROWS), {"index": (FIRST,)}),
        ((X[:, ROWS], X, ROWS), {"index": (EVERY, FIRST)}),
        ((X[1:, ROWS], X, ROWS), {"index": (("slice", 1, None, None), FIRST)}),
        ((X[ROWS, ROWS], X, ROWS, ROWS), {"index": (FIRST, ("array", 1))}),
    ],
    "take_adjoint": [
        ((X[ROWS], ROWS, X), {"axis": 0}),
        ((X[:, ROWS], ROWS, X), {"axis": 1}),
        ((X[:, ROWS % 9], (ROWS % 9).astype("u1"), X), {"axis": -1}),
        ((CUBE[:, ROWS], ROWS, CUBE), {"axis": 1}),
        ((CUBE.take(ROWS), ROWS, CUBE), {"axis": None}),
        ((X[7], np.array(-3), X), {"axis": 0}),
        ((X[ROWS.reshape(7, 10)].astype("f"), ROWS.reshape(7, 10), X.astype("f")), {"axis": 0}),
    ],
    "take_along_axis": [
        ((X, ALONG), {"axis": 1}),
        ((X, ALONG - 40), {"axis": -1}),
        ((X, np.repeat(ALONG[:1] % 60, 60, 0)), {"axis": 0}),
        ((CUBE, RANDOM.integers(0, 20, (50, 30, 1))), {"axis": 0}),
        ((CUBE, RANDOM.integers(0, 4, (1, 30, 40))), {"axis": 2}),
    ],
    "take_along_axis_adjoint": [
        ((X, ALONG // 2, X), {"axis": 1}),
        ((Y, -1 - ALONG, X), {"axis": 1}),
        ((RANDOM.normal(size=(50, 30, 4)), RANDOM.integers(0, 20, (50, 30, 1)), CUBE), {"axis": 0}),
    ],
    "unique": [
        ((np.round(X, 1),), {}),
        ((ROWS,), {}),
        ((ODD,), {}),
        ((ODD,), {"equal_nan": False}),
    ],
    "isin": [((np.round(X, 2), np.round(Y[0], 2)), {}), ((ODD, np.array([np.nan, np.inf])), {})],
    "product_of_others": [
        ((array,), {"axis": axis})
        for array in (NEAR_ONE, WITH_ZEROS, X, ODD, NEAR_ONE * (1 + 1j), X * 1e-30, X * 1e30)
        for axis in (0, -1, None, (1, 0))
    ],
    "recurrence": [
        ((LONG, LONG[::-1].copy()), {"axis": 0, "reverse": reverse}) for reverse in (False, True)
    ]
    + [
        ((np.stack([LONG, LONG]), np.ones((2, 3000))), {"axis": 1, "reverse": True}),
        ((np.tile(X / 3, 40), np.tile(Y, 40)), {"axis": 0, "reverse": False}),
        ((LONG.astype("c16"), LONG), {"axis": 0}),
    ],
    "cofactor": [
        *(((B4[..., :n, :n].copy(),), {}) for n in (1, 2, 3, 4)),
        ((SINGULAR,), {}),
        ((STEEP,), {}),
        ((B4 * (1 + 2j),), {}),
        ((RANDOM.normal(size=(30, 30)),), {}),
        ((np.ones((4, 4)),), {}),
        ((np.zeros((0, 4, 4)),), {}),
    ],
}
CASES = [(name, *sample) for name, samples in SAMPLES.items() for sample in samples]


@pytest.mark.parametrize(
    ("name", "arrays", "params"), CASES, ids=lambda x: x if type(x) is str else ""
)
def test_they_agree_with_the_portable_kernels(name, arrays, params):
    portable = gt.registry().ops[name].kernel
    portable = getattr(np, portable) if isinstance(portable, str) else portable
    before = [np.copy(x) for x in arrays]
    with np.errstate(all="ignore"):
        found = listed(KERNELS[name](*arrays, **params))
        run = (np,) if portable is not np.where else ()
        wanted = listed(portable(*run, *arrays, **params))
    for mine, theirs in zip(found, wanted, strict=True):
        assert mine.dtype == theirs.dtype
        assert mine.shape == theirs.shape
        scale = np.max(np.abs(theirs[np.isfinite(theirs)]), initial=0.0)
        tolerance = 1e-5 if mine.dtype.char == "f" else 1e-11
        np.testing.assert_allclose(mine, theirs, rtol=tolerance * 1e2, atol=tolerance * scale)
        if name in ("where", "unique") and mine.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(mine), np.signbit(theirs))
    for x, copy in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(x, copy)


@pytest.mark.parametrize("bad", [40, -41])
def test_an_index_out_of_bounds_is_an_error_for_many_elements_too(bad):
    indices = ALONG.copy()
    indices[3, 4] = bad
    with pytest.raises(IndexError, match="out of bounds"):
        gt.take_along_axis(gt.constant(X), indices, axis=1)
