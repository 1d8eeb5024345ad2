"""The script that draws the pictures of the guides."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

mpl = pytest.importorskip("matplotlib", reason="Matplotlib is not installed")
PICTURES = Path(__file__).parents[2] / "docs" / "pictures"


def test_the_script_draws_the_pictures_that_the_guides_show(tmp_path: Path) -> None:
    runpy.run_path(str(PICTURES / "draw.py"))["main"](tmp_path)
    drawn = sorted(path.name for path in tmp_path.iterdir())
    assert drawn == ["batch_patches.png", "newton_step.png", "sigmoid_slope.png"]
    guides = "".join(p.read_text(encoding="utf-8") for p in (PICTURES.parent / "guides").iterdir())
    for name in drawn:
        assert f"](../pictures/{name})" in guides
        assert (PICTURES / name).stat().st_size < 60_000


def test_pages_that_draw_show_what_they_draw() -> None:
    drawing = []
    for page in sorted((PICTURES.parent / "guides").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        name = f"{page.stem}.png"
        if f'savefig("{name}"' in text:
            drawing.append(page.stem)
            assert f"](../pictures/{name})" in text
            assert (PICTURES / name).stat().st_size < 60_000
    assert drawing == ["gan", "images", "physics", "sequences", "tabular", "vae"]
