"""Words, sequences and images as arrays."""

from __future__ import annotations

import random

import numpy as np
import pytest

import gradtape as gt

TEXTS = ["The cat sat.", "the mat, the cat", "dogs!"]


def test_words_are_numbered_by_frequency() -> None:
    words = gt.data.Tokenizer()
    words.fit_on_texts(TEXTS)
    assert words.word_index == {"the": 1, "cat": 2, "sat": 3, "mat": 4, "dogs": 5}
    assert words.texts_to_sequences(["The dogs ran"]) == [[1, 5]]
    assert words.sequences_to_texts([[1, 5, 99]]) == ["the dogs"]
    assert (words.document_count, words.word_docs["the"], words.word_counts["the"]) == (3, 2, 3)


def test_rare_and_unknown_words_become_one_word() -> None:
    words = gt.data.Tokenizer(num_words=3, oov_token="?")
    words.fit_on_texts(TEXTS)
    assert words.word_index["?"] == 1
    assert words.texts_to_sequences(["the cat ran"]) == [[2, 1, 1]]
    assert words.sequences_to_texts([[2, 3]]) == ["the ?"]
    again = gt.data.tokenizer_from_json(words.to_json())
    assert again.texts_to_sequences(TEXTS) == words.texts_to_sequences(TEXTS)
    np.testing.assert_array_equal(
        again.texts_to_matrix(TEXTS, "tfidf"), words.texts_to_matrix(TEXTS, "tfidf")
    )


@pytest.mark.parametrize(
    ("mode", "row"),
    [("binary", [0, 1, 0]), ("count", [0, 2, 0]), ("freq", [0, 1, 0])],
)
def test_texts_become_rows(mode, row) -> None:
    words = gt.data.Tokenizer(char_level=True)
    words.fit_on_texts(["aab"])
    assert words.texts_to_matrix(["AA"], mode).tolist() == [row]
    with pytest.raises(ValueError, match="mode must be"):
        words.texts_to_matrix(["a"], "sum")


def test_hashes_stay_in_range() -> None:
    found = gt.data.hashing_trick("one two one", 5, "md5")
    assert found[0] == found[2]
    assert all(1 <= n < 5 for n in found)
    with pytest.raises(ValueError, match="md5"):
        gt.data.hashing_trick("one", 5, "sha")


def test_pairs_of_words_are_near_or_random() -> None:
    random.seed(0)
    pairs, labels = gt.data.skipgrams([1, 2, 0, 3], 10, window_size=1, shuffle=False)
    assert pairs[:2] == [[1, 2], [2, 1]]
    assert labels == [1, 1, 0, 0]
    table = gt.data.make_sampling_table(100)
    assert np.all(np.diff(table[1:]) > 0)
    assert table[0] == table[1] < table[-1] <= 1


@pytest.mark.parametrize("reverse", [False, True])
def test_windows_of_a_series(reverse) -> None:
    series = np.arange(12)
    made = gt.data.TimeseriesGenerator(
        series, 10 * series, 4, sampling_rate=2, stride=3, batch_size=2, reverse=reverse
    )
    x, y = made[0]
    wanted = np.array([[0, 2], [3, 5]])
    assert x.tolist() == (wanted[:, ::-1] if reverse else wanted).tolist()
    assert y.tolist() == [40, 70]
    assert (len(made), len(list(made))) == (2, 2)
    with pytest.raises(ValueError, match="no window"):
        gt.data.TimeseriesGenerator(series, series, 12)


PICTURES = np.arange(5 * 4 * 6 * 3, dtype="float32").reshape(5, 4, 6, 3)


