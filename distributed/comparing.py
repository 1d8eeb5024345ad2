"""Arrays that all ranks are to have alike: compared by digests, or given to all by one of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import xxhash

from ..core.errors import DistributedError
from ..core.extend import Module, Variable, communicator, flatten, ranks_in_words, to_numpy

__all__ = ["broadcast_variables", "compare", "digest_of"]


def compare(who: str, what: str, hint: str, arrays: Iterable[Any]) -> None:
    """Raise on all ranks if they do not have the same arrays; collective.

    Parameters
    ----------
    who
        Who asks, for the message.
    what
        What the arrays are.
    hint
        What it means, and what to do.
    arrays
        This rank's, of any backend.

    Raises
    ------
    DistributedError
        With the ranks that have others than most.
    """
    found = communicator()
    if found.size == 1:
        return
    told = found.exchange(digest_of(arrays).encode())
    if len(set(told)) == 1:
        return
    usual = max(told, key=lambda x: (told.count(x), x == told[0]))
    others = [rank for rank, x in enumerate(told) if x != usual]
    rest = "the others" if told.count(usual) > 1 else f"rank {told.index(usual)}"
    verb = "has" if len(others) == 1 else "have"
    raise DistributedError(
        f"{who}: {ranks_in_words(others)} of {len(told)} {verb} other {what} than {rest}; {hint}"
    )


def digest_of(arrays: Iterable[Any]) -> str:
    """Return what tells arrays apart: a digest of their dtypes, shapes and bytes."""
    state = xxhash.xxh3_128()
    for array in arrays:
        host = np.ascontiguousarray(to_numpy(array))
        state.update(f"{host.dtype}{host.shape}".encode())
        state.update(host.reshape(-1).view(np.uint8).data)
    return str(state.hexdigest())


def broadcast_variables(variables: Any, root: int = 0) -> None:
    """Give variables the values that they have on one rank; collective.

    Parameters
    ----------
    variables
        A module, or variables in any container, alike on all ranks but for their values.
    root
        The rank whose values all get; 0 by default.

    Raises
    ------
    DistributedError
        If ranks have variables of other shapes, dtypes or numbers.

    Examples
    --------
    >>> gt.distributed.broadcast_variables(gt.layers.Dense(3))  # in a group of one
    """
    found = communicator()
    if found.size == 1:
        return
    held = variables.variables if isinstance(variables, Module) else flatten(variables)
    likes = [np.array([f"{v.dtype}{v.shape}"]).view(np.uint8) for v in held]
    hint = "build it by a call with one batch on each, in the same way"
    compare("distributed.broadcast_variables", "variables", hint, likes)
    for variable in held:
        mine = variable.numpy()
        in_order = np.ascontiguousarray(mine).reshape(mine.shape)  # as engines send it
        _give(variable, found.broadcast(in_order, root))


def _give(variable: Variable, value: Any) -> None:
    """Assign a value, if it is another, bit for bit."""
    if variable.numpy().tobytes() != value.tobytes():
        variable.assign(value)
