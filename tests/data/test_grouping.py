"""What a pipeline makes of several elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.extend import flatten

Dataset = gt.data.Dataset


def test_batches_are_filled_up() -> None:
    data = Dataset([np.ones(n, "int64") for n in (1, 3, 2)])
    assert [x.tolist() for x in data.padded_batch(2)] == [[[1, 0, 0], [1, 1, 1]], [[1, 1]]]
    assert len(data.padded_batch(2)) == 2
    (only,) = data.padded_batch(2, padded_shapes=(4,), padding_values=-1, drop_remainder=True)
    assert only.tolist() == [[1, -1, -1, -1], [1, 1, 1, -1]]
    with pytest.raises(ValueError, match="do not fit into"):
        list(data.padded_batch(2, padded_shapes=(2,)))


def test_parts_are_filled_up_each_in_its_way() -> None:
    pairs = Dataset([(np.ones((n, 2)), np.int64(n)) for n in (1, 2)])
    ((x, n),) = pairs.padded_batch(2, ((None, 3), ()), (0.5, None))
    assert x.tolist() == [[[1, 1, 0.5], [0.5, 0.5, 0.5]], [[1, 1, 0.5], [1, 1, 0.5]]]
    assert n.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"size": 2}, [[0, 1], [2, 3], [4]]),
        ({"size": 2, "drop_remainder": True}, [[0, 1], [2, 3]]),
        ({"size": 3, "shift": 1, "drop_remainder": True}, [[0, 1, 2], [1, 2, 3], [2, 3, 4]]),
        ({"size": 2, "shift": 1, "stride": 2, "drop_remainder": True}, [[0, 2], [1, 3], [2, 4]]),
        ({"size": 1, "shift": 3}, [[0], [3]]),
        ({"size": 3, "shift": 2}, [[0, 1, 2], [2, 3, 4], [4]]),
    ],
)
def test_windows(options, wanted) -> None:
    found = Dataset.range(5).window(**options)
    assert [window.to_list() for window in found] == wanted
    assert [list(map(int, w)) for w in found] == wanted  # at each pass


def test_windows_of_pairs_are_pairs_of_datasets() -> None:
    pairs = Dataset.from_tensor_slices(([0, 1, 2], [3, 4, 5])).window(2)
    assert [(a.to_list(), b.to_list()) for a, b in pairs] == [([0, 1], [3, 4]), ([2], [5])]


def test_states_and_ends() -> None:
    data = Dataset.range(5)
    assert data.scan(10, lambda s, x: (s + x, s)).to_list() == [10, 10, 11, 13, 16]
    assert data.take_while(lambda x: x < 3).to_list() == [0, 1, 2]
    assert data.apply(lambda d: d.batch(2)).to_list()[-1].tolist() == [4]
    for call in (lambda: data.window(0), lambda: data.padded_batch(0), lambda: data.window(1, 0)):
        with pytest.raises(ValueError, match="positive integer"):
            call()


def test_a_pipeline_of_a_subclass_is_of_the_subclass() -> None:
    class Own(Dataset):
        pass

    assert type(Own.range(3).map(lambda x: x).batch(2).shuffle(2)) is Own
    assert type(Own.zip(Own.range(2), Own.range(2))) is Own


PAIR = (np.ones(1), np.ones(2))


@pytest.mark.parametrize(
    ("element", "shapes", "found"),
    [
        (PAIR, ([3], [4]), [(1, 3), (1, 4)]),
        ({"a": PAIR}, {"a": ([3], None)}, [(1, 3), (1, 2)]),
        ({"b": np.ones(1), "a": PAIR}, {"a": ([3], [4]), "b": [5]}, [(1, 3), (1, 4), (1, 5)]),
        (PAIR, None, [(1, 1), (1, 2)]),
    ],
)
def test_padded_shapes_have_the_structure_of_elements(
    element: Any, shapes: Any, found: Any
) -> None:
    (batch,) = Dataset([element]).padded_batch(1, shapes).as_numpy_iterator()
    assert [x.shape for x in flatten(batch)] == found


@pytest.mark.parametrize(
    ("element", "given"),
    [
        (PAIR, (3,)),
        (PAIR, [3]),
        (PAIR, {"a": [3]}),
        ({"a": PAIR, "b": np.ones(1)}, {"a": [3]}),
        ({"a": PAIR}, [3]),
        ({"a": PAIR}, {"a": ([3],)}),
    ],
)
@pytest.mark.parametrize("what", ["padded_shapes", "padding_values"])
def test_settings_of_another_structure_are_refused(element: Any, given: Any, what: str) -> None:
    with pytest.raises(ValueError, match=rf"{what}=.* does not have the structure of the elements"):
        Dataset([element]).padded_batch(1, **{what: given}).to_list()


@pytest.mark.parametrize(("value", "padding"), [(None, ""), ("", ""), ("<none>", "<none>")])
def test_missing_words_are_empty_or_what_was_given(value: Any, padding: str) -> None:
    words = [np.array(["a", "bcd"]), np.array(["x"])]
    (batch,) = Dataset(words).padded_batch(2, padding_values=value).as_numpy_iterator()
    assert batch.tolist() == [["a", "bcd"], ["x", padding]]


@pytest.mark.parametrize("output", [0, (1, 2, 3), None])
def test_scan_says_what_its_function_must_return(output: Any) -> None:
    with pytest.raises(TypeError, match=r"scan: .* return the next state and"):
        Dataset.range(3).scan(0, lambda state, x: output).to_list()
