"""The documentation site, as far as it can be checked without building it (make docs builds it)."""

from __future__ import annotations

import re
import runpy
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SITE = ROOT / "docs" / "site"
NAV = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2]
PAGE = re.compile(r"^ *- (?:[^:\n]+: )?(\S+\.md)$", re.MULTILINE)


def moved() -> dict[str, str]:
    """Return the pages that come from outside docs/, or have another name there."""
    text = (SITE / "hooks.py").read_text("utf-8")
    return dict(re.findall(r'^    "(\S+\.md)": "(\S+\.md)",$', text, re.MULTILINE))


def test_each_page_is_in_the_navigation_once() -> None:
    pages = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")}
    pages = {path for path in pages if not path.startswith("docs/changes/")}  # not pages
    pages |= moved().keys()
    expected = {moved().get(path, path.removeprefix("docs/")) for path in pages}
    found = Counter(PAGE.findall(NAV))
    assert found.keys() == expected
    assert set(found.values()) == {1}


def test_the_configuration_names_files_that_a_clone_has() -> None:
    settings = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[0]
    named = re.findall(r"\bdocs/[\w/.-]+", re.sub("#.*", "", settings))
    assert named
    for path in (ROOT / name for name in named):
        # a clone has no empty folders
        assert path.is_file() or any(x.is_file() for x in path.rglob("*")), path


def test_every_public_name_has_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("griffe", reason='pip install "gradtape[docs]"')
    monkeypatch.syspath_prepend(str(SITE))
    import pages  # type: ignore[import-not-found]
    import public_names  # type: ignore[import-not-found]

    root = public_names.build()
    found = {path for path, _ in public_names.every(root)}
    for path, item in public_names.every(root):
        if item.is_class:
            found |= {f"{path}.{name}" for name in item.members if name != "__init__"}
    assert found == public_names.paths()
    told = "".join(page.text() for page in pages.pages(root))
    listed = set(re.findall(r"^::: (\S+)$", told, re.MULTILINE))
    assert listed == {path for path, item in public_names.every(root) if not item.is_module}
    for name in ("pages", "public_names"):
        sys.modules.pop(name)


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    broken = runpy.run_path(str(SITE / "check_links.py"))["broken"]
    (tmp_path / "a.html").write_text(
        '<h1 id="top">A</h1><a href="b.html#there">1</a><a href="#top">2</a><a href="c.png">3</a>'
        '<a href="#/view">0</a><a href="b.html#gone">4</a><a href="https://example.org/x">5</a><pre>[a][b]</pre>'
    )
    (tmp_path / "b.html").write_text('<p id="there">[<code>gt.sin</code>][gradtape.sin]</p>')
    followed, bad = broken(tmp_path)
    assert followed == 5
    assert bad == ["b.html: ][gradtape.sin]", "a.html: b.html#gone", "a.html: c.png"]
