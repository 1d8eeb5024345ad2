"""``x.at[index].multiply``, ``divide``, ``max``, ``min``: NumPy's ``ufunc.at`` on a new tensor."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.testing import Sample, check_op

RNG = np.random.default_rng(4)
X = RNG.uniform(0.5, 2.0, (3, 4)) * RNG.choice([-1.0, 1.0], (3, 4))
UFUNCS = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "max": np.maximum,
    "min": np.minimum,
}
INDICES: dict[str, Any] = {
    "rows repeated": np.array([0, 2, 0, 0]),
    "elements repeated": (np.array([0, 1, 0]), np.array([3, 1, 3])),
    "a row": 1,
    "every second": (slice(None), slice(0, None, 2)),
    "a mask": X > 0,
    "a row, columns repeated": (2, np.array([1, 1, 0, 1])),
    "none": np.zeros(0, int),
    "everything": ...,
}


def values_for(index: Any) -> Any:
    picked = X[index].shape
    return np.linspace(0.6, 1.9, int(np.prod(picked))).reshape(picked)


@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES)
@pytest.mark.parametrize("method", UFUNCS)
def test_it_is_numpys_ufunc_at(method: str, index: Any) -> None:
    want, values = X.copy(), values_for(index)
    UFUNCS[method].at(want, index, values)
    got = getattr(gt.constant(X).at[index], method)(values)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-14)


@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES)
@pytest.mark.parametrize("method", ["multiply", "divide", "max", "min"])
def test_gradients_traces_and_files_are_right(method: str, index: Any) -> None:
    def update(x: Any, values: Any) -> Any:
        return getattr(x.at[index], method)(values)

    sample = Sample(X, values_for(index))
    if isinstance(index, np.ndarray) and index.dtype == bool:
        sample.without("unknown sizes", "unknown rank", reason="the mask has a shape")
    check_op(update, [sample])


def test_zeros_among_the_factors_have_exact_gradients_of_both_orders() -> None:
    index = np.array([1, 1, 0, 1])
    check_op(
        lambda x, v: x.at[index].multiply(v),
        [Sample(np.array([0.7, 0.0, 2.0]), np.array([0.0, 1.5, 0.0, 2.0]))],
    )


def test_integers_stay_integers_and_booleans_booleans() -> None:
    x = gt.constant(np.array([3, 5, 7], np.int32))
    for method in ("multiply", "max", "min"):
        want = x.numpy().copy()
        UFUNCS[method].at(want, [0, 0, 2], np.array([4, 2, 9], np.int32))
        got = getattr(x.at[[0, 0, 2]], method)([4, 2, 9])
        assert got.dtype == np.int32
        np.testing.assert_array_equal(got.numpy(), want)
    truth = gt.constant(np.array([True, False])).at[[0, 0]].multiply(np.array([True, False]))
    assert truth.dtype == bool
    assert truth.tolist() == [False, False]


def test_complex_numbers_are_multiplied() -> None:
    index = np.array([0, 0, 1])
    z = X[0, :3] + 1j * X[1, :3]
    check_op(lambda x, v: x.at[index].multiply(v), [Sample(z, z[::-1] * 0.5)])


def test_values_that_tie_share_the_gradient() -> None:
    x = gt.constant([1.0, 2.0])
    v = gt.constant([2.0, 2.0])
    with gt.GradientTape() as tape:
        tape.watch([x, v])
        y = x.at[[1, 1]].max(v)
    gx, gv = tape.gradient(y, [x, v])
    assert gx[0].item() == 1.0
    assert (gx[1] + gt.sum(gv)).item() == pytest.approx(1.0)


def test_an_infinity_that_is_not_touched_keeps_its_gradient() -> None:
    x = gt.constant([-np.inf, 1.0, 3.0])
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = x.at[[1, 1]].max([2.0, 4.0])
    assert tape.gradient(y, x).tolist() == [1.0, 0.0, 1.0]


def test_what_does_not_fit_is_refused_by_name() -> None:
    x = gt.constant(X)
    with pytest.raises(ValueError, match=r"at\[\.\.\.\]\.multiply: .*\(3,\).*\(4,\)"):
        x.at[0].multiply(np.ones(3))
    with pytest.raises(TypeError, match=r"at\[\.\.\.\]\.max: .*float64.*complex128"):
        x.at[0].max(1j)
    with pytest.raises(IndexError, match="does not fit shape"):
        x.at[np.array([5])].min(1.0)
    with pytest.raises(TypeError, match=r"at\[\.\.\.\]\.divide: .*int64"):
        gt.constant([1, 2]).at[0].divide(2)


@pytest.mark.parametrize("method", ["multiply", "divide", "max", "min"])
@pytest.mark.parametrize("axes", [(0, 0, 0), (None, 0, 0), (0, None, 0), (None, None, 0)])
def test_a_batch_is_updated_as_its_examples_are(method: str, axes: Any) -> None:
    def update(x: Any, index: Any, values: Any) -> Any:
        return getattr(x.at[index], method)(values)

    indices = np.array([[0, 1, 0], [2, 2, 2]])
    given = [X[:2], indices, X[1:, :3]]
    given = [gt.constant(a if n == 0 else a[0]) for a, n in zip(given, axes, strict=True)]
    got = gt.vmap(update, in_axes=axes)(*given)
    for i in range(2):
        want = update(*(a[i] if n == 0 else a for a, n in zip(given, axes, strict=True)))
        np.testing.assert_allclose(got[i].numpy(), want.numpy(), rtol=1e-14)


ROUNDS = "rounds values of (float64|complex128) to (float32|float16|complex64)"


@pytest.mark.parametrize("method", ["set", "add", "subtract", "multiply", "divide", "max", "min"])
@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        ("float32", gt.constant(np.float64(0.1))),
        ("float16", np.array([0.1])),
        ("float32", np.float64(0.1)),
        ("float32", [gt.constant(np.float64(0.1))]),
    ],
)
def test_double_precision_that_is_rounded_is_told_of(method: str, dtype: str, values: Any) -> None:
    x = gt.ones(3, dtype=dtype)
    with pytest.warns(UserWarning, match=ROUNDS) as caught:
        assert getattr(x.at[1:2], method)(values).dtype == dtype
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match=ROUNDS):
        gt.function(lambda x: getattr(x.at[1:2], method)(values))(x)
    with pytest.warns(UserWarning, match=ROUNDS):
        gt.writable(x)[1:2] = values


def test_rounding_that_is_meant_is_not_told_of() -> None:
    x = gt.ones(3)
    z = gt.ones(3, dtype="complex64")
    with pytest.warns(UserWarning, match=ROUNDS):
        z.at[0].set(np.array(1j))
    with warnings.catch_warnings(action="error"):
        x.at[0].set(0.1)
        x.at[:2].set([0.1, 0.2])
        x.at[0].set(gt.constant(0.1))
        x.at[0].set(np.int64(3))
        x.at[0].set(np.array(0.1).astype("float32"))
        z.at[0].set(np.float32(0.5))
        gt.zeros(3, dtype="float64").at[0].set(np.float64(0.1))
        gt.ones(3, dtype="float16").at[0].set(gt.constant(0.1))  # float32, as the user chose
