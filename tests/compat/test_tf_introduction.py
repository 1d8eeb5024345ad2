"""What the guide "Introduction to gradients and automatic differentiation" states, as it stands.

The code is TensorFlow's; only the import is another.
"""

from __future__ import annotations

import numpy as np

import gradtape.compat.tensorflow as tf


def test_scalars() -> None:
    x = tf.constant(3.0)
    with tf.GradientTape() as t:
        t.watch(x)
        y = x * x
    dy_dx = t.gradient(y, x)
    assert dy_dx.numpy() == 6.0


def test_matrices() -> None:
    x = tf.constant([3.0, 3.0])

    with tf.GradientTape() as t:
        t.watch(x)
        z = tf.multiply(x, x)

    np.testing.assert_array_equal(z, [9.0, 9.0])
    np.testing.assert_array_equal(t.gradient(z, x), [6.0, 6.0])


def test_with_respect_to_an_intermediate_value() -> None:
    x = tf.constant([3.0, 3.0])

    with tf.GradientTape() as t:
        t.watch(x)
        y = tf.multiply(x, x)
        z = tf.multiply(y, y)

    np.testing.assert_array_equal(t.gradient(z, y), [18.0, 18.0])


def test_variables_are_listed_in_the_order_of_their_creation() -> None:
    x = tf.Variable(2.0)
    y = tf.Variable(3.0)

    with tf.GradientTape() as t:
        y_sq = y * y
        z = x + y_sq

    assert z.numpy() == 11.0
    first, second = t.watched_variables()
    assert first is x
    assert second is y


def test_a_persistent_tape() -> None:
    x = tf.constant(3.0)
    with tf.GradientTape(persistent=True) as t:
        t.watch(x)
        y = x * x
        z = y * y
    assert t.gradient(z, x).numpy() == 108.0
    assert t.gradient(y, x).numpy() == 6.0
    del t


def test_control_flow() -> None:
    def f(x, y):
        output = 1.0
        for i in range(y):
            if i > 1 and i < 5:
                output *= x
        return output

    def grad(x, y):
        with tf.GradientTape() as t:
            t.watch(x)
            out = f(x, y)
        return t.gradient(out, x)

    x = tf.constant(2.0)

    assert grad(x, 6).numpy() == 12.0
    assert grad(x, 5).numpy() == 12.0
    assert grad(x, 4).numpy() == 4.0


def test_integers_have_no_gradient() -> None:
    with tf.GradientTape() as tape:
        x = tf.Variable([[2, 2], [2, 2]], dtype=tf.int8)
        y = x * x
    assert y.dtype == tf.int8
    assert tape.gradient(y, x) is None


def test_unconnected_gradients_none_and_zero() -> None:
    x = tf.Variable(2.0)
    y = tf.Variable(3.0)

    with tf.GradientTape() as tape:
        y * y
    assert tape.gradient(x, y) is None

    with tf.GradientTape() as tape:
        y * y
    g = tape.gradient(x, y, unconnected_gradients=tf.UnconnectedGradients.ZERO)
    assert g.numpy() == 0.0
    assert g.shape == ()


def test_a_custom_gradient_that_clips() -> None:
    @tf.custom_gradient
    def clip_gradients(y):
        def backward(dy):
            return tf.clip_by_norm(dy, 0.5)

        return y, backward

    v = tf.Variable(2.0)
    with tf.GradientTape() as t:
        output = clip_gradients(v * v)
    assert t.gradient(output, v).numpy() == 2.0


def test_higher_orders() -> None:
    x = tf.Variable(1.0)

    with tf.GradientTape() as t:
        with tf.GradientTape() as t2:
            y = x * x * x

        dy_dx = t2.gradient(y, x)
    d2y_dx2 = t.gradient(dy_dx, x)

    assert dy_dx.numpy() == 3.0
    assert d2y_dx2.numpy() == 6.0


def test_watching_some_variables_alone() -> None:
    x = tf.Variable(2.0)
    y = tf.Variable(3.0)

    with tf.GradientTape(watch_accessed_variables=False, persistent=True) as t:
        t.watch(y)
        y_sq = y * y
        z = x + y_sq

    assert t.gradient(z, x) is None
    assert t.gradient(z, y).numpy() == 6.0
    del t


def test_stop_recording_and_reset() -> None:
    x = tf.Variable(2.0)
    y = tf.Variable(3.0)

    with tf.GradientTape(persistent=True) as t:
        y_sq = y * y
        with t.stop_recording():
            assert t.gradient(y_sq, y).numpy() == 6.0
        z = x + y_sq
    assert t.gradient(z, y).numpy() == 6.0

    with tf.GradientTape(persistent=True) as t:
        y_sq = y * y
        t.reset()
        z = x + y_sq
    assert t.gradient(z, y) is None
