"""The pages of the reference: which names stand on which page, and the text of each."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import griffe
import public_names

from gradtape.public import HOMES

#: Pages of names directly under the package, by the beginnings of their modules.
TOPICS = {
    "Tapes and gradients": (
        ".core.tape.",
        ".core.functions.custom_gradients",
        ".core.functions.recompute",
        ".core.transforms.forward",
    ),
    "Derivatives as functions": (".core.transforms.",),
    "Tensors and variables": (".core.tensors.", ".core.base.dtypes", ".core.base.array_types"),
    "Traced functions": (".core.functions.", ".core.graphs.", ".core.base.context"),
    "Modules and models": (".core.module.", ".layers.model"),
    "Plugins, backends, threads": (".core.ops.", ".core.registry.", ".plugins.numpy.", ".cli."),
    "Saving and profiling": (".saving", ".profiler."),
}
#: Packages of ops with a page for each of their modules.
LARGE_PACKAGES = ("elementwise",)
#: Namespaces with a page for each of their folders and modules.
LARGE_NAMESPACES = ("layers", "training")
#: Who searches a name wants its entry before the guides that mention it.
BOOST = "---\nsearch:\n  boost: 4\n---"


@dataclass
class Page:
    """A page of the reference."""

    title: str
    section: str
    intro: str = ""
    names: list[tuple[str, Any]] = field(default_factory=list)

    @property
    def uri(self) -> str:
        """Return the path of the page's source."""
        slug = re.sub(r"[^a-z0-9]+", "-", f"{self.section} {self.title}".lower()).strip("-")
        return f"reference/{slug}.md"

    def text(self) -> str:
        """Return the page as Markdown."""
        self.names.sort(key=lambda pair: pair[0].rpartition(".")[2].lower())
        rows = [
            f"| [`{path.rpartition('.')[2]}`][{path}] | {_summary(item)} |"
            for path, item in self.names
        ]
        table = ["| Name | What it is |", "| --- | --- |", *rows]
        blocks = [f"::: {path}" for path, _ in self.names]
        parts = [BOOST, f"# {self.title}", self.intro, "\n".join(table), *blocks]
        return "\n\n".join(part for part in parts if part) + "\n"


def _summary(item: Any) -> str:
    text = item.docstring.value if item.docstring else ""
    first = text.strip().partition("\n\n")[0].replace("\n", " ")
    if item.is_attribute and not text and item.value:
        first = f"`{item.value}`"
    return first.replace("|", "\\|")


def _words(name: str) -> str:
    return name.replace("_", " ").capitalize()


def _place(path: str, item: Any) -> tuple[str, str]:
    """Return the section and the title of the page of a public name."""
    namespace, _, _ = path.removeprefix("gradtape.").rpartition(".")
    source = (item.extra.get("gradtape") or {}).get("source")
    if not namespace:
        home = HOMES[path.removeprefix("gradtape.")]
        if home.startswith(".plugins.ops."):
            package, module = home.removeprefix(".plugins.ops.").split(".")[:2]
            return "Ops", _words(f"{package}: {module}" if package in LARGE_PACKAGES else package)
        for title, starts in TOPICS.items():
            if home.startswith(starts):
                return "Engine", title
        raise LookupError(f"no page of the reference takes {path} of {home}: see TOPICS")
    first = namespace.partition(".")[0]
    if namespace in LARGE_NAMESPACES and source:
        parts = source[0].split("/")
        return f"gradtape.{first}", _words(parts[1].removesuffix(".py"))
    if first in LARGE_NAMESPACES:
        return f"gradtape.{first}", f"gradtape.{namespace}"
    return "Namespaces", f"gradtape.{namespace}"


def pages(root: griffe.Module) -> list[Page]:
    """Return the pages of the reference, in the order of the navigation."""
    found: dict[tuple[str, str], Page] = {}
    for path, item in public_names.every(root):
        if item.is_module:
            continue
        place = _place(path, item)
        page = found.setdefault(place, Page(place[1], place[0]))
        page.names.append((path, item))
    for page in found.values():
        if page.title.startswith("gradtape."):
            module = root[page.title.removeprefix("gradtape.")]
            page.intro = f"[](){{#{page.title}}}\n\n{_intro(module.docstring.value)}"
    sections = ["Engine", "Ops", "gradtape.layers", "gradtape.training", "Namespaces"]
    return sorted(found.values(), key=lambda page: (sections.index(page.section), page.title))


def _intro(text: str) -> str:
    """Return a module's docstring as Markdown, examples as code."""
    return re.sub(
        r"(?:^>>> .*\n?(?:^(?!\s*$).*\n?)*)",
        lambda match: f"```pycon\n{match[0].rstrip()}\n```\n",
        text,
        flags=re.MULTILINE,
    )


def index(root: griffe.Module) -> str:
    """Return the page that lists every public name."""
    letters: dict[str, list[str]] = {}
    for path, item in sorted(public_names.every(root), key=lambda pair: pair[0].lower()):
        if not item.is_module:
            letter = path.rpartition(".")[2][0].upper()
            letters.setdefault(letter, []).append(f"[`{path.removeprefix('gradtape.')}`][{path}]")
    own = {page.title for page in pages(root)}
    modules = []
    for path, item in public_names.every(root):
        if item.is_module:
            name = f"[`{path}`][{path}]" if path in own else f"[](){{#{path}}}`{path}`"
            modules.append(f"| {name} | {_summary(item)} |")
    parts = [
        BOOST,
        "# API reference",
        "Every public name with its signature, types and source. `gt` is `import gradtape as gt`.",
        "\n".join(["| Namespace | What is in it |", "| --- | --- |", *modules]),
    ]
    for letter in sorted(letters):
        parts += [f"## {letter}", ", ".join(letters[letter])]
    return "\n\n".join(parts) + "\n"
