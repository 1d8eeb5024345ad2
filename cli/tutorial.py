"""``gradtape tutorial``: the guides as notebooks, written from the documentation's pages."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..core.extend import public_package

GUIDES = Path(__file__).resolve().parents[1] / "docs" / "guides"
INSTALL = 'pip install "gradtape[notebooks]"'
#: A code block that runs, with a preceding comment that names the libraries that it needs.
BLOCK = re.compile(r"^(?:<!-- needs: (.*?) -->\n)?```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PICTURE = re.compile(r"^!\[[^\]]*\]\([^)]*\)$\n?", re.MULTILINE)
LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)([^)]+)\)")


def add_tutorial(tutorial: argparse.ArgumentParser) -> None:
    """Write the guides as Jupyter notebooks."""
    tutorial.description = (
        f"Write the guides as Jupyter notebooks into a folder. This needs an extra: {INSTALL}."
    )
    tutorial.add_argument(
        "folder",
        metavar="DIR",
        nargs="?",
        default="gradtape-tutorial",
        help="output folder (default: %(default)s)",
    )
    tutorial.add_argument(
        "--open", action="store_true", help="open the first notebook in JupyterLab"
    )
    tutorial.add_argument(
        "--run",
        dest="execute",
        action="store_true",
        help="run each notebook first, so that it shows its results",
    )
    tutorial.add_argument("--overwrite", action="store_true", help="replace existing notebooks")
    tutorial.set_defaults(run=_tutorial)


def _tutorial(options: argparse.Namespace) -> int:
    needed = ["jupyterlab"] if options.open else []
    _require("nbformat", *(["nbclient", "ipykernel"] if options.execute else []), *needed)
    folder = Path(options.folder)
    written = write_notebooks(folder, overwrite=options.overwrite, run=options.execute)
    print("\n".join([f"wrote {len(written)} notebooks", *(f"  {path}" for path in written)]))
    if options.open:
        return subprocess.run([sys.executable, "-m", "jupyterlab", str(written[0])]).returncode
    print(f"to open them: jupyter lab {folder}, or any editor that supports notebooks")
    return 0


def write_notebooks(folder: Path, overwrite: bool = False, run: bool = False) -> list[Path]:
    """Write each guide as a notebook and return the paths in reading order.

    Parameters
    ----------
    folder
        The output folder. It is created if it does not exist.
    overwrite
        Replace existing notebooks. Otherwise they raise an error, because you may have changed
        them.
    run
        Run each notebook before it is written.

    Raises
    ------
    FileExistsError
        If a notebook already exists and ``overwrite`` is false.
    ModuleNotFoundError
        If a required package is not installed. The message has the line that installs it.
    """
    _require("nbformat", *(["nbclient", "ipykernel"] if run else []))
    nbformat = import_module("nbformat")
    pages = _in_reading_order()
    paths = [folder / f"{i:02}-{page.stem}.ipynb" for i, page in enumerate(pages, 1)]
    there = [str(path) for path in paths if path.exists()]
    if there and not overwrite:
        raise FileExistsError(
            f"{there[0]} already exists, and you may have changed it: name another folder, or "
            "pass --overwrite"
        )
    folder.mkdir(parents=True, exist_ok=True)
    names = {page.name: path.name for page, path in zip(pages, paths, strict=True)}
    for page, path in zip(pages, paths, strict=True):
        made = notebook(page.read_text("utf-8"), names)
        if run:
            client = import_module("nbclient").NotebookClient
            client(made, timeout=600, resources={"metadata": {"path": str(folder)}}).execute()
        nbformat.write(made, path)
    return paths


def _in_reading_order() -> list[Path]:
    """Return the guides in the order of their README; those that it lacks come last."""
    listed = re.findall(r"\]\(([\w-]+\.md)\)", (GUIDES / "README.md").read_text("utf-8"))
    rest = sorted(path.name for path in GUIDES.glob("*.md") if path.name != "README.md")
    return [GUIDES / name for name in dict.fromkeys([*listed, *rest])]


def notebook(text: str, names: dict[str, str]) -> Any:
    """Return a page as a notebook, without results.

    Parameters
    ----------
    text
        The page in Markdown.
    names
        Maps pages to notebooks. Links to these pages are kept; other links become plain text.
    """
    nbformat: Any = import_module("nbformat")
    cells = []
    for i, (kind, part) in enumerate(_parts(text)):
        if kind == "code":
            cell = nbformat.v4.new_code_cell(part)
        else:
            cell = nbformat.v4.new_markdown_cell(_without_files(part, names))
        cell.id = f"cell-{i}"  # the same each time
        cells.append(cell)
    made = nbformat.v4.new_notebook(cells=cells)
    made.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    made.metadata.gradtape = public_package().__version__
    nbformat.validate(made)
    return made


def _parts(text: str) -> Iterator[tuple[str, str]]:
    """Give the parts of a page: text, and code that runs."""
    at = 0
    for match in BLOCK.finditer(text):
        needs = f"\n\n*The next cell needs {match[1].replace(' ', ', ')}.*" if match[1] else ""
        before = (text[at : match.start()].strip() + needs).strip()
        if before:
            yield "text", before
        yield "code", match[2].rstrip()
        at = match.end()
    if text[at:].strip():
        yield "text", text[at:].strip()


def _without_files(text: str, names: dict[str, str]) -> str:
    """Return text with links to notebooks only, and without pictures, which the cells draw."""

    def moved(match: re.Match[str]) -> str:
        page, _, anchor = match[2].partition("#")
        if page in names:
            return f"[{match[1]}]({names[page]})"
        return f"[{match[1]}](#{anchor})" if not page else match[1]

    return LINK.sub(moved, PICTURE.sub("", text))


def _require(*modules: str) -> None:
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        raise ModuleNotFoundError(f"notebooks need {', '.join(missing)}: {INSTALL}")
