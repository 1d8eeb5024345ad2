"""Several variables at once: locked, changed, and put away while somebody writes into them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any

from ..base.context import active_tapes
from .variable import Pending, Variable

__all__ = ["exclusive", "put_away", "put_back", "set_arrays"]

# the slot itself, which is set without a step of Python
_hold = vars(Variable)["_array"].__set__


def set_arrays(variables: Sequence[Variable], arrays: Iterable[Any]) -> None:
    """Replace the raw arrays of variables, of all or, if a signal's handler raises, of none.

    Parameters
    ----------
    variables
        The variables; whoever calls this holds :func:`exclusive` of them.
    arrays
        An array for each, of its variable's backend, shape and dtype.

    See Also
    --------
    Variable.set_array : The same for one.
    """
    for tape in active_tapes.get():
        for variable in variables:
            tape.changing(variable, variable._array)
    # Python calls handlers between two of its steps, and this is one
    deque(map(_hold, variables, arrays), maxlen=0)


def put_away(variables: Iterable[Variable], copies: Iterable[Pending]) -> None:
    """Let nobody find the arrays of variables while whoever holds the locks writes into them.

    Other threads wait; the same one reads copies. :func:`put_back` ends it.

    Parameters
    ----------
    variables
        The variables.
    copies
        What copies the array of each.
    """
    for variable, pending in zip(variables, copies, strict=True):
        variable._pending = pending
        del variable._array


def put_back(variables: Iterable[Variable], arrays: Iterable[Any]) -> None:
    """Give variables the arrays that were put away.

    Parameters
    ----------
    variables
        The variables.
    arrays
        The array of each.
    """
    for variable, array in zip(variables, arrays, strict=True):
        variable._array = array
        variable._pending = None


class exclusive:
    """Keep other threads from changing variables while a block reads and changes them.

    It may be entered again, by any thread, also within itself.

    Parameters
    ----------
    variables
        The variables.
    """

    __slots__ = ("_locks",)

    def __init__(self, variables: Iterable[Variable]) -> None:
        # in one order for all, or two threads could wait for each other
        self._locks = [v.lock for v in sorted(set(variables), key=attrgetter("id"))]

    def __enter__(self) -> None:
        for lock in self._locks:
            lock.acquire()

    def __exit__(self, *error: object) -> None:
        for lock in self._locks:
            lock.release()
