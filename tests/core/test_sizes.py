"""Expressions of sizes against Python's integers: their values, proofs, forms and errors."""

from __future__ import annotations

import copy
import math
import operator
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradtape as gt
from gradtape.core.base.sizes import (
    Condition,
    Formula,
    Size,
    evaluated,
    exact_quotient,
    is_open,
    largest,
    lowered,
    same_size,
    sizes_differ,
    smallest,
)
from gradtape.core.extend import Graph, tracing_into

gt.zeros(1)  # discovers the plugins
GRAPH = Graph("sizes")
with tracing_into(GRAPH):
    N, M = GRAPH.input(gt.TensorSpec([None, None])).shape
    K = GRAPH.input(gt.TensorSpec([], "int64")).as_size("k")  # a value, which may be negative
PLACES = {N.dim: ("size", 0, 0), M.dim: ("size", 0, 1), K.dim: ("value", 1)}
SIZES = (0, 1, 2, 3, 7, 12, 10**9)
VALUES = (-3, -1, 0, 1, 2, 5)
CALLS = [(n, m, k) for n in SIZES for m in SIZES for k in VALUES]


def value_of(expression: Any, call: tuple[int, int, int]) -> Any:
    """Return what an expression is in a run, as graphs compute it."""
    n, m, k = call
    return evaluated(lowered(expression, PLACES.__getitem__), [(n, m), ()], lambda i: k)


def extreme(of_sizes: Any, of_numbers: Any) -> Callable[[Any, Any], Any]:
    def compute(a: Any, b: Any) -> Any:
        if is_open(a) or is_open(b):
            return of_sizes(a, b)
        kind = float if isinstance(a, float) or isinstance(b, float) else int
        return math.nan if a != a or b != b else kind(of_numbers(a, b))

    return compute


INTEGERS: dict[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "quotient": lambda a, b: divmod(a, b)[0],
    "rest": lambda a, b: divmod(a, b)[1],
    "max": extreme(largest, max),
    "min": extreme(smallest, min),
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
}
FLOATS = {name: INTEGERS[name] for name in ("+", "-", "*", "//", "%", "max", "min")} | {
    "/": operator.truediv,
    "** 2": lambda a, b: a**2,
    "** -1": lambda a, b: a**-1,
    "** 0.5": lambda a, b: abs(a) ** 0.5,
}
SINGLE = {
    "-": operator.neg,
    "+": operator.pos,
    "abs": abs,
    "floor": math.floor,
    "ceil": math.ceil,
    "trunc": math.trunc,
    "round": round,
}
COMPARISONS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}

unknowns = st.sampled_from(["n", "m", "k"])
integers = st.integers(-8, 8) | st.booleans()


def trees(leaves: Any, binary: Any) -> Any:
    return st.recursive(
        leaves,
        lambda parts: (
            st.tuples(st.sampled_from(sorted(binary)), parts, parts)
            | st.tuples(st.sampled_from(sorted(SINGLE)), parts)
        ),
        max_leaves=6,
    )


of_integers = trees(unknowns | integers, INTEGERS)
of_floats = trees(
    unknowns | integers | st.sampled_from([0.5, -1.5, 2.0, 1e18, math.inf, 0.0]), FLOATS
)


def built(tree: Any, call: tuple[Any, Any, Any]) -> Any:
    """Return a tree computed by Python's operators, of sizes or of integers."""
    if isinstance(tree, str):
        return call["nmk".index(tree)]
    if not isinstance(tree, tuple):
        return tree
    kind, *parts = tree
    values = [built(part, call) for part in parts]
    table: Any = SINGLE if len(values) == 1 else {**FLOATS, **INTEGERS}
    return table[kind](*values)


def same(a: Any, b: Any) -> bool:
    if isinstance(a, float) or isinstance(b, float):
        return type(a) is type(b) and (a == b or (a != a and b != b))
    return bool(a == b)


Wrong = (ArithmeticError, ValueError, TypeError)  # of Python: a division by 0, bits of a float


def hold_for_all_sizes(tree: Any) -> None:
    try:
        expression = built(tree, (N, M, K))
    except Wrong:
        for call in CALLS[::5]:
            with pytest.raises(Wrong):
                built(tree, call)
        return
    for call in CALLS[:: 1 if is_open(expression) else 7]:
        try:
            expected = built(tree, call)
        except Wrong:
            continue  # what is not needed is not computed, and does not fail
        assert same(value_of(expression, call), expected), f"{expression} of {call}"
        assert not isinstance(expression, Size) or type(value_of(expression, call)) is int


