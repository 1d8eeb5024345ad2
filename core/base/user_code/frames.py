"""The frames of the user's code: its lines in messages and warnings, and its variables."""

from __future__ import annotations

import inspect
import os
import sys
import warnings
from collections.abc import Iterable
from types import FrameType
from typing import Any, NamedTuple

from ..table import PACKAGE

# The packages whose frames are not user code.
_NOT_USERS = frozenset({PACKAGE, "numpy", "contextlib"})
# The packages of installed plugins: user code calls them, or is in one of them.
_PLUGINS: set[str] = set()
# The packages for whose functions a plugin has others: their own code computes with NumPy arrays.
_ON_ARRAYS: frozenset[str] = frozenset()


class Place(NamedTuple):
    """A line of code, and the global names of its module."""

    file: str
    line: int
    scope: dict[str, Any]


def user_line() -> str:
    """Return FILE:LINE of the innermost frame outside gradtape and NumPy, for messages.

    Returns
    -------
    str
        The place; ``"?"`` if there is none.

    Examples
    --------
    >>> from gradtape.plugin import user_line
    >>> user_line().rpartition(":")[2].isdigit()
    True
    """
    frame = users_frame()
    return "?" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def is_users_call() -> bool:
    """Return whether the caller of this function was called from outside gradtape."""
    return package_of(sys._getframe(2)) != PACKAGE


def line_of(error: BaseException) -> str:
    """Return FILE:LINE of the innermost frame of an error outside gradtape and NumPy.

    Empty if there is none. Python's own frames of an import are none.
    """
    place = ""
    trace = error.__traceback__
    while trace is not None:
        if package_of(trace.tb_frame) not in (*_NOT_USERS, "importlib"):
            place = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


def count_as_library(packages: Iterable[str], on_arrays: Iterable[str] = ()) -> None:
    """Count packages as code that users call: warnings point at the line that calls it.

    Parameters
    ----------
    packages
        The packages of installed plugins.
    on_arrays
        The packages of the hook ``gradtape_functions``.
    """
    global _ON_ARRAYS, _computes
    _PLUGINS.clear()
    _PLUGINS.update(packages)
    # in this order: another thread may be about to write what it found for the earlier packages
    _ON_ARRAYS = frozenset(on_arrays)
    _computes = {}


def is_kernels_module(name: str) -> bool:
    """Return whether a module is gradtape's or a plugin's, which have kernels."""
    package = name.partition(".")[0]
    return package == PACKAGE or package in _PLUGINS


def warn_user(text: str, category: type[Warning], place: Place | None = None) -> None:
    """Warn at a place, by default the user's running line: once, by Python's default filters.

    Parameters
    ----------
    text
        The message.
    category
        The class of the warning.
    place
        Another place than the running line; plugins leave it out.

    Raises
    ------
    Warning
        The warning itself, if a filter turns it into an error.

    Examples
    --------
    >>> import warnings
    >>> from gradtape.plugin import warn_user
    >>> with warnings.catch_warnings(record=True) as found:
    ...     warnings.simplefilter("always")
    ...     warn_user("acme: the cache is full", RuntimeWarning)
    >>> str(found[0].message)
    'acme: the cache is full'
    """
    frame = users_frame()
    if place is None and frame is not None:
        place = Place(frame.f_code.co_filename, frame.f_lineno, frame.f_globals)
    if place is None:
        warnings.warn(text, category, stacklevel=2)
        return
    file, line, scope = place
    # without a name, a warning would be dropped
    name, registry = scope.get("__name__") or file, scope.setdefault("__warningregistry__", {})
    warnings.warn_explicit(text, category, file, line, name, registry)


def users_frame() -> FrameType | None:
    """Return the innermost frame outside gradtape and NumPy, and outside plugins if there is one.

    A plugin's package may also be the whole program: its innermost frame is then the user's.
    """
    frame: FrameType | None = sys._getframe(1)
    of_plugin: FrameType | None = None
    while frame is not None:
        scope = frame.f_globals
        if id(scope) not in _scopes:
            package = package_of(frame)
            if package not in _NOT_USERS:
                if package not in _PLUGINS:
                    return frame
                of_plugin = of_plugin or frame
            elif "__spec__" in scope:  # a module's; those of plans have arrays, and end
                _scopes[id(scope)] = scope
        frame = frame.f_back
    return of_plugin


#: The global names of modules that are not user code, by their addresses.
_scopes: dict[int, dict[str, Any]] = {}


def computes_with_arrays(frame: FrameType | None) -> bool:
    """Return whether a frame runs a library's code that expects NumPy arrays.

    These are the libraries of the hook ``gradtape_functions``. What NumPy's functions return there
    often reaches compiled code, which takes nothing else. NumPy's own code counts as its caller's.
    """
    known = _computes
    while frame is not None:
        module = frame.f_globals.get("__name__")
        try:
            found = known[module]
        except KeyError:
            package = package_of(frame)
            found = known[module] = None if package == "numpy" else package in _ON_ARRAYS
        if found is not None:
            return found
        frame = frame.f_back
    return False


#: Whether a module's code expects NumPy arrays, by name; every call of NumPy's asks. NumPy's: None.
_computes: dict[Any, bool | None] = {}


def package_of(frame: FrameType) -> str:
    """Return the name of the package whose code a frame runs."""
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def is_library(file: str) -> bool:
    """Return whether a file belongs to an installed package or to Python itself."""
    return file.startswith(_STANDARD) or "site-packages" in file or "dist-packages" in file


_STANDARD = os.path.dirname(os.__file__)


def reader() -> FrameType | None:
    """Return the innermost frame of the caller's callers that is no method of a tensor."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and is_method(frame):
        frame = frame.f_back
    return frame


def is_method(frame: FrameType) -> bool:
    """Return whether a method of a tensor runs, which may call the other operand's."""
    return frame.f_globals.get("__name__") in _METHODS


_METHODS = frozenset(f"{PACKAGE}.core.tensors.{x}" for x in ("methods", "tensor", "value_holder"))


def locals_of(frame: FrameType) -> dict[str, Any]:
    """Return the local variables of a frame.

    Before Python 3.13, a function's frame keeps this dictionary once something has read it. It
    is emptied, unless the program holds it (``locals()``), so that no array lives longer.
    """
    scope = frame.f_locals
    found = dict(scope)
    if _KEPT and frame.f_code.co_flags & inspect.CO_OPTIMIZED and sys.getrefcount(scope) <= 3:
        scope.clear()
    return found


_KEPT = sys.version_info < (3, 13)
