"""What a trace cannot repeat: calls without an end, and random numbers of others."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import c_char
from traceback import walk_tb
from types import TracebackType
from typing import Any

import numpy as np

from ..base.user_code import warn_user
from ..errors import TraceError

#: The memory of the state of NumPy's default generator: 624 words and a position.
_MT19937 = c_char * (625 * 4)


def numpy_random_state() -> Any:
    """Return the state of NumPy's global generator.

    NumPy's own function builds an array of it, which takes as long as a small trace. What this one
    leaves out is the second of a pair of normal numbers, which NumPy keeps for the next draw.
    """
    generator: Any = vars(np.random)["get_bit_generator"]()  # unknown to NumPy's stubs
    if type(generator) is np.random.MT19937:
        return _MT19937.from_address(generator.ctypes.state_address).raw
    return generator.state


#: Sources of random numbers that a trace takes as constants, and functions that return their state.
_SOURCES: dict[str, Callable[[], Any]] = {
    "np.random": numpy_random_state,
    "random": random.getstate,
}


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
        if not names:  # Python's own functions, whatever is traced
            raise
        raise TraceError(
            f"function {name!r}: the trace does not end: "
            f"{_who_calls_whom(names)}, deeper than Python allows. If "
            "the value of a tensor decides (cond, or if with autograph), both branches are traced, "
            "and so is the next call. Let a Python value end the recursion, such as an integer "
            "argument, or write a loop: gradtape.while_loop"
        ) from None
    for source, state in before.items():
        if _SOURCES[source]() != state:
            # all threads share the state
            others = " (or another thread did)" if threading.active_count() > 1 else ""
            warn_user(
                f"function {name!r}: it drew numbers from {source} while it was traced{others}; "
                "they are constants of the trace, and every later call repeats them. Draw with "
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
