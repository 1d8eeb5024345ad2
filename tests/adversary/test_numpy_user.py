"""What a NumPy user types, as NumPy takes it and as NumPy refuses it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.testing import check_gradients

WIDE, LINE = np.arange(6.0).reshape(2, 3), np.arange(5.0)
WRONG: dict[str, tuple[Callable[..., Any], Any]] = {
    "inv": (lambda n, x: n.linalg.inv(x), WIDE),
    "det": (lambda n, x: n.linalg.det(x), WIDE),
    "slogdet": (lambda n, x: n.linalg.slogdet(x), LINE),
    "cholesky": (lambda n, x: n.linalg.cholesky(x), WIDE),
    "eigh": (lambda n, x: n.linalg.eigh(x), WIDE),
    "eig": (lambda n, x: n.linalg.eig(x), WIDE),
    "qr": (lambda n, x: n.linalg.qr(x), LINE),
    "svd": (lambda n, x: n.linalg.svd(x), LINE),
    "matrix_power": (lambda n, x: n.linalg.matrix_power(x, 2), WIDE),
    "lstsq": (lambda n, x: n.linalg.lstsq(x, LINE), WIDE),
    "pinv": (lambda n, x: n.linalg.pinv(x), LINE),
    "matmul": (lambda n, x: n.matmul(x, 2.0), WIDE),
    "take": (lambda n, x: n.take(x, [0], mode="nearest"), LINE),
    "einsum": (lambda n, x: n.einsum(x, x), WIDE),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("traced", [False, True], ids=["eager", "traced"])
def test_a_wrong_call_raises_what_numpy_raises_and_names_the_op(name: str, traced: bool) -> None:
    call, x = WRONG[name]
    with pytest.raises((ValueError, TypeError)) as theirs:
        call(np, x)

    def ours(x: Any) -> Any:
        return call(gt, x)

    with pytest.raises(theirs.type, match=name):
        (gt.function(ours) if traced else ours)(gt.constant(x))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "int64", "float32"])
def test_rint_gives_numpys_dtype(dtype: str) -> None:
    x = np.array([0, 1]).astype(dtype)
    want = np.rint(x)
    for got in (gt.rint(gt.constant(x)), np.rint(gt.constant(x)), gt.function(gt.rint)(x)):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)


def test_einsum_takes_numbers_for_labels_and_an_order() -> None:
    x, y = WIDE, np.arange(12.0).reshape(3, 4)
    for labels in ([0, 2], [2, 0]):
        want = np.einsum(x, [0, 1], y, [1, 2], labels)
        np.testing.assert_allclose(gt.einsum(x, [0, 1], y, [1, 2], labels), want)
        np.testing.assert_allclose(np.einsum(gt.constant(x), [0, 1], y, [1, 2], labels), want)
    np.testing.assert_allclose(gt.einsum(x, [0, 1], y, [1, 2]), x @ y)
    np.testing.assert_allclose(gt.einsum(x, [..., 1]), np.einsum(x, [..., 1]))
    np.testing.assert_allclose(gt.einsum("ij,jk", x, y, optimize=True), x @ y)
    check_gradients(lambda x, y: gt.einsum(x, [0, 1], y, [1, 2], [2]), x, y, order=2)


@pytest.mark.parametrize("mode", ["wrap", "clip"])
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_take_brings_indices_inside(mode: str, axis: int | None) -> None:
    indices = np.array([[7, -9], [1, 0]], np.int8)
    want = np.take(WIDE, indices, axis, mode=mode)
    x = gt.constant(WIDE)
    np.testing.assert_array_equal(gt.take(x, indices, axis, mode), want)
    np.testing.assert_array_equal(np.take(x, indices, axis, mode=mode), want)
    traced = gt.function(lambda x: gt.take(x, indices, axis, mode))
    np.testing.assert_array_equal(traced(x), want)
    check_gradients(lambda x: gt.take(x, indices, axis, mode), WIDE, order=2)
