"""Files of weights from strangers: what is damaged or lies is refused with one kind of error."""

from __future__ import annotations

import io
import json
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import gradtape as gt
from gradtape.saving import DamagedFile, LoadError, NotAGradtapeFile, UnsafeFile

pytestmark = pytest.mark.usefixtures("forks")

FILES = Path(__file__).parent / "files"


def tensors(header: Any, data: bytes = b"", claim: int | None = None) -> bytes:
    """Return a safetensors file of a header and data."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if claim is None else claim).to_bytes(8, "little") + text + data


def record(dtype: Any = "F32", shape: Any = (2,), begin: Any = 0, end: Any = 8) -> dict[str, Any]:
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


def read(path: Path, content: bytes, **options: Any) -> dict[str, Any]:
    path.write_bytes(content)
    return gt.saving.read_weights(path, **options)


# -- safetensors -----------------------------------------------------------------------------------

LIES: dict[str, tuple[bytes, type[LoadError], str]] = {
    "header too long": (tensors(b"{}", claim=2**40), UnsafeFile, "a header of"),
    "header beyond the file": (tensors(b"{}", claim=100), DamagedFile, "ends within its header"),
    "not JSON": (tensors(b"{nothing"), DamagedFile, "header cannot be read"),
    "not UTF-8": (tensors(b'{"\xff":1}'), DamagedFile, "header cannot be read"),
    "a key twice": (tensors(b'{"a":1,"a":1}'), DamagedFile, "repeats a key"),
    "deep": (tensors(b'{"a":' + b"[" * 200 + b"]" * 200 + b"}"), DamagedFile, "'a'"),
    "very deep": (
        tensors(b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
        DamagedFile,
        "header cannot be read",
    ),
    "very many": (tensors(b'{"a":[' + b"[]," * 10**6 + b"[]]}"), UnsafeFile, "header claims"),
    "nan": (tensors({"a": record(shape=[float("nan")])}, bytes(8)), DamagedFile, "not a shape"),
    "not a record": (tensors({"a": 1}), DamagedFile, "'dtype' is missing"),
    "unknown type": (tensors({"a": record("F4")}, bytes(8)), UnsafeFile, "the type 'F4'"),
    "dtype of a list": (tensors({"a": record([])}, bytes(8)), DamagedFile, "'dtype' is list"),
    "negative size": (tensors({"a": record(shape=[-2])}, bytes(8)), DamagedFile, "not a shape"),
    "size of a float": (tensors({"a": record(shape=[2.0])}, bytes(8)), DamagedFile, "not a shape"),
    "truth as a size": (tensors({"a": record(shape=[True])}, bytes(4)), DamagedFile, "not a shape"),
    "product overflows": (
        tensors({"a": record(shape=[2**40, 2**40])}, bytes(8)),
        DamagedFile,
        "bytes are not",
    ),
    "rank": (tensors({"a": record(shape=[1] * 33, end=4)}, bytes(4)), DamagedFile, "not a shape"),
    "size and place": (tensors({"a": record(end=4)}, bytes(4)), DamagedFile, "4 bytes are not"),
    "backwards": (tensors({"a": record(begin=8, end=0)}, bytes(8)), DamagedFile, "bytes are not"),
    "overlap": (
        tensors({"a": record(), "b": record(begin=4, end=12)}, bytes(12)),
        UnsafeFile,
        "overlap, or leave",
    ),
    "the same place": (tensors({"a": record(), "b": record()}, bytes(8)), UnsafeFile, "overlap"),
    "a hole": (tensors({"a": record(begin=4, end=12)}, bytes(12)), UnsafeFile, "leave bytes"),
    "more behind": (tensors({"a": record()}, bytes(9)), DamagedFile, "bytes long, its header"),
    "cut": (tensors({"a": record()}, bytes(7)), DamagedFile, "bytes long, its header claims"),
    "metadata": (tensors({"__metadata__": {"a": 1}}), DamagedFile, "not a mapping of strings"),
    "metadata a list": (tensors({"__metadata__": []}), DamagedFile, "not a mapping of strings"),
    "no boolean": (
        tensors({"a": record("BOOL", end=2)}, b"\x02\x00"),
        DamagedFile,
        "neither 0 nor 1",
    ),
    "too much": (
        tensors({"a": record(shape=[300], end=1200)}, bytes(1200)),
        UnsafeFile,
        "raise max_bytes",
    ),
    "too much once converted": (
        tensors({"a": record("F8_E5M2", shape=[300], end=300)}, bytes(300)),
        UnsafeFile,
        "claim 1,200 bytes",
    ),
}


@pytest.mark.parametrize("name", LIES)
def test_safetensors_that_lie_are_refused(name: str, tmp_path: Path) -> None:
    content, error, message = LIES[name]
    with pytest.raises(error, match=message) as caught:
        read(tmp_path / "w.safetensors", content, max_bytes=1000)
    assert str(caught.value).startswith(str(tmp_path))


def test_safetensors_damaged_anywhere_are_refused_or_read(tmp_path: Path) -> None:
    content = (FILES / "tied.safetensors").read_bytes()
    random = np.random.default_rng(0)
    for _ in range(300):
        changed = bytearray(content)
        for place in random.integers(0, len(content), 3):
            changed[place] = random.integers(256)
        changed = changed[: random.integers(1, len(content) + 1)]
        try:
            found = read(tmp_path / "w", bytes(changed))
        except LoadError:
            continue
        assert sum(x.nbytes for x in found.values()) < len(content)


def test_names_from_a_stranger_are_printed_as_text(tmp_path: Path) -> None:
    content = tensors({"a\x1b[31m\n": record(), "b" * 5000: record(begin=8, end=16)}, bytes(16))
    (tmp_path / "w").write_bytes(content)
    model = gt.Module()
    model.v = gt.Variable([1.0, 2.0])
    with pytest.raises(gt.saving.WeightsMismatch) as caught:
        gt.load_weights(tmp_path / "w", model)
    text = str(caught.value) + str(caught.value.report)
    assert "\x1b" not in text
    assert len(text) < 2000


def test_what_the_formats_own_library_writes_is_read_and_the_other_way(tmp_path: Path) -> None:
    library = pytest.importorskip("safetensors.numpy")
    random = np.random.default_rng(0)
    dtypes = (
        "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()
    )
    arrays = {name: random.integers(0, 2, (3, 5)).astype(name) for name in dtypes}
    arrays |= {"none": np.zeros((0, 4), "float32"), "scalar": np.array(3.0)}
    arrays["turned"] = random.normal(size=(4, 3))
    library.save_file(arrays, tmp_path / "theirs", {"note": "this"})
    found = gt.saving.read_weights(tmp_path / "theirs")
    model = gt.Module()
    for name, array in arrays.items():
        setattr(model, f"v_{name}", gt.Variable(array if name != "turned" else array.T))
    gt.save_weights(model, tmp_path / "ours.safetensors")
    back = library.load_file(tmp_path / "ours.safetensors")
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        np.testing.assert_array_equal(back[f"v_{name}"], array if name != "turned" else array.T)
        assert found[name].dtype == back[f"v_{name}"].dtype == array.dtype


def test_what_the_format_lacks_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    model = gt.Module()
    model.v = gt.Variable(np.array([1j]))
    path = tmp_path / "w.safetensors"
    path.write_bytes(b"old")
    with pytest.raises(gt.saving.SaveError, match="v: the safetensors format has no complex128"):
        model.save_weights(path)
    assert path.read_bytes() == b"old"


# -- pickles and others ----------------------------------------------------------------------------


def zipped(**members: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "/"), content)
    return stream.getvalue()


def npy() -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.ones(2))
    return stream.getvalue()


@pytest.mark.needs("weights")
@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (zipped(archive__data__pkl=b"", **{"archive/data.pkl": b"x"}), UnsafeFile, "is a pickle"),
        (pickle.dumps({"a": 1}, protocol=2), UnsafeFile, r"safetensors\.torch\.save_file"),
        (pickle.dumps({"a": 1}, protocol=5), UnsafeFile, "never read"),
        (npy(), LoadError, "a file of NumPy; pass the arrays"),
        (zipped(**{"a.npy": npy()}), LoadError, "a file of NumPy; pass the arrays"),
        (zipped(**{"config.json": b"{}"}), NotAGradtapeFile, "it is a zip archive"),
        (b"PK\x03\x04" + bytes(50), DamagedFile, "not a readable zip archive"),
        (b"", NotAGradtapeFile, "not a weights file of a known kind"),
        (b"hello", NotAGradtapeFile, "not a weights file of a known kind"),
    ],
    ids=range(9),
)
def test_what_is_no_file_of_weights_says_what_to_do(
    content: bytes, error: type[LoadError], message: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        read(tmp_path / "model.safetensors", content)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotAGradtapeFile, match="not a file"):
        gt.saving.read_weights(tmp_path)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(NotAGradtapeFile, match="not a file"):
            gt.saving.read_weights(tmp_path / "pipe")


# -- Keras -----------------------------------------------------------------------------------------


def forged(path: Path, kind: str, secret: Path) -> None:
    with h5py.File(path, "w") as file:
        group = file.create_group("layers/dense/vars")
        group["0"] = np.ones((2, 2), "float32")
        if kind == "external link":
            group["1"] = h5py.ExternalLink(str(secret), "/x")
        elif kind == "soft link":
            group["1"] = h5py.SoftLink("/layers/dense/vars/0")
        elif kind == "external storage":
            group.create_dataset("1", (2,), "float32", external=[(str(secret), 0, 8)])
        elif kind == "virtual":
            layout = h5py.VirtualLayout((2,), "float32")
            layout[:] = h5py.VirtualSource(str(secret), "x", (2,))
            group.create_virtual_dataset("1", layout)
        elif kind == "bomb":
            group.create_dataset("1", (2**28,), "float32", chunks=(2**20,), compression="gzip")
        elif kind == "hole":
            group.create_dataset("1", (2**28,), "float32")
        elif kind == "opaque":
            group.create_dataset("1", data=np.zeros(2, "V2")).attrs["dtype"] = "float16x"
        elif kind == "references":
            group.create_dataset("1", data=group.ref, dtype=h5py.ref_dtype)
        elif kind == "texts":
            group.create_dataset("1", data=["a"], dtype=h5py.string_dtype())


FORGED = {
    "external link": "a soft, external or user-defined link",
    "soft link": "a soft, external or user-defined link",
    "external storage": "stores its data in another file",
    "virtual": "a virtual dataset",
    "bomb": "claims 1,073,741,824 bytes",
    "hole": "claims 1,073,741,824 bytes",
    "opaque": "opaque type 'float16x'",
    "references": "class reference",
    "texts": "has dtype object",
}


@pytest.mark.needs("weights")
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", FORGED)
def test_forged_files_of_keras_are_refused(kind: str, packed: bool, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(bytes(8))
    path = tmp_path / "w.h5"
    forged(path, kind, secret)
    if packed:
        with zipfile.ZipFile(tmp_path / "w.keras", "w") as archive:
            archive.write(path, "model.weights.h5")
        path = tmp_path / "w.keras"
    with pytest.raises(UnsafeFile, match=FORGED[kind]) as caught:
        gt.saving.read_weights(path)
    assert str(caught.value).startswith(str(path))


def test_a_file_that_crashes_the_hdf5_library_is_refused(tmp_path: Path) -> None:
    content = bytearray((FILES / "sequential.weights.h5").read_bytes())
    place = content.index(b"TREE")
    # a node of the tree of names that is its own child
    content[place + 5] = 1
    content[place + 32 : place + 40] = place.to_bytes(8, "little")
    with pytest.raises(LoadError):
        read(tmp_path / "w.h5", bytes(content))


@pytest.mark.needs("weights")
def test_archives_that_lie_are_refused(tmp_path: Path) -> None:
    good = (FILES / "sequential.weights.h5").read_bytes()
    path = tmp_path / "w.keras"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model.weights.h5", good)
        archive.writestr("../escape", b"out")
    assert len(gt.saving.read_weights(path)) == 10  # packed ones are read; others never unpacked
    assert [x.name for x in tmp_path.iterdir()] == ["w.keras"]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model.weights.h5", bytes(2**28))
    with pytest.raises(LoadError, match="claims 268,435,456 bytes and stores"):
        gt.saving.read_weights(path, max_bytes=2**20)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model.weights.h5", good)
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("model.weights.h5", good)
    with pytest.raises(UnsafeFile, match="the archive has 2 files"):
        gt.saving.read_weights(path)
    content = bytearray((FILES / "sequential.keras").read_bytes())
    content[content.index(b"\x89HDF") + 20_000] ^= 1
    with pytest.raises(DamagedFile, match="cannot be unpacked"):
        read(path, bytes(content))


@pytest.mark.needs("weights")
def test_files_of_keras_are_counted_too() -> None:
    with pytest.raises(UnsafeFile, match="raise max_bytes"):
        gt.saving.read_weights(FILES / "sequential.weights.h5", max_bytes=100)
    assert gt.saving.read_weights(FILES / "sequential.weights.h5", max_bytes=100_000)
