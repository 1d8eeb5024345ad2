"""Public names: an object is shown under the public path where users find it.

A module of public names ends with ``publish(__name__)``. Errors, ``repr`` and ``help`` then show
its functions and classes under its name, ``dir`` lists its public names, and a mistyped name gets a
hint.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Container, Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from threading import RLock
from types import FunctionType, MappingProxyType, ModuleType
from typing import Any, ForwardRef

__all__ = [
    "COMPLETING",
    "HOMES",
    "IMPORTING",
    "NEEDED",
    "MissingName",
    "hide_private_names",
    "incomplete",
    "publish",
    "publish_lazily",
    "publish_rest",
]

_ROOT = __name__.rpartition(".")[0]

#: The libraries that pyproject.toml requires.
NEEDED = ("h5py", "numpy", "pluggy", "xxhash")
#: Each name directly under the package, with the module that defines it; ``"."`` for a module.
HOMES: dict[str, str] = {}
#: Held during lazy imports: otherwise threads that start with different modules of an import cycle
#: would wait for each other, which is an error in Python.
IMPORTING = RLock()
#: The modules of public names: an object that was named by one of them keeps that name.
_PUBLISHED: set[str] = set()
_HOST = ".core.registry.host"
#: By the start of modules' names, what completes the docstring of a function that users get. There
#: are hundreds, and most programs read none.
COMPLETING: dict[str, Callable[[FunctionType], None]] = {}


def publish(
    module_name: str,
    path: str | None = None,
    above: Mapping[str, str] = MappingProxyType({}),
    without: Collection[str] = (),
) -> None:
    """Show users only the names in a module's ``__all__``, and name its objects by the module.

    Modules in ``__all__`` are published too. A module without ``__all__`` gets one, of the names
    that it imports as themselves: ``from .module import name as name``, for type checkers.

    Parameters
    ----------
    module_name
        The module.
    path
        Another public module with the same names, if it may be imported later than the objects are
        used.
    above
        Names that the module cannot import itself, because they are in higher packages: by their
        module, a text with spaces between them. Each is imported at its first use.
    without
        Names that the module imports for others and that are not its own.
    """
    module = sys.modules[module_name]
    if not hasattr(module, "__all__"):
        vars(module)["__all__"] = _imported(module, without)
    names = tuple(module.__all__)
    homes = {name: home for home, held in above.items() for name in held.split()}
    here = [vars(module)[name] for name in names if name not in homes]
    _PUBLISHED.add(path or module_name)
    for value in here:
        _hand_out(value, path or module_name, names)
    for value in here:
        if isinstance(value, ModuleType) and hasattr(value, "__all__"):
            publish(value.__name__)

    def __getattr__(name: str) -> Any:
        if name not in homes:
            raise MissingName(module_name, name)
        try:
            with IMPORTING:
                found = getattr(import_module(homes[name], _ROOT), name)
        except ModuleNotFoundError as error:
            raise incomplete(error) from error.__cause__
        value = _hand_out(found, path or module_name, names)
        setattr(module, name, value)  # so that this runs once
        return value

    vars(module).update(__getattr__=__getattr__, __dir__=lambda: sorted(names))


def publish_rest(module_name: str, rest: str) -> None:
    """Let a published module offer the names of another one, imported when one is first used.

    There is no lock: what imports the module may hold the import of another one, for which the
    holder of the lock may be waiting.

    Parameters
    ----------
    module_name, rest
        The module, and the one with the rest of its names.
    """
    module = sys.modules[module_name]
    missing = vars(module)["__getattr__"]

    def __getattr__(name: str) -> Any:
        if name[:2] != "__":
            held = import_module(rest)
            vars(module).update((x, getattr(held, x)) for x in held.__all__)
            if name in held.__all__:
                return getattr(held, name)
        return missing(name)

    vars(module)["__getattr__"] = __getattr__


def _imported(module: ModuleType, without: Collection[str]) -> list[str]:
    """Return the names that a module imports in order to publish them."""
    others = ("TYPE_CHECKING", "annotations", "publish", "publish_rest", *without)
    held = [x for x, value in vars(module).items() if not isinstance(value, ModuleType)]
    return sorted(x for x in held if not x.startswith("_") and x not in others)


def publish_lazily(table: Mapping[str, str], wholes: Mapping[str, str]) -> None:
    """Make names public directly under the package, and import each at its first use.

    Parameters
    ----------
    table
        By module, its public names, separated by spaces; ``"."`` lists modules.
    wholes
        By the prefix of a module's name, the package to import first. It imports all modules with
        this prefix: threads that start with different ones would wait for each other.
    """
    package = sys.modules[_ROOT]
    HOMES.update((name, home) for home, names in table.items() for name in names.split())

    def __getattr__(name: str) -> Any:
        home = HOMES.get(name)
        if home is None:
            return _of_plugins(name)
        if _is_there(home):  # no lock needed: its holder may be waiting for this thread
            value = _hand_out(getattr(sys.modules[_ROOT + home], name), _ROOT, HOMES)
            setattr(package, name, value)
            return value
        try:
            with IMPORTING:
                if home == ".":
                    return import_module(f".{name}", _ROOT)
                whole = next((x for part, x in wholes.items() if home.startswith(part)), None)
                if whole is not None:
                    import_module(whole, _ROOT)
                value = _hand_out(getattr(import_module(home, _ROOT), name), _ROOT, HOMES)
        except ModuleNotFoundError as error:
            raise incomplete(error) from error.__cause__
        setattr(package, name, value)  # so that this runs once
        return value

    def __dir__() -> list[str]:
        host = _host()
        found = host.HOST.known_namespaces() if host is not None else ()
        return sorted([*HOMES, "__version__", *found])

    vars(package).update(__all__=list(HOMES), __getattr__=__getattr__, __dir__=__dir__)


def _of_plugins(name: str) -> ModuleType:
    """Return the module that a plugin has under a name, by the hook ``gradtape_namespaces``."""
    from importlib.util import find_spec  # for names of plugins, and those that do not exist

    host = _host()
    if host is None or name not in host.HOST.known_namespaces():
        # plugins are not looked for in vain; or it is a module of the package that is imported now,
        # by `from gradtape import name`
        none = name.startswith("_") or (host is None and not _has_others())
        if none or find_spec(f"{_ROOT}.{name}") is not None:
            raise MissingName(_ROOT, name)
    found: ModuleType | None = import_module(_HOST, _ROOT).HOST.namespace(name)
    if found is None:
        raise MissingName(_ROOT, name)
    return found


@cache
def _has_others() -> bool:
    """Return whether a distribution declares a plugin that could have a namespace."""
    from importlib.metadata import entry_points  # for names that do not exist only

    try:
        points = [x for kind in ("", ".namespaces") for x in entry_points(group=_ROOT + kind)]
        return any(not point.value.startswith(f"{_ROOT}.") for point in points)
    except Exception:  # a broken distribution, of which the registry tells
        return True


def _host() -> Any:
    """Return the module that has the plugins, if it is imported."""
    return sys.modules.get(_ROOT + _HOST) if _is_there(_HOST) else None


def incomplete(error: ModuleNotFoundError) -> ModuleNotFoundError:
    """Return an import's error; if a library or a package is missing, say what to run."""
    if str(error.name).startswith(f"{_ROOT}.") and str(error.name).count(".") == 1:
        told = (
            f"{error.name} is not in this installation, which works without it: run pip install "
            f"--force-reinstall {_ROOT}"
        )
        return ModuleNotFoundError(told, name=error.name, path=error.path)
    if error.name not in NEEDED:
        return error
    folder = os.path.dirname(__file__)
    checkout = os.path.exists(os.path.join(folder, "setup.py"))
    told = f"{error}; {_ROOT} needs it: run pip install {folder if checkout else _ROOT}"
    return ModuleNotFoundError(told, name=error.name, path=error.path)


