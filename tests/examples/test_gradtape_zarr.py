"""The example of a container in a distribution of its own: it is installed, its tests pass."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from installing import Environment

PROJECT = Path(__file__).parents[2] / "docs" / "examples" / "gradtape-zarr"


def test_zarr_is_a_container_by_a_page_of_code(tmp_path: Path) -> None:
    pytest.importorskip("zarr", reason="to be installed: pip install zarr")
    environment = Environment(tmp_path / "environment")
    environment.install(PROJECT)
    told = environment.run("-m", "gradtape", "plugins")
    assert re.search(r"^zarr +gradtape-zarr +0\.1\.0 +ready", told, re.MULTILINE)
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    environment.run("-c", re.findall(r"```py\n(.*?)```", readme, re.DOTALL)[0], cwd=tmp_path)
    told = environment.run("-m", "pytest", "-q", "-p", "no:cacheprovider", str(PROJECT / "tests"))
    assert re.search(r"^\d+ passed", told.splitlines()[-1]), told


def test_the_container_is_a_page_of_code() -> None:
    (source,) = PROJECT.glob("src/*/__init__.py")
    assert len(source.read_text(encoding="utf-8").splitlines()) <= 80
