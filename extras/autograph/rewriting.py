"""Changes to a function's syntax tree besides those of AutoGraph's own converters."""

from __future__ import annotations

import ast
import copy
from collections import Counter
from types import ModuleType
from typing import Any

from malt.pyct import anno, qual_names

from .calls import NoSource, Source

# Syntax that the converters do not know and would get wrong.
_NOT_CONVERTED = (
    ast.NamedExpr,
    ast.Match,
    ast.TryStar,
    ast.Yield,
    ast.YieldFrom,
    ast.Await,
    ast.AsyncFor,
    ast.AsyncWith,
    ast.AsyncFunctionDef,
)
_WORDS: dict[type, str] = {ast.NamedExpr: "':='", ast.TryStar: "'except*'"}


def before_analysis(
    source: Source, namespace: dict[str, Any], options: str, convertible: bool = True
) -> Any:
    """Return a function's node in the form that the converters expect.

    Parameters
    ----------
    source
        The function's source.
    namespace
        The names that the function can refer to.
    options
        The name to call ``set_loop_options`` by.
    convertible
        Whether to raise if the converters do not know a part of it.
    """
    node: Any = source.node
    for x in ast.walk(node) if convertible else ():
        if isinstance(x, _NOT_CONVERTED):
            words = _WORDS.get(type(x), f"'{type(x).__name__.lower()}'")
            raise NoSource(f"{words} in line {x.lineno} is not converted")
    given = node.args
    given.defaults = [ast.Constant(None) for _ in given.defaults]  # set from the function itself
    given.kw_defaults = [x and ast.Constant(None) for x in given.kw_defaults]
    for x in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg):
        if x is not None:
            x.annotation = None
    if not isinstance(node, ast.Lambda):
        node.returns, node.decorator_list = None, []
    return _Renamed(source.owner, namespace, options).visit(node)


_LATER = (ast.Lambda, ast.FunctionDef, ast.GeneratorExp, ast.ClassDef)


def captured_names(node: Any) -> Counter[str]:
    """Return how often code inside a function mentions variables that it reads at another time.

    Such code are functions, classes and generators.
    """
    later = [x for x in ast.walk(node) if isinstance(x, _LATER) and x is not node]
    return Counter(name for x in later for name in _free_names(x))


def _free_names(node: Any) -> set[str]:
    """Return the names that a function, class or generator mentions without binding them."""
    found: set[str] = set()
    bound: set[str] = {x.arg for x in _arguments(node)}
    inside = list(ast.iter_child_nodes(node))
    while inside:
        x = inside.pop()
        if isinstance(x, _LATER):
            found |= _free_names(x)
            continue
        if isinstance(x, ast.Name):
            found.add(x.id)
            if isinstance(x.ctx, ast.Store) and not isinstance(node, ast.ClassDef):
                bound.add(x.id)
        inside += ast.iter_child_nodes(x)
    return found - (bound - outer_names(node))


def _arguments(node: Any) -> list[ast.arg]:
    given = getattr(node, "args", None)
    return [x for x in ast.walk(given) if isinstance(x, ast.arg)] if given is not None else []


def outer_names(node: Any) -> frozenset[str]:
    """Return the variables of outer scopes that a function assigns."""
    declared = [x.names for x in ast.walk(node) if isinstance(x, (ast.Global, ast.Nonlocal))]
    return frozenset(name for names in declared for name in names)


class _Renamed(ast.NodeTransformer):
    """Mangles private names as the enclosing class does, and renames ``set_loop_options``."""

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

    def visit_Try(self, node: ast.Try) -> Any:
        self.generic_visit(node)
        if node.orelse:  # the converters cannot take a compound statement at its start
            node.orelse = [ast.copy_location(ast.Pass(), node.orelse[0]), *node.orelse]
        return node

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> Any:
        self.generic_visit(node)
        if node.name is not None:  # the converters expect a node
            bound: Any = ast.parse(f"{self._mangled(node.name)} = ag__.handled()").body[0]
            for x in ast.walk(bound):
                ast.copy_location(x, node)
            node.name, node.body = None, [bound, *node.body]
        return node

    def visit_Expr(self, node: ast.Expr) -> Any:
        called = node.value
        if isinstance(called, ast.Call) and _is_options(self._value(called.func)):
            called.func = ast.copy_location(ast.Name(self._options, ast.Load()), called.func)
        return self.generic_visit(node)

    def _value(self, node: ast.expr) -> Any:
        """Return the object of a dotted name, if all names before the last are modules."""
        if isinstance(node, ast.Name):
            return self._namespace.get(node.id)
        if isinstance(node, ast.Attribute):
            value = self._value(node.value)
            return getattr(value, node.attr, None) if isinstance(value, ModuleType) else None
        return None


def _is_options(value: Any) -> bool:
    return getattr(value, "sets_loop_options", False) is True


class _PrintedValues(ast.NodeTransformer):
    """Turns each ``assert`` and each f-string that is printed into a call."""

    def __init__(self) -> None:
        self._handled: list[ast.expr] = []  # what the handlers around catch

    def visit_Try(self, node: ast.Try) -> Any:
        before = self._handled
        self._handled = [*before, *(x.type or ast.Constant(None) for x in node.handlers)]
        node.body = [self.visit(x) for x in node.body]
        self._handled = before
        node.handlers = [self.visit(x) for x in node.handlers]
        node.orelse = [self.visit(x) for x in node.orelse]
        node.finalbody = [self.visit(x) for x in node.finalbody]
        return node

    def visit_Assert(self, node: ast.Assert) -> Any:
        self.generic_visit(node)
        message = _fstring_as_call(node.msg) if node.msg else ast.Constant(None)
        handled = [copy.deepcopy(x) for x in self._handled]
        caught = _lambda(ast.Tuple(handled, ast.Load())) if handled else ast.Constant(None)
        return ast.Expr(_call("assert_stmt", node, node.test, _lambda(message), caught))

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "print":
            node.args = [_fstring_as_call(x) for x in node.args]
        return node


