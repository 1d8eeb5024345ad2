"""``print`` and ``assert``: at once if Python has the values, otherwise in each run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from ..core.errors import TraceError
from ..core.extend import Branch, active_graph, flatten, pack_like, user_line
from ..plugins.ops.control.effects import check as check_in_runs
from ..plugins.ops.control.effects import print_values
from .values import is_traced, short_line, truth

_CONVERSIONS: dict[str, Callable[[Any], str]] = {"r": repr, "s": str, "a": ascii}


class Text:
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
    def of(cls, objects: Any, separator: str = " ", end: str = "") -> Text:
        """Return the text that ``print`` makes of objects."""
        whole = cls([""], [], [])
        for i, x in enumerate(objects):
            whole.pieces[-1] += separator if i else ""
            if isinstance(x, Text):
                whole.add(x)
                continue
            marks = [_Mark(leaf) if is_traced(leaf) else leaf for leaf in flatten(x)]
            values = [mark.value for mark in marks if isinstance(mark, _Mark)]
            pieces = str(pack_like(x, marks)).split(_Mark.text)
            whole.add(Text(pieces, values, ["" if is_traced(x) else "!r"] * len(values)))
        whole.pieces[-1] += end
        return whole

    def add(self, other: Text) -> None:
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
    """Return an f-string: a ``str``, or a :class:`Text` if one of its values is traced.

    Parameters
    ----------
    parts
        Strings, and triples of a value, its conversion (such as ``"r"``) and its format.
    """
    whole = Text([""], [], [])
    for part in parts:
        if isinstance(part, str):
            whole.pieces[-1] += part
            continue
        value, conversion, form = part
        if is_traced(value):
            whole.add(Text(["", ""], [value], ["!r" if conversion == "r" else form]))
        else:
            shown = _CONVERSIONS[conversion](value) if conversion else value
            whole.pieces[-1] += format(shown, form)
    return whole if whole.values else whole.pieces[0]


def check(holds: Any, message: Any, error: str = "AssertionError") -> None:
    """Raise an error in each run in which a value is not true."""
    if holds is not True:
        told = Text.of([message])
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
    if not any(isinstance(x, Text) or is_traced(x) for x in flatten(list(objects))):
        print(*objects, sep=sep, end=end, file=file, flush=flush)
        return
    stream = {id(sys.stdout): "stdout", id(sys.stderr): "stderr", id(None): "stdout"}.get(id(file))
    if stream is None:
        raise TypeError(
            f"{user_line()}: 'print' of traced values can write only to sys.stdout or sys.stderr, "
            f"got file={file!r}"
        )
    told = Text.of(objects, " " if sep is None else sep, "\n" if end is None else end)
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
