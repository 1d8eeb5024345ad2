"""Ragged tensors, sparse tensors, sets and texts, under TensorFlow's names."""

from __future__ import annotations

import numpy as np
import pytest

import gradtape as gt
import gradtape.compat.tensorflow as tf

keras = tf.keras
ROWS = [[1, 2, 3], [], [4]]


@pytest.mark.parametrize(
    "made",
    [
        lambda: tf.ragged.constant(ROWS),
        lambda: tf.RaggedTensor.from_row_splits([1, 2, 3, 4], [0, 3, 3, 4]),
        lambda: tf.RaggedTensor.from_row_lengths([1, 2, 3, 4], [3, 0, 1]),
        lambda: tf.RaggedTensor.from_row_starts([1, 2, 3, 4], [0, 3, 3]),
        lambda: tf.RaggedTensor.from_row_limits([1, 2, 3, 4], [3, 3, 4]),
        lambda: tf.RaggedTensor.from_value_rowids([1, 2, 3, 4], [0, 0, 0, 2]),
        lambda: tf.RaggedTensor.from_tensor([[1, 2, 3], [0, 0, 0], [4, 0, 0]], padding=0),
        lambda: tf.RaggedTensor.from_tensor([[1, 2, 3], [9, 9, 9], [4, 9, 9]], lengths=[3, 0, 1]),
        lambda: tf.ragged.stack([tf.constant([1, 2, 3]), tf.zeros(0, tf.int32), tf.constant([4])]),
    ],
)
def test_all_ways_to_make_rows_make_the_same(made) -> None:
    x = made()
    assert x.to_list() == ROWS
    assert (x.shape, x.ndim, len(x)) == ((3, None), 2, 3)
    assert x.row_lengths().tolist() == [3, 0, 1]
    assert x.row_splits.tolist() == [0, 3, 3, 4]
    assert (x.row_starts().tolist(), x.row_limits().tolist()) == ([0, 3, 3], [3, 3, 4])
    assert x.value_rowids().tolist() == [0, 0, 0, 2]
    assert x.to_tensor().tolist() == [[1, 2, 3], [0, 0, 0], [4, 0, 0]]
    assert x.to_tensor(-1, (None, 2)).tolist() == [[1, 2], [-1, -1], [4, -1]]
    assert [row.tolist() for row in x] == ROWS
    assert x[:2].to_list() == ROWS[:2]
    assert x[:, 1:].to_list() == [row[1:] for row in ROWS]
    assert x[0, -1].item() == 3


def test_rows_of_rows() -> None:
    nested = [[[1], [2, 3]], [], [[4]]]
    x = tf.ragged.constant(nested)
    assert (x.to_list(), x.shape, x.ragged_rank) == (nested, (3, None, None), 2)
    assert x.to_tensor().tolist() == [[[1, 0], [2, 3]], [[0, 0], [0, 0]], [[4, 0], [0, 0]]]
    assert x.row_lengths(axis=2).to_list() == [[1, 2], [], [1]]
    assert (x * 2).to_list() == [[[2], [4, 6]], [], [[8]]]


def test_arithmetic_takes_numbers_and_rows_of_the_same_lengths() -> None:
    x = tf.ragged.constant([[1.0, 2.0], [4.0]])
    assert (1.0 / x).to_list() == [[1.0, 0.5], [0.25]]
    assert (x + x).to_list() == [[2.0, 4.0], [8.0]]
    assert (x > 1.5).to_list() == [[False, True], [True]]
    assert abs(-x).to_list() == x.to_list()
    assert tf.ragged.map_flat_values(tf.square, x).to_list() == [[1.0, 4.0], [16.0]]
    with pytest.raises(ValueError, match="different lengths"):
        x + tf.ragged.constant([[1.0], [2.0, 3.0]])
    with pytest.raises(ValueError, match="to_tensor"):
        x + tf.constant([[1.0], [2.0]])


