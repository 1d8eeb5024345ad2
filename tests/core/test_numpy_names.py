"""Names and arguments that NumPy's users reach for: as NumPy's in value, dtype and error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.testing import check_gradients

X = np.array([[3.0, -1.0, 2.0], [0.5, 2.0, np.nan]])
FULL = np.array([[3.0, -1.0, 2.0], [0.5, 2.0, 7.0]])
N = np.array([[3, 1, 3], [2, 2, 1]])
TALL = np.arange(15.0).reshape(5, 3)
CUBE = np.arange(8.0).reshape(2, 2, 2)
EDGES = np.array([0.0, 1.0, 2.0, 2.0, 5.0])

# Calls of the namespace ``n``, with arrays made by ``a``.
CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "ndim": lambda n, a: n.ndim(a(X)),
    "ndim of a list": lambda n, a: n.ndim([[1, 2]]),
    "shape": lambda n, a: n.shape(a(X)),
    "shape of a number": lambda n, a: n.shape(2.0),
    "size": lambda n, a: n.size(a(X)),
    "size of an axis": lambda n, a: n.size(a(X), -1),
    "size of axes": lambda n, a: n.size(a(CUBE), axis=(0, 2)),
    "allclose": lambda n, a: n.allclose(a(X), a(X)),
    "allclose with nan": lambda n, a: n.allclose(a(X), a(X), equal_nan=True),
    "allclose within": lambda n, a: n.allclose(a(FULL), a(FULL) * 1.01, rtol=0.1),
    "array_equal": lambda n, a: n.array_equal(a(N), a(N)),
    "array_equal, other shape": lambda n, a: n.array_equal(a(N), a(N[:1])),
    "array_equal, other rank": lambda n, a: n.array_equal(a(N), [3, 1, 3]),
    "array_equal, nan": lambda n, a: n.array_equal(a(X), a(X)),
    "array_equal, equal_nan": lambda n, a: n.array_equal(a(X), a(X), equal_nan=True),
    "array_equal of empties": lambda n, a: n.array_equal(a(X[:0]), a(X[:0])),
    "digitize": lambda n, a: n.digitize(a(FULL), EDGES),
    "digitize right": lambda n, a: n.digitize(a(FULL), EDGES, right=True),
    "digitize down": lambda n, a: n.digitize(a(FULL), EDGES[::-1]),
    "digitize down, right": lambda n, a: n.digitize(a(FULL), EDGES[::-1].copy(), True),
    "digitize with nan": lambda n, a: n.digitize(a(X), a(EDGES)),
    "digitize, one edge": lambda n, a: n.digitize(a(FULL), [1.0]),
    "digitize, no edge": lambda n, a: n.digitize(a(FULL), []),
    "digitize, level": lambda n, a: n.digitize(a(FULL), [1.0, 1.0, 1.0]),
    "digitize of a number": lambda n, a: n.digitize(a(FULL)[0, 1], EDGES),
    "lexsort": lambda n, a: n.lexsort((a(N[0]), a(N[1]))),
    "lexsort of rows": lambda n, a: n.lexsort(a(N)),
    "lexsort axis": lambda n, a: n.lexsort((a(N), a(N[::-1].copy())), axis=0),
    "lexsort with nan": lambda n, a: n.lexsort((a(X[0]), a(X[1]))),
    "lexsort of one": lambda n, a: n.lexsort((a(X[1]),)),
    "indices": lambda n, a: n.indices((2, 3)),
    "indices dtype": lambda n, a: n.indices((2, 3), dtype="float32"),
    "indices sparse": lambda n, a: n.indices((2, 3), sparse=True),
    "tril_indices": lambda n, a: n.tril_indices(3, -1, 4),
    "triu_indices": lambda n, a: n.triu_indices(3, 1),
    "tril_indices_from": lambda n, a: n.tril_indices_from(a(X)),
    "triu_indices_from": lambda n, a: n.triu_indices_from(a(X), k=1),
    "diag_indices": lambda n, a: n.diag_indices(3, 3),
    "diag_indices_from": lambda n, a: n.diag_indices_from(a(CUBE)),
    "ix_": lambda n, a: n.ix_([0, 2], [True, False, True]),
    "ix_ of nothing": lambda n, a: n.ix_([], [1]),
    "ix_ as an index": lambda n, a: a(TALL)[n.ix_([4, 0], [1])],
    "bartlett": lambda n, a: n.bartlett(7),
    "blackman": lambda n, a: n.blackman(6),
    "hamming": lambda n, a: n.hamming(1),
    "hanning": lambda n, a: n.hanning(7),
    "no window": lambda n, a: n.hanning(0),
    "kaiser": lambda n, a: n.kaiser(6, 8.6),
    "identity": lambda n, a: n.identity(3),
    "identity dtype": lambda n, a: n.identity(2, "int8"),
    "array": lambda n, a: n.array(a(N), ndmin=3),
    "array dtype": lambda n, a: n.array([1, 2], dtype="float64", copy=True),
    "reshape F": lambda n, a: n.reshape(a(X), (3, 2), order="F"),
    "reshape F, left over": lambda n, a: n.reshape(a(CUBE), (-1, 2), "F"),
    "reshape copy": lambda n, a: n.reshape(a(X), 6, copy=True),
    "x.reshape F": lambda n, a: a(X).reshape(3, -1, order="F"),
    "ravel F": lambda n, a: n.ravel(a(CUBE), order="F"),
    "x.ravel F": lambda n, a: a(CUBE).ravel("F"),
    "x.flatten F": lambda n, a: a(CUBE).flatten(order="F"),
    "argsort kind": lambda n, a: n.argsort(a(N), kind="stable"),
    "argsort stable": lambda n, a: n.argsort(a(N), 0, stable=True),
    "x.argsort kind": lambda n, a: a(N).argsort(kind="stable"),
    "sort kind": lambda n, a: n.sort(a(X), 1, "mergesort"),
    "std correction": lambda n, a: n.std(a(FULL), axis=0, correction=1),
    "var correction": lambda n, a: n.var(a(FULL), correction=0.5),
    "nanstd correction": lambda n, a: n.nanstd(a(X), correction=1),
    "nanvar correction": lambda n, a: n.nanvar(a(X), axis=0, correction=0),
    "linspace retstep": lambda n, a: n.linspace(a(X[0]), 5.0, 4, retstep=True),
    "linspace retstep, open": lambda n, a: n.linspace(a(FULL), a(TALL[:2]), 5, False, retstep=True),
    "linspace retstep, one": lambda n, a: n.linspace(a(X[0]), 5.0, 1, retstep=True),
    "linspace retstep, none": lambda n, a: n.linspace(
        a(X[0]), 5.0, 0, endpoint=False, retstep=True
    ),
    "linspace of numbers": lambda n, a: n.linspace(2, 5, 4, retstep=True, dtype="float64"),
    "linspace axis": lambda n, a: n.linspace(a(FULL), 5.0, 4, axis=-1),
}
OURS_FLOAT32 = {"bartlett", "blackman", "hamming", "hanning", "no window", "kaiser", "identity"}


def numbers(result: Any) -> list[np.ndarray[Any, Any]]:
    parts = result if isinstance(result, tuple) else (result,)
    return [np.asarray(x) for x in parts]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", CALLS)
def test_a_name_of_numpy_does_what_numpy_does(name: str) -> None:
    call = CALLS[name]
    expected = call(np, np.asarray)
    for make in (gt.constant, gt.Variable):
        ours = call(gt, make)
        assert isinstance(ours, tuple) is isinstance(expected, tuple)
        for ours_part, part in zip(numbers(ours), numbers(expected), strict=True):
            if name not in OURS_FLOAT32 and "numbers" not in name:
                assert ours_part.dtype == part.dtype
            np.testing.assert_allclose(ours_part, part, rtol=1e-6, atol=1e-7)


ASKED_OF_NUMPY = [name for name in CALLS if not name.startswith(("x.", "array dtype", "ix_"))]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ASKED_OF_NUMPY)
def test_numpys_function_finds_it_for_tensors(name: str) -> None:
    call = CALLS[name]
    for part, expected in zip(numbers(call(np, gt.constant)), numbers(call(np, np.asarray))):
        assert part.dtype == expected.dtype
        np.testing.assert_allclose(part, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda n, a: n.digitize(a(FULL), [1.0, 3.0, 2.0]), ValueError, "ascend"),
        (lambda n, a: n.digitize(a(FULL), a(FULL)), ValueError, "vector"),
        (lambda n, a: n.digitize(a(FULL) * 1j, EDGES), TypeError, "complex"),
        (lambda n, a: n.lexsort(()), TypeError, "key"),
        (lambda n, a: n.lexsort((a(X), a(X[0]))), ValueError, "the same shape"),
        (lambda n, a: n.tril_indices_from(a(CUBE)), ValueError, "matrix"),
        (lambda n, a: n.diag_indices_from(a(X)), ValueError, "one size"),
        (lambda n, a: n.ix_(a(X), [1]), ValueError, "vectors"),
        (lambda n, a: n.size(a(X), 2), np.exceptions.AxisError, "axis 2"),
        (lambda n, a: n.array(a(X).tolist(), copy=False), ValueError, "copy"),
        (lambda n, a: n.sort(a(FULL), kind="bubble"), ValueError, "kind"),
        (lambda n, a: n.argsort(a(FULL), kind="stable", stable=True), ValueError, "one of them"),
        (lambda n, a: n.var(a(FULL), ddof=1, correction=1), ValueError, "pass one"),
        (lambda n, a: n.nanstd(a(X), ddof=1, correction=1), ValueError, "pass one"),
        (lambda n, a: n.reshape(a(X), (4, -1), order="F"), ValueError, "reshape"),
        (lambda n, a: n.reshape(a(X), 6, order="Z"), ValueError, "'Z'"),
        (lambda n, a: n.allclose(a(X), a(TALL)), ValueError, "broadcast"),
        (lambda n, a: n.identity(-1), ValueError, "negative"),
        (lambda n, a: n.identity(2.5), TypeError, "integer"),
        (lambda n, a: n.hanning("a"), TypeError, ""),
    ],
)
def test_errors_are_of_numpys_type_and_say_what_is_wrong(
    call: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error):
        call(np, np.asarray)
    with pytest.raises(error, match=message):
        call(gt, gt.constant)


@pytest.mark.parametrize("order", ["A", "K"])
def test_an_order_in_memory_is_refused_in_words(order: Any) -> None:
    x = gt.constant(FULL).T
    calls: list[Callable[[], Any]] = [
        lambda: gt.ravel(x, order),
        lambda: x.ravel(order),
        lambda: x.flatten(order),
        lambda: gt.reshape(x, 6, order),
        lambda: np.ravel(x, order=order),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="asks for memory, of which a tensor tells none"):
            call()


@pytest.mark.parametrize("shape", [(None, None), (2, None), None])
def test_columns_come_first_in_traces_of_unknown_sizes_too(shape: Any) -> None:
    signature = [gt.TensorSpec(shape, "float64")]
    reshaped = gt.function(lambda x: gt.reshape(x, (3, -1), "F"), input_signature=signature)
    raveled = gt.function(lambda x: x.ravel("F"), input_signature=signature)
    np.testing.assert_array_equal(reshaped(FULL), FULL.reshape((3, -1), order="F"))
    np.testing.assert_array_equal(raveled(FULL), FULL.ravel("F"))


def test_fill_diagonal_returns_what_numpy_writes() -> None:
    for x, value, wrap in (
        (FULL, 9.0, False),
        (TALL, 9.0, True),
        (TALL, [1.0, 2.0], True),
        (TALL.T.copy(), np.array([1, 2, 3, 4]), False),
        (N, 2.7, False),
        (CUBE, [[5.0], [6.0]], False),
    ):
        expected = np.array(x)
        np.fill_diagonal(expected, value, wrap)
        for result in (
            gt.fill_diagonal(x, value, wrap),
            gt.function(lambda t, v=value, w=wrap: gt.fill_diagonal(t, v, w))(gt.constant(x)),
        ):
            assert result.dtype == expected.dtype
            np.testing.assert_array_equal(result, expected)
    with pytest.raises(TypeError, match=r"gradtape\.fill_diagonal"):
        np.fill_diagonal(gt.constant(FULL), 1.0)
    for wrong in (FULL[0], np.zeros((2, 3, 2))):
        with pytest.raises(ValueError, match="axes"):
            gt.fill_diagonal(wrong, 1.0)
    with pytest.raises(ValueError, match="no element"):
        gt.fill_diagonal(FULL, [])


def test_gradients_reach_what_is_beside_the_diagonal_and_what_is_on_it() -> None:
    def filled(x: Any, value: Any) -> Any:
        return gt.sum(gt.square(gt.fill_diagonal(x, value, True)))

    check_gradients(filled, TALL, np.array([0.3, -2.0]), order=2)


def test_a_window_has_a_gradient_with_respect_to_its_shape() -> None:
    check_gradients(lambda beta: gt.kaiser(5, beta), np.array(3.0), order=2)
    beta = gt.constant(np.array(8.6))
    np.testing.assert_allclose(gt.kaiser(6, beta), np.kaiser(6, 8.6), rtol=1e-12)
    np.testing.assert_allclose(gt.kaiser(1, beta), [1.0])
    assert gt.kaiser(0, beta).shape == (0,)


def test_methods_take_a_correction() -> None:
    x = gt.constant(FULL)
    np.testing.assert_allclose(x.var(0, correction=1), np.var(FULL, 0, ddof=1))
    np.testing.assert_allclose(x.std(correction=1), np.std(FULL, ddof=1))


def test_a_step_has_a_gradient() -> None:
    check_gradients(lambda a, b: gt.linspace(a, b, 4, retstep=True)[1], X[0], TALL[0])


def test_identity_is_numpys_matrix_and_says_how_to_pass_a_tensor_on() -> None:
    assert gt.identity(2).tolist() == np.identity(2).tolist()
    for wrong in (gt.constant(2.0), gt.constant(3), gt.Variable([1.0]), [1.0, 2.0], FULL):
        with pytest.raises(TypeError, match=r"gradtape\.identity\(n\).*gradtape\.copy\(x\)"):
            gt.identity(wrong)


def test_shapes_are_told_in_traces_as_far_as_they_are_known() -> None:
    told: list[Any] = []

    @gt.function(input_signature=[gt.TensorSpec([None, 3])])
    def program(x: Any) -> Any:
        told.extend([gt.shape(x), gt.ndim(x), gt.size(x), gt.size(x, 0), gt.size(x, 1)])
        return x

    program(gt.ones((2, 3)))
    assert list(map(str, told)) == ["(n, 3)", "2", "3*n", "n", "3"]


def test_questions_become_tensors_in_traces_and_batches() -> None:
    x, y = gt.constant(FULL), gt.constant(np.stack([FULL[0], TALL[0]]))
    traced = gt.function(lambda a, b: (gt.allclose(a, b), gt.array_equal(a, b)))
    assert [t.item() for t in traced(x, x)] == [True, True]
    assert gt.vmap(gt.array_equal)(x, y).tolist() == [True, False]
    assert gt.vmap(gt.allclose)(x, y).tolist() == [True, False]
    binned = gt.function(gt.digitize)
    np.testing.assert_array_equal(binned(x, gt.constant(EDGES)), np.digitize(FULL, EDGES))
    np.testing.assert_array_equal(
        binned(x, gt.constant(EDGES[::-1])), np.digitize(FULL, EDGES[::-1])
    )
    edges = gt.constant(np.stack([EDGES, EDGES[::-1]]))
    expected = [np.digitize(FULL[i], np.asarray(edges[i])) for i in range(2)]
    np.testing.assert_array_equal(gt.vmap(gt.digitize)(x, edges), expected)
    unknown = gt.function(gt.array_equal, input_signature=[gt.TensorSpec([None])] * 2)
    equal = [unknown(gt.ones(n), gt.ones(m)).item() for n, m in ((2, 2), (2, 3), (1, 2), (0, 1))]
    assert equal == [True, False, False, False]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: gt.searchsorted([3.0, 1.0], 2.0, sorter=[1]), ValueError, "one index per element"),
        (
            lambda: gt.kaiser(3, [1.0, 2.0]),
            ValueError,
            r"must be one number, got shape \(2,\)",
        ),
        (lambda: gt.choose([0], []), ValueError, "choose: there are no choices"),
        (
            lambda: gt.choose([0.0], [1.0]),
            TypeError,
            "choose: a must hold integers, got",
        ),
        (lambda: gt.sign(True), TypeError, r"^sign: it is not defined .* \(given bool\[\]\)$"),
        (
            lambda: gt.bitwise_right_shift(1.0, 2),
            TypeError,
            "_shift: it is not defined for",
        ),
    ],
)
def test_what_numpy_says_in_its_own_terms_is_said_in_the_users(
    call: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call()
