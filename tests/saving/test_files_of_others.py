"""What a file is that is none of gradtape's, and what changed one: said by its errors."""

from __future__ import annotations

import gzip
import pickle
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import gradtape as gt
from gradtape.layers import Dense
from gradtape.saving import DamagedFile, LoadError, NotAGradtapeFile, SaveError
from gradtape.training import Checkpoint, fit


@pytest.fixture
def model() -> gt.Module:
    model = Dense(2)
    model(gt.ones((1, 3)))
    return model


@pytest.fixture
def saved(model: gt.Module, tmp_path: Path) -> Path:
    gt.save(model, tmp_path / "m.h5")
    return tmp_path / "m.h5"


def readers(model: gt.Module) -> dict[str, Callable[[Path], Any]]:
    return {
        "load": gt.load,
        "load_weights": model.load_weights,
        "restore": Checkpoint(model=model).restore,
        "inspect": gt.saving.inspect,
        "verify": gt.saving.verify,
    }


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it is empty"),
        (b"\0" * 900, "it begins with zeros"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12\n", "git lfs pull"),
        (b"\n<!DOCTYPE html><html></html>", "a web page or the answer of a server"),
        (b"<?xml version='1.0'?><Error/>", "a web page or the answer of a server"),
        (b'{"message": "Not Found"}', "a web page or the answer of a server"),
        (gzip.compress(b"\x89HDF\r\n\x1a\n", mtime=0), "it is compressed"),
    ],
)
def test_what_a_file_seems_to_be_is_said(
    content: bytes, message: str, model: gt.Module, tmp_path: Path
) -> None:
    (tmp_path / "m.h5").write_bytes(content)
    for read in readers(model).values():
        with pytest.raises(NotAGradtapeFile, match=message):
            read(tmp_path / "m.h5")


def test_files_of_other_kinds_are_named(model: gt.Module, tmp_path: Path) -> None:
    (tmp_path / "m.pkl").write_bytes(pickle.dumps([1]))
    np.save(tmp_path / "m.npy", np.ones(2))
    np.savez(tmp_path / "m.npz", np.ones(2))
    model.save_weights(tmp_path / "m.safetensors")
    for name, message in {
        "m.pkl": "it is a pickle",
        "m.npy": "it is an array of NumPy",
        "m.npz": "it is a zip archive",
        "m.safetensors": r"safetensors, .* gradtape\.load_weights",
        "": "a folder",
    }.items():
        with pytest.raises(NotAGradtapeFile, match=message):
            gt.load(tmp_path / name)


def test_a_part_of_a_file_is_called_so(model: gt.Module, saved: Path) -> None:
    whole = saved.read_bytes()
    for size in (3, 8, 40, 100, len(whole) // 2, len(whole) - 1):
        saved.write_bytes(whole[:size])
        for read in readers(model).values():
            with pytest.raises(LoadError, match=r"within its first bytes|did not end"):
                read(saved)
    saved.write_bytes(whole[:900] + b"\0" * (len(whole) - 900))
    with pytest.raises(DamagedFile, match="does not match its checksum"):
        gt.load(saved)
    saved.write_bytes(whole + b"\0")
    with pytest.raises(DamagedFile, match="something was added"):
        gt.load(saved)


@pytest.mark.parametrize(
    "change",
    [
        lambda file: file.attrs.update(classes=[1, 2]),
        lambda file: file["manifest"].attrs.update(note="x"),
        lambda file: file.create_dataset("labels", data=[1, 2]),
        lambda file: file.create_group("more"),
        lambda file: file["variables"].create_dataset("more", data=[1.0]),
        lambda file: file["variables/kernel"].write_direct(np.zeros((3, 2), "f4")),
    ],
)
def test_a_file_that_another_program_changed_is_called_so(
    change: Callable[[Any], Any], model: gt.Module, saved: Path
) -> None:
    with h5py.File(saved, "r+") as file:
        change(file)
    for read in (gt.load, model.load_weights, gt.saving.verify):
        with pytest.raises(LoadError, match=r"another program.* changed"):
            read(saved)


def test_what_the_container_refuses_starts_no_process(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gradtape.saving.reports.verify.run_child", None)
    saved.write_bytes(saved.read_bytes()[:-1])
    begin = time.thread_time()
    with pytest.raises(DamagedFile, match="did not end"):
        gt.saving.verify(saved)
    assert time.thread_time() - begin < 0.5


# -- attributes that are nested too deeply ---------------------------------------------------------


def nested(depth: int, last: Any, kind: Callable[[Any], Any]) -> Any:
    for _ in range(depth):
        last = kind(last)
    return last


@pytest.mark.parametrize("kind", [lambda x: [x], lambda x: {"a": x}, lambda x: (x,)])
@pytest.mark.parametrize("depth", [40, 2000])
def test_deep_attributes_are_refused_by_name(
    kind: Callable[[Any], Any], depth: int, tmp_path: Path
) -> None:
    module = gt.Module("m")
    module.settings = nested(depth, 1, kind)  # type: ignore[attr-defined]
    assert module.variables == ()
    with pytest.raises(SaveError, match=r"m\.settings\[.*nested too deeply"):
        gt.save(module, tmp_path / "m.h5")
    module.save_weights(tmp_path / "w.h5")


def test_deep_variables_and_modules_are_found_and_refused(tmp_path: Path) -> None:
    module = gt.Module("m")
    module.parts = nested(2000, gt.Variable(1.0), lambda x: [x])  # type: ignore[attr-defined]
    (variable,) = module.variables

    def inside(part: Any) -> gt.Module:
        outer = gt.Module("outer")
        outer.part = part  # type: ignore[attr-defined]
        return outer

    for deep in (module, nested(2000, module, inside)):
        assert deep.variables == (variable,)
        for action in (
            lambda: gt.save(deep, tmp_path / "m.h5"),  # noqa: B023
            lambda: deep.save_weights(tmp_path / "w.h5"),  # noqa: B023
            lambda: Checkpoint(m=deep).save(tmp_path / "c.h5"),  # noqa: B023
        ):
            with pytest.raises(SaveError, match=r"nested (too deeply|deeper)"):
                action()


# -- mappings of checkpoints -----------------------------------------------------------------------


class Net(gt.Module):
    def __init__(self, name: str) -> None:
        super().__init__()
        setattr(self, name, Dense(1))
        self.part = name

    def __call__(self, x: Any, training: bool = False) -> Any:
        return getattr(self, self.part)(x)


@pytest.mark.parametrize(
    "mapping",
    [
        {"enc": "encoder"},
        {"enc/kernel": "encoder/kernel", "enc/bias": "encoder/bias"},
        [(r"^enc/", "encoder/")],
        lambda name: name.replace("enc/", "encoder/"),
        {"model/enc": "encoder", "optimizer": None},
    ],
)
def test_a_mapping_of_a_run_has_the_names_of_its_model(mapping: Any, tmp_path: Path) -> None:
    data = np.ones((4, 2), "f4"), np.ones((4, 1), "f4")
    trained, model = Net("enc"), Net("encoder")
    model(data[0])
    fit(trained, data, loss="mse", verbose=0, checkpoint=tmp_path / "run.h5")
    model.load_weights(tmp_path / "run.h5", mapping=mapping)
    assert model.encoder.kernel.tolist() == trained.enc.kernel.tolist()
    with pytest.raises(ValueError, match="'decoder' match no name"):
        model.load_weights(tmp_path / "run.h5", mapping={"decoder": "encoder"})