def test_rows_are_joined_and_masked() -> None:
    x, y = tf.ragged.constant(ROWS), tf.ragged.constant([[7], [8, 9], []])
    assert tf.concat([x, y], axis=0).to_list() == [*ROWS, [7], [8, 9], []]
    assert tf.concat([x, y], axis=1).to_list() == [[1, 2, 3, 7], [8, 9], [4]]
    mask = [[True, False], [False, True]]
    assert tf.ragged.boolean_mask([[1, 2], [3, 4]], mask).to_list() == [[1], [4]]


def test_gradients_of_both_orders_reach_the_values() -> None:
    v = tf.Variable([1.0, 2.0, 3.0])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            rows = tf.RaggedTensor.from_row_lengths(tf.identity(v), [2, 0, 1])
            y = tf.reduce_sum(rows.to_tensor() ** 3)
        first = inner.gradient(y, v)
    assert first.tolist() == [3.0, 12.0, 27.0]
    assert outer.gradient(first, v).tolist() == [6.0, 12.0, 18.0]


def test_what_rows_cannot_be_is_refused_in_words() -> None:
    with pytest.raises(TypeError, match="to_tensor"):
        tf.reduce_sum(tf.ragged.constant(ROWS))
    with pytest.raises(ValueError, match="row_splits"):
        tf.RaggedTensor.from_row_splits([1, 2], [0, 3])
    with pytest.raises(ValueError, match="fall"):
        tf.RaggedTensor.from_row_splits([1, 2], [0, 2, 1, 2])


def test_sparse_tensors_are_scaled_and_dense() -> None:
    x = tf.SparseTensor([[0, 1], [1, 0]], [2.0, 3.0], [2, 2])
    assert tf.sparse.to_dense(x * 2.0).tolist() == [[0.0, 4.0], [6.0, 0.0]]
    assert (x * tf.constant([[1.0, 10.0]])).to_dense().tolist() == [[0.0, 20.0], [3.0, 0.0]]
    assert tf.sparse.to_dense(x, default_value=-1.0)[0].tolist() == [-1.0, 2.0]
    with pytest.raises(ValueError, match="indices"):
        tf.SparseTensor([[0, 1]], [2.0, 3.0], [2, 2])


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("union", [[1, 2, 3], [4, 5]]),
        ("intersection", [[2], [4]]),
        ("difference", [[1], []]),
    ],
)
def test_sets_are_rows(name, rows) -> None:
    found = getattr(tf.sets, name)(tf.constant([[1, 2], [4, 4]]), tf.constant([[2, 3], [4, 5]]))
    dense = tf.sparse.to_dense(found).tolist()
    assert [row[: len(want)] for row, want in zip(dense, rows)] == rows
    assert found.shape == (2, max(map(len, rows)))


def test_texts_are_decoded_split_and_joined() -> None:
    words = tf.constant(["Café", "ab"])
    codes = tf.strings.unicode_decode(words, "UTF-8")
    assert codes.to_list() == [[67, 97, 102, 233], [97, 98]]
    assert tf.strings.unicode_encode(codes, "UTF-8").tolist() == words.tolist()
    assert tf.strings.split(["a b", "c"]).to_list() == [[b"a", b"b"], [b"c"]]
    assert tf.strings.split("a,b", ",").tolist() == [b"a", b"b"]
    assert tf.strings.regex_replace(["a1", "22"], "[0-9]", "x", False).tolist() == [b"ax", b"x2"]
    assert tf.strings.reduce_join(["a", "b"], separator="-").item() == b"a-b"


def test_texts_are_compared_and_indexed() -> None:
    words = tf.constant(["a", "b"])
    assert words[1].item() == b"b"
    assert (words == "b").tolist() == [False, True]
    assert (words != "b").tolist() == [True, False]
    assert tf.constant(1.0) != "b"
    with pytest.raises(TypeError, match="numbers"):
        words + "c"


