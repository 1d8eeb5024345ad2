"""The public names as griffe's objects, made from the live package.

Names are imported lazily and ops are instances, so what a reader of the source sees is not what a
user meets. The list is that of ``docs/make_api.py``; signatures, docstrings and lines are read from
the objects themselves.
"""

from __future__ import annotations

import ast
import builtins
import enum
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import griffe
import numpy as np
from written import API, HEADING, PACKAGE, ROOT, listed, said_of, written_at

import gradtape as gt
from gradtape.plugin import Op
from gradtape.public import HOMES

KINDS = {
    inspect.Parameter.POSITIONAL_ONLY: griffe.ParameterKind.positional_only,
    inspect.Parameter.POSITIONAL_OR_KEYWORD: griffe.ParameterKind.positional_or_keyword,
    inspect.Parameter.VAR_POSITIONAL: griffe.ParameterKind.var_positional,
    inspect.Parameter.KEYWORD_ONLY: griffe.ParameterKind.keyword_only,
    inspect.Parameter.VAR_KEYWORD: griffe.ParameterKind.var_keyword,
}
ROLE = re.compile(r":(?:func|class|meth|mod|attr|data|exc):`~?([^`]+)`")
#: Sections that griffe does not know.
PROSE = ("Notes", "References", "See Also", "Warnings")


# -- docstrings ------------------------------------------------------------------------------------


def docstring(text: str, path: str, owner: Any) -> griffe.Docstring:
    """Return a docstring whose sections are parsed: griffe's, and those of prose beside them."""
    text = ROLE.sub(lambda match: _reference(match[1], path), inspect.cleandoc(text))
    text = re.sub(r"(?<=\S)::$", ":", text, flags=re.MULTILINE)  # before code, in numpydoc
    parts = HEADING.split(text)
    sections: list[Any] = [griffe.DocstringSectionText(parts[0])]
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        typed = re.search(r"^ {4}\S", body, re.MULTILINE)
        if title in PROSE or (title in ("Returns", "Yields") and not typed):
            told = f'<span class="doc-section-title">{title}:</span>\n\n{body}'
            sections.append(griffe.DocstringSectionText(told))
        else:
            part = griffe.Docstring(f"{title}\n{'-' * len(title)}\n{body}", parent=owner)
            sections += griffe.parse_numpy(part, warnings=False)
    made = griffe.Docstring(text, parent=owner)
    vars(made)["parsed"] = sections  # a cached property, given its value
    return made


def _reference(name: str, path: str) -> str:
    """Return a link to a public name that a docstring of ``path`` mentions; else code."""
    around = path
    while around:
        candidate = f"{around}.{name}"
        if candidate in paths():
            return f"[`{name}`][{_place(candidate)}]"
        around = around.rpartition(".")[0]
    return f"[`{name}`][{_place(name)}]" if name in paths() else f"`{name}`"


def _place(path: str) -> str:
    """Return what a link to a name opens: its class, if that describes the attribute."""
    around, _, name = path.rpartition(".")
    held: Any = gt
    for part in around.split(".")[1:]:
        held = getattr(held, part)
    return around if isinstance(held, type) and name in listed(held) else path


@cache
def paths() -> frozenset[str]:
    """Return the paths of all that is public."""
    lines = (ROOT / "docs" / "api.txt").read_text("utf-8").splitlines()
    return frozenset(line.partition(":")[0] for line in lines)


# -- griffe's objects ------------------------------------------------------------------------------


def build() -> griffe.Module:
    """Return the package as a tree of griffe's objects; ``extra`` has what the pages need."""
    for name in HOMES:
        getattr(gt, name)
    root = griffe.Module("gradtape", filepath=PACKAGE / "__init__.py")
    root.docstring = docstring(gt.__doc__ or "", "gradtape", root)
    for name in sorted(HOMES):
        _add(root, name, getattr(gt, name), f"gradtape.{name}")
    return root


@cache
def _scope() -> griffe.Module:
    """Return where names in annotations are looked up: our public classes by their last names."""
    scope = griffe.Module("gradtape")
    for line in (ROOT / "docs" / "api.txt").read_text("utf-8").splitlines():
        path, _, kind = line.partition(": ")
        name = path.rpartition(".")[2]
        if kind.startswith("class") and name not in scope.members and not hasattr(builtins, name):
            scope.set_member(name, griffe.Alias(name, path))
    return scope


def _expression(value: Any) -> Any:
    """Return an annotation as griffe's expression, whose names are links where they are public."""
    if value is inspect.Parameter.empty:
        return None
    value = getattr(value, "__forward_arg__", value)
    text = value if isinstance(value, str) else inspect.formatannotation(value)
    try:
        return griffe.safe_get_annotation(ast.parse(text.strip("'\""), mode="eval").body, _scope())
    except SyntaxError:
        return text


def _parameters(function: Any) -> tuple[griffe.Parameters, Any]:
    try:
        found = inspect.signature(function)
    except (TypeError, ValueError):
        return griffe.Parameters(), None
    made = [
        griffe.Parameter(
            p.name,
            annotation=_expression(p.annotation),
            kind=KINDS[p.kind],
            default=None if p.default is p.empty else _default(p.default),
        )
        for p in found.parameters.values()
    ]
    return griffe.Parameters(*made), _expression(found.return_annotation)


