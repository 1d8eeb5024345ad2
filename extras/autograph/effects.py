"""``print`` and ``assert``: at once if Python has the values, otherwise in each run."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from ..core.errors import TraceError
from ..core.extend import Branch, active_graph, flatten, line_of, pack_like, user_line
from ..plugins.ops.control.effects import check as check_in_runs
from ..plugins.ops.control.effects import print_values
from .calls import is_of_plugins
from .values import is_traced, short_line, truth

_CONVERSIONS: dict[str, Callable[[Any], str]] = {"r": repr, "s": str, "a": ascii}


class RuntimeText:
    """Text that contains values known only in a run, such as an f-string.

    Parameters
    ----------
    pieces
        The text before each value and after the last one.
    values
        The values.
    formats
        The format of each value.
    """

    def __init__(self, pieces: list[str], values: list[Any], formats: list[str]) -> None:
        self.pieces = pieces
        self.values = values
        self.formats = formats

    @classmethod
    def of(cls, objects: Any, separator: str = " ", end: str = "") -> RuntimeText:
        """Return the text that ``print`` makes of objects."""
        whole = cls([""], [], [])
        for i, x in enumerate(objects):
            whole.pieces[-1] += separator if i else ""
            if isinstance(x, RuntimeText):
                whole.add(x)
                continue
            marks = [_Mark(leaf) if is_traced(leaf) else leaf for leaf in flatten(x)]
            values = [mark.value for mark in marks if isinstance(mark, _Mark)]
            pieces = str(pack_like(x, marks)).split(_Mark.text)
            whole.add(RuntimeText(pieces, values, ["" if is_traced(x) else "!r"] * len(values)))
        whole.pieces[-1] += end
        return whole

    def add(self, other: RuntimeText) -> None:
        """Append another text."""
        self.pieces[-1] += other.pieces[0]
        self.pieces += other.pieces[1:]
        self.values += other.values
        self.formats += other.formats


class _Mark:
    """Marks the place of a value in the text of its container."""

    text = "\x00value\x00"

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return self.text


def text(*parts: Any) -> Any:
    """Return an f-string: a ``str``, or a :class:`RuntimeText` if one of its values is traced.

    Parameters
    ----------
    parts
        Strings, and triples of a value, its conversion (such as ``"r"``) and its format.
    """
    whole = RuntimeText([""], [], [])
    for part in parts:
        if isinstance(part, str):
            whole.pieces[-1] += part
            continue
        value, conversion, form = part
        if is_traced(value):
            whole.add(RuntimeText(["", ""], [value], ["!r" if conversion == "r" else form]))
        else:
            shown = _CONVERSIONS[conversion](value) if conversion else value
            whole.pieces[-1] += format(shown, form)
    return whole if whole.values else whole.pieces[0]


def check(holds: Any, message: Any, error: str = "AssertionError") -> None:
    """Raise an error in each run in which a value is not true."""
    if holds is not True:
        told = RuntimeText.of([message])
        check_in_runs(holds, told.values, told.pieces, told.formats, error)


def assert_stmt(
    test: Any, message: Callable[[], Any], handled: Callable[[], tuple[Any, ...]] | None
) -> None:
    """Raise an ``AssertionError`` unless a test holds; in each run, if the test is traced.

    Parameters
    ----------
    test
        The asserted condition.
    message
        A function that returns the message, or None if there is no message.
    handled
        Returns the types of errors that the code around it handles, which only Python can do;
        None stands for all types.
    """
    inside = isinstance(active_graph.get(), Branch)  # only a run decides whether it gets here
    in_runs = is_traced(test) or (inside and not test)
    if in_runs and handled is not None and _catches(handled()):
        raise TraceError(
            f"{user_line()}: a run would raise the error of this 'assert', and the 'try' around it "
            "cannot handle it there; use an 'if'"
        )
    if is_traced(test):
        check(truth(test, "'assert'"), _message(message))
    elif test:
        return
    elif inside:
        check(False, _message(message))
    else:
        given = message()
        raise AssertionError(*(() if given is None else (given,)))


def _catches(types: Any) -> bool:
    if isinstance(types, tuple):
        return any(map(_catches, types))
    return types is None or issubclass(AssertionError, types)


def _message(message: Callable[[], Any]) -> Any:
    given = message()
    return f"{short_line()}: an assertion does not hold" if given is None else given


def print_(
    *objects: Any,
    sep: str | None = None,
    end: str | None = None,
    file: Any = None,
    flush: bool = False,
) -> None:
    """Print objects; in each run, if any of them is traced."""
    if not any(isinstance(x, RuntimeText) or is_traced(x) for x in flatten(list(objects))):
        print(*objects, sep=sep, end=end, file=file, flush=flush)
        return
    stream = {id(sys.stdout): "stdout", id(sys.stderr): "stderr", id(None): "stdout"}.get(id(file))
    if stream is None:
        raise TypeError(
            f"{user_line()}: 'print' of traced values can write only to sys.stdout or sys.stderr, "
            f"got file={file!r}"
        )
    told = RuntimeText.of(objects, " " if sep is None else sep, "\n" if end is None else end)
    print_values(told.values, told.pieces, told.formats, stream, flush)


def hashed(key: Any) -> Any:
    """Return a key of a dict or an element of a set.

    Raises
    ------
    TraceError
        If it is traced: Python compares such keys by their values, which only a run knows.
    """
    if any(map(is_traced, key if type(key) is tuple else (key,))):
        raise TraceError(
            f"{user_line()}: a traced tensor cannot be a key of a dict or an element of a set: "
            "only a run knows its value; use a list"
        )
    return key


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
