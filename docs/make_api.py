"""Write what is public: docs/api.txt for people, __init__.pyi for type checkers.

python docs/make_api.py            # write both
python docs/make_api.py --check    # exit with 1 if one is not up to date

A line of docs/api.txt is a public name: its path, its kind, how it is called. A class's members
stand with the class that defines them. So a change of what is public shows as a change of the file.

Python has no word for a member that other modules of the library need and users do not. So the
class that introduces such members names them in a text, and classes below it need not:

``_gradtape_internal``
    Not public: ``"*"`` is whatever the class introduces, and does not override.
``_gradtape_hooks``
    For whoever writes a subclass: what to override, and what to call while doing so. They stand
    with this class only, so an optimizer of ours does not show its formula.
"""

from __future__ import annotations

import enum
import inspect
import sys
from collections.abc import Container, Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

import gradtape as gt
from gradtape.hints import Lacking
from gradtape.plugin import Op
from gradtape.public import HOMES

sys.path.append(str(Path(__file__).resolve().parent))

from generated_pages import write_or_check

ROOT = Path(__file__).resolve().parents[1]
API = ROOT / "docs" / "api.txt"
STUB = ROOT / "__init__.pyi"
STUB_HEAD = """\
# Written by docs/make_api.py from the table in __init__.py: the names that are found when they are
# first used, for type checkers.

"""


# -- docs/api.txt ----------------------------------------------------------------------------------


class _Text:
    """An annotation or a default, to be shown as it is written."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def signature(function: Any) -> str:
    """Return how something is called, annotations without quotes."""
    try:
        found = inspect.signature(function)
    except (TypeError, ValueError):  # written in C
        return "(...)"
    empty = inspect.Parameter.empty

    def shown(value: Any) -> Any:
        text = getattr(value, "__forward_arg__", value)  # of a named tuple
        return _Text(text) if isinstance(text, str) else value

    def default(value: Any) -> Any:
        if isinstance(value, enum.Enum):
            return _Text(str(value))
        # an address would differ from run to run
        return _Text("...") if " at 0x" in repr(value) else value

    parameters = [
        p.replace(
            annotation=shown(p.annotation),
            default=p.default if p.default is empty else default(p.default),
        )
        for p in found.parameters.values()
    ]
    return str(inspect.Signature(parameters, return_annotation=shown(found.return_annotation)))


def op_signature(op: Op) -> str:
    """Return how an op is called: arrays by position, parameters by keyword."""
    if getattr(op, "__signature__", None) is not None:
        return signature(op)
    arrays = [*op.inputs, "/"] if not op.variadic else [*op.inputs]
    settings = [f"{name}={value!r}" for name, value in op.defaults.items()]
    star = ["*"] if settings and not op.variadic else []
    return f"({', '.join([*arrays, *star, *settings])})"


def made_by(cls: type) -> str:
    """Return how a class is called, where that is ours to say and not Python's, which changes."""
    if issubclass(cls, enum.Enum):
        return f"({' | '.join(member.name for member in cls)})"
    makers = [base for base in cls.__mro__ if {"__init__", "__new__"} & vars(base).keys()]
    return signature(cls) if is_ours(makers[0]) else ""


def library_of(value: Any) -> str:
    """Return the package that defines a function or class."""
    return str(value.__module__).partition(".")[0]


def is_ours(value: Any) -> bool:
    """Return whether gradtape defines a function or class."""
    return library_of(value) == "gradtape"


def public_path(value: Any, path: str) -> str:
    """Return the path by which gradtape names something that is found under ``path``."""
    name = getattr(value, "__name__", "")
    for known in (f"gradtape.{name}", f"{getattr(value, '__module__', '')}.{name}"):
        module, _, last = known.rpartition(".")
        if last in public_names(module) and getattr(sys.modules[module], last) is value:
            return known
    return path


def public_names(module: str) -> Container[str]:
    """Return the public names of a module, none if users do not meet it."""
    package, *inner = module.split(".")
    if package != "gradtape" or (inner and HOMES.get(inner[0]) != "."):
        return ()
    for count in range(2, len(inner) + 1):  # each module must be a public name of the one around it
        around = sys.modules.get(".".join([package, *inner[: count - 1]]))
        if inner[count - 1] not in getattr(around, "__all__", ()):
            return ()
    return getattr(sys.modules.get(module), "__all__", ())


