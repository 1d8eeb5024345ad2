"""NumPy code that writes tensors into arrays: refused, in words that run, unless it is a log."""

from __future__ import annotations

import contextlib
import gc
import warnings
import weakref
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import BrokenPathWarning, GradientError, TraceError

X = gt.constant(np.array([1.25, 2.5]))


def one_element(x: Any) -> Any:
    a = np.zeros(3)
    a[0] = x[0]
    return gt.sum(a * x[1])


def a_slice(x: Any) -> Any:
    a = np.zeros(3)
    a[1:] = x
    return gt.sum(a * x[1])


def a_list(x: Any) -> Any:
    a = np.zeros(3)
    a[:2] = [x[0], x[1]]
    return gt.sum(a * x[1])


def a_sum(x: Any) -> Any:
    a = np.zeros(3)
    for i in range(3):
        a[i] += x[i % 2]
    return np.sum(np.log1p(a)) + gt.sum(x)


def of_an_earlier_element(x: Any) -> Any:
    a = np.ones(3)
    for i in range(1, 3):
        a[i] = a[i - 1] * x[0]
    return x[1] + a[2]


def returned(x: Any) -> Any:
    def matrix() -> Any:
        a = np.eye(2)
        a[0, 1] = x[0]
        return a

    return gt.sum(matrix() @ x)


def of_an_object(x: Any) -> Any:
    class Held:
        pass

    a = Held()
    a.b = np.zeros(2)
    b = a.b
    b[0] = x[0]
    return gt.sum(b * x)


REFUSED = [one_element, a_slice, a_list, a_sum, of_an_earlier_element, returned, of_an_object]


def on_tape(f: Any, x: Any) -> Any:
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x)


FOLLOWED = {
    "grad": lambda f: gt.grad(f)(X),
    "tape": lambda f: on_tape(f, X),
    "hessian": lambda f: gt.hessian(f)(X),
    "jvp": lambda f: gt.jvp(f, (X,), (X,)),
}
UNKNOWN = {
    "function": lambda f: gt.function(f)(X),
    "vmap": lambda f: gt.vmap(f)(gt.stack([X, X])),
}


@pytest.mark.parametrize("run", FOLLOWED)
@pytest.mark.parametrize("program", REFUSED)
def test_an_assignment_that_loses_gradients_is_refused(program: Any, run: str) -> None:
    words = (
        r"test_written_arrays.py:\d+: [ab]\[...\] = x writes into a NumPy array.*writable\([ab]\)"
    )
    with pytest.raises(TypeError, match=words):
        FOLLOWED[run](program)


@pytest.mark.parametrize("run", UNKNOWN)
@pytest.mark.parametrize("program", REFUSED)
def test_in_traces_and_batches_it_is_named(program: Any, run: str) -> None:
    words = r"[ab]\[...\] = x writes into a NumPy array.*writable\([ab]\)"
    with pytest.raises(TraceError, match=words):
        UNKNOWN[run](program)


def test_the_advice_runs() -> None:
    def by_writable(x: Any) -> Any:
        a = np.zeros(3)
        a = gt.writable(a)
        a[0] = x[0]
        a += x[0]
        a[1:] = x * a[0]
        return gt.sum(a * x[1])

    def by_list(x: Any) -> Any:
        return gt.sum(np.stack([2 * x[0], x[0] * 2 * x[0], x[1] * 2 * x[0]]) * x[1])

    def by_at(x: Any) -> Any:
        a: Any = np.zeros(3)
        a = gt.constant(a)
        a = a.at[0].set(2 * x[0])
        a = a.at[1:].set(x * a[0])
        return gt.sum(a * x[1])

    wanted = gt.grad(by_list)(X)
    for f in (by_writable, by_at):
        np.testing.assert_allclose(gt.grad(f)(X), wanted, rtol=1e-14)
        np.testing.assert_allclose(gt.function(gt.grad(f))(X), wanted, rtol=1e-14)


HISTORY = np.zeros(4)


def a_global_log(x: Any) -> Any:
    loss = gt.sum(x * x)
    HISTORY[0] = loss
    return loss * 0.5


def a_log_that_is_shown(x: Any) -> Any:
    losses = np.zeros(2)
    loss = gt.sum(x * x)
    losses[0] = loss
    print(losses, np.mean(losses))
    return loss * 0.5


