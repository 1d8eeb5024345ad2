"""Containers of whole files come through a hook: a plugin adds one, or replaces HDF5."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.saving import (
    DamagedFile,
    NotAGradtapeFile,
    SaveError,
    Storage,
    Stored,
    UnsafeFile,
)
from gradtape.saving.container import replace
from gradtape.training import Checkpoint, fit

Register = Callable[[Any], None]
X = np.ones((2, 3), "f4")


class Opened(Stored):
    def __init__(self, path: str) -> None:
        self.archive = zipfile.ZipFile(path)
        self.attributes = json.loads(self.archive.read("attributes"))

    def declared(self) -> Iterator[tuple[str, str, tuple[int, ...]]]:
        for name in self.archive.namelist():
            if name != "attributes":
                with self.archive.open(name) as stream:
                    np.lib.format.read_magic(stream)
                    shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
                yield f"/{name}", dtype.name, shape

    def read(self, path: str) -> np.ndarray[Any, Any]:
        found: np.ndarray[Any, Any] = np.load(io.BytesIO(self.archive.read(path[1:])))
        return found

    def close(self) -> None:
        self.archive.close()


class Zip(Storage):
    """One zip archive of NumPy's arrays; a change is made of each array that is written."""

    name = "Zip"
    compressions = ("deflate",)
    wrote: Any = None

    def __init__(self, change: Callable[[str, Any], Any] = lambda name, array: array) -> None:
        self.change = change

    def write(
        self,
        path: str,
        attributes: Mapping[str, str],
        arrays: Mapping[str, Any],
        compression: str | None = None,
    ) -> None:
        self.wrote = compression
        kind = zipfile.ZIP_DEFLATED if compression else zipfile.ZIP_STORED
        with zipfile.ZipFile(path, "w", kind) as archive:
            archive.writestr("attributes", json.dumps(attributes))
            for name, array in arrays.items():
                changed = self.change(name, array)
                if changed is not None:
                    stream = io.BytesIO()
                    np.save(stream, changed)
                    archive.writestr(name[1:], stream.getvalue())

    def read(self, path: str) -> Stored:
        return Opened(path)

    def recognises(self, path: str) -> bool:
        return os.path.isfile(path) and Path(path).read_bytes()[:2] == b"PK"


@pytest.fixture
def register() -> Iterator[Register]:
    known: list[str] = []

    def given(storages: Any) -> None:
        plugin = SimpleNamespace(gradtape_storages=gt.hookimpl(lambda: storages))
        gt.register_plugin(plugin, f"storages{len(known)}")
        known.append(f"storages{len(known)}")

    yield given
    for name in known:
        gt.unregister_plugin(name)


@pytest.fixture
def model() -> gt.Module:
    model = gt.layers.Sequential([gt.layers.Dense(2, "relu"), gt.layers.Dense(1)])
    model(gt.constant(X))
    return model


@pytest.mark.parametrize("ending", [".acme", ".h5"])
def test_a_plugin_adds_a_container_and_replaces_hdf5(
    ending: str, register: Register, model: gt.Module, tmp_path: Path
) -> None:
    storage = Zip()
    register({ending: storage})
    path = tmp_path / f"m{ending}"
    gt.save(model, path, compression="deflate")
    assert storage.wrote == "deflate"
    assert path.read_bytes().startswith(b"PK")
    for lazy in (False, True):
        assert gt.load(path, lazy=lazy)(X).tolist() == model(X).tolist()
    assert gt.saving.verify(path).ok
    assert "2 modules" in gt.saving.inspect(path).table() or "Dense" in gt.saving.inspect_text(path)
    gt.save(model, tmp_path / "m.hdf5")
    assert (tmp_path / "m.hdf5").read_bytes().startswith(b"\x89HDF")
    assert not gt.saving.diff(path, tmp_path / "m.hdf5")
    assert sorted(os.listdir(tmp_path)) == sorted([path.name, "m.hdf5"])
    path.rename(tmp_path / "m")  # what is there decides
    assert gt.load(tmp_path / "m")(X).tolist() == model(X).tolist()


