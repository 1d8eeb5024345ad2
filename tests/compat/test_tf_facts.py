"""What TensorFlow's tape does beyond its guides, through TensorFlow's names; one test a fact."""

from __future__ import annotations

import contextvars
import threading

import numpy as np
import pytest

import gradtape.compat.tensorflow as tf


def gradient_of(f, *values):
    xs = [tf.constant(value) for value in values]
    with tf.GradientTape() as tape:
        tape.watch(xs)
        y = f(*xs)
    found = tape.gradient(y, xs)
    return found if len(xs) > 1 else found[0]


def same(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)


# -- tape ------------------------------------------------------------------------------------------


def test_fact_01_watched_variables_are_a_tuple_in_order_of_creation() -> None:
    a, b, c = (tf.Variable(x) for x in (1.0, 2.0, 3.0))
    with tf.GradientTape() as tape:
        tape.watch(c)
        b + a
    watched = tape.watched_variables()
    assert isinstance(watched, tuple)
    assert [v is w for v, w in zip(watched, (a, b), strict=True)] == [True, True]


def test_fact_02_reading_watches_creating_does_not() -> None:
    with tf.GradientTape() as tape:
        a, b = tf.Variable(1.0), tf.Variable(2.0)
        assert tape.watched_variables() == ()
        with tape.stop_recording():
            tf.identity(b)
        tf.identity(a)
    assert [v is a for v in tape.watched_variables()] == [True]


def test_fact_03_a_target_among_the_sources() -> None:
    a = tf.constant(7.0)
    with tf.GradientTape() as tape:
        pass
    assert tape.gradient(a, a).numpy() == 1.0
    x, y = tf.constant(3.0), tf.constant(5.0)
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        z = y**2
    assert [g.numpy() for g in tape.gradient([x, y, z], [x, y])] == [1.0, 11.0]


@pytest.mark.parametrize("ask", ["gradient", "jacobian"])
def test_fact_04_any_answer_uses_up_the_tape(ask) -> None:
    x, other = tf.constant([3.0]), tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        getattr(tape, ask)(y, other)
        with pytest.raises(RuntimeError):
            tape.gradient(y, x)


def test_fact_05_reads_around_an_assignment_are_summed() -> None:
    v = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = v**2
        v.assign(10.0)
        z = v**3
        total = y + z
    assert tape.gradient(total, v).numpy() == 304.0


def test_fact_06_assignments_pass_no_gradient() -> None:
    v, x = tf.Variable(2.0), tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = v.assign(x * 5.0) * 3.0
    dx, dv = tape.gradient(y, [x, v])
    assert dx is None
    assert dv.numpy() == 3.0


def test_fact_07_tapes_are_per_thread_and_close_in_any_order() -> None:
    x = tf.constant(3.0)
    first, second = tf.GradientTape(), tf.GradientTape()
    first.__enter__()
    second.__enter__()
    first.watch(x)
    second.watch(x)
    y = x * x
    first.__exit__(None, None, None)
    z = y * x
    second.__exit__(None, None, None)
    assert first.gradient(z, x) is None
    assert second.gradient(z, x).numpy() == 27.0

    made = []
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        context = contextvars.copy_context()
        for run in (lambda: x * x, lambda: context.run(lambda: x * x)):
            thread = threading.Thread(target=lambda run=run: made.append(run()))
            thread.start()
            thread.join()
    assert tape.gradient(made[0], x) is None
    assert tape.gradient(made[1], x).numpy() == 6.0  # ours: with the context, it records


def test_fact_08_stop_recording_pauses_one_tape() -> None:
    x = tf.constant(3.0)
    with tf.GradientTape() as a, tf.GradientTape() as b:
        a.watch(x)
        b.watch(x)
        with a.stop_recording():
            y = x * x
    assert a.gradient(y, x) is None
    assert b.gradient(y, x).numpy() == 6.0


def test_fact_09_reset_forgets_what_was_watched() -> None:
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        tape.reset()
        y = x * x
    assert tape.gradient(y, x) is None


