"""Programs of Keras' guides, as people write them; values are those of Keras 3.15."""

from __future__ import annotations

import random
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt
import gradtape.compat.tensorflow as tf

keras = tf.keras
RANDOM = np.random.default_rng(1)
X = RANDOM.normal(size=(40, 6)).astype("float32")
CLASSES = RANDOM.integers(0, 3, 40)


def drawn(model: Any, scale: float = 0.3) -> Any:
    """Give a model weights in the order in which Keras has them."""
    generator = np.random.default_rng(0)
    model.set_weights([generator.normal(size=w.shape) * scale for w in model.get_weights()])
    return model


def small(units: int = 1, **options: Any) -> Any:
    x = keras.Input((6,))
    hidden = keras.layers.Dense(5, activation="tanh")(x)
    return drawn(keras.Model(x, keras.layers.Dense(units, **options)(hidden)))


def test_a_mask_reaches_the_layers_that_take_it() -> None:
    model = keras.Sequential(
        [
            keras.Input((None,), dtype="int32"),
            keras.layers.Embedding(50, 4, mask_zero=True),
            keras.layers.LSTM(3),
        ]
    )
    ids = np.array([[1, 2, 0, 0], [3, 4, 5, 0]])
    native = gt.layers.Sequential([gt.layers.Embedding(50, 4, mask_zero=True), gt.layers.LSTM(3)])
    native(ids)
    native.set_weights(drawn(model).get_weights())
    np.testing.assert_allclose(model.predict(ids), native(ids), atol=1e-6)
    model.compile("adam", "mse")
    model.fit(ids, np.ones((2, 3)), epochs=2, verbose=0)
    expected = [-0.06696369, -0.15147498, 0.10061127]
    np.testing.assert_allclose(model.predict(ids)[0], expected, atol=1e-5)


def test_weights_of_a_decoder_come_in_keras_order() -> None:
    x = keras.Input((4, 2))
    _, h, c = keras.layers.LSTM(3, return_state=True)(x)
    z = keras.Input((5, 2))
    last = keras.layers.LSTM(3)(z, initial_state=[h, c])
    model = drawn(keras.Model([x, z], keras.layers.Dense(2)(last)))
    inputs = np.random.default_rng(0).random((2, 4, 2)).astype("float32")
    inputs = [inputs, np.ones((2, 5, 2), "float32")]
    model.compile("adam", "mse")
    model.fit(inputs, np.ones((2, 2)), epochs=3, verbose=0)
    found = model(inputs)
    expected = [[-0.3815245, 0.08825412], [-0.38100917, 0.0881402]]
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert [len(model.trainable_weights), len(model.non_trainable_weights)] == [8, 0]


def test_features_are_taken_from_the_middle_of_a_model() -> None:
    model = drawn(
        keras.Sequential(
            [
                keras.Input((6,)),
                keras.layers.Dense(4, activation="relu", name="middle"),
                keras.layers.Dense(3),
            ]
        )
    )
    features = keras.Model(model.inputs, [layer.output for layer in model.layers])
    middle, last = features(X)
    np.testing.assert_array_equal(last, model(X))
    np.testing.assert_array_equal(middle, model.get_layer("middle")(X))
    for layer in model.layers:
        layer.trainable = False
    head = keras.layers.Dense(2)(model.get_layer("middle").output)
    fine = keras.Model(inputs=model.input, outputs=head)
    assert len(fine.trainable_weights) == 2
    assert (model.output_shape, model.inputs[0].shape) == ((None, 3), (None, 6))


def test_merging_layers_have_functions() -> None:
    a, b = X[:2], X[2:4]
    for function, expected in {
        "add": a + b,
        "subtract": a - b,
        "multiply": a * b,
        "average": (a + b) / 2,
        "maximum": np.maximum(a, b),
        "minimum": np.minimum(a, b),
        "concatenate": np.concatenate([a, b], -1),
        "dot": np.sum(a * b, -1, keepdims=True),
    }.items():
        found = getattr(keras.layers, function)([a, b])
        np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert keras.layers.concatenate([a, b], axis=0, name="joined").shape == (4, 6)


def test_embeddings_take_inputs_of_the_usual_dtype() -> None:
    words = keras.Input((None,), name="words")
    embedding = keras.layers.Embedding(20, 4)
    model = keras.Model(words, keras.layers.LSTM(3)(embedding(words)))
    ids = np.array([[3, 1], [2, 19]])
    np.testing.assert_array_equal(model.predict(ids), model.predict(ids.astype("float32")))


