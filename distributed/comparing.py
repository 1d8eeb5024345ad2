"""Compares arrays between ranks by digests, and copies the variables of one rank to all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import xxhash

from ..core.errors import DistributedError
from ..core.extend import Module, Variable, communicator, flatten, ranks_in_words, to_numpy
from .agreement import agree


def compare(who: str, what: str, hint: str, arrays: Iterable[Any]) -> None:
    """Raise on all ranks if they do not have the same arrays; collective.

    Parameters
    ----------
    who
        The caller, for the message.
    what
        The kind of arrays, such as ``"variables"``.
    hint
        What to do if they differ.
    arrays
        This rank's arrays, of any backend.

    Raises
    ------
    DistributedError
        If arrays differ. The message names the ranks that differ from most.
    """
    found = communicator()
    if found.size == 1:
        return
    agree(found, f"called {who}, which compares {what}")
    told = found.exchange(digest_of(arrays).encode())
    if len(set(told)) == 1:
        return
    usual = max(told, key=lambda x: (told.count(x), x == told[0]))
    others = [rank for rank, x in enumerate(told) if x != usual]
    rest = "the others" if told.count(usual) > 1 else f"rank {told.index(usual)}"
    verb = "has" if len(others) == 1 else "have"
    raise DistributedError(
        f"{who}: {ranks_in_words(others)} of {len(told)} {verb} different {what} from {rest}; "
        f"{hint}"
    )


def digest_of(arrays: Iterable[Any]) -> str:
    """Return a digest of the dtypes, shapes and bytes of arrays."""
    state = xxhash.xxh3_128()
    for array in arrays:
        host = np.ascontiguousarray(to_numpy(array))
        state.update(f"{host.dtype}{host.shape}".encode())
        state.update(host.reshape(-1).view(np.uint8).data)
    return str(state.hexdigest())


def broadcast_variables(variables: Any, root: int = 0) -> None:
    """Copy the values of variables from one rank to all; collective.

    Parameters
    ----------
    variables
        A module, or variables in any container. All ranks have the same ones, except for values.
    root
        The rank whose values are copied; 0 by default.

    Raises
    ------
    DistributedError
        If the number, shapes or dtypes of variables differ between ranks.

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
        in_order = np.ascontiguousarray(mine).reshape(mine.shape)  # as engines require
        _give(variable, found.broadcast(in_order, root))


def _give(variable: Variable, value: Any) -> None:
    """Assign a value unless the variable has the same bits already."""
    if variable.numpy().tobytes() != value.tobytes():
        variable.assign(value)
