"""Tensors, variables, dtypes, shapes, functions and modules with TensorFlow's arguments."""

from __future__ import annotations

import numpy as np
import pytest

import gradtape as gt
import gradtape.compat.tensorflow as tf


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (3, "int32"),
        ([1, 2], "int32"),
        (2**40, "int64"),
        (1.0, "float32"),
        ([1, 2.5], "float32"),
        (True, "bool"),
        (1j, "complex64"),
        (np.arange(3), "int64"),
        (np.ones(2), "float64"),
        (np.float16(1), "float16"),
    ],
)
def test_the_dtypes_of_python_values_and_arrays(value, dtype) -> None:
    for make in (tf.constant, tf.convert_to_tensor, tf.Variable):
        made = make(value)
        assert made.dtype == dtype
        np.testing.assert_array_equal(made, value)


def test_constants_take_dtype_shape_and_name() -> None:
    assert tf.constant(1, dtype=tf.float64, name="c").dtype == tf.float64
    assert tf.constant(0, shape=[2, 3]).numpy().tolist() == [[0, 0, 0]] * 2
    assert tf.constant([1, 2, 3, 4], shape=(2, 2), dtype="float32").shape == (2, 2)
    x = tf.ones([2])
    assert tf.convert_to_tensor(x) is x
    assert tf.convert_to_tensor([x, x], name="stacked").shape == (2, 2)
    assert tf.is_tensor(x)
    assert tf.is_tensor(tf.Variable(1.0))
    assert not tf.is_tensor([1.0])
    assert isinstance(x, tf.Tensor)


def test_strings_have_values_and_no_gradient() -> None:
    s = tf.constant("grüße")
    assert s.dtype == tf.string
    assert s.numpy() == "grüße".encode()
    assert tf.constant(["a", b"b"]).numpy().tolist() == [b"a", b"b"]
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch([s, x])
        y = x * x
    ds, dx = tape.gradient(y, [s, x])
    assert ds is None
    assert dx.numpy() == 6.0


def test_dtypes_and_casts() -> None:
    assert tf.as_dtype("float32") == tf.float32 == tf.as_dtype(float) == np.float32
    assert tf.cast(1.7, tf.int32).numpy() == 1
    assert tf.cast(tf.constant(3 + 4j), tf.float32).numpy() == 3.0
    assert tf.cast([1, 2], "float64", name="c").dtype == tf.dtypes.float64
    assert tf.saturate_cast([-5.0, 300.0], tf.uint8).numpy().tolist() == [0, 255]
    z = tf.complex(tf.constant([1.0]), tf.constant([2.0]))
    assert (z.dtype, z.numpy()[0]) == (tf.complex64, 1 + 2j)


def test_shapes_made_by_hand() -> None:
    shape = tf.TensorShape([None, 3])
    assert (shape.rank, shape.as_list(), repr(shape)) == (2, [None, 3], "TensorShape([None, 3])")
    assert not shape.is_fully_defined()
    assert shape.num_elements() is None
    assert tf.ones([2, 3]).shape == tf.TensorShape([2, 3])
    assert tf.zeros(tf.TensorShape([2, 3])).shape == (2, 3)
    assert str(tf.ones([2, 3]).shape) == "(2, 3)"


def test_variables() -> None:
    v = tf.Variable(3, name="v", shape=(), dtype=tf.float32)
    assert (v.name, v.dtype, v.trainable) == ("v", tf.float32, True)
    v.assign_add(2.0)
    v.assign_sub(1.0)
    assert v.numpy() == 4.0
    assert tf.Variable(lambda: tf.ones([2])).shape == (2,)
    assert not tf.Variable(1.0, trainable=False).trainable
    wide = tf.Variable(1.0, dtype=tf.float64)
    assert wide.assign(0.1).numpy() == 0.1
    with pytest.raises(ValueError, match="initial_value"):
        tf.Variable()
    with pytest.raises(ValueError, match="shape"):
        tf.Variable([1.0, 2.0], shape=(3,))
    with pytest.raises(ValueError, match="constraint"):
        tf.Variable(1.0, constraint=abs)


def test_variables_of_gradtape_are_variables_too() -> None:
    layer = gt.layers.Dense(2)
    layer(gt.ones((1, 3)))
    assert isinstance(layer.kernel, tf.Variable)
    assert isinstance(layer, tf.Module)
    assert isinstance(layer, tf.keras.layers.Layer)
    assert not isinstance(tf.ones([1]), tf.Variable)


def test_functions() -> None:
    traces = []

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)], jit_compile=True)
    def f(x):
        traces.append(x)
        return tf.reduce_sum(x**2)

    assert f(tf.ones([2])).numpy() == 2.0
    assert f(tf.ones([5])).numpy() == 5.0
    assert len(traces) == 1
    concrete = f.get_concrete_function()
    assert concrete(tf.ones([3])).numpy() == 3.0

    @tf.function
    def g(x, scale=2.0):
        assert not tf.executing_eagerly()
        return tf.shape(x)[0] * 2, x * scale

    count, scaled = g(tf.ones([4]))
    assert (count.numpy(), scaled.numpy()[0]) == (8, 2.0)
    assert tf.executing_eagerly()
    tf.enable_eager_execution()  # older programs begin with it
    assert tf.executing_eagerly()


def test_the_shape_of_a_tensor_in_a_trace() -> None:
    @tf.function(input_signature=[tf.TensorSpec([None, 3, None])])
    def f(x):
        return tf.shape(x), tf.size(x), tf.reduce_sum(x) / tf.cast(tf.shape(x)[0], tf.float32)

    shape, size, mean = f(tf.ones([4, 3, 2]))
    assert shape.numpy().tolist() == [4, 3, 2]
    assert shape.dtype == tf.int32
    assert size.numpy() == 24
    assert mean.numpy() == 6.0