def test_changes_of_images_that_are_not_random() -> None:
    made = gt.data.ImageDataGenerator(
        rescale=0.5, preprocessing_function=lambda x: x + 1.0, samplewise_center=True
    )
    x, y = made.flow(PICTURES, np.arange(5), batch_size=5, shuffle=False)[0]
    wanted = (PICTURES + 1.0) * 0.5
    np.testing.assert_allclose(x, wanted - wanted.mean((1, 2, 3), keepdims=True), rtol=1e-5)
    assert y.tolist() == [0, 1, 2, 3, 4]
    made = gt.data.ImageDataGenerator(featurewise_center=True, featurewise_std_normalization=True)
    made.fit(PICTURES)
    x = made.flow(PICTURES, batch_size=5, shuffle=False)[0]
    np.testing.assert_allclose(x.mean((0, 1, 2)), 0.0, atol=1e-4)
    np.testing.assert_allclose(x.std((0, 1, 2)), 1.0, rtol=1e-4)


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"width_shift_range": [2]}, lambda x, n: np.roll(x, n, 1)),
        ({"height_shift_range": [1]}, lambda x, n: np.roll(x, n, 0)),
    ],
)
def test_whole_shifts_move_pixels(options, wanted) -> None:
    (size,) = next(iter(options.values()))
    made = gt.data.ImageDataGenerator(fill_mode="wrap", **options)
    found = made.random_transform(PICTURES[0], seed=3)
    assert any(np.allclose(found, wanted(PICTURES[0], n), atol=1e-3) for n in (size, -size))


@pytest.mark.parametrize("fill_mode", ["nearest", "reflect", "wrap", "constant"])
def test_a_quarter_turn_and_a_zoom_by_one_change_nothing_else(fill_mode) -> None:
    square = PICTURES[0, :4, :4]
    made = gt.data.ImageDataGenerator(zoom_range=[1.0, 1.0], fill_mode=fill_mode)
    np.testing.assert_array_equal(made.random_transform(square), square)
    made = gt.data.ImageDataGenerator(rotation_range=90, fill_mode=fill_mode)
    for seed in range(3):
        found = made.random_transform(square, seed)
        assert found.shape == square.shape
        assert square.min() >= 0 <= found.min() <= found.max() <= square.max()


def test_flips_are_for_half_of_the_images() -> None:
    np.random.seed(0)  # noqa: NPY002 - Keras's generator
    made = gt.data.ImageDataGenerator(horizontal_flip=True)
    found = [made.random_transform(PICTURES[0]) for _ in range(40)]
    flipped = [np.array_equal(x, PICTURES[0][:, ::-1]) for x in found]
    assert 5 < sum(flipped) < 35
    assert all(f or np.array_equal(x, PICTURES[0]) for f, x in zip(flipped, found))


def test_parts_of_images_are_held_out() -> None:
    made = gt.data.ImageDataGenerator(validation_split=0.4)
    parts = [
        made.flow(PICTURES, np.arange(5), shuffle=False, subset=name)[0][1].tolist()
        for name in ("training", "validation")
    ]
    assert parts == [[2, 3, 4], [0, 1]]
    with pytest.raises(ValueError, match="subset"):
        made.flow(PICTURES, subset="test")


def test_images_of_folders(tmp_path, capsys) -> None:
    pytest.importorskip("PIL")
    for name, count in (("cats", 2), ("dogs", 1)):
        (tmp_path / name).mkdir()
        for i in range(count):
            gt.data.save_img(tmp_path / name / f"{i}.png", np.full((4, 4, 3), 100.0), scale=False)
    made = gt.data.ImageDataGenerator(rescale=0.01)
    data = made.flow_from_directory(tmp_path, (2, 3), batch_size=2, shuffle=False)
    assert "Found 3 images belonging to 2 classes." in capsys.readouterr().out
    assert (data.class_indices, data.classes.tolist()) == ({"cats": 0, "dogs": 1}, [0, 0, 1])
    x, y = next(data)
    np.testing.assert_allclose(x, np.ones((2, 2, 3, 3)))
    assert y.tolist() == [[1.0, 0.0], [1.0, 0.0]]
    assert data.image_shape == (2, 3, 3)
    grey = gt.data.load_img(tmp_path / "cats" / "0.png", "grayscale", (2, 2))
    assert gt.data.img_to_array(grey).shape == (2, 2, 1)
    back = gt.data.array_to_img(np.zeros((2, 2, 1)))
    assert np.asarray(back).shape == (2, 2)


def test_a_deep_grayscale_image_keeps_its_values(tmp_path) -> None:
    images = pytest.importorskip("PIL.Image")
    deep = np.arange(24, dtype="uint16").reshape(4, 6) * 1000
    images.fromarray(deep).save(tmp_path / "deep.png")
    found = gt.data.img_to_array(gt.data.load_img(tmp_path / "deep.png", "grayscale"))
    np.testing.assert_array_equal(found[..., 0], deep)
