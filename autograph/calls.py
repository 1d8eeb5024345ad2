"""Calls in converted code: a user's function is converted too, others run as they are."""

from __future__ import annotations

import functools
import inspect
import sysconfig
from pathlib import Path
from threading import RLock
from types import CodeType, FunctionType, MethodType
from typing import Any

from ..core.extend import Function, late, warn_user
from .sources import NoSource, source_of

__all__ = ["CONVERTED", "KEPT", "ask_for", "call", "converted", "is_users"]

#: The mark of a function that is converted, and of one that is to stay as it is.
CONVERTED = "_gradtape_converted"
KEPT = "_gradtape_not_converted"

_PACKAGE = __name__.partition(".")[0]
_STANDARD = tuple({sysconfig.get_paths()[kind] for kind in ("stdlib", "platstdlib")})
_INSTALLED = frozenset({"site-packages", "dist-packages"})
#: The installed packages in which somebody asked for a conversion: their functions are users'.
_ASKED: set[str] = set()
_CONVERTING = RLock()
#: By a code's id: the code, and what makes its converted function, or None if it cannot be.
_FACTORIES: dict[int, tuple[CodeType, CodeType | None]] = {}


def ask_for(function: Any) -> None:
    """Take the functions of a package for a user's, since one of them is to be converted."""
    function = inspect.unwrap(getattr(function, "func", function))
    _ASKED.add(str(getattr(function, "__module__", "")).partition(".")[0])


def is_users(function: FunctionType) -> bool:
    """Return whether a function is a user's, and not a library's."""
    # code that is made by exec may say by its function alone whose it is
    module = function.__globals__.get("__name__") or function.__module__
    package = str(module).partition(".")[0]
    if package == _PACKAGE:
        return False
    file = function.__code__.co_filename
    if package in _ASKED:
        return True
    return not (_INSTALLED.intersection(Path(file).parts) or file.startswith(_STANDARD))


def call(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None, scope: Any = None) -> Any:
    """Call a function in converted code.

    Parameters
    ----------
    f
        What is called.
    args, kwargs
        Its arguments.
    scope
        Of the function that calls it.
    """
    named = kwargs or {}
    if type(f) in (type, type(len)):
        overload = late("autograph.overloads").overload_of(f, scope)
        if overload is not None:
            return overload(*args, **named)
    return converted(f)(*_functions_converted(f, args), **named)


def _functions_converted(f: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return arguments with users' functions converted, which gradtape's functions will call."""
    if isinstance(f, type) or not str(getattr(f, "__module__", "")).startswith(_PACKAGE):
        return args
    return tuple([converted(x) if isinstance(x, (FunctionType, MethodType)) else x for x in args])


def converted(f: Any) -> Any:
    """Return what runs in a callable's place: itself, if it is not a user's function."""
    if isinstance(f, FunctionType):
        return _function(f)
    if isinstance(f, MethodType):
        inner = converted(f.__func__)
        return f if inner is f.__func__ else MethodType(inner, f.__self__)
    if isinstance(f, functools.partial):
        return functools.partial(converted(f.func), *f.args, **f.keywords)
    if isinstance(f, (type, Function)) or hasattr(f, KEPT):
        return f
    called = getattr(type(f), "__call__", None)  # noqa: B004
    if isinstance(called, FunctionType):
        inner = _function(called)
        return f if inner is called else MethodType(inner, f)
    return f


def _function(f: FunctionType) -> Any:
    if hasattr(f, CONVERTED) or hasattr(f, KEPT) or not is_users(f) or not _runs_at_once(f):
        return f
    code = f.__code__
    if id(code) not in _FACTORIES:
        with _CONVERTING:
            if id(code) not in _FACTORIES:
                _FACTORIES[id(code)] = (code, _factory(f))
    factory = _FACTORIES[id(code)][1]
    if factory is None:
        return f
    made = late("autograph.transforms").instance_of(factory, f, late("autograph.operators"))
    setattr(made, CONVERTED, True)
    return made


def _runs_at_once(f: FunctionType) -> bool:
    kinds = (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    return not any(asks(f) for asks in kinds)


def _factory(f: FunctionType) -> CodeType | None:
    """Return what makes a converted function; None, and a warning, if it cannot be made."""
    try:
        source = source_of(f.__code__)
        made: CodeType = late("autograph.transforms").factory_of(source, f)
        return made
    except NoSource as error:
        reason = str(error)
    except Exception as error:
        reason = f"AutoGraph does not convert it ({type(error).__name__}: {error})"
    warn_user(
        f"autograph: {f.__qualname__!r} runs as it is, without its 'if', 'while' and 'for' being "
        f"traced: {reason}. gradtape.autograph.do_not_convert says that this is meant",
        UserWarning,
    )
    return None
