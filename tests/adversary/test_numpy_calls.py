"""Calls that the fuzzer against NumPy found to differ, in families: they give what NumPy gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradtape as gt

I8, U8, U32, U64 = (np.array([1, 2], dtype) for dtype in ("int8", "uint8", "uint32", "uint64"))

SAME = [
    # Python integers that the dtype does not hold
    "array(I8) < 300",
    "300 >= array(I8)",
    "array(U8) == -1",
    "array(U8) != 256",
    "xp.less_equal(array(U8), 300)",
    "xp.arctan2(array(U32), -2)",
    "xp.copysign(array(U8), -1)",
    "xp.nextafter(array(U8), -200)",
    # an axis of arrays whose ranks differ
    "xp.vecdot(array([0, 1]), array([[0j, 0j], [1, 0]]), axis=0)",
    "xp.linalg.vecdot(array([0, 0, 1]), array(np.eye(3)), axis=0)",
    "np.vecdot(array(np.ones((1, 4, 2))), array(np.arange(8.0).reshape(2, 4)), axis=1)",
    # dtypes
    "xp.intersect1d(array([1, 2]), array([2], 'uint64'))",
    "xp.setxor1d(array([2**62, 0]), array([2.0**62]))",
    "xp.select([array([True, False])], [array(U8)])",
    "xp.select([array([True]), array([False])], [array([3], 'uint16'), array([True])])",
    "xp.gradient(array([0.0, 1.0], 'float32'), array(2.0))",
    "xp.cumulative_sum(array([1, 2]), dtype='bool', include_initial=True)",
    "array([True]).conj()",
    "xp.round(array([2**63 - 1, 2**53 + 1]), 1)",
    # what has no elements, or no axes
    "xp.take(array([]), array([], 'int64'), mode='wrap')",
    "xp.take(array([1.0]), [[]])",
    "xp.repeat(array([]), [])",
    "xp.argwhere(array(2.0))",
    "xp.argwhere(array(0.0))",
    "xp.trim_zeros(array(0.0))",
    "xp.linalg.cond(array(np.zeros((0, 1, 1))))",
]


@pytest.mark.parametrize("source", SAME)
def test_a_call_gives_what_numpy_gives(source: str) -> None:
    theirs, ours = (run(source, tensors) for tensors in (False, True))
    ours = ours.numpy()
    assert ours.dtype == theirs.dtype
    assert ours.shape == np.shape(theirs)
    np.testing.assert_array_equal(ours, theirs)


REFUSED = [
    ("xp.insert(array(I8), 0, 300)", OverflowError, "insert"),
    ("xp.insert(array(U8), 0, -1.5)", OverflowError, "insert"),
    ("xp.full((2,), 300, 'int8')", OverflowError, "full"),
    ("xp.asarray(-1, 'uint8')", OverflowError, "-1"),
    ("xp.asarray([1, 300], 'int8')", OverflowError, "300"),
    ("xp.asarray(1j, 'float32')", TypeError, "complex"),
    ("xp.piecewise(array(I8), [array([True, False])], [300, 0])", OverflowError, "piecewise"),
    ("xp.min(array(U32), initial=-1.5)", OverflowError, "min"),
    ("xp.sum(array([[1.0]]), axis=True)", TypeError, "sum"),
    ("xp.argmax(array([[1.0]]), axis=True)", TypeError, "argmax"),
    ("xp.concatenate([array([1.0])], axis=True)", TypeError, "concatenate"),
    ("xp.arange(None)", TypeError, "arange"),
    ("xp.trim_zeros(array([[1]]), axis=(0, -2))", ValueError, "trim_zeros"),
    ("xp.rollaxis(array([1.0]), 0, start=1.5)", TypeError, "rollaxis"),
    ("xp.linalg.cond(array(1.0))", np.linalg.LinAlgError, "cond"),
    ("xp.linalg.cholesky(array(1.0), upper=True)", np.linalg.LinAlgError, "cholesky"),
    ("float(array(1j))", TypeError, "float"),
    ("int(array(1j))", TypeError, "int"),
    ("array([1, 2]).item()", ValueError, "item"),
]


@pytest.mark.parametrize(("source", "kind", "word"), REFUSED, ids=[row[0] for row in REFUSED])
def test_a_call_that_numpy_refuses_is_refused_in_words(
    source: str, kind: type[Exception], word: str
) -> None:
    with pytest.raises(kind):
        run(source, tensors=False)
    with pytest.raises(kind, match=word):
        run(source, tensors=True)


def test_a_product_of_three_does_not_overflow_in_the_narrowest_dtype() -> None:
    large = np.array([100, 100], "int8")
    assert gt.einsum("i,i,i", large, large, np.array([1.0, 1.0])).item() == 20000.0


def test_a_dtype_that_no_tensor_has_is_refused() -> None:
    for make in (gt.zeros_like, gt.ones_like):
        with pytest.raises(TypeError, match="object"):
            make(gt.constant([1.0]), dtype="object")
    with pytest.raises(TypeError, match="floating"):
        gt.std(gt.constant([1, 2]), dtype="int32")


def test_numbers_that_do_not_fit_are_followed_beside_tensors_that_a_tape_watches() -> None:
    x = gt.constant([1.0, 2.0])
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = gt.sum(x * gt.cast(gt.constant([1, 2], "uint8") < 300, "float32"))
    assert tape.gradient(y, x).tolist() == [1.0, 1.0]


def run(source: str, tensors: bool) -> Any:
    def array(*given: Any) -> Any:
        made = np.array(*given)
        return gt.constant(made) if tensors else made

    names = {"xp": gt if tensors else np, "np": np, "array": array}
    return eval(source, {**names, "I8": I8, "U8": U8, "U32": U32, "U64": U64})
