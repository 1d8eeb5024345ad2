"""Whole programs of the kinds that TensorFlow's other guides teach."""

from __future__ import annotations

import numpy as np
import pytest

import gradtape.compat.tensorflow as tf


def test_a_line_is_fitted_by_hand() -> None:
    class MyModel(tf.Module):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.w = tf.Variable(5.0)
            self.b = tf.Variable(0.0)

        def __call__(self, x):
            return self.w * x + self.b

    tf.random.set_seed(0)
    x = tf.cast(tf.linspace(-2, 2, 201), tf.float32)
    y = 3.0 * x + 2.0 + 0.1 * tf.random.normal(shape=[201])

    model = MyModel(name="line")
    for _ in range(100):
        with tf.GradientTape() as t:
            loss = tf.reduce_mean(tf.square(y - model(x)))
        dw, db = t.gradient(loss, [model.w, model.b])
        model.w.assign_sub(0.1 * dw)
        model.b.assign_sub(0.1 * db)
    np.testing.assert_allclose([model.w.numpy(), model.b.numpy()], [3.0, 2.0], atol=0.05)


def test_a_line_is_fitted_by_keras() -> None:
    class MyModel(tf.keras.Model):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.w = tf.Variable(5.0)
            self.b = tf.Variable(0.0)

        def call(self, x):
            return self.w * x + self.b

    x = np.linspace(-2, 2, 200).astype("float32")
    y = 3.0 * x + 2.0
    model = MyModel()
    model.compile(
        run_eagerly=False,
        optimizer=tf.keras.optimizers.SGD(learning_rate=0.1),
        loss=tf.keras.losses.mean_squared_error,
    )
    history = model.fit(x, y, epochs=40, batch_size=1000, verbose=0)
    assert history.history["loss"][-1] < 1e-4
    assert [v.numpy().round(1) for v in model.trainable_variables] == [3.0, 2.0]


def test_modules_in_modules_are_saved_with_their_functions(tmp_path) -> None:
    class Dense(tf.Module):
        def __init__(self, in_features, out_features, name=None):
            super().__init__(name=name)
            self.w = tf.Variable(tf.random.normal([in_features, out_features]), name="w")
            self.b = tf.Variable(tf.zeros([out_features]), name="b")

        def __call__(self, x):
            return tf.nn.relu(tf.matmul(x, self.w) + self.b)

    class Stack(tf.Module):
        def __init__(self, name=None):
            super().__init__(name=name)
            self.dense_1 = Dense(in_features=3, out_features=3)
            self.dense_2 = Dense(in_features=3, out_features=2)

        @tf.function
        def __call__(self, x):
            return self.dense_2(self.dense_1(x))

    model = Stack(name="the_model")
    expected = model([[2.0, 2.0, 2.0]])
    tf.saved_model.save(model, str(tmp_path / "the_saved_model"))
    loaded = tf.saved_model.load(str(tmp_path / "the_saved_model"))
    np.testing.assert_allclose(loaded([[2.0, 2.0, 2.0]]), expected)
    assert len(model.submodules) == 2
    assert len(loaded.variables) == 4


def test_a_stable_gradient_written_by_hand() -> None:
    @tf.custom_gradient
    def log1pexp(x):
        e = tf.exp(x)

        def grad(upstream):
            return upstream * (1 - 1 / (1 + e))

        return tf.math.log(1 + e), grad

    x = tf.constant(100.0)
    with np.errstate(over="ignore"), tf.GradientTape() as t:
        t.watch(x)
        y = log1pexp(x)
    assert t.gradient(y, x).numpy() == 1.0


def test_loops_as_the_reference_shows_them() -> None:
    i = tf.constant(0)
    r = tf.while_loop(lambda i: tf.less(i, 10), lambda i: (tf.add(i, 1),), [i])
    assert r[0].numpy() == 10
    triples = tf.map_fn(fn=lambda t: tf.range(t, t + 3), elems=tf.constant([3, 5, 2]))
    assert triples.numpy().tolist() == [[3, 4, 5], [5, 6, 7], [2, 3, 4]]
    fibonacci = tf.scan(lambda a, _: (a[1], a[0] + a[1]), np.zeros(6), (np.array(0), np.array(1)))
    assert fibonacci[1].numpy().tolist() == [1, 2, 3, 5, 8, 13]


@pytest.mark.parametrize("persistent", [False, True])
def test_a_step_as_a_function_with_keras(persistent) -> None:
    tf.random.set_seed(2)
    model = tf.keras.Sequential(
        [tf.keras.layers.Dense(16, activation="relu"), tf.keras.layers.Dense(1)]
    )
    optimizer, loss_fn = tf.keras.optimizers.Adam(0.01), tf.keras.losses.MeanSquaredError()
    x = np.random.default_rng(0).standard_normal((64, 2))
    y = x[:, :1] * x[:, 1:]
    model(x)

    @tf.function
    def train_step(inputs, targets):
        with tf.GradientTape(persistent=persistent) as tape:
            loss = loss_fn(targets, model(inputs, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    losses = [float(train_step(x, y)) for _ in range(60)]
    assert losses[-1] < 0.5 * losses[0]


def test_a_fast_gradient_sign_step_raises_the_loss() -> None:
    tf.random.set_seed(5)
    model = tf.keras.Sequential([tf.keras.layers.Dense(3, activation="softmax")])
    image, label = tf.random.normal([1, 8]), tf.one_hot([1], 3)
    loss_object = tf.keras.losses.CategoricalCrossentropy()
    with tf.GradientTape() as tape:
        tape.watch(image)
        loss = loss_object(label, model(image))
    signed = tf.sign(tape.gradient(loss, image))
    worse = tf.clip_by_value(image + 0.1 * signed, -10, 10)
    assert loss_object(label, model(worse)) > loss


def test_a_hessian_vector_product_two_ways() -> None:
    x, v = tf.constant([1.0, 2.0, 3.0]), tf.constant([0.5, -1.0, 2.0])

    def f(x):
        return tf.reduce_sum(x**3) * tf.reduce_prod(x)

    with tf.autodiff.ForwardAccumulator(x, v) as acc:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        g = tape.gradient(y, x)
    forward = acc.jvp(g)

    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        product = tf.reduce_sum(inner.gradient(y, x) * v)
    np.testing.assert_allclose(forward, outer.gradient(product, x), rtol=1e-5)


@pytest.mark.parametrize("option", ["reduce_retracing", "experimental_relax_shapes", None])
@pytest.mark.parametrize("decorator", [True, False])
def test_functions_reduce_retracing_if_they_are_told_to(
    option: str | None, decorator: bool
) -> None:
    options = {} if option is None else {option: True}

    def total(x):
        return tf.reduce_sum(x)

    f = tf.function(**options)(total) if decorator else tf.function(total, **options)
    for n in range(1, 6):
        assert f(tf.ones([n, 2])).numpy() == 2.0 * n
    assert len(f.concrete_functions) == (5 if option is None else 2)


def test_a_call_uses_a_concrete_function_with_open_sizes() -> None:
    f = tf.function(lambda x: x * 2.0)
    f.get_concrete_function(tf.TensorSpec([None], tf.float32))
    for n in range(1, 6):
        assert f(tf.ones([n])).shape == (n,)
    assert len(f.concrete_functions) == 1