def _is_there(home: str) -> bool:
    """Return whether a module is imported completely."""
    module = sys.modules.get(_ROOT + home)
    return module is not None and not getattr(module.__spec__, "_initializing", False)


def _hand_out(value: Any, module_name: str, names: Container[str]) -> Any:
    """Name one of gradtape's functions or classes by its public module, and return it.

    An object directly under the package is named by the package, even if other modules have it
    too. Any other object keeps its first public name.
    """
    if isinstance(value, (FunctionType, type)):
        home, name = value.__module__, value.__name__
        if isinstance(value, FunctionType):
            for start, complete in COMPLETING.items():
                if home.startswith(start):
                    complete(value)
        # not under an alias, by which pickle would not find it
        if home.startswith(f"{_ROOT}.") and home not in _PUBLISHED and name in names:
            above = f"{_ROOT}{HOMES.get(name)}" in (home, module_name)
            if isinstance(value, type):  # its annotations are evaluated in its own module
                hints = vars(value).get("__annotations__", {})
                for key, hint in hints.items():
                    if isinstance(hint, str):
                        hints[key] = ForwardRef(hint, is_argument=False, module=home, is_class=True)
                hide_private_names(value)
            value.__module__ = _ROOT if above else module_name
    return value


def hide_private_names(cls: type) -> None:
    """Leave names with an underscore out of ``dir`` of a class's objects.

    Before Python 3.13, tracebacks suggest names from ``dir``: "Did you mean: '_read'?".
    """
    made: Any = cls
    if made.__dir__ is object.__dir__:
        made.__dir__ = _public_names_of


