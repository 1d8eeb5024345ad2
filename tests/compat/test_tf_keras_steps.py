"""``tf.keras.Model``: steps of your own, several inputs, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import gradtape.compat.tensorflow as tf
from gradtape.compat.tensorflow import keras

X = np.linspace(-1.0, 1.0, 40, dtype="float32")[:, None]
Y = 2.0 * X[:, 0] + 1.0


class Line(keras.Model):
    """A line."""

    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(1)

    def call(self, x):
        return self.dense(x)


class Stepping(Line):
    """A line with a training step written out, as in Keras' guide."""

    def __init__(self):
        super().__init__()
        self.tracker = keras.metrics.Mean(name="mine")
        self.seen = []

    @property
    def metrics(self):
        return [self.tracker]

    def train_step(self, data):
        x, y = data
        self.seen.append(len(x))
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((self(x, training=True)[:, 0] - y) ** 2)
        weights = self.trainable_variables
        self.optimizer.apply(tape.gradient(loss, weights), weights)
        self.tracker.update_state(loss)
        return {"mine": self.tracker.result()}

    def test_step(self, data):
        x, y = data
        self.tracker.update_state(tf.reduce_mean((self(x)[:, 0] - y) ** 2))
        return {"mine": self.tracker.result()}

    def predict_step(self, data):
        return self(data) + 100.0


def test_fit_calls_train_step_for_every_batch() -> None:
    model = Stepping()
    model.compile(optimizer=keras.optimizers.SGD(0.3))
    noted = []
    run = model.fit(
        X,
        Y,
        epochs=6,
        batch_size=16,
        verbose=0,
        validation_data=(X[:8], Y[:8]),
        callbacks=[lambda epoch, logs: noted.append(sorted(logs))],
    )
    assert model.seen == [16, 16, 8] * 6
    assert list(run.history) == ["mine", "val_mine"]
    assert run.history["mine"][-1] < 0.05 * run.history["mine"][0]  # the metric starts anew
    assert noted == [["mine", "val_mine"]] * 6
    assert model.evaluate(X, Y, return_dict=True)["mine"] < 0.1
    assert model.predict(X).shape == (40, 1)
    assert model.predict(X).min() > 90.0


def test_a_step_may_use_what_compile_was_given() -> None:
    class Guide(Line):
        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                predicted = self(x, training=True)
                loss = self.compute_loss(y=y, y_pred=predicted)
            weights = self.trainable_variables
            self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
            for metric in self.metrics:
                if metric.name == "loss":
                    metric.update_state(loss)
                else:
                    metric.update_state(y, predicted)
            return {metric.name: metric.result() for metric in self.metrics}

    class Older(Line):
        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                predicted = self(x, training=True)
                loss = self.compiled_loss(y, predicted, regularization_losses=self.losses)
            self.optimizer.minimize(loss, self.trainable_variables, tape=tape)
            self.compiled_metrics.update_state(y, predicted)
            return {metric.name: metric.result() for metric in self.metrics}

    found = []
    for kind in (Line, Guide, Older):
        tf.random.set_seed(0)
        model = kind()
        model.compile("sgd", "mse", metrics=["mae"])
        run = model.fit(X, Y, epochs=2, batch_size=10, shuffle=False, verbose=0)
        assert list(run.history) == ["loss", "mae"]
        found.append([run.history["loss"], run.history["mae"]])
    np.testing.assert_allclose(found[1], found[0], rtol=1e-5)
    np.testing.assert_allclose(found[2], found[0], rtol=1e-5)


def test_compute_loss_is_what_fit_minimises() -> None:
    class Weighty(Line):
        def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None):
            return super().compute_loss(x, y, y_pred) + 10.0

    model = Weighty()
    model.compile("sgd", "mse")
    assert model.fit(X, Y, verbose=0).history["loss"][0] > 10.0
    assert model.evaluate(X, Y) > 10.0
    assert model.train_on_batch(X, Y) > 10.0


def test_data_without_labels_reach_train_step_bare() -> None:
    class Auto(Line):
        def train_step(self, data):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self(data) - data) ** 2)
            weights = self.trainable_variables
            self.optimizer.apply(tape.gradient(loss, weights), weights)
            return {"loss": loss}

    model = Auto()
    model.compile(keras.optimizers.Adam(0.1))
    losses = model.fit(X, epochs=20, verbose=0).history["loss"]
    assert losses[-1] < 0.5 * losses[0]