def test_a_metric_of_ones_own_has_weights() -> None:
    class Hits(keras.metrics.Metric):
        def __init__(self, name: str = "hits", **options: Any) -> None:
            super().__init__(name=name, **options)
            self.hits = self.add_weight(name="hits", initializer="zeros")

        def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
            right = tf.cast(tf.equal(y_true[:, 0], tf.argmax(y_pred, axis=1)), "float32")
            self.hits.assign_add(tf.reduce_sum(right))

        def result(self) -> Any:
            return self.hits

    model = small(3)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("sgd", loss, metrics=[Hits()])
    run = model.fit(X, CLASSES[:, None], batch_size=16, epochs=2, shuffle=False, verbose=0)
    assert run.history["hits"] == [16.0, 18.0]
    np.testing.assert_allclose(run.history["loss"], [1.1090200, 1.1054747], rtol=1e-5)
    assert model.evaluate(X, CLASSES[:, None])[1] == 18.0


def test_single_batches_are_trained_measured_and_predicted() -> None:
    model, y = small(3), np.eye(3)[CLASSES]
    model.compile("sgd", "mse", metrics=["mae"])
    found = [model.train_on_batch(X[:8], y[:8]) for _ in range(3)]
    expected = [[0.44979823, 0.55096191], [0.44316411, 0.54621375], [0.4367204, 0.54153619]]
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    np.testing.assert_allclose(model.test_on_batch(X, y), [0.41675615, 0.51748765], rtol=1e-5)
    np.testing.assert_allclose(model.predict_on_batch(X[:2]), model.predict(X[:2]), rtol=1e-5)
    assert list(model.train_on_batch(X[:8], y[:8], return_dict=True)) == ["loss", "mae"]


def test_a_callback_that_sets_stop_training_stops() -> None:
    class Stop(keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            if epoch == 1:
                self.model.stop_training = True

    model = small()
    model.compile("sgd", "mse")
    run = model.fit(X, X[:, :1], epochs=9, callbacks=[Stop()], verbose=0)
    assert run.epoch == [0, 1]
    assert model.stop_training is False
    model.fit(X, X[:, :1], epochs=1, verbose=0)


def test_a_history_has_the_learning_rates_that_a_callback_set() -> None:
    model = small()
    model.compile(keras.optimizers.SGD(0.1), "mse")
    halving = keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.5)
    run = model.fit(X, X[:, :1], epochs=3, callbacks=[halving], verbose=0)
    np.testing.assert_allclose(run.history["learning_rate"], [0.05, 0.025, 0.0125])


def test_weighted_metrics_may_have_the_names_of_others() -> None:
    model = small(3)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("sgd", loss, metrics=["accuracy"], weighted_metrics=["accuracy"])
    weights = np.where(CLASSES == 1, 2.0, 1.0)
    run = model.fit(X, CLASSES, sample_weight=weights, epochs=2, shuffle=False, verbose=0)
    assert list(run.history) == ["loss", "accuracy", "weighted_accuracy"]
    np.testing.assert_allclose(run.history["weighted_accuracy"], [0.3018868, 0.3207547], rtol=1e-5)


def test_a_saved_model_is_loaded_with_keras_methods(tmp_path: Path) -> None:
    model = small(3)
    keras.models.save_model(model, tmp_path / "new" / "model.keras")
    again = keras.models.load_model(tmp_path / "new" / "model.keras")
    np.testing.assert_allclose(again.predict(X), model.predict(X), atol=1e-6)
    for each in (model, again):
        each.compile("sgd", "mse")
    histories = [
        each.fit(X, np.eye(3)[CLASSES], epochs=2, shuffle=False, verbose=0).history["loss"]
        for each in (model, again)
    ]
    np.testing.assert_allclose(*histories, rtol=1e-5)


def test_a_summary_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    said: list[str] = []
    model = small()
    model.summary(line_length=80, print_fn=said.append)
    assert capsys.readouterr().out == ""
    model.summary()
    assert capsys.readouterr().out.strip() == said[0]


def test_optimizers_come_from_dictionaries() -> None:
    found = keras.optimizers.get({"class_name": "SGD", "config": {"learning_rate": 0.25}})
    assert type(found) is keras.optimizers.SGD
    assert float(found.learning_rate) == 0.25


def test_data_by_batches_are_read_by_number() -> None:
    class Pairs(keras.utils.PyDataset):
        def __len__(self) -> int:
            return 5

        def __getitem__(self, i: int) -> Any:
            return X[8 * i : 8 * i + 8], X[8 * i : 8 * i + 8, :1]

    model = small()
    model.compile("sgd", "mse")
    run = model.fit(Pairs(), epochs=2, verbose=0)
    np.testing.assert_allclose(run.history["loss"], [0.9451684, 0.9132963], rtol=1e-5)


def test_utils_do_what_keras_does() -> None:
    assert keras.utils.to_categorical([[0], [2]]).tolist() == [[1, 0, 0], [0, 0, 1]]
    np.testing.assert_allclose(keras.utils.normalize(np.array([[3.0, 4.0]])), [[0.6, 0.8]])
    padded = keras.utils.pad_sequences([[1], [2, 3, 4], []], maxlen=2)
    assert padded.tolist() == [[0, 1], [3, 4], [0, 0]]
    after = keras.utils.pad_sequences([[1], [2, 3, 4]], 2, padding="post", truncating="post")
    assert after.tolist() == [[1, 0], [2, 3]]
    keras.utils.set_random_seed(3)
    first = [float(keras.random.normal(())), random.random()]
    keras.backend.clear_session()
    keras.utils.set_random_seed(3)
    assert [float(keras.random.normal(())), random.random()] == first


