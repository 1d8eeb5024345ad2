"""Copies of models, their layers' names and order, and what ``compile`` received, in files."""

from __future__ import annotations

import numpy as np
import pytest

import gradtape as gt
import gradtape.compat.tensorflow as tf

keras = tf.keras
X = np.linspace(-1.0, 1.0, 12, dtype="float32").reshape(6, 2)
Y = X.sum(1, keepdims=True)


def branched():
    first, second = keras.Input((2,), name="first"), keras.Input((2,), name="second")
    hidden = keras.layers.Dense(3, name="hidden")(second)
    joined = keras.layers.Concatenate(name="joined")([first, hidden])
    return keras.Model([first, second], keras.layers.Dense(1, name="out")(joined))


def stacked():
    return keras.Sequential([keras.Input((2,)), keras.layers.Dense(3), keras.layers.Dense(1)])


def test_layers_without_a_name_are_numbered() -> None:
    keras.backend.clear_session()
    layers = [keras.layers.Dense(1), keras.layers.Dense(1), keras.layers.Conv2D(1, 1)]
    assert [layer.name for layer in layers] == ["dense", "dense_1", "conv2d"]
    model = keras.Sequential(layers[:2])
    assert model.get_layer("dense_1") is layers[1]
    keras.backend.clear_session()
    assert keras.layers.Dense(1).name == "dense"


def test_layers_are_in_the_order_of_their_distance_from_the_output() -> None:
    model = branched()
    assert [layer.name for layer in model.layers] == ["second", "first", "hidden", "joined", "out"]
    assert isinstance(model.layers[0], keras.layers.InputLayer)
    part = keras.Model(model.inputs, model.layers[3].output)
    assert part.predict([X, X], verbose=0).shape == (6, 5)


def test_an_input_layer_begins_a_sequence() -> None:
    model = keras.Sequential([keras.layers.InputLayer(input_shape=[2]), keras.layers.Dense(1)])
    assert (model.input_shape, len(model.layers), model.built) == ((None, 2), 1, True)
    assert keras.Input(3).shape == (None, 3)


@pytest.mark.parametrize("make", [branched, stacked])
def test_a_clone_has_the_same_layers_and_new_weights(make) -> None:
    model = make()
    data = [X, X] if len(model.inputs) == 2 else X
    copy = keras.models.clone_model(model)
    assert type(copy) is type(model)
    assert [layer.name for layer in copy.layers] == [layer.name for layer in model.layers]
    assert not any(a is b for a in copy.weights for b in model.weights)
    copy.set_weights(model.get_weights())
    np.testing.assert_allclose(copy.predict(data, verbose=0), model.predict(data, verbose=0))
    for v in copy.weights:
        v.assign(0.0 * v)
    assert any(np.any(w) for w in model.get_weights())


def test_a_clone_calls_a_shared_layer_twice() -> None:
    x, shared = keras.Input((2,)), keras.layers.Dense(2)
    copy = keras.models.clone_model(keras.Model(x, shared(shared(x))))
    assert len(copy.weights) == 2
    assert copy.layers[-1] is not shared


def test_a_clone_may_have_other_layers_and_inputs() -> None:
    x = keras.Input((2,), name="other")
    copy = keras.models.clone_model(
        stacked(), x, lambda layer: keras.layers.Dense(2 * layer.units, name=layer.name)
    )
    assert [layer.units for layer in copy.layers] == [6, 2]


def test_what_cannot_be_cloned_is_refused_in_words() -> None:
    class Own(keras.Model):
        def call(self, x):
            return x

    class Needy(keras.layers.Layer):
        def __init__(self, size):
            super().__init__()

        def call(self, x):
            return x

    with pytest.raises(TypeError, match="call\\(\\) of its own"):
        keras.models.clone_model(Own())
    with pytest.raises(TypeError, match="get_config"):
        keras.models.clone_model(keras.Sequential([Needy(3)]))


def doubled(y_true, y_pred):
    return 2.0 * tf.abs(y_true - y_pred)


class Scaled(keras.losses.Loss):
    def __init__(self, factor=1.0, **kwargs):
        super().__init__(**kwargs)
        self.factor = factor

    def call(self, y_true, y_pred):
        return self.factor * tf.abs(y_true - y_pred)

    def get_config(self):
        return {**super().get_config(), "factor": self.factor}


