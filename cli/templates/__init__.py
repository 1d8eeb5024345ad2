"""``gradtape plugin new``: a starting point, a distribution with a plugin and tests that pass.

The modules here have what is special to each kind of plugin: its package, tests and needs. In the
texts, ``$name`` is the distribution, ``$module`` its package, and ``$$`` a dollar sign; ``$api``
and ``$found`` stand for lines that all kinds have.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import keyword
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template

from ...core.extend import public_package
from .computing import BACKEND, ENGINE, EXECUTOR
from .defining import FORMAT, LAYER, OP, OPTIMIZER

__all__ = ["KINDS", "new_plugin"]

#: What all kinds have: metadata, a README, and a workflow for GitHub.
COMMON = {
    "pyproject.toml": """\
[build-system]
requires = ["setuptools>=64"]
build-backend = "setuptools.build_meta"

[project]
name = "$name"
version = "0.1.0"
description = "$what for gradtape"
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["gradtape>=$version$limit"$needs]

[project.optional-dependencies]
test = ["mypy>=1.10", "pytest>=8"]

# gradtape finds the installed plugin by these entry points
$entries

[tool.setuptools.packages.find]
where = ["src"]

[tool.setuptools.package-data]
$module = ["py.typed"]

[tool.mypy]
strict = true
""",
    "README.md": """\
# $name

$what for gradtape.

```python
$use
```

```console
$$ pip install -e ".[test]"
$$ gradtape plugins
$$ mypy src
$$ pytest
```

The first line needs gradtape. If your package index does not have it, install it before, from its
repository: `pip install path/to/gradtape`.
""",
    ".github/workflows/test.yml": """\
name: test

on:
  push:
    branches: [main]
  pull_request:

permissions: {}

jobs:
  test:
    runs-on: ubuntu-latest
    permissions:
      contents: read
    strategy:
      matrix:
        python: ["3.11", "3.14"]
    steps:
      - uses: actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1
        with:
          persist-credentials: false
      - uses: actions/setup-python@5fda3b95a4ea91299a34e894583c3862153e4b97 # v7.0.0
        with:
          python-version: $${{ matrix.python }}
      # if the index does not have gradtape, install it from its repository first
      - run: pip install -e ".[test]"
      - run: mypy src
      - run: pytest
""",
    "src/$module/py.typed": "",
}

#: What ``$api`` and ``$found`` stand for in a module and in tests.
API = """\
#: The version of gradtape.plugin that this was written for: see gradtape.plugin.API.
gradtape_api = (1, 0)
"""
FOUND = """\
def test_gradtape_finds_the_plugin():
    owner = gt.registry().owner("{}", "{}")
    assert owner is not None and owner.distribution == "$name"
"""


def _files(
    what: str,
    provides: tuple[str, str],
    use: str,
    files: Mapping[str, str],
    groups: Sequence[str] = ("gradtape",),
    needs: str = "",
    limit: str = "",
) -> dict[str, str]:
    """Return the files of a distribution: their paths and texts."""
    entries = [f'[project.entry-points.{group}]\n$module = "$module.plugin"' for group in groups]
    own = {"$limit": limit, "$needs": needs, "$entries": "\n\n".join(entries), "$what": what}
    found = {**COMMON, **files}
    lines = {"$use\n": use, "$api\n": API, "$found\n": FOUND.format(*provides)}
    for word, text in {**own, **lines}.items():
        found = {path: held.replace(word, text) for path, held in found.items()}
    return found


#: By kind, the files of a distribution.
KINDS = {
    "op": _files(**OP),
    "backend": _files(**BACKEND),
    "executor": _files(**EXECUTOR),
    "engine": _files(**ENGINE),
    "layer": _files(**LAYER),
    "optimizer": _files(**OPTIMIZER),
    "format": _files(**FORMAT),
}


def new_plugin(name: str, parent: str, kind: str = "op") -> list[Path]:
    """Write a new distribution into the folder ``parent``/``name`` and return its files.

    ``kind`` is one of ``KINDS``: what the plugin provides.

    Raises
    ------
    ValueError
        If the name is not valid for a distribution or its module, or is already in use.
    FileExistsError, FileNotFoundError
        If the folder already exists, or ``parent`` does not.
    """
    module = _module_of(name)
    folder = Path(parent) / name
    if folder.exists() or folder.is_symlink():
        raise FileExistsError(f"{folder} already exists; choose another name or remove it")
    if not Path(parent).is_dir():
        raise FileNotFoundError(f"{parent} is not an existing folder; create it first")
    major, minor = str(public_package().__version__).split(".")[:2]
    values = {"name": name, "module": module, "MODULE": module.upper()}
    values |= {"version": f"{major}.{minor}", "next": f"{major}.{int(minor) + 1}"}
    written = []
    for path, text in KINDS[kind].items():
        target = folder / Template(path).substitute(values)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(Template(text).substitute(values), encoding="utf-8")
        written.append(target)
    return written


def _module_of(name: str) -> str:
    """Return the name of a distribution's module; raise if the name is not valid or in use."""
    if not re.fullmatch(r"[a-z]([a-z0-9_-]*[a-z0-9])?", name):
        raise ValueError(
            f"{name!r} is not a valid name: use lower-case letters, digits, '-' and '_', start "
            "with a letter, and end with a letter or digit, as in 'my-ops'"
        )
    module = re.sub(r"[-_]+", "_", name)
    if keyword.iskeyword(module) or module == "tests":
        raise ValueError(f"{name!r} cannot be the name of a module; choose another name")
    if module in public_package().__all__:
        raise ValueError(
            f"{name!r} is gradtape's own name, so files could not name its classes; choose another "
            "name"
        )
    try:
        taken = f"the distribution {importlib.metadata.distribution(name).name!r}"
    except importlib.metadata.PackageNotFoundError:
        taken = f"a module {module!r}" if importlib.util.find_spec(module) is not None else ""
    if taken:
        raise ValueError(f"{name!r} is in use: {taken} is already installed; choose another name")
    return module
