"""What the API page of ``tf.GradientTape`` states: blocks, arguments, defaults and errors."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import gradtape.compat.tensorflow as tf


def test_first_and_second_derivative() -> None:
    x = tf.constant(3.0)
    with tf.GradientTape() as g:
        g.watch(x)
        y = x * x
    dy_dx = g.gradient(y, x)
    assert dy_dx.numpy() == 6.0

    x = tf.constant(5.0)
    with tf.GradientTape() as g:
        g.watch(x)
        with tf.GradientTape() as gg:
            gg.watch(x)
            y = x * x
        dy_dx = gg.gradient(y, x)
    d2y_dx2 = g.gradient(dy_dx, x)
    assert dy_dx.numpy() == 10.0
    assert d2y_dx2.numpy() == 2.0


def test_a_persistent_tape() -> None:
    x = tf.constant(3.0)
    with tf.GradientTape(persistent=True) as g:
        g.watch(x)
        y = x * x
        z = y * y
    assert g.gradient(z, x).numpy() == 108.0
    assert g.gradient(y, x).numpy() == 6.0


def test_without_automatic_watching() -> None:
    x = tf.Variable(2.0)
    w = tf.Variable(5.0)
    with tf.GradientTape(watch_accessed_variables=False, persistent=True) as tape:
        tape.watch(x)
        y = x**2
        z = w**3
    assert tape.gradient(y, x).numpy() == 4.0
    assert tape.gradient(z, w) is None


def test_variables_that_do_not_exist_yet_are_not_watched() -> None:
    inputs = tf.ones([2, 3])
    a = tf.keras.layers.Dense(32)
    b = tf.keras.layers.Dense(32)

    with tf.GradientTape(watch_accessed_variables=False) as tape:
        assert a.variables == []
        tape.watch(a.variables)
        result = b(a(inputs))
        grads = tape.gradient(result, a.variables)
    assert grads == [None, None]


@pytest.mark.parametrize(
    ("method", "defaults"),
    [
        ("__init__", {"persistent": False, "watch_accessed_variables": True}),
        ("watch", {}),
        ("stop_recording", {}),
        ("reset", {}),
        ("watched_variables", {}),
        (
            "gradient",
            {"output_gradients": None, "unconnected_gradients": tf.UnconnectedGradients.NONE},
        ),
        (
            "jacobian",
            {
                "unconnected_gradients": tf.UnconnectedGradients.NONE,
                "parallel_iterations": None,
                "experimental_use_pfor": True,
            },
        ),
        (
            "batch_jacobian",
            {
                "unconnected_gradients": tf.UnconnectedGradients.NONE,
                "parallel_iterations": None,
                "experimental_use_pfor": True,
            },
        ),
    ],
)
def test_the_methods_their_arguments_and_defaults(method, defaults) -> None:
    parameters = inspect.signature(getattr(tf.GradientTape, method)).parameters
    found = {
        name: p.default
        for name, p in parameters.items()
        if p.default is not inspect.Parameter.empty
    }
    assert {name: found[name] for name in defaults} == defaults
    positional = [name for name, p in parameters.items() if p.default is inspect.Parameter.empty]
    expected = {
        "watch": ["tensor"],
        "gradient": ["target", "sources"],
        "jacobian": ["target", "sources"],
        "batch_jacobian": ["target", "source"],
    }
    assert positional == ["self", *expected.get(method, [])]


@pytest.mark.parametrize("pfor", [True, False])
def test_batch_jacobian_is_the_stack_of_jacobians_per_example(pfor) -> None:
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]], dtype=tf.float32)
    with tf.GradientTape() as g:
        g.watch(x)
        y = x * x
    found = g.batch_jacobian(y, x, experimental_use_pfor=pfor)
    np.testing.assert_array_equal(found, [[[2.0, 0.0], [0.0, 4.0]], [[6.0, 0.0], [0.0, 8.0]]])


@pytest.mark.parametrize("pfor", [True, False])
def test_jacobian(pfor) -> None:
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as g:
        g.watch(x)
        y = x * x
    found = g.jacobian(y, x, experimental_use_pfor=pfor, parallel_iterations=1)
    np.testing.assert_array_equal(found, [[2.0, 0.0], [0.0, 4.0]])


def test_errors() -> None:
    x = tf.constant(3.0)
    with tf.GradientTape() as g:
        g.watch(x)
        y = x * x
    g.gradient(y, x)
    with pytest.raises(RuntimeError, match="non-persistent"):
        g.gradient(y, x)
    with tf.GradientTape() as g:
        g.watch(x)
    with pytest.raises(ValueError, match="unconnected_gradients"):
        g.gradient(x, x, unconnected_gradients="nonsense")
    with pytest.raises(RuntimeError, match="not recording"), g.stop_recording():
        pass
    with pytest.raises(RuntimeError, match="already recording"), g, g:
        pass
    a, b = tf.ones([2, 3]), tf.ones([4, 3])
    with tf.GradientTape() as g:
        g.watch(b)
        c = tf.concat([a, b], 0)
    with pytest.raises(ValueError, match="batch_jacobian"):
        g.batch_jacobian(c, b)


def test_output_gradients_and_nested_structures() -> None:
    x, y = tf.Variable([1.0, 2.0]), tf.Variable(3.0)
    with tf.GradientTape() as g:
        z = x * y
    grads = g.gradient([z], {"x": x, "rest": (y, [x])}, output_gradients=[tf.constant([1.0, 10.0])])
    np.testing.assert_array_equal(grads["x"], [3.0, 30.0])
    assert grads["rest"][0].numpy() == 21.0
    np.testing.assert_array_equal(grads["rest"][1][0], [3.0, 30.0])