def test_weights_checkpoints_and_runs_use_the_container(
    register: Register, model: gt.Module, tmp_path: Path
) -> None:
    register({".acme": Zip()})
    before = model(X).tolist()
    model.save_weights(tmp_path / "w.acme")
    Checkpoint(model=model).save(tmp_path / "c.acme")
    fit(model, (X, X[:, :1]), loss="mse", verbose=0, checkpoint=tmp_path / "run.acme")
    assert model(X).tolist() != before
    gt.load_weights(tmp_path / "w.acme", model)
    assert model(X).tolist() == before
    Checkpoint(model=model).restore(tmp_path / "c.acme")
    for path in tmp_path.iterdir():
        assert path.read_bytes().startswith(b"PK")


def test_our_container_comes_from_a_plugin() -> None:
    known = gt.registry()
    assert {known.owner("storage", end).name for end in known.storages} == {"saving"}  # type: ignore[union-attr]


def test_unknown_compressions_are_refused_by_container(
    register: Register, model: gt.Module, tmp_path: Path
) -> None:
    register({".acme": Zip()})
    with pytest.raises(ValueError, match=r"None or 'deflate', got 'gzip', in a file of Zip"):
        gt.save(model, tmp_path / "m.acme", compression="gzip")


@pytest.mark.parametrize(
    "change",
    [
        lambda name, x: x.astype("f8") if "kernel" in name else x,
        lambda name, x: None if "kernel" in name else x,
    ],
    ids=["dtype", "missing"],
)
def test_a_container_that_stores_something_else_is_named_at_the_save(
    change: Any, register: Register, model: gt.Module, tmp_path: Path
) -> None:
    register({".acme": Zip()})
    gt.save(model, tmp_path / "m.acme")
    old = (tmp_path / "m.acme").read_bytes()
    gt.unregister_plugin("storages0")
    gt.register_plugin(
        SimpleNamespace(gradtape_storages=gt.hookimpl(lambda: {".acme": Zip(change)})), "storages0"
    )
    with pytest.raises(SaveError, match=r"m\.acme: .*Zip did not store .*/0/kernel.* as"):
        gt.save(model, tmp_path / "m.acme")
    assert (tmp_path / "m.acme").read_bytes() == old
    assert os.listdir(tmp_path) == ["m.acme"]


def test_other_values_do_not_match_their_digests(
    register: Register, model: gt.Module, tmp_path: Path
) -> None:
    register({".acme": Zip(lambda name, x: x + 1 if "kernel" in name else x)})
    gt.save(model, tmp_path / "m.acme")
    with pytest.raises(DamagedFile, match=r"m\.acme: .*kernel does not match its digest"):
        gt.load(tmp_path / "m.acme")
    assert gt.saving.inspect(tmp_path / "m.acme").table()


class Claims(Zip):
    """A container whose files claim other arrays than they have."""

    def __init__(self, claim: tuple[str, str, tuple[int, ...]]) -> None:
        super().__init__()
        self.claim = claim
        self.lies = False

    def read(self, path: str) -> Stored:
        found = Opened(path)
        if self.lies:
            declared = [*found.declared(), self.claim]
            found.declared = lambda: iter(declared)  # type: ignore[method-assign]
        return found


@pytest.mark.parametrize(
    ("claim", "kind", "said"),
    [
        (("/x", "float32", (2**40,)), UnsafeFile, "claim .* raise max_bytes"),
        (("/x", "float32", (2**22,)), UnsafeFile, "claims to hold"),
        (("/x", "float32", (-1,)), UnsafeFile, "shape"),
        (("/x", "object", (1,)), UnsafeFile, "known dtype"),
        (("/../x", "float32", (1,)), UnsafeFile, r"'\.\.'"),
        (("x", "float32", (1,)), UnsafeFile, "called 'x'"),
        (("/x" * 65, "float32", (1,)), UnsafeFile, "called"),
        (("/digests", "uint8", (1, 16)), UnsafeFile, "twice"),
        (("/x", "float32", (1,)), DamagedFile, "table of"),
    ],
)
def test_hostile_claims_are_refused(
    claim: Any, kind: type[Exception], said: str, register: Register, tmp_path: Path
) -> None:
    storage = Claims(claim)
    register({".acme": storage})
    gt.save(gt.layers.Dense(1), tmp_path / "m.acme", functions=False)
    storage.lies = True
    with pytest.raises(kind, match=said):
        gt.load(tmp_path / "m.acme")


