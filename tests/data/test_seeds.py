"""What is random in a pipeline: seeded by a training, and resumed where it was."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape import layers, training
from gradtape.data import Dataset

X = np.arange(20, dtype="float32")[:, None] / 20


def orders(data: Any, **options: Any) -> list[list[float]]:
    """Return which examples each epoch of a training saw, in their order."""
    seen: list[list[float]] = []

    class Seen(layers.Layer):
        def call(self, x: Any, training: bool = False) -> Any:
            if training:
                seen[-1].extend(x[:, 0].tolist())
            return x

    class Begun(training.Callback):
        def on_epoch_begin(self, epoch: int) -> None:
            seen.append([])

    model = layers.Sequential([Seen(), layers.Dense(1)])
    options = {"epochs": 3, "verbose": 0, "compile": False, **options}
    training.fit(model, data, loss="mse", callbacks=[Begun()], **options)
    return seen


def shuffled(buffer: int = 20, **options: Any) -> Dataset:
    return Dataset.from_tensor_slices((X, X)).shuffle(buffer, **options).batch(4)


@pytest.mark.parametrize("buffer", [20, 6])
def test_the_seed_of_a_training_seeds_orders_that_have_none(buffer: int) -> None:
    one, two = (orders(shuffled(buffer), seed=3) for _ in range(2))
    assert one == two
    assert one[0] != one[1] != one[2]
    assert orders(shuffled(buffer), seed=4) != one
    later = orders(shuffled(buffer), seed=3, epochs=3, initial_epoch=1)
    assert later == one[1:]
    assert orders(shuffled(buffer, seed=1), seed=3) == orders(shuffled(buffer, seed=1), seed=4)
    fixed = orders(shuffled(buffer, reshuffle_each_iteration=False), seed=3)
    assert fixed[0] == fixed[1] == fixed[2]


class Cut(Exception):
    pass


@pytest.mark.parametrize("kept", [False, True], ids=["", "cached"])
@pytest.mark.parametrize("seeds", [{}, {"seed": 3}])
@pytest.mark.parametrize("options", [{}, {"steps_per_epoch": 3}, {"steps_per_epoch": 5}])
@pytest.mark.parametrize("cut", [1, 8])
def test_a_run_with_random_data_is_resumed_bit_for_bit(
    tmp_path: Path, seeds: dict[str, int], options: dict[str, int], cut: int, kept: bool
) -> None:
    def run(end: int, seed: int, **more: Any) -> list[Any]:
        came = 0

        class Cutting(training.Callback):
            def on_train_batch_end(self, batch: int, logs: dict[str, float]) -> None:
                nonlocal came
                came += 1
                if came > end:
                    raise Cut

        gt.random.set_seed(seed)  # a resumed run goes on with the numbers of the first
        model = layers.Sequential([layers.Dense(1), layers.Dropout(0.3)])
        data = shuffled().cache() if kept else shuffled()
        data = data.map(lambda x, y: (x + 0.1 * gt.random.normal(x.shape), y))
        training.fit(
            model,
            data,
            loss="mse",
            epochs=3,
            verbose=0,
            callbacks=[Cutting()],
            checkpoint=tmp_path / "run.h5",
            save_every=1,
            **seeds,
            **options,
            **more,
        )
        return [v.numpy().tolist() for v in model.variables]

    whole = run(99, 0)
    with pytest.raises(Cut):
        run(cut, 0)
    assert run(99, 77, resume=True) == whole


def test_shards_of_an_order_come_from_one_seed() -> None:
    """What is shuffled before it is cut has one order in all shards, and that of the pass."""

    def shard(index: int, seed: int) -> list[int]:
        data = gt.data.Dataset.range(20).filter(lambda i: i >= 0).shuffle(20).shard(2, index)
        data._seed_pass(seed, 0)
        return [int(x) for x in data]

    first, second = shard(0, 1), shard(1, 1)
    assert sorted([*first, *second]) == list(range(20))
    assert shard(0, 1) == first
    assert shard(0, 2) != first
    assert len(gt.data.Dataset.range(7).shuffle(7).shard(3, 1)) == 2


@pytest.mark.parametrize(
    "make",
    [
        lambda d: d.cache(),
        lambda d: d.repeat(2).cache(),
        lambda d: d.repeat(3).prefetch(2).cache(),
        lambda d: d.concatenate(d).cache(),
        lambda d: Dataset.zip(d, d).map(lambda a, b: a * 100 + b).cache(),
        lambda d: Dataset.zip(d.cache(), d).map(lambda a, b: a * 100 + b),
        lambda d: d.cache().shuffle(8).repeat(2).cache(),
    ],
)
@pytest.mark.parametrize("read", [0, 5, 30, 60])
def test_a_cache_is_read_again_in_the_orders_that_it_had(make: Any, read: int) -> None:
    def made() -> Any:
        return make(Dataset.from_tensor_slices(np.arange(10)).shuffle(10, seed=3))

    data = made()
    for _ in itertools.islice(itertools.chain(data, data), read):
        pass
    state = data.state_dict()
    wanted = [data.to_list() for _ in range(2)]
    resumed = made()
    resumed.load_state_dict(json.loads(json.dumps(state)))
    assert [resumed.to_list() for _ in range(2)] == wanted
