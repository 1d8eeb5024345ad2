"""The bytes of a file: what HDF5 libraries make of them, and what the reader takes."""

from __future__ import annotations

import itertools
import shutil
import subprocess
import tracemalloc
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import gradtape as gt
from gradtape.saving import DamagedFile, LoadError, SaveError, UnsafeFile
from gradtape.saving.container import limits
from gradtape.saving.container.hdf5 import profile
from gradtape.saving.container.hdf5.file import SafeFile
from gradtape.saving.container.hdf5.profile import checksum, checksums
from gradtape.saving.container.hdf5.write import to_bytes, write

pytestmark = pytest.mark.usefixtures("forks")

ATTRIBUTES = {"format": "gradtape", "format_version": "2.0"}
RANDOM = np.random.default_rng(0)


def array_of(dtype: str, shape: tuple[int, ...]) -> Any:
    numbers = np.round(RANDOM.standard_normal(shape) * 4)
    if dtype.startswith("complex"):
        return (numbers + 1j).astype(dtype)
    return np.abs(numbers).astype(dtype)


SHAPES = [(), (0,), (1,), (3, 2), (2, 0, 3), (300, 40), (1,) * 32]
ARRAYS = {
    f"/{dtype}/{i}": array_of(dtype, shape)
    for dtype in sorted(limits.DTYPES)
    for i, shape in enumerate(SHAPES)
}
TEXTS = {"/manifest": "{}", "/deep/er/text": "é" * 5}