def _public_names_of(self: Any) -> list[str]:
    """Return the attributes, without those that gradtape keeps private or lacks."""
    names = set(object.__dir__(self))
    ours = [base for base in type(self).__mro__ if base.__module__.partition(".")[0] == _ROOT]
    hidden = {x for base in ours for x, held in vars(base).items() if _is_hidden(x, held)}
    if type(self) in ours:
        hidden |= {x for x in names if x[0] == "_" != x[1:2]}
    return sorted(x for x in names - hidden if not x.startswith("_gradtape"))


def _is_hidden(name: str, held: Any) -> bool:
    return name[0] == "_" != name[1:2] or type(held).__name__ in ("Lacking", "Unsettable")


# -- missing names ---------------------------------------------------------------------------------


class MissingName(AttributeError):
    """A module has no such name; the message looks for a hint when it is read.

    So ``hasattr``, and ``getattr`` with a default, are as fast as usual.
    """

    def __init__(self, module_name: str, name: str) -> None:
        # obj is set, because otherwise Python would set it and add its own hint
        super().__init__(module_name, name, obj=sys.modules[module_name])

    def __str__(self) -> str:
        module_name, name = self.args
        try:
            hint = _hint(module_name, name)
        except ImportError:  # a module that cannot be imported here must not hide the message
            hint = ""
        return f"module {module_name!r} has no attribute {name!r}{hint}"

    def __repr__(self) -> str:
        return f"AttributeError({str(self)!r})"

    def __reduce__(self) -> tuple[type[AttributeError], tuple[str]]:
        return AttributeError, (str(self),)  # modules, and this class's name, cannot be pickled


# tracebacks show the type's name: Python uses __qualname__, IPython __name__
MissingName.__module__ = "builtins"
MissingName.__qualname__ = MissingName.__name__ = "AttributeError"


def _hint(module_name: str, name: str) -> str:
    """Return a hint for a missing name, or an empty text."""
    if name.startswith("_"):
        return ""
    with suppress(Exception):  # hints of plugins; a wrong plugin must not hide the message
        import_module(_HOST, _ROOT).registry()
    hints = import_module(".hints", _ROOT)
    place = module_name.removeprefix(_ROOT).lstrip(".")
    instead: str | None = hints.INSTEAD.get(place, {}).get(name)
    if instead is not None:
        return str(hints.told(instead))
    from difflib import get_close_matches  # for messages only

    paths: dict[str, list[str]] = {}
    for home, known in _public_names():
        # a name in the module itself takes precedence over the same name elsewhere
        position = 0 if home == module_name else len(paths)
        paths.setdefault(known.lower(), []).insert(position, f"{home}.{known}")
    found = paths.get(name.lower())
    instead = None if found else hints.instead_of(place, name)
    if instead is not None:
        return str(hints.told(instead))
    found = found or _in_tensorflow(name)
    if not found:
        own = [x for x in paths if paths[x][0].rpartition(".")[0] == module_name]
        longer = sorted((x for x in own if x.startswith(name.lower()) and len(name) > 4), key=len)
        nearest = get_close_matches(name.lower(), own, 1, cutoff=0.75) or longer
        nearest = nearest or get_close_matches(name.lower(), paths, 1, cutoff=0.75)
        found = paths[nearest[0]] if nearest else []
    # softmax is a function, Softmax a layer
    found = sorted(
        found, key=lambda path: path.rpartition(".")[2][0].isupper() != name[0].isupper()
    )
    return f"; did you mean {found[0].replace(_ROOT, 'gt', 1)}?" if found else ""


def _public_names() -> Iterator[tuple[str, str]]:
    """Yield each public name with its module."""
    for name, home in HOMES.items():
        yield _ROOT, name
        # these have other libraries' names, or need an extra
        if home == "." and name not in ("compat", "plot", "sklearn"):
            with suppress(ModuleNotFoundError):  # a package that this installation lacks
                module = import_module(f".{name}", _ROOT)
                yield from ((module.__name__, part) for part in module.__all__)


def _in_tensorflow(name: str) -> list[str]:
    """Return the paths of gradtape's objects that TensorFlow calls ``name``."""
    try:
        paths = import_module(_HOST, _ROOT).registry().service("compat.tensorflow_names")(name)
    except RuntimeError:  # these names are not in this installation
        paths = []
    return [f"{_ROOT}.{path}" for path in paths]
