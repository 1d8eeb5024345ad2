"""The parameters of traced functions, and the keys by which Python values select traces."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

# Functions whose calls do not run their code.
_NO_TRACE: dict[str, Callable[[Any], bool]] = {
    "a generator": inspect.isgeneratorfunction,
    "a coroutine": inspect.iscoroutinefunction,
    "an asynchronous generator": inspect.isasyncgenfunction,
}


def signatures_of(
    function: Callable[..., Any], name: str
) -> tuple[inspect.Signature, inspect.Signature]:
    """Return the signature that names a function's parameters, and the one that binds arguments.

    Raises
    ------
    TypeError
        If its parameters cannot be known, or it is a generator or a coroutine.
    """
    for kind, asks in _NO_TRACE.items():
        if asks(function):
            raise TypeError(
                f"function {name!r} is {kind}, which runs after its trace has ended; "
                "return values instead (gradtape.scan and gradtape.while_loop repeat)"
            )
    try:
        if isinstance(function, np.ufunc):
            raise ValueError("its optional parameters do not all go together")
        named = inspect.signature(function)
        # a transformed function distinguishes positional from keyword arguments
        as_given = getattr(function, "_as_given", False)
        return named, inspect.signature(function, follow_wrapped=False) if as_given else named
    except ValueError:
        raise TypeError(
            f"function: the parameters of {function!r} are unknown; wrap it in a "
            "Python function (and use gradtape's op instead of NumPy's)"
        ) from None


def static_key(leaf: Any, what: str) -> Any:
    """Return the key by which a Python value selects a trace.

    Raises
    ------
    TypeError
        If it is not hashable.
    """
    # 2 and 2.0 are different arguments; so are True and 1, and 0.0 and -0.0
    if type(leaf) in (float, complex):
        return repr(leaf)
    try:
        hash(leaf)
    except TypeError:
        raise TypeError(
            f"{what} of type {type(leaf).__name__} is neither a tensor nor hashable, so it "
            "cannot select a trace; pass a tensor or a hashable value"
        ) from None
    return (type(leaf), leaf)
