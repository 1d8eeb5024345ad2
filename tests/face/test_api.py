"""What is public is written down, and so is what is installed."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import gradtape as gt

ROOT = Path(__file__).parents[2]


def test_the_written_interface_is_up_to_date() -> None:
    script = ROOT / "docs" / "make_api.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr or "run python docs/make_api.py, and look at the diff"


def test_the_stub_goes_where_the_package_goes() -> None:
    written = (ROOT / "__init__.pyi").read_text(encoding="utf-8")
    assert Path(gt.__file__).with_suffix(".pyi").read_text(encoding="utf-8") == written


def test_every_folder_with_modules_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    setuptools = pytest.importorskip("setuptools")
    given: dict[str, Any] = {}
    monkeypatch.setattr(setuptools, "setup", given.update)
    monkeypatch.chdir(ROOT)
    runpy.run_path("setup.py", run_name="__main__")
    folders = {
        package: ROOT / given["package_dir"].get(package, package.replace(".", "/")[9:])
        for package in given["packages"]
    }
    left_out = {"docs", "tests", "build", "dist"}
    found = {
        path.parent
        for path in ROOT.rglob("*.py")
        if not any(part.startswith(".") for part in path.relative_to(ROOT).parts)
        and path.relative_to(ROOT).parts[0] not in left_out
    }
    assert set(folders.values()) == found | {ROOT / "docs" / "guides"}  # for the tutorial
    assert folders["gradtape.nn"] == ROOT / "namespaces" / "nn"
