"""Several variables at once: locking, assignment, and hiding while their memory is written."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter
from typing import Any

from ..base.context import active_tapes
from .variable import Pending, Variable

# the slot itself, which is set without running Python code
_hold = vars(Variable)["_array"].__set__


def set_arrays(variables: Sequence[Variable], arrays: Iterable[Any]) -> None:
    """Replace the raw arrays of variables: all of them, or none if a signal handler raises.

    Parameters
    ----------
    variables
        The variables. An executor passes those of ``graph.updates``, which are locked while it
        runs.
    arrays
        An array for each, of its variable's backend, shape and dtype.

    See Also
    --------
    Variable.set_array : The same for one.

    Examples
    --------
    >>> from gradtape.plugin import set_arrays
    >>> v = gt.Variable([1.0, 2.0])
    >>> set_arrays([v], [np.array([3.0, 4.0], "float32")])
    >>> v.tolist()
    [3.0, 4.0]
    """
    for tape in active_tapes.get():
        for variable in variables:
            tape.changing(variable, variable._array)
    # Python runs signal handlers between bytecode instructions, and this is a single one
    deque(map(_hold, variables, arrays), maxlen=0)


def put_away(variables: Iterable[Variable], copies: Iterable[Pending]) -> None:
    """Hide the arrays of variables while the holder of their locks writes into them.

    Other threads wait, and the same thread reads copies. :func:`put_back` ends this.

    Parameters
    ----------
    variables
        The variables.
    copies
        For each variable, a :class:`Pending` that copies its array.
    """
    for variable, pending in zip(variables, copies, strict=True):
        variable._pending = pending
        del variable._array


def put_back(variables: Iterable[Variable], arrays: Iterable[Any]) -> None:
    """Restore the arrays that :func:`put_away` has hidden.

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
    """Prevent other threads from changing variables while a block reads and changes them.

    It is reentrant, and any thread may enter it again.

    Parameters
    ----------
    variables
        The variables.
    """

    __slots__ = ("_locks",)

    def __init__(self, variables: Iterable[Variable]) -> None:
        # always in the same order, to avoid deadlocks between threads
        self._locks = [v.lock for v in sorted(set(variables), key=attrgetter("id"))]

    def __enter__(self) -> None:
        for lock in self._locks:
            lock.acquire()

    def __exit__(self, *error: object) -> None:
        for lock in self._locks:
            lock.release()


@contextmanager
def holding(states: Sequence[tuple[Variable, Any]]) -> Iterator[None]:
    """Run a block with other arrays in variables, then restore the current ones.

    Parameters
    ----------
    states
        Variables, each with an array of its backend, shape and dtype.
    """
    others = [(variable, then) for variable, then in states if variable.array is not then]
    with exclusive(variable for variable, _ in states):
        now = [(variable, variable.array) for variable, _ in states]
        try:
            for variable, then in others:
                variable.set_array(then)
            yield
        finally:
            for variable, array in now:
                variable.set_array(array)
