"""The script that draws the pictures of the page on derivatives."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

mpl = pytest.importorskip("matplotlib", reason="Matplotlib is not installed")
PICTURES = Path(__file__).parents[2] / "docs" / "pictures"


def test_the_script_draws_the_pictures_that_the_page_shows(tmp_path: Path) -> None:
    runpy.run_path(str(PICTURES / "draw_derivatives.py"))["main"](tmp_path)
    drawn = sorted(path.name for path in tmp_path.iterdir())
    assert drawn == ["band.png", "hessian.png", "patches.png"]
    page = (PICTURES.parent / "derivatives.md").read_text(encoding="utf-8")
    for name in drawn:
        assert f"](pictures/{name})" in page
        assert (PICTURES / name).stat().st_size < 60_000
