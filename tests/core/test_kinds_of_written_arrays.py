"""Arrays that code writes into by a method, through a view, in a container, or before a test."""

from __future__ import annotations

import operator
import sys
import warnings
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import BrokenPathWarning, GradientError, TraceError

X = gt.constant(np.array([1.25, 2.5]))


def in_a_dictionary(x: Any) -> Any:
    parts = {"a": np.zeros(2)}
    parts["a"][0] = x[0]
    return np.sum(parts["a"]) * x[1]


def in_a_list(x: Any) -> Any:
    parts, i = [np.zeros(2), np.zeros(2)], 1
    parts[i][0] = x[0]
    return np.sum(parts[i]) * x[1]


def in_an_object(x: Any) -> Any:
    class Held:
        pass

    held = Held()
    held.parts = {"a": np.zeros(2)}
    held.parts["a"][:1] = x[0]
    return np.sum(held.parts["a"]) * x[1]


def one_of_flat(x: Any) -> Any:
    a = np.zeros(2)
    a.flat[0] = x[0]
    return np.sum(a) * x[1]


def all_of_flat(x: Any) -> Any:
    a = np.zeros(2)
    a.flat[:] = x
    return np.sum(a) * x[1]


def filled(x: Any) -> Any:
    a = np.zeros(2)
    a.fill(x[0])
    return np.sum(a) * x[1]


def put(x: Any) -> Any:
    a = np.zeros(2)
    a.put([0, 1], x)
    return np.sum(a) * x[1]


def by_its_method(x: Any) -> Any:
    a = np.zeros(2)
    a.__setitem__(0, x[0])
    return np.sum(a) * x[1]


def diagonal(x: Any) -> Any:
    a = np.zeros((2, 2))
    np.fill_diagonal(a, x)
    return np.sum(a) * x[1]


def real_part(x: Any) -> Any:
    a = np.zeros(2, complex)
    a.real = x
    return np.sum(np.abs(a)) * x[1]


def part_of_real_part(x: Any) -> Any:
    a = np.zeros(2, complex)
    a.real[0] = x[0]
    return np.sum(np.abs(a)) * x[1]


def transposed(x: Any) -> Any:
    a = np.zeros((2, 3))
    a.T[0] = x
    return np.sum(a) * x[1]


def of_a_whole_that_nobody_has(x: Any) -> Any:
    a = np.zeros(4).reshape(2, 2)
    a[0] = x
    return np.sum(a) * x[1]


WRITTEN = {
    in_a_dictionary: ('parts["a"][...] = x', 'write parts["a"] = gradtape.writable(parts["a"])'),
    in_a_list: ("parts[i][...] = x", "write parts[i] = gradtape.writable(parts[i])"),
    in_an_object: (
        'held.parts["a"][...] = x',
        'write held.parts["a"] = gradtape.writable(held.parts["a"])',
    ),
    one_of_flat: ("a[...] = x", "write a = gradtape.writable(a) once the array is made"),
    all_of_flat: ("a[...] = x", "write a = gradtape.writable(a) once the array is made"),
    filled: ("a.fill(x)", "write a = gradtape.writable(a) once the array is made"),
    put: ("a.put(x)", "write a = gradtape.writable(a) once the array is made"),
    by_its_method: ("a[...] = x", "write a = gradtape.writable(a) once the array is made"),
    diagonal: ("numpy.fill_diagonal(a, x)", "a = gradtape.fill_diagonal(a, x)"),
    real_part: ("a.real = x", "write a = gradtape.writable(a) once the array is made"),
    part_of_real_part: ("a[...] = x", "write a = gradtape.writable(a) once the array is made"),
    transposed: ("a[...] = x", "write a = gradtape.writable(a) once the array is made"),
    of_a_whole_that_nobody_has: (
        "a[...] = x",
        "write a = gradtape.writable(a) once the array is made",
    ),
}


@pytest.mark.parametrize("program", WRITTEN)
def test_every_way_to_write_into_an_array_is_refused(program: Any) -> None:
    statement, advice = WRITTEN[program]
    for run in (lambda: gt.grad(program)(X), lambda: gt.jvp(program, (X,), (X,))):
        with pytest.raises(TypeError) as caught:
            run()
        assert f": {statement} writes into a NumPy array" in str(caught.value)
        assert advice in str(caught.value)
    with pytest.raises(TraceError) as unknown:
        gt.function(program)(X)
    assert f": {statement} writes into a NumPy array" in str(unknown.value)


def a_named_view(x: Any) -> Any:
    a = np.zeros((2, 3))
    column = a[:, 1]
    column[:] = x
    return np.sum(a) * x[1]


def rows(x: Any) -> Any:
    a = np.zeros((3, 2))
    for row in a:
        row[:] = x
    return np.sum(a) * x[1]


def rows_of_writable(x: Any) -> Any:
    a = np.zeros((3, 2))
    a = gt.writable(a)
    for row in a:
        row[:] = x
    return np.sum(a) * x[1]


@pytest.mark.parametrize("program", [a_named_view, rows])
def test_a_view_is_taken_from_an_array_that_is_made_writable(program: Any) -> None:
    words = r"(column|row) is a view of a: write a = gradtape.writable\(a\) .*take the view from"
    with pytest.raises(TypeError, match=words) as caught:
        gt.grad(program)(X)
    assert "writable(column)" not in str(caught.value)
    gt.testing.check_gradients(rows_of_writable, X)


class Filter:
    def __init__(self) -> None:
        self.gains = np.zeros((2, 2))

    def fill(self, x: Any) -> None:
        row = self.gains[0]
        row[:] = x


