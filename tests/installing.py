"""Installing distributions for real, without a network, into environments of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest


class Environment:
    """A fresh virtual environment that sees what is installed here, gradtape included."""

    def __init__(self, folder: Path) -> None:
        pytest.importorskip("pip", reason="pip is not installed: python -m ensurepip")
        pytest.importorskip(
            "setuptools", reason='setuptools is not installed: pip install "gradtape[test]"'
        )
        venv.create(folder, symlinks=os.name != "nt")
        self.folder = folder / ("Scripts" if os.name == "nt" else "bin")
        (site,) = folder.rglob("site-packages")
        here = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
        lines = [f"import site; site.addsitedir({path!r})" for path in here]
        (site / "here.pth").write_text("\n".join(lines))

    def run(self, *arguments: str, cwd: Path | None = None) -> str:
        """Run its Python in a folder and return what it prints."""
        done = subprocess.run(
            [str(self.folder / "python"), *arguments],
            capture_output=True,
            text=True,
            timeout=240,
            cwd=cwd or self.folder,
            env={**os.environ, "PYTHONSAFEPATH": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        )
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def pip(self, *arguments: str, cwd: Path | None = None) -> str:
        """Run pip for it."""
        return self.run(
            *("-m", "pip", "--disable-pip-version-check", "--quiet", *arguments), cwd=cwd
        )

    def install(self, project: Path, editable: bool = False) -> None:
        """Install a distribution from its folder; one that is not editable from a copy of it."""
        options = ("--no-deps", "--no-index", "--no-build-isolation")
        if not editable:
            source = self.folder.parent / "source" / project.name
            shutil.rmtree(source, ignore_errors=True)
            project = shutil.copytree(project, source)
        self.pip("install", *options, *(["--editable"] if editable else []), str(project))
