"""Files that meet plugins: careless containers and formats, names that two plugins have, limits."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rewriting import rewritten

import gradtape as gt
from gradtape.saving import (
    DamagedFile,
    FileMissing,
    MissingPlugin,
    NotAGradtapeFile,
    SaveError,
    Storage,
    UnsafeFile,
)
from gradtape.saving.container import replace

W = {"kernel": np.ones((3, 2), "f4"), "bias": np.zeros(2, "f4")}


def plugin(**hooks: Any) -> Any:
    """Return a plugin whose hooks return the given values."""
    made = {f"gradtape_{name}": gt.hookimpl(lambda x=x: x) for name, x in hooks.items()}
    return gt.register_plugin(SimpleNamespace(**made), "acme")


@pytest.fixture
def model() -> Any:
    made = gt.layers.Dense(2)
    made(gt.ones((1, 3)))
    return made


class Plain(Storage):
    """A container that does not look at files."""

    name = "Plain"

    def read(self, path: str) -> Any:
        return zipfile.ZipFile(path)


class Careless(Plain):
    def recognises(self, path: str) -> bool:
        raise KeyError(path)


@pytest.mark.parametrize("storage", [Plain, Careless])
def test_a_container_does_not_hide_what_other_files_are(
    storage: type[Storage], model: Any, tmp_path: Path
) -> None:
    (tmp_path / "a.h5").write_text("version https://git-lfs.github.com/spec/v1\n")
    model.save_weights(tmp_path / "w.safetensors")
    with plugin(storages={".plain": storage()}):
        with pytest.raises(NotAGradtapeFile, match="pointer of Git LFS"):
            gt.load(tmp_path / "a.h5")
        with pytest.raises(NotAGradtapeFile, match="pointer of Git LFS"):
            gt.load_weights(tmp_path / "a.h5", model)
        with pytest.raises(FileMissing):
            gt.load(tmp_path / "none.plain")
        assert sorted(gt.saving.read_weights(tmp_path / "w.safetensors")) == ["bias", "kernel"]
        (tmp_path / "b.plain").write_text("x")
        with pytest.raises(DamagedFile, match="cannot be read as Plain"):
            gt.load(tmp_path / "b.plain")


def first_bytes(file: Any) -> bool:
    return bool(file.read(0, 4) == b"ACME")  # of a file that may be shorter


def failing(file: Any) -> bool:
    raise KeyError("x")


@pytest.mark.parametrize(
    ("recognises", "said"), [(first_bytes, "known kind"), (failing, "cannot tell")]
)
def test_a_format_that_cannot_tell_does_not_hide_others(
    recognises: Callable[[Any], bool], said: str, model: Any, tmp_path: Path
) -> None:
    form = SimpleNamespace(recognises=recognises, read=lambda path: W)
    model.save_weights(tmp_path / "w.safetensors")
    (tmp_path / "short").write_bytes(b"ab")
    with plugin(formats={".acme.w": form}):
        assert sorted(gt.saving.read_weights(tmp_path / "w.safetensors")) == ["bias", "kernel"]
        with pytest.raises(NotAGradtapeFile, match=said):
            gt.saving.read_weights(tmp_path / "short")


@pytest.mark.parametrize(
    "metadata", [[1], 5, {"a": [1]}, {"format": 5}, {5: "x"}], ids=lambda x: str(x)
)
def test_metadata_of_a_file_that_are_no_texts(metadata: Any, model: Any, tmp_path: Path) -> None:
    (tmp_path / "x.acme.w").touch()
    with (
        plugin(formats={".acme.w": SimpleNamespace(read=lambda path: (W, metadata))}),
        pytest.raises(DamagedFile, match=r"format \.acme\.w failed .* instead of texts by name"),
    ):
        gt.load_weights(tmp_path / "x.acme.w", model)


def test_a_format_that_opens_something_else(model: Any, tmp_path: Path) -> None:
    (tmp_path / "x.acme.w").touch()
    with (
        plugin(formats={".acme.w": SimpleNamespace(open=lambda path, max_bytes: 5)}),
        pytest.raises(DamagedFile, match="it returned int instead of arrays by name"),
    ):
        gt.load_weights(tmp_path / "x.acme.w", model)


KILLED = """
import os, gradtape as gt
from types import SimpleNamespace
def write(path, arrays, metadata):
    open(path, "w").write("half")
    os.kill(os.getpid(), 9)
