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
from pathlib import Path
from typing import Any

import history
import pages
import public_names
import sources
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

import gradtape as gt

ROOT = Path(__file__).resolve().parents[2]
#: Files outside docs/, or of another name there, that are pages of the site.
MOVED = {
    "README.md": "index.md",
    "docs/index.md": "internals.md",
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
                {"Every name": "reference/index.md"},
                *({name: held} for name, held in sections.items()),
                *item["Reference"],
            ]
    config.site_name = f"gradtape {gt.__version__}"
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
    for file in _graphs(config):
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
    return "".join(x if i % 2 else LINK.sub(moved, x) for i, x in enumerate(parts))


def _graphs(config: MkDocsConfig) -> list[File]:
    """Return the files of the graphs of benchmarks over commits, none where git is missing."""
    held = _built["graphs"] = tempfile.TemporaryDirectory()
    folder = Path(held.name) / "graphs"
    reason = history.publish(folder)
    if reason is not None:
        print(f"no graphs of benchmarks over commits: {reason}", file=sys.stderr)
        return []
    found = []
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            uri = f"{GRAPHS}/{path.relative_to(folder).as_posix()}"
            file = File.generated(config, uri, abs_src_path=str(path))
            file.inclusion = InclusionLevel.INCLUDED  # JSON is not left out here
            found.append(file)
    return found


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