def test_texts_are_elements_of_a_dataset() -> None:
    data = tf.data.Dataset.from_tensor_slices((["a", "bb", "c"], [1, 2, 3])).batch(2)
    assert [(x.tolist(), y.tolist()) for x, y in data] == [
        ([b"a", b"bb"], [1, 2]),
        ([b"c"], [3]),
    ]
    with pytest.raises(TypeError, match="numbers"):
        list(gt.data.Dataset.from_tensor_slices(np.array(["a", "b"])))


def test_functions_in_a_pipeline_get_texts_that_compare_as_texts() -> None:
    data = tf.data.Dataset.from_tensor_slices((["a", "b", "a"], [1, 2, 3]))
    kept = data.filter(lambda word, number: word == "a")
    assert [number.item() for _, number in kept] == [1, 3]
    upper = data.map(lambda word, number: tf.strings.upper(word)).map(lambda word: word == "A")
    assert [x.item() for x in upper] == [True, False, True]
    words = tf.data.Dataset.from_tensor_slices({"word": ["a", "b"]})
    assert [x["word"].numpy() for x in words.take_while(lambda x: x["word"] == "a")] == [b"a"]
    twice = words.flat_map(lambda x: tf.data.Dataset.from_tensors(x["word"]).repeat(2))
    assert [x.numpy() for x in twice] == [b"a", b"a", b"b", b"b"]
    seen = words.scan(0, lambda n, x: (n + 1, x["word"] == "b"))
    assert [x.item() for x in seen] == [False, True]
    with pytest.raises(TypeError, match=r"map: the function .* cannot be called with the 2 parts"):
        list(data.map(lambda word: word))


def test_equality_of_ragged_tensors_is_elementwise() -> None:
    x = tf.ragged.constant([[1.0, 2.0], [], [3.0]])
    assert (x == 1.0).to_list() == [[True, False], [], [False]]
    assert (x != x).to_list() == [[False, False], [], [False]]
    assert (x == None, x != None) == (False, True)  # noqa: E711
    words = tf.ragged.constant([["a"], ["b", "a"]])
    assert (words == "a").to_list() == [[True], [False, True]]
    assert len({x, words}) == 2


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: tf.RaggedTensor.from_value_rowids([1, 2], [0, 2], nrows=2), "not all rows of 2"),
        (lambda: tf.RaggedTensor.from_value_rowids([1, 2], [-1, 0]), "not all rows of 1"),
        (lambda: tf.RaggedTensor.from_tensor([[1, 0]], lengths=[1], padding=0), "got both"),
        (lambda: tf.ragged.constant([[2], 1]), "1 is not in as many lists"),
        (lambda: tf.sparse.to_dense(tf.SparseTensor([[0], [0]], [1.0, 2.0], [2])), "differ, got"),
        (lambda: tf.sparse.to_dense(tf.SparseTensor([[-1]], [1.0], [2])), "not negative"),
        (lambda: keras.utils.pad_sequences([[[1, 2]], [[3], [4]]]), r"have shape \(1,\)"),
        (lambda: keras.utils.pad_sequences([1, 2]), "a list or an array, got 1"),
    ],
)
def test_what_fits_no_rows_is_refused(made, words) -> None:
    with pytest.raises(ValueError, match=words):
        made()


def test_an_integer_shifts_images_by_fewer_whole_pixels() -> None:
    image = np.arange(16.0).reshape(4, 4, 1)
    changes = keras.preprocessing.image.ImageDataGenerator(width_shift_range=1)
    np.testing.assert_array_equal(changes.random_transform(image), image)
    changes = keras.preprocessing.image.ImageDataGenerator(height_shift_range=[0.25])
    moved = changes.random_transform(image, seed=0)[..., 0]
    assert moved.tolist() in [
        np.vstack([image[1:, :, 0], image[-1:, :, 0]]).tolist(),
        np.vstack([image[:1, :, 0], image[:-1, :, 0]]).tolist(),
    ]