def a_log_that_is_returned(x: Any) -> Any:
    def steps() -> Any:
        path, y = np.zeros(3), x[0]
        for i in range(3):
            y = y * x[1]
            path[i] = y
        return y, path

    return steps()[0]


def meant(x: Any) -> Any:
    scale = np.zeros(2)
    scale[0] = gt.max(x).numpy()
    return gt.sum(x * x) / (1.0 + np.sum(scale))


@pytest.mark.parametrize("run", FOLLOWED)
@pytest.mark.parametrize("log", [a_global_log, a_log_that_is_shown, a_log_that_is_returned, meant])
def test_logs_are_not_refused(log: Any, run: str) -> None:
    with warnings.catch_warnings(action="error", category=BrokenPathWarning):
        FOLLOWED[run](log)


def fill(a: Any, value: Any) -> None:
    a[0] = value


@pytest.mark.parametrize("run", FOLLOWED)
def test_the_array_itself_that_comes_back_is_an_error(run: str) -> None:
    def f(x: Any) -> Any:
        a = np.zeros(2)
        fill(a, x[0])
        return gt.sum(a * x)

    with pytest.raises(GradientError, match=r"test_written_arrays.py:\d+.*writable"):
        FOLLOWED[run](f)


def fill_by_steps(a: Any, value: Any) -> None:
    for i in range(2):
        a[i] = value if i == 0 else a[i - 1] * value


def add_to(a: Any, value: Any) -> None:
    a += value


def add_to_part(a: Any, value: Any) -> None:
    a[1:] += value


@pytest.mark.parametrize("run", ["grad", "tape"])
@pytest.mark.parametrize("helper", [fill, fill_by_steps, add_to, add_to_part])
def test_an_array_that_is_an_argument_is_made_writable_by_the_caller(helper: Any, run: str) -> None:
    def f(x: Any) -> Any:
        a = np.zeros(2)
        helper(a, x[0])
        return gt.sum(a * x)

    def advised(x: Any) -> Any:
        a = np.zeros(2)
        a = gt.writable(a)
        helper(a, x[0])
        return gt.sum(a * x)

    with pytest.raises((TypeError, GradientError)) as caught:
        FOLLOWED[run](f)
    where = f"in the caller, where the array is made, because a is an argument of {helper.__name__}"
    assert f"write a = gradtape.writable(a) {where}" in str(caught.value)
    assert "once the array is made" not in str(caught.value)
    gt.testing.check_gradients(advised, X)


def test_an_argument_that_is_replaced_is_the_functions_own() -> None:
    def f(x: Any, a: Any = None) -> Any:
        a = np.zeros(2)
        a[0] = x[0]
        return gt.sum(a * x)

    with pytest.raises(TypeError, match=r"write a = gradtape.writable.a. once the array is made"):
        gt.grad(f)(X)


def numpy_to_the_end(x: Any) -> Any:
    a = np.zeros(2)
    fill(a, x[0])
    return np.sum(a)


def numpy_alone(x: Any) -> Any:
    return np.asarray(x).sum()


@pytest.mark.parametrize("run", ["grad", "tape", "hessian"])
@pytest.mark.parametrize(
    ("program", "call"), [(numpy_to_the_end, r"\[...\] ="), (numpy_alone, r"np.asarray\(...\)")]
)
def test_a_result_that_is_no_tensor_names_the_line_that_read(
    program: Any, call: str, run: str
) -> None:
    words = rf"got .*float64.*read by {call} at .*test_written_arrays.py:\d+"
    with pytest.raises(TypeError, match=words):
        FOLLOWED[run](program)
    with pytest.raises(TypeError, match=r"must return a tensor, got float$"):
        gt.grad(lambda x: 2.0)(X)


@pytest.mark.parametrize("program", [numpy_to_the_end, numpy_alone])
def test_a_tangent_of_no_tensor_is_warned_of(program: Any) -> None:
    with pytest.warns(BrokenPathWarning, match=r"test_written_arrays.py:\d+"):
        gt.jvp(program, (X,), (X,))


@pytest.mark.parametrize("run", FOLLOWED | UNKNOWN)
def test_an_error_that_was_caught_keeps_no_array(run: str) -> None:
    kept: list[Any] = []

    def f(x: Any) -> Any:
        a = np.zeros(3)
        kept.append(weakref.ref(a))
        a[1:] = x
        return gt.sum(a * x[1])

    with contextlib.suppress(TypeError):
        (FOLLOWED | UNKNOWN)[run](f)
    gc.collect()
    assert [x() for x in kept] == [None]