def _fstring_as_call(node: ast.expr) -> ast.expr:
    """Return an f-string as a call, so that its values may be traced; other nodes unchanged."""
    if not isinstance(node, ast.JoinedStr):
        return node
    parts: list[ast.expr] = []
    for part in node.values:
        if isinstance(part, ast.FormattedValue):
            letter = ast.Constant("" if part.conversion < 0 else chr(part.conversion))
            form = part.format_spec or ast.Constant("")
            part = ast.Tuple([part.value, letter, form], ast.Load())
        parts.append(part)
    return _call("text", node, *parts)


def _lambda(body: ast.expr) -> ast.Lambda:
    made: Any = ast.parse("lambda: None", mode="eval").body
    made.body = body
    return made


def _call(name: str, node: ast.AST, *args: ast.expr) -> ast.Call:
    """Return a call of an operator at the place of a node."""
    function = ast.Attribute(ast.Name("ag__", ast.Load()), name, ast.Load())
    call = ast.Call(qual_names.resolve(function), list(args), [])
    anno.copyanno(node, call, anno.Basic.ORIGIN)
    return call


def with_effects(node: Any) -> Any:
    """Return a tree in which each ``assert`` and each printed f-string is a call."""
    return _PrintedValues().visit(node)


class _Noting(ast.NodeTransformer):
    """Notes errors where code may handle them."""

    def visit_Try(self, node: ast.Try) -> Any:
        self.generic_visit(node)
        if node.finalbody or not all(map(_only_raises, node.handlers)):
            node.body = [_noting(node.body)]
        return node

    def visit_TryStar(self, node: Any) -> Any:
        return self.visit_Try(node)

    def visit_AsyncWith(self, node: ast.AsyncWith) -> Any:
        self.generic_visit(node)
        node.body = [_noting(node.body)]
        return node

    def visit_With(self, node: ast.With) -> Any:
        self.generic_visit(node)
        if not ast.unparse(node.items[0]).startswith("ag__."):
            node.body = [_noting(node.body)]
        return node


def with_notes(node: Any) -> Any:
    """Return a tree that notes errors where code may handle them."""
    return _Noting().visit(node)


class _Expressions(_Noting):
    """Turns ``and``, ``or``, ``not``, ``a < b < c`` and ``a if b else c`` into calls.

    It also looks at what becomes a key.
    """

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        self.generic_visit(node)
        if not isinstance(node.target, ast.Name):
            return node
        name = qual_names.resolve(ast.Name(node.target.id, ast.Load()))
        return [ast.Expr(_call("check_in_place", node, name)), node]

    def visit_Set(self, node: ast.Set) -> Any:
        self.generic_visit(node)
        node.elts = [_call("hashed", node, x) for x in node.elts]
        return node

    def visit_SetComp(self, node: ast.SetComp) -> Any:
        self.generic_visit(node)
        node.elt = _call("hashed", node, node.elt)
        return node

    def visit_Dict(self, node: ast.Dict) -> Any:
        self.generic_visit(node)
        node.keys = [
            x if x is None or isinstance(x, ast.Constant) else _call("hashed", node, x)
            for x in node.keys
        ]
        return node

    def visit_DictComp(self, node: ast.DictComp) -> Any:
        self.generic_visit(node)
        node.key = _call("hashed", node, node.key)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        self.generic_visit(node)
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        found = node.values[-1]
        for value in node.values[-2::-1]:
            found = _call(name, node, _lambda(value), _lambda(found))
        return found

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        self.generic_visit(node)
        return _call("not_", node, node.operand) if isinstance(node.op, ast.Not) else node

    def visit_Compare(self, node: ast.Compare) -> Any:
        self.generic_visit(node)
        if len(node.ops) == 1:
            return _compared(node, node.ops[0], node.left, node.comparators[0]) or node
        pairs: list[ast.expr] = []
        for kind, right in zip(node.ops, node.comparators, strict=True):
            test: Any = ast.parse("lambda a, b: a < b", mode="eval").body
            test.body.ops = [kind]
            test.body = _compared(node, kind, test.body.left, *test.body.comparators) or test.body
            pairs.append(ast.Tuple([test, _lambda(right)], ast.Load()))
        return _call("compare", node, node.left, *pairs)

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        self.generic_visit(node)
        return _call("if_exp", node, node.test, _lambda(node.body), _lambda(node.orelse))


def _only_raises(handler: ast.ExceptHandler) -> bool:
    *before, last = handler.body
    return isinstance(last, ast.Raise) and all(isinstance(x, ast.Assign) for x in before)


def _noting(body: list[ast.stmt]) -> ast.Try:
    """Return a block that notes its errors and raises them."""
    made: Any = ast.parse(
        "try: pass\nexcept Exception as ag__error:\n    ag__.noted(ag__error)\n    raise"
    ).body[0]
    made.body = body
    found: ast.Try = made
    return found


def _compared(node: ast.AST, kind: ast.cmpop, left: ast.expr, right: ast.expr) -> Any:
    """Return ``is`` or ``is not`` as a call; None for other comparisons."""
    if not isinstance(kind, (ast.Is, ast.IsNot)):
        return None
    return _call("is_" if isinstance(kind, ast.Is) else "is_not", node, left, right)


def with_expressions(node: Any) -> Any:
    """Return a tree in which boolean and conditional expressions are calls."""
    return _Expressions().visit(node)
