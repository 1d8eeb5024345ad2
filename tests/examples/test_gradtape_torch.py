"""The example of a backend in a distribution of its own: it is installed, and its tests pass."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from installing import Environment

PROJECT = Path(__file__).parents[2] / "docs" / "examples" / "gradtape-torch"


def test_pytorchs_tensors_are_a_backend_by_a_page_of_code(tmp_path: Path) -> None:
    for module in ("torch", "array_api_compat"):
        pytest.importorskip(module, reason="to be installed: pip install torch array-api-compat")
    environment = Environment(tmp_path / "environment")
    environment.install(PROJECT)
    told = environment.run("-m", "gradtape", "plugins")
    assert re.search(r"^torch +torch \(gradtape-torch 0\.1\.0\) +yes$", told, re.MULTILINE)
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    environment.run("-c", re.findall(r"```py\n(.*?)```", readme, re.DOTALL)[0])
    told = environment.run("-m", "pytest", "-q", "-p", "no:cacheprovider", str(PROJECT / "tests"))
    assert re.search(r"^\d+ passed", told.splitlines()[-1]), told


def test_the_backend_is_a_page_of_code() -> None:
    (source,) = PROJECT.glob("src/*/__init__.py")
    assert len(source.read_text(encoding="utf-8").splitlines()) <= 100
