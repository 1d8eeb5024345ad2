"""Checks that ranks run the same code on equal values before they run a step together.

Arrays are compared by digests, and the variables of one rank can be copied to all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from hashlib import sha256
from typing import Any
from zlib import crc32

import numpy as np
import xxhash

from ..core.errors import DistributedError
from ..core.extend import (
    Communicator,
    Dim,
    Graph,
    Module,
    Size,
    Variable,
    communicator,
    flatten,
    ranks_in_words,
    to_numpy,
    told_by_ranks,
)

_NOTHING = np.empty(0)
#: Ops that wait for other ranks, and their local counterparts.
_COLLECTIVE = re.compile(r"\b(\w+_ranks?)\(")


def agree(found: Communicator, what: str) -> None:
    """Raise on every rank if ranks run different things; collective.

    Parameters
    ----------
    found
        The ranks.
    what
        A description of what this rank does, in the past tense.

    Raises
    ------
    DistributedError
        If descriptions differ. The message lists each with its ranks.
    """
    if not _same(found, what, what.removeprefix("called ")):
        raise DistributedError(f"ranks run different code: {told_by_ranks(found, what)}")


def agree_on_graph(group: Any, graph: Graph) -> None:
    """Raise on every rank if ranks traced different graphs; collective.

    Ranks compare ops, dtypes, numbers of axes, variables and their connections. If the arrays of
    all ranks have the same shapes, they also compare sizes and the numbers in the code. Values of
    arrays are not compared.

    Parameters
    ----------
    group
        A :class:`Group`.
    graph
        The graph that this rank traced.

    Raises
    ------
    DistributedError
        If another rank traced a different graph. The message shows the first op that differs.
    """
    found = group.communicator
    if found.size == 1:
        return
    given = [*graph.inputs, *graph.constants]
    doing = f"{graph.name}, which compares its trace"
    alike = _same(found, " ".join(_described(x, True) for x in given), doing)
    lines = [*lines_of(graph, sizes=alike), "nothing more"]
    if _same(found, sha256("\n".join(lines).encode()).hexdigest(), doing):
        return
    codes = [json.loads(x) for x in found.exchange(json.dumps([*map(_code, lines)]).encode())]
    longest = max(map(len, codes))
    apart = next(i for i in range(longest) if len({x[i] if i < len(x) else 0 for x in codes}) > 1)
    mine = lines[min(apart, len(lines) - 1)]
    hint = " Pass values that differ between ranks as arguments, as arrays." if alike else ""
    raise DistributedError(
        f"ranks run different code, from op {apart} of {graph.name!r} on: "
        f"{told_by_ranks(found, f'traced {mine}')}.{hint}"
    )


def messages_of(graph: Graph) -> list[str]:
    """Return the names of the collectives in a graph and its subgraphs, in order."""
    return _COLLECTIVE.findall("\n".join(lines_of(graph, sizes=False)))


def lines_of(graph: Graph, sizes: bool) -> Iterator[str]:
    """Yield a line for each node of a graph, the same on each rank that runs the same code.

    Parameters
    ----------
    graph
        A traced program.
    sizes
        Whether lines include sizes and numbers.
    """
    places = {x: f"%{i}" for i, x in enumerate([*graph.inputs, *graph.constants])}
    for node in graph.nodes:
        name = node.op.name
        variable = getattr(node.op, "variable", None)
        if variable is not None:
            name += f" variable {variable.name} {variable.dtype}{list(variable.shape or ())}"
        inputs = [places.get(x, "outer") if hasattr(x, "dtype") else x for x in node.inputs]
        inputs = [x if isinstance(x, str) else _value(x, sizes) for x in inputs]
        params = [f"{key}={_value(x, sizes)}" for key, x in sorted(node.params.items())]
        for output in node.outputs:
            places[output] = f"%{len(places)}"
        outputs = [f"{places[x]}: {_described(x, sizes)}" for x in node.outputs]
        yield f"{name}({', '.join([*inputs, *params])}) -> {', '.join(outputs)}"


def _described(symbol: Any, sizes: bool) -> str:
    shape = symbol.shape
    if shape is None:
        return f"{symbol.dtype}[...]"
    known = [str(n) if sizes and isinstance(n, int) else "?" for n in shape]
    return f"{symbol.dtype}[{', '.join(known)}]"


def _value(x: Any, sizes: bool) -> str:
    """Return a parameter's value as text without addresses; numbers only with ``sizes``."""
    if isinstance(x, (bool, str, type(None), np.dtype)):
        return repr(x) if isinstance(x, str) else str(x)
    if isinstance(x, (Dim, Size)):
        return "?"
    if isinstance(x, (int, float, complex, np.number)):
        return str(x) if sizes else "?"
    if isinstance(x, (tuple, list)):
        return f"({', '.join(map(partial(_value, sizes=sizes), x))})"
    if isinstance(x, slice):
        return f"slice{_value((x.start, x.stop, x.step), sizes)}"
    if isinstance(x, Mapping):
        return f"{{{', '.join(f'{key}: {_value(y, sizes)}' for key, y in sorted(x.items()))}}}"
    if isinstance(x, Graph):
        return f"{{{'; '.join(lines_of(x, sizes))}}}"
    if isinstance(x, np.ndarray):
        return f"array of {x.dtype}"
    return str(getattr(x, "__qualname__", type(x).__qualname__))


def _same(found: Communicator, what: str, doing: str) -> bool:
    """Return whether the text is the same on all ranks; collective."""
    if found.size == 1:
        return True
    found.comparing = doing
    try:
        # as collectives do: a rank that calls one meanwhile is named
        return bool(found.compare(_code(what), _NOTHING)[0])
    finally:
        found.comparing = None


def _code(text: str) -> int:
    return crc32(text.encode())


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