def is_public(cls: type) -> bool:
    """Return whether users find a class of ours under a name of its own."""
    return is_ours(cls) and public_path(cls, "") != ""


def owner_of(cls: type, name: str) -> type:
    """Return the class that defines a member."""
    return next((base for base in cls.__mro__ if name in vars(base)), object)


def audience(cls: type, name: str) -> tuple[str, type]:
    """Return whom a member is for, and the class that says so; see the top of this file."""
    introduced = [base for base in cls.__mro__ if name in vars(base)][-1:]
    for base in cls.__mro__:
        internal = vars(base).get("_gradtape_internal", "").split()
        if name in internal or ("*" in internal and base in introduced):
            return "library", base
        if name in vars(base).get("_gradtape_hooks", "").split():
            return "subclasses", base
    return "users", cls


def stands_with(cls: type, name: str) -> bool:
    """Return whether a member stands with this class, and not with a public one above it."""
    owner = owner_of(cls, name)
    who, said = audience(cls, name)
    if name.startswith("_") or not is_ours(owner) or who == "library":
        return False
    if who == "subclasses":
        return said is cls
    same = [x for x in cls.__mro__ if x is cls or is_public(x)]
    return [x for x in same if owner_of(x, name) is owner][-1] is cls


def lines_of(path: str, value: Any) -> Iterator[str]:
    """Give the lines of a public name; those of a class or a module have lines inside."""
    known = path if isinstance(value, ModuleType) else public_path(value, path)
    if known != path:
        yield f"{path}: the same as {known}"
    elif isinstance(value, ModuleType):
        yield f"{path}: module"
        for name in getattr(value, "__all__", ()):
            yield from lines_of(f"{path}.{name}", getattr(value, name))
    elif isinstance(value, Op):
        yield f"{path}: op {op_signature(value)}"
    elif isinstance(value, type):
        if is_ours(value):
            yield f"{path}: class {made_by(value)}".rstrip()
            yield from members(path, value)
        else:
            yield f"{path}: class of {library_of(value)}"
    elif isinstance(value, FunctionType):
        yield f"{path}: function {signature(value)}"
    elif callable(value) and not isinstance(value, np.dtype):
        yield f"{path}: function of {library_of(value)}"
    else:
        yield f"{path}: {type(value).__name__} {value!r}"


def members(path: str, cls: type) -> Iterator[str]:
    """Give the lines of what a class defines, or takes from a class of ours that is not public."""
    for name in dir(cls):
        if not stands_with(cls, name):
            continue
        raw = vars(owner_of(cls, name))[name]
        if isinstance(raw, Lacking):  # only an error says something of it
            continue
        if library_of(type(raw)) == "sklearn":  # what it gives its estimators, where it is there
            continue
        if isinstance(raw, (classmethod, staticmethod)):
            yield f"{path}.{name}: {type(raw).__name__} {signature(getattr(cls, name))}"
        elif callable(raw):
            yield f"{path}.{name}: method {signature(raw)}"
        elif isinstance(raw, property):
            yield f"{path}.{name}: property"
        else:
            yield f"{path}.{name}: attribute"


def api() -> str:
    """Return the text of docs/api.txt."""
    found: list[str] = []
    for name in HOMES:
        found += lines_of(f"gradtape.{name}", getattr(gt, name))
    return "\n".join(sorted(found)) + "\n"


# -- __init__.pyi ----------------------------------------------------------------------------------


def stub() -> str:
    """Return the text of __init__.pyi: every name as an import that exports it."""
    imports = sorted((home, name) for name, home in HOMES.items())
    return (
        STUB_HEAD
        + "".join(f"from {home} import {name} as {name}\n" for home, name in imports)
        + "\n__version__: str\n"
    )


if __name__ == "__main__":
    sys.exit(write_or_check({API: api(), STUB: stub()}, sys.argv[1:]))
