"""``gradtape tutorial``: the guides as notebooks, whose cells are what test_docs.py runs."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from gradtape.cli import main, tutorial

nbformat = pytest.importorskip("nbformat", reason=tutorial.INSTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tutorial") / "mine"
    assert main(["tutorial", str(folder)]) == 0
    return folder


def test_each_guide_is_a_notebook_in_reading_order(folder: Path) -> None:
    names = [path.stem.partition("-")[2] for path in sorted(folder.glob("*.ipynb"))]
    assert names[:3] == ["first-gradients", "whole-model", "your-own-parts"]
    assert sorted(names) == sorted(
        path.stem for path in tutorial.GUIDES.glob("*.md") if path.name != "README.md"
    )


def test_the_cells_are_the_blocks_of_the_page(folder: Path) -> None:
    for path in sorted(folder.glob("*.ipynb")):
        made = nbformat.read(path, as_version=4)
        nbformat.validate(made)
        page = (tutorial.GUIDES / f"{path.stem.partition('-')[2]}.md").read_text("utf-8")
        blocks = [match[2].rstrip() for match in tutorial.BLOCK.finditer(page)]
        code = [cell for cell in made.cells if cell.cell_type == "code"]
        assert [cell.source for cell in code] == blocks
        assert not any(cell.outputs for cell in code)
        text = "\n".join(cell.source for cell in made.cells if cell.cell_type == "markdown")
        assert "```python" not in text
        for _, target in tutorial.LINK.findall(text):
            assert target.startswith("#") or (folder / target).exists(), target


def test_what_was_changed_is_not_overwritten(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = min(folder.glob("*.ipynb"))
    before = first.read_bytes()
    first.write_text("{}")
    assert main(["tutorial", str(folder)]) == 1
    assert "--overwrite" in capsys.readouterr().err
    assert first.read_text() == "{}"
    assert main(["tutorial", str(folder), "--overwrite"]) == 0
    assert first.read_bytes() == before  # and they are the same each time


def test_what_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        tutorial, "find_spec", lambda name: None if name == "jupyterlab" else find_spec(name)
    )
    assert main(["tutorial", str(tmp_path / "new"), "--open"]) == 1
    assert 'jupyterlab: pip install "gradtape[notebooks]"' in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_a_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ipykernel", reason=tutorial.INSTALL)
    pytest.importorskip("nbclient", reason=tutorial.INSTALL)
    guides = tmp_path / "guides"
    guides.mkdir()
    (guides / "README.md").write_text("[One](one.md)")
    (guides / "one.md").write_text(
        "# One\n\n```python\nimport gradtape as gt\n\ngt.grad(gt.square)(3.0).item()\n```\n"
    )
    monkeypatch.setattr(tutorial, "GUIDES", guides)
    (path,) = tutorial.write_notebooks(tmp_path / "out", run=True)
    cell = nbformat.read(path, as_version=4).cells[1]
    assert cell.outputs[0].data["text/plain"] == "6.0"
