"""Polynomials, counts, sets, edits and equations: what NumPy gives for the same call, or raises."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import gradtape as gt

RNG = np.random.default_rng(8)
X = RNG.normal(size=(3, 4))
Z = X + 1j * RNG.normal(size=(3, 4))
N = RNG.integers(-9, 9, (3, 4))
CUBE = RNG.normal(size=(5, 3, 4))
MANY = RNG.normal(size=60)
COUNTED = np.array([3, 1, 1, 0, 5])
WEIGHTS = RNG.normal(size=5)
TENSOR = RNG.normal(size=(2, 3, 6))
EDGES = np.array([0.0, 1.0, -3.0, 1e-310, np.inf, -np.inf, np.nan, 0.5, 2.0, 1e300])

Call = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]


def call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Call:
    return function, args, kwargs


def vectors() -> list[Call]:
    calls = []
    for n, k in product((1, 2, 3, 5), repeat=2):
        a, v = RNG.normal(size=n), RNG.normal(size=k)
        for mode in ("full", "same", "valid"):
            calls += [call(np.convolve, a, v, mode), call(np.correlate, a, v, mode)]
            calls.append(call(np.correlate, a + 1j * a[::-1], v - 2j * v**2, mode))
        calls += [call(f, a, v) for f in (np.polyadd, np.polysub, np.polymul)]
        calls += [call(np.polyval, a, X), call(np.polyder, a, k - 1), call(np.polyint, a, k - 1)]
        calls += [call(np.vander, a, k - 1), call(np.vander, a, k, increasing=True)]
    return calls


def edits() -> list[Call]:
    places = (0, -1, 2, slice(0, 3, 2), slice(None, None, -1), [0, 2], [1], [])
    calls = []
    for axis, obj in product((None, 0, 1, -1), places):
        given = (9.0, np.arange(1.0, 3.0), X[0], X[:, :1], X[:2], X[:, :2])
        calls.append(call(np.delete, X, obj, axis))
        calls += [call(np.insert, X, obj, values, axis) for values in given]
    return calls


RIGHT: list[Call] = [
    *vectors(),
    call(np.convolve, N[0], X[0]),
    call(np.polyval, N[0], N),
    call(np.polymul, X[0], 3.0),
    call(np.polyint, X[0], 2, k=[1.0, 2.0]),
    call(np.polyint, N[0], 2),
    call(np.vander, X[0].astype(np.float32)),
    *[call(np.polyfit, MANY, MANY**2 + 1, 3, **kw) for kw in ({}, {"rcond": 1e-3}, {"w": MANY**2})],
    call(np.polyfit, X[0], X.T, 1),
    call(np.polyfit, N[0], N[1], 1),
    *[call(np.poly, zeros) for zeros in (X[0], N[0], Z[0], X[:, :3])],
    call(np.vander, N[0].astype(np.int32)),
    call(np.delete, X, np.array([True, False, True]), 0),
    call(np.insert, N, 1, 2.7, 0),
    call(np.insert, X, np.array([True, False, True]), X[:2], 0),
    *[call(np.resize, X, shape) for shape in ((2, 9), 5, (0, 2))],
    call(np.resize, X[:0], (2, 2)),
    call(np.diagflat, X, 1),
    *[call(np.trim_zeros, np.pad(X[0], 2), trim) for trim in ("f", "b", "fb")],
    call(np.trim_zeros, np.zeros(2)),
    call(np.trim_zeros, np.pad(X, 2), axis=1),
    *[
        call(np.unwrap, np.cumsum(4.0 * CUBE, 1), **kw)
        for kw in ({}, {"axis": 0}, {"discont": 4.0})
    ],
    *[call(np.unwrap, 2 * N, period=period) for period in (3.0, 4, 5)],
    call(np.frexp, EDGES),
    call(np.frexp, N),
    call(np.spacing, EDGES[:4]),
    call(np.spacing, X.astype(np.float32)),
    call(np.i0, np.linspace(-30.0, 30.0, 13)),
    call(np.i0, N),
    call(np.matvec, CUBE, X[0]),
    call(np.matvec, CUBE, X[:1]),
    call(np.vecmat, Z[:, 0], CUBE),
    *[call(np.linalg.tensorinv, TENSOR), call(np.linalg.tensorinv, TENSOR.reshape(6, 6), 1)],
    call(np.linalg.tensorsolve, TENSOR, X[:2, :3]),
    call(np.linalg.tensorsolve, TENSOR.transpose(0, 2, 1).copy(), X[:2, :3], axes=(1,)),
    *[call(np.bincount, COUNTED, *rest) for rest in ((), (WEIGHTS,), (COUNTED,), (None, 9))],
    call(np.bincount, COUNTED[:0]),
    call(np.bincount, COUNTED.astype(np.uint8), WEIGHTS.astype(np.float32), 2),
    *[call(np.histogram, MANY, bins) for bins in (10, 7, [-1, 0, 0.5, 2.0], "auto", [0.0, 1.0])],
    call(np.histogram, MANY, 5, (-1, 1.0)),
    call(np.histogram, MANY, density=True),
    call(np.histogram, MANY, weights=MANY**2),
    call(np.histogram, MANY, weights=(MANY**2).astype(np.float32), density=True),
    *[call(np.histogram, values) for values in (N, np.full(5, 2.0), MANY[:0], MANY > 0)],
    call(np.histogram, np.arange(4.0), 3),
    call(np.histogram_bin_edges, MANY, 4),
    *[call(f, N, COUNTED) for f in (np.union1d, np.intersect1d, np.setdiff1d, np.setxor1d)],
    call(np.intersect1d, N, COUNTED, return_indices=True),
    call(np.setdiff1d, COUNTED, COUNTED[:2], assume_unique=True),
    *[call(np.apply_along_axis, f, axis, CUBE) for f in (np.sum, np.sort) for axis in (0, 1, -1)],
    call(np.apply_along_axis, lambda v: v[:, None] * v, 0, X),
    call(np.piecewise, X, [X < 0, X > 1], [lambda v: -v, np.sin, 7.0]),
    call(np.piecewise, X[0], X[0] < 0, [1, 2.0]),
    call(np.piecewise, N, [N < 0, N > 2], [lambda v: v * 1.5, 7.9]),
    call(np.piecewise, X[0], [X[0] < 0.1, X[0] < 1], [lambda v, c: -v * c, np.add], 3.0),
    call(np.piecewise, np.array(0.3), [np.array(True)], [lambda v: v * 2]),
    *[call(np.logspace, X, X + 1, **kw) for kw in ({"num": 4}, {"num": 3, "axis": -1})],
    call(np.logspace, 1.0, 2.0, 4, base=np.array(3.0)),
    call(np.geomspace, abs(X), abs(X) + 3, 5, endpoint=False),
    call(np.geomspace, Z, Z[::-1], 4),
    call(np.geomspace, -abs(X), -8.0, 4, dtype=np.float32),
]


def tensors(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    def turn(x: Any) -> Any:
        return gt.constant(x) if isinstance(x, np.ndarray) else x

    return [turn(x) for x in args], {key: turn(x) for key, x in kwargs.items()}


def compare(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    want = function(*args, **kwargs)
    given, named = tensors(args, kwargs)
    got = function(*given, **named)
    several = isinstance(want, tuple)
    for mine, right in zip(got if several else [got], want if several else [want], strict=True):
        assert isinstance(mine, gt.Tensor)
        assert (mine.shape, mine.dtype) == (np.shape(right), np.asarray(right).dtype)
        close = 1e-12 if mine.dtype.itemsize > 4 else 1e-6
        np.testing.assert_allclose(mine.numpy(), right, rtol=close, atol=close)


def name_of(case: Call) -> str:
    return getattr(case[0], "__name__", "function")


@pytest.mark.filterwarnings("ignore:Converting input from bool")
@pytest.mark.parametrize("case", RIGHT, ids=name_of)
def test_it_gives_what_numpy_gives(case: Call) -> None:
    with np.errstate(all="ignore"):
        compare(*case)


def test_entries_are_put_in_and_taken_out_as_numpy_does_or_refused_where_it_refuses() -> None:
    for function, args, kwargs in edits():
        try:
            function(*args, **kwargs)
        except (IndexError, ValueError) as error:
            given, named = tensors(args, kwargs)
            with pytest.raises(type(error), match=function.__name__):
                function(*given, **named)
        else:
            compare(function, args, kwargs)


WRONG: list[tuple[Call, str]] = [
    (call(np.convolve, X, X[0]), r"convolve: vectors .*\(3, 4\)"),
    (call(np.convolve, X[0, :0], X[0]), r"convolve: .*without elements.*\(0,\)"),
    (call(np.correlate, X[0], X[0], "middle"), "correlate: mode .*'middle'"),
    (call(np.polyder, X[0], -1), "polyder: m must be at least 0, got -1"),
    (call(np.polyint, X[0], -1), "polyint: m must be at least 0, got -1"),
    (call(np.polyint, X[0], 3, [1.0, 2.0]), r"polyint: 3 constants .*\(2,\)"),
    (call(np.polyfit, X[0], X[0], -1), "polyfit: deg .*-1"),
    (call(np.polyfit, X, X[0], 1), r"polyfit: x must be a vector.*\(3, 4\)"),
    (call(np.polyfit, X[0], MANY, 1), r"polyfit: y of shape \(60,\).*\(4,\)"),
    (call(np.polyfit, X[0], X[0], 1, w=MANY), r"polyfit: w of shape \(60,\).*\(4,\)"),
    (call(np.poly, X), r"poly: a square matrix .*\(3, 4\)"),
    (call(np.roots, X), r"roots: a vector .*\(3, 4\)"),
    (call(np.vander, X), r"vander: a vector .*\(3, 4\)"),
    (call(np.delete, X, 7, 0), "delete: .*7 is out of bounds"),
    (call(np.insert, X, 7, 1.0, 1), "insert: .*7 is out of bounds"),
    (call(np.insert, X, [0, 2], X[0, :3], 1), r"insert: values .*\(1, 3\).*2 entries"),
    (call(np.delete, X, 0, 5), "delete: axis 5 is out of bounds"),
    (call(np.resize, X, (-1, 2)), r"resize: .*\(-1, 2\)"),
    (call(np.trim_zeros, X[0], "q"), "trim_zeros: .*'q'"),
    (call(np.frexp, Z), "frexp: expected real numbers, got dtype complex128"),
    (call(np.matvec, X[0], X[0]), r"matvec: .*\(4,\)"),
    (call(np.vecmat, X[0], X), r"vecmat: .*\(3, 4\)"),
    (call(np.linalg.tensorinv, TENSOR, 0), "tensorinv: ind must be at least 1, got 0"),
    (call(np.linalg.tensorinv, TENSOR, 1), r"tensorinv: .*\(2, 3, 6\)"),
    (call(np.linalg.tensorsolve, TENSOR, X[0]), r"tensorsolve: .*\(2, 3, 6\).*\(4,\)"),
    (call(np.bincount, X[0]), "bincount: expected integers .*float64"),
    (call(np.bincount, COUNTED - 3), "bincount: .*at least 0"),
    (call(np.bincount, COUNTED, WEIGHTS[:2]), r"bincount: .*\(5,\) and \(2,\)"),
    (call(np.bincount, N), r"bincount: .*vector.*\(3, 4\)"),
    (call(np.histogram, MANY, 0), "histogram: at least one bin .*0"),
    (call(np.histogram, MANY, [0.0, 2.0, 1.0]), "histogram: bins must increase"),
    (call(np.histogram, MANY, 3, (1, 0)), r"histogram: range .*\(1, 0\)"),
    (call(np.histogram, MANY, weights=WEIGHTS), r"histogram: .*\(60,\) and \(5,\)"),
    (call(np.apply_along_axis, np.sum, 3, X), "apply_along_axis: axis 3 is out of bounds"),
    (call(np.piecewise, X, [X < 0], [1, 2, 3]), "piecewise: with 1 conditions.*got 3"),
]


@pytest.mark.parametrize(("case", "message"), WRONG, ids=[name_of(case) for case, _ in WRONG])
def test_it_raises_what_numpy_raises_and_says_why(case: Call, message: str) -> None:
    function, args, kwargs = case
    with pytest.raises(Exception) as theirs:  # noqa: PT011 - whatever NumPy's is
        function(*args, **kwargs)
    given, named = tensors(args, kwargs)
    with pytest.raises(theirs.type, match=message):
        function(*given, **named)


@pytest.mark.parametrize("p", [X[0], N[0], [0.0, 0.0, 2.0, -3.0, 1.0, 0.0], [0.0], [3.0], Z[0]])
def test_roots_are_numpys_in_some_order(p: Any) -> None:
    want = np.roots(p)
    found = np.roots(gt.constant(np.asarray(p))).numpy()
    assert found.shape == want.shape
    assert found.dtype == np.complex128
    for root in want:
        assert np.abs(found - root).min() < 1e-12


def test_sizes_on_which_the_form_of_a_trace_depends_are_asked_for_by_name() -> None:
    for name, function in {
        "lexsort": lambda x: gt.lexsort(gt.outer(x, x)),
        "poly": gt.poly,
        "polyval": lambda x: gt.polyval(x, 2.0),
        "roots": gt.roots,
    }.items():
        with pytest.raises(gt.errors.TraceError, match=f"{name}: the .* must be known"):
            gt.function(function).get_concrete_function(gt.TensorSpec([None], "float64"))


def test_counts_of_a_traced_vector_are_those_of_its_values() -> None:
    count = gt.function(lambda x, w: gt.bincount(x, w))
    run = count.get_concrete_function(
        gt.TensorSpec([None], "int64"), gt.TensorSpec([None], "float64")
    )
    for n in (2, 5):
        got = run(gt.constant(COUNTED[:n]), gt.constant(WEIGHTS[:n]))
        np.testing.assert_array_equal(got.numpy(), np.bincount(COUNTED[:n], WEIGHTS[:n]))


def test_bessel_functions_keep_their_precision_near_0_and_far_from_it() -> None:
    # I_1(x) = x/2 + x**3/16 + ...; I_1(500) from Abramowitz and Stegun's 9.7.1 to six terms
    x = gt.constant(np.array([0.0, 1e-8, 1e-3, 500.0]))
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = gt.i0(x)
    slope = tape.gradient(y, x).numpy()
    far, mu, term = 0.0, 4.0, 1.0
    for k in range(1, 8):
        far += term
        term *= -(mu - (2 * k - 1) ** 2) / (k * 8 * 500.0)
    far *= np.exp(500.0) / np.sqrt(2 * np.pi * 500.0)
    near = [0.0, 5e-9, 5e-4 + 1e-9 / 16 + 1e-15 / 384]
    np.testing.assert_allclose(slope, [*near, far], rtol=1e-12)
