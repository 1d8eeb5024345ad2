"""``gradtape plugin new``: a starting point, a distribution with a plugin and tests that pass."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import keyword
import re
from pathlib import Path
from string import Template

from ..core.extend import face
from .templates import KINDS

__all__ = ["KINDS", "new_plugin"]


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
    version = ".".join(str(face().__version__).split(".")[:2])
    values = {"name": name, "module": module, "MODULE": module.upper(), "version": version}
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
    try:
        taken = f"the distribution {importlib.metadata.distribution(name).name!r}"
    except importlib.metadata.PackageNotFoundError:
        taken = f"a module {module!r}" if importlib.util.find_spec(module) is not None else ""
    if taken:
        raise ValueError(f"{name!r} is in use: {taken} is already installed; choose another name")
    return module
