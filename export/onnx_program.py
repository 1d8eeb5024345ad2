"""A graph run on arrays that build ONNX."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..core.extend import Graph, Node, Op, Read, Symbol, Variable
from .errors import ExportError
from .onnx_arrays import Array, Namespace
from .onnx_lowerings import LOWERINGS

__all__ = ["run"]


def run(
    program: Graph, xp: Namespace, inputs: Sequence[Array], read: Callable[[Variable], Array]
) -> dict[Symbol, Array]:
    """Return what each symbol of a program is."""
    values: dict[Symbol, Any] = dict(zip(program.inputs, inputs, strict=True))
    for symbol, array in program.constants.items():
        values[symbol] = xp.asarray(array)
    for node in program.nodes:
        if isinstance(node.op, Read):
            values[node.outputs[0]] = read(node.op.variable)
            continue
        given = [values[x] if type(x) is Symbol else x for x in node.inputs]
        found = _applied(node, xp, given)
        for symbol, value in zip(node.outputs, found, strict=True):
            values[symbol] = _checked(node, symbol, xp.asarray(value))
    return values


def _applied(node: Node, xp: Namespace, given: Sequence[Any]) -> Sequence[Any]:
    op = node.op
    assert isinstance(op, Op)
    kernel = LOWERINGS.get(op.name, op.kernel)
    try:
        arrays, params = node.settled(given)
        if isinstance(kernel, str):
            function: Any = xp
            for part in kernel.split("."):
                function = getattr(function, part)
            found = function(*arrays, **params)
        else:
            found = kernel(xp, *arrays, **params)
    except Exception as error:
        raise ExportError(f"op {op.name!r}: {error}") from error
    return list(found) if node.several else [found]


def _checked(node: Node, symbol: Symbol, value: Array) -> Array:
    """Return a result, of the dtype that the op's shape rule says."""
    if value.dtype != symbol.dtype:
        raise ExportError(f"op {node.op.name!r}: its kernel gives {value.dtype}, not {symbol.dtype}")
    if symbol.shape is not None and len(symbol.shape) != value.ndim:
        raise ExportError(f"op {node.op.name!r}: its kernel gives {value.ndim} axes")
    return value
