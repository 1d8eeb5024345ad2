"""``tf.keras``: layers, models, optimizers, losses and metrics as in Keras 3."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import gradtape as gt
import gradtape.compat.tensorflow as tf
from gradtape.compat.tensorflow import keras

rng = np.random.default_rng(1)


def same(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


# -- layers ----------------------------------------------------------------------------------------


def test_dense_has_keras_weights_and_computes_in_float32() -> None:
    layer = keras.layers.Dense(3, activation="relu", kernel_initializer="ones", name="d")
    x = rng.standard_normal((2, 4))  # float64
    y = layer(x)
    assert (layer.kernel.shape, layer.bias.shape) == ((4, 3), (3,))
    assert y.dtype == layer.kernel.dtype == tf.float32
    same(y, np.maximum(x.sum(1, keepdims=True) * np.ones(3), 0))
    assert [v.name for v in layer.weights] == ["kernel", "bias"]
    assert layer.count_params() == 15
    assert keras.layers.Dense(3, dtype="float64")(x).dtype == tf.float64
    assert len(keras.layers.Dense(2, use_bias=False)(x).shape) == 2
    assert isinstance(layer, gt.layers.Dense)
    with pytest.raises(TypeError, match="Dense: kernel_quantizer not supported by gradtape"):
        keras.layers.Dense(3, kernel_quantizer="l2")


@pytest.mark.parametrize("own", [False, True])
def test_regularizers_and_constraints_are_those_of_fit_and_of_steps_of_ones_own(own) -> None:
    class Own(keras.Sequential):
        def compute_loss(self, *args, **kwargs):
            return super().compute_loss(*args, **kwargs)

    l2 = keras.regularizers.l2(0.5)
    layer = keras.layers.Dense(
        1, kernel_initializer="ones", kernel_regularizer=l2, kernel_constraint="non_neg"
    )
    model = (Own if own else keras.Sequential)([layer])
    model.compile(keras.optimizers.SGD(10.0), "mse")
    x, y = np.ones((4, 2), "float32"), np.full((4, 1), 2.0, "float32")
    same(model.evaluate(x, y), 1.0)  # 0.5 * (1 + 1), and no error
    assert len(model.losses) == 1
    same(model.fit(x, y, verbose=0).history["loss"], [1.0])
    same(layer.kernel, [[0.0], [0.0]])  # the step went below zero


def test_a_layer_of_ones_own_has_a_weight_with_a_regularizer_and_adds_to_the_loss() -> None:
    class Scale(keras.layers.Layer):
        def build(self, input_shape):
            self.w = self.add_weight(shape=(2,), initializer="ones", regularizer="l2")

        def call(self, x):
            self.add_loss(tf.reduce_sum(x))
            return x * self.w

    model = keras.Sequential([Scale()])
    model.compile("sgd", "mse")
    same(model.evaluate(np.ones((1, 2)), np.ones((1, 2))), 0.02 + 2.0)


def test_weights_are_read_and_set_in_order() -> None:
    layer = keras.layers.Dense(2)
    layer(np.zeros((1, 3)))
    kernel, bias = np.arange(6.0).reshape(3, 2), np.array([1.0, -1.0])
    layer.set_weights([kernel, bias])
    found = layer.get_weights()
    same(found[0], kernel)
    same(found[1], bias)
    with pytest.raises(ValueError, match="2 weights"):
        layer.set_weights([kernel])
    with pytest.raises(ValueError, match="shape"):
        layer.set_weights([bias, bias])


def test_a_layer_of_ones_own() -> None:
    class Scale(keras.layers.Layer):
        def __init__(self, factor=1.0, **kwargs):
            super().__init__(**kwargs)
            self.factor = factor

        def build(self, input_shape):
            self.w = self.add_weight(shape=(input_shape[-1],), initializer="ones", name="w")
            self.seen = self.add_weight(shape=(), dtype="int32", trainable=False, name="seen")

        def call(self, inputs):
            return inputs * self.w * self.factor

    layer = Scale(2.0, name="scale")
    same(layer(np.ones((2, 3))), 2 * np.ones((2, 3)))
    assert layer.built
    assert [v.name for v in layer.trainable_variables] == ["w"]
    assert [v.name for v in layer.non_trainable_variables] == ["seen"]
    assert layer.seen.dtype == tf.int32


def test_a_layer_may_forget_its_base_and_trace_its_call() -> None:
    class Plain(keras.layers.Layer):
        def __init__(self):
            self.inner = keras.layers.Dense(2)

        @tf.function
        def call(self, inputs):
            return self.inner(inputs["a"]) + inputs["b"]

    layer = Plain()
    inputs = {"a": np.ones((3, 4)), "b": np.ones((3, 2))}
    assert layer(inputs).shape == (3, 2)
    assert layer(inputs).dtype == tf.float32
    assert len(layer.weights) == 2


def test_training_reaches_the_layers_inside() -> None:
    seen = []

    class Noting(keras.layers.Layer):
        def call(self, x, training=None):
            seen.append(training)
            return x

    class Outer(keras.Model):
        def __init__(self):
            super().__init__()
            self.inner = Noting()
            self.drop = keras.layers.Dropout(0.5, seed=1)

        def call(self, x):
            return self.drop(self.inner(x))

    model, x = Outer(), tf.ones([100])
    assert (model(x).numpy() == 1.0).all()
    dropped = model(x, training=True).numpy()
    assert set(dropped.tolist()) == {0.0, 2.0}
    assert seen == [None, True]
    model.inner(x, training=False)
    assert seen[-1] is False


def test_a_frozen_layer_does_not_train() -> None:
    model = keras.Sequential(
        [keras.layers.Dense(2), keras.layers.BatchNormalization(), keras.layers.Dense(1)]
    )
    model(np.ones((4, 3)))
    assert len(model.trainable_variables) == 6
    model.layers[1].trainable = False
    assert len(model.trainable_variables) == 4
    before = model.layers[1].get_weights()
    model(rng.standard_normal((4, 3)), training=True)
    for old, new in zip(before, model.layers[1].get_weights(), strict=True):
        same(old, new)  # it does not move its statistics either
    model.trainable = False
    assert model.trainable_variables == []
    model.trainable = True
    assert len(model.trainable_variables) == 6
    assert len(model.non_trainable_variables) == 2
    late = keras.layers.Dense(1, trainable=False)
    late(np.ones((1, 2)))
    assert late.trainable_variables == []


def test_other_layers() -> None:
    x = rng.standard_normal((2, 3, 4)).astype("float32")
    same(keras.layers.Flatten()(x), x.reshape(2, 12))
    same(keras.layers.Activation("tanh")(x), np.tanh(x))
    bn = keras.layers.BatchNormalization()
    assert (bn.axis, bn.momentum, bn.epsilon, bn.center, bn.scale) == (-1, 0.99, 1e-3, True, True)
    bn(x)
    assert [v.name for v in bn.weights] == ["gamma", "beta", "moving_mean", "moving_variance"]
    assert keras.layers.Dropout(0.25).rate == 0.25
    dropped = keras.layers.Dropout(0.5, (None, 1, None))(np.ones((2, 3, 4)), training=True).numpy()
    assert (dropped == dropped[:, :1]).all()
    bn = keras.layers.BatchNormalization(gamma_initializer="zeros", synchronized=False)
    assert not bn(x).numpy().any()
    with pytest.raises(TypeError, match="BatchNormalization: renorm not supported"):
        keras.layers.BatchNormalization(renorm=True)


# -- models ----------------------------------------------------------------------------------------


def test_sequential_is_built_from_its_input() -> None:
    for first in ([keras.Input(shape=(4,)), keras.layers.Dense(3)],):
        model = keras.Sequential([*first, keras.layers.Dense(2)])
        assert [w.shape for w in model.weights] == [(4, 3), (3,), (3, 2), (2,)]
    model = keras.Sequential([keras.layers.Dense(3, input_shape=(4,))])
    assert model.built
    model.add(keras.layers.Dense(1))
    assert [w.shape for w in model.weights] == [(4, 3), (3,), (3, 1), (1,)]
    assert len(model.layers) == 2
    model.pop()
    assert model(np.ones((5, 4))).shape == (5, 3)
    with pytest.raises(TypeError, match="come from Input, or from layers called on it, got 1"):
        keras.Model(inputs=1, outputs=2)
    with pytest.raises(ValueError, match="an Input comes before the layers"):
        keras.Sequential([keras.layers.Dense(1), keras.Input((3,))])


def test_a_sequential_is_built_for_sizes_that_stay_open() -> None:
    model = keras.Sequential([keras.Input((None, 3)), keras.layers.GRU(4), keras.layers.Dense(2)])
    assert model.built
    assert model.layers[1].kernel.shape == (4, 2)
    assert model(np.ones((2, 5, 3))).shape == (2, 2)


def test_what_needs_values_is_built_at_the_first_call() -> None:
    class Eager(keras.layers.Layer):
        def call(self, x):
            return x * float(tf.reduce_max(x))

    model = keras.Sequential([keras.Input((3,)), Eager(), keras.layers.Dense(2)])
    assert not model.built
    assert model(np.ones((2, 3))).shape == (2, 2)


def test_a_model_of_inputs_and_outputs_is_trained_saved_and_pickled(tmp_path) -> None:
    tf.random.set_seed(3)
    x, y = blobs()
    inputs = keras.Input(shape=(2,), name="points")
    shared = keras.layers.Dense(8, activation="relu", name="shared")
    hidden = keras.layers.Add()([shared(inputs), shared(2.0 * inputs)])
    model = keras.Model(inputs, keras.layers.Dense(2, name="out")(hidden), name="net")
    assert isinstance(model, gt.Model)
    assert [layer.name for layer in model.layers] == ["points", "shared", "add", "out"]
    assert model.get_layer("shared") is shared
    assert len(model.trainable_variables) == 4
    assert (model.input_shape, model.output_shape) == ((None, 2), (None, 2))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.05), loss, metrics=["accuracy"])
    assert model.fit(x, y, epochs=5, verbose=0).history["accuracy"][-1] > 0.9
    predicted = model.predict(x, verbose=0)
    assert predicted.dtype == np.float32
    model.save(tmp_path / "net.h5")
    same(gt.load(tmp_path / "net.h5")(x.astype("float32")), predicted)


def test_a_model_of_ones_own_may_begin_from_inputs_and_outputs() -> None:
    class Doubled(keras.Model):
        def __init__(self):
            x = keras.Input((3,))
            super().__init__(inputs=x, outputs=keras.layers.Dense(2)(x), name="doubled")

        def train_step(self, data):
            return {"loss": 1.0}

    model = Doubled()
    model.compile("sgd", "mse")
    assert model(np.ones((4, 3))).shape == (4, 2)
    assert model.fit(np.ones((4, 3)), np.ones((4, 2)), verbose=0).history == {"loss": [1.0]}


def blobs(n=120):
    y = rng.integers(0, 2, n)
    x = rng.standard_normal((n, 2)) + 4.0 * y[:, None]
    return x, y


def test_fit_evaluate_predict() -> None:
    tf.random.set_seed(0)
    x, y = blobs()
    model = keras.Sequential(
        [keras.layers.Dense(8, activation="relu"), keras.layers.Dense(2, activation="softmax")]
    )
    with pytest.raises(ValueError, match="compile"):
        model.fit(x, y)
    model.compile(
        optimizer=keras.optimizers.Adam(learning_rate=0.05),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy", keras.metrics.SparseCategoricalAccuracy(name="again")],
    )
    history = model.fit(
        x, y, epochs=8, batch_size=16, verbose=0, validation_data=(x[:20], y[:20]), shuffle=False
    )
    assert list(history.history) == [
        f"{prefix}{name}" for prefix in ("", "val_") for name in ("loss", "accuracy", "again")
    ]
    assert history.history["loss"][-1] < 0.2
    loss, accuracy, again = model.evaluate(x, y, verbose=0)
    assert accuracy == again > 0.95
    assert set(model.evaluate(x, y, verbose=0, return_dict=True)) == {"loss", "accuracy", "again"}
    predicted = model.predict(x, verbose=0)
    assert isinstance(predicted, np.ndarray)
    same(predicted.sum(1), np.ones(len(x)))
    logits = np.log(predicted[np.arange(len(y)), y])
    np.testing.assert_allclose(loss, -logits.mean(), rtol=1e-4)
    assert len(model.trainable_variables) == 4  # the optimizer's are not the model's


def test_a_subclassed_model_is_trained_saved_and_loaded(tmp_path) -> None:
    tf.random.set_seed(1)

    class Net(keras.Model):
        def __init__(self):
            super().__init__()
            self.hidden = keras.layers.Dense(8, activation=tf.nn.tanh)
            self.norm = keras.layers.BatchNormalization()
            self.drop = keras.layers.Dropout(0.1, seed=2)
            self.out = keras.layers.Dense(1)

        def call(self, x, training=False):
            x = self.norm(self.hidden(x), training=training)
            return self.out(self.drop(x, training=training))

    x = np.linspace(-1, 1, 64)[:, None]
    model = Net()
    model.compile("adam", keras.losses.MeanSquaredError(), metrics=["mae"])
    first = model.fit(x, x**2, epochs=2, batch_size=8, verbose=0).history["loss"]
    last = model.fit(x, x**2, epochs=25, batch_size=8, verbose=0).history["loss"]
    assert last[-1] < 0.5 * first[0]
    assert len(model.layers) == 4
    loss = model.train_on_batch(x, x**2)
    assert np.isfinite(loss).all()

    tf.saved_model.save(model, tmp_path / "net")
    loaded = tf.saved_model.load(tmp_path / "net")
    same(loaded(tf.constant(x, tf.float32)), model.predict(x, verbose=0))
    model.save(tmp_path / "net.h5")
    assert (tmp_path / "net.h5").exists()


def test_a_training_loop_by_hand() -> None:
    x, y = blobs(60)
    model = keras.Sequential([keras.layers.Dense(2)])
    optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
    loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    mean, accuracy = keras.metrics.Mean(), keras.metrics.SparseCategoricalAccuracy()
    model(x)

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            logits = model(x, training=True)
            loss = loss_fn(y, logits)
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
        mean.update_state(loss)
        accuracy.update_state(y, logits)
        return loss

    losses = [step(x, y).numpy() for _ in range(20)]
    assert losses[-1] < 0.5 * losses[0]
    np.testing.assert_allclose(mean.result(), np.mean(losses), rtol=1e-5)
    assert 0.5 < accuracy.result().numpy() <= 1.0
    accuracy.reset_state()
    assert accuracy.result().numpy() == 0.0


# -- optimizers ------------------------------------------------------------------------------------


def test_the_defaults_of_optimizers() -> None:
    sgd, adam = keras.optimizers.SGD(), keras.optimizers.Adam()
    rms, ada = keras.optimizers.RMSprop(), keras.optimizers.Adagrad()
    rates = [float(o.learning_rate.numpy()) for o in (sgd, adam, rms, ada)]
    np.testing.assert_allclose(rates, [0.01, 0.001, 0.001, 0.001])
    assert (sgd.momentum, sgd.nesterov) == (0.0, False)
    assert (adam.beta_1, adam.beta_2, adam.epsilon) == (0.9, 0.999, 1e-7)
    assert (rms.rho, rms.momentum, rms.epsilon, rms.centered) == (0.9, 0.0, 1e-7, False)
    assert (ada.initial_accumulator_value, ada.epsilon) == (0.1, 1e-7)


def steps(optimizer, grads, start=(1.0, -2.0)):
    w = tf.Variable(start)
    for g in grads:
        optimizer.apply_gradients([(tf.constant(g), w)])
    return w.numpy()


GRADS = [(0.5, -1.0), (0.25, 3.0), (-1.0, 0.5)]


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("centered", [False, True])
def test_rmsprop(momentum, centered) -> None:
    w, v, a, m = np.array([1.0, -2.0]), 0.0, 0.0, 0.0
    for g in np.array(GRADS):
        v = 0.8 * v + 0.2 * g * g
        a = 0.8 * a + 0.2 * g
        m = momentum * m + 0.1 * g / np.sqrt(v - centered * a * a + 1e-7)
        w = w - m
    optimizer = keras.optimizers.RMSprop(0.1, rho=0.8, momentum=momentum, centered=centered)
    same(steps(optimizer, GRADS), w)


def test_adagrad() -> None:
    w, s = np.array([1.0, -2.0]), 0.1
    for g in np.array(GRADS):
        s = s + g * g
        w = w - 0.5 * g / np.sqrt(s + 1e-7)
    same(steps(keras.optimizers.Adagrad(0.5), GRADS), w)


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop", "Adagrad"])
def test_a_traced_step_is_an_eager_step(name) -> None:
    make = getattr(keras.optimizers, name)
    eager, traced = tf.Variable([1.0, -2.0]), tf.Variable([1.0, -2.0])
    first, second = make(0.1), make(0.1)
    step = tf.function(lambda g: second.apply_gradients([(g, traced)]))
    for g in GRADS:
        first.apply_gradients([(tf.constant(g), eager)])
        step(tf.constant(g))
    same(traced, eager.numpy())


def test_clipped_gradients() -> None:
    optimizers = keras.optimizers
    g = [(3.0, 4.0)]
    same(steps(optimizers.SGD(1.0, clipnorm=1.0), g, (0.0, 0.0)), [-0.6, -0.8])
    same(steps(optimizers.SGD(1.0, clipvalue=3.5), g, (0.0, 0.0)), [-3.0, -3.5])
    same(steps(optimizers.SGD(1.0, global_clipnorm=2.5), g, (0.0, 0.0)), [-1.5, -2.0])
    same(steps(optimizers.SGD(0.5, weight_decay=0.1), [(0.0, 0.0)], (1.0, 2.0)), [0.95, 1.9])
    assert optimizers.Adam(amsgrad=True).amsgrad


def test_gradients_that_are_none_are_left_out() -> None:
    a, b = tf.Variable(1.0), tf.Variable(1.0, name="b")
    optimizer = keras.optimizers.SGD(1.0)
    with pytest.warns(UserWarning, match="'b'"):
        optimizer.apply_gradients([(tf.constant(0.5), a), (None, b)])
    assert (a.numpy(), b.numpy()) == (0.5, 1.0)
    with pytest.raises(ValueError, match="no gradients"):
        optimizer.apply_gradients([(None, b)])
    optimizer.minimize(lambda: a * a, [a])
    assert a.numpy() == -0.5
    optimizer.apply([tf.constant(0.5)], [a])
    assert a.numpy() == -1.0
    assert int(optimizer.iterations.numpy()) == 3


# -- losses and metrics ----------------------------------------------------------------------------


def test_losses_of_probabilities_and_logits() -> None:
    losses = keras.losses
    logits = rng.standard_normal((4, 3))
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    labels = np.array([0, 2, 1, 1])
    hot = np.eye(3)[labels]
    expected = -np.log(p[np.arange(4), labels])
    same(losses.sparse_categorical_crossentropy(labels, p), expected)
    same(losses.SparseCategoricalCrossentropy()(labels, p), expected.mean())
    same(losses.SparseCategoricalCrossentropy(from_logits=True)(labels, logits), expected.mean())
    same(losses.categorical_crossentropy(hot, p), expected)
    same(losses.CategoricalCrossentropy(from_logits=True, reduction="none")(hot, logits), expected)
    same(losses.CategoricalCrossentropy(reduction="sum")(hot, p), expected.sum())
    smooth = 0.9 * hot + 0.1 / 3
    same(losses.categorical_crossentropy(hot, p, label_smoothing=0.1), -(smooth * np.log(p)).sum(1))
    ignoring = losses.SparseCategoricalCrossentropy(ignore_class=1)
    same(ignoring(labels, p), expected[:2].mean())
    q = 1 / (1 + np.exp(-logits))
    binary = -(hot * np.log(q) + (1 - hot) * np.log(1 - q)).mean(1)
    same(losses.binary_crossentropy(hot, q), binary)
    same(losses.BinaryCrossentropy(from_logits=True)(hot, logits), binary.mean())


def test_losses_of_numbers() -> None:
    losses = keras.losses
    a, b = rng.random((4, 3)), rng.random((4, 3))
    d = b - a
    same(losses.mean_squared_error(a, b), (d**2).mean(1))
    same(losses.MeanSquaredError()(a, b), (d**2).mean())
    same(losses.MeanAbsoluteError()(a, b), np.abs(d).mean())
    same(losses.MeanAbsolutePercentageError()(a, b), 100 * np.abs(d / a).mean())
    same(losses.MeanSquaredLogarithmicError()(a, b), ((np.log1p(a) - np.log1p(b)) ** 2).mean())
    small = np.abs(d) <= 0.2
    same(
        losses.Huber(delta=0.2)(a, b),
        np.where(small, d**2 / 2, 0.2 * np.abs(d) - 0.02).mean(),
    )
    sign = np.sign(d)
    same(losses.Hinge()(sign, b), np.maximum(1 - sign * b, 0).mean())
    same(losses.hinge((sign + 1) / 2, b), np.maximum(1 - sign * b, 0).mean(1))
    same(losses.KLDivergence()(a, b), (a * np.log(a / b)).sum(1).mean())
    same(losses.LogCosh()(a, b), np.log(np.cosh(d)).mean())
    same(losses.Poisson()(a, b), (b - a * np.log(b + 1e-7)).mean())
    cosine = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    same(losses.CosineSimilarity()(a, b), -cosine.mean())
    same(losses.mean_squared_error(a[:, 0], b[:, :1]), (a[:, 0] - b[:, 0]) ** 2)
    weights = np.array([1.0, 0.0, 2.0, 0.0])
    same(losses.MeanSquaredError()(a, b, sample_weight=weights), ((d**2).mean(1) * weights).mean())
    assert losses.get("mse") is losses.mean_squared_error
    assert isinstance(losses.get("MeanSquaredError"), losses.MeanSquaredError)
    with pytest.raises(ValueError, match="unknown loss"):
        losses.get("nonsense")
    with pytest.raises(ValueError, match="reduction"):
        losses.MeanSquaredError(reduction="median")


def test_a_loss_of_ones_own() -> None:
    class Fourth(keras.losses.Loss):
        def call(self, y_true, y_pred):
            return tf.reduce_mean((y_true - y_pred) ** 4, axis=-1)

    assert Fourth()(tf.ones([2, 2]), tf.zeros([2, 2])).numpy() == 1.0
    assert Fourth().name == "fourth"


def labels_of(p):
    return (p[:, :1] > 0.2).astype("float32")


def test_metrics() -> None:
    metrics = keras.metrics
    mean = metrics.Mean()
    mean.update_state([1.0, 3.0])
    mean.update_state(5.0)
    assert mean.result().numpy() == 3.0
    assert mean(tf.constant([3.0]), sample_weight=[2.0]).numpy() == 3.0
    total = metrics.Sum()
    total.update_state([1.0, 2.0])
    assert total.result().numpy() == 3.0
    p = np.array([[0.1, 0.9], [0.8, 0.2], [0.3, 0.7]])
    for metric, labels, expected in [
        (metrics.SparseCategoricalAccuracy(), [1, 0, 0], 2 / 3),
        (metrics.CategoricalAccuracy(), np.eye(2)[[1, 0, 0]], 2 / 3),
        (metrics.BinaryAccuracy(), np.array([[0, 1], [1, 1], [0, 0]]), 4 / 6),
        (metrics.SparseTopKCategoricalAccuracy(k=2), [1, 0, 0], 1.0),
        (metrics.SparseCategoricalCrossentropy(), [1, 0, 0], -np.log([0.9, 0.8, 0.3]).mean()),
        (metrics.MeanSquaredError(), p + 0.5, 0.25),
        (metrics.RootMeanSquaredError(), p + 0.5, 0.5),
        (metrics.MeanAbsoluteError(), p + 0.5, 0.5),
        (metrics.CosineSimilarity(), 2 * p, 1.0),
    ]:
        metric.update_state(labels, p)
        same(metric.result(), expected)
        assert metric.name.islower()
    equal = metrics.Accuracy()
    equal.update_state([1, 2, 3], [1, 2, 4])
    same(equal.result(), 2 / 3)
    model = keras.Sequential([keras.layers.Dense(1, activation="sigmoid")])
    model.compile("sgd", "mse", metrics=[metrics.RootMeanSquaredError(), "AUC"])
    found = model.evaluate(p, labels_of(p), return_dict=True)
    same(found["root_mean_squared_error"] ** 2, found["loss"])
    assert 0.0 <= found["auc"] <= 1.0


def test_metrics_of_probabilities_follow_the_loss() -> None:
    x = np.random.default_rng(0).normal(size=(200, 1)).astype("float32")
    y = (x > 0.2).astype("float32")
    model = keras.Sequential([keras.layers.Dense(1, kernel_initializer="ones")])
    of_logits = keras.losses.BinaryCrossentropy(from_logits=True)
    metrics = ["AUC", keras.metrics.Precision(), keras.metrics.Recall(name="recall")]
    model.compile("sgd", of_logits, metrics=metrics)
    found = model.evaluate(x, y, return_dict=True, verbose=0)
    assert found["auc"] > 0.98
    assert found["recall"] == 1.0
    assert found["precision"] == pytest.approx((x > 0.2).sum() / (x > 0).sum(), rel=1e-6)
    model.compile("sgd", "mse", metrics=["AUC"])
    with pytest.raises(ValueError, match=r"AUC.*from_logits=True"):
        model.evaluate(x, y, verbose=0)
    state = keras.metrics.Mean()
    state.update_state(1.0)
    assert state.result().dtype == "float32"
    with pytest.raises(TypeError, match="expected a function of labels and predictions, got 3"):
        model.compile("sgd", "mse", metrics=[3])
    with pytest.raises(ValueError, match="unknown loss 'nonsense'"):
        model.compile("sgd", "mse", metrics=["nonsense"])


def test_activations_and_initializers() -> None:
    x = np.array([-2.0, 0.5, 3.0])
    activations = keras.activations
    same(activations.relu(x), [0, 0.5, 3])
    same(activations.relu(x, negative_slope=0.1, max_value=2.0), [-0.2, 0.5, 2])
    same(activations.relu(x, threshold=1.0), [0, 0, 3])
    same(activations.relu(x, threshold=0.5), [0, 0, 3])  # what is at the threshold is below it
    same(gt.layers.ReLU(threshold=0.5, negative_slope=1.0)(x), [-2.5, 0, 3])
    same(activations.leaky_relu(x), [-0.4, 0.5, 3])
    assert activations.linear(3) == 3
    assert activations.get("tanh") is tf.nn.tanh
    assert activations.get(None) is activations.linear
    value = keras.initializers.Constant(2.0)((2, 2))
    same(value, np.full((2, 2), 2.0))
    assert keras.initializers.GlorotUniform(seed=1)((3, 4)).shape == (3, 4)


def test_classes_are_gradtapes_with_keras_arguments() -> None:
    training = gt.training
    for found, native, arguments in [
        (keras.losses.Huber(2.0, "sum", "h"), training.losses.Huber, {"delta": 2.0}),
        (keras.losses.BinaryCrossentropy(), training.losses.BinaryCrossentropy, {}),
        (keras.metrics.BinaryAccuracy("b", None, 0.7), training.metrics.BinaryAccuracy, {}),
        (keras.metrics.MeanMetricWrapper(abs, name="f"), training.metrics.MeanMetricWrapper, {}),
        (keras.optimizers.SGD(0.1, 0.9, True), training.SGD, {}),
        (keras.optimizers.RMSprop(0.1, 0.8), training.RMSprop, {}),
    ]:
        assert isinstance(found, native)
        for name, value in arguments.items():
            assert found.settings[name] == value
    assert keras.losses.Huber(2.0, "sum", "h").reduction == "sum"
    assert keras.losses.BinaryCrossentropy().settings["from_logits"] is False
    assert training.losses.BinaryCrossentropy().settings["from_logits"] is True
    assert keras.metrics.BinaryAccuracy("b", None, 0.7).settings == {"threshold": 0.7}
    assert keras.optimizers.RMSprop(0.1, 0.8, clipvalue=2.0).clipvalue == 2.0
    assert isinstance(keras.losses.Huber(), keras.losses.Loss)
    assert isinstance(keras.metrics.Mean(), keras.metrics.Metric)
    assert isinstance(keras.optimizers.get("rmsprop"), keras.optimizers.Optimizer)


def test_arguments_that_are_no_keras_arguments_name_the_class() -> None:
    with pytest.raises(TypeError, match="Huber: got an unexpected keyword argument 'alpha'"):
        keras.losses.Huber(alpha=1.0)
    with pytest.raises(TypeError, match="Adam: loss_scale_factor not supported by gradtape"):
        keras.optimizers.Adam(loss_scale_factor=2.0)
    assert keras.optimizers.Adam(ema_momentum=None, amsgrad=False).beta_1 == 0.9


def test_labels_and_predictions_broadcast() -> None:
    labels, predictions = np.array([[1.0], [2.0]]), np.array([[1.0, 3.0], [2.0, 2.0]])
    same(keras.losses.mean_squared_error(labels, predictions), [2.0, 0.0])
    same(keras.losses.mean_absolute_error(0.0, predictions), [2.0, 2.0])
    traced = tf.function(keras.losses.mean_squared_error)
    same(traced(tf.constant(labels), tf.constant(predictions)), [2.0, 0.0])
    open_sizes = tf.function(
        keras.losses.mean_squared_error,
        input_signature=[tf.TensorSpec((None, 1), "float64"), tf.TensorSpec((None, 2), "float64")],
    )
    same(open_sizes(labels, predictions), [2.0, 0.0])
    x = tf.Variable(predictions)
    with tf.GradientTape() as tape:
        loss = keras.losses.MeanSquaredError(reduction="sum")(labels, x)
    same(tape.gradient(loss, x), predictions - labels)
    same(keras.metrics.MeanAbsoluteError()(labels, predictions), 0.5)


@pytest.mark.parametrize("name", keras.losses.__all__)
def test_losses_are_pickled_by_name(name: str) -> None:
    loss = getattr(keras.losses, name)
    assert pickle.loads(pickle.dumps(loss)) is loss


def test_labels_of_another_shape_than_logits_are_refused() -> None:
    labels, logits = [[0.0], [2.0]], [[0.1, 0.2, 0.7], [0.3, 0.3, 0.4]]
    for space, call in ((keras.losses, "__call__"), (keras.metrics, "update_state")):
        for name in ("BinaryCrossentropy", "CategoricalCrossentropy"):
            loss = getattr(space, name)(from_logits=True)
            with pytest.raises(ValueError, match=r"shape"):
                getattr(loss, call)(labels, logits)
    for function in (keras.losses.binary_crossentropy, keras.losses.categorical_crossentropy):
        with pytest.raises(ValueError, match=r"shape"):
            function(labels, logits, from_logits=True)


def test_labels_are_not_broadcast_where_keras_would_normalise_or_smooth_them_before() -> None:
    column, three = np.array([[2.0], [1.0]]), np.array([[0.2, 0.3, 0.5], [0.6, 0.2, 0.2]])
    smooth = {"label_smoothing": 0.1}
    for refused in (
        lambda: keras.losses.cosine_similarity(column, three),
        lambda: keras.losses.CosineSimilarity()(column, three),
        lambda: keras.metrics.CosineSimilarity()(column, three),
        lambda: keras.losses.categorical_crossentropy(column, three, **smooth),
        lambda: keras.losses.CategoricalCrossentropy(**smooth)(column, three),
        lambda: keras.metrics.CategoricalCrossentropy(**smooth)(column, three),
        lambda: keras.losses.BinaryCrossentropy(**smooth)(column, three),
    ):
        with pytest.raises(ValueError, match=r"\(2, 1\), y_pred has shape \(2, 3\); give both"):
            refused()
    # a vector beside a column is no broadcasting: as in Keras it becomes a column
    same(keras.losses.cosine_similarity([2.0, -1.0], [[3.0], [4.0]]), [-1.0, 1.0])
    same(keras.losses.CosineSimilarity()(three, three), -1.0)


def test_a_compiled_model_that_was_fitted_is_pickled_and_goes_on() -> None:
    x = np.linspace(-1.0, 1.0, 12, dtype="float32").reshape(3, 4)
    model = tf.keras.Sequential(
        [tf.keras.layers.Dense(3, activation="relu"), tf.keras.layers.Dense(1)]
    )
    model.compile(optimizer="adam", loss="mse", metrics=["mae"])
    model.fit(x, x[:, :1], verbose=0)
    twin = pickle.loads(pickle.dumps(model))
    for _ in range(2):
        twin.fit(x, x[:, :1], shuffle=False, verbose=0)
        model.fit(x, x[:, :1], shuffle=False, verbose=0)
        np.testing.assert_array_equal(twin.predict(x, verbose=0), model.predict(x, verbose=0))
    assert twin.evaluate(x, x[:, :1], verbose=0) == model.evaluate(x, x[:, :1], verbose=0)


def test_callbacks_are_told_their_model_as_in_keras(tmp_path) -> None:
    class Best:
        """What a ``ModelCheckpoint`` does."""

        def set_model(self, model):
            self.model, self.best = model, np.inf

        def on_epoch_end(self, epoch, logs):
            if logs["loss"] < self.best:
                self.best = logs["loss"]
                self.model.save_weights(tmp_path / "best.weights.h5")

    x = rng.standard_normal((8, 3)).astype("float32")
    model, other = (keras.Sequential([keras.layers.Dense(3)]) for _ in range(2))
    model.compile("sgd", "mse")
    model.fit(x, x, epochs=2, verbose=0, callbacks=(callback for callback in [Best()]))
    other.load_weights(tmp_path / "best.weights.h5")
    same(other(x), model(x))