def test_fact_10_empty_and_malformed_arguments() -> None:
    x = tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
    assert tape.gradient([], x) is None
    assert tape.gradient(y, []) == []
    with pytest.raises(TypeError):
        tape.gradient(None, x)
    with pytest.raises(ValueError, match="None"):
        tape.gradient([y], x, output_gradients=[None])


def test_fact_11_integer_sources() -> None:
    x = tf.constant(3)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tf.cast(x, tf.float32) * 2.0
    assert tape.gradient(y, x) is None
    zero = tape.gradient(y, x, unconnected_gradients=tf.UnconnectedGradients.ZERO)
    assert (zero.numpy(), zero.dtype) == (0, tf.int32)


def test_fact_12_connected_zeros() -> None:
    assert gradient_of(lambda x: x * 0.0, 2.0).numpy() == 0.0
    assert gradient_of(lambda x: x - x, 2.0).numpy() == 0.0
    assert gradient_of(tf.zeros_like, 2.0) is None
    assert gradient_of(tf.ones_like, 2.0) is None


def test_fact_13_the_third_derivative_of_a_square() -> None:
    x = tf.Variable(2.0)
    with tf.GradientTape() as t3:
        with tf.GradientTape() as t2:
            with tf.GradientTape() as t1:
                y = x * x
            d1 = t1.gradient(y, x)
        d2 = t2.gradient(d1, x)
    assert (d1.numpy(), d2.numpy()) == (4.0, 2.0)
    assert t3.gradient(d2, x) is None


def test_fact_14_jacobians_of_unconnected_sources() -> None:
    x, other = tf.ones([2, 3]), tf.ones([2, 4])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, other])
        y = x * x
    assert tape.jacobian(y, other) is None
    found = tape.batch_jacobian(y, other)
    assert found.shape == (2, 3, 4)
    assert not found.numpy().any()
    empty = tf.ones([1, 0])
    with tf.GradientTape() as tape:
        tape.watch(empty)
        y = empty * 2.0
    assert tape.batch_jacobian(y, empty).shape == (1, 0, 0)


def test_fact_15_batch_jacobian_through_batch_normalization() -> None:
    x = tf.random.normal([4, 2])
    bn = tf.keras.layers.BatchNormalization()
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = bn(x, training=True) ** 3
    summed = tf.reduce_sum(tape.jacobian(y, x), axis=0)
    found = tape.batch_jacobian(y, x)
    assert np.abs(found.numpy()).max() > 1e-3
    np.testing.assert_allclose(found, tf.transpose(summed, [1, 0, 2]), atol=1e-5)
    with pytest.raises(ValueError, match="independent"):
        tape.batch_jacobian(y, x, check=True)  # ours


def test_fact_16_several_uses_run_back_once() -> None:
    upstream = []

    @tf.custom_gradient
    def noting(x):
        def backward(g):
            upstream.append(g.numpy())
            return 2.0 * g

        return 2.0 * x, backward

    def f(x):
        y = noting(x)
        return 3.0 * y + 4.0 * y + y

    assert gradient_of(f, 1.0).numpy() == 16.0
    assert upstream == [8.0]


# -- dtypes, complex numbers -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("f", "at", "expected"),
    [
        (lambda z: z * z, 1 + 2j, 2 - 4j),
        (tf.math.real, 1 + 2j, 1),
        (tf.math.imag, 1 + 2j, 1j),
        (tf.abs, 3 + 4j, 0.6 + 0.8j),
        (tf.math.angle, 3 + 4j, -0.16 + 0.12j),
    ],
)
def test_fact_17_holomorphic_gradients_are_conjugated(f, at, expected) -> None:
    same(gradient_of(f, np.complex128(at)), expected)


def test_fact_18_integer_division_is_float64_and_floats_promote() -> None:
    assert (tf.constant(1) / tf.constant(2)).dtype == tf.float64
    mixed = tf.constant(1.0) * tf.constant(2.0, tf.float64)
    assert mixed.dtype == tf.float64  # ours: NumPy's promotion


# -- custom gradients ------------------------------------------------------------------------------