def test_modules_and_name_scopes() -> None:
    class Linear(tf.Module):
        @tf.Module.with_name_scope
        def __call__(self, x):
            if not hasattr(self, "w"):
                self.w = tf.Variable(tf.random.normal([x.shape[1], 3]), name="w")
                self.fixed = tf.Variable(1.0, trainable=False)
            return tf.matmul(x, self.w)

    class Two(tf.Module):
        def __init__(self, name=None):
            super().__init__(name=name)
            self.parts = [Linear(), Linear(name="second")]

        def __call__(self, x):
            with self.name_scope:
                return self.parts[1](self.parts[0](x))

    model = Two()
    assert model(tf.ones([1, 2])).shape == (1, 3)
    assert model.name == "two"
    first = model.parts[0]
    assert first.w.name == "two/linear/w"
    assert model.parts[1].w.name == "two/second/w"
    assert [m.name for m in model.submodules] == ["linear", "second"]
    assert len(model.variables) == 4
    assert model.trainable_variables == (first.w, model.parts[1].w)
    assert model.non_trainable_variables == (first.fixed, model.parts[1].fixed)
    with tf.name_scope("outer") as scope:
        assert scope == "outer/"
        assert tf.Variable(0.0, name="x").name == "outer/x"


def test_gradients_are_registered_for_ops() -> None:
    op = gt.registry().op("ceil")
    before = (op.vjp, op.rules, op.rules_provider)
    try:

        @tf.RegisterGradient("Ceil")
        def straight_through(op, grad):
            assert op.type == "ceil"
            assert op.outputs[0].numpy() == np.ceil(op.inputs[0].numpy())
            with pytest.raises(ValueError, match="no attribute"):
                op.get_attr("T")
            return grad * 3.0

        x = tf.Variable(1.5)
        with tf.GradientTape() as tape:
            y = tf.math.ceil(x)
        assert tape.gradient(y, x).numpy() == 3.0
        with pytest.raises(RuntimeError, match="ceil"):
            tf.RegisterGradient("ceil")(lambda op, grad: grad)
    finally:
        op.vjp, op.rules, op.rules_provider = before
    with pytest.raises(LookupError):
        tf.RegisterGradient("NoSuchOp")


def test_vectorized_map() -> None:
    found = tf.vectorized_map(
        lambda p: p[0] * tf.reduce_sum(p[1]), (tf.range(3.0), tf.ones([3, 2]))
    )
    assert found.numpy().tolist() == [0.0, 2.0, 4.0]


def test_recompute_grad_and_forward_mode() -> None:
    f = tf.recompute_grad(lambda x: tf.sin(x) ** 2)
    x = tf.constant(0.5)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    np.testing.assert_allclose(tape.gradient(y, x), np.sin(1.0), rtol=1e-6)
    with tf.autodiff.ForwardAccumulator(primals=x, tangents=tf.constant(2.0)) as acc:
        y = tf.sin(x) ** 2
    np.testing.assert_allclose(acc.jvp(y), 2.0 * np.sin(1.0), rtol=1e-6)


def test_nested_structures() -> None:
    a, b = {"x": 1, "y": [2, 3]}, {"x": 10, "y": [20, 30]}
    assert tf.nest.flatten(a) == [1, 2, 3]
    assert tf.nest.map_structure(lambda p, q: p + q, a, b) == {"x": 11, "y": [22, 33]}
    assert tf.nest.pack_sequence_as(a, [7, 8, 9]) == {"x": 7, "y": [8, 9]}
    assert tf.nest.is_nested(a)
    with pytest.raises(ValueError, match="differ"):
        tf.nest.map_structure(lambda p, q: p, a, [1])
    with pytest.raises(ValueError, match="2 leaves"):
        tf.nest.pack_sequence_as(a, [1, 2])


# -- control flow ----------------------------------------------------------------------------------


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function])
def test_control_flow(wrap) -> None:
    @wrap
    def collatz(n):
        return tf.while_loop(
            lambda i, n: n > 1,
            lambda i, n: (i + 1, tf.cond(tf.equal(n % 2, 0), lambda: n // 2, lambda: 3 * n + 1)),
            [0, n],
            maximum_iterations=1000,
        )

    steps, last = collatz(tf.constant(27))
    assert (steps.numpy(), last.numpy()) == (111, 1)

    @wrap
    def sums(x):
        return (
            tf.scan(lambda a, e: a + e, x),
            tf.scan(lambda a, e: a + e, x, initializer=tf.constant(10.0)),
            tf.scan(lambda a, e: a * e, x, reverse=True),
            tf.map_fn(lambda e: (e * 2.0, e > 1.5), x),
        )

    running, started, products, (doubled, large) = sums(tf.constant([1.0, 2.0, 3.0]))
    assert running.numpy().tolist() == [1.0, 3.0, 6.0]
    assert started.numpy().tolist() == [11.0, 13.0, 16.0]
    assert products.numpy().tolist() == [6.0, 6.0, 3.0]
    assert doubled.numpy().tolist() == [2.0, 4.0, 6.0]
    assert large.numpy().tolist() == [False, True, True]


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function])
def test_gradients_pass_through_control_flow(wrap) -> None:
    @wrap
    def f(x):
        _, y = tf.while_loop(lambda i, y: i < 3, lambda i, y: [i + 1, y * x], (0, x))
        return (
            tf.cond(x > 0.0, lambda: y, lambda: -y)
            + tf.scan(lambda a, e: a * e, tf.stack([x, x]))[1]
        )

    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert y.numpy() == 20.0
    assert tape.gradient(y, x).numpy() == 4 * 8.0 + 4.0
    with pytest.raises(TypeError, match="false_fn"):
        tf.cond(True, lambda: 1.0)
