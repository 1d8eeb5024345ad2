"""The examples of plugins: each distribution is installed, its README runs, and its tests pass."""

from __future__ import annotations

import ast
import importlib.metadata
import io
import re
import tokenize
from pathlib import Path

import pytest
from installing import Environment

FOLDER = Path(__file__).parents[2] / "docs" / "examples"
#: The distributions that each needs besides gradtape's own needs, and the plugin's row.
NEEDED = {
    "gradtape-dask": (["distributed"], r"^dask +gradtape-dask +0\.1\.0 .*\bready\b"),
    "gradtape-fastmatmul": ([], r"^fastmatmul +gradtape-fastmatmul +0\.1\.0 .*\bready\b"),
    "gradtape-softabs": ([], r"^softabs +gradtape-softabs +0\.1\.0 .*\bready\b"),
}


def lines_of_code(project: Path) -> int:
    """Return the number of lines of a distribution's package, without docstrings and comments."""
    count = 0
    for path in project.glob("src/**/*.py"):
        text = path.read_text(encoding="utf-8")
        lines: set[int] = set()
        blank = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type not in (*blank, tokenize.ENDMARKER):
                lines.update(range(token.start[0], token.end[0] + 1))
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and (
                ast.get_docstring(node) is not None
            ):
                lines.difference_update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
        count += len(lines)
    return count


@pytest.mark.parametrize("name", NEEDED)
def test_an_example_is_installed_and_passes_its_tests(name: str, tmp_path: Path) -> None:
    project, (needed, row) = FOLDER / name, NEEDED[name]
    for distribution in needed:  # not by import: the folder `distributed` may be on the path
        try:
            importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            pytest.skip(f"to be installed: pip install {distribution}")
    environment = Environment(tmp_path / "environment")
    environment.install(project)
    assert re.search(row, environment.run("-m", "gradtape", "plugins"), re.MULTILINE)
    readme = (project / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```py\n(.*?)```", readme, re.DOTALL)
    environment.run("-c", code)
    told = environment.run("-m", "pytest", "-q", "-p", "no:cacheprovider", str(project / "tests"))
    assert re.search(r"^\d+ passed", told.splitlines()[-1]), told


@pytest.mark.parametrize("name", NEEDED)
def test_an_example_is_short(name: str) -> None:
    count = lines_of_code(FOLDER / name)
    assert count <= 80
    readme = (FOLDER / name / "README.md").read_text(encoding="utf-8")
    assert re.search(rf"\b{count}\s+lines\s+of\s+code", readme), count
