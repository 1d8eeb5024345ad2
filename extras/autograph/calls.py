"""Which functions are converted when they are called, and their sources."""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import linecache
import sys
import sysconfig
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from threading import RLock
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import Any, NamedTuple

import numpy as np

from ..core.extend import Function, lazy_module, registry, warn_user

#: Statements that may handle errors.
HANDLING = (ast.Try, ast.TryStar, ast.With, ast.AsyncWith)


class NoSource(Exception):
    """The source of a function is not available; the message says why."""


class Source(NamedTuple):
    """A function's node, its file and its enclosing class."""

    node: ast.FunctionDef | ast.Lambda
    file: str
    owner: str | None


_NOT_KEPT = "its source is not available (it was typed into a shell or made by exec)"


def source_of(code: CodeType) -> Source:
    """Return the source of a function; the node is a copy.

    Raises
    ------
    NoSource
        If there is no file, as in a shell, or if the file does not contain the function.
    """
    file = code.co_filename
    lines = linecache.getlines(file)
    if not lines:
        raise NoSource(_NOT_KEPT)
    found = [
        (node, owner)
        for node, owner in _functions(_parsed(file, tuple(lines), code.co_firstlineno))
        if _is_of(node, code)
    ]
    if len(found) > 1:
        found = [(node, owner) for node, owner in found if _covers(node, code)]
    if not found and file.startswith("<"):  # Python 3.13 keeps what "python -c" runs
        raise NoSource(_NOT_KEPT)
    if len(found) != 1:
        where = f"{file}:{code.co_firstlineno}"
        raise NoSource(
            f"{where} has several functions of its form"
            if found
            else f"{where} does not contain it (any more)"
        )
    ((node, owner),) = found
    return Source(copy.deepcopy(node), file, owner)


@lru_cache(maxsize=32)
def _parsed(file: str, lines: tuple[str, ...], first: int) -> ast.AST:
    try:
        return _module(file, lines)
    except SyntaxError:  # a page with code in it: parse only the block
        pass
    block = inspect.getblock(list(lines[first - 1 :]))
    inside = block[0][:1].isspace()
    try:
        tree = ast.parse("".join(["if 1:\n", *block] if inside else block))
    except SyntaxError:
        raise NoSource(f"{file} cannot be parsed") from None
    return ast.increment_lineno(tree, first - 1 - inside)


@lru_cache(maxsize=8)
def _module(file: str, lines: tuple[str, ...]) -> ast.AST:
    return ast.parse("".join(lines))


def _functions(tree: ast.AST, owner: str | None = None) -> Iterator[tuple[Any, str | None]]:
    """Yield the functions in a tree, each with the class that its private names are mangled by."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            yield node, owner
        yield from _functions(node, node.name if isinstance(node, ast.ClassDef) else owner)


def _is_of(node: Any, code: CodeType) -> bool:
    if isinstance(node, ast.Lambda):
        name, first = "<lambda>", node.lineno
    else:
        name, first = node.name, min([x.lineno for x in (node, *node.decorator_list)])
    a = node.args
    names = [x.arg for x in (*a.posonlyargs, *a.args, *a.kwonlyargs)]
    names += [x.arg for x in (a.vararg, a.kwarg) if x is not None]
    return (
        code.co_name == name
        and first == code.co_firstlineno
        and list(code.co_varnames[: len(names)]) == names
    )


def _covers(node: Any, code: CodeType) -> bool:
    """Return whether a code comes from a node: of several lambdas in a line, compare columns."""
    if not isinstance(node, ast.Lambda):
        return True
    body = node.body
    low, high = (body.lineno, body.col_offset), (body.end_lineno, body.end_col_offset)
    spots = [
        ((line, column), (end_line, end_column))
        for line, end_line, column, end_column in code.co_positions()
        if None not in (line, end_line, column, end_column)
        and (line, column) != (end_line, end_column)
    ]
    spots = [(a, b) for a, b in spots if a != (code.co_firstlineno, 0)]
    return bool(spots) and min(a for a, _ in spots) == low and max(b for _, b in spots) == high


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
        overload = lazy_module("autograph.overloads").overload_of(f, scope)
        if overload is not None:
            return overload(*args, **named)
    made = converted(f)
    if made is f and not isinstance(f, FunctionType):  # others take items in code that is traced
        lazy_module("autograph.mutations").check_consumed([*args, getattr(f, "__self__", None)])
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
    made = lazy_module("autograph.transforms").instance_of(
        factory, f, lazy_module("autograph.operators")
    )
    setattr(made, CONVERTED, True)
    return made


def _runs_at_once(f: FunctionType) -> bool:
    kinds = (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    return not any(asks(f) for asks in kinds)


def _factory(f: FunctionType) -> CodeType | None:
    """Return the factory of a converted function; warn if it cannot be converted."""
    transforms = lazy_module("autograph.transforms")
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
    transforms = lazy_module("autograph.transforms")
    try:
        source = source_of(f.__code__)
        if not any(isinstance(x, HANDLING) for x in ast.walk(source.node)):
            return None
        made: CodeType = transforms.factory_of(source, f, transforms.noting)
        return made
    except Exception:  # it runs as it is
        return None
