"""Functions that call themselves while they are traced."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from traceback import walk_tb
from types import TracebackType

from ..errors import TraceError

__all__ = ["without_end"]


@contextmanager
def without_end(name: str) -> Iterator[None]:
    """Raise an error that names the functions, if a trace of them calls them without an end."""
    try:
        yield
    except RecursionError as error:
        names = _calls(error.__traceback__)
        raise TraceError(
            f"function {name!r}: the trace does not end: "
            f"{_who_calls_whom(names)}, deeper than Python allows. If "
            "the value of a tensor decides (cond, or if with autograph), both branches are traced, "
            "and so is the next call. Let a Python value end the recursion, such as an integer "
            "argument, or write a loop: gradtape.while_loop"
        ) from None


def _who_calls_whom(names: list[str]) -> str:
    if len(names) > 1:
        return f"{' and '.join(names)} call each other"
    return f"{''.join(names) or 'a function'} calls itself"


def _calls(traceback: TracebackType | None) -> list[str]:
    """Return the names of the functions that call each other, in order."""
    owners = [
        frame.f_locals.get("self")
        for frame, _ in walk_tb(traceback)
        if frame.f_code.co_name == "__call__"
    ]
    traced = [x for x in owners if hasattr(x, "python_function")]
    again = [x for i, x in enumerate(traced) if any(x is y for y in traced[:i])]
    return list(dict.fromkeys(str(x.name) for x in again))