def test_what_is_no_file_of_the_container_is_named(register: Register, tmp_path: Path) -> None:
    register({".acme": Zip()})
    for contents in (b"", b"PK nothing"):
        (tmp_path / "m.acme").write_bytes(contents)
        with pytest.raises(DamagedFile, match=r"m\.acme: it cannot be read as Zip .*BadZipFile"):
            gt.load(tmp_path / "m.acme")
    (tmp_path / "m").mkdir()
    with pytest.raises(NotAGradtapeFile, match="install the plugin that has its container"):
        gt.load(tmp_path / "m")
    with pytest.raises(FileNotFoundError, match=r"m2\.acme"):
        gt.load(tmp_path / "m2.acme")


def test_a_clash_hurts_only_its_ending(
    register: Register, model: gt.Module, tmp_path: Path
) -> None:
    register({".acme": Zip(), ".two": Zip()})
    with pytest.raises(gt.errors.PluginError, match=r"both provide the storage '\.two'"):
        register({".two": Zip()})
    gt.save(model, tmp_path / "m.acme")


# -- files that are folders ------------------------------------------------------------------------


class OpenedFolder(Stored):
    def __init__(self, path: str) -> None:
        self.folder = Path(path)
        self.attributes = json.loads((self.folder / "attributes").read_text())

    def declared(self) -> Iterator[tuple[str, str, tuple[int, ...]]]:
        for file in self.folder.rglob("*.npy"):
            array = np.load(file, mmap_mode="r")
            yield f"/{file.relative_to(self.folder).as_posix()[:-4]}", array.dtype.name, array.shape

    def read(self, path: str) -> np.ndarray[Any, Any]:
        found: np.ndarray[Any, Any] = np.load(self.folder / f"{path[1:]}.npy")
        return found


class Folder(Storage):
    """A folder of NumPy's files."""

    name = "Folder"
    is_folder = True

    def write(
        self,
        path: str,
        attributes: Mapping[str, str],
        arrays: Mapping[str, Any],
        compression: str | None = None,
    ) -> None:
        (Path(path) / "attributes").write_text(json.dumps(attributes))
        for name, array in arrays.items():
            file = Path(path) / f"{name[1:]}.npy"
            file.parent.mkdir(parents=True, exist_ok=True)
            np.save(file, array)

    def read(self, path: str) -> Stored:
        return OpenedFolder(path)


@pytest.mark.parametrize("exchanged", [True, False])
def test_a_folder_is_replaced_completely(
    exchanged: bool,
    register: Register,
    model: gt.Module,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not exchanged:  # as on systems that cannot
        monkeypatch.setattr(replace, "_exchanged", lambda new, target: False)
    register({".acme": Folder()})
    path = tmp_path / "m.acme"
    gt.save(gt.layers.Dense(1), path, functions=False)
    path.chmod(0o700)
    left = f"{replace._prefix(str(path))}{'0' * 16}.tmp"  # of a save that was killed
    Path(left).mkdir()
    gt.save(model, path)
    assert gt.load(path)(X).tolist() == model(X).tolist()
    assert gt.saving.verify(path).ok
    assert path.stat().st_mode & 0o777 == 0o700
    assert os.listdir(tmp_path) == ["m.acme"]
    (tmp_path / "link.acme").symlink_to(path)
    gt.save(gt.layers.Dense(1), tmp_path / "link.acme", functions=False)
    assert (tmp_path / "link.acme").is_symlink()
    assert type(gt.load(path)) is gt.layers.Dense


def test_a_folder_or_a_file_in_the_way_is_named(
    register: Register, model: gt.Module, tmp_path: Path
) -> None:
    register({".acme": Folder()})
    (tmp_path / "file.acme").write_text("mine")
    with pytest.raises(
        SaveError, match=r"file\.acme cannot be written: it is a file, not a folder"
    ):
        gt.save(model, tmp_path / "file.acme")
    (tmp_path / "other.acme").mkdir()
    (tmp_path / "other.acme" / "attributes").write_text("{}")
    with pytest.raises(SaveError, match=r"holds something else than a file of gradtape"):
        gt.save(model, tmp_path / "other.acme")
    assert (tmp_path / "other.acme" / "attributes").read_text() == "{}"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_links_and_pipes_in_a_folder_are_refused(
    register: Register, model: gt.Module, tmp_path: Path
) -> None:
    register({".acme": Folder()})
    for place in ("pipe", "link"):
        path = tmp_path / f"{place}.acme"
        gt.save(model, path)
        if place == "pipe":
            os.mkfifo(path / "pipe.npy")
        else:
            (path / "link.npy").symlink_to("/etc/hostname")
        with pytest.raises(UnsafeFile, match=rf"{place}\.npy is neither a file nor a folder"):
            gt.load(path)
