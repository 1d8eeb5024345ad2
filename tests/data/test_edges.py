"""``gt.data.Dataset`` where a step could go wrong without a word."""

from __future__ import annotations

import threading
import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from gradtape import layers, training
from gradtape.data import Dataset


def test_numbers_of_python_have_the_dtypes_that_tensors_of_them_have() -> None:
    made = {
        "generator": Dataset.from_generator(lambda: iter([(1.5, 2), (2.5, 3)])),
        "slices": Dataset.from_tensor_slices(([1.5, 2.5], [2, 3])),
        "map": Dataset([2, 3]).map(lambda n: (float(n), n)),
    }
    for data in made.values():
        assert [str(x.dtype) for x in next(iter(data.batch(2)))] == ["float32", "int64"]
    kept = Dataset.from_tensor_slices(np.ones(3)).map(lambda x: x * np.float64(2))
    assert next(iter(kept)).dtype == "float64"


@pytest.mark.parametrize(
    "make",
    [
        lambda rows: Dataset(rows),
        lambda rows: Dataset.from_generator(lambda: iter(rows)),
        lambda rows: Dataset.from_tensor_slices(rows),
        lambda rows: Dataset.from_tensor_slices({"a": rows}).map(lambda d: d["a"]),
        lambda rows: Dataset.range(2).map(lambda i: rows[int(i)]),
    ],
)
def test_lists_of_numbers_are_rows(make: Any) -> None:
    rows = [[1, 2, 3], [4, 5, 6]]
    assert [batch.tolist() for batch in make(rows).batch(2)] == [rows]


def test_several_arrays_in_a_list_stay_several() -> None:
    data = Dataset.range(2).map(lambda i: ([np.ones(2), np.ones(3)], i)).batch(2)
    (a, b), _ = next(iter(data))
    assert (a.shape, b.shape) == ((2, 2), (2, 3))


@pytest.mark.parametrize("threads", [None, 2, -1])
def test_a_function_that_stops_an_iteration_does_not_cut_the_data_short(threads: Any) -> None:
    def wrong(n: Any) -> Any:
        return next(iter(())) if n == 3 else n

    data = Dataset.range(6).map(wrong, num_parallel_calls=threads)
    with pytest.raises(RuntimeError, match="StopIteration"):
        data.to_list()


@pytest.mark.parametrize(
    "make",
    [
        lambda d: d.map(lambda n: n, num_parallel_calls=3),
        lambda d: d.prefetch(3),
        lambda d: d.prefetch(2).map(lambda n: n, num_parallel_calls=2).batch(1).unbatch(),
    ],
)
def test_elements_before_an_exception_come_and_it_tells_where_it_arose(make: Any) -> None:
    def elements() -> Any:
        yield from range(4)
        raise KeyError("no fifth")

    found = []
    with pytest.raises(KeyError, match="no fifth") as caught:
        found.extend(int(x) for x in make(Dataset.from_generator(elements)))
    assert any(entry.name == "elements" for entry in caught.traceback)
    assert found == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "make",
    [
        lambda d: d,
        lambda d: d.map(lambda n: n),
        lambda d: d.map(lambda n: n, num_parallel_calls=2),
        lambda d: d.prefetch(2),
        lambda d: d.shuffle(3, seed=0).batch(2),
        lambda d: Dataset.zip(d, Dataset.range(100)).repeat(),
        lambda d: d.take(3),
        lambda d: d.interleave(lambda n: Dataset([n])),
    ],
)
def test_a_generator_is_closed_and_threads_end_when_one_stops_early(make: Any) -> None:
    closed: list[int] = []

    def elements() -> Any:
        try:
            yield from range(100)
        finally:
            closed.append(1)

    before = threading.active_count()
    for _ in make(Dataset.from_generator(elements)):
        break
    assert closed == [1]
    assert threading.active_count() == before


@pytest.mark.parametrize("found", [None, np.ones(2, "bool")])
def test_a_filter_says_true_or_false(found: Any) -> None:
    with pytest.raises(TypeError, match=r"filter: the function returned .*; return True or False"):
        Dataset.range(3).filter(lambda n: found).to_list()


def test_functions_do_not_write_into_the_data() -> None:
    x = np.ones((4, 2))
    for data in (
        Dataset.from_tensor_slices(x),
        Dataset.from_tensor_slices(x).batch(2),
        Dataset.from_generator(lambda: iter(x)).cache(),
    ):
        list(data)

        def double(row: Any) -> Any:
            row *= 2
            return row

        with pytest.raises(ValueError, match="read-only"):
            data.map(double).to_list()
    assert x.max() == 1


