"""Small things in which code for TensorFlow is particular: dtypes, names of arguments, messages."""

from __future__ import annotations

import numpy as np
import pytest

import gradtape as gt
import gradtape.compat.tensorflow as tf
from gradtape.compat.tensorflow import names


@pytest.mark.parametrize("dtype", [tf.int8, tf.int32, tf.int64, tf.uint8])
def test_reductions_of_integers_keep_their_dtype(dtype) -> None:
    x = tf.constant([[1, 2], [3, 4]], dtype)
    for found, expected in [
        (tf.reduce_sum(x), 10),
        (tf.reduce_prod(x, axis=0), [3, 8]),
        (tf.reduce_mean(x), 2),
        (tf.reduce_mean(x, axis=1, keepdims=True), [[1], [3]]),
        (tf.cumsum(x, axis=1), [[1, 3], [3, 7]]),
        (tf.math.cumprod(x), [[1, 2], [3, 8]]),
        (tf.reduce_max(x), 4),
    ]:
        assert found.dtype == dtype
        assert found.numpy().tolist() == expected


def test_sums_of_integers_wrap_around_and_means_round_toward_zero() -> None:
    wrapped = tf.reduce_sum(tf.constant([100, 100], tf.int8))
    assert (wrapped.dtype, wrapped.numpy()) == (tf.int8, -56)
    assert tf.reduce_mean([-1, -2]).numpy() == -1
    assert tf.reduce_mean([1.0, 2.0]).numpy() == 1.5
    assert tf.reduce_mean(tf.ones([300], tf.uint8)).numpy() == 1  # the sum is not a uint8
    traced = tf.function(tf.reduce_mean, input_signature=[tf.TensorSpec([None], tf.int32)])
    assert traced(tf.constant([1, 0, 1, 0])).numpy() == 0
    assert traced(tf.constant([-7, 0, 0])).dtype == tf.int32


@pytest.mark.parametrize(
    ("path", "argument"),
    [
        ("identity", "input"),
        ("stop_gradient", "input"),
        ("math.real", "input"),
        ("math.imag", "input"),
        ("math.angle", "input"),
        ("math.conj", "x"),
        ("math.erf", "x"),
        ("math.lgamma", "x"),
    ],
)
def test_arguments_have_tensorflows_names(path, argument) -> None:
    namespace, _, name = f"tf.{path}".rpartition(".")
    function = getattr(names.module_of(namespace), name)
    x = tf.constant([0.5, 1.5])
    by_name = function(**{argument: x}, name="label")
    np.testing.assert_array_equal(by_name, function(x))
    with pytest.raises(TypeError, match=argument):
        function(x, **{argument: x})


def test_polygamma_has_tensorflows_names() -> None:
    found = tf.math.polygamma(a=1, x=tf.constant([1.0]))
    np.testing.assert_allclose(found, [np.pi**2 / 6], rtol=1e-5)
    assert tf.math.polygamma(1.0, tf.constant([1.0])).shape == (1,)


# -- variables -------------------------------------------------------------------------------------


def test_assignments_take_tensorflows_options() -> None:
    v = tf.Variable([1.0, 2.0])
    v.assign([3.0, 4.0], read_value=False)
    v.assign_add([1.0, 1.0], use_locking=True, name="add", read_value=False)
    v.assign_sub([0.0, 1.0], False, None, True)
    assert v.numpy().tolist() == [4.0, 4.0]
    assert v.assign([0.0, 0.0]) is v


def test_variables_of_a_shape_that_may_change_are_refused() -> None:
    with pytest.raises(ValueError, match=r"shape=.* unknown"):
        tf.Variable([1.0, 2.0], shape=[None])
    with pytest.raises(ValueError, match=r"shape=.* unknown"):
        tf.Variable([1.0, 2.0], shape=tf.TensorShape([None]))
    with pytest.raises(ValueError, match="unknown rank"):
        tf.Variable([1.0, 2.0], shape=tf.TensorShape(None))
    with pytest.raises(ValueError, match="shape"):
        tf.Variable([1.0, 2.0], shape=[3])
    assert tf.Variable([1.0, 2.0], shape=[2]).shape == (2,)


# -- messages --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("mul", "tf.multiply"),
        ("sub", "tf.subtract"),
        ("div", "tf.divide"),
        ("neg", "tf.negative"),
        ("to_float", "tf.cast(x, tf.float32)"),
        ("to_int32", "tf.cast(x, tf.int32)"),
    ],
)
def test_names_of_tensorflow_1_lead_to_those_of_today(name, instead) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(tf, name)
    assert f"use {instead} (" in str(caught.value)


def test_an_import_of_what_is_missing_says_as_much() -> None:
    with pytest.raises(ImportError, match=r"no tf\.keras\.layers\.Hashing.*migration\.md"):
        from gradtape.compat.tensorflow.keras.layers import Hashing  # noqa: F401
    with pytest.raises(ImportError, match=r"no tf\.lookup.*dictionary"):
        from gradtape.compat.tensorflow import lookup  # noqa: F401
    from gradtape.compat.tensorflow.keras import layers

    assert not hasattr(layers, "Hashing")


# -- files -----------------------------------------------------------------------------------------


def test_saving_makes_the_folders(tmp_path) -> None:
    module = tf.Module()
    module.v = tf.Variable(2.0)
    path = tmp_path / "models" / "today" / "1"
    tf.saved_model.save(module, path)
    assert tf.saved_model.load(path).v.numpy() == 2.0
    tf.saved_model.save(module, str(tmp_path))
    assert tf.saved_model.load(tmp_path).v.numpy() == 2.0
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(2,))])
    model.save(tmp_path / "further" / "model.h5")
    assert (tmp_path / "further" / "model.h5").exists()


def test_a_function_without_samples_is_saved_all_the_same(tmp_path) -> None:
    class Strict(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
        def __call__(self, x):
            return tf.ensure_shape(x, [7])

    tf.saved_model.save(Strict(), tmp_path / "strict")
    assert tf.saved_model.load(tmp_path / "strict")(tf.ones([7])).shape == (7,)
    assert gt.load(tmp_path / "strict") is not None
