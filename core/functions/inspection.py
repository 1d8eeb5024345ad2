"""Python functions and values: their names and identity, parameters, keys, and pickling."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from types import FrameType, FunctionType, MethodType
from typing import Any

import numpy as np

# Modules that accept functions without a name: Python's ``copy``, and picklers of code.
_TAKE_ANY = frozenset({"copy", "cloudpickle", "dill", "_dill"})


def found_by_name(value: Any) -> bool:
    """Return whether pickle finds a function by its name."""
    found: Any = sys.modules.get(str(value.__module__))
    for part in getattr(value, "__qualname__", "").split("."):
        found = getattr(found, part, None)
    return found is value


def pickled_as_code() -> bool:
    """Return whether the caller copies functions, or pickles them as code.

    Such picklers accept functions without a name, and those of the main module, which is a
    different module in each process.
    """
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if str(frame.f_globals.get("__name__")).rpartition(".")[2] in _TAKE_ANY:
            return True
        frame = frame.f_back
    return False


# -- identity --------------------------------------------------------------------------------------


def name_of(f: Any) -> str:
    """Return a function's name for messages."""
    return str(getattr(f, "__qualname__", getattr(f, "__name__", repr(f)))).split("<locals>.")[-1]


def identity_of(f: Any) -> Any:
    """Return a key that is equal for functions that do the same, as far as this is known.

    A function that is defined inside another one is a new object each time. It does the same if it
    has the same code and captures the same objects. The key contains ids: keep the function.
    """
    if isinstance(f, MethodType):
        return identity_of(f.__func__), id(f.__self__)
    if isinstance(f, functools.partial):
        named = tuple((key, key_of(x)) for key, x in f.keywords.items())
        return identity_of(f.func), tuple(map(key_of, f.args)), named
    if not isinstance(f, FunctionType):
        return id(f)
    named = tuple((f.__kwdefaults__ or {}).items())
    held = [*(f.__defaults__ or ()), *(x for _, x in named)]
    return f.__code__, tuple(map(key_of, held)), tuple(map(_content, f.__closure__ or ()))


def _content(cell: Any) -> Any:
    try:
        return key_of(cell.cell_contents)
    except ValueError:  # empty
        return id(cell)


def key_of(x: Any) -> Any:
    """Return a key of a Python value: the content of what cannot change, the identity of others."""
    if type(x) in (float, complex):
        return repr(x)  # 0.0 and -0.0 differ, and nan does not
    if x is None or type(x) in (bool, int, str, bytes):
        return type(x), x
    return tuple(map(key_of, x)) if type(x) is tuple else id(x)


# -- parameters ------------------------------------------------------------------------------------


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
