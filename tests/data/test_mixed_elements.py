"""Lists of arrays as data, elements of several dtypes or structures, and shared iterators."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape import layers, training
from gradtape.data import Dataset

IMAGES = [np.full((2, 2), i, "float32") for i in range(3)]


def of(elements: list[Any]) -> Any:
    return Dataset.from_generator(lambda: iter(elements))


# -- lists of arrays -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "images",
    [
        IMAGES,
        [gt.constant(x) for x in IMAGES],
        [x.tolist() for x in IMAGES],
        [list(x) for x in IMAGES],
        [tuple(x) for x in IMAGES],
        np.stack(IMAGES),
    ],
)
def test_a_list_of_images_is_one_array_of_them(images: Any) -> None:
    data = Dataset.from_tensor_slices(images)
    assert len(data) == 3
    assert [x.tolist() for x in data] == [x.tolist() for x in IMAGES]
    labelled = Dataset.from_tensor_slices({"x": images, "y": ([0, 1, 2],)})
    assert [(e["x"][0, 0].item(), e["y"][0].item()) for e in labelled] == [(0, 0), (1, 1), (2, 2)]
    (whole,) = Dataset.from_tensors((images, 5))
    assert whole[0].shape == (3, 2, 2)
    assert whole[1].item() == 5


def test_words_in_a_list_are_rows() -> None:
    data = Dataset.from_tensor_slices(["a", "bc"]).map(lambda word: len(str(word)))
    assert data.to_list() == [1, 2]


@pytest.mark.parametrize("make", [Dataset.from_tensor_slices, Dataset.from_tensors])
def test_lists_that_are_no_array_are_refused(make: Any) -> None:
    with pytest.raises(ValueError, match=r"different shapes: \(2,\), \(3,\); give several"):
        make(([np.ones(2), np.ones(3)], [1, 2]))
    with pytest.raises(TypeError, match="a list of dictionaries is not an array"):
        make([{"a": 1}, {"a": 2}])
    with pytest.raises(TypeError, match="different dtypes: float32, float64"):
        make([np.ones(2), np.ones(2, "float32")])
    with pytest.raises(ValueError, match="different lengths"):
        Dataset.from_tensor_slices(([np.ones(4), np.ones(4)], np.ones(4)))


@pytest.mark.parametrize("size", [2, 3])
def test_fit_takes_a_list_of_images_for_what_it_is_or_refuses(size: int) -> None:
    images = [np.full((size, size), i, "float32") for i in range(3)]

    def trained(x: Any) -> Any:
        gt.random.set_seed(0)
        model = layers.Sequential([layers.Flatten(), layers.Dense(1)])
        training.fit(model, (x, np.arange(3.0)), epochs=2, loss="mse", verbose=False, seed=1)
        return model(np.stack(images)).numpy()

    if size == 3:  # each image could also be an input of three rows
        with pytest.raises((TypeError, ValueError), match="input"):
            trained(images)
    else:
        np.testing.assert_array_equal(trained(images), trained(np.stack(images)))


# -- dtypes and structures -------------------------------------------------------------------------

NUMBERS = {
    "int32": np.int32(1),
    "int64": np.int64(1),
    "uint8": np.uint8(1),
    "bool": np.bool_(True),
    "float16": np.float16(1),
    "float32": np.float32(1),
    "float64": np.float64(1),
    "complex64": np.complex64(1),
}
COMBINERS = {
    "batch": lambda d: d.batch(2),
    "batch of items": lambda d: Dataset(d.to_list()).batch(2),
    "padded_batch": lambda d: d.padded_batch(2),
    "window": lambda d: d.window(2).flat_map(lambda w: w.batch(2)),
}


@pytest.mark.parametrize("combine", COMBINERS)
def test_arrays_of_different_dtypes_do_not_become_one(combine: str) -> None:
    of_python = ["int64", "float32", "complex64"]
    for a, b in itertools.product(NUMBERS, NUMBERS):
        data = COMBINERS[combine](of([np.full(2, NUMBERS[a]), np.full(2, NUMBERS[b])]))
        if a == b or {a, b} <= set(of_python):
            (found,) = data.as_numpy_iterator()
            assert found.dtype == (a if a == b else max(a, b, key=of_python.index))
        else:
            with pytest.raises(TypeError, match=f"different dtypes: {', '.join(sorted((a, b)))}"):
                list(data)


def test_numbers_of_python_become_floats_if_that_changes_none() -> None:
    for elements in ([1, 2.5], [2.5, 1], [[1, 2], [0.5, 1.5]]):
        for combine in COMBINERS.values():
            (found,) = combine(of(elements))
            assert found.dtype == "float32"
            assert found.tolist() == elements
    with pytest.raises(TypeError, match="different dtypes: float32, int64"):
        list(of([2**24 + 1, 0.5]).batch(2))


def test_padding_does_not_change_values() -> None:
    ragged = [np.ones(1, "int32"), np.ones(2, "int32")]
    with pytest.raises(TypeError, match=r"padded_batch: cannot combine .* float64, int32"):
        list(of([np.ones(1, "int32"), np.full(2, 2.5)]).padded_batch(2))
    for value in (0.5, 2**40, float("nan"), 1j):
        with pytest.raises(ValueError, match=r"padding value .* does not fit into int32"):
            list(of(ragged).padded_batch(2, padding_values=value))
    (found,) = of(ragged).padded_batch(2, padding_values=-1)
    assert found.tolist() == [[1, -1], [1, 1]]
    (found,) = of([np.ones(1), np.ones(2)]).padded_batch(2, padding_values=0.1)
    assert found.tolist() == [[1, 0.1], [1, 1]]
    with pytest.raises(ValueError, match="different numbers of axes"):
        list(of([np.ones(1), np.ones((1, 2))]).padded_batch(2))


@pytest.mark.parametrize("combine", COMBINERS)
def test_elements_of_different_structures_do_not_become_one(combine: str) -> None:
    one = np.ones(2)
    for first, second in [
        ({"a": one}, {"b": one}),
        ((one, one), {"a": one, "b": one}),
        ((one, one), (one, (one,))),
        ((one,), (one, one)),
        (one, (one,)),
    ]:
        for pair in ([first, second], [second, first]):
            with pytest.raises(ValueError, match="elements of different structures"):
                COMBINERS[combine](of(pair)).to_list()


def test_a_dataset_in_an_element_stays_one_or_is_refused() -> None:
    windows = Dataset.range(6).window(3).map(lambda window: window.batch(2))
    assert [[x.tolist() for x in window] for window in windows] == [[[0, 1], [2]], [[3, 4], [5]]]
    assert len(windows.prefetch(1).shuffle(2, seed=0).cache().to_list()) == 2
    for combine in ("batch", "padded_batch"):
        with pytest.raises(TypeError, match=f"{combine}: an element holds a dataset, such as"):
            list(getattr(windows, combine)(2))


# -- shared iterators, and steps that keep what is before them -------------------------------------


@pytest.mark.parametrize(
    "step",
    [
        lambda d: d,
        lambda d: d.batch(1),
        lambda d: d.cache(),
        lambda d: d.concatenate(d.skip(2000)),
        lambda d: d.map(lambda x: x, num_parallel_calls=2),
        lambda d: d.prefetch(2),
        lambda d: d.shuffle(10, seed=0),
    ],
)
@pytest.mark.parametrize("leave", [iter, Dataset.as_numpy_iterator])
def test_threads_that_share_an_iterator_get_each_element_once(step: Any, leave: Any) -> None:
    def slowly() -> Any:
        for i in range(400):
            sum(range(50))
            yield i

    shared = leave(step(Dataset.from_generator(slowly)))
    found: list[list[int]] = [[], [], [], []]
    errors: list[BaseException] = []

    def work(mine: list[int]) -> None:
        try:
            mine.extend(int(np.asarray(x).ravel()[0]) for x in shared)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(mine,)) for mine in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert sorted(itertools.chain(*found)) == list(range(400))


@pytest.mark.parametrize(
    "step", [lambda d: d.take_while(lambda x: x < 90), lambda d: d.scan(0, lambda s, x: (s, x))]
)
def test_shuffles_before_every_step_are_seeded_and_resumed(step: Any) -> None:
    data = step(Dataset.range(100).shuffle(100))
    state = data.state_dict()
    passes = [data.to_list() for _ in range(2)]
    data.load_state_dict(state)
    assert [data.to_list() for _ in range(2)] == passes
    assert passes[0] != passes[1]


def test_what_take_while_is_told_is_true_or_false() -> None:
    with pytest.raises(TypeError, match="take_while: the function returned None; return True"):
        Dataset.range(3).take_while(lambda x: None).to_list()
    with pytest.raises(TypeError, match="take_while: the function <lambda> cannot be called"):
        Dataset.range(3).take_while(lambda x, y: True).to_list()


@pytest.mark.parametrize("words", [["a", "bcd", ""], [b"ab", b"cde", b"f"]])
@pytest.mark.parametrize("combine", ["batch", "padded_batch"])
def test_words_of_several_lengths_are_kept_whole(words: Any, combine: str) -> None:
    for data in (of(words), Dataset(words), Dataset.from_tensor_slices(np.array(words))):
        (batch,) = getattr(data, combine)(3).as_numpy_iterator()
        assert batch.tolist() == words


@pytest.mark.parametrize(
    ("elements", "advice"),
    [
        ([np.ones(1, "float32"), np.array([2**40 + 1])], r"x\.astype\('float64'\)"),
        ([True, 2], r"x\.astype\('int64'\)"),
        (["a", 1], "an array of its own"),
        (["a", b"b"], "an array of its own"),
        ([1.0, None], "one of them is None: replace it"),
    ],
)
def test_the_advice_about_mixed_dtypes_changes_no_value(elements: Any, advice: str) -> None:
    for combine in ("batch", "padded_batch"):
        with pytest.raises(TypeError, match=advice):
            getattr(of(elements), combine)(2).to_list()


def test_batches_have_the_byte_order_of_the_machine() -> None:
    data = of([np.array([1, 2], ">f4")] * 3)
    for combined in (data.batch(2), data.padded_batch(2), data.prefetch(1).batch(2)):
        assert all(batch.dtype.isnative for batch in combined.as_numpy_iterator())


MASKED = np.ma.masked_array([[1.0, 2.0], [3.0, 4.0]], [[True, False], [False, False]])


@pytest.mark.parametrize(
    "lose",
    [
        lambda: Dataset.from_tensor_slices(MASKED),
        lambda: Dataset.from_tensor_slices({"x": MASKED, "y": np.ones(2)}),
        lambda: Dataset.from_tensor_slices([MASKED[0], MASKED[1]]),
        lambda: Dataset([MASKED]).unbatch().to_list(),
        lambda: of([MASKED]).unbatch().batch(2).to_list(),
        lambda: Dataset([MASKED]).padded_batch(1).to_list(),
        lambda: list(Dataset([MASKED])),
    ],
)
def test_no_mask_is_lost(lose: Any) -> None:
    with pytest.raises(TypeError, match="mask"):
        lose()


def test_a_masked_number_stays_masked_in_a_list() -> None:
    assert Dataset(MASKED[0]).to_list()[0] is np.ma.masked
    filled = Dataset(MASKED).map(lambda x: x.filled(0)).batch(2).to_list()
    assert filled[0].tolist() == [[0, 2], [3, 4]]


@pytest.mark.parametrize("sequences", list(itertools.permutations([[1, 2], [], [3], []])))
def test_empty_sequences_have_the_dtype_of_the_others(sequences: Any) -> None:
    for data in (Dataset(list(sequences)), of(list(sequences)).map(lambda x: (x, 0))):
        for batch in data.padded_batch(3).take(1).as_numpy_iterator():
            tokens = batch[0] if isinstance(batch, tuple) else batch
            assert tokens.dtype == "int64"
            assert tokens.sum(1).tolist() == [sum(x) for x in sequences[:3]]


@pytest.mark.parametrize("element", [None, (1.0, None), {"a": [1], "b": {"c": None}}])
def test_an_element_that_is_none_is_named(element: Any) -> None:
    data = of([element])
    assert len(data.to_list()) == 1
    with pytest.raises(TypeError, match="a part of one, is None, which is not a number"):
        list(data)