def test_a_view_of_an_array_of_another_object() -> None:
    def f(x: Any) -> Any:
        kept = Filter()
        kept.fill(x)
        return np.sum(kept.gains) * x[1]

    with pytest.warns(BrokenPathWarning, match="row is a view of self.gains: write self.gains = "):
        gt.grad(f)(X)


def written_before_a_test(a: Any, x: Any, more: bool) -> None:
    a[0] = x
    if more:
        a[1] = 2.0


def flat_before_a_loop(a: Any, x: Any, more: bool) -> None:
    a.flat[:1] = x
    while more:
        more = False


@pytest.mark.parametrize("fill", [written_before_a_test, flat_before_a_loop])
def test_an_assignment_before_a_test_is_told_of(fill: Any) -> None:
    def by_number(x: Any) -> Any:
        a = np.zeros(2)
        fill(a, x[0], True)
        return np.sum(a) * x[1]

    def by_array(x: Any) -> Any:
        a = np.zeros(2)
        fill(a, x[0], True)
        return gt.sum(a * x)

    with pytest.warns(BrokenPathWarning, match=r"read by \[...\] = at"):
        gt.grad(by_number)(X)
    with pytest.raises(GradientError, match=r"read by \[...\] = at"):
        gt.grad(by_array)(X)


def test_a_value_that_an_or_keeps_is_told_of() -> None:
    def f(x: Any) -> Any:
        scale = float(x[0]) or 1.0
        return scale * x[1]

    with pytest.warns(BrokenPathWarning, match=r"read by float\(...\)"):
        gt.grad(f)(X)


def collected(x: Any) -> Any:
    values = []
    for one in x:
        values.append(float(one))  # noqa: PERF401
    return sum(values) * x[1]


def made_global(x: Any) -> Any:
    global SCALE
    SCALE = float(x[0])
    return SCALE * x[1]


SCALE = 1.0


@pytest.mark.parametrize("program", [collected, made_global])
def test_a_value_that_code_keeps_and_computes_with_is_told_of(program: Any) -> None:
    with pytest.warns(BrokenPathWarning, match=r"read by float\(...\)"):
        gt.grad(program)(X)


HISTORY = {"losses": np.zeros(3)}


def logs(x: Any) -> Any:
    """Values that the code only shows, keeps or returns."""
    norms, rows_of, local = np.zeros(3), np.zeros((3, 2)), {"losses": np.zeros(3)}
    y = x[0]
    for i in range(3):
        y = y * x[1]
        norms.flat[i] = y
        row = rows_of[i]
        row[:] = x
        local["losses"][i] = y
        HISTORY["losses"][i] = y
        if i:
            print(norms[i], local["losses"])
    norms.fill(y)
    return y, norms, rows_of, local


def test_logs_of_every_kind_are_not_told_of() -> None:
    with warnings.catch_warnings(action="error"):
        gt.grad(lambda x: logs(x)[0])(X)


def test_the_error_for_a_function_that_writes_names_the_array() -> None:
    def adds(x: Any) -> Any:
        counts = {"a": np.zeros(2)}
        np.add.at(counts["a"], [0, 0], x)
        return np.sum(counts["a"])

    def advised(x: Any) -> Any:
        counts = {"a": gt.writable(np.zeros(2))}
        np.add.at(counts["a"], [0, 0], x**2)
        return np.sum(counts["a"])

    words = r'numpy.add.at writes .*write counts\["a"\] = gradtape.writable\(counts\["a"\]\)'
    with pytest.raises(TypeError, match=words) as caught:
        gt.grad(adds)(X)
    assert caught.value.__suppress_context__
    gt.testing.check_gradients(advised, X)
    with pytest.raises(TypeError, match=r"numpy.full_like .* use gradtape.full_like"):
        gt.grad(lambda x: np.sum(np.full_like(np.zeros(2), x[0])))(X)


def test_an_operator_on_an_array_in_a_dictionary_is_named() -> None:
    def whole(x: Any) -> Any:
        state = {"a": np.ones(2)}
        state["a"] *= x
        return gt.sum(state["a"])

    def part(x: Any) -> Any:
        state = {"a": np.ones(3)}
        state["a"][1:] *= x
        return gt.sum(state["a"])

    writable = r'state\["a"\] = gradtape.writable\(state\["a"\]\)'
    with pytest.raises(TypeError, match=rf'state\["a"\] = state\["a"\] \* x, or {writable}'):
        gt.grad(whole)(X)
    with pytest.raises(TypeError, match=rf'state\["a"\]\[i\] \*= x .*write {writable}'):
        gt.grad(part)(X)


def test_an_assignment_to_a_tensor_names_it() -> None:
    def f(x: Any) -> Any:
        gap = x * 2.0
        gap[0] = 1.0
        return gt.sum(gap)

    words = r"write gap = gap.at\[index\].set\(values\), or gap = gradtape.writable\(gap\)"
    with pytest.raises(TypeError, match=words):
        gt.grad(f)(X)


@pytest.mark.skipif(sys.version_info < (3, 13), reason="an instruction loads one variable")
def test_an_instruction_that_loads_two_variables_is_understood() -> None:
    def f(x: Any) -> Any:
        a, value = np.zeros(2), x[0] * 1.0
        a[0] = value
        return np.sum(a) * x[1]

    with pytest.raises(TypeError, match=r"a\[...\] = x writes into a NumPy array"):
        gt.grad(f)(X)


def test_a_value_that_a_function_writes_is_told_of() -> None:
    def f(x: Any) -> Any:
        a = np.zeros(2)
        operator.setitem(a, 0, x[0])
        return np.sum(a) * x[1]

    with pytest.warns(BrokenPathWarning, match="operator.setitem"):
        gt.grad(f)(X)
