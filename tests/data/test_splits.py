"""Parts of a pipeline: they stay apart, or a warning says that they do not."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape import layers, training
from gradtape.data import Dataset

Parts = Callable[[Dataset], list[Any]]

FIXED = {"reshuffle_each_iteration": False}


def shuffled(**options: Any) -> Dataset:
    return Dataset.range(100).shuffle(100, **options)


def warned(parts: Callable[[], Any]) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        parts()
    return [str(warning.message) for warning in caught]


#: Two parts that share elements, since the order before them changes.
OVERLAPPING: dict[str, Callable[[], list[Any]]] = {
    "take, skip": lambda: [(d := shuffled()).take(80), d.skip(80)],
    "skip, take": lambda: [(d := shuffled(seed=1)).skip(20), d.take(20)],
    "of a buffer": lambda: [(d := Dataset.range(100).shuffle(10)).take(80), d.skip(80)],
    "three parts": lambda: [(d := shuffled()).take(70), (r := d.skip(70)).take(15), r.skip(15)],
    "after a map": lambda: [(d := shuffled()).map(abs).take(80), d.map(abs).skip(80)],
    "of batches": lambda: [(d := shuffled().batch(10)).take(8), d.skip(8)],
    "from the middle": lambda: [(d := shuffled()).skip(10).take(20), d.skip(30)],
    "shards": lambda: [(d := shuffled()).shard(4, 0), d.shard(4, 1)],
    "of pairs": lambda: [
        (d := Dataset.zip(shuffled(), Dataset.range(100))).take(80),
        d.skip(80),
    ],
}
#: What is right, and what may be meant.
APART: dict[str, Callable[[], Any]] = {
    "one order": lambda: [(d := shuffled(**FIXED)).take(80), d.skip(80)],
    "in memory": lambda: [(d := shuffled().cache()).take(80), d.skip(80)],
    "not shuffled": lambda: [(d := Dataset.range(100)).take(80).shuffle(80), d.skip(80)],
    "one part, again and again": lambda: [(d := shuffled()).take(80), d.take(80), d.take(20)],
    "a look, and all but the first": lambda: [(d := shuffled()).take(1), d.skip(30)],
    "only skipped": lambda: [(d := shuffled()).skip(80), d.skip(80)],
    "nothing": lambda: [(d := shuffled()).take(0), d.skip(0)],
    "all": lambda: [(d := shuffled()).take(-1), d.skip(-1)],
    "the same shard": lambda: [(d := shuffled()).shard(4, 1), d.shard(4, 1)],
    "of two pipelines": lambda: [shuffled(seed=1).take(80), shuffled(seed=1).skip(80)],
}


@pytest.mark.parametrize("kind", OVERLAPPING)
def test_the_second_part_of_an_order_that_changes_is_warned_of(kind: str) -> None:
    (said,) = warned(OVERLAPPING[kind])
    assert "reshuffle_each_iteration=False" in said


@pytest.mark.parametrize("kind", APART)
def test_other_parts_are_not_warned_of(kind: str) -> None:
    assert warned(APART[kind]) == []


def test_the_warning_is_at_the_users_line() -> None:
    data = shuffled()
    data.take(80)
    with pytest.warns(UserWarning, match=r"Dataset\.skip") as caught:
        data.skip(80)
    assert caught[0].filename == __file__


def elements(data: Any) -> set[int]:
    return {int(x) for x in data}


@pytest.mark.parametrize("whole", [shuffled(**FIXED), shuffled().cache()], ids=["fixed", "cached"])
def test_parts_share_nothing_in_any_pass(whole: Dataset) -> None:
    kept, held_out = whole.take(80), whole.skip(80)
    first = elements(kept)
    assert len(first) == 80
    for _ in range(3):
        assert elements(held_out) == set(range(100)) - first
        assert elements(kept) == first


def test_a_run_does_not_move_what_an_earlier_one_held_out() -> None:
    """The seed of a run decides an order that nobody has seen, and no other."""
    x = np.arange(100, dtype="float32")[:, None] / 100
    whole = Dataset.from_tensor_slices((x, x)).shuffle(100, reshuffle_each_iteration=False)
    kept, held_out = whole.take(80).batch(16), whole.skip(80).batch(20)
    model = layers.Sequential([layers.Dense(1)])

    def first() -> list[float]:
        return next(iter(held_out))[0][:, 0].tolist()

    orders = []
    for seed in (0, 1):
        training.fit(
            model, kept, loss="mse", validation_data=held_out, seed=seed, verbose=0, optimizer="sgd"
        )
        orders.append(first())
    assert orders[0] == orders[1]
    seen = {float(v) for batch in kept for v in batch[0][:, 0]}
    assert len(seen) == 80
    assert not seen & set(orders[0])


# -- what is kept in memory ------------------------------------------------------------------------


def counted(count: int = 4) -> tuple[Dataset, list[int]]:
    """Return a cached dataset, and the elements that were made."""
    made: list[int] = []

    def numbers() -> Iterator[int]:
        for i in range(count):
            made.append(i)
            yield i

    return Dataset.from_generator(numbers).cache(), made


def test_each_element_is_made_once() -> None:
    data, made = counted()
    assert data.take(2).to_list() == [0, 1]
    assert made == [0, 1]
    both = Dataset.zip(data, data)
    assert [(int(a), int(b)) for a, b in both] == [(i, i) for i in range(4)]
    assert data.to_list() == data.to_list() == [0, 1, 2, 3]
    assert made == [0, 1, 2, 3]


def test_two_threads_read_the_same() -> None:
    data = Dataset.range(200).map(lambda x: x + gt.random.normal(())).cache()
    pairs = Dataset.zip(data.prefetch(), data.prefetch(3)).to_list()
    assert len(pairs) == 200
    assert all(a == b for a, b in pairs)


def test_a_source_that_fails_starts_again() -> None:
    failing = [True]

    def numbers() -> Iterator[int]:
        yield 0
        if failing.pop():
            failing.append(False)
            raise OSError("the network")
        yield 1

    data = Dataset.from_generator(numbers).cache()
    with pytest.raises(OSError, match="the network"):
        data.to_list()
    failing[:] = [False]
    assert data.to_list() == [0, 1]


def test_a_look_at_the_specs_is_not_a_pass() -> None:
    def order(looked: bool) -> list[Any]:
        data = Dataset.range(20).shuffle(20).cache()
        if looked:
            assert data.element_spec.dtype == "int64"
        data._seed_pass(3, 0)
        return data.to_list()

    assert order(True) == order(False)


def test_a_copy_has_what_was_read() -> None:
    data = Dataset.range(20).shuffle(20).cache()
    assert len(data.take(3).to_list()) == 3
    assert sorted(copy.deepcopy(data).to_list()) == list(range(20))
    whole = data.to_list()
    assert copy.deepcopy(data).to_list() == whole


# -- iterators that are exhausted ------------------------------------------------------------------


def generator() -> Iterator[int]:
    yield from range(3)


class Again:
    """An iterable that returns the same iterator each time."""

    def __init__(self, elements: Any) -> None:
        self.elements = elements

    def __iter__(self) -> Any:
        return self.elements


@pytest.mark.parametrize("make", [generator, lambda: iter([0, 1, 2]), lambda: map(abs, range(3))])
@pytest.mark.parametrize("through", ["from_generator", "iterable"])
def test_an_iterator_that_the_pass_before_exhausted(make: Callable[[], Any], through: str) -> None:
    one = make()
    data = Dataset(Again(one)) if through == "iterable" else Dataset.from_generator(lambda: one)
    assert warned(lambda: data.to_list()) == []
    (said,) = warned(lambda: data.to_list())
    assert "exhausted; return a new iterator for each pass" in said


def test_streams_that_go_on_or_start_anew_are_not_warned_of() -> None:
    endless = iter(range(1000))
    data = Dataset.from_generator(lambda: endless)
    assert warned(lambda: data.take(3).to_list()) == []
    assert data.take(2).to_list() == [3, 4]
    empty = Dataset.from_generator(lambda: iter([]))
    assert warned(lambda: [empty.to_list(), empty.to_list()]) == []
