"""Functions from the lines of :mod:`.signatures`."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable
from typing import Any

import numpy as np

import gradtape

from ...core.extend import Op, Tensor, as_size, function_from, map_structure, ops
from ...plugins.ops.common.axes import as_axis, axis_over
from .dtypes import CLASSES, as_dtype, cast
from .names import adapts, resolve
from .random import source
from .tensors import axes, convert_to_tensor, plain, sizes, together, with_checked_shape

_TENSOR = "if type({0}) is not Tensor: {0} = convert({0})"
#: How an argument is converted: by the word after its ``:``, otherwise by its name.
_STEPS: dict[str, str] = {
    **dict.fromkeys(
        "a b data diagonal features image images input input_tensor labels logits matrix params "
        "predictions rhs t targets tensor value values x y tensors".split(),
        _TENSOR,
    ),
    "bound": "if type({0}) is not float: {0} = convert({0})\n"
    "if type({0}) is Tensor and {0}.array.dtype.kind in 'iu': {0} = cast({0}, 'float64')",
    "fft_length": "if fft_length is not None: fft_length = sizes(fft_length, called)",
    "whole": "if type({0}) is not int: {0} = plain({0})",
    "axes": "if axes is not None and type(axes) is not int: axes = axes_of(axes)",
    "axis": "if axis is not None and type(axis) is not int: axis = axes_of(axis)",
    "over": "if axis is not None: axis = axis_over(input_tensor, "
    "axis if type(axis) is int else axes_of(axis), called)",
    "integers": "if axis is not None and type(axis) is not int: "
    "axis = as_axis(axes_of(axis), called)",
    "keepdims": "if keepdims is not False: keepdims = bool(keepdims)",
    "seed": "seed = source(seed)",
    "sized": "if type({0}) is not int and {0} is not None: {0} = as_size({0}, called)",
    "dtype": "if type(dtype) not in known and dtype is not None: dtype = as_dtype(dtype)",
}
#: Names in expressions besides gradtape's.
_HELPERS: dict[str, Any] = {
    "Tensor": Tensor,
    "all_tensors": frozenset({Tensor}).issuperset,
    "as_axis": as_axis,
    "as_dtype": as_dtype,
    "as_size": as_size,
    "axes_of": axes,
    "axis_over": axis_over,
    "cast": cast,
    "convert": convert_to_tensor,
    "each": map_structure,
    "held_to": with_checked_shape,
    "known": CLASSES,
    "mapped": map,
    "ndarray": np.ndarray,
    "np": np,
    "plain": plain,
    "re": re,
    "sizes": sizes,
    "source": source,
    "together": together,
}


def compiled(module: str, line: str) -> Callable[..., Any]:
    """Return the function that a line describes, for a module.

    The line is compiled, because looking up the conversions in each call would take as long as many
    an op.
    """
    head, _, expression = line.partition(") = ")
    name = head.partition("(")[0]
    labelled = head if "name=" in head or "**" in head else f"{head}, name=None"
    tree: Any = ast.parse(f"def {labelled}):\n  return {expression}", f"<{module}.{name}>")
    (function,) = tree.body
    scope = {**_HELPERS, "called": name}
    arguments = function.args
    given = [*arguments.args, *arguments.kwonlyargs, *filter(None, [arguments.vararg])]
    steps = []
    for argument in given:
        kind = argument.annotation.id if argument.annotation else argument.arg
        argument.annotation = None
        if kind in _STEPS and argument is not arguments.vararg:
            steps += ast.parse(_STEPS[kind].format(argument.arg)).body
    bound = _Bound({argument.arg for argument in given}, scope)
    arguments.defaults = [bound.visit(default) for default in arguments.defaults]
    function.body = [*steps, bound.visit(function.body[0])]
    file = f"<{module}.{name}>"
    found: Any = function_from(ast.fix_missing_locations(tree), name, file, scope)
    found.__module__ = module
    found.__doc__ = f"Return ``{expression}``."
    return adapts(*bound.paths)(found)


class _Bound(ast.NodeTransformer):
    """Replaces gradtape's names by objects, so that calls look nothing up.

    ``op.NAME`` is the op itself, for arguments that need no more checks.
    """

    def __init__(self, own: set[str], scope: dict[str, Any]) -> None:
        self.own, self.scope = own, scope
        self.paths: list[str] = []

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        """Record a lambda's parameters as local."""
        several = [node.args.vararg] if node.args.vararg else []
        self.own |= {argument.arg for argument in (*node.args.args, *several)}
        return self.generic_visit(node)

    def visit_ListComp(self, node: ast.ListComp) -> Any:
        """Record a comprehension's variables as local."""
        self.own |= {part.target.id for part in node.generators}  # type: ignore[attr-defined]
        return self.generic_visit(node)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> Any:
        """Record a name bound by ``:=`` as local."""
        self.own.add(node.target.id)
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> Any:
        """Bind a name."""
        return self._bound(node, node.id)

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        """Bind a dotted name, or its beginning."""
        path = ast.unparse(node)
        if path.startswith("gradtape."):  # for names that an argument has too
            return self._bound(node, path.removeprefix("gradtape."))
        dotted = all(part.isidentifier() for part in path.split("."))
        root = path.partition(".")[0]
        if not dotted or root in self.own or root in self.scope:
            return self.generic_visit(node)
        return self._bound(node, path)

    def _bound(self, node: Any, path: str) -> Any:
        if path in self.own or path in self.scope:
            return node
        if not hasattr(gradtape, path.partition(".")[0]) and hasattr(builtins, path):
            return node
        bound = path.replace(".", "_") + "_"
        direct, path = path.startswith("op."), path.removeprefix("op.")
        value = ops[path] if direct else resolve(path)
        self.scope[bound] = value.__call__ if isinstance(value, Op) else value
        if not path.startswith("tf."):
            self.paths += [path] if path not in self.paths else []
        return ast.Name(bound, ast.Load())
