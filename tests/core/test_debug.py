"""``gt.debug.nan_guard``: the first op that makes a NaN or an infinity is named."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
X = gt.constant([0.0, 1.0])


def gradient(fn: Callable[[Any], Any], x: Any) -> Any:
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = fn(x)
    return tape.gradient(y, x)


def guarded(fn: Callable[..., Any], *args: Any, **options: Any) -> str:
    with pytest.raises(FloatingPointError) as caught, gt.debug.nan_guard(**options):
        fn(*args)
    return str(caught.value)


def test_the_op_its_inputs_ranges_and_the_line_are_named() -> None:
    message = guarded(lambda: gt.exp(gt.log(X * 2.0)))
    line = sys._getframe().f_lineno - 1
    assert f"{__file__}:{line}: op 'log' makes -inf" in message
    assert "1 of 2 elements, the first at (0,)" in message
    assert "x: float32[2] from 0 to 2" in message


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (lambda: X / X, ["'divide' makes nan", "x: float32[2] from 0 to 1", "y: float32[2]"]),
        (lambda: X / 0.0, ["'divide' makes nan (2 of 2", "y: float32[] = 0.0"]),
        (lambda: gt.constant(1e5).astype("float16"), ["'cast' makes inf", "float32[] = 1"]),
        (lambda: gt.log(gt.constant([0j, 1])), ["'log'", "of magnitude 0 to 1"]),
        (lambda: gt.einsum("i,i->", X * 3e38, X * 3e38), ["makes inf", "input 0: float32[2]"]),
    ],
    ids=["divide", "scalar", "cast", "complex", "variadic"],
)
def test_every_kind_of_op_is_looked_at(run: Callable[[], Any], expected: list[str]) -> None:
    message = guarded(run)
    assert all(part in message for part in expected), message


def test_an_op_of_a_gradient_is_named_with_the_op_that_is_differentiated() -> None:
    def square_root(x: Any) -> Any:
        return gt.sum(gt.sqrt(x))

    line = square_root.__code__.co_firstlineno + 1
    message = guarded(gradient, square_root, X)
    assert f"in the gradient of op 'sqrt' ({__file__}:{line})" in message
    assert "makes inf" in message


def test_second_order_names_both_gradients() -> None:
    def slope(x: Any) -> Any:
        return gt.sum(gradient(lambda x: x**1.5, x))

    assert np.isinf(gradient(slope, X).numpy()[0])
    message = guarded(gradient, slope, X)
    assert message.count("in the gradient of op") == 1
    assert __file__ in message


def test_traced_functions_are_looked_at_forward_and_backward() -> None:
    @gt.function
    def root(x: Any) -> Any:
        return gt.sum(gt.sqrt(x))

    @gt.function
    def logarithm(x: Any) -> Any:
        return gt.log(x)

    root(X), logarithm(X)  # traced and compiled before the guard is there
    assert "in the gradient of op 'sqrt'" in guarded(gradient, root, X)
    message = guarded(logarithm, X)
    assert "op 'log' makes -inf" in message
    assert "in the traced function 'logarithm'" in message
    assert f"{__file__}:" in message
    assert np.isneginf(logarithm(X).numpy()[0])


def test_a_custom_gradient_is_looked_at() -> None:
    @gt.custom_gradient
    def careless(x: Any) -> Any:
        return x * 2.0, lambda g: g / (x * 0.0)

    message = guarded(gradient, lambda x: gt.sum(careless(x)), X)
    assert "'divide' makes inf" in message
    assert "in the gradient of op" in message
    assert "careless" in message


def test_an_op_that_is_given_what_is_not_finite_is_not_to_blame() -> None:
    with gt.debug.nan_guard():
        y = gt.where(X > 0.0, X, -np.inf)
        assert gt.max(y * 2.0).numpy() == 2.0
        assert np.isnan(gt.sum(gt.constant([np.nan, 1.0])).numpy())
        assert np.isnan(gt.pad(X, 1, constant_values=np.nan).numpy()[0])
        assert gt.constant([7], dtype="int32").astype("float32").numpy() == 7.0
        np.testing.assert_array_equal(gradient(lambda x: gt.sum(x * x), X), [0.0, 2.0])


def test_infinities_may_be_allowed() -> None:
    with gt.debug.nan_guard(infinities=False):
        low = gt.log(X)
        assert np.isneginf(low.numpy()[0])
    message = guarded(lambda: gt.log(X) - gt.log(X), infinities=False)
    assert "op 'subtract' makes nan (1 of 2" in message
    assert "from -inf to 0" in message


def test_values_and_gradients_are_the_same_under_the_guard() -> None:
    def model(x: Any) -> Any:
        q, r = gt.linalg.qr(gt.reshape(x, (2, 2)))
        return gt.sum(gt.tanh(q @ r) * gt.exp(r))

    x = gt.constant(np.array([1.0, 2.0, -0.5, 0.3]))
    plain = gradient(model, x)
    with gt.debug.nan_guard():
        np.testing.assert_allclose(gradient(model, x), plain, rtol=1e-12)


def test_the_guard_ends_with_its_block_however_that_ends() -> None:
    guarded(lambda: gt.log(X))
    assert np.isneginf(gt.log(X).numpy()[0])

    @gt.debug.nan_guard()
    def decorated() -> Any:
        return gt.log(X)

    guarded(decorated)
    with gt.debug.nan_guard():
        tape = gt.GradientTape()
        tape.__enter__()
    tape.watch(X)
    y = gt.log(X)  # the guard has gone, the tape goes on
    tape.__exit__(None, None, None)
    np.testing.assert_array_equal(tape.gradient(y, X), [np.inf, 1.0])


def test_the_error_is_ours_too_and_debug_is_imported_when_it_is_used() -> None:
    with pytest.raises(gt.errors.GradtapeError), gt.debug.nan_guard():
        gt.log(X)
    code = (
        "import sys, gradtape; before = set(sys.modules); "
        "print(gradtape.debug.nan_guard.__module__ in before, gradtape.debug)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("False <module 'gradtape.debug'")


def test_training_goes_on_under_the_guard_until_it_diverges() -> None:
    layer = gt.layers.Dense(1)
    optimizer = gt.training.SGD(0.1)
    x = gt.constant(np.ones((4, 3), "float32"))

    @gt.function
    def loss(x: Any) -> Any:
        return gt.mean(gt.square(layer(x) - 1.0))

    def step(x: Any) -> Any:
        with gt.GradientTape() as tape:
            value = loss(x)
        variables = layer.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(value, variables), variables, strict=True))
        return value

    with gt.debug.nan_guard():
        first = step(x)
        assert step(x).numpy() < first.numpy()
    message = guarded(step, x * 1e30)
    assert "op 'square' makes inf" in message
    assert "in the traced function 'loss'" in message
