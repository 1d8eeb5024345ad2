"""Map TensorFlow's names to gradtape's; docs/migration.md shows this table.

On its first use, a name in :data:`ALIASES` becomes gradtape's own object, and a name in
:data:`SIGNATURES` is compiled from its line. If more than names and defaults differs, a module here
defines the adapter and marks it with :func:`adapts`.
"""

from __future__ import annotations

import builtins
import difflib
import dis
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import FrameType, MappingProxyType, ModuleType
from typing import Any, NamedTuple, TypeVar

import numpy as np

import gradtape

from ...hints import INSTEAD as OWN_HINTS
from ...hints import told
from .aliases import ALIASES, INSTEAD
from .signatures import SIGNATURES

__all__ = ["ALIASES", "INSTEAD", "SIGNATURES", "Row", "adapts", "lookup", "namespace", "rows"]

T = TypeVar("T")

_PACKAGE = __name__.rpartition(".")[0]
_GUIDE = "docs/migration.md"

#: The lines of :data:`SIGNATURES` by namespace and name.
LINES = {
    space: {line.partition("(")[0]: line for line in text.replace("\n    ", " ").split("\n")[1:-1]}
    for space, text in SIGNATURES.items()
}

#: Namespaces that only have messages that say what to use instead.
_BARE = "tf.experimental tf.io tf.sysconfig tf.version"
#: The namespaces for which :func:`lookup` was called.
NAMESPACES: set[str] = set()


class Row(NamedTuple):
    """A row of the table of names."""

    tensorflow: str
    gradtape: str
    #: ``"same"`` object, or ``"adapted"`` to TensorFlow's arguments.
    how: str


def adapts(*names: str) -> Callable[[T], T]:
    """Mark a function or class as the adapter of these gradtape names."""

    def mark(adapter: T) -> T:
        adapter.gradtape_names = names  # type: ignore[attr-defined]
        return adapter

    return mark


def paths_of(name: str) -> list[str]:
    """Return the paths, without ``gradtape``, of objects that TensorFlow calls ``name``."""
    found = (ALIASES[space].get(name, "tf.") for space in ("tf", "tf.math"))
    known = [path for path in found if not path.startswith("tf.")]
    adapted = getattr(getattr(sys.modules[_PACKAGE], name, None), "gradtape_names", ())
    return [*known, *adapted]


def namespace(name: str, doc: str = "", has: Mapping[str, Any] = MappingProxyType({})) -> Any:
    """Return a module with the names in the tables and further ones.

    It becomes an attribute of its parent module, as in TensorFlow.
    """
    path = _PACKAGE + name.removeprefix("tf")
    module = sys.modules[path] = ModuleType(path, doc or f"``{name}``.")
    vars(module).update(has, __all__=list(has), __getattr__=lookup(path))
    above, _, last = path.rpartition(".")
    setattr(sys.modules[above], last, module)
    return module


def spaces_of(module: Any) -> None:
    """Make the namespaces in a module's ``SPACES``: each has a documentation and some names."""
    for space, (doc, names) in module.SPACES.items():
        namespace(f"tf.{space}", doc, {name: getattr(module, name) for name in names.split()})


def complete(*modules: Any) -> None:
    """Make the namespaces of these modules, and those that are only in the tables."""
    for module in modules:
        spaces_of(module)
    for space in sorted({*ALIASES, *LINES, *_BARE.split()}):
        if _PACKAGE + space.removeprefix("tf") not in sys.modules:
            namespace(space)


def names_of(space: str) -> list[str]:
    """Return the names in a namespace, without nested namespaces."""
    named = {*module_of(space).__all__, *ALIASES.get(space, ()), *LINES.get(space, ())}
    return sorted(x for x in named if not isinstance(getattr(module_of(space), x), ModuleType))


