"""Sums over all axes except the last have the bits of NumPy's own."""

from __future__ import annotations

import numpy as np
import pytest

import gradtape as gt
from gradtape.plugins.summing import sum_columns, sums_columns

SHAPES = [
    (2048, 2),
    (4096, 3),
    (700, 16),
    (129, 64),
    (64, 256),
    (9, 31, 17),
    (5, 6, 7, 20),
    (2, 2048),
]


@pytest.mark.parametrize("dtype", ["f", "d", "e", "D", "i"])
@pytest.mark.parametrize("shape", SHAPES)
def test_sums_have_the_bits_of_numpy(shape, dtype):
    rng = np.random.default_rng(len(shape))
    axis = tuple(range(len(shape) - 1)) if len(shape) > 2 else 0
    assert sums_columns(shape, axis) == (np.prod(shape[:-1]) >= 512 and shape[-1] <= 128)
    x = (rng.standard_normal(shape) * 100).astype(dtype)
    for given in (x, np.asfortranarray(x), x[::-1]):
        want = np.add.reduce(given, axis)
        np.testing.assert_array_equal(sum_columns(given, axis), want)
        kept = sum_columns(given, axis, None, None, True)
        np.testing.assert_array_equal(kept, np.add.reduce(given, axis, keepdims=True))
        out = np.full_like(want, 7)
        assert sum_columns(given, axis, None, out, False) is out
        np.testing.assert_array_equal(out, want)


def test_sums_of_zeros_have_the_sign_of_numpy():
    x = np.zeros((1024, 4), "f")
    x[:, 0] = -0.0
    x[1:, 1] = -0.0
    x[0, 2], x[1:, 3] = -0.0, 1.0
    np.testing.assert_array_equal(np.signbit(sum_columns(x, 0)), np.signbit(np.add.reduce(x, 0)))


@pytest.mark.parametrize(
    ("shape", "axis"),
    [((4096,), 0), ((8, 4), 0), ((4096, 1), 0), ((64, 64), 1), ((8, 8, 64), 0), ((64, 64), None)],
)
def test_other_sums_are_left_to_numpy(shape, axis):
    assert not sums_columns(shape, axis)


@pytest.mark.parametrize("executor", [None, "planned"])
@pytest.mark.parametrize("kind", ["over", "invalid"])
@pytest.mark.parametrize(("shape", "axis"), [((2048, 4), 0), ((300, 30, 3), 1), ((3000, 3), 1)])
def test_sums_warn_as_numpy_does(shape, axis, kind, executor):
    x = np.ones(shape, "float32")
    place = (1,) * len(shape)
    others = tuple(2 if i == axis else 1 for i in range(len(shape)))
    pair = (np.inf, -np.inf) if kind == "invalid" else (np.finfo("f").max,) * 2
    x[place], x[others] = pair
    x = gt.constant(x)

    def function(x):
        return gt.sum(x, axis=axis)

    run = function if executor is None else gt.function(function, executor=executor)
    with np.errstate(**{kind: "raise"}):
        run(gt.ones(shape, dtype="float32"))
        with pytest.raises(FloatingPointError):
            run(x)
    with np.errstate(**{kind: "warn"}), pytest.warns(RuntimeWarning):
        found = run(x)
    with np.errstate(all="ignore"):
        assert np.array_equal(found.numpy(), np.add.reduce(x.numpy(), axis), equal_nan=True)
