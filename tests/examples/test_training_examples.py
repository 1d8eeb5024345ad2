"""Ten programs that train: each is short, runs by itself, and asserts what it shows."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "examples" / "training"
FILES = sorted(FOLDER.glob("*.py"))


def test_the_page_names_every_program() -> None:
    page = (FOLDER.parent / "README.md").read_text(encoding="utf-8")
    assert len(FILES) == 10
    assert all(f"(training/{path.name})" in page for path in FILES)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_program_is_short_and_runs(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 25
    assert "\nassert " in text
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out
