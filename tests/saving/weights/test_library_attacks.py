"""What the HDF5 library lets a file of weights do, and that reading lets it do none of it."""

from __future__ import annotations

import faulthandler
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from fuzz.files.judging import Forked
from h5py import h5d, h5p, h5s, h5t

import gradtape as gt
from gradtape.saving import LoadError, UnsafeFile
from gradtape.saving.container import child

W = "/variables/w"
VALUE = np.arange(6.0, dtype="float32").reshape(2, 3)
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="files are read in forks")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("sound") / "sound.h5"
    with h5py.File(path, "w", libver=("v110", "v110")) as file:
        file[W] = VALUE
        file["/variables/flag"] = np.array([True, False])
        file["/variables/count"] = np.int64(3)
        file.create_group("/functions")
        file["/constants/0"] = np.ones(3)
    return path.read_bytes()


@pytest.fixture
def path(template: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # a new interpreter for each file would take most of the time
    monkeypatch.setattr(child, "subprocess", Forked)
    (tmp_path / "victim.h5").write_bytes(template)
    return tmp_path / "victim.h5"


def edited(path: Path, change: Callable[[h5py.File], Any]) -> Path:
    with h5py.File(path, "r+") as file:
        change(file)
    return path


def values(path: Path) -> dict[str, Any]:
    return {name: x.tolist() for name, x in gt.saving.read_weights(path).items()}


def refused(path: Path, kind: type[LoadError] = UnsafeFile, match: str | None = None) -> None:
    with pytest.raises(kind, match=match) as caught:
        gt.saving.read_weights(path)
    assert str(caught.value).startswith(str(path))


def replace(file: h5py.File, make: Any) -> None:
    del file[W]
    make(file)


# -- links -----------------------------------------------------------------------------------------


def test_an_external_link_is_not_followed(path: Path, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "secret.h5", "w") as other:
        other["w"] = np.arange(6.0, dtype="float32").reshape(2, 3)
    link = h5py.ExternalLink(str(tmp_path / "secret.h5"), "w")
    edited(path, lambda f: replace(f, lambda f: f.__setitem__(W, link)))
    refused(path, match="soft, external or user-defined link")


@pytest.mark.parametrize("target", ["/variables/count", "/nowhere", "/variables"])
def test_a_soft_link_is_not_followed(path: Path, target: str) -> None:
    edited(path, lambda f: f.__setitem__("/variables/x", h5py.SoftLink(target)))
    refused(path, match="/variables/x is a soft, external")


@pytest.mark.parametrize("place", ["/variables/again", "/again", "/functions/again"])
@pytest.mark.parametrize("target", ["/", "/variables", W])
def test_cycles_and_second_hard_links_are_refused(path: Path, place: str, target: str) -> None:
    with h5py.File(path, "r+") as file:
        file[place] = file[target]
    refused(path, match="second link to the same object")


def test_names_that_are_paths_or_tricks_are_refused(template: bytes, path: Path) -> None:
    for name in (
        b"..",
        b"a\nb",
        b"\xff\xfe",
        b"a" * 300,
    ):
        path.write_bytes(template)
        with h5py.File(path, "r+") as file:
            h5py.h5g.create(file["/variables"].id, name)
        refused(path, match="a link is called")


def test_nesting_is_bounded(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        file.create_group("/" + "/".join("g" * 200))
    refused(path, match="nested deeper than 64")


def test_the_number_of_objects_is_bounded(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradtape.saving.container.hdf5.library.MAX_OBJECTS", 40)
    with h5py.File(path, "r+") as file:
        for i in range(50):
            file.create_group(f"/crowd/{i}")
    refused(path, match="more than 40 objects")


def test_a_named_datatype_is_no_part_of_a_file(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        file["/variables/t"] = np.dtype("float32")
    refused(path, match="neither a group nor a dataset")


# -- storage ---------------------------------------------------------------------------------------


def test_external_storage_is_not_read(path: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.bin"
    secret.write_bytes(np.arange(6.0, dtype="float32").tobytes())
    edited(
        path,
        lambda f: replace(
            f,
            lambda f: f.create_dataset(
                W, (2, 3), "float32", external=[(str(secret), 0, h5py.h5f.UNLIMITED)]
            ),
        ),
    )
    refused(path, match="stores its data in another file")


def test_a_virtual_dataset_is_not_read(path: Path, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "secret.h5", "w") as other:
        other["w"] = np.arange(6.0, dtype="float32").reshape(2, 3)
    layout = h5py.VirtualLayout((2, 3), "float32")
    layout[:] = h5py.VirtualSource(tmp_path / "secret.h5", "w", (2, 3))
    edited(path, lambda f: replace(f, lambda f: f.create_virtual_dataset(W, layout)))
    refused(path, match="is a virtual dataset")


@pytest.mark.parametrize("chunks", [None, (1024, 1024)])
def test_a_shape_of_terabytes_with_nothing_stored_is_refused(path: Path, chunks: Any) -> None:
    shape = (2**20, 2**20)
    edited(
        path,
        lambda f: replace(
            f, lambda f: f.create_dataset(W, shape, "float32", chunks=chunks, fillvalue=7)
        ),
    )
    refused(path, match="claim")


def test_a_small_shape_with_nothing_stored_is_refused(path: Path) -> None:
    def make(f: h5py.File) -> None:
        properties = h5p.create(h5p.DATASET_CREATE)
        properties.set_alloc_time(h5d.ALLOC_TIME_LATE)
        space = h5s.create_simple((2, 3))
        h5d.create(f["/variables"].id, b"w", h5t.NATIVE_FLOAT, space, properties)

    edited(path, lambda f: replace(f, make))
    refused(path, match="claims 24 bytes but stores 0")


def test_a_compression_bomb_is_refused_by_its_size(path: Path) -> None:
    zeros = np.zeros(2**24, "float32")
    edited(
        path,
        lambda f: replace(
            f,
            lambda f: f.create_dataset(W, data=zeros, chunks=(2**20,), compression="gzip"),
        ),
    )
    assert path.stat().st_size < 2**18
    with pytest.raises(UnsafeFile, match="claim more than 1,000,000 bytes; raise max_bytes"):
        gt.saving.read_weights(path, max_bytes=1_000_000)
    refused(path, match=r"\d+,\d+ bytes of a file claim to hold 67,")


def test_a_chunk_much_larger_than_its_dataset_is_refused(path: Path) -> None:
    def make(f: h5py.File) -> None:
        f.create_dataset(
            W,
            data=np.zeros((2, 3), "float32"),
            chunks=(2**13, 2**13),
            maxshape=(None, None),
            compression="gzip",
        )

    edited(path, lambda f: replace(f, make))
    refused(path, match="in chunks of 268,435,456")


def test_datasets_that_share_their_bytes_are_refused(path: Path, tmp_path: Path) -> None:
    """Many datasets over the same stored bytes would be read again and again."""
    size, old = 100_000, tmp_path / "old.h5"
    # the oldest version of HDF5's format has no checksums, so that addresses can be changed by hand
    with h5py.File(path) as ours, h5py.File(old, "w", libver=("earliest", "v110")) as file:
        for name in ours:
            ours.copy(name, file)
        for name, value in ours.attrs.items():
            file.attrs[name] = value
        a = file.create_dataset("/constants/a", data=np.zeros(size, "uint8")).id.get_offset()
        b = file.create_dataset("/constants/b", data=np.zeros(size, "uint8")).id.get_offset()
    data = old.read_bytes()
    both = [place.to_bytes(8, "little") + size.to_bytes(8, "little") for place in (a, b)]
    assert [data.count(x) for x in both] == [1, 1]
    assert b + size == len(data)  # so that b's bytes can be cut off
    shared = bytearray(data.replace(both[1], both[0])[:b])
    at = data.find(len(data).to_bytes(8, "little"), 0, 64)
    shared[at : at + 8] = len(shared).to_bytes(8, "little")
    old.write_bytes(shared)
    refused(old, match="share their storage")


def test_what_gzip_and_its_companions_store_is_read(path: Path) -> None:
    expected = values(path)
    value = np.arange(6.0, dtype="float32").reshape(2, 3)
    edited(
        path,
        lambda f: replace(
            f,
            lambda f: f.create_dataset(
                W, data=value, chunks=(2, 3), compression="gzip", shuffle=True, fletcher32=True
            ),
        ),
    )
    assert values(path) == expected


def test_big_endian_and_compact_storage_is_read(path: Path) -> None:
    expected = values(path)

    def make(f: h5py.File) -> None:
        properties = h5p.create(h5p.DATASET_CREATE)
        properties.set_layout(h5d.COMPACT)
        made = h5d.create(
            f["/variables"].id, b"w", h5t.IEEE_F32BE, h5s.create_simple((2, 3)), properties
        )
        made.write(h5s.ALL, h5s.ALL, np.arange(6.0, dtype="float32").reshape(2, 3))

    edited(path, lambda f: replace(f, make))
    with h5py.File(path) as file:
        assert file[W].dtype.byteorder == ">"
    assert values(path) == expected


def test_a_filter_that_would_be_loaded_from_disk_is_refused(path: Path, tmp_path: Path) -> None:
    def make(f: h5py.File) -> None:
        properties = h5p.create(h5p.DATASET_CREATE)
        properties.set_chunk((2, 3))
        properties.set_filter(32015, h5py.h5z.FLAG_OPTIONAL, (3,))  # zstd, as a plugin
        made = h5d.create(
            f["/variables"].id, b"w", h5t.NATIVE_FLOAT, h5s.create_simple((2, 3)), properties
        )
        made.write_direct_chunk((0, 0), b"\0" * 24)

    edited(path, lambda f: replace(f, make))
    refused(path, match="needs the filter 32015; only gzip")


# -- types -----------------------------------------------------------------------------------------

_ENUM = h5py.enum_dtype({"OFF": 0, "ON": 1}, "int8")
DTYPES = {
    "vlen text": (h5py.string_dtype(), "x"),
    "vlen numbers": (h5py.vlen_dtype("float32"), None),
    "object reference": (h5py.ref_dtype, None),
    "region reference": (h5py.regionref_dtype, None),
    "opaque": (np.dtype("V16"), None),
    "compound": (np.dtype([("re", "f4"), ("im", "f4")]), None),
    "unequal compound": (np.dtype([("r", "f4"), ("i", "f8")]), None),
    "integer compound": (np.dtype([("r", "i4"), ("i", "i4")]), None),
    "enumeration": (_ENUM, None),
    "long double": (np.dtype("longdouble"), None),
    "array": (np.dtype(("f4", (3,))), None),
    "date": (h5py.opaque_dtype(np.dtype("M8[s]")), None),
    "texts": (np.dtype("S8"), None),
}


@pytest.mark.parametrize("name", DTYPES)
def test_types_that_files_do_not_hold_are_refused(path: Path, name: str) -> None:
    dtype, fill = DTYPES[name]

    def make(f: h5py.File) -> None:
        if name == "array":
            made = h5t.array_create(h5t.NATIVE_FLOAT, (3,))
            h5d.create(f["/variables"].id, b"w", made, h5s.create_simple((2,)))
        elif fill is None:
            f.create_dataset(W, (2,), dtype)
        else:
            f.create_dataset(W, data=fill, dtype=dtype)

    edited(path, lambda f: replace(f, make))
    refused(path, match=W)


def test_a_dataset_without_a_shape_is_refused(path: Path) -> None:
    edited(path, lambda f: replace(f, lambda f: f.__setitem__(W, h5py.Empty("float32"))))
    refused(path, LoadError)


# -- attributes ------------------------------------------------------------------------------------


def test_attributes_elsewhere_are_never_read(path: Path) -> None:
    expected = values(path)
    with h5py.File(path, "r+") as file:
        file.attrs["extra"] = "variable-length"
        file[W].attrs["evil"] = file.ref
        file["variables"].attrs["big"] = np.zeros(4000)
    assert values(path) == expected


# -- damage ----------------------------------------------------------------------------------------


def test_a_file_cut_off_anywhere_is_refused(path: Path) -> None:
    data = path.read_bytes()
    for size in [0, 1, 7, 8, 20, 100, *range(200, len(data), len(data) // 30), len(data) - 1]:
        path.write_bytes(data[:size])
        with pytest.raises(LoadError):
            gt.saving.read_weights(path)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("os.kill(os.getpid(), 11)", "the HDF5 library fails on it (SIGSEGV)"),
        ("os.abort()", "the HDF5 library fails on it (SIGABRT)"),
        ("while True: pass", "reading it takes too long"),
        ("bytearray(2**30)", "does not fit into memory"),
        ("raise KeyError('x')", "cannot be read"),
    ],
)
def test_a_crash_of_the_library_is_an_error(
    code: str, said: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of it reaches this process: not a signal, not a hang, not the memory."""
    from gradtape.saving.container.hdf5 import library

    def walk(self: Any) -> None:
        faulthandler.disable()  # pytest's would print this crash as if it were one of the tests
        exec(code, {"os": os})

    monkeypatch.setattr(library.Hdf5File, "_walk", walk)
    with pytest.raises(LoadError) as caught:
        gt.saving.read_weights(path)
    assert said in str(caught.value)
    assert str(caught.value).startswith(str(path))