def test_arrays_that_do_not_fit_are_not_unbatched() -> None:
    data = Dataset([(np.ones(3), np.ones(2))])
    with pytest.raises(ValueError, match=r"unbatch: arrays of shapes \(3,\) and \(2,\)"):
        data.unbatch().to_list()
    with pytest.raises(ValueError, match="do not have the same number of rows"):
        Dataset.range(3).unbatch().to_list()


def test_what_never_ends_says_so() -> None:
    endless = Dataset.range(3).repeat()
    for data in (endless, endless.batch(2).prefetch(1), endless.enumerate(), endless.map(abs)):
        assert data.cardinality() == np.inf
        with pytest.raises(TypeError, match="is infinite"):
            len(data)
        with pytest.raises(ValueError, match="is infinite"):
            data.to_list()
    ended = (endless.take(7), Dataset.zip(endless, Dataset.range(7)), Dataset.range(7).enumerate())
    assert [len(data) for data in ended] == [len(data.to_list()) for data in ended] == [7, 7, 7]
    assert Dataset.range(0).repeat().to_list() == []
    x = np.ones((6, 2), "float32")
    pairs = Dataset.from_tensor_slices((x, x)).repeat().batch(2)
    model = layers.Sequential([layers.Dense(2)])
    with pytest.raises(ValueError, match=r"never ends .*give steps_per_epoch="):
        training.fit(model, pairs, loss="mse", verbose=0)
    with pytest.raises(ValueError, match="never ends"):
        training.evaluate(model, pairs, loss="mse")
    with pytest.raises(ValueError, match="never ends"):
        training.predict(model, pairs)
    run = training.fit(
        model,
        pairs,
        loss="mse",
        verbose=0,
        steps_per_epoch=4,
        epochs=2,
        validation_data=pairs,
        validation_steps=2,
    )
    assert len(run.epoch) == 2


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda d: d.take(-1), [0, 1, 2, 3, 4]),
        (lambda d: d.skip(-1), []),
        (lambda d: d.take(9), [0, 1, 2, 3, 4]),
        (lambda d: d.skip(9), []),
        (lambda d: d.repeat(0), []),
        (lambda d: d.shard(2, 1), [1, 3]),
        (lambda d: d.enumerate(start=5).take(1), [(5, 0)]),
        (
            # the example of tf.data
            lambda d: Dataset.range(1, 6).interleave(
                lambda n: Dataset([n] * 6), cycle_length=2, block_length=4
            ),
            [1] * 4 + [2] * 4 + [1] * 2 + [2] * 2 + [3] * 4 + [4] * 4 + [3] * 2 + [4] * 2 + [5] * 6,
        ),
    ],
)
def test_edges_are_those_of_tensorflow(make: Any, expected: list[Any]) -> None:
    assert make(Dataset.range(5)).to_list() == expected
    generated = Dataset.from_generator(lambda: iter(range(5)))
    assert make(generated).to_list() == expected


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"a": np.ones(3)}, "iterating over a dict does not give its rows"),
        (3, "expected a sequence or another iterable, got int"),
    ],
)
def test_what_has_no_rows_is_refused(wrong: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        Dataset(wrong)


def test_looking_at_the_specs_changes_no_order() -> None:
    one, two = (Dataset.range(10).shuffle(10, seed=0) for _ in range(2))
    assert two.element_spec.shape == ()
    assert one.to_list() == two.to_list()


# -- files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda d: d,
        lambda d: d.shuffle(1000, seed=0),
        lambda d: d.shuffle(10, seed=0),
        lambda d: d.shuffle(1000, seed=0).batch(10),
        lambda d: d.skip(3).shuffle(1000, seed=0),
    ],
)
def test_hdf5_is_read_in_blocks(tmp_path: Path, make: Any, monkeypatch: Any) -> None:
    path = tmp_path / "a.h5"
    x = np.arange(600, dtype="float32").reshape(300, 2)
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=x)
    reads: list[Any] = []
    read = h5py.Dataset.__getitem__
    monkeypatch.setattr(
        h5py.Dataset, "__getitem__", lambda self, at: reads.append(at) or read(self, at)
    )
    found = make(Dataset.from_hdf5(path, "x")).to_list()
    expected = make(Dataset.from_tensor_slices(x)).to_list()
    assert np.array_equal(np.array(found), np.array(expected))
    assert len(reads) == 1


