"""Saves that are really killed, and file systems that are really full."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import full_disks
import killed_saves
import pytest

import gradtape as gt
from gradtape.saving import SaveError
from gradtape.saving.container import replace


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("way", ["unnamed", "named"])
def test_a_killed_save_leaves_a_whole_file_and_the_next_leaves_no_litter(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "named":
        monkeypatch.setattr(replace._New, "_without_name", killed_saves.without_unnamed_files())
    elif sys.platform != "linux":
        pytest.skip("needs unnamed files")
    counts = killed_saves.kill_saves(tmp_path, 8)
    assert counts["whole"] == 8
    assert counts["litter after the next save"] == 0
    if way == "unnamed":
        # between being linked and replacing another a file has a name of its own, and is whole
        assert counts["half-written after the kill"] == 0


def may_mount(folder: Path) -> bool:
    """Whether a process may have a file system of its own here."""
    command = ["unshare", "-Urm", "mount", "-t", "tmpfs", "tmpfs", str(folder)]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def test_a_full_disk_leaves_the_old_file_and_says_what_is_needed(tmp_path: Path) -> None:
    if not may_mount(tmp_path):
        pytest.skip("no file system can be mounted here")
    script = Path(full_disks.__file__)
    done = subprocess.run(
        ["unshare", "-Urm", sys.executable, str(script), str(tmp_path), "--mount"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "limits": 50,
        "exactly as many bytes free": 50,
        "refused": 45,
        "refused in words": 45,
        "old file intact": 45,
        "space lost": 0,
        "saved": 5,
        "new file whole": 5,
        "litter": 0,
        "saved when there is room again": 1,
    }


@pytest.mark.skipif(os.name != "posix", reason="limits are POSIX's")
def test_a_limit_on_the_size_of_files_is_an_error_too(tmp_path: Path) -> None:
    import resource

    path = tmp_path / "model.h5"
    gt.save(full_disks.model_of(10, 1.0), path)
    before = path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(SaveError, match=r"File too large: \d+,\d+ bytes are needed"):
            gt.save(full_disks.model_of(100_000, 1.0), path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model.h5"]
