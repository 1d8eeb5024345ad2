"""What programs rely on beside names: variables, functions and files as TensorFlow has them."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import gradtape as gt
import gradtape.compat.tensorflow as tf

keras = tf.keras


class Net(keras.Model):
    """A model with an optimizer and a metric of its own."""

    def __init__(self, name=None):
        super().__init__(name=name)
        self.dense = keras.layers.Dense(2)
        self.optimizer = keras.optimizers.Adam(0.1)
        self.seen = keras.metrics.Mean(name="seen")

    def call(self, x):
        return self.dense(x)


# -- variables of models, and names ----------------------------------------------------------------


def test_optimizers_and_metrics_are_no_weights() -> None:
    net = Net()
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(net(tf.ones((1, 3))))
    gradients = tape.gradient(loss, net.trainable_variables)
    net.optimizer.apply_gradients(zip(gradients, net.trainable_variables))
    for found in (net.variables, net.weights, net.trainable_variables, net.trainable_weights):
        assert [v.name for v in found] == ["kernel", "bias"]
    assert net.non_trainable_variables == net.non_trainable_weights == []
    assert len(net.get_weights()) == 2
    assert net.count_params() == 8


@pytest.mark.parametrize("name", ["my-gen", "my layer", "", "1st", "a/b"])
def test_any_text_is_a_name(name, tmp_path) -> None:
    x = keras.Input((3,))
    layer = keras.layers.Dense(2, name=name)
    model = keras.Model(x, layer(x), name=name)
    assert layer.name == model.name == name
    assert keras.metrics.Mean(name=name).name == name
    assert keras.Sequential([keras.layers.Dense(1, name=name)], name=name).layers[0].name == name
    assert Net(name).name == name
    assert model.get_layer(name) is layer
    path = tmp_path / "model.h5"
    model.save(path)
    loaded = gt.load(path)
    np.testing.assert_array_equal(loaded(tf.ones((1, 3))), model(tf.ones((1, 3))))
    assert loaded.name.isidentifier()


def test_a_weight_may_be_a_tensor() -> None:
    # as in MAML, whose inner step makes weights of which the outer one takes the gradient
    layer = keras.layers.Dense(2, use_bias=True)
    x = tf.ones((1, 3))
    layer(x)
    kernel, bias = layer.kernel, layer.bias
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            loss = tf.reduce_sum(layer(x) ** 2)
        slopes = inner.gradient(loss, [kernel, bias])
        layer.kernel, layer.bias = kernel - 0.1 * slopes[0], bias - 0.1 * slopes[1]
        after = tf.reduce_sum(layer(x) ** 2)
    found = outer.gradient(after, kernel)
    # y = x @ k + b becomes (1 - 0.2 * (3 + 1)) * y
    y = x @ kernel + bias
    np.testing.assert_allclose(found, 2 * 0.2**2 * tf.transpose(x) @ y, rtol=1e-4)


def test_a_part_of_a_variable_is_assigned_in_a_function_too() -> None:
    v = tf.Variable([1.0, 2.0, 3.0])

    @tf.function
    def change(x):
        v[1].assign(x)
        v[2:].assign_sub([1.0])
        return v[1], v.value()

    part, whole = change(tf.constant(7.0))
    assert part == 7.0
    assert v.numpy().tolist() == whole.tolist() == [1.0, 7.0, 2.0]
    with tf.GradientTape() as tape:
        y = v[0] * v[1] + tf.reduce_sum(v.value())
    assert tape.gradient(y, v).tolist() == [8.0, 2.0, 1.0]


def test_a_shape_goes_where_a_tuple_goes() -> None:
    x = tf.ones((2, 3))
    shape = x.shape
    assert {shape: 1}[(2, 3)] == 1
    assert [5] + shape == shape[:0].concatenate([5, 2, 3]) == (5, 2, 3)  # noqa: RUF005
    assert np.zeros(shape).shape == tf.zeros(shape).shape == tf.reshape(x, shape).shape
    assert str(shape) == "(2, 3)"
    assert repr(tf.TensorShape(shape)) == "TensorShape([2, 3])"
    assert repr(shape) == "(2, 3)"  # as native code in the same process expects
    assert tf.function(lambda x: tf.constant(x.shape.as_list()))(x).tolist() == [2, 3]


# -- functions -------------------------------------------------------------------------------------


def test_a_concrete_function_does_not_want_its_constants_again() -> None:
    @tf.function
    def power(x, n, scale=1.0):
        return scale * x**n

    cube = power.get_concrete_function(tf.TensorSpec([], tf.float32), 3, scale=2.0)
    x = tf.constant(2.0)
    assert cube(x) == cube(x=x) == cube(x, 3, scale=2.0) == cube(x, 3) == 16.0
    with pytest.raises(TypeError, match="traced as 3, got 4"):
        cube(x, 4, 2.0)
    for wrong in (lambda: cube(x, 4), lambda: cube(), lambda: cube(x, n=4)):
        with pytest.raises(TypeError):
            wrong()
    first = tf.function(lambda n, x: x * n).get_concrete_function(2, tf.TensorSpec([]))
    assert first(tf.constant(3.0)) == 6.0


@pytest.mark.parametrize(
    "start", [lambda: 1.0, lambda: tf.random.normal([]), lambda: tf.random.uniform([]) * 2.0 + 1.0]
)
def test_a_function_makes_variables_at_its_first_call(start) -> None:
    held = {}

    @tf.function
    def scaled(x):
        if "w" not in held:
            held["w"] = tf.Variable(start())
        return x * held["w"]

    x = tf.constant(3.0)
    first = scaled(x)
    assert first == scaled(x) == x * held["w"]
    held["w"].assign(2.0)
    assert scaled(x) == 6.0
    assert scaled(tf.ones(2)).tolist() == [2.0, 2.0]


def test_a_function_that_makes_a_variable_at_each_call_is_refused() -> None:
    @tf.function
    def anew(x):
        return x * tf.Variable(1.0, name="anew")

    with pytest.raises(ValueError, match=r"singleton tf\.Variables .*first call.*anew"):
        anew(tf.constant(1.0))

    with pytest.raises(gt.errors.TraceError, match="initial value"):
        tf.function(lambda x: tf.Variable(x) * 2.0)(tf.constant(1.0))


def test_a_second_optimizer_is_refused() -> None:
    w = tf.Variable(1.0)

    @tf.function
    def step(optimizer):
        with tf.GradientTape() as tape:
            loss = w * w
        optimizer.apply_gradients([(tape.gradient(loss, w), w)])
        return loss

    optimizer = keras.optimizers.Adam(0.1)
    assert step(optimizer) == 1.0
    assert step(optimizer) < 1.0
    with pytest.raises(ValueError, match=r"singleton tf\.Variables.*each optimizer"):
        step(keras.optimizers.Adam(0.1))


def test_a_layer_is_built_in_the_first_call() -> None:
    layer = keras.layers.Dense(2)
    call = tf.function(lambda x: layer(x))
    x = tf.ones((1, 3))
    np.testing.assert_allclose(call(x), layer(x))
    assert len(layer.weights) == 2


def test_functions_run_eagerly_if_that_is_asked() -> None:
    seen = []
    f = tf.function(lambda x: seen.append(x) or x)
    tf.config.run_functions_eagerly(True)
    try:
        f(tf.constant(1.0))
    finally:
        tf.config.run_functions_eagerly(False)
    assert seen[0].numpy() == 1.0


def test_reduce_retracing_leaves_sizes_open() -> None:
    @tf.function(reduce_retracing=True)
    def total(x):
        return tf.reduce_sum(x)

    assert [total(tf.ones(n)).item() for n in range(1, 6)] == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert total.experimental_get_tracing_count() == 2


def test_a_name_scope_has_a_name() -> None:
    with tf.name_scope("outer") as outer:
        inner = tf.name_scope("inner")
        assert (outer, inner.name) == ("outer/", "outer/inner/")
        with inner as name:
            assert name == inner.name
            assert tf.Variable(1.0, name="v").name == "outer/inner/v"
    assert tf.Module(name="net").name_scope.name == "net/"


def test_what_prints_and_checks_does_so_in_each_run(capfd) -> None:
    @tf.function
    def loud(x):
        tf.print("x is", x, {"twice": 2.0 * x}, summarize=1)
        tf.debugging.assert_positive(x, message="positive")
        return x

    loud(tf.constant([1.0, 2.0, 3.5]))
    loud(tf.constant([0.1, 2.0, 4.0]))
    assert capfd.readouterr().err.splitlines() == [
        "x is [1 ... 3.5] {'twice': [2 ... 7]}",
        "x is [0.1 ... 4] {'twice': [0.2 ... 8]}",
    ]
    with pytest.raises(tf.errors.InvalidArgumentError, match="positive"):
        loud(tf.constant([-1.0]))


def test_gradients_go_through_py_function_and_end_at_numpy_function() -> None:
    def cube(x):
        return x * x * x

    @tf.function
    def slopes(x):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            a = tf.py_function(cube, [x], tf.float32)
            b = tf.numpy_function(cube, [x], tf.float32)
        return a, tape.gradient(a, x), b

    a, slope, b = slopes(tf.constant(2.0))
    assert (a, slope, b) == (8.0, 12.0, 8.0)


# -- files -----------------------------------------------------------------------------------------


class Scaled(tf.Module):
    def __init__(self):
        super().__init__()
        self.w = tf.Variable(2.0)

    @tf.function(input_signature=[tf.TensorSpec([None]), tf.TensorSpec([None])])
    def combine(self, a, b):
        return {"sum": a + self.w * b}

    @tf.function(input_signature=[tf.TensorSpec([None])])
    def scale(self, x):
        return x * self.w


def test_signatures_take_inputs_by_name_and_return_dictionaries(tmp_path) -> None:
    module = Scaled()
    combine = module.combine.get_concrete_function()
    signatures = {"serving_default": module.scale, "combine": combine}
    tf.saved_model.save(module, str(tmp_path / "m"), signatures=signatures)
    loaded = tf.saved_model.load(str(tmp_path / "m"))
    infer = loaded.signatures["serving_default"]
    for found in (infer(x=tf.ones(1)), infer(tf.ones(1))):
        assert found["output_0"].tolist() == [2.0]
    assert list(infer.structured_outputs) == ["output_0"]
    assert list(infer.structured_input_signature[1]) == ["x"]
    found = loaded.signatures["combine"](b=tf.ones(1), a=tf.zeros(1))
    assert found["sum"].tolist() == [2.0]


@tf.custom_gradient
def tripled_slope(x):
    return x * 1.0, lambda g: 3.0 * g


class Custom(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([])])
    def __call__(self, x):
        return tripled_slope(x)


_SLOPE = """
import sys
import gradtape.compat.tensorflow as tf
x = tf.constant(1.0)
with tf.GradientTape() as tape:
    tape.watch(x)
    y = tf.saved_model.load(sys.argv[1])(x)
