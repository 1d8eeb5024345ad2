"""Values that are read while a function is traced, and in the straight lines of a script."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import BrokenPathWarning, GradientError

X, W = np.array([0.3, 1.2, 0.7]), np.array([2.0, 1.0, 0.5])


def number(w: Any) -> float:
    return float(gt.sum(w))


def array(w: Any) -> Any:
    return np.asarray(w) * 2.0


#: What runs a function of a tensor while it is traced, or for many examples.
AROUND: dict[str, Callable[[Callable[[Any], Any]], Callable[[Any], Any]]] = {
    "function": gt.function,
    "function in a function": lambda f: gt.function(lambda x: gt.function(lambda a: f(a))(x)),
    "map": lambda f: lambda x: gt.map(f, gt.stack([x, x]))[0],
    "scan": lambda f: lambda x: gt.scan(lambda c, a: (c + f(a), c), x * 0.0, x[None])[0],
    "while": lambda f: (
        lambda x: gt.while_loop(lambda i, a: i < 2, lambda i, a: (i + 1, f(a)), (0, x))[1]
    ),
    "cond in a function": lambda f: gt.function(
        lambda x: gt.cond(gt.sum(x) > 0.0, lambda: f(x), lambda: x)
    ),
    "scan in a function": lambda f: gt.function(
        lambda x: gt.scan(lambda c, a: (c + f(a), c), x * 0.0, x[None])[0]
    ),
    "vmap": lambda f: lambda x: gt.vmap(f)(x[None])[0],
    "recompute_grad": gt.recompute_grad,
}
around = pytest.mark.parametrize("how", AROUND)
READS: dict[str, Callable[[Any, Any], Any]] = {
    "into an op": lambda x, w: x * number(w),
    "beside a path": lambda x, w: x * (w - gt.sum(w) + number(w)),
    "an array": lambda x, w: x * w + array(w),
}


def told(run: Callable[[], Any]) -> tuple[Any, list[str]]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result = run()
    return result, [str(w.message) for w in found if w.category is BrokenPathWarning]


def gradient(how: str, read: Callable[[Any, Any], Any], strict: bool = False) -> Any:
    x, w = gt.constant(X), gt.constant(W)
    with gt.GradientTape(strict=strict) as tape:
        tape.watch([x, w])
        loss = gt.sum(AROUND[how](lambda a: read(a, w))(x) * w)
    return tape.gradient(loss, [x, w])


@around
@pytest.mark.parametrize("read", READS)
def test_a_read_is_warned_of_and_a_strict_tape_raises(how: str, read: str) -> None:
    _, messages = told(lambda: gradient(how, READS[read]))
    assert len(messages) == 1
    assert "float(...)" in messages[0] or "asarray(...)" in messages[0]
    assert "test_values_that_leave_traces.py" in messages[0]
    with pytest.raises(GradientError, match="is a constant for the tape"):
        gradient(how, READS[read], strict=True)


@around
def test_what_does_not_depend_on_the_value_is_complete(how: str) -> None:
    seen = []

    def logged(x: Any, w: Any) -> Any:
        seen.append(float(gt.sum(w)))
        print(float(gt.sum(w)))
        return x * w

    grads, messages = told(lambda: gradient(how, logged))
    assert messages == []
    plain, _ = told(lambda: gradient(how, lambda x, w: x * w))
    for got, want in zip(grads, plain, strict=True):
        np.testing.assert_array_equal(got, want)
    gradient(how, logged, strict=True)


def test_each_call_of_a_traced_function_lacks_the_part() -> None:
    w = gt.constant(W)
    traced = gt.function(lambda a: a * w * number(w))
    for _ in range(2):
        with gt.GradientTape(strict=True) as tape:
            tape.watch(w)
            loss = gt.sum(traced(gt.constant(X)))
        with pytest.raises(GradientError, match="is a constant for the tape"):
            tape.gradient(loss, w)
    with gt.ForwardAccumulator(w, gt.ones_like(w), strict=True) as forward:
        loss = gt.sum(traced(gt.constant(X)))
    with pytest.raises(GradientError, match="is a constant for the tape"):
        forward.jvp(loss)


def test_the_values_and_the_other_gradients_are_unchanged() -> None:
    x, w = gt.constant(X), gt.constant(W)
    for fn in (lambda a: a * number(w), gt.function(lambda a: a * number(w))):
        with gt.GradientTape() as tape:
            tape.watch([x, w])
            y = fn(x)
        dx, dw = told(partial(tape.gradient, y, [x, w]))[0]
        np.testing.assert_array_equal(y, X * 3.5)
        np.testing.assert_array_equal(dx, np.full(3, 3.5))
        assert dw is None


#: Straight lines, as in a script or a cell of a notebook: the value goes on, and is shown.
SCRIPTS = {
    "a gradient that is printed": """
x = gt.constant([0.3, 1.2])
with gt.GradientTape() as tape:
    tape.watch(x)
    z = x + gt.sum(x).item()
    y = gt.sum(z * z)
print(tape.gradient(y, x))
""",
    "a gradient that is compared": """
x = gt.constant([0.3, 1.2])
with gt.GradientTape() as tape:
    tape.watch(x)
    s = float(gt.sum(x))
    z = gt.sin(x) * s
    y = gt.sum(z)
assert gt.sum(tape.gradient(y, x)) > 0.0
""",
}
LOGS = {
    "a rounded loss": """
x = gt.constant([0.3, 1.2])
with gt.GradientTape() as tape:
    tape.watch(x)
    y = gt.sum(x * x)
    print("loss", round(float(y) / 2, 3), f"{abs(float(y)):.3f}")
    if abs(float(y)) < 1e-9:
        raise SystemExit
    z = y * 0.5
print(tape.gradient(z, x))
""",
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_told_of_a_value_that_left(name: str) -> None:
    code = compile(SCRIPTS[name], f"<{name}>", "exec")
    _, messages = told(lambda: exec(code, {"gt": gt, "__name__": "__main__"}))
    assert len(messages) == 1


@pytest.mark.parametrize("name", LOGS)
def test_a_script_that_logs_is_not(name: str) -> None:
    code = compile(LOGS[name], f"<{name}>", "exec")
    _, messages = told(lambda: exec(code, {"gt": gt, "__name__": "__main__"}))
    assert messages == []