def test_fact_19_unused_outputs_send_zeros() -> None:
    seen = []

    @tf.custom_gradient
    def both(x):
        def backward(a, b):
            seen.append((a.numpy(), b.numpy()))
            return 2.0 * a * x + b

        return (x * x, x), backward

    assert gradient_of(lambda x: both(x)[0], 2.0).numpy() == 4.0
    assert seen == [(1.0, 0.0)]


def test_fact_20_a_new_tensor_and_none_for_closures_and_keywords() -> None:
    hidden, keyword, x = tf.constant(3.0), tf.constant(5.0), tf.constant(2.0)

    @tf.custom_gradient
    def f(x, k=None):
        return x, lambda g: g * hidden * k

    with tf.GradientTape() as tape:
        tape.watch([hidden, keyword, x])
        y = f(x, k=keyword)
    assert y is not x
    dx, dh, dk = tape.gradient(y, [x, hidden, keyword])
    assert dx.numpy() == 15.0
    assert dh is None
    assert dk is None


def test_fact_21_captured_variables() -> None:
    trained, fixed = tf.Variable(3.0), tf.Variable(3.0, trainable=False)

    def reading(v):
        @tf.custom_gradient
        def f(x):
            return x * v, lambda g: g * v

        return f

    with pytest.raises(TypeError, match="variables"):
        reading(trained)(tf.constant(2.0))
    assert gradient_of(reading(fixed), 2.0).numpy() == 3.0

    @tf.custom_gradient
    def f(x):
        def backward(g, variables=None):
            assert variables[0] is trained
            return g * trained, [g * x]

        return x * trained, backward

    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert [g.numpy() for g in tape.gradient(y, [x, trained])] == [3.0, 2.0]


@tf.custom_gradient
def wrong_cube(x):
    return x * x * x, lambda g: 10.0 * g * x * x


@tf.custom_gradient
def nested(x):
    return x, lambda g: g * wrong_cube(x)


class Wrong(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([])])
    def plain(self, x):
        return wrong_cube(x)

    @tf.function(input_signature=[tf.TensorSpec([])])
    def deep(self, x):
        return nested(x)


def derivatives(f, order):
    x = tf.constant(2.0)
    tapes = [tf.GradientTape() for _ in range(order)]
    for tape in tapes:
        tape.__enter__()
        tape.watch(x)
    value, found = f(x), []
    for tape in reversed(tapes):
        tape.__exit__(None, None, None)
        value = tape.gradient(value, x)
        found.append(value.numpy())
    return found


def test_fact_22_wrong_rules_hold_at_every_order_also_when_saved(tmp_path) -> None:
    model = Wrong()
    tf.saved_model.save(model, tmp_path / "wrong")
    for module in (model, tf.saved_model.load(tmp_path / "wrong")):
        assert derivatives(module.plain, 3) == [40.0, 40.0, 20.0]
        assert derivatives(module.deep, 2) == [8.0, 40.0]
    assert derivatives(wrong_cube, 3) == [40.0, 40.0, 20.0]


# -- ops -------------------------------------------------------------------------------------------


def test_fact_23_ties() -> None:
    same(gradient_of(tf.reduce_max, [0.0, 1.0, 1.0]), [0.0, 0.5, 0.5])
    assert gradient_of(lambda x: tf.maximum(x, 0.0), 0.0).numpy() == 1.0
    assert gradient_of(lambda x: tf.maximum(0.0, x), 0.0).numpy() == 0.0


def test_fact_24_corners() -> None:
    assert gradient_of(tf.nn.relu, 0.0).numpy() == 0.0
    same(gradient_of(tf.nn.relu6, [0.0, 6.0]), [0.0, 0.0])
    same(gradient_of(lambda x: tf.nn.leaky_relu(x, alpha=0.25), 0.0), 0.25)
    same(gradient_of(lambda x: tf.clip_by_value(x, -1.0, 1.0), [-1.0, 1.0, 2.0]), [1.0, 1.0, 0.0])


