"""What the guide "Introduction to gradients and automatic differentiation" states, in our names."""

from __future__ import annotations

import numpy as np

import gradtape as gt


def test_square_of_a_scalar_and_of_a_vector() -> None:
    x = gt.constant(3.0)
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    assert tape.gradient(y, x).numpy() == 6.0

    x = gt.constant([3.0, 3.0])
    with gt.GradientTape() as tape:
        tape.watch(x)
        z = gt.multiply(x, x)
    np.testing.assert_array_equal(z, [9.0, 9.0])
    np.testing.assert_array_equal(tape.gradient(z, x), [6.0, 6.0])


def test_a_constant_that_nobody_watched_has_no_gradient() -> None:
    x = gt.constant(3.0)
    with gt.GradientTape() as tape:
        y = x * x
    assert tape.gradient(y, x) is None


def test_gradient_of_an_intermediate_result() -> None:
    x = gt.constant([3.0, 3.0])
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = gt.multiply(x, x)
        z = gt.multiply(y, y)
    np.testing.assert_array_equal(tape.gradient(z, y), [18.0, 18.0])


def test_variables_that_are_read_are_watched_in_order_of_creation() -> None:
    x, y = gt.Variable(2.0), gt.Variable(3.0)
    with gt.GradientTape() as tape:
        y_sq = y * y
        z = x + y_sq
    watched = tape.watched_variables()
    assert watched[0] is x
    assert watched[1] is y
    assert len(watched) == 2
    assert z.numpy() == 11.0


def test_a_persistent_tape_answers_several_times() -> None:
    x = gt.constant(3.0)
    with gt.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        z = y * y
    assert tape.gradient(z, x).numpy() == 108.0
    assert tape.gradient(y, x).numpy() == 6.0


def test_python_control_flow_is_followed() -> None:
    def f(x: gt.Tensor, n: int) -> gt.Tensor:
        output = 1.0
        for i in range(n):
            if 1 < i < 5:
                output *= x
        return output

    def grad(x: gt.Tensor, n: int) -> gt.Tensor:
        with gt.GradientTape() as tape:
            tape.watch(x)
            out = f(x, n)
        return tape.gradient(out, x)

    x = gt.constant(2.0)
    assert [grad(x, n).numpy() for n in (6, 5, 4)] == [12.0, 12.0, 4.0]


def test_integers_have_no_gradient() -> None:
    with gt.GradientTape() as tape:
        x = gt.Variable([[2, 2], [2, 2]], dtype=np.int8)
        y = x * x
    assert y.dtype == np.int8
    assert tape.gradient(y, x) is None


def test_unconnected_gives_none_or_zero_as_asked() -> None:
    x, y = gt.Variable(2.0), gt.Variable(3.0)
    with gt.GradientTape() as tape:
        y * y
    assert tape.gradient(x, y) is None

    with gt.GradientTape() as tape:
        y * y
    zero = tape.gradient(x, y, unconnected_gradients=gt.UnconnectedGradients.ZERO)
    assert zero.numpy() == 0.0
    assert zero.shape == ()
    assert zero.dtype == np.float32


def test_a_custom_gradient_clips_what_comes_back() -> None:
    called = []

    @gt.custom_gradient
    def clip_gradients(y):
        def backward(dy):
            called.append(dy.numpy())
            return gt.clip_by_norm(dy, 0.5)

        return y, backward

    v = gt.Variable(2.0)
    with gt.GradientTape() as tape:
        output = clip_gradients(v * v)
    assert output.numpy() == 4.0
    assert tape.gradient(output, v).numpy() == 2.0
    assert called == [1.0]


def test_nested_tapes_give_the_second_derivative() -> None:
    x = gt.Variable(1.0)
    with gt.GradientTape() as outer:
        with gt.GradientTape() as inner:
            y = x * x * x
        dy_dx = inner.gradient(y, x)
    d2y_dx2 = outer.gradient(dy_dx, x)
    assert dy_dx.numpy() == 3.0
    assert d2y_dx2.numpy() == 6.0


def test_watching_one_variable_only() -> None:
    x, y = gt.Variable(2.0), gt.Variable(3.0)
    with gt.GradientTape(watch_accessed_variables=False, persistent=True) as tape:
        tape.watch(y)
        y_sq = y * y
        z = x + y_sq
    assert tape.gradient(z, x) is None
    assert tape.gradient(z, y).numpy() == 6.0


def test_an_intermediate_gradient_while_recording_is_stopped_and_a_reset() -> None:
    x, y = gt.Variable(2.0), gt.Variable(3.0)
    with gt.GradientTape(persistent=True) as tape:
        y_sq = y * y
        with tape.stop_recording():
            assert tape.gradient(y_sq, y).numpy() == 6.0
        tape.reset()
        z = x + y_sq
    assert tape.gradient(z, y) is None
