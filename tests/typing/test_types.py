"""Type checkers understand a user's program, and find what is wrong in it: see user_program.py."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from without_extras import lay_out

import gradtape as gt

PACKAGE = Path(gt.__file__).parent


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """The program where users have theirs: in the checkout it would count as a part of it."""
    copy = tmp_path / "user_program.py"
    copy.write_text(Path(__file__).with_name(copy.name).read_text("utf-8"), encoding="utf-8")
    return copy


@pytest.fixture(scope="module")
def search_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder in which a type checker finds the package, empty if it does by itself.

    The root of the repository is the package, so in an editable install an import hook finds it.
    Type checkers know no hooks: they are given the layout of a wheel, made of links.
    """
    if PACKAGE.name == "gradtape":
        return ""
    site = tmp_path_factory.mktemp("site")
    lay_out(site)
    return str(site)


def run(module: str, *arguments: str, cwd: Path, mypy_path: str = "") -> str:
    """Run a checker, and return what it says if it finds anything."""
    if importlib.util.find_spec(module) is None:
        pytest.skip(f'{module} is not installed: pip install "gradtape[test]"')
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=cwd,
        env={**os.environ, "MYPYPATH": mypy_path},
        capture_output=True,
        text=True,
    )
    return done.stdout + done.stderr if done.returncode else ""


def test_mypy_understands_a_program(search_path: str, program: Path, tmp_path: Path) -> None:
    said = run(
        "mypy",
        # an unused comment that ignores an error is an error
        "--strict",
        "--config-file=",
        "--follow-imports=silent",
        f"--cache-dir={tmp_path / 'cache'}",
        str(program),
        cwd=tmp_path,
        mypy_path=search_path,
    )
    assert not said, said


def test_pyright_understands_a_program(search_path: str, program: Path, tmp_path: Path) -> None:
    settings = {
        "include": [str(program)],
        "extraPaths": [search_path] if search_path else [],
        "typeCheckingMode": "standard",
        "enableTypeIgnoreComments": False,
        "reportUnnecessaryTypeIgnoreComment": "error",
    }
    config = tmp_path / "pyrightconfig.json"
    config.write_text(json.dumps(settings), encoding="utf-8")
    said = run(
        "basedpyright", "--project", str(config), "--pythonpath", sys.executable, cwd=tmp_path
    )
    assert not said, said
