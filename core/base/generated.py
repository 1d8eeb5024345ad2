"""Functions made from a text when the program runs."""

from __future__ import annotations

import ast
import linecache
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Any

_NUMBERS = count(1)
#: The files of functions that no longer exist. They leave the cache when the next function is made:
#: at another moment, the collector of garbage could interrupt linecache while it reads the cache.
_ENDED: deque[str] = deque()


def function_from(
    source: str | ast.Module, name: str, file: str, scope: dict[str, Any] | None = None
) -> Callable[..., Any]:
    """Return a function that a text defines; its lines show in tracebacks while it exists.

    Parameters
    ----------
    source
        The text, or its syntax tree, whose nodes have the lines of another text.
    name
        The function's name in the text.
    file
        The file name that tracebacks show. That of a text is in angle brackets, and gets a number
        if another function has it.
    scope
        The function's globals, which then contain it.
    """
    with suppress(IndexError):  # none is left: another thread may have taken the last one
        while True:
            linecache.cache.pop(_ENDED.popleft(), None)
    if isinstance(source, str) and file in linecache.cache:
        file = f"{file[:-1]} {next(_NUMBERS)}>"
    scope = {} if scope is None else scope
    exec(compile(source, file, "exec", dont_inherit=True), scope)
    made: Any = scope[name]
    if isinstance(source, str):
        lines = source.splitlines(keepends=True)
        linecache.cache[file] = len(source), None, lines, file
        weakref.finalize(made, _ENDED.append, file).atexit = False
    return made
