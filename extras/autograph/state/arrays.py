"""NumPy arrays that a loop carries: in a trace they are tensors, which no statement changes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.extend import COUNTS, Tensor, user_line
from ..values import Mark

State = Callable[[], tuple[Any, ...]]

#: Of tensors that stand for arrays which others refer to.
_SHARED = Mark()


def _references(get_state: State, i: int) -> int:
    state = get_state()
    return sys.getrefcount(state[i])


def _of_one_name() -> int:
    array = np.zeros(1)

    def get_state() -> tuple[Any, ...]:
        return (array,)

    return _references(get_state, 0)


#: The reference count of an array that one variable holds.
_ONE = _of_one_name()


def shared_arrays(get_state: State) -> frozenset[int]:
    """Return which variables hold arrays that something else refers to, such as a view.

    Parameters
    ----------
    get_state
        Returns the variables. Nothing else may hold their values yet.
    """
    if not COUNTS:
        return frozenset()
    arrays = [i for i, x in enumerate(get_state()) if isinstance(x, np.ndarray)]
    return frozenset([i for i in arrays if _references(get_state, i) > _ONE])


def mark_shared(tensor: Tensor) -> Tensor:
    """Mark a tensor as an array that something else refers to."""
    return _SHARED.put_on(tensor)


def check_in_place(value: Any) -> None:
    """Raise if an augmented assignment would change an array that has another name.

    Raises
    ------
    ValueError
        If ``value`` is a marked tensor: the assignment would change the variable alone.
    """
    if value in _SHARED:
        raise ValueError(
            f"{user_line()}: this would change a NumPy array in place, which a traced statement "
            "turned into a tensor, while something else refers to the array, such as a view; write "
            "'a = a + b', or copy the array before the statement"
        )
