"""What a trace cannot repeat: calls without an end, and random numbers of others."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from traceback import walk_tb
from types import TracebackType
from typing import Any

import numpy as np

from ..base.unknown import warn_user
from ..errors import TraceError

__all__ = ["checked_trace"]


def _numpy_state() -> Any:
    state: Any = np.random.get_state(legacy=False)  # noqa: NPY002
    inner = state["state"]
    return {**state, "state": {**inner, "key": inner["key"].tobytes()}} if "key" in inner else None


#: Sources of random numbers that a trace takes as constants, and functions that return their state.
_SOURCES: dict[str, Callable[[], Any]] = {"np.random": _numpy_state, "random": random.getstate}


@contextmanager
def checked_trace(name: str, first: bool) -> Iterator[None]:
    """Raise an error that names the functions, if a trace of them calls them without an end.

    Warn if the function draws random numbers that later calls repeat, in its ``first`` trace.
    """
    before = {source: state() for source, state in _SOURCES.items() if first}
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
    for source, state in before.items():
        if _SOURCES[source]() != state:
            warn_user(
                f"function {name!r}: it drew numbers from {source} while it was traced; they are "
                "constants of the trace, and every later call repeats them. Draw with "
                "gradtape.random, or draw outside and pass the numbers as an argument",
                UserWarning,
            )


def _who_calls_whom(names: list[str]) -> str:
    if len(names) > 1:
        return f"{' and '.join(names)} call each other"
    return f"{''.join(names) or 'a function'} calls itself"


def _calls(traceback: TracebackType | None) -> list[str]:
    """Return the names of the functions that call each other, in order."""
    owners: list[Any] = [
        frame.f_locals.get("self")
        for frame, _ in walk_tb(traceback)
        if frame.f_code.co_name == "__call__"
    ]
    traced = [x for x in owners if hasattr(x, "python_function")]
    again = [x for i, x in enumerate(traced) if any(x is y for y in traced[:i])]
    return list(dict.fromkeys(str(x.name) for x in again))
