"""Values, dtypes, shapes and errors at the edges of NumPy's functions, in tables by family."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.testing import check_gradients

INF, NAN = np.inf, np.nan
INTEGERS = "int8 uint8 int16 uint16 int32 uint32 int64 uint64".split()
REALS = ["bool", *INTEGERS, "float16", "float32", "float64"]
NUMBERS = [*REALS, "complex64", "complex128"]
Call = Callable[..., Any]


def array(values: Any, dtype: str = "float64") -> np.ndarray[Any, Any]:
    return np.array(values, dtype)


def same(call: Call, *arrays: Any, exact: bool = False) -> None:
    """Check a call against NumPy: values, dtypes and shapes, or the type of the error."""
    tensors = [gt.constant(x) for x in arrays]
    with np.errstate(all="ignore"):
        try:
            wanted = call(*arrays)
        except Exception as error:
            with pytest.raises(type(error)):
                call(*tensors)
            return
        found = call(*tensors)
    several = isinstance(wanted, (tuple, list))
    for mine, right in zip(
        found if several else [found], wanted if several else [wanted], strict=True
    ):
        right = np.asarray(right)
        assert isinstance(mine, gt.Tensor)
        assert (mine.dtype, mine.shape) == (right.dtype, right.shape)
        near = 0.0 if exact else 1e-12 if right.dtype.itemsize > 4 else 1e-3
        np.testing.assert_allclose(mine.numpy(), right, rtol=near, atol=near)


# -- quantiles -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", INTEGERS)
def test_quantiles_of_integers_do_not_overflow(dtype: str) -> None:
    ends = np.iinfo(dtype)
    x = array([ends.min, ends.max, ends.max - 1, ends.min + 3, 7], dtype)
    for rows in (x[:4], x, x[1:3]):
        for name, args in {
            "median": (),
            "nanmedian": (),
            "quantile": (0.3,),
            "nanquantile": (0.7,),
            "percentile": (41,),
            "nanpercentile": (90.0,),
        }.items():
            want = getattr(np, name)(rows.astype("float64"), *args)  # NumPy's own overflow
            for call in (getattr(gt, name), getattr(np, name)):
                found = call(gt.constant(rows), *args)
                assert found.dtype == "float64"
                np.testing.assert_allclose(found, want, rtol=1e-15)


def test_quantiles_of_half_precision_do_not_overflow() -> None:
    x = array([-60000, 60000, 59000, -1], "float16")
    for name, args in (("median", ()), ("nanmedian", ()), ("quantile", (0.4,))):
        found = getattr(gt, name)(x, *args)
        assert found.dtype == "float16"
        want = getattr(np, name)(x.astype("float64"), *args)
        np.testing.assert_allclose(found, want, rtol=1e-3)


@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
def test_the_dtype_of_quantiles_is_numpys(name: str) -> None:
    f = getattr(np, name)
    for dtype in REALS:
        x = array([1, 0, 3, 4], dtype)
        for q in (0.3, 1, array(0.3), array([0.3]), array(0.25, "float32"), array([1], "int64")):
            same(lambda a, q=q: f(a, q), x)
            same(lambda a, q=q: f(a, q, method="nearest"), x)
        same(lambda a: f(a, True), x)
    for q in (None, 1j, NAN, -0.1, np.zeros((1, 1, 1))):
        same(lambda a, q=q: f(a, q), x)


def test_quantiles_of_nothing_are_numpys() -> None:
    for shape in ((0,), (0, 3), (3, 0)):
        for dtype in ("bool", "int8", "float32"):
            for axis in (None, 0, -1):
                for f in (np.median, np.nanmedian):
                    same(lambda a, f=f, axis=axis: f(a, axis=axis), np.zeros(shape, dtype))
                for f in (np.quantile, np.nanquantile):
                    same(lambda a, f=f, axis=axis: f(a, 0.3, axis=axis), np.zeros(shape, dtype))
    assert np.isnan(gt.nanquantile(np.zeros((0, 3)), [0.1, 0.2], axis=0).numpy()).all()
    assert gt.nanquantile(np.zeros((0, 3)), [0.1, 0.2], axis=0).shape == (2, 3)


def test_a_quantile_beside_an_infinity_is_infinite() -> None:
    # NumPy gives nan for shares above a half
    x = gt.constant([-INF, 1.0, INF])
    for f in (gt.quantile, gt.nanquantile):
        assert f(x, [0.0, 0.2, 0.4, 0.5, 0.6, 0.9]).tolist() == [-INF, -INF, -INF, 1.0, INF, INF]
        assert np.isnan(f(x[::2], 0.4).item())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_quantiles_have_gradients_at_promoted_dtypes(dtype: str) -> None:
    x = array([0.3, 2.0, -1.0, 5.0], dtype)
    q = array([0.2, 0.7])
    for f in (gt.quantile, gt.nanquantile):
        with gt.GradientTape() as tape:
            t = gt.constant(x)
            tape.watch(t)
            y = f(t, q)
        assert y.dtype == "float64"
        assert tape.gradient(y, t).dtype == dtype
        check_gradients(lambda t, f=f: f(t, q) ** 2, x.astype("float64"))
        batch = gt.constant(np.stack([x, x * 2]))
        want = np.stack([np.quantile(row, q) for row in batch.numpy()])
        np.testing.assert_allclose(gt.vmap(lambda t, f=f: f(t, q))(batch), want, rtol=1e-6)
        unknown = gt.function(lambda t: f(t, q), [gt.TensorSpec([None], dtype)])
        np.testing.assert_allclose(unknown(gt.constant(x)), want[0], rtol=1e-6)