def test_a_step_that_returns_no_dict_says_so() -> None:
    class Silent(Line):
        def train_step(self, data):
            return None

    model = Silent()
    model.compile("sgd")
    with pytest.raises(TypeError, match="train_step must return a dict"):
        model.fit(X, Y, verbose=0)

    class Graphs(Line):
        def make_train_function(self, force=False):
            return None

    with pytest.raises(NotImplementedError, match="make_train_function"):
        Graphs().compile("sgd", "mse")


def test_several_inputs() -> None:
    class Two(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(1)

        def call(self, inputs):
            a, b = inputs
            return self.dense(tf.concat([a, b], axis=-1))

    for kind in (tuple, list):
        model = Two()
        model.compile(keras.optimizers.SGD(0.1), "mse", metrics=["mae"])
        x = kind((X, 1.0 - X))
        run = model.fit(x, Y, epochs=20, verbose=0, validation_split=0.25, batch_size=8)
        assert run.history["loss"][-1] < 0.5 * run.history["loss"][0]
        assert list(run.history) == ["loss", "mae", "val_loss", "val_mae"]
        assert model.predict(x).shape == (40, 1)
        assert len(model.evaluate(x, Y)) == 2
    with pytest.raises(ValueError, match="lengths"):
        model.fit([X, X[:3]], Y, verbose=0)
    single = keras.Sequential([keras.layers.Dense(1)])
    for model in (Line(), single):
        model.compile("sgd", "mse")
        with pytest.raises(TypeError, match=r"Dense 'dense\w*' takes one tensor, got a list of 2"):
            model.fit([X, X], Y, verbose=0)
        assert model.fit(X, Y, verbose=0).epoch == [0]
        with pytest.raises(TypeError, match=r"Dense 'dense\w*' takes one tensor, got a dict of 1"):
            model.predict({"a": X})


def test_several_outputs_have_a_loss_each() -> None:
    class Twice(keras.Model):
        def call(self, x):
            return x, x

    model = Twice()
    model.compile("sgd", "mse")
    with pytest.raises(TypeError, match=r"mean_squared_error: .* tuple of outputs"):
        model.evaluate(X, Y)
    model.compile("sgd", ["mse", "mae"], loss_weights=[1.0, 0.5])
    found = model.evaluate(X, [Y, Y], return_dict=True)
    total = found["output_0_loss"] + 0.5 * found["output_1_loss"]
    np.testing.assert_allclose(found["loss"], total, rtol=1e-5)
    assert [part.shape for part in model.predict(X)] == [(40, 1), (40, 1)]


@pytest.mark.parametrize("own", [False, True])
def test_examples_have_weights(own) -> None:
    class Own(Line):
        def compute_loss(self, *args, **kwargs):
            return super().compute_loss(*args, **kwargs)

    tf.random.set_seed(0)
    model, ones = (Own if own else Line)(), np.ones_like(Y)
    model.compile("sgd", "mse", metrics=["mae"], weighted_metrics=["mape"])
    half = np.where(np.arange(40) < 20, 1.0, 0.0).astype("float32")
    whole, weighed, part = (
        model.evaluate(X, Y, sample_weight=weight, batch_size=40, return_dict=True)
        for weight in (None, ones, half)
    )
    assert whole == pytest.approx(weighed, rel=1e-5)
    first = model.evaluate(X[:20], Y[:20], batch_size=20, return_dict=True)
    np.testing.assert_allclose(part["loss"], first["loss"] / 2, rtol=1e-5)
    np.testing.assert_allclose(part["mae"], whole["mae"], rtol=1e-5)
    np.testing.assert_allclose(part["mape"], first["mape"], rtol=1e-4)
    run = model.fit(X, Y, sample_weight=half, validation_data=(X, Y, half), verbose=0)
    assert list(run.history)[3:] == ["val_loss", "val_mae", "val_mape"]


def test_classes_have_weights() -> None:
    model = keras.Sequential([keras.layers.Dense(2, activation="softmax")])
    model.compile("sgd", "sparse_categorical_crossentropy")
    y = (X[:, 0] > 0).astype("int32")
    run = model.fit(X, y, class_weight={0: 0.0, 1: 0.0}, verbose=0)
    assert run.history["loss"] == [0.0]


@pytest.mark.parametrize(
    ("method", "option"),
    [
        ("fit", {"max_queue_size": 3}),
        ("evaluate", {"pss_evaluation_shards": 2}),
    ],
)
def test_what_is_not_supported_is_refused_by_name(method, option) -> None:
    model = Line()
    model.compile("sgd", "mse")
    (name,) = option
    with pytest.raises(TypeError, match=f"{method}: {name} .*not supported"):
        getattr(model, method)(X, Y, **option)
    with pytest.raises(TypeError, match=r"predict: workers .*not supported"):
        model.predict(X, workers=2)
    getattr(model, method)(X, Y, verbose=0, **dict.fromkeys(option))  # None is the default


# -- ranks -----------------------------------------------------------------------------------------


def test_functions_of_ones_own_get_labels_and_predictions_of_one_rank() -> None:
    shapes = []

    def squared(y_true, y_pred):
        shapes.append((y_true.shape, y_pred.shape))
        return (y_true - y_pred) ** 2

    def absolute(y_true, y_pred):
        return tf.abs(y_true - y_pred)

    class Squared(keras.losses.Loss):
        def call(self, y_true, y_pred):
            return squared(y_true, y_pred)

    for loss in (squared, Squared()):
        tf.random.set_seed(0)
        model = Line()
        model.compile("sgd", loss, metrics=[absolute, "mse"])
        value, error, mse = model.evaluate(X, Y)
        predicted = model.predict(X)[:, 0]
        np.testing.assert_allclose(value, np.mean((predicted - Y) ** 2), rtol=1e-5)
        np.testing.assert_allclose(mse, value, rtol=1e-5)
        np.testing.assert_allclose(error, np.mean(np.abs(predicted - Y)), rtol=1e-5)
    assert set(shapes) == {((32, 1), (32, 1)), ((8, 1), (8, 1))}


def test_built_in_losses_keep_a_value_per_example() -> None:
    y, p = np.array([0.0, 1.0, 3.0]), np.array([[1.0], [1.0], [1.0]])
    np.testing.assert_allclose(keras.losses.mean_squared_error(y, p), [1.0, 0.0, 4.0])
    assert keras.losses.MeanSquaredError(reduction="sum")(y, p).numpy() == 5.0
    np.testing.assert_allclose(keras.losses.mean_absolute_error(p, y), [1.0, 0.0, 2.0])


# -- building --------------------------------------------------------------------------------------


def test_built_may_be_set() -> None:
    class Scale(keras.layers.Layer):
        def build(self, input_shape):
            self.w = self.add_weight(shape=(input_shape[-1],), initializer="ones")
            self.built = True

        def call(self, x):
            return x * self.w

    layer = Scale()
    assert not layer.built
    assert layer(tf.ones([2, 3])).shape == (2, 3)
    assert layer.built
    assert len(layer.weights) == 1


def test_build_makes_the_weights() -> None:
    model = keras.Sequential([keras.layers.Dense(3), keras.layers.Dense(2)])
    assert not model.built
    model.build((None, 4))
    assert [w.shape for w in model.weights] == [(4, 3), (3,), (3, 2), (2,)]
    assert model.built

    line = Line()
    line.build(input_shape=(None, 5))
    assert [w.shape for w in line.weights] == [(5, 1), (1,)]

    class Own(Line):
        def build(self, input_shape):
            self.scale = self.add_weight(shape=(), initializer="ones")
            super().build(input_shape)

        def call(self, x):
            return self.scale * self.dense(x)

    own = Own()
    own(tf.ones([2, 3]))
    assert len(own.weights) == 3
    assert own.built


def test_steps_of_ones_own_take_the_options_of_runs(tmp_path) -> None:
    model = Stepping()
    model.compile("sgd")
    options = {"steps_per_epoch": 2, "validation_freq": 2, "seed": 1, "batch_size": 8}
    run = model.fit(X, Y, epochs=2, verbose=0, validation_data=(X, Y), **options)
    assert model.seen == [8, 8] * 2
    assert len(run.history["mine"]) == 2
    backup = keras.callbacks.BackupAndRestore(tmp_path)
    with pytest.raises(TypeError, match=r"does not take BackupAndRestore; use checkpoint=PATH"):
        model.fit(X, Y, callbacks=[backup], verbose=0)
    with pytest.raises(TypeError, match="fit by steps of your own: class_weight not supported"):
        model.fit(X, Y, class_weight={0: 1.0}, verbose=0)


def test_keras_callbacks_stop_a_model_and_keep_its_best_weights(tmp_path) -> None:
    model = Line()
    model.compile("sgd", "mse")
    path = tmp_path / "best.weights.h5"
    callbacks = [
        keras.callbacks.EarlyStopping("loss", min_delta=10.0, patience=1),
        keras.callbacks.ModelCheckpoint(path, "loss", save_best_only=True, save_weights_only=True),
        keras.callbacks.CSVLogger(tmp_path / "log.csv"),
    ]
    assert len(model.fit(X, Y, epochs=9, callbacks=callbacks, verbose=0).epoch) == 2
    assert path.exists()
    assert (tmp_path / "log.csv").read_text().startswith("epoch,loss")