@pytest.mark.parametrize(
    ("loss", "own"),
    [
        ("mse", {}),
        (keras.losses.Huber(0.5), {}),
        (doubled, {"doubled": doubled}),
        (Scaled(3.0), {"Scaled": Scaled}),
    ],
)
def test_a_loaded_model_is_compiled_as_it_was(loss, own, tmp_path) -> None:
    rate = keras.optimizers.schedules.ExponentialDecay(0.1, 5, 0.9)
    model = stacked()
    metrics = ["mae", keras.metrics.MeanSquaredError()]
    model.compile(keras.optimizers.Adam(rate, beta_1=0.8), loss, metrics=metrics)
    model.fit(X, Y, verbose=0)
    model.save(tmp_path / "m.keras")
    loaded = keras.models.load_model(tmp_path / "m.keras", custom_objects=own)
    wanted = model.evaluate(X, Y, verbose=0)
    assert loaded.evaluate(X, Y, verbose=0) == pytest.approx(wanted)
    assert (type(loaded.optimizer).__name__, loaded.optimizer.beta_1) == ("Adam", 0.8)
    loaded.fit(X, Y, verbose=0)
    loaded.save(tmp_path / "n.keras")
    again = keras.models.load_model(tmp_path / "n.keras", own)
    assert again.evaluate(X, Y, verbose=0) == pytest.approx(loaded.evaluate(X, Y, verbose=0))
    plain = keras.models.load_model(tmp_path / "m.keras", own, compile=False)
    with pytest.raises(ValueError, match="call compile"):
        plain.evaluate(X, Y)


def test_a_loss_that_the_file_only_names_is_asked_for(tmp_path) -> None:
    model = stacked()
    model.compile("sgd", doubled)
    model.save(tmp_path / "m.keras")
    with pytest.raises(ValueError, match="custom_objects=\\{'doubled'"):
        keras.models.load_model(tmp_path / "m.keras").fit(X, Y, verbose=0)
    with keras.utils.custom_object_scope({"doubled": doubled}):
        keras.models.load_model(tmp_path / "m.keras").fit(X, Y, verbose=0)
    keras.utils.register_keras_serializable()(doubled)
    try:
        keras.models.load_model(tmp_path / "m.keras").fit(X, Y, verbose=0)
    finally:
        keras.utils.get_custom_objects().clear()


def test_a_checkpoint_of_a_callback_is_compiled_too(tmp_path) -> None:
    model = stacked()
    model.compile("sgd", "mse")
    path = tmp_path / "best.keras"
    model.fit(X, Y, verbose=0, callbacks=[keras.callbacks.ModelCheckpoint(path)])
    loaded = keras.models.load_model(path)
    assert loaded.evaluate(X, Y, verbose=0) == pytest.approx(model.evaluate(X, Y, verbose=0))


@pytest.mark.parametrize("shape", [(4, 4), (4, 4, 1), (4, 4, 1, 1)])
def test_a_last_axis_of_one_is_added_or_removed(shape) -> None:
    x = keras.Input((4, 4, 1))
    for model in (
        keras.Model(x, keras.layers.Conv2D(1, 2)(x)),
        keras.Sequential([keras.Input((4, 4, 1)), keras.layers.Conv2D(1, 2)]),
    ):
        assert model(tf.ones((3, *shape))).shape == (3, 3, 3, 1)


def test_tuples_hold_several_inputs_and_outputs() -> None:
    model = branched()
    model.compile("sgd", "mse")
    both = keras.Model(model.inputs, [model.output, model.output])
    both.compile("sgd", ["mse", "mae"])
    both.fit((X, X), (Y, Y), validation_data=((X, X), (Y, Y)), verbose=0)
    assert len(both.evaluate((X, X), (Y, Y), verbose=0)) == 3


def test_a_tensor_in_second_place_is_not_taken_for_training() -> None:
    seen = []

    class Inner(keras.layers.Layer):
        def call(self, x, other, **kwargs):
            seen.append(kwargs.get("training"))
            return x + other

    class Outer(keras.Model):
        def __init__(self):
            super().__init__()
            self.inner, self.drop = Inner(), keras.layers.Dropout(0.5)

        def call(self, x, other, **kwargs):
            return self.drop(self.inner(x, other, **kwargs), **kwargs)

    found = Outer()(tf.ones((2, 3)), tf.ones((2, 3)), training=False)
    assert found.tolist() == np.full((2, 3), 2.0).tolist()
    assert True not in seen