def test_nothing_is_refused_that_no_tape_follows() -> None:
    assert one_element(X).item() == 3.125
    y = gt.constant(2.0, dtype="float64")
    with gt.GradientTape() as tape:
        tape.watch(y)
        z = one_element(X) * y
        with tape.stop_recording():
            one_element(gt.stack([y, y]))
    assert tape.gradient(z, y).item() == 3.125


def operator_on_all(x: Any) -> Any:
    a = np.zeros(2)
    a += x
    return gt.sum(a)


def operator_on_part(x: Any) -> Any:
    a = np.zeros(3)
    a[1:] *= x
    return gt.sum(a)


@pytest.mark.parametrize("run", FOLLOWED | UNKNOWN)
def test_in_place_operators_are_named_as_they_are_written(run: str) -> None:
    derive = (FOLLOWED | UNKNOWN)[run]
    whole = r"a \+= x writes into a NumPy array.*write a = a \+ x, or a = gradtape.writable\(a\)"
    with pytest.raises(TypeError, match=whole):
        derive(operator_on_all)
    with pytest.raises(TypeError, match=r"a\[i\] \*= x writes .*write a = gradtape.writable\(a\)"):
        derive(operator_on_part)
    with pytest.raises(TypeError, match=r"numpy.add with \['out'\] writes into"):
        derive(lambda x: np.add(x, 1.0, out=np.zeros(2)))


def test_an_array_with_which_code_computes_after_the_tape_is_a_log() -> None:
    w, losses, norms = gt.Variable([1.5, -2.0]), np.zeros(3), np.zeros((3, 2))
    parts = np.zeros((3, 2))
    with warnings.catch_warnings(action="error"):
        for i in range(3):
            with gt.GradientTape() as tape:
                loss = gt.sum(w * w)
                losses[i] += loss
                parts[i][1] = loss
                try:
                    norms[i] = loss, gt.max(w)
                finally:
                    loss = loss * 0.5
            w.assign_sub(0.1 * tape.gradient(loss, w))
    np.testing.assert_array_equal(losses * 1.0, parts[:, 1])
    assert losses[0] / losses[1] == pytest.approx(1 / 0.81)
    assert np.mean(norms[:, 0]) == pytest.approx(np.mean(losses))


def in_the_tape(w: Any) -> Any:
    a = np.zeros(2)
    with gt.GradientTape() as tape:
        a[0] = w[0]
        y = gt.sum(a * w)
    return tape.gradient(y, w)


def in_a_handler_in_the_tape(w: Any) -> Any:
    a = np.zeros(2)
    with gt.GradientTape() as tape:
        with warnings.catch_warnings():
            a[0] = w[0]
        try:
            raise KeyError
        except KeyError:
            with warnings.catch_warnings():
                y = gt.sum(a * w)
    return tape.gradient(y, w)


def in_an_outer_tape(w: Any) -> Any:
    a = np.zeros(2)
    with gt.GradientTape() as outer:
        with gt.GradientTape() as inner:
            a[0] = w[0]
            y = gt.sum(w * w)
        z = gt.sum(a * inner.gradient(y, w))
    return outer.gradient(z, w)


def in_a_tape_of_the_caller(w: Any) -> Any:
    with gt.GradientTape() as outer:
        z = in_the_tape_of_nobody(w)
    return outer.gradient(z, w)


def in_the_tape_of_nobody(w: Any) -> Any:
    a = np.zeros(2)
    with gt.GradientTape():
        a[0] = w[0]
    return gt.sum(a * w)


def in_a_tape_that_goes_on(w: Any) -> Any:
    a, tape = np.zeros(2), gt.GradientTape(persistent=True)
    with tape:
        a[0] = w[0]
    with tape:
        y = gt.sum(a * w)
    return tape.gradient(y, w)


@pytest.mark.parametrize(
    "program",
    [
        in_the_tape,
        in_a_handler_in_the_tape,
        in_an_outer_tape,
        in_a_tape_of_the_caller,
        in_a_tape_that_goes_on,
    ],
)
def test_an_array_with_which_code_computes_in_the_tape_is_refused(program: Any) -> None:
    with pytest.raises(TypeError, match=r"a\[...\] = x writes into a NumPy array"):
        program(gt.Variable([1.5, -2.0]))
