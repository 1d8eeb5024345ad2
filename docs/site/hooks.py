"""What MkDocs runs: pages from the whole repository, the reference, and links to source files.

A page keeps the relative links that a reader of the repository follows. They are resolved here
against the repository: to a page of the site where there is one, else to a page that shows the
source. ``check_links.py`` checks what comes out.
"""

from __future__ import annotations

import os
import posixpath
import re
import sys
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import browser
import history
import pages
import public_names
import sources
import texts
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

import gradtape as gt

ROOT = Path(__file__).resolve().parents[2]
#: Files outside docs/, or of another name there, that are pages of the site.
MOVED = {
    "README.md": "index.md",
    "docs/index.md": "start.md",
    "CHANGELOG.md": "changelog.md",
    "CODE_OF_CONDUCT.md": "code-of-conduct.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "extras/datasets/README.md": "datasets.md",
}
LINK = re.compile(r"(\]\(|(?:href|src)=\")(?![a-z]+:|#)([^)#\"\s]+)(#[^)\"\s]*)?(\)|\")")
CODE = re.compile(r"(```.*?```|`[^`\n]*`)", re.DOTALL)
HEADED = re.compile(r"^#", re.MULTILINE)
#: The page of benchmarks over commits, and where its graphs are.
HISTORY, GRAPHS = "benchmarks/history.md", "benchmarks/graphs"
#: Addresses of NumPy's list of objects, for references from signatures; looked up on request.
INVENTORIES = "GRADTAPE_INVENTORIES"

_GRAPHS_LINK = (
    "\n[Graphs of these benchmarks]({}/index.html) by asv. They need JavaScript from the web.\n"
)

_built: dict[str, Any] = {}


