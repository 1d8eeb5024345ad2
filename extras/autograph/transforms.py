"""Rewrites a function's tree with AutoGraph's converters and compiles it with the user's lines."""

from __future__ import annotations

import ast
from collections import Counter
from types import CodeType, FunctionType
from typing import Any

from malt.converters import (
    break_statements,
    call_trees,
    continue_statements,
    control_flow,
    directives,
    functions,
    return_statements,
    variables,
)
from malt.core.converter import ConversionOptions, Feature, ProgramContext
from malt.lang.directives import set_loop_options
from malt.pyct import anno, cfg, inspect_utils, naming, origin_info, qual_names, transformer
from malt.pyct.static_analysis import activity, liveness, reaching_definitions, reaching_fndefs

from ..core.extend import function_from
from .calls import Source
from .rewriting import (
    before_analysis,
    captured_names,
    outer_names,
    with_effects,
    with_expressions,
    with_notes,
)

#: The names by which converted code refers to the operators and to the loop options.
OPERATORS = "ag__"
OPTIONS = "ag__set_loop_options"

_OPTIONS = ConversionOptions(
    recursive=True, user_requested=False, optional_features=(Feature.BUILTIN_FUNCTIONS,)
)


def rewritten(source: Source, function: Any) -> tuple[ast.stmt, str]:
    """Return the statement that defines the converted function, and the function's name there.

    Parameters
    ----------
    source
        The function's source.
    function
        The function, for the names that it can refer to.
    """
    namespace = {**inspect_utils.getnamespace(function), OPTIONS: set_loop_options}
    namer = naming.Namer(namespace)
    node: Any = before_analysis(source, namespace, OPTIONS)
    _note_origins(node, source.file)
    name = namer.new_symbol(getattr(node, "name", "lambda_"), ())
    info = transformer.EntityInfo(
        name=name, source_code="", source_file=source.file, future_features=(), namespace=namespace
    )
    context = transformer.Context(info, namer, ProgramContext(options=_OPTIONS))
    node = _converted(node, context)
    if isinstance(node, ast.Lambda):
        node = ast.Assign(targets=[ast.Name(name, ast.Store())], value=node)
    else:
        node.name = name
    return node, name


def _converted(node: Any, context: Any) -> Any:
    graphs = cfg.build(node)
    node = qual_names.resolve(node)
    node = activity.resolve(node, context, None)
    node = reaching_definitions.resolve(node, context, graphs)
    anno.dup(node, {anno.Static.DEFINITIONS: anno.Static.ORIG_DEFINITIONS})
    node = functions.transform(node, context)
    node = directives.transform(node, context)
    node = break_statements.transform(node, context)
    node = with_effects(node)
    for step in (continue_statements, return_statements, call_trees):
        node = step.transform(node, context)
    node = _with_control_flow(node, context)
    return variables.transform(with_expressions(node), context)


class _ControlFlow(control_flow.ControlFlowTransformer):  # type: ignore[misc]
    """Turns ``if``, ``while`` and ``for`` into calls.

    A statement finds out itself which attributes and items it changes.
    """

    def _get_block_composite_vars(self, modified: Any, live_in: Any) -> frozenset[Any]:
        return frozenset()

    def __init__(self, context: Any) -> None:
        super().__init__(context)
        self._captured: Counter[str] = Counter()  # by code in the function
        self._outer: frozenset[str] = frozenset()
        self._after_errors: frozenset[Any] = frozenset()  # what the code that errors lead to reads
        self._inside: dict[Any, Counter[str]] = {}  # like _captured, of each statement

    def visit(self, node: Any) -> Any:
        if isinstance(node, (ast.If, ast.While, ast.For)):
            self._inside[node] = captured_names(node)
        return super().visit(node)

    def visit_FunctionDef(self, node: Any) -> Any:
        before = self._captured, self._outer, self._after_errors
        self._captured, self._outer = captured_names(node), outer_names(node)
        self._after_errors = frozenset()
        node = super().visit_FunctionDef(node)
        self._captured, self._outer, self._after_errors = before
        return node

    def visit_With(self, node: Any) -> Any:
        return self._guarded(node, [anno.getanno(node, anno.Static.LIVE_VARS_OUT)])

    def visit_Try(self, node: Any) -> Any:
        starts = [*node.handlers, *node.finalbody[:1]]
        return self._guarded(
            node, [anno.getanno(x, anno.Static.LIVE_VARS_IN, frozenset()) for x in starts]
        )

    def _guarded(self, node: Any, live: list[frozenset[Any]]) -> Any:
        before = self._after_errors
        self._after_errors = before.union(*live)
        node = self.generic_visit(node)
        self._after_errors = before
        return node

    def _get_block_vars(self, node: Any, modified: Any) -> Any:
        live = anno.getanno(node, anno.Static.LIVE_VARS_OUT) | self._after_errors
        live |= {name for name in modified if str(name) in self._outer}
        captured, inside = self._captured, self._inside[node]
        # what code outside the statement captures, it may read at any time
        live |= {name for name in modified if captured[str(name)] > inside[str(name)]}
        # what only code inside captures is one variable for all of that code, but ends with it
        ends = {name for name in modified if inside[str(name)]} - live
        anno.setanno(node, anno.Static.LIVE_VARS_OUT, live | ends)
        found, undefined, _ = super()._get_block_vars(node, modified)
        before = anno.getanno(node, anno.Static.LIVE_VARS_IN) - live
        ends -= before
        found.sort(key=lambda name: (name in ends, name in before, name))
        anno.setanno(node, "ends", len(ends))
        return found, undefined, len([x for x in found if x not in before | ends])

    def _create_loop_options(self, node: Any) -> Any:
        options = super()._create_loop_options(node)
        options.keys.append(ast.Constant("ends"))
        options.values.append(ast.Constant(anno.getanno(node, "ends")))
        return options