class Steps(keras.Model):
    def __init__(self):
        super().__init__()
        self.layer = keras.layers.Dense(1)

    def call(self, x):
        return self.layer(x)

    def train_step(self, data):
        return {"own": tf.reduce_mean(self(data[0]))}


def test_a_name_that_own_steps_do_not_return_is_a_warning(tmp_path) -> None:
    model = Steps()
    model.compile()
    best = keras.callbacks.ModelCheckpoint(
        tmp_path / "m.keras", monitor="loss", save_best_only=True, mode="min"
    )
    with pytest.warns(UserWarning, match="no 'loss'"):
        model.fit(X, Y, verbose=0, callbacks=[best])
    assert not (tmp_path / "m.keras").exists()
    other = stacked()
    other.compile("sgd", "mse")
    with pytest.raises(ValueError, match="no 'los'"):
        other.fit(X, Y, verbose=0, callbacks=[keras.callbacks.EarlyStopping("los", mode="min")])


def test_events_have_their_older_names_and_the_settings_of_the_run() -> None:
    seen = []

    class Older(keras.callbacks.Callback):
        def on_batch_end(self, batch, logs=None):
            seen.append((batch, self.params["epochs"], self.params["steps"]))

    model = stacked()
    model.compile("sgd", "mse")
    run = model.fit(X, Y, epochs=2, batch_size=3, verbose=0, callbacks=[Older()])
    assert seen == [(0, 2, 2), (1, 2, 2)] * 2
    assert run.params == {"verbose": 0, "epochs": 2, "steps": 2}


def test_a_progress_line_for_each_epoch(capsys) -> None:
    model = stacked()
    model.compile("sgd", "mse")
    logger = keras.callbacks.ProgbarLogger()
    model.fit(X, Y, epochs=2, batch_size=3, verbose=0, callbacks=[logger])
    lines = capsys.readouterr().out.split("\n")
    assert [line for line in lines if line.startswith("Epoch")] == ["Epoch 1/2", "Epoch 2/2"]
    assert lines[1].rpartition("\r")[2].startswith("2/2 - loss: ")


def test_a_weighted_metric_may_extend_a_mean() -> None:
    class Worst(keras.metrics.Mean):
        def update_state(self, y_true, y_pred, sample_weight=None):
            super().update_state(tf.abs(y_true - y_pred), sample_weight)

    model = stacked()
    model.compile("sgd", "mse", weighted_metrics=[Worst(name="worst")])
    run = model.fit(X, Y, sample_weight=np.ones(6), verbose=0)
    assert "worst" in run.history
    with pytest.raises(TypeError, match="not a metric of labels"):
        model.compile("sgd", "mse", metrics=[keras.metrics.Mean()])


def test_a_source_of_seeds() -> None:
    a, b = keras.random.SeedGenerator(3), keras.random.SeedGenerator(3)
    assert a.next().tolist() == b.next().tolist() != a.next().tolist()
    layer = keras.layers.Dropout(0.5, seed=keras.random.SeedGenerator(3))
    assert layer(tf.ones(8), training=True).shape == (8,)
    assert gt.layers.Dense(1).name == "dense"


@pytest.mark.parametrize("kind", ["functional", "sequential"])
def test_an_input_gets_a_last_axis_only_if_all_other_sizes_fit(kind) -> None:
    image = keras.Input((4, 4, 1))
    layers = [keras.layers.Conv2D(2, 3, padding="same"), keras.layers.GlobalMaxPooling2D()]
    if kind == "sequential":
        model = keras.Sequential([image, *layers])
    else:
        model = keras.Model(image, layers[1](layers[0](image)))
    assert model.predict(np.zeros((3, 4, 4), "float32"), verbose=0).shape == (3, 2)
    assert model.predict(np.zeros((3, 4, 4, 1, 1), "float32"), verbose=0).shape == (3, 2)
    for shape in [(3, 4, 1), (4, 4, 1), (3, 1, 4), (3, 4, 1, 1, 1)]:
        with pytest.raises(ValueError, match=r"shape|images|axes"):
            model.predict(np.zeros(shape, "float32"), verbose=0)