@pytest.fixture(params=[None, "gzip"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    write(tmp_path / "a.h5", ATTRIBUTES, TEXTS, ARRAYS, request.param)
    return tmp_path / "a.h5"


def test_what_is_written_is_read_by_the_reader(path: Path) -> None:
    for origin in (path, path.read_bytes()):
        with SafeFile(origin) as file:
            file.check()
            assert {name: file.text(name) for name in file.texts} == TEXTS
            found = file.arrays(ARRAYS)
        for name, array in ARRAYS.items():
            assert found[name].dtype is np.dtype(array.dtype.name)
            np.testing.assert_array_equal(found[name], array, strict=True)


def test_what_is_written_is_read_by_hdf5(path: Path) -> None:
    with h5py.File(path) as file:
        for name, array in ARRAYS.items():
            np.testing.assert_array_equal(file[name][()], array, strict=True)
        assert file["/deep/er/text"][()].decode() == TEXTS["/deep/er/text"]
        assert file.attrs["format"] == b"gradtape"


def test_what_is_written_is_read_by_pyfive(path: Path) -> None:
    pyfive = pytest.importorskip("pyfive", reason="pip install pyfive")
    with pyfive.File(path) as file:
        for name, array in ARRAYS.items():
            if array.size and array.dtype.kind != "b":
                np.testing.assert_array_equal(file[name][()], array)
            assert file[name].shape == array.shape


@pytest.mark.skipif(shutil.which("h5dump") is None, reason="h5dump comes with HDF5's tools")
def test_what_is_written_is_read_by_h5dump(path: Path) -> None:
    done = subprocess.run(["h5dump", path], capture_output=True, text=True, check=True)
    assert "gradtape" in done.stdout


def test_compression_makes_files_smaller_and_nothing_else(tmp_path: Path) -> None:
    model = gt.Module("model")
    model.w = gt.Variable(np.tile(np.arange(64, dtype="float32"), (100, 1)))
    model.noise = gt.Variable(RANDOM.integers(0, 256, 4096).astype("uint8"))
    gt.save(model, tmp_path / "plain.h5")
    gt.save(model, tmp_path / "small.h5", compression="gzip")
    assert (tmp_path / "small.h5").stat().st_size < (tmp_path / "plain.h5").stat().st_size / 2
    loaded = gt.load(tmp_path / "small.h5")
    assert loaded.w.numpy().tobytes() == model.w.numpy().tobytes()
    assert loaded.noise.numpy().tobytes() == model.noise.numpy().tobytes()
    with pytest.raises(ValueError, match="compression must be None or 'gzip', got 'lzf'"):
        gt.save(model, tmp_path / "plain.h5", compression="lzf")


def test_arrays_of_several_pieces_and_odd_memory(tmp_path: Path) -> None:
    big = np.arange(2**22 + 2**19, dtype=np.int64)  # a bit more than two pieces
    odd = {
        "/big": big,
        "/columns": np.asfortranarray(RANDOM.standard_normal((5, 7))),
        "/strided": big[::1001],
        "/swapped": big[:9].astype(">i8"),
        "/reversed": big[8::-1],
    }
    write(tmp_path / "a.h5", ATTRIBUTES, {"/manifest": "{}"}, odd)
    with SafeFile(tmp_path / "a.h5") as file:
        file.check()
        for name, array in file.arrays(odd).items():
            np.testing.assert_array_equal(array, odd[name])
    data = bytearray((tmp_path / "a.h5").read_bytes())
    data[-1] ^= 1
    with SafeFile(data) as file:
        file.check()
        with pytest.raises(DamagedFile, match="/reversed does not match"):
            file.arrays(odd)


def test_arrays_that_are_read_together_are_apart_in_memory(tmp_path: Path) -> None:
    sizes = [0, 1, 3, 2**17, 5, 2**18 + 1, 0, *range(1, 40), 2**17 - 1] * 3
    arrays = {f"/{i}": RANDOM.standard_normal(n).astype("f4") for i, n in enumerate(sizes)}
    write(tmp_path / "a.h5", ATTRIBUTES, {"/manifest": "{}"}, arrays)
    for wanted in ([*arrays], [*arrays][::-1], [*arrays][1::2], [*arrays][20:60]):
        with SafeFile(tmp_path / "a.h5") as file:
            file.check()
            found = file.arrays(wanted)
            assert set(found) == set(wanted)
            for array in found.values():
                assert array.dtype is np.dtype("f4")
                assert array.flags.aligned
                assert array.flags.writeable
                array += 1
            for name, array in found.items():
                np.testing.assert_array_equal(array, arrays[name] + 1)


def test_reading_takes_the_arrays_memory_once_and_writing_none(tmp_path: Path) -> None:
    model = gt.Module("model")
    model.w = gt.Variable(np.zeros(2**22, dtype=np.float32))
    size = 2**24
    gt.save(model, tmp_path / "warm.h5")
    tracemalloc.start()
    gt.save(model, tmp_path / "a.h5")
    saving = tracemalloc.get_traced_memory()[1]
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    loaded = gt.load(tmp_path / "a.h5")
    loading = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    assert loaded.w.shape == (2**22,)
    assert saving < 0.1 * size
    assert loading < 1.1 * size


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_every_changed_byte_is_refused_or_changes_nothing(compression: str | None) -> None:
    """Padding between data says nothing; whatever else changes is noticed."""
    arrays = {"/a/w": np.arange(1500, dtype="float32"), "/b": np.array([True, False])}
    good = to_bytes(ATTRIBUTES, {"/manifest": "{}"}, arrays, compression)
    ignored = 0
    for i in (*range(1200), *range(1200, len(good), 5)):
        bad = bytearray(good)
        bad[i] ^= 0x10
        try:
            with SafeFile(bad) as file:
                file.check()
                assert file.text("/manifest") == "{}"
                found = file.arrays(arrays)
        except LoadError:
            continue
        ignored += 1
        for name, array in arrays.items():
            np.testing.assert_array_equal(found[name], array, strict=True)
    assert ignored < 5 * profile.ALIGNMENT


def test_every_shorter_file_is_refused() -> None:
    good = bytes(to_bytes(ATTRIBUTES, {"/manifest": "{}"}, {"/a": np.arange(9.0)}))
    for end in range(len(good)):
        with pytest.raises(LoadError), SafeFile(good[:end]) as file:
            file.check()
    with pytest.raises(DamagedFile, match="should have"), SafeFile(good + b"\0") as file:
        file.check()


def test_data_are_counted_as_often_as_they_are_read() -> None:
    data = to_bytes(ATTRIBUTES, {"/manifest": "{}"}, {"/a": np.arange(9.0)})
    with SafeFile(data, max_bytes=200) as file:
        file.check()
        file.array("/a")
        file.array("/a")
        with pytest.raises(UnsafeFile, match="as often as they are used"):
            file.array("/a")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"/a": 1, "/a/b": 2}, "is in its way"),
        ({"/a b/..": 1}, "cannot be a name"),
        ({"/" + "/".join("a" * 66): 1}, "nested deeper than 64"),
        ({f"/{'n' * 120}{i}": 1 for i in range(40_000)}, "longer than readers accept"),
    ],
)
def test_what_readers_would_refuse_is_not_written(arrays: Any, message: str) -> None:
    with pytest.raises(SaveError, match=message):
        to_bytes(ATTRIBUTES, {}, {name: np.asarray(x) for name, x in arrays.items()})


