"""The entry points that are read without ``importlib.metadata`` are those that it reads."""

from __future__ import annotations

import importlib.metadata
import random
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from gradtape.core.registry import entry_points

GROUPS = ("gradtape", "gradtape.storages")


def wanted(group: str) -> bool:
    return group in GROUPS


def quick(monkeypatch: Any, path: list[str]) -> Any:
    """Return what the quick reader finds on a path, as if the library had not been imported."""
    monkeypatch.setattr(sys, "path", path)
    monkeypatch.delitem(sys.modules, "importlib.metadata")
    finders = [x for x in sys.meta_path if getattr(x, "__name__", "") == "PathFinder"]
    monkeypatch.setattr(sys, "meta_path", finders)
    found = entry_points.points_in_folders(wanted)
    monkeypatch.undo()
    return found


def library(monkeypatch: Any, path: list[str]) -> set[Any]:
    monkeypatch.setattr(sys, "path", path)
    every = importlib.metadata.entry_points()
    found = {(x.group, x.name, x.value) for group in GROUPS for x in every.select(group=group)}
    monkeypatch.undo()
    return found


def distribution(folder: Path, name: str, text: str | None, ending: str = "dist-info") -> None:
    made = folder / f"{name}.{ending}"
    made.mkdir(parents=True, exist_ok=True)
    (made / "METADATA").write_text("Metadata-Version: 2.1\nName: x\nVersion: 1\n")
    if text is not None:
        (made / "entry_points.txt").write_text(text)


@pytest.mark.parametrize("seed", range(20))
def test_it_finds_what_the_library_finds(seed: int, tmp_path: Path, monkeypatch: Any) -> None:
    chosen = random.Random(seed)
    lines = ["a = b", " c=d:e ", "# no = line", "", "f = g : h [extra]", "x=y=z", "w = a.b:c.d"]
    groups = ["[gradtape]", "[gradtape.storages]", "[console_scripts]", " [gradtape] ", "[gradtap]"]
    names = ["acme-1.0", "Acme-2.0", "ac_me-1", "ac.me-2", "plain", "other-1.0-py3"]
    path = [str(tmp_path / folder) for folder in "abc"]
    for folder in path[:2]:
        for name in chosen.sample(names, 3):
            text = "".join(
                "\n".join([chosen.choice(groups), *chosen.choices(lines, k=3)]) + "\n"
                for _ in range(chosen.randrange(3))
            )
            ending = chosen.choice(["dist-info", "dist-info", "egg-info"])
            distribution(Path(folder), name, chosen.choice([text, text, None]), ending)
    found = quick(monkeypatch, path)
    assert {(x.group, x.name, x.value) for x in found} == library(monkeypatch, path)


def test_what_is_no_folder_is_left_to_the_library(tmp_path: Path, monkeypatch: Any) -> None:
    distribution(tmp_path, "acme-1.0", "[gradtape]\na = b\n")
    assert len(quick(monkeypatch, [str(tmp_path)])) == 1
    with zipfile.ZipFile(tmp_path / "more.zip", "w"):
        pass
    assert quick(monkeypatch, [str(tmp_path), str(tmp_path / "more.zip")]) is None
    distribution(tmp_path, "broken-1.0", "[gradtape]\nno value\n")
    assert quick(monkeypatch, [str(tmp_path)]) is None


def test_a_point_loads_what_it_names() -> None:
    point = entry_points.DeclaredPoint("x", "os:path.join [extra]", "gradtape")
    assert (point.module, point.load()) == ("os", __import__("os").path.join)
    assert not entry_points.DeclaredPoint("x", "two words", "gradtape").is_well_formed


#: What the first op does not need, and what takes long to import.
HEAVY = (
    "importlib.metadata", "email", "zipfile", "socket", "secrets", "hashlib", "fractions",
    "difflib", "html", "random", "shutil", "sysconfig", "traceback", "tempfile", "csv", "tomllib",
    "numpy.ma", "numpy.random", "numpy.typing", "numpy.fft", "numpy.testing",
    "pathlib", "urllib.parse", "dataclasses",
    "gradtape.layers", "gradtape.training", "gradtape.saving", "gradtape.cli",
    "gradtape.core.functions.function", "gradtape.core.graphs", "gradtape.core.module",
    "gradtape.core.transforms", "gradtape.plugins.ops.linalg", "gradtape.plugins.ops.network",
    "gradtape.plugins.ops.random", "gradtape.plugins.numpy.convolution",
    "gradtape.plugins.jax.joining",
)  # fmt: skip


def test_the_first_op_imports_nothing_heavy() -> None:
    code = (
        "import sys, numpy\n"
        "before = set(sys.modules)\n"
        "import gradtape as gt\n"
        "assert (gt.constant([1.0, 2.0]) * 2).tolist() == [2.0, 4.0]\n"
        f"print(sorted(({{*sys.modules}} - before) & {set(HEAVY)!r}))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/"
    )
    assert run.stdout.strip() == "[]"
