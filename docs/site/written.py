"""Where a public name is written, and what is said of a member of a class there.

Nothing here needs griffe, so the suite can ask whether all that the reference shows is described.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
import sys
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import gradtape as gt

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path(gt.__file__).parent
#: The sections of a class's docstring that describe attributes.
LISTS = ("Parameters", "Attributes")
HEADING = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)


def _make_api() -> Any:
    """Return ``docs/make_api.py`` as a module: it says what is public."""
    spec = importlib.util.spec_from_file_location("make_api", ROOT / "docs" / "make_api.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


API = _make_api()


def repository_path(file: str | Path) -> str | None:
    """Return the path in the repository of a file of the package; None for other files."""
    path = Path(file)
    for base in (PACKAGE, ROOT):
        if path.is_relative_to(base):
            inside = path.relative_to(base).as_posix()
            if inside.startswith("."):  # another library, in an environment here
                return None
            held = (inside, f"namespaces/{inside}", f"extras/{inside}")
            return next((name for name in held if (ROOT / name).is_file()), None)
    return None


@cache
def _lines(path: str) -> dict[str, int]:
    """Return the first line of each name that a module defines, and of members of its classes."""
    found: dict[str, int] = {}

    def visit(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                found[prefix + node.name] = node.lineno
                if isinstance(node, ast.ClassDef):
                    visit(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, (ast.Assign, ast.AnnAssign)):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    for name in ast.walk(target):
                        if isinstance(name, ast.Name):
                            found.setdefault(prefix + name.id, node.lineno)

    visit(ast.parse((ROOT / path).read_text("utf-8")).body, "")
    return found


def _file(module: ModuleType) -> str:
    """Return a module's file; an empty string for one that has none, as gt.compat.tensorflow's."""
    return getattr(module, "__file__", None) or ""


def written_at(value: Any, path: str) -> tuple[str, int] | None:
    """Return the file in the repository and the line where a public name is defined."""
    if isinstance(value, ModuleType):
        inside = repository_path(_file(value))
        return (inside, 1) if inside else None
    name = path.rpartition(".")[2]
    if isinstance(value, FunctionType):
        code = inspect.unwrap(value).__code__
        inside = repository_path(code.co_filename)
        return (inside, code.co_firstlineno) if inside else None
    for module_name in sorted(sys.modules):  # a class says the public module, not its own
        module = sys.modules[module_name]
        if module_name.startswith("gradtape.") and vars(module).get(name) is value:
            inside = repository_path(_file(module))
            line = _lines(inside).get(name) if inside else None
            if inside and line:
                return inside, line
    return None


# -- what is said of a member ----------------------------------------------------------------------


def listed(cls: type) -> frozenset[str]:
    """Return the parameters and attributes that the docstring of a class describes."""
    parts = HEADING.split(inspect.cleandoc(cls.__doc__ or ""))
    bodies = [body for title, body in zip(parts[1::2], parts[2::2], strict=True) if title in LISTS]
    lines = [line for body in bodies for line in body.splitlines() if re.match(r"[\w*]", line)]
    found = re.findall(r"\w+", " ".join(line.partition(":")[0] for line in lines))
    if issubclass(cls, gt.layers.Layer):
        found += cls._rules()  # what the parameter ``rules`` stands for
    return frozenset(found)


def said_of(cls: type, name: str) -> str | None:
    """Return the text about a member that is written where it is defined."""
    owner = API.owner_of(cls, name)
    raw = vars(owner)[name]
    if inspect.isroutine(raw) or isinstance(raw, (property, classmethod, staticmethod)):
        text = inspect.getdoc(getattr(cls, name))
    else:
        text = vars(raw).get("__doc__") if hasattr(raw, "__dict__") else None
        text = text or _comment(owner, name)
    return inspect.cleandoc(text) if text else None


def _comment(owner: type, name: str) -> str | None:
    """Return the comment ``#:`` above a class's attribute."""
    at = written_at(owner, owner.__name__)
    line = _lines(at[0]).get(f"{owner.__name__}.{name}") if at else None
    if at is None or line is None:
        return None
    lines = (ROOT / at[0]).read_text("utf-8").splitlines()
    found: list[str] = []
    for text in reversed(lines[: line - 1]):
        if not text.strip().startswith("#:"):
            break
        found.insert(0, text.strip()[2:].strip())
    return "\n".join(found) or None