class Doubling(keras.Model):
    """A model with a training step of its own."""

    def __init__(self):
        super().__init__()
        self.out = keras.layers.Dense(1)

    def call(self, x):
        return self.out(x)

    def train_step(self, data):
        x, y = data
        return super().train_step((x, 2.0 * y))


@pytest.mark.parametrize("compiled", [True, False])
def test_steps_that_no_file_holds_are_told(compiled: bool, tmp_path) -> None:
    model = Doubling()
    model(X)
    if compiled:
        model.compile("sgd", "mse")
    model.save(tmp_path / "a.keras")
    loaded = keras.models.load_model(tmp_path / "a.keras", custom_objects={"Doubling": Doubling})
    assert loaded.predict(X).shape == (6, 1)
    loaded.save(tmp_path / "b.keras")
    again = keras.models.load_model(tmp_path / "b.keras")
    for found in (loaded, again):
        if not compiled:
            found.compile("sgd", "mse")
        with pytest.warns(UserWarning, match="holds no train_step of Doubling; .* load_weights"):
            found.fit(X, Y, verbose=0)
    fresh = Doubling()
    fresh.load_weights(tmp_path / "b.keras")
    np.testing.assert_array_equal(fresh(X), model(X))


def test_a_file_that_exists_is_kept_on_request(tmp_path) -> None:
    model = stacked()
    (tmp_path / "m.keras").write_bytes(b"old")
    for save in (model.save, lambda *args, **rest: keras.models.save_model(model, *args, **rest)):
        with pytest.raises(FileExistsError, match=r"m\.keras exists, and overwrite is False"):
            save(tmp_path / "m.keras", overwrite=False)
        with pytest.raises(TypeError, match="'include_optimizer'; leave it out: the file has the"):
            save(tmp_path / "m.keras", include_optimizer=False)
        with pytest.raises(TypeError, match="'save_format'; leave it out: the end of the path"):
            save(tmp_path / "m.keras", save_format="h5")
    assert (tmp_path / "m.keras").read_bytes() == b"old"
    model.save(tmp_path / "m.keras")
    model.save(tmp_path / "n.keras", overwrite=False)


def test_the_names_for_saving_are_those_of_keras_3(tmp_path) -> None:
    @keras.saving.register_keras_serializable(package="acme")
    def squares(a, b):
        return tf.reduce_mean((a - b) ** 2, axis=-1)

    model = stacked()
    model.compile("sgd", squares)
    model.fit(X, Y, verbose=0)
    keras.saving.save_model(model, tmp_path / "m.keras")
    loaded = keras.saving.load_model(tmp_path / "m.keras")
    assert loaded.evaluate(X, Y, verbose=0) == model.evaluate(X, Y, verbose=0)
    assert keras.saving.custom_object_scope is keras.utils.custom_object_scope


def test_weights_are_saved_and_loaded_by_arguments_of_keras(tmp_path) -> None:
    model, path = stacked(), tmp_path / "m.weights.h5"
    model.save_weights(path, overwrite=False)
    with pytest.raises(FileExistsError, match=r"save_weights: .* exists, and overwrite is F"):
        model.save_weights(path, overwrite=False)
    model.save_weights(path, overwrite=True)
    wider = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3), keras.layers.Dense(4)])
    with pytest.warns(UserWarning, match="wrong shape"):
        wider.load_weights(path, skip_mismatch=True)
    np.testing.assert_array_equal(wider.layers[0].kernel, model.layers[0].kernel)


def test_misspelt_arguments_are_told_with_the_right_ones() -> None:
    model = stacked()
    model.compile("sgd", "mse")
    for call, wrong, right in (
        (lambda: model.fit(X, Y, epoch=1), "epoch", "epochs"),
        (lambda: model.evaluate(X, Y, retun_dict=True), "retun_dict", "return_dict"),
        (lambda: model.predict(X, bath_size=2), "bath_size", "batch_size"),
    ):
        with pytest.raises(TypeError, match=f"argument '{wrong}'; did you mean '{right}'"):
            call()
    with pytest.raises(ValueError, match="did you mean 'categorical_crossentropy'"):
        model.compile("sgd", "categorical_crosentropy")


def test_base_classes_have_the_names_of_keras_3() -> None:
    assert keras.Loss is keras.losses.Loss
    assert keras.Metric is keras.metrics.Metric
    assert keras.Optimizer is keras.optimizers.Optimizer
    assert keras.Variable is tf.Variable
