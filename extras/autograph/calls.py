"""Calls in converted code: user functions are converted too, all others run unchanged."""

from __future__ import annotations

import ast
import functools
import inspect
import sys
import sysconfig
from pathlib import Path
from threading import RLock
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

from ..core.extend import Function, late, registry, warn_user
from .sources import HANDLING, NoSource, source_of

#: Attributes that mark a function as converted, or a function or package as never to be converted.
CONVERTED = "_gradtape_converted"
KEPT = "_gradtape_not_converted"

_STANDARD = tuple({sysconfig.get_paths()[kind] for kind in ("stdlib", "platstdlib")})
_INSTALLED = frozenset({"site-packages", "dist-packages"})
#: Installed packages that asked for a conversion: their functions count as user functions.
_ASKED: set[str] = set()
_CONVERTING = RLock()
#: Besides classes, what `gradtape_converters` may replace: objects that are known by identity.
_REPLACED = (FunctionType, BuiltinFunctionType, np.ufunc)
#: Maps a code's id to the code and its factory, which is None if the code cannot be converted.
_FACTORIES: dict[int, tuple[CodeType, CodeType | None]] = {}
# as `do_not_convert(package)` marks any other package
setattr(sys.modules[__name__.partition(".")[0]], KEPT, True)


def ask_for(function: Any) -> None:
    """Treat a package's functions as user functions, because one of them will be converted."""
    function = inspect.unwrap(getattr(function, "func", function))
    _ASKED.add(str(getattr(function, "__module__", "")).partition(".")[0])


def is_users(function: FunctionType) -> bool:
    """Return whether a function belongs to the user rather than to a library."""
    # for code made by exec, only the function may know its module
    module = function.__globals__.get("__name__") or function.__module__
    return not is_installed(str(module), function.__code__.co_filename)


def is_installed(module: str, file: str) -> bool:
    """Return whether a module belongs to Python or to a library.

    Parameters
    ----------
    module
        The module's name.
    file
        Its file.
    """
    package = module.partition(".")[0]
    if is_kept(module) or package in sys.builtin_module_names:
        return True
    if package in _ASKED:
        return False
    if is_of_plugins(module):
        return True
    return bool(_INSTALLED.intersection(Path(file).parts)) or file.startswith(_STANDARD)


def is_kept(module: str) -> bool:
    """Return whether a module's package is marked by ``do_not_convert``."""
    return KEPT in vars(sys.modules.get(module.partition(".")[0], sys))


def is_of_plugins(module: str) -> bool:
    """Return whether a module's package has plugins that its distribution declares."""
    return module.partition(".")[0] in registry().packages


def call(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None, scope: Any = None) -> Any:
    """Call a function in converted code.

    Parameters
    ----------
    f
        The function or other callable.
    args, kwargs
        Its arguments.
    scope
        The :class:`FunctionScope` of the caller.
    """
    named = kwargs or {}
    if isinstance(f, (type, *_REPLACED)):
        overload = late("autograph.overloads").overload_of(f, scope)
        if overload is not None:
            return overload(*args, **named)
    made = converted(f)
    if made is f and not isinstance(f, FunctionType):  # others take items in code that is traced
        late("autograph.mutations").check_consumed([*args, getattr(f, "__self__", None)])
    return made(*_functions_converted(f, args), **named)


def _functions_converted(f: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return arguments with the user functions among them converted, if a plugin calls them."""
    if isinstance(f, type) or not is_of_plugins(str(getattr(f, "__module__", ""))):
        return args
    return tuple([converted(x) if isinstance(x, (FunctionType, MethodType)) else x for x in args])


def converted(f: Any) -> Any:
    """Return the converted callable, or the callable itself if it is not a user function."""
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
    if hasattr(f, CONVERTED) or hasattr(f, KEPT) or not is_users(f):
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
    """Return the factory of a converted function; warn if it cannot be converted."""
    transforms = late("autograph.transforms")
    if not _runs_at_once(f):
        return _noting_factory(f)
    try:
        made: CodeType = transforms.factory_of(source_of(f.__code__), f)
        return made
    except NoSource as error:
        reason = str(error)
    except Exception as error:
        reason = f"AutoGraph does not convert it ({type(error).__name__}: {error})"
    warn_user(
        f"autograph: {f.__qualname__!r} runs unconverted, so its 'if', 'while' and 'for' are not "
        f"traced: {reason}. Decorate it with gradtape.autograph.do_not_convert if this is intended",
        UserWarning,
    )
    return _noting_factory(f)


def _noting_factory(f: FunctionType) -> CodeType | None:
    """Return the factory of a function as it is, in which handlers do not hide errors of a trace.

    None if it handles no errors, or if its source is not available.
    """
    transforms = late("autograph.transforms")
    try:
        source = source_of(f.__code__)
        if not any(isinstance(x, HANDLING) for x in ast.walk(source.node)):
            return None
        made: CodeType = transforms.factory_of(source, f, transforms.noting)
        return made
    except Exception:  # it runs as it is
        return None