def test_a_compressed_file_warns_of_a_random_order(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("gradtape.data.sources._BLOCK", 64)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=np.ones((300, 2)), chunks=(10, 2), compression="gzip")
    data = Dataset.from_hdf5(tmp_path / "a.h5", "x")
    with pytest.warns(UserWarning, match="a smaller buffer_size reads in order"):
        data.shuffle(300)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(data.shuffle(100, seed=0).to_list()) == 300


def test_a_shuffle_holds_no_more_than_its_buffer(tmp_path: Path) -> None:
    row = np.ones(2500, "float32")  # 10 kB
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=np.ones((2000, 2500), "float32"))  # 20 MB
    made = {
        "generator": Dataset.from_generator(lambda: (row * i for i in range(2000))),
        "batches": Dataset.from_generator(lambda: (np.ones((100, 2500)) for _ in range(10)))
        .unbatch()
        .map(lambda x: x.astype("float32")),
        "file": Dataset.from_hdf5(tmp_path / "a.h5", "x"),
    }
    for name, data in made.items():
        tracemalloc.start()
        for _ in data.shuffle(50, seed=0).batch(10).prefetch(2):
            pass
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 12e6, name  # the buffer has 0.5 MB, a block of the file 4 MB


# -- mistakes that are named -----------------------------------------------------------------------


def csv(folder: Path, text: str) -> Path:
    path = folder / "data.csv"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("", {}, "the file is empty, without even a header"),
        ("a,b,a\n1,2,3\n", {}, "2 columns are called 'a'; pass names="),
        (
            "a\n300\n",
            {"dtypes": {"a": "uint8"}},
            "line 2: 300 in column 'a' does not fit into uint8",
        ),
    ],
)
def test_a_file_of_columns_that_loses_something_is_refused(
    text: str, options: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=said):
        Dataset.from_csv(csv(tmp_path, text), **options).to_list()


def test_columns_that_are_not_read_may_have_one_name(tmp_path: Path) -> None:
    path = csv(tmp_path, "a,b,a\n1,2,3\n")
    assert Dataset.from_csv(path, columns=["b"]).to_list() == [{"b": 2.0}]
    assert Dataset.from_csv(csv(tmp_path, ""), names=["a"], header=False).to_list() == []


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Dataset.range(3).map(None), "map: expected a function, got None"),
        (lambda: Dataset.range(3).filter(True), "filter: expected a function, got True"),
        (
            lambda: Dataset.from_tensor_slices(([1], [2])).map(lambda x: x).to_list(),
            "the 2 parts of an element, which are separate arguments",
        ),
        (
            lambda: Dataset.range(3).filter(lambda x, y: True).to_list(),
            "filter: the function <lambda> cannot be called with the 1 parts",
        ),
        (lambda: Dataset.range(3).map(lambda x: None).to_list(), "map: .* returned None; return"),
        (lambda: Dataset.zip(), "zip: pass at least one dataset"),
        (
            lambda: Dataset.range(0, 1, 0.25),
            "takes .* integers, got 0, 1, 0.25; for",
        ),
        (lambda: Dataset.from_tensor_slices(iter([1])), "expected arrays, got <list_iterator"),
        (lambda: Dataset.from_tensor_slices(("a", "b")), "got 'a'; of words, pass a NumPy array"),
        (
            lambda: Dataset.from_generator(lambda: None).to_list(),
            "from_generator: the function returned None instead of an iterable",
        ),
    ],
)
def test_what_is_no_function_or_no_source_is_named(make: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        make()


def test_an_error_inside_a_function_is_its_own() -> None:
    with pytest.raises(TypeError, match=r"^can only concatenate str"):
        Dataset.range(3).map(lambda x: "a" + 1).to_list()


def test_a_file_that_is_not_hdf5_is_named(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"data\.csv: this is not an HDF5 file"):
        Dataset.from_hdf5(csv(tmp_path, "a\n"), "x")
    with pytest.raises(FileNotFoundError, match=r"absent\.h5: there is no such file"):
        Dataset.from_hdf5(tmp_path / "absent.h5", "x")


def test_a_tuple_of_columns_is_not_a_dataset_of_rows() -> None:
    with pytest.warns(UserWarning, match="of 2 elements; for one of 3 rows, use Dataset.from_"):
        assert len(Dataset((np.ones((3, 2)), np.zeros(3)))) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Dataset([np.ones(3), np.zeros(3)])
        Dataset((np.ones(3), np.zeros(4)))
        Dataset(("a", "b"))
        Dataset((1, 2, 3))


def test_windows_are_listed() -> None:
    assert Dataset.range(4).window(2).to_list() == [[0, 1], [2, 3]]
