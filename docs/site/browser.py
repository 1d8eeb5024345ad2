"""The guides as notebooks that run in the reader's browser: JupyterLite, and gradtape's wheel.

JupyterLite is a static site. Its kernel loads Pyodide, which is CPython for WebAssembly, and the
packages that gradtape needs from Pyodide's distribution; the kernel's version decides which Pyodide
that is. gradtape itself comes from the wheel that is built here.
"""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import gradtape as gt
from gradtape.cli import tutorial

ROOT = Path(__file__).resolve().parents[2]
GUIDES = ROOT / "docs" / "guides"
#: Where ``make docs`` leaves the wheel.
WHEELS = ROOT / ".cache" / "site"
#: Where the site has JupyterLite.
PLACE = "try"
#: What a block may need besides gradtape, and its package in Pyodide's distribution.
PACKAGES = {"matplotlib": "matplotlib", "scipy": "scipy", "sklearn": "scikit-learn"}
MODULES = ("jupyterlite_core", "jupyterlite_pyodide_kernel", "jupyter_server", "nbformat")
#: What starts a process or a thread.
STARTS = re.compile(r"\bsubprocess\.\w+\(|\bmultiprocessing\b|\bThread(PoolExecutor)?\(")

_FIRST = (
    "This page runs in your browser. Run its cells from the top: the first one installs gradtape "
    "here, which takes a while the first time. Files are saved in this tab, and are gone when you "
    "close it."
)
_ELSEWHERE = "A browser starts no processes or threads. Run this code on your computer:"


def needs(text: str) -> set[str]:
    """Return what the blocks of a page need besides gradtape."""
    return {name for match in tutorial.BLOCK.finditer(text) for name in (match[1] or "").split()}


def guides() -> list[Path]:
    """Return the pages with blocks that can all run in a browser, in the order of their names."""
    found = []
    for path in sorted(GUIDES.glob("*.md")):
        text = path.read_text("utf-8")
        if tutorial.BLOCK.search(text) and needs(text) <= PACKAGES.keys():
            found.append(path)
    return found


def notebook(text: str, names: dict[str, str]) -> Any:
    """Return a page as a notebook for a browser; the arguments are those of the tutorial's."""
    made = tutorial.notebook(text, names)
    new: Any = importlib.import_module("nbformat").v4
    for i, cell in enumerate(made.cells):
        if cell.cell_type == "code" and STARTS.search(cell.source):
            shown = new.new_markdown_cell(f"{_ELSEWHERE}\n\n```python\n{cell.source}\n```")
            shown.id = cell.id
            made.cells[i] = shown
    packages = ["gradtape", *(PACKAGES[name] for name in sorted(needs(text)))]
    install = new.new_code_cell(
        f'%pip install -q {" ".join(packages)}\n\nimport os\n\nos.chdir("/tmp")'
    )
    told = new.new_markdown_cell(_FIRST)
    told.id, install.id = "browser", "install"
    made.cells[:0] = [told, install]
    made.metadata.kernelspec = {
        "name": "python",
        "display_name": "Python (Pyodide)",
        "language": "python",
    }
    return made


def write(folder: Path) -> None:
    """Write the notebooks into a folder."""
    nbformat: Any = importlib.import_module("nbformat")
    pages = guides()
    names = {page.name: f"{page.stem}.ipynb" for page in pages}
    for page in pages:
        nbformat.write(notebook(page.read_text("utf-8"), names), folder / names[page.name])


def wheel() -> Path | None:
    """Return this version's wheel, if there is one."""
    return next(WHEELS.glob(f"gradtape-{gt.__version__}-*.whl"), None)


def hindrance() -> str | None:
    """Return why the notebooks cannot be built here, or None."""
    missing = [name for name in MODULES if importlib.util.find_spec(name) is None]
    if missing:
        return f'{missing[0]} is missing: pip install "gradtape[browser]"'
    if wheel() is None:
        return f"there is no wheel in {WHEELS.relative_to(ROOT)}: make docs builds one"
    return None


def build(folder: Path) -> str | None:
    """Build JupyterLite into a new folder; return why not if that is impossible here."""
    reason = hindrance()
    if reason is not None:
        return reason
    source = folder.parent / f"{folder.name}-source"
    (source / "files").mkdir(parents=True)
    write(source / "files")
    settings = {
        "LiteBuildConfig": {
            "apps": ["notebooks"],
            "contents": ["files"],
            "no_sourcemaps": True,
            "no_unused_shared_packages": True,
            "output_dir": str(folder),
        },
        "PipliteAddon": {"piplite_urls": [str(wheel())]},
    }
    (source / "jupyter_lite_config.json").write_text(json.dumps(settings), "utf-8")
    command = [sys.executable, "-m", "jupyterlite_core", "build"]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True)
    if done.returncode or not (folder / "notebooks" / "index.html").is_file():
        raise RuntimeError(f"jupyter lite build failed:\n{done.stdout}{done.stderr}")
    shutil.rmtree(source)
    return None


def link(page: str) -> str:
    """Return the address, from the top of the site, of a guide's notebook."""
    return f"{PLACE}/notebooks/index.html?path={page}.ipynb"