def test_datatypes_are_those_of_hdf5(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w", libver=("v110", "v110")) as file:
        for name in limits.DTYPES:
            file.create_dataset(name, data=np.zeros(2, name))
    data = (tmp_path / "a.h5").read_bytes()
    for name in limits.DTYPES:
        assert profile.DATATYPES[name] in data


def test_the_checksum_is_that_of_hdf5(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w", libver=("v110", "v110")):
        pass
    block = (tmp_path / "a.h5").read_bytes()[:48]
    assert checksum(block[:44]) == int.from_bytes(block[44:], "little")
    texts = [bytes(RANDOM.integers(0, 256, n % 40).astype("uint8")) for n in range(400)]
    assert checksums(texts) == [checksum(text) for text in texts]


def test_lazily_loaded_variables_are_read_when_they_are_used(tmp_path: Path) -> None:
    model = gt.layers.Sequential([gt.layers.Dense(3, activation="tanh"), gt.layers.BatchNorm()])
    x = np.ones((2, 4), "float32")
    expected = model(x).tolist()
    gt.save(model, tmp_path / "a.h5")
    loaded = gt.load(tmp_path / "a.h5", lazy=True)
    (tmp_path / "a.h5").unlink()
    assert [v.shape for v in loaded.variables] == [v.shape for v in model.variables]
    assert [v.trainable for v in loaded.variables] == [v.trainable for v in model.variables]
    assert loaded(x).tolist() == expected
    loaded.variables[0].assign(loaded.variables[0] * 2.0)
    assert loaded(x).tolist() != expected


def test_damage_is_found_when_a_lazily_loaded_variable_is_used(tmp_path: Path) -> None:
    model = gt.Module("model")
    model.a, model.b = gt.Variable([1.0, 2.0]), gt.Variable([3.0, 4.0])
    gt.save(model, tmp_path / "a.h5")
    data = (tmp_path / "a.h5").read_bytes()
    (tmp_path / "a.h5").write_bytes(data.replace(np.float32(3).tobytes(), np.float32(5).tobytes()))
    loaded = gt.load(tmp_path / "a.h5", lazy=True)
    assert loaded.a.tolist() == [1.0, 2.0]
    for _ in range(2):
        with pytest.raises(DamagedFile, match="/variables/b does not match its digest"):
            loaded.b.numpy()


@pytest.mark.parametrize("name", ["w", "a.b-c d", "_0"])
def test_names_of_links(name: str) -> None:
    data = to_bytes(ATTRIBUTES, {}, {f"/{name}/{name}": np.ones(2)})
    with SafeFile(data) as file:
        file.check()
        assert set(file.sizes) == {f"/{name}/{name}"}


def test_attributes_are_kept_in_their_order() -> None:
    names = [f"n{i}" for i in range(5)]
    for order in itertools.islice(itertools.permutations(names), 3):
        data = to_bytes({**ATTRIBUTES, **{n: n for n in order}}, {}, {})
        with SafeFile(data) as file:
            assert [file.attribute(n) for n in order] == list(order)
