"""Where no Python can be started, nothing else is: files that need one say so."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import gradtape as gt
from gradtape.layers import Dense
from gradtape.saving import LoadError
from gradtape.saving.container import child


@pytest.fixture
def keras(tmp_path: Path) -> Path:
    with h5py.File(tmp_path / "k.weights.h5", "w") as file:
        file["layers/dense/vars/0"] = np.ones((2, 2), "f4")
    return tmp_path / "k.weights.h5"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """An application that leaves a trace if it is started."""
    path = tmp_path / "application"
    path.write_text(f"#!/bin/sh\ntouch {tmp_path / 'started'}\n")
    path.chmod(0o755)
    return path


def model() -> gt.Module:
    made = gt.layers.Sequential([Dense(2, use_bias=False)])
    made(gt.ones((1, 2)))
    return made


@pytest.mark.parametrize(
    ("executable", "frozen", "reason"),
    [
        (None, False, "sys.executable is empty"),
        ("", False, "sys.executable is empty"),
        ("/nowhere/python3", False, "is not an executable file"),
        ("PROGRAM", False, "is another program, which embeds Python"),
        ("PROGRAM", True, "is a frozen application .*, which would start again"),
    ],
)
def test_no_other_program_is_started(
    executable: Any,
    frozen: bool,
    reason: str,
    keras: Path,
    program: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = str(program) if executable == "PROGRAM" else executable
    gt.save(model(), program.parent / "m.h5")
    monkeypatch.setattr(sys, "executable", path)
    monkeypatch.setattr(sys, "frozen", frozen, raising=False)
    with pytest.raises(
        LoadError, match=f"{keras.name}: .*cannot be started: .*{reason}.*; set sys"
    ):
        model().load_weights(keras)
    assert gt.saving.verify(program.parent / "m.h5").ok  # here, with estimates for limits
    assert not (program.parent / "started").exists()


@pytest.mark.parametrize(
    "name", ["python", "python3.12", "PYTHON.EXE", "pypy3", "mayapy", "hython"]
)
@pytest.mark.parametrize("frozen", [False, True])
def test_pythons_are_recognised_by_their_names(
    name: str, frozen: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / name
    path.touch(0o755)
    monkeypatch.setattr(sys, "executable", str(path))
    monkeypatch.setattr(sys, "frozen", frozen, raising=False)
    assert bool(child.no_python()) == (frozen and name in ("mayapy", "hython"))


def test_a_missing_temporary_folder_is_named(
    keras: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(LoadError, match=r"k\.weights\.h5: .*temporary folder .*set TMPDIR"):
        model().load_weights(keras)
