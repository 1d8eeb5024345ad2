"""Errors that a trace raises, whatever a run would do: the code around must not handle them."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from ..core.errors import TraceError
from ..core.extend import line_of
from .calls import is_of_plugins

_HERE = f"{__name__.rpartition('.')[0]}."
#: How messages of refusals begin. The errors of builtin functions that are called for the user do
#: not.
_PLACE = re.compile(r"[^\n]+:\d+: ")


class Retrace(Exception):
    """The trace must be made again, because of something found after its start."""


class _Trace(NamedTuple):
    """What the trace of one function has come upon."""

    raised: list[tuple[Exception, str]]
    checks: list[Callable[[], None]]
    changes: list[Any]  # places outside the outermost traced statements that these change


_trace: ContextVar[_Trace | None] = ContextVar("trace", default=None)


@contextmanager
def raising_while(what: str) -> Iterator[None]:
    """Note errors that are raised while ``what`` is traced."""
    try:
        yield
    except (Retrace, RecursionError):  # a trace without an end has an error of its own
        raise
    except Exception as error:
        _note(error, what)
        raise


def noted(error: Exception) -> None:
    """Note an error that code may handle, if it is raised only because of the trace."""
    found: BaseException | None = error
    while found is not None and not isinstance(found, TraceError):
        found = found.__cause__ or found.__context__  # NumPy and users make errors of others
    if isinstance(found, TraceError):
        error = found
    refused = _module(error).startswith(_HERE) and not _is_users(error)
    if refused or isinstance(error, TraceError):
        _note(error, "a function is traced")


def handled() -> BaseException | None:
    """Return the error that the caller handles."""
    return sys.exc_info()[1]


def _note(error: Exception, what: str) -> None:
    trace = _trace.get()
    if trace is not None and all(error is not known for known, _ in trace.raised):
        trace.raised.append((error, what))


def at_the_end(check: Callable[[], None]) -> None:
    """Run a check when the function has been traced."""
    trace = _trace.get()
    if trace is not None:
        trace.checks.append(check)


def note_changes(places: list[Any]) -> None:
    """Note what a statement changes in each run."""
    trace = _trace.get()
    if trace is not None:
        trace.changes.extend(places)


@contextmanager
def deferring() -> Iterator[list[Any]]:
    """Raise the errors of traced blocks, whatever the code around them handles.

    A ``try`` around a traced block would handle what the block raises in some runs only, and
    decide for all of them. Yields a list, which gets what traced statements change in each run. In
    a trace inside another one, the outer trace's list gets it.
    """
    outer = _trace.get()
    trace = _Trace([], [], [] if outer is None else outer.changes)
    token = _trace.set(trace)
    try:
        yield trace.changes if outer is None else []
        for check in trace.checks:
            check()
    except Exception as error:
        if not trace.raised and isinstance(error.__cause__, TraceError):
            raise error.__cause__ from None  # NumPy says less about it
        if not trace.raised:
            raise
        if error is trace.raised[0][0] and not _is_users(error):
            raise
    finally:
        _trace.reset(token)
    if trace.raised:
        first, what = trace.raised[0]
        if not _is_users(first):
            raise first
        text = f"{type(first).__name__}: {first}" if str(first) else type(first).__name__
        raise TraceError(
            f"{line_of(first)}: {text}; this is raised while {what}, whatever a run would do; to "
            "check in each run, use 'assert'"
        ) from first


def _is_users(error: Exception) -> bool:
    """Return whether the user's code, or a function that is called for it, raised an error."""
    module = _module(error)
    if module.startswith(_HERE):
        return _PLACE.match(str(error)) is None
    return not is_of_plugins(module)


def _module(error: Exception) -> str:
    """Return the module that raised an error."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    return "" if place is None else str(place.tb_frame.f_globals.get("__name__"))