def _default(value: Any) -> str:
    if isinstance(value, enum.Enum):
        return str(value)
    return "..." if " at 0x" in repr(value) or "<" in repr(value) else repr(value)


def _add(parent: Any, name: str, value: Any, path: str) -> None:
    known = path if isinstance(value, ModuleType) else API.public_path(value, path)
    if known != path:
        made: Any = griffe.Attribute(name)
        made.docstring = griffe.Docstring(f"The same as [`{known}`][{known}].")
    elif isinstance(value, ModuleType):
        made = griffe.Module(name, filepath=Path(getattr(value, "__file__", None) or ""))
        for inner in getattr(value, "__all__", ()):
            _add(made, inner, getattr(value, inner), f"{path}.{inner}")
        made.docstring = docstring(value.__doc__ or "", path, made)
    elif isinstance(value, type) and API.is_ours(value):
        made = _class(name, value, path)
    elif isinstance(value, (FunctionType, Op)):
        parameters, returns = _parameters(value)
        made = griffe.Function(name, parameters=parameters, returns=returns)
        made.docstring = docstring(value.__doc__ or "", path, made)
    elif callable(value) and not isinstance(value, np.dtype):
        made = griffe.Attribute(name, value=f"{API.library_of(value)}.{value.__name__}")
        made.docstring = griffe.Docstring(f"{API.library_of(value)}'s own `{value.__name__}`.")
    else:
        made = griffe.Attribute(name, value=repr(value), annotation=type(value).__name__)
    made.extra["gradtape"] = {
        "source": written_at(value, path),
        "numpy": _of_numpy(path, value),
        "same": known if known != path else None,
    }
    parent.set_member(name, made)


def _class(name: str, cls: type, path: str) -> griffe.Class:
    made = griffe.Class(name, bases=[_expression(base) for base in _bases(cls)])
    made.docstring = docstring(cls.__doc__ or "", path, made)
    if API.made_by(cls) and not issubclass(cls, enum.Enum):
        parameters, _ = _parameters(cls)
        made.set_member("__init__", griffe.Function("__init__", parameters=parameters))
    told = listed(cls)
    for line in API.members(path, cls):
        inner, _, kind = line.removeprefix(f"{path}.").partition(": ")
        if kind != "attribute" or inner not in told:
            made.set_member(inner, _member(cls, inner, kind, f"{path}.{inner}"))
    return made


def _bases(cls: type) -> list[str]:
    """Return the names of the bases that users know: instead of an internal one, its own."""
    found: list[str] = []
    for base in cls.__bases__:
        if API.is_public(base) or issubclass(base, BaseException):
            found.append(base.__name__)
        else:
            found += _bases(base)
    return list(dict.fromkeys(found))


def _member(cls: type, name: str, kind: str, path: str) -> Any:
    raw = vars(API.owner_of(cls, name))[name]
    made: Any
    if kind.startswith(("method", "classmethod", "staticmethod")):
        function = getattr(raw, "__func__", raw)
        parameters, returns = _parameters(function)
        made = griffe.Function(name, parameters=parameters, returns=returns)
        if not kind.startswith("method"):
            made.labels.add(kind.partition(" ")[0])
        at = written_at(function, path)
    elif kind == "property":
        getter = getattr(raw, "fget", None)
        hint = getattr(getter, "__annotations__", {}).get("return", inspect.Parameter.empty)
        made = griffe.Attribute(name, annotation=_expression(hint))
        made.labels.add("property")
        at = written_at(getter, path) if getter else None
    else:
        value = None if callable(raw) or inspect.ismemberdescriptor(raw) else repr(raw)
        made = griffe.Attribute(name, value=value if value and " at 0x" not in value else None)
        at = None
    text = said_of(cls, name)
    made.docstring = docstring(text, path, made) if text else None
    hook = API.audience(cls, name)[0] == "subclasses"
    made.extra["gradtape"] = {"source": at, "numpy": None, "same": None, "hook": hook}
    return made


# -- NumPy's own pages -----------------------------------------------------------------------------


def _of_numpy(path: str, value: Any) -> str | None:
    """Return NumPy's name for a function of ours, if NumPy documents one of this place and name."""
    place, _, name = path.removeprefix("gradtape").rpartition(".")
    if place not in ("", ".linalg", ".fft") or isinstance(value, (type, ModuleType)):
        return None
    held = getattr(np, place[1:]) if place else np
    theirs = getattr(held, name, None)
    if not (callable(theirs) and callable(value)) or isinstance(theirs, type):
        return None
    return f"numpy{place}.{getattr(theirs, '__name__', name)}"


def every(module: griffe.Module, path: str = "gradtape") -> Iterator[tuple[str, Any]]:
    """Give the objects of a module and of modules inside, by path; not members of classes."""
    for name, member in module.members.items():
        yield f"{path}.{name}", member
        if member.is_module:
            yield from every(member, f"{path}.{name}")