@settings(deadline=None, max_examples=150)
@given(of_integers)
def test_an_expression_of_sizes_has_the_value_that_python_gives(tree: Any) -> None:
    hold_for_all_sizes(tree)


@settings(deadline=None, max_examples=100)
@given(of_floats)
def test_floats_of_sizes_have_the_bits_that_python_gives(tree: Any) -> None:
    hold_for_all_sizes(tree)


@settings(deadline=None, max_examples=200)
@given(of_integers, of_integers, st.sampled_from([-1, 0, 1, None]))
def test_what_is_proved_holds_for_all_sizes(left: Any, right: Any, shift: int | None) -> None:
    right = right if shift is None else ("+", left, shift)  # near, so that there is what to prove
    try:
        a, b = built(left, (N, M, K)), built(right, (N, M, K))
    except Wrong:
        return
    said = {kind: compare(a, b) for kind, compare in COMPARISONS.items()}
    equal = same_size(a, b)
    for call in CALLS:
        try:
            x, y = built(left, call), built(right, call)
        except Wrong:
            continue
        assert not equal or x == y
        for kind, compare in COMPARISONS.items():
            answer = said[kind]
            found = value_of(answer, call) if is_open(answer) else answer
            assert found is compare(x, y), f"{a} {kind} {b} of {call}: {answer}"