try:
    print(tape.gradient(y, x).item())
except LookupError as error:
    print(error)
"""


def test_custom_gradients_that_were_not_saved_are_known_to_the_process_that_saved(tmp_path) -> None:
    path = str(tmp_path / "m")
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
    tf.saved_model.save(Custom(), path, options=options)
    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.saved_model.load(path)(x)
    assert tape.gradient(y, x) == 3.0
    run = subprocess.run(
        [sys.executable, "-c", _SLOPE, path], capture_output=True, text=True, check=True
    )
    assert "was saved without it" in run.stdout


def test_checkpoints_by_number(tmp_path) -> None:
    step, net = tf.Variable(0), Net()
    net(tf.ones((1, 3)))
    checkpoint = tf.train.Checkpoint(step=step, net=net.dense)
    path = checkpoint.save(str(tmp_path / "ckpt"))
    assert path == str(tmp_path / "ckpt-1")
    before = net.get_weights()
    step.assign(5)
    net.set_weights([w + 1.0 for w in before])
    checkpoint.restore(path).assert_consumed()
    assert step.numpy() == 0
    np.testing.assert_array_equal(net.get_weights()[0], before[0])
    manager = tf.train.CheckpointManager(checkpoint, str(tmp_path / "many"), max_to_keep=2)
    for n in range(4):
        step.assign(n)
        manager.save()
    assert len(manager.checkpoints) == 2
    assert manager.latest_checkpoint == tf.train.latest_checkpoint(str(tmp_path / "many"))
    step.assign(9)
    checkpoint.restore(manager.latest_checkpoint).expect_partial()
    assert step.numpy() == 3
    with pytest.raises(AssertionError, match="other"):
        tf.train.Checkpoint(step=step, other=tf.Variable(1.0)).restore(path).assert_consumed()


def test_summaries_go_to_event_files(tmp_path) -> None:
    pytest.importorskip("tensorboardX", reason='pip install "gradtape[tensorboard]"')
    writer = tf.summary.create_file_writer(str(tmp_path))

    @tf.function
    def log(x, step):
        with writer.as_default():
            tf.summary.scalar("loss", x, step=step)

    log(tf.constant(1.0), tf.constant(0))
    with writer.as_default(step=1):
        tf.summary.histogram("weights", tf.ones(3))
        tf.summary.text("note", "hello")
    writer.close()
    (file,) = tmp_path.iterdir()
    assert b"loss" in file.read_bytes()
    assert b"weights" in file.read_bytes()


# -- cost ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["add", "sin", "exp", "square", "maximum", "tanh", "sigmoid"])
def test_the_common_ops_are_the_same_objects(name) -> None:
    # so a call of one costs what it costs natively; another name adds checks of its arguments alone
    assert vars(tf).get(name, getattr(tf, name)) in (getattr(gt, name, None), gt.nn.sigmoid)


def test_shapes_add_to_lists_of_anything() -> None:
    queue: list[object] = ["first"]
    queue += tf.ones([2, 3]).shape
    assert queue == ["first", 2, 3]
    assert type(queue) is list


def test_shapes_of_open_sizes_are_parameters_of_ops() -> None:
    traced = gt.function(
        lambda x: gt.reshape(x * 2.0, x.shape), input_signature=[gt.TensorSpec([None, 2])]
    )
    for rows in (1, 3):
        assert traced(gt.ones((rows, 2))).tolist() == [[2.0, 2.0]] * rows
