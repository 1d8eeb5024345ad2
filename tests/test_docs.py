"""Every Python block of the README and of docs/ runs, each page in one namespace of its own."""

from __future__ import annotations

import ast
import re
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

import gradtape as gt

ROOT = Path(__file__).parents[1]
PAGES = [  # the files of docs/changes become parts of CHANGELOG.md
    ROOT / "README.md",
    *(p for p in sorted((ROOT / "docs").rglob("*.md")) if p.parent.name != "changes"),
]
BLOCK = re.compile(r"^(?:<!-- needs: (.*?) -->\n)?```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
OTHERS = (
    "CHANGELOG.md",
    "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "docs/changes/README.md",
    "tests/saving/golden/README.md",
    "tests/saving/releases/README.md",
    *(path.relative_to(ROOT).as_posix() for path in sorted(ROOT.glob("*/README.md"))),
)
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
# names and the file that defines them: `save` in [save.py](../saving/writing/save.py)
DEFINED = re.compile(r"((?:`[\w.]+`(?:,| and)?\s+)+)in\s+\[[^\]]+\]\(([^)]+\.py)\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_code_of_a_page_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = page.read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    module = types.ModuleType(f"page_{page.stem}")
    monkeypatch.setitem(__import__("sys").modules, module.__name__, module)
    for match in BLOCK.finditer(text):
        for library in (match[1] or "").split():
            pytest.importorskip(library, reason=f"from here on the page needs {library}")
        line = text[: match.start(2)].count("\n")
        # the line numbers of a traceback are those of the page
        code = compile("\n" * line + match[2], str(page), "exec")
        exec(code, vars(module))
    gt.distributed.shutdown()  # of a group that a page has joined


@pytest.mark.parametrize(
    "page",
    [*PAGES, *(ROOT / name for name in OTHERS)],
    ids=lambda page: page.relative_to(ROOT).as_posix(),
)
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    for target, anchor in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8"))):
        linked = page.parent / target if target else page
        assert linked.exists(), target
        assert not anchor or anchor in anchors(linked), f"{target}#{anchor}"


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    titles = HEADING.findall(re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def definitions(body: list[ast.stmt], within: str = "") -> Iterator[str]:
    """Give the names that a file defines; ``Class.method`` for those inside another."""
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{within}{node.name}"
            yield from definitions(node.body, f"{within}{node.name}.")
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (f"{within}{x.id}" for x in targets if isinstance(x, ast.Name))


def test_files_define_what_pages_say_that_they_define() -> None:
    found = 0
    for page in [*PAGES, *(ROOT / name for name in OTHERS)]:
        for names, target in DEFINED.findall(page.read_text(encoding="utf-8")):
            file = page.parent / target
            known = set(definitions(ast.parse(file.read_text(encoding="utf-8")).body))
            named = set(re.findall(r"`([\w.]+)`", names))
            assert named <= known, f"{page.name}: {target} defines no {named - known}"
            found += len(named)
    assert found > 40


def test_each_package_has_a_page() -> None:
    folders = [x for x in ROOT.iterdir() if x.is_dir() and any(x.glob("*/__init__.py"))]
    packages = {x.name for x in [*folders, ROOT / "data"]} - {"build", "docs", "tests"}
    assert not [x for x in sorted(packages) if not (ROOT / x / "README.md").exists()]


def test_plugin_authors_see_no_internal_imports() -> None:
    pages = [ROOT / "docs" / name for name in ("plugins.md", "testing.md", "derivatives.md")]
    pages += [*(ROOT / "docs" / "plugins").glob("*.md")]
    pages += [*(ROOT / "docs" / "examples").glob("gradtape-*/**/*.py")]
    internal = re.compile(r"(from|import) gradtape\.core\b")
    assert [str(page) for page in pages if internal.search(page.read_text("utf-8"))] == []


def test_the_readme_has_code() -> None:
    assert len(BLOCK.findall(PAGES[0].read_text(encoding="utf-8"))) >= 2