@settings(deadline=None, max_examples=100)
@given(of_integers, st.integers(-6, 6), st.integers(-6, 6))
def test_equal_expressions_that_are_written_differently_are_one(tree: Any, c: int, d: int) -> None:
    try:
        n = built(tree, (N, M, K)) + N
    except Wrong:
        return
    assert same_size((n + c) * d, n * d + c * d)
    if d:
        assert same_size((n * d + c) // d, n + c // d)
        assert same_size((n * d + c) % d, c % d)
        assert same_size((n + c * d) % d, n % d)
        assert same_size(n // -d, -n // d)
    if d > 0:
        assert same_size(N // d // 3, N // (3 * d))
        assert same_size((N // d + c) // 2, (N + c * d) // (2 * d))
        assert same_size(2 * n % (2 * d), 2 * (n % d))
    if is_open(n):
        assert same_size(exact_quotient(n * M, M), n)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (N, "n"),
        (-N, "-n"),
        (N * 2 + 1, "2*n + 1"),
        (1 - N, "-n + 1"),
        (N + M, "n + m"),
        (M + N, "n + m"),
        (M * N, "n*m"),
        ((N + 1) // 2, "(n + 1) // 2"),
        ((N + 5) // 2, "(n + 1) // 2 + 2"),
        ((N - 1) // 2 + 1, "(n + 1) // 2"),
        (N // 2 * 2, "2*(n // 2)"),
        (-(N // 2), "-(n // 2)"),
        (N // -2, "-n // 2"),
        (N - N % 4, "n - n % 4"),
        (-N % 8, "-n % 8"),
        (N // M, "n // m"),
        (N // (M + 1), "n // (m + 1)"),
        (N // (M % 3), "n // (m % 3)"),
        (N * M // 3, "n*m // 3"),
        (smallest(N, 3), "min(n, 3)"),
        (smallest(3, N), "min(n, 3)"),
        (largest(N, 0), "n"),
        (largest(N - 1, 0) * 2, "2*max(n - 1, 0)"),
        (N**2, "n*n"),
        (2**N, "2 ** n"),
        ((N + 1) ** M, "(n + 1) ** m"),
        (N**0.5, "n ** 0.5"),
        (N**-0.5, "n ** -0.5"),
        ((N + 1) ** -1, "(n + 1) ** -1.0"),
        (1 / N, "1 / n"),
        (1 / (N / 2), "1 / (n / 2)"),
        (-(N / 2), "-(n / 2)"),
        (0.5 - (N - 0.5), "0.5 - (n - 0.5)"),
        (abs(N / 2), "abs(n / 2)"),
        (math.ceil(N / 2) + 1, "ceil(n / 2) + 1"),
        (N > 2, "n > 2"),
        (1 - (N > 2), "-int(n > 2) + 1"),
        (N & 1, "n & 1"),
        (N << 3, "8*n"),
        (N >> 1, "n // 2"),
    ],
    ids=str,
)
def test_an_expression_prints_as_it_would_be_written(expression: Any, text: str) -> None:
    assert repr(expression) == str(expression) == f"{expression}" == text


def test_brackets_that_are_printed_mean_what_is_computed() -> None:
    space = {"max": max, "min": min, "n": 7, "m": 3, "k": 2}
    parts = [N, M + 1, -N, N // 2, N % M, N * M, smallest(N, M), N - 2, 2**M]
    for a in parts:
        for b in parts:
            for kind in ("+", "-", "*", "//", "%", "&", "|", "^"):
                expression = INTEGERS[kind](a, b)
                assert eval(repr(expression), space) == value_of(expression, (7, 3, 2))


def test_comparisons_that_no_size_changes_are_plain() -> None:
    decided = {
        True: [N == N, N + 1 > N, N >= 0, 2 * N + 1 > 0, N // 2 <= N, N % 4 < 4, N // M <= N],
        False: [N != N, N < 0, N + 1 == N, N % 4 > 3, smallest(N, 3) > 3, largest(N, 3) < N],
    }
    for answer, comparisons in decided.items():
        assert all(x is answer for x in comparisons)
    undecided = [N == M, N > 0, N == 2, K >= 0, K % N == 0, N != 2 * N]
    assert all(isinstance(x, Condition) for x in undecided)


def test_a_float_that_may_be_nan_is_not_proved_equal_to_itself() -> None:
    assert (N / 2 == N / 2) is True
    odd = N * math.inf  # NaN for 0
    assert isinstance(odd == odd, Condition)
    assert value_of(odd == odd, (0, 0, 0)) is False


@pytest.mark.parametrize("scalar", [np.int64(3), np.int32(3), np.float64(0.5), np.bool_(True)])
@pytest.mark.parametrize("kind", ["+", "-", "*", "//", "%"])
def test_scalars_of_numpy_compute_on_both_sides(kind: str, scalar: Any) -> None:
    compute = INTEGERS[kind]
    plain = scalar.item()
    for found, expected in (
        (compute(N, scalar), compute(N, plain)),
        (compute(scalar, N), compute(plain, N)),
    ):
        assert not is_open(expected) or found.key == expected.key
        assert is_open(expected) or found == expected


def traced(function: Any, dtype: str = "float32") -> Any:
    return gt.function(function, input_signature=[gt.TensorSpec([None], dtype)])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x / np.maximum(x.shape[0], 2),
        lambda x: x * (np.int64(2) * x.shape[0]),
        lambda x: x * (x.shape[0] / np.float64(2)),
        lambda x: x * (np.float32(2) * x.shape[0]),
        lambda x: np.arange(3) * x.shape[0] + x,
        lambda x: x.shape[0] * np.ones(3, "float32"),
        lambda x: x + np.sqrt(x.shape[0]),
        lambda x: x + (x.shape[0] > np.arange(3)),
        lambda x: gt.zeros(np.int64(2) * x.shape[0]) / gt.zeros(np.int64(2) * x.shape[0]).shape[0],
    ],
)
def test_what_numpy_computed_is_not_weak_as_in_eager_code(function: Any) -> None:
    x = gt.ones(3)
    found, expected = traced(function)(x), function(x)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int32", "int64", "float16", "float32", "float64", "complex64"]
)
@pytest.mark.parametrize("kind", ["+", "-", "*", "/"])
def test_a_size_beside_a_tensor_is_weak_on_either_side(kind: str, dtype: str) -> None:
    compute = FLOATS[kind]
    x = gt.constant([1, 2, 4], dtype)
    for function in (
        lambda x: compute(x, x.shape[0]),
        lambda x: compute(x.shape[0], x),
        lambda x: compute(x, x.shape[0] / 2),
    ):
        found, expected = traced(function, dtype)(x), function(x)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


def test_a_size_that_a_narrow_dtype_cannot_hold_raises_as_eagerly() -> None:
    def function(x: Any) -> Any:
        return x + 100 * x.shape[0]

    x = gt.constant([1, 2, 3], "uint8")
    for call in (function, traced(function, "uint8")):
        with pytest.raises(OverflowError, match="300 out of bounds for uint8"):
            call(x)
        assert call(x[:2]).tolist() == [201, 202]


@pytest.mark.parametrize(
    ("asked", "advice"),
    [
        (lambda n: np.prod((n, 3)), r"math\.prod"),
        (lambda n: np.array([n, 2]), r"gradtape\.constant"),
        (lambda n: np.asarray(n, "int64"), r"gradtape"),
        (lambda n: np.array_equal((n, 3), (2, 3)), r"gradtape\.where"),
        (lambda n: n in {1, 2}, "compare it"),
        (lambda n: {2: "a"}.get(n, "b"), "compare it"),
    ],
)
def test_what_would_ask_for_its_value_names_the_line_the_size_and_the_way(
    asked: Any, advice: str
) -> None:
    def function(x: Any) -> Any:
        return asked(x.shape[0])

    with pytest.raises(gt.errors.TraceError, match=rf"test_sizes\.py:\d+: .*n.*{advice}"):
        traced(function)(gt.ones(2))


def test_a_division_by_zero_names_the_line_and_the_size() -> None:
    for compute in (lambda: N // 0, lambda: N % 0, lambda: divmod(N, False)):
        with pytest.raises(ZeroDivisionError, match=r"test_sizes\.py:\d+: n (//|%) 0"):
            compute()


def test_what_is_no_number_is_refused_as_by_an_integer() -> None:
    for other in ("a", None, [1], object()):
        with pytest.raises(TypeError):
            N - other
    with pytest.raises(TypeError):
        N & 0.5
    with pytest.raises(ValueError, match="negative shift"):
        N << -1


def test_a_power_that_is_no_integer_in_a_run_is_an_error_of_the_run() -> None:
    def function(x: Any) -> Any:
        return x * 2 ** (x.shape[0] - 2)

    call = traced(function, "int64")
    assert call(gt.constant([1, 2, 3])).tolist() == [2, 4, 6]
    with pytest.raises(ValueError, match=r"2 \*\* -1 of sizes is not an integer"):
        call(gt.constant([1]))
    with pytest.raises(ValueError, match="complex"):
        traced(lambda x: x * (x.shape[0] - 4) ** 0.5)(gt.ones(3))


def test_a_size_is_copied_as_itself_and_not_pickled() -> None:
    assert copy.copy(N) is N
    assert copy.deepcopy([N])[0] is N
    with pytest.raises(TypeError, match="size n of a trace cannot be pickled"):
        pickle.dumps(N)


def test_expressions_without_end_are_refused_and_take_no_time() -> None:
    def deep(x: Any) -> Any:
        n = x.shape[0]
        for _ in range(1000):
            n = (n + 1) // 2 * n + n // 3
        return n

    def wide(x: Any) -> Any:
        n = x.shape[0]
        for _ in range(40):
            n = (n + 1) ** 16
        return n

    for function in (deep, wide):
        with pytest.raises((gt.errors.TraceError, OverflowError), match=r"too long|too large"):
            traced(function)(gt.ones(2))
    assert value_of((N + M + K) ** 8 * (N + M) ** 8, (2, 1, 1)) == 4**8 * 3**8


def test_formulas_are_equal_by_what_they_say() -> None:
    a, b = (lowered(N // 2 + shift, PLACES.__getitem__) for shift in (1, 2))
    assert a == lowered((N + 2) // 2, PLACES.__getitem__)
    assert a != b
    assert hash(a) != hash(b)
    assert isinstance(a, Formula)


@pytest.mark.parametrize("kind", [int, np.int64, np.int32])
def test_sizes_differ_where_that_can_be_proved_of_integers_of_any_kind(kind: Any) -> None:
    pairs = [(kind(3), 4), (4, kind(3)), (N, N + kind(1)), (kind(-1), N)]
    assert [sizes_differ(n, m) for n, m in pairs] == [True] * 4
    others = [(kind(3), 3), (N, kind(3)), (N, M), (None, kind(3)), (N + kind(1), N + 1)]
    assert [sizes_differ(n, m) for n, m in others] == [False] * 5
    assert largest(kind(2), 5) == 5
    assert smallest(2.0, kind(5)) == 2.0