def test_fact_25_singular_points() -> None:
    same(gradient_of(tf.norm, [0.0, 0.0]), [0.0, 0.0])  # ours: a subgradient
    same(gradient_of(lambda x: tf.clip_by_norm(x, 0.5), [0.0, 0.0]), [1.0, 1.0])
    with np.errstate(all="ignore"):
        assert gradient_of(tf.sqrt, 0.0).numpy() == np.inf
        leak = gradient_of(lambda x: tf.where(x > 0.0, tf.math.log(x), 0.0), 0.0)
    assert np.isnan(leak.numpy())


def test_fact_26_steps() -> None:
    assert gradient_of(tf.sign, 2.0).numpy() == 0.0
    steps = (tf.floor, tf.math.ceil, tf.round, lambda x: x // 2.0, lambda x: x > 1.0)
    assert [gradient_of(step, 2.5) for step in steps] == [None] * 5


def test_fact_27_powers_of_a_negative_base() -> None:
    base, exponent = gradient_of(tf.pow, -2.0, 3.0)
    assert (base.numpy(), exponent.numpy()) == (12.0, 0.0)


def test_fact_28_a_product_with_a_zero() -> None:
    same(gradient_of(tf.reduce_prod, [0.0, 4.0, 3.0]), [12.0, 0.0, 0.0])


def test_fact_29_cross_entropy() -> None:
    labels, logits = [[0.5, 0.2, 0.1]], [[1.0, 2.0, 3.0]]
    d_labels, d_logits = gradient_of(
        lambda p, x: tf.nn.softmax_cross_entropy_with_logits(labels=p, logits=x), labels, logits
    )
    softmax = np.exp(logits) / np.exp(logits).sum()
    same(d_logits, softmax - labels)
    same(d_labels, -np.log(softmax))


def test_fact_30_the_condition_of_where() -> None:
    x, a, b = gradient_of(lambda x, a, b: tf.where(x > 0.0, a, b), 2.0, 5.0, 7.0)
    assert x is None
    assert (a.numpy(), b.numpy()) == (1.0, 0.0)


# -- modules, functions, layers --------------------------------------------------------------------


def test_fact_31_the_order_of_variables() -> None:
    class Leaf(tf.Module):
        def __init__(self, tag):
            super().__init__()
            self.w = tf.Variable(0.0, name=tag)

    class Root(tf.Module):
        def __init__(self):
            super().__init__()
            self.z = tf.Variable(0.0, name="z")
            self.leaves = {"b": Leaf("b"), "a": Leaf("a")}
            self.a = tf.Variable(0.0, name="own")

    assert [v.name for v in Root().variables] == ["own", "z", "a", "b"]


def test_fact_32_names() -> None:
    class HTTPServer2(tf.Module):
        pass

    assert HTTPServer2().name == "http_server2"
    with pytest.raises(ValueError, match="identifier"):
        HTTPServer2(name="not a name")


def test_fact_33_a_function_retraces_per_python_value() -> None:
    traces = []

    @tf.function
    def f(x):
        traces.append(x)
        return tf.constant(1.0) * x

    counts = []
    for argument in (1, 1, 2, 2.0, 2):
        f(argument)
        counts.append(len(traces))
    assert counts == [1, 1, 2, 3, 3]


def test_fact_34_assign_add_in_a_function() -> None:
    v, x = tf.Variable(2.0), tf.constant(3.0)

    @tf.function
    def f(x):
        v.assign_add(x)
        return v * 2.0

    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert y.numpy() == 10.0
    dx, dv = tape.gradient(y, [x, v])
    assert dx is None
    assert dv.numpy() == 2.0


def test_fact_35_batch_normalization() -> None:
    layer = tf.keras.layers.BatchNormalization(momentum=0.5)
    x = tf.constant([[1.0], [3.0], [8.0]])
    same(layer(x), x.numpy() / np.sqrt(1.0 + 1e-3))
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(layer(x, training=True) ** 2)
    same(layer.moving_mean, [2.0])
    same(layer.moving_variance, [0.5 + 0.5 * np.var([1, 3, 8])])
    assert tape.gradient(y, [layer.moving_mean, layer.moving_variance]) == [None, None]
