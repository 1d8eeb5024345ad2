"""What is done to a function's tree beside AutoGraph's own converters."""

from __future__ import annotations

import ast
from types import ModuleType
from typing import Any

from .sources import Source

__all__ = ["before_analysis", "with_asserts"]


def before_analysis(source: Source, namespace: dict[str, Any], options: str) -> Any:
    """Return a function's node as the converters want it.

    Parameters
    ----------
    source
        Where the function stands.
    namespace
        The names that it sees.
    options
        What to call ``set_loop_options`` by.
    """
    node: Any = source.node
    given = node.args
    given.defaults = [ast.Constant(None) for _ in given.defaults]  # set from the function itself
    given.kw_defaults = [x and ast.Constant(None) for x in given.kw_defaults]
    for x in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg):
        if x is not None:
            x.annotation = None
    if isinstance(node, ast.FunctionDef):
        node.returns, node.decorator_list = None, []
    return _Renamed(source.owner, namespace, options).visit(node)


class _Renamed(ast.NodeTransformer):
    """Mangles private names as the class around does, and renames the loop options."""

    def __init__(self, owner: str | None, namespace: dict[str, Any], options: str) -> None:
        self._owner = owner.lstrip("_") if owner else None
        self._namespace = namespace
        self._options = options

    def _mangled(self, name: str) -> str:
        private = name.startswith("__") and not name.endswith("__")
        return f"_{self._owner}{name}" if private and self._owner else name

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        self.generic_visit(node)
        node.attr = self._mangled(node.attr)
        return node

    def visit_Name(self, node: ast.Name) -> Any:
        node.id = self._mangled(node.id)
        return node

    def visit_arg(self, node: ast.arg) -> Any:
        node.arg = self._mangled(node.arg)
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        return node  # a class of its own

    def visit_Expr(self, node: ast.Expr) -> Any:
        called = node.value
        if isinstance(called, ast.Call) and _is_options(self._value(called.func)):
            called.func = ast.copy_location(ast.Name(self._options, ast.Load()), called.func)
        return self.generic_visit(node)

    def _value(self, node: ast.expr) -> Any:
        """Return what a dotted name stands for, as far as modules lead."""
        if isinstance(node, ast.Name):
            return self._namespace.get(node.id)
        if isinstance(node, ast.Attribute):
            value = self._value(node.value)
            return getattr(value, node.attr, None) if isinstance(value, ModuleType) else None
        return None


def _is_options(value: Any) -> bool:
    return getattr(value, "sets_loop_options", False) is True


class _Asserts(ast.NodeTransformer):
    """Makes a call of each ``assert``, whatever its message."""

    def visit_Assert(self, node: ast.Assert) -> Any:
        self.generic_visit(node)
        message = node.msg or ast.Constant(None)
        call = ast.parse("ag__.assert_stmt(_, lambda: _)").body[0]
        call.value.args[0], call.value.args[1].body = node.test, message  # type: ignore[attr-defined]
        for x in ast.walk(call):
            keep_place(node, x)
        return call


def keep_place(node: Any, made: Any) -> None:
    """Let a node stand where another does, unless it has a place."""
    from malt.pyct import anno

    if not anno.hasanno(made, anno.Basic.ORIGIN) and "lineno" in made._attributes:
        anno.copyanno(node, made, anno.Basic.ORIGIN)


def with_asserts(node: Any) -> Any:
    """Return a tree in which each ``assert`` is a call."""
    return _Asserts().visit(node)