gt.register_plugin(SimpleNamespace(gradtape_formats=gt.hookimpl(lambda: {".acme.w": write})))
model = gt.layers.Dense(2)
model(gt.ones((1, 3)))
model.save_weights("a.acme.w")
"""


@pytest.mark.skipif(os.name == "nt", reason="kills a process")
def test_what_a_killed_format_leaves_is_removed_by_the_next_save(
    model: Any, tmp_path: Path
) -> None:
    (tmp_path / "a.acme.w").write_text("old")
    done = subprocess.run([sys.executable, "-c", KILLED], cwd=tmp_path, check=False)
    assert done.returncode == -9
    assert (tmp_path / "a.acme.w").read_text() == "old"
    with plugin(formats={".acme.w": lambda path, arrays, metadata: Path(path).write_text("new")}):
        model.save_weights(tmp_path / "a.acme.w")
    assert [x.name for x in tmp_path.iterdir()] == ["a.acme.w"]
    assert (tmp_path / "a.acme.w").read_text() == "new"


def test_an_error_of_a_formats_library_names_the_format(model: Any, tmp_path: Path) -> None:
    def write(path: str, arrays: Any, metadata: Any) -> None:
        raise OSError("no licence")

    with (
        plugin(formats={".acme.w": write}),
        pytest.raises(SaveError, match=r"function for \.acme\.w failed with OSError: no licence"),
    ):
        model.save_weights(tmp_path / "a.acme.w")
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.name == "nt", reason="folders in use cannot be removed there")
def test_a_save_that_sweeps_may_be_quicker_than_the_lock_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, swept = os.mkdir, []

    def mkdir(path: str, *rest: Any) -> None:
        make(path, *rest)
        if not swept:
            swept.append(path)
            replace._sweep(str(tmp_path / "m"))

    monkeypatch.setattr(os, "mkdir", mkdir)
    with replace.replacing_folder(str(tmp_path / "m")) as new:
        (Path(new) / "x").touch()
    assert not os.path.exists(swept[0])
    assert os.listdir(tmp_path / "m") == ["x"]


HANGING = """
import os, time, gradtape as gt
class Hanging(gt.saving.Storage):
    name = "Hanging"
    def read(self, path): time.sleep(600)
gradtape_storages = gt.hookimpl(lambda: {".hang": Hanging()})
"""


@pytest.mark.parametrize("installed", [True, False])
def test_verify_ends_a_container_that_hangs(
    installed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hanging_plugin.py").write_text(HANGING)
    if installed:
        info = tmp_path / "hanging-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: hanging\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("[gradtape.storages]\nhanging = hanging_plugin\n")
    else:
        monkeypatch.setenv("GRADTAPE_PLUGIN_MODULES", "hanging_plugin")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "m.hang").write_text("x")
    code = f"import gradtape as gt; gt.saving.verify({str(tmp_path / 'm.hang')!r}, max_seconds=4)"
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:] = filter(None, sys.path); {code}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert time.monotonic() - start < 40
    assert "UnsafeFile" in done.stderr
    assert "4" in done.stderr.splitlines()[-1]


def test_a_plugin_of_another_distribution_with_the_name_is_not_the_one(
    model: Any, tmp_path: Path
) -> None:
    gt.save(model, tmp_path / "m.h5")

    def needing(draft: Any) -> None:
        manifest = draft.json("/manifest")
        record = {"plugin": "numpy", "distribution": "acme", "version": "3.1", "ops": ["acme::f"]}
        manifest["requires"].append({**record, "modules": []})
        draft.put(manifest, "/manifest")

    path = rewritten(tmp_path / "m.h5", needing, tmp_path / "n.h5")
    with pytest.raises(MissingPlugin, match=r"plugin 'numpy' of acme 3\.1 .*pip install acme"):
        gt.load(path)


def test_a_class_that_is_no_module_is_not_called(model: Any, tmp_path: Path) -> None:
    made = []

    class Command:
        def __init__(self, **given: Any) -> None:
            made.append(given)

    gt.save(model, tmp_path / "m.h5")

    def calling(draft: Any) -> None:
        manifest = draft.json("/manifest")
        for module in manifest["modules"]:
            if module.get("class") == "layers.Dense":
                module["class"] = "acme.Command"
        manifest["requires"][0]["modules"] = []
        draft.put(manifest, "/manifest")

    path = rewritten(tmp_path / "m.h5", calling, tmp_path / "n.h5")
    with plugin(modules={"acme.Command": Command}), pytest.raises((DamagedFile, UnsafeFile)):
        gt.load(path)
    assert made == []