class _Graphs(cfg.AstToCfg):  # type: ignore[misc]
    """Knows what follows a ``with`` statement."""

    def visit_With(self, node: Any) -> None:
        self.builder.begin_statement(node)
        super().visit_With(node)
        self.builder.end_statement(node)


class _Liveness(liveness.TreeAnnotator):  # type: ignore[misc]
    def visit_With(self, node: Any) -> Any:
        return self._block_statement_live_out(super().visit_With(node))


def _with_control_flow(node: Any, context: Any) -> Any:
    visitor = _Graphs()
    visitor.visit(node)
    graphs = visitor.cfgs
    node = activity.resolve(qual_names.resolve(node), context, None)
    for analysis in (reaching_definitions, reaching_fndefs):
        node = analysis.resolve(node, context, graphs)
    node = _Liveness(context, graphs, include_annotations=True).visit(node)
    return _ControlFlow(context).visit(node)


def noting(source: Source, function: Any) -> tuple[ast.stmt, str]:
    """Return the statement that defines a function as it is, but which notes errors, and its name.

    See :func:`rewritten`.
    """
    namespace = inspect_utils.getnamespace(function)
    node: Any = with_notes(before_analysis(source, namespace, OPTIONS, convertible=False))
    _note_origins(node, source.file)
    if isinstance(node, ast.Lambda):
        node = ast.Assign(targets=[ast.Name("ag__lambda", ast.Store())], value=node)
        return node, "ag__lambda"
    return node, node.name


def factory_of(source: Source, function: Any, rewrite: Any = rewritten) -> CodeType:
    """Return the code of a factory, which takes the operators and returns a converted function.

    Parameters
    ----------
    source
        The original's source.
    function
        The original.
    rewrite
        :func:`rewritten`, or :func:`noting` for a function that cannot be converted.
    """
    node, name = rewrite(source, function)
    # the prefix keeps these names distinct from globals that the user's function refers to
    inner = _define("ag__inner", [node, ast.Return(ast.Name(name, ast.Load()))], [OPERATORS])
    around: list[ast.stmt] = [
        ast.Assign(targets=[ast.Name(x, ast.Store())], value=ast.Constant(None))
        for x in function.__code__.co_freevars
    ]
    outer = _define(
        "ag__outer", [*around, inner, ast.Return(ast.Name("ag__inner", ast.Load()))], []
    )
    module = ast.Module(body=[outer], type_ignores=[])
    first = function.__code__.co_firstlineno
    _place(module, (first, 0, first, 0))
    made: CodeType = function_from(module, "ag__outer", source.file)().__code__
    return made


def instance_of(factory: CodeType, function: Any, operators: Any) -> Any:
    """Return a converted function with the original's globals, closure, defaults and lines.

    Parameters
    ----------
    factory
        The result of :func:`factory_of`.
    function
        The original.
    operators
        The object that ``ag__`` refers to.
    """
    code = function.__code__
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    closure = tuple([cells[x] for x in factory.co_freevars])
    made = FunctionType(factory, function.__globals__, "ag__inner", None, closure)(operators)
    made.__code__ = made.__code__.replace(co_name=code.co_name, co_qualname=code.co_qualname)
    for name in ("name", "qualname", "defaults", "kwdefaults", "module", "doc"):
        setattr(made, f"__{name}__", getattr(function, f"__{name}__"))
    return made


def _define(name: str, body: list[ast.stmt], parameters: list[str]) -> ast.FunctionDef:
    made: Any = ast.parse(f"def {name}({', '.join(parameters)}): pass").body[0]
    made.body = body
    return made


# -- lines -----------------------------------------------------------------------------------------


def _note_origins(node: Any, file: str) -> None:
    """Note the position, kind and end of each node, so that copies keep them."""
    walked: Any = ast.walk(node)
    for x in walked:
        if hasattr(x, "lineno"):
            place = origin_info.Location(file, x.lineno, x.col_offset)
            end = (x.end_lineno or x.lineno, x.end_col_offset or x.col_offset)
            anno.setanno(
                x, anno.Basic.ORIGIN, origin_info.OriginInfo(place, None, type(x).__name__, end)
            )


def _place(node: Any, around: tuple[int, int, int, int]) -> None:
    """Give each node the position that it comes from, otherwise that of its parent."""
    origin = anno.getanno(node, anno.Basic.ORIGIN, default=None)
    inner = around
    if origin is not None:
        line, column = origin.loc.lineno, origin.loc.col_offset
        # a node that replaces another one gets no extent: Python shows ends in tracebacks too
        inner = (line, column, line, column)
        around = (line, column, *origin.comment)
        if origin.source_code_line != type(node).__name__:
            around = inner
    if "lineno" in node._attributes:
        node.lineno, node.col_offset, node.end_lineno, node.end_col_offset = around
    for child in ast.iter_child_nodes(node):
        _place(child, inner)
