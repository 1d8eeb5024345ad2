"""``gt.data.Dataset``: steps beside what Python's own lists give, and training from it."""

from __future__ import annotations

import itertools
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import gradtape as gt
from gradtape.data import Dataset

N = Dataset.range(10)


def squares() -> Dataset:
    return Dataset.from_generator(lambda: (i * i for i in range(10)))


def batched(xs: list[Any], n: int) -> list[list[Any]]:
    return [xs[i : i + n] for i in range(0, len(xs), n)]


SQUARES = [i * i for i in range(10)]
#: What a pipeline does, and what it gives of 0, 1, 4, 9 ...
STEPS: dict[str, tuple[Any, Any]] = {
    "map": (lambda d: d.map(lambda x: x + 1), [x + 1 for x in SQUARES]),
    "map in threads": (lambda d: d.map(lambda x: x + 1, 3), [x + 1 for x in SQUARES]),
    "map by ops": (lambda d: d.map(lambda x: gt.sqrt(gt.cast(x, "float32"))), list(range(10))),
    "filter": (lambda d: d.filter(lambda x: x % 2 == 0), SQUARES[::2]),
    "take": (lambda d: d.take(3), SQUARES[:3]),
    "take more": (lambda d: d.take(30), SQUARES),
    "skip": (lambda d: d.skip(7), SQUARES[7:]),
    "shard": (lambda d: d.shard(3, 1), SQUARES[1::3]),
    "repeat": (lambda d: d.repeat(2), SQUARES * 2),
    "repeat never": (lambda d: d.repeat(0), []),
    "repeat for ever": (lambda d: d.repeat().take(25), (SQUARES * 3)[:25]),
    "concatenate": (lambda d: d.concatenate(N), SQUARES + list(range(10))),
    "cache": (lambda d: d.cache(), SQUARES),
    "prefetch": (lambda d: d.prefetch(3), SQUARES),
    "batch, unbatch": (lambda d: d.batch(4).unbatch(), SQUARES),
    "enumerate": (lambda d: d.enumerate(5).map(lambda i, x: i * 1000 + x),
                  [(i + 5) * 1000 + x for i, x in enumerate(SQUARES)]),
    "flat_map": (lambda d: d.take(3).flat_map(lambda x: Dataset.range(int(x))), [0, 0, 1, 2, 3]),
    "interleave": (
        lambda d: Dataset.range(3).interleave(lambda i: Dataset.range(int(i), int(i) + 3), 2, 2),
        [0, 1, 1, 2, 2, 3, 2, 3, 4],
    ),
    "with_options": (lambda d: d.with_options(None), SQUARES),
}  # fmt: skip
SOURCES: dict[str, Any] = {
    "generator": squares,
    "slices": lambda: Dataset.from_tensor_slices(np.array(SQUARES)),
    "list": lambda: Dataset(SQUARES),
    "iterable": lambda: Dataset({i * i: None for i in range(10)}.keys()),
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("step", STEPS)
def test_a_step_gives_what_lists_give_at_each_pass(source: str, step: str) -> None:
    make, expected = STEPS[step]
    data = make(SOURCES[source]())
    for _ in range(2):
        assert data.to_list() == expected
    if data.cardinality() is not None:
        assert len(data) == len(expected)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("drop", [False, True])
def test_batches(source: str, drop: bool) -> None:
    data = SOURCES[source]().batch(4, drop)
    expected = batched(SQUARES, 4)[: 2 if drop else 3]
    for _ in range(2):
        assert [batch.tolist() for batch in data] == expected


def test_structures_are_kept() -> None:
    x, y = np.arange(12.0).reshape(6, 2), np.arange(6)
    data = Dataset.from_tensor_slices(({"a": x, "b": x + 1}, y)).batch(4)
    first, label = next(iter(data))
    assert isinstance(first["a"], gt.Tensor)
    np.testing.assert_array_equal(first["b"].numpy(), x[:4] + 1)
    assert label.tolist() == [0, 1, 2, 3]
    spec = data.element_spec
    assert spec[0]["a"].shape == (4, 2)
    assert spec[1].dtype == "int64"
    zipped = Dataset.zip({"p": Dataset.range(3), "q": (Dataset.range(3), squares())})
    assert zipped.to_list()[2] == {"p": 2, "q": (2, 4)}


@pytest.mark.parametrize("source", ["slices", "generator"])
@pytest.mark.parametrize("buffer", [1, 4, 10, 100])
def test_shuffling(source: str, buffer: int) -> None:
    data = SOURCES[source]().shuffle(buffer, seed=3)
    passes = [data.to_list() for _ in range(3)]
    assert all(sorted(found) == SQUARES for found in passes)
    again = SOURCES[source]().shuffle(buffer, seed=3)
    assert [again.to_list() for _ in range(3)] == passes
    fixed = SOURCES[source]().shuffle(buffer, seed=3, reshuffle_each_iteration=False)
    assert fixed.to_list() == fixed.to_list() == passes[0]
    if buffer == 1:
        assert passes[0] == SQUARES
    else:
        assert passes[0] != passes[1]
    for found in passes:  # nothing comes before its turn out of the buffer
        assert all(SQUARES.index(x) < i + buffer for i, x in enumerate(found))


def test_batches_of_shuffled_arrays_are_its_rows() -> None:
    x = np.arange(40).reshape(20, 2)
    one = Dataset.from_tensor_slices(x).shuffle(20, seed=1)
    two = Dataset.from_tensor_slices(x).shuffle(20, seed=1).batch(6)
    np.testing.assert_array_equal(
        np.concatenate([b.numpy() for b in two]), np.stack([e.numpy() for e in one])
    )


def test_every_order_is_equally_likely() -> None:
    data = Dataset.range(3).shuffle(3, seed=0)
    counts = dict.fromkeys(itertools.permutations(range(3)), 0)
    for _ in range(600):
        counts[tuple(data.to_list())] += 1
    assert all(60 < n < 140 for n in counts.values())


def test_the_global_seed_governs_shuffling() -> None:
    orders = []
    for _ in range(2):
        gt.random.set_seed(5)
        orders.append(N.shuffle(10).to_list())
    assert orders[0] == orders[1]


def test_a_pass_goes_on_with_a_state() -> None:
    def made() -> Dataset:
        return Dataset.from_tensor_slices(np.arange(20)).shuffle(20, seed=0).batch(4)

    data = made()
    data.to_list()
    state = data.state_dict()
    expected = [b.tolist() for b in data]
    other = made()
    other.load_state_dict(state)
    assert [b.tolist() for b in other] == expected
    with pytest.raises(ValueError, match=r"the state has \d steps, but this dataset has \d"):
        N.load_state_dict(state)


def test_an_exception_comes_through_a_thread_and_ends_it() -> None:
    def fails() -> Any:
        yield 1
        raise KeyError("lost")

    data = Dataset.from_generator(fails).prefetch(2)
    elements = iter(data)
    assert next(elements).item() == 1
    with pytest.raises(KeyError, match="lost"):
        next(elements)
    endless = iter(Dataset.range(10).repeat().prefetch(2))
    next(endless)
    del endless  # nobody waits for more
    names = [thread.name for thread in threading.enumerate()]
    assert "gradtape-prefetch" not in names


def test_csv(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("age,kind,weight,label\n31,cat,2.5,1\n42,dog,30,0\n")
    data = Dataset.from_csv(
        path, "label", dtypes={"label": "int64"}, vocabulary={"kind": ["cat", "dog"]}
    )
    expected = [
        ({"age": 31.0, "kind": 0, "weight": 2.5}, 1),
        ({"age": 42.0, "kind": 1, "weight": 30.0}, 0),
    ]
    assert data.to_list() == data.to_list() == expected
    chosen = Dataset.from_csv(path, columns=["weight"])
    assert [row["weight"] for row in chosen.to_list()] == [2.5, 30.0]
    with pytest.raises(ValueError, match=r"a.csv, line 2: 'cat' in column 'kind' is not a number"):
        Dataset.from_csv(path).to_list()
    with pytest.raises(ValueError, match=r"a.csv: no column 'size'; there are \['age'"):
        Dataset.from_csv(path, columns=["size"]).to_list()
    with pytest.raises(
        ValueError, match="'dog' in column 'kind' is not in the column's vocabulary"
    ):
        Dataset.from_csv(path, vocabulary={"kind": ["cat"]}).to_list()
    path.write_text("a,b\n1\n")
    with pytest.raises(ValueError, match="line 2: got 1 values for 2 columns"):
        Dataset.from_csv(path).to_list()


def test_hdf5_is_read_as_it_is_needed(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    x = np.arange(60.0).reshape(20, 3)
    with h5py.File(path, "w") as file:
        file["x"], file["y"] = x, np.arange(20)
    data = Dataset.from_hdf5(path, "x", "y").shuffle(20, seed=0).batch(8)
    found = list(data)
    labels = np.concatenate([b.numpy() for _, b in found])
    assert sorted(labels.tolist()) == list(range(20))
    np.testing.assert_array_equal(np.concatenate([a.numpy() for a, _ in found]), x[labels])
    with pytest.raises(ValueError, match="no dataset 'z'; there are"):
        Dataset.from_hdf5(path, "z")


def test_a_memory_map_is_not_read_into_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    big = np.lib.format.open_memmap(path, "w+", "float32", (200_000, 50))
    big[:] = 1
    big.flush()
    data = Dataset.from_tensor_slices(np.load(path, mmap_mode="r")).shuffle(200_000, seed=0)
    tracemalloc.start()
    total = sum(float(gt.sum(batch)) for batch in data.batch(1000))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert total == 200_000 * 50
    assert most < 8e6  # of 40 MB


def test_training_takes_a_pipeline() -> None:
    random = np.random.default_rng(0)
    x = random.standard_normal((100, 3)).astype("float32")
    y = x @ np.array([[1.0], [2.0], [-1.0]], "float32")
    data = Dataset.from_tensor_slices((x, y)).shuffle(100, seed=0).batch(10).prefetch(2)
    model = gt.layers.Sequential([gt.layers.Dense(1)])
    history = gt.training.fit(
        model, data, loss="mse", epochs=30, verbose=False, optimizer=gt.training.Adam(0.05)
    )
    assert history.history["loss"][-1] < 0.01 * history.history["loss"][0]
    assert gt.training.evaluate(model, data, loss="mse")["loss"] < 0.1
    only = Dataset.from_tensor_slices(x).batch(32)
    assert gt.training.predict(model, only).shape == (100, 1)


@pytest.mark.parametrize(
    ("make", "kind", "said"),
    [
        (lambda: Dataset(iter([1])), TypeError, "an iterator is exhausted after one pass"),
        (lambda: Dataset(3), TypeError, "expected a sequence or another iterable, got int"),
        (lambda: Dataset.from_generator([1]), TypeError, "expected a function"),
        (lambda: Dataset.from_tensor_slices(([1, 2], [1])), ValueError, "different lengths"),
        (lambda: Dataset.from_tensor_slices(np.float32(1)), ValueError, "has no rows"),
        (lambda: N.batch(0), ValueError, "batch_size must be a positive integer, got 0"),
        (lambda: N.shuffle(0), ValueError, "buffer_size must be a positive integer"),
        (lambda: N.shard(3, 3), ValueError, "index must be from 0 to 2"),
        (lambda: len(squares()), TypeError, "the length of this dataset is not known"),
        (lambda: Dataset([[1], [1, 2]]).batch(2).to_list(), ValueError, "different shapes"),
        (lambda: Dataset.zip(N, [1]), TypeError, "zip: expected datasets"),
    ],
)
def test_what_cannot_be_meant_is_refused(make: Any, kind: Any, said: str) -> None:
    with pytest.raises(kind, match=said):
        make()
