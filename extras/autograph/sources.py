"""The syntax tree of a function, with the lines of its file.

``inspect`` returns a function's text without its position. This module parses the whole file, so
that each node has the line and column that the user sees, and lambdas in one line can be
distinguished.
"""

from __future__ import annotations

import ast
import copy
import inspect
import linecache
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType
from typing import Any, NamedTuple

#: Statements that may handle errors.
HANDLING = (ast.Try, ast.TryStar, ast.With, ast.AsyncWith)


class NoSource(Exception):
    """The source of a function is not available; the message says why."""


class Source(NamedTuple):
    """A function's node, its file and its enclosing class."""

    node: ast.FunctionDef | ast.Lambda
    file: str
    owner: str | None


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
        raise NoSource("its source is not available (it was typed into a shell or made by exec)")
    found = [
        (node, owner)
        for node, owner in _functions(_parsed(file, tuple(lines), code.co_firstlineno))
        if _is_of(node, code)
    ]
    if len(found) > 1:
        found = [(node, owner) for node, owner in found if _covers(node, code)]
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