def rows() -> list[Row]:
    """Return the table: every public name in every namespace, in order."""
    found = []
    for space in sorted(NAMESPACES):
        for name in names_of(space):
            path = ALIASES.get(space, {}).get(name, "tf.")
            if not path.startswith("tf."):
                own = path if path.startswith("builtins.") else f"gradtape.{path}"
                found.append(Row(f"{space}.{name}", own, "same"))
                continue
            value = getattr(module_of(space), name)
            known = getattr(value, "gradtape_names", ())
            if isinstance(value, np.dtype) and value.name in dir(gradtape):
                known = (value.name,)
            listed = ", ".join(f"gradtape.{path}" for path in known)
            found.append(Row(f"{space}.{name}", listed, "adapted"))
    return found


def module_of(namespace: str) -> Any:
    """Return the module of a namespace."""
    return import_module(_PACKAGE + namespace.removeprefix("tf"))


def lookup(module_name: str) -> Callable[[str], Any]:
    """Return a module's ``__getattr__``, which finds aliases and makes adapters.

    Raises
    ------
    AttributeError
        By the returned function, for an unknown name; the message has the nearest name.
    ImportError
        With the same message, if an import statement asks for the name.
    """
    space = "tf" + module_name.removeprefix(_PACKAGE)
    NAMESPACES.add(space)
    known, lines = ALIASES.get(space, {}), LINES.get(space, {})

    def __getattr__(name: str) -> Any:
        if name in known:
            value = resolve(known[name])
        elif name in lines:
            compiling: Any = import_module(f"{_PACKAGE}.compiling")  # it imports names
            value = compiling.compiled(module_name, lines[name])
        elif name.startswith("__"):
            raise AttributeError(f"module {module_name!r} has no attribute {name!r}")
        else:
            # an import statement drops the message of an AttributeError
            wrong = ImportError if _is_import(sys._getframe(1)) else AttributeError
            raise wrong(_absent(space, name))
        setattr(sys.modules[module_name], name, value)  # later reads skip this function
        return value

    return __getattr__


def _is_import(frame: FrameType) -> bool:
    """Return whether a frame is executing ``from module import name``."""
    return frame.f_code.co_code[frame.f_lasti] == dis.opmap["IMPORT_FROM"]


def resolve(path: str) -> Any:
    """Return the object with a dotted name under gradtape, ``tf`` or ``builtins``."""
    root, _, rest = path.partition(".")
    value: Any = {"builtins": builtins, "tf": sys.modules.get(_PACKAGE)}.get(root, gradtape)
    path = path if value is gradtape else rest
    for part in path.split("."):
        value = getattr(value, part)
    return value


def instead(path: str, near: bool = False) -> str:
    """Return what to use instead of a name, or ``""``; with ``near``, ignore its namespace's."""
    space, _, name = path.rpartition(".")
    keys = (path, name) if near else (path, name, f"{space}.*")
    return next((INSTEAD[key] for key in keys if key in INSTEAD), "")


def _absent(space: str, name: str) -> str:
    message = f"gradtape has no {space}.{name}"
    own = {*module_of(space).__all__, *ALIASES.get(space, ()), *LINES.get(space, ())}
    use = instead(f"{space}.{name}", bool(difflib.get_close_matches(name, own, 1, 0.8)))
    if not use and space == "tf.keras.layers":
        use = OWN_HINTS["layers"].get(name, "").replace("gt.", "gradtape.")
    if use:
        return f"{message}{told(use)} (see {_GUIDE})"
    names = {part.lower(): f"gradtape.{part}" for part in dir(gradtape) if part[0] != "_"}
    for family in ("training", "layers", "random", "fft", "nn", "linalg"):
        parts = getattr(getattr(gradtape, family), "__all__", ())
        names |= {part.lower(): f"gradtape.{family}.{part}" for part in parts}
    # a name in the same namespace is likelier than one elsewhere
    names |= {part.lower(): f"{space}.{part}" for part in own}
    near = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.7)
    low = name.lower()
    parts = (x for x in names if x in low and len(x) > (3 if low.startswith(x) else len(low) / 2))
    near = near or sorted(parts, key=len)[-1:]
    nearest = f"; the nearest name is {names[near[0]]}" if near else ""
    return f"{message}{nearest} (see {_GUIDE} for all names)"
