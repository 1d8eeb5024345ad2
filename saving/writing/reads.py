"""Which attributes of modules Python code reads: their values go into the graphs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any

from ...core.extend import Module

# Those who listen, in any thread.
_listening: list[set[tuple[int, str]]] = []
_LOCK = RLock()


@contextmanager
def reads_of(listens: bool) -> Iterator[set[tuple[int, str]]]:
    """Note which attributes of modules are read in this block, by any code and in any thread.

    Parameters
    ----------
    listens
        Whether to; a class that changes too often is looked up slowly from then on.

    Yields
    ------
    set
        Pairs of a module's ``id`` and the name of an attribute of the instance.
    """
    found: set[tuple[int, str]] = set()
    if not listens:
        yield found
        return
    with _LOCK:
        _listening.append(found)
        Module.__getattribute__ = _noting  # type: ignore[method-assign, assignment]
    try:
        yield found
    finally:
        with _LOCK:
            _listening[:] = [x for x in _listening if x is not found]
            if not _listening:
                del Module.__getattribute__


def _noting(self: Module, name: str) -> Any:
    value = object.__getattribute__(self, name)
    if name in object.__getattribute__(self, "__dict__"):
        for found in _listening:
            found.add((id(self), name))
    return value