def test_ops_are_gradtapes_own() -> None:
    ops = keras.ops
    assert ops.matmul is gt.matmul
    assert ops.silu is gt.nn.silu
    assert ops.one_hot([1], 3, axis=0).shape == (3, 1)
    np.testing.assert_allclose(ops.std(X, 0), X.std(0), rtol=1e-5)
    assert type(ops.convert_to_numpy(ops.convert_to_tensor([1.0]))) is np.ndarray
    assert ops.top_k([1.0, 3.0, 2.0], 2)[1].tolist() == [1, 2]


class _OwnStep(keras.Model):
    def __init__(self) -> None:
        super().__init__()
        self.drop, self.dense = keras.layers.Dropout(0.3), keras.layers.Dense(1)

    def call(self, x: Any, training: bool = False) -> Any:
        return self.dense(self.drop(x, training=training))

    def train_step(self, data: Any) -> Any:
        return super().train_step(data)


def _random_layers() -> Any:
    noise = [keras.layers.Dropout(0.2), keras.layers.GaussianNoise(0.1)]
    return keras.Sequential([keras.layers.Dense(4), *noise, keras.layers.Dense(1)])


@pytest.mark.parametrize("seed", [keras.utils.set_random_seed, tf.random.set_seed])
@pytest.mark.parametrize("make", [_random_layers, _OwnStep])
@pytest.mark.parametrize("form", ["arrays", "validation", "dataset"])
def test_a_seed_repeats_a_run(seed: Any, make: Any, form: str) -> None:
    def run() -> list[float]:
        seed(1)
        model = make()
        model.compile("sgd", "mse")
        data: Any = (X, X[:, :1])
        if form == "dataset":
            data = (tf.data.Dataset.from_tensor_slices(data).shuffle(40).batch(16),)
        split = {"validation_split": 0.25} if form == "validation" else {}
        return model.fit(*data, batch_size=16, epochs=2, verbose=0, **split).history["loss"]

    assert run() == run()


def test_predictions_of_stateful_models_take_steps_labels_and_repeated_data() -> None:
    x = RANDOM.normal(size=(8, 10, 3)).astype("float32")
    cells = keras.layers.LSTM(5, stateful=True)
    model = keras.Sequential([keras.Input(batch_shape=(4, 10, 3)), cells, keras.layers.Dense(1)])
    rows = tf.data.Dataset.from_tensor_slices
    assert model.predict(x, batch_size=4, steps=1, verbose=0).shape == (4, 1)
    assert model.predict(rows(x).batch(4).repeat(), steps=3, verbose=0).shape == (12, 1)
    cells.reset_states()
    first, second = (model.predict(rows((x, x)).batch(4), verbose=0) for _ in range(2))
    assert np.abs(first - second).max() > 0  # programs call it step by step
    cells.reset_states()
    np.testing.assert_array_equal(model.predict(x, batch_size=4, verbose=0), first)


def test_a_layer_that_is_not_used_only_warns() -> None:
    class Pooled(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.out, self.pooler = keras.layers.Dense(1), keras.layers.Dense(1)

        def call(self, x: Any) -> Any:
            return self.out(x)

    model = Pooled()
    model.pooler(X)
    model.compile("sgd", "mse")
    with pytest.warns(UserWarning, match="no gradients for the variables"):
        model.fit(X, X[:, :1], verbose=0)


def test_recurrent_models_are_saved_without_a_word(tmp_path: Path) -> None:
    model = keras.Sequential([keras.layers.Bidirectional(keras.layers.GRU(2))])
    model.predict(X[:, None], verbose=0)
    with warnings.catch_warnings(action="error"):
        model.save(tmp_path / "m.keras")


@pytest.mark.parametrize("name", ["trainable_weights", "trainable_variables"])
@pytest.mark.parametrize("among", [False, True])
def test_a_subclass_chooses_what_trains(name: str, among: bool) -> None:
    class Fine(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.head = keras.layers.Dense(3), keras.layers.Dense(1)

        def call(self, x: Any) -> Any:
            return self.head(self.body(x))

    def chosen(self: Any) -> Any:
        if not among:
            return self.head.trainable_variables
        other = "variables" if name == "trainable_weights" else "weights"
        heads = {v.id for v in self.head.variables}
        return [v for v in getattr(self, f"trainable_{other}") if v.id in heads]

    setattr(Fine, name, property(chosen))
    model = Fine()
    model(X)
    before = [w.copy() for w in model.get_weights()]
    model.compile("sgd", "mse")
    model.fit(X, X[:, :1], verbose=0)
    same = [np.array_equal(a, b) for a, b in zip(before, model.get_weights(), strict=True)]
    assert same == [True, True, False, False]
