"""Errors for code that needs a value during tracing, and the user's line for messages."""

from __future__ import annotations

import sys
import traceback
import warnings
from collections.abc import Iterable
from types import FrameType
from typing import Any, NamedTuple

from ..errors import TraceError
from .table import PACKAGE

# The packages whose frames are not user code.
_NOT_USERS = frozenset({PACKAGE, "numpy", "contextlib"})
# The packages of installed plugins: user code calls them, or is in one of them.
_PLUGINS: set[str] = set()


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
    for frame, line in traceback.walk_tb(error.__traceback__):
        if package_of(frame) not in (*_NOT_USERS, "importlib"):
            place = f"{frame.f_code.co_filename}:{line}"
    return place


def count_as_library(packages: Iterable[str]) -> None:
    """Count packages as code that users call: warnings point at the line that calls it."""
    _PLUGINS.clear()
    _PLUGINS.update(packages)


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
            else:
                _scopes[id(scope)] = scope
        frame = frame.f_back
    return of_plugin


#: The global names of modules that are not user code, by their addresses.
_scopes: dict[int, dict[str, Any]] = {}


def package_of(frame: FrameType) -> str:
    """Return the name of the package whose code a frame runs."""
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def not_known(array: Any, what: str) -> TypeError:
    """Return the error for code that asks ``array`` for something unknown, such as its truth."""
    if not hasattr(array, "why_unknown"):
        return TypeError(
            f"{user_line()}: a Tensor wraps an array, but this one was made from a "
            f"{type(array).__name__}; make tensors with gradtape.constant"
        )
    return TraceError(f"{user_line()}: {what} is not known {array.why_unknown()}")
