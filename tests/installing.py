"""Installing distributions for real, without a network, into environments of their own."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

#: Hides top-level modules and distributions from an environment: it is imported at start.
HIDING = """
import re, sys
from importlib.machinery import PathFinder


class Bare(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if path is None and name in {modules}:
            return None
        return super().find_spec(name, path, target)

    @classmethod
    def find_distributions(cls, *context):
        for found in super().find_distributions(*context):
            if re.sub(r"[-_.]+", "-", found.metadata["Name"]).lower() not in {distributions}:
                yield found


sys.meta_path[:] = [Bare if finder is PathFinder else finder for finder in sys.meta_path]
"""


def normalised(name: str) -> str:
    """Return the name of a distribution as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def required(name: str, extras: tuple[str, ...] = (), found: set[str] | None = None) -> set[str]:
    """Return a distribution and everything that it needs, as far as it is installed."""
    from packaging.requirements import Requirement

    found = set() if found is None else found
    found.add(normalised(name))
    try:
        needs = importlib.metadata.requires(name) or []
    except importlib.metadata.PackageNotFoundError:
        return found
    for need in map(Requirement, needs):
        wanted = need.marker is None or any(
            need.marker.evaluate({"extra": extra}) for extra in ("", *extras)
        )
        if wanted and normalised(need.name) not in found:
            required(need.name, tuple(need.extras), found)
    return found


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

    def see_only(self, needed: set[str]) -> None:
        """Hide all distributions except these, as in an environment that has no others."""
        here = importlib.metadata.packages_distributions()
        modules = {
            module
            for module, whose in here.items()
            if not needed.intersection(map(normalised, whose))
        }
        hidden = {normalised(name) for names in here.values() for name in names} - needed
        (site,) = self.folder.parent.rglob("site-packages")
        text = HIDING.replace("{modules}", repr(modules)).replace("{distributions}", repr(hidden))
        (site / "hiding.py").write_text(text)
        (site / "hiding.pth").write_text("import hiding")