@event_priority(100)
def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Make the reference a part of the navigation."""
    tree = _built["tree"] = public_names.build()
    made = _built["pages"] = pages.pages(tree)
    sections: dict[str, list[Any]] = {}
    for page in made:
        sections.setdefault(page.section, []).append({page.title: page.uri})
    for item in config.nav or []:
        if "Reference" in item:
            item["Reference"] = [
                {"API reference": "reference/index.md"},
                *({name: held} for name, held in sections.items()),
                *item["Reference"],
            ]
    config.site_name = f"gradtape {gt.__version__}"
    with (ROOT / "pyproject.toml").open("rb") as file:
        addresses = tomllib.load(file)["project"].get("urls", {})
    # without an address, the header has no link: every name still shows its source on the site
    config.repo_url, config.repo_name = addresses.get("Repository"), "Repository"
    if os.environ.get(INVENTORIES):
        handlers = config.plugins["mkdocstrings"].config["handlers"]
        handlers["python"]["inventories"] = os.environ[INVENTORIES].split()
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not in docs/, the reference, and the source files that links open."""
    handler = config.plugins["mkdocstrings"].get_handler("python")
    handler._modules_collection["gradtape"] = _built["tree"]
    old = files.get_file_from_path("index.md")
    if old is not None:
        files.remove(old)
    for path, uri in MOVED.items():
        if (ROOT / path).exists():
            text = (ROOT / path).read_text("utf-8")
            files.append(File.generated(config, uri, content=text))
    for page in _built["pages"]:
        files.append(File.generated(config, page.uri, content=page.text()))
    index = pages.index(_built["tree"])
    files.append(File.generated(config, "reference/index.md", content=index))
    files.append(File.generated(config, "assets/source.css", content=sources.style()))
    graphs = _folder("graphs of benchmarks over commits", GRAPHS, history.publish, config)
    notebooks = _folder("notebooks that run in the browser", browser.PLACE, browser.build, config)
    for file in [*graphs, *notebooks]:
        files.append(file)
    wanted = {at["source"][0] for at in _sources() if at["source"]}
    for file in list(files.documentation_pages()):
        wanted |= {
            path
            for match in _links(file.content_string)
            if (path := _resolved(file.src_uri, match[2])) and _page_of(path, files) is None
        }
    for path in sorted(wanted):
        if (ROOT / path).is_dir():
            wanted |= set(sources.shown_in_folder(path))
    for path in sorted(wanted):
        files.append(File.generated(config, sources.uri(path), content=sources.page(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Make relative links of the repository links of the site."""
    here = posixpath.dirname(page.file.src_uri) or "."

    def moved(match: re.Match[str]) -> str:
        path = _resolved(page.file.src_uri, match[2])
        if path is None:
            return match[0]
        target = _page_of(path, files) or sources.uri(path)
        return f"{match[1]}{posixpath.relpath(target, here)}{match[3] or ''}{match[4]}"

    if page.file.src_uri.startswith("reference/"):
        return markdown
    if page.file.src_uri == HISTORY and files.get_file_from_path(f"{GRAPHS}/index.html"):
        markdown += _GRAPHS_LINK.format(posixpath.relpath(GRAPHS, here))
    parts = CODE.split(markdown)
    found = "".join(x if i % 2 else LINK.sub(moved, x) for i, x in enumerate(parts))
    if page.file.src_uri == "index.md":
        page.meta["lead"], found = texts.first_paragraph(found)
    return _with_try(found, page.file.src_uri, files)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let the style sheet know how far each line of code is indented."""
    return texts.with_indentation(html)


def _folder(
    what: str, place: str, build: Callable[[Path], str | None], config: MkDocsConfig
) -> list[File]:
    """Return the files that a function writes into a folder; none if it returns why it cannot."""
    held = _built[place] = tempfile.TemporaryDirectory()
    folder = Path(held.name) / "files"
    reason = build(folder)
    if reason is not None:
        print(f"no {what}: {reason}", file=sys.stderr)
        return []
    return _all_of(folder, place, config)


def _all_of(folder: Path, place: str, config: MkDocsConfig) -> list[File]:
    """Return the files of a folder as files of the site, as they are."""
    found = []
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            uri = f"{place}/{path.relative_to(folder).as_posix()}"
            file = File.generated(config, uri, abs_src_path=str(path))
            file.inclusion = InclusionLevel.INCLUDED  # JSON is not left out here
            found.append(file)
    return found


def _with_try(markdown: str, uri: str, files: Files) -> str:
    """Return a guide with a link to its notebook below the title, if the site has that."""
    folder, name = posixpath.split(uri)
    page = name.removesuffix(".md")
    held = files.get_file_from_path(f"{browser.PLACE}/files/{page}.ipynb")
    if folder != "guides" or held is None:
        return markdown
    link = f'<a href="../{browser.link(page)}">Try this page in the browser</a>'
    return re.sub(r"^# .*$", rf"\g<0>\n\n{link}\n", markdown, count=1, flags=re.MULTILINE)


def _sources() -> list[dict[str, Any]]:
    """Return what is known of each public name and its members."""
    found = []
    for _, item in public_names.every(_built["tree"]):
        found.append(item.extra["gradtape"])
        if item.is_class:
            found += [x.extra["gradtape"] for x in item.members.values() if "gradtape" in x.extra]
    return found


def _links(text: str) -> list[re.Match[str]]:
    return [match for part in CODE.split(text)[::2] for match in LINK.finditer(part)]


def _origin(src_uri: str) -> str:
    """Return the path in the repository of a page of the site."""
    return next((path for path, uri in MOVED.items() if uri == src_uri), f"docs/{src_uri}")


def _resolved(src_uri: str, link: str) -> str | None:
    """Return the path in the repository that a page's link leads to, if there is one."""
    folder = posixpath.dirname(_origin(src_uri))
    path = posixpath.normpath(posixpath.join(folder, link))
    return path if (ROOT / path).exists() else None


def _page_of(path: str, files: Files) -> str | None:
    """Return the page, or picture, of the site that shows a path of the repository."""
    if path in MOVED:
        return MOVED[path]
    inside = path.removeprefix("docs/")
    held = files.get_file_from_path(inside) if inside != path else None
    if held is not None and held.inclusion.is_included():
        return inside
    if (ROOT / path / "README.md").is_file():
        return _page_of(f"{path}/README.md", files)
    return None
