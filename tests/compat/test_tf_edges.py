"""Values and dtypes at the edges of TensorFlow's functions: nothing is cut or widened silently."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape.compat.tensorflow as tf

I32, I64, F32, F64 = "int32", "int64", "float32", "float64"
BYTE = np.full(3, 255, "uint8")
WEIGHTS = [1, 2, 3]


@pytest.mark.parametrize(
    ("make", "value", "dtype"),
    [
        (lambda: tf.range(tf.constant(0), 2.5), [0, 1, 2], F32),
        (lambda: tf.range(tf.constant(0), tf.constant(2.5)), [0, 1, 2], F32),
        (lambda: tf.range(np.int64(1), 3.5), [1, 2, 3], F32),
        (lambda: tf.range(np.int64(2)), [0, 1], I64),
        (lambda: tf.range(np.float64(2)), [0, 1], F64),
        (lambda: tf.range(tf.constant(0.0), tf.constant(2, tf.float64)), [0, 1], F64),
        (lambda: tf.range(2**31, 2**31 + 2), [2**31, 2**31 + 1], I64),
        (lambda: tf.range(3, dtype=tf.float64), [0, 1, 2], F64),
        (lambda: tf.constant(range(3)), [0, 1, 2], I32),
        (lambda: tf.convert_to_tensor([1, 2], dtype_hint=tf.float32), [1, 2], F32),
        (lambda: tf.convert_to_tensor([1.5], dtype_hint=tf.int32), [1.5], F32),
        (lambda: tf.convert_to_tensor(tf.constant(1), dtype_hint=tf.float32), 1, I32),
        (lambda: tf.stack([1, 2.5]), [1, 2.5], F32),
        (lambda: tf.concat([[1], [2.5]], 0), [1, 2.5], F32),
        (lambda: tf.concat(tf.constant([[1, 2]]), 0), [[1, 2]], I32),
        (lambda: tf.concat([tf.constant([[1, 2]])], 1), [[1, 2]], I32),
        (lambda: tf.where([True, False], [1, 2], [3, 4]), [1, 4], I32),
        (lambda: tf.where([True, False], 1, 0), [1, 0], I32),
        (lambda: tf.where([True, False], 1, 0.5), [1, 0.5], F32),
        (lambda: tf.where([True, False], tf.ones(2), 0), [1, 0], F32),
        (lambda: tf.where([True, False], np.ones(2), [2.0, 3.0]), [1, 3], F64),
        (lambda: tf.pow(2, 3), 8, I32),
        (lambda: tf.pow([2, 3], [2, 2]), [4, 9], I32),
        (lambda: tf.pow(tf.constant([2.0]), 2), [4], F32),
        (lambda: tf.pow(2, tf.constant([2.0])), [4], F32),
        (lambda: tf.einsum("i,i->", [1, 2], [1, 2]), 5, I32),
        (lambda: tf.einsum("i,i->", np.ones(2), [1.0, 2.0]), 3, F64),
        (lambda: tf.linalg.trace([[1, 2], [3, 4]]), 5, I32),
        (lambda: tf.math.bincount([1, 1, 2], weights=WEIGHTS), [0, 3, 3], I32),
        (lambda: tf.math.bincount([1, 1], weights=[0.5, 1.0]), [0, 1.5], F32),
        (lambda: tf.reduce_mean(BYTE), 255, "uint8"),
        (lambda: tf.reduce_mean(np.full(3, -100, "int8")), -100, "int8"),
        (lambda: tf.matmul([[100]], [[100]], output_type=tf.int64), [[10000]], I64),
        (
            lambda: tf.matmul(np.int8([[100]]), np.int8([[100]]), output_type=tf.int32),
            [[10000]],
            I32,
        ),
        (lambda: tf.one_hot([0], 2, on_value=5, off_value=-1, dtype=tf.float32), [[5, -1]], F32),
        (lambda: tf.saturate_cast([1e20, -1e20], tf.int32), [2147483520, -(2**31)], I32),
        (lambda: tf.saturate_cast([1e20], tf.int64), [2**63 - 2**39], I64),
        (lambda: tf.saturate_cast(np.array([1e20]), tf.int32), [2**31 - 1], I32),
        (lambda: tf.saturate_cast(np.float16([6e4]), tf.int8), [127], "int8"),
        (lambda: tf.random.uniform([0], dtype=None), [], F32),
        (lambda: tf.boolean_mask([1, 2], [1, 0]), [1], I32),
        (lambda: tf.dynamic_stitch([[0], [1]], [[5], [6]]), [5, 6], I32),
        (lambda: tf.ensure_shape([1, 2], None), [1, 2], I32),
        (lambda: tf.pad([1.0], [[1, 0]], constant_values=2), [2, 1], F32),
        (lambda: tf.zeros([1], dtype=None), [0], F32),
    ],
)
def test_values_and_dtypes(make: Callable[[], Any], value: Any, dtype: str) -> None:
    for found in (make(), tf.function(make)()):
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, np.array(value, dtype))


@pytest.mark.parametrize("scan", [tf.cumsum, tf.math.cumprod])
@pytest.mark.parametrize("reverse", [False, True])
def test_exclusive_scans_of_nothing_are_empty(scan: Any, reverse: bool) -> None:
    x = tf.zeros((3, 0, 2))
    assert scan(x, 1, exclusive=True, reverse=reverse).shape == (3, 0, 2)

    @tf.function(input_signature=[tf.TensorSpec((None, 2))])
    def run(x: Any) -> Any:
        return scan(x, 0, exclusive=True, reverse=reverse)

    assert run(tf.zeros((0, 2))).shape == (0, 2)
    assert run(tf.zeros((3, 2))).shape == (3, 2)


@pytest.mark.parametrize(
    "call",
    [
        lambda: tf.constant(1.5, tf.int32),
        lambda: tf.constant([1, 2.5], tf.int64),
        lambda: tf.constant(np.array([1.5]), tf.int32),
        lambda: tf.constant(1j, tf.float32),
        lambda: tf.constant(2, tf.bool),
        lambda: tf.convert_to_tensor(tf.constant(1.5), tf.int32),
        lambda: tf.Variable(1.5, dtype=tf.int32),
        lambda: tf.Variable(tf.constant(1.5), dtype=tf.int32),
        lambda: tf.range(2.5, dtype=tf.int32),
        lambda: tf.stack([tf.constant(1), 2.5]),
        lambda: tf.concat([tf.constant([1]), [2.5]], 0),
        lambda: tf.one_hot([0], 2, on_value=1, off_value=0.5),
        lambda: tf.pad([1, 2], [[1, 1]], constant_values=0.5),
        lambda: tf.one_hot([0], 2, on_value=0.5, dtype=tf.int32),
    ],
)
def test_values_that_a_dtype_would_cut_are_refused(call: Callable[[], Any]) -> None:
    with pytest.raises(TypeError, match=r"(int32|int64|float32|bool).*tf\.cast"):
        call()


def test_a_dtype_of_none_is_refused_by_cast() -> None:
    with pytest.raises(TypeError, match="dtype is None"):
        tf.cast([1.0], None)


def test_the_number_of_parts_must_be_that_of_the_sizes() -> None:
    with pytest.raises(ValueError, match=r"num=3.*2 sizes"):
        tf.split([1, 2, 3], [1, 2], num=3)
    assert len(tf.split([1, 2, 3], [1, 2], num=2)) == 2


@pytest.mark.parametrize(
    "call",
    [
        lambda: tf.tensor_scatter_nd_update(tf.constant([1, 2]), [[0], [1]], [2]),
        lambda: tf.tensor_scatter_nd_add(tf.ones((2, 3)), [[0]], [1.0, 2.0, 3.0]),
        lambda: tf.scatter_nd([[0], [1]], [2], [3]),
        lambda: tf.roll([[1, 2], [3, 4]], [1, 1], [0]),
    ],
)
def test_updates_and_shifts_are_not_broadcast(call: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match=r"updates must have shape|2 shifts for 1 axes"):
        call()
    with pytest.raises(ValueError, match=r"updates must have shape|2 shifts for 1 axes"):
        tf.function(call)()


def test_updates_of_unknown_rank_are_left_to_the_run() -> None:
    specs = [tf.TensorSpec(None), tf.TensorSpec([None, 1], tf.int32), tf.TensorSpec(None)]

    @tf.function(input_signature=specs)
    def run(x: Any, indices: Any, updates: Any) -> Any:
        return tf.tensor_scatter_nd_add(x, indices, updates)

    assert run(tf.ones((2, 2)), tf.constant([[0]]), tf.ones((1, 2))).numpy().tolist() == [
        [2.0, 2.0],
        [1.0, 1.0],
    ]


def test_substr_counts_bytes_or_characters() -> None:
    assert tf.strings.substr("grüße", 2, 2).numpy() == "grüße".encode()[2:4]
    assert tf.strings.substr("grüße", 2, 2, unit="UTF8_CHAR").numpy() == "üß".encode()


def test_pipelines_of_lists_and_floats_are_those_of_tensorflow_or_refused() -> None:
    images = [np.full((2, 2), i, "float32") for i in range(3)]
    assert [x.numpy().tolist() for x in tf.data.Dataset.from_tensor_slices(images)] == [
        x.tolist() for x in images
    ]
    assert tf.data.Dataset.range(tf.constant(3)).to_list() == [0, 1, 2]
    for args in ((0, 1, 0.25), (2.5,)):
        with pytest.raises(TypeError, match="takes one to three integers"):
            tf.data.Dataset.range(*args)
    with pytest.raises(ValueError, match="a list is one array, but this one has arrays of"):
        tf.data.Dataset.from_tensor_slices([np.ones(2), np.ones(3)])
