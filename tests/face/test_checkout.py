"""A checkout beside a program is imported instead of what is installed: all of it works."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from gradtape.public import NEEDED

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs symbolic links")


@pytest.fixture
def beside(tmp_path: Path) -> Path:
    """Return a folder with a checkout in it, and no metadata of gradtape."""
    (tmp_path / "gradtape").symlink_to(ROOT, target_is_directory=True)
    (tmp_path / "gradtape-0.0.0.dist-info").mkdir()  # hides what is installed
    return tmp_path


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    surroundings = {k: v for k, v in os.environ.items() if k != "PYTHONSAFEPATH"}
    options = {"cwd": folder, "env": surroundings, "timeout": 120}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, **options)


#: Forgets editable installs, which would find some packages elsewhere.
ALONE = "import sys; sys.meta_path = [x for x in sys.meta_path if 'Editable' not in repr(x)]\n"


def test_a_checkout_that_is_not_installed_works(beside: Path) -> None:
    code = (
        "import gradtape.linalg\n"
        "from gradtape.errors import PluginError\n"
        "import gradtape as gt\n"
        "assert gt.nn.relu(-1.0).item() == 0.0\n"
        "assert gt.layers.Dense(2)(gt.random.normal((1, 3))).shape == (1, 2)\n"
        "assert not [x for x in gt.registry().plugins if x.problem]\n"
        "print(gt.__file__, gt.random.__file__, sep='\\n')"
    )
    done = run(beside, "-W", "error", "-c", ALONE + code)
    assert done.returncode == 0, done.stderr
    assert all(line.startswith(f"{beside}{os.sep}") for line in done.stdout.splitlines())


def test_its_command_works(beside: Path) -> None:
    done = run(beside, "-m", "gradtape", "doctor", "--no-measure")
    told = " ".join(done.stdout.split())
    assert f"pip does not know the gradtape in {beside / 'gradtape'}" in told
    assert f"Run pip install {beside / 'gradtape'}." in told


def test_a_folder_that_is_run_as_a_program_says_how(beside: Path) -> None:
    done = run(beside, "gradtape", "doctor")
    assert done.returncode == 1
    assert "run 'python -m gradtape' in" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("missing", ["numpy", "pluggy", "xxhash"])
def test_a_library_that_is_missing_is_named_with_what_to_run(missing: str, beside: Path) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None\nimport gradtape as gt\ngt.ones(2)"
    done = run(beside, "-c", code)
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ModuleNotFoundError: ")
    assert last.endswith(f"gradtape needs it: run pip install {beside / 'gradtape'}")
    assert missing in last


def test_the_libraries_that_are_needed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert sorted(x.partition(">")[0] for x in project["dependencies"]) == sorted(NEEDED)