@pytest.mark.parametrize("convert", [tf.constant, tf.convert_to_tensor])
def test_arrays_of_objects_are_texts_or_refused(convert) -> None:
    assert convert(np.array(["a", "b"])).numpy().tolist() == [b"a", b"b"]
    assert convert(np.array(["a", b"b"], object)).numpy().tolist() == [b"a", b"b"]
    for numbers in ([1, 2], [1.5, None]):
        with pytest.raises(TypeError, match=r"a text is str or bytes, got 1.*astype"):
            convert(np.array(numbers, object))


def test_slices_are_not_stacked_into_a_tensor() -> None:
    slices, v = tf.IndexedSlices([3.0], [0], [1]), tf.Variable([1.0])
    for use in (
        lambda: tf.convert_to_tensor(slices),
        lambda: tf.clip_by_norm(slices, 1.0),
        lambda: keras.optimizers.SGD(1.0).apply_gradients([(slices, v)]),
    ):
        with pytest.raises(TypeError, match=r"use tf\.scatter_nd"):
            use()
    assert v.numpy().tolist() == [1.0]


def test_graphs_say_what_to_use_instead_of_protocol_buffers() -> None:
    with pytest.raises(AttributeError, match=r"get_concrete_function\(\.\.\.\)\.graph"):
        tf.Graph().as_graph_def()
    graph = tf.function(lambda x: 2.0 * x).get_concrete_function(tf.TensorSpec([2])).graph
    for name in ("as_graph_def", "get_operations", "get_tensor_by_name"):
        with pytest.raises(AttributeError, match=rf"{name}.*print\(graph\).*gradtape\.save"):
            getattr(graph, name)
    assert "multiply" in str(graph)
    assert not hasattr(graph, "absent")


def test_texts_are_compared_and_converted_as_bytes() -> None:
    words = tf.constant(["a", "é"])
    assert (words == b"a").numpy().tolist() == [True, False]
    assert (words != "é".encode()).numpy().tolist() == [True, False]
    assert (tf.constant([1.0]) == b"a") is False
    assert tf.strings.bytes_split(["é"]).to_list() == [["é".encode()[:1], "é".encode()[1:]]]
    assert tf.strings.upper(words).numpy().tolist() == [b"A", "é".encode()]
    assert tf.strings.upper(words, encoding="utf-8").numpy().tolist() == [b"A", "É".encode()]
    assert tf.strings.as_string([True, False]).numpy().tolist() == [b"true", b"false"]
    assert tf.strings.to_number([str(2**53 + 1)], tf.int64).numpy().tolist() == [2**53 + 1]
    with pytest.raises(ValueError, match=r"3\.7"):
        tf.strings.to_number(["3.7"], tf.int32)


def test_a_variable_of_texts_is_not_saved(tmp_path) -> None:
    with pytest.raises(gt.saving.SaveError, match="a tensor of texts cannot be saved"):
        tf.train.Checkpoint(words=tf.Variable(["a", "b"])).save(tmp_path / "c")


def test_the_largest_of_a_sparse_tensor_is_one_of_its_elements() -> None:
    x = tf.SparseTensor([[0, 1], [2, 0], [2, 1]], [-3.0, -1.0, -2.0], [3, 2])
    assert tf.sparse.reduce_max(x, axis=1).numpy().tolist() == [-3.0, 0.0, -1.0]
    assert tf.sparse.reduce_max(x).item() == -1.0
    whole = tf.SparseTensor([[0]], [-3], [2])
    assert tf.sparse.reduce_max(whole, keepdims=True).numpy().tolist() == [-3]
    v = tf.Variable([-3.0, -1.0, -2.0])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.sparse.reduce_max(tf.SparseTensor(x.indices, v, [3, 2]), axis=1))
    assert tape.gradient(y, v).numpy().tolist() == [1.0, 1.0, 0.0]


def test_slices_of_rows_of_rows_keep_rows_without_elements() -> None:
    x = tf.ragged.constant([[[1, 2], [3]], [], [[4]]])
    assert x[:, :, :1].to_list() == [[[1], [3]], [], [[4]]]
    assert x[:, 1:, 1:].to_list() == [[[]], [], []]
