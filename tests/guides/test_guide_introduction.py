"""What the guide "Introduction to gradients and automatic differentiation" states.

Its programs are run with gradtape's names and with TensorFlow's: `lib` is one, then the other.
"""

from __future__ import annotations

import numpy as np


def test_square_of_a_scalar_and_of_a_vector(lib) -> None:
    x = lib.constant(3.0)
    with lib.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    assert tape.gradient(y, x).numpy() == 6.0

    x = lib.constant([3.0, 3.0])
    with lib.GradientTape() as tape:
        tape.watch(x)
        z = lib.multiply(x, x)
    np.testing.assert_array_equal(z, [9.0, 9.0])
    np.testing.assert_array_equal(tape.gradient(z, x), [6.0, 6.0])


def test_a_constant_that_nobody_watched_has_no_gradient(lib) -> None:
    x = lib.constant(3.0)
    with lib.GradientTape() as tape:
        y = x * x
    assert tape.gradient(y, x) is None


def test_gradient_of_an_intermediate_result(lib) -> None:
    x = lib.constant([3.0, 3.0])
    with lib.GradientTape() as tape:
        tape.watch(x)
        y = lib.multiply(x, x)
        z = lib.multiply(y, y)
    np.testing.assert_array_equal(tape.gradient(z, y), [18.0, 18.0])


def test_variables_that_are_read_are_watched_in_order_of_creation(lib) -> None:
    x, y = lib.Variable(2.0), lib.Variable(3.0)
    with lib.GradientTape() as tape:
        y_sq = y * y
        z = x + y_sq
    first, second = tape.watched_variables()
    assert first is x
    assert second is y
    assert z.numpy() == 11.0


def test_a_persistent_tape_answers_several_times(lib) -> None:
    x = lib.constant(3.0)
    with lib.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        z = y * y
    assert tape.gradient(z, x).numpy() == 108.0
    assert tape.gradient(y, x).numpy() == 6.0
    del tape


def test_python_control_flow_is_followed(lib) -> None:
    def f(x, n):
        output = 1.0
        for i in range(n):
            if 1 < i < 5:
                output *= x
        return output

    def grad(x, n):
        with lib.GradientTape() as tape:
            tape.watch(x)
            out = f(x, n)
        return tape.gradient(out, x)

    x = lib.constant(2.0)
    assert [grad(x, n).numpy() for n in (6, 5, 4)] == [12.0, 12.0, 4.0]


def test_integers_have_no_gradient(lib) -> None:
    with lib.GradientTape() as tape:
        x = lib.Variable([[2, 2], [2, 2]], dtype=lib.int8)
        y = x * x
    assert y.dtype == lib.int8
    assert y.dtype == np.int8
    assert tape.gradient(y, x) is None


def test_unconnected_gives_none_or_zero_as_asked(lib) -> None:
    x, y = lib.Variable(2.0), lib.Variable(3.0)
    with lib.GradientTape() as tape:
        y * y
    assert tape.gradient(x, y) is None

    with lib.GradientTape() as tape:
        y * y
    zero = tape.gradient(x, y, unconnected_gradients=lib.UnconnectedGradients.ZERO)
    assert zero.numpy() == 0.0
    assert zero.shape == ()
    assert zero.dtype == np.float32


def test_a_custom_gradient_clips_what_comes_back(lib) -> None:
    called = []

    @lib.custom_gradient
    def clip_gradients(y):
        def backward(dy):
            called.append(dy.numpy())
            return lib.clip_by_norm(dy, 0.5)

        return y, backward

    v = lib.Variable(2.0)
    with lib.GradientTape() as tape:
        output = clip_gradients(v * v)
    assert output.numpy() == 4.0
    assert tape.gradient(output, v).numpy() == 2.0
    assert called == [1.0]


def test_nested_tapes_give_the_second_derivative(lib) -> None:
    x = lib.Variable(1.0)
    with lib.GradientTape() as outer:
        with lib.GradientTape() as inner:
            y = x * x * x
        dy_dx = inner.gradient(y, x)
    d2y_dx2 = outer.gradient(dy_dx, x)
    assert y.numpy() == 1.0
    assert dy_dx.numpy() == 3.0
    assert d2y_dx2.numpy() == 6.0


def test_watching_one_variable_only(lib) -> None:
    x, y = lib.Variable(2.0), lib.Variable(3.0)
    with lib.GradientTape(watch_accessed_variables=False, persistent=True) as tape:
        tape.watch(y)
        y_sq = y * y
        z = x + y_sq
    assert tape.gradient(z, x) is None
    assert tape.gradient(z, y).numpy() == 6.0


def test_an_intermediate_gradient_while_recording_is_stopped(lib) -> None:
    x, y = lib.Variable(2.0), lib.Variable(3.0)
    with lib.GradientTape(persistent=True) as tape:
        y_sq = y * y
        with tape.stop_recording():
            assert tape.gradient(y_sq, y).numpy() == 6.0
        z = x + y_sq
    assert tape.gradient(z, y).numpy() == 6.0


def test_a_reset_forgets_also_after_recording_was_stopped(lib) -> None:
    x, y = lib.Variable(2.0), lib.Variable(3.0)
    with lib.GradientTape(persistent=True) as tape:
        y_sq = y * y
        with tape.stop_recording():
            assert tape.gradient(y_sq, y).numpy() == 6.0
        tape.reset()
        z = x + y_sq
    assert tape.gradient(z, y) is None
