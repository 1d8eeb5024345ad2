"""Lists of Python numbers are weak, as single ones are: they take the dtype of what is beside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt

V = np.array([0.3, 1.1, 2.7])
M = np.array([[2.0, 0.3, 0.1], [0.2, 3.0, 0.4], [0.5, 0.1, 4.0]])
LIST = [0.1, 0.7, 1.3]  # none of them is a number of single precision

CALLS: dict[str, Callable[[Any], Any]] = {
    "add": lambda x: x + LIST,
    "radd": lambda x: LIST + x,
    "multiply": lambda x: np.multiply(LIST, x),
    "power": lambda x: x**LIST,
    "dot": lambda x: np.dot(x, LIST),
    "dot on the left": lambda x: np.dot(LIST, x),
    "matmul": lambda x: np.matmul(x, LIST),
    "where": lambda x: np.where([True, False, True], x, LIST),
    "where of a list": lambda x: np.where(x > 1.0, LIST, x),
    "clip": lambda x: np.clip(x, LIST, [0.9, 0.9, 1.9]),
    "concatenate": lambda x: np.concatenate([x, LIST]),
    "concatenate on the left": lambda x: np.concatenate([LIST, x]),
    "append": lambda x: np.append(x, LIST),
    "stack": lambda x: np.stack([x, LIST]),
    "hstack": lambda x: np.hstack([x, LIST]),
    "vstack": lambda x: np.vstack([LIST, x]),
    "einsum": lambda x: np.einsum("i,i->", x, LIST),
    "outer": lambda x: np.outer(x, LIST),
    "inner": lambda x: np.inner(LIST, x),
    "kron": lambda x: np.kron(x, LIST),
    "tensordot": lambda x: np.tensordot(x, LIST, axes=1),
    "cross": lambda x: np.cross(x, LIST),
    "average": lambda x: np.average(x, weights=LIST),
    "trapezoid": lambda x: np.trapezoid(x, LIST),
    "gradient": lambda x: np.gradient(x, LIST),
    "interp": lambda x: np.interp(x, LIST, [0.2, 0.6, 0.1]),
    "interp at a list": lambda x: np.interp(LIST, [0.1, 0.6, 1.5], x),
    "polyval": lambda x: np.polyval(LIST, x),
    "polyval at a list": lambda x: np.polyval(x, LIST),
    "convolve": lambda x: np.convolve(x, LIST),
    "convolve on the left": lambda x: np.convolve(LIST, x),
    "diff": lambda x: np.diff(x, prepend=[0.1], append=0.7),
    "max": lambda x: np.max(x[:1], initial=3.1),
    "sum": lambda x: np.sum(x, initial=3.1),
    "solve": lambda x: np.linalg.solve(M, LIST) * x,
    "solve of a list": lambda x: np.linalg.solve(x * M, LIST),
    "nested": lambda x: (
        gt.constant([[x[0], 0.1], [0.7, x[1]]])
        if isinstance(x, gt.Tensor)
        else np.array([[x[0], 0.1], [0.7, x[1]]])
    ),
    "quantile": lambda x: np.quantile(x, [0.1, 0.7]),
    "lerp": lambda x: np.linspace(x[0], 1.3, 3),
    "select": lambda x: np.select([x > 1.0], [LIST], x),
    "allclose": lambda x: np.isclose(x, V.tolist(), rtol=0.0, atol=0.0),
    "isin": lambda x: np.isin(x, V.tolist()),
    "searchsorted": lambda x: np.searchsorted(x, V.tolist(), side="right"),
}


@pytest.mark.parametrize("name", CALLS)
def test_beside_double_precision_nothing_is_rounded(name: str) -> None:
    found, wanted = CALLS[name](gt.constant(V)), np.asarray(CALLS[name](V))
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-14)


@pytest.mark.parametrize("name", CALLS)
def test_beside_single_precision_the_result_is_of_single_precision(name: str) -> None:
    x = gt.constant(V.astype(np.float32))
    found = CALLS[name](x)
    wide = name.startswith("solve")  # it is NumPy's own double precision that comes beside
    assert found.dtype in (np.float64 if wide else np.float32, np.bool_, np.int64)


def test_integers_in_a_list_follow_floats_too() -> None:
    x = gt.constant(V.astype(np.float32))
    whole = [1, 2, 3]
    for found in (x + whole, np.dot(x, whole), np.concatenate([x, whole]), x**whole):
        assert found.dtype == np.float32
    assert np.add(gt.constant(np.int8([1, 2])), [1, 2]).dtype == np.int8
    with pytest.raises(OverflowError, match=r"^add: "):
        np.add(gt.constant(np.uint8([1, 2])), [300, 1])
    assert np.add(gt.constant([1, 2]), [0.5, 1.0]).dtype == np.float64  # as beside 0.5


def test_indices_and_conditions_keep_their_own_dtype() -> None:
    x = gt.constant(V.astype(np.float32))
    np.testing.assert_array_equal(np.take(x, [2, 0]), V.astype(np.float32)[[2, 0]])
    np.testing.assert_array_equal(np.ldexp(x, [1, 2, 3]), np.ldexp(V.astype(np.float32), [1, 2, 3]))
    np.testing.assert_array_equal(
        np.searchsorted(x, 1.0, sorter=[0, 1, 2]), np.searchsorted(V, 1.0)
    )
    np.testing.assert_array_equal(np.isin(gt.constant(np.uint8([1, 2])), [300, 2]), [False, True])


def test_lists_that_are_no_arrays_of_numbers_are_refused_in_words() -> None:
    x = gt.constant(V)
    with pytest.raises(ValueError, match=r"^add: argument 'y': nested lists must be rectangular"):
        np.add(x, [[1.0], [2.0, 3.0]])
    with pytest.raises(TypeError, match=r"^add: argument 'y': a tensor holds numbers, not list"):
        gt.add(x, ["a"])
    with pytest.raises(TypeError, match="add"):  # which NumPy is asked for outside of a tape
        np.add(x, ["a"])


def test_a_trace_does_the_same() -> None:
    f = gt.function(lambda x: x * LIST + np.dot(x, LIST))
    np.testing.assert_allclose(f(gt.constant(V)), V * LIST + np.dot(V, LIST), rtol=1e-15)


def test_linspace_between_a_tensor_and_a_number_has_the_dtype_of_the_tensor() -> None:
    start = gt.constant(np.float32(0.5))
    assert np.linspace(start, 1, 3).dtype == np.float32
    assert np.linspace(0, start, 3).dtype == np.float32
