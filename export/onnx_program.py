"""A graph run on arrays that build ONNX."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..core.errors import TraceError
from ..core.extend import Graph, Node, Op, Read, Symbol, Variable, shape_in_run
from .errors import ExportError
from .onnx_arrays import Array, Namespace
from .onnx_lowerings import ANSWERS, LOWERINGS

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
            _tell(symbol, values)
    return values


def _tell(symbol: Symbol, values: dict[Symbol, Array]) -> None:
    """Let a value have the sizes that the trace knows, where ONNX's inference knows less."""
    value = values[symbol]
    if symbol.shape is None or None not in value.inner.shape:
        return
    try:
        shape = shape_in_run(symbol, values)
    except TypeError:  # a size is the value of an array
        return
    value.xp.sizes.tell(value.inner, shape or ())


def _applied(node: Node, xp: Namespace, given: Sequence[Any]) -> Sequence[Any]:
    op = node.op
    assert isinstance(op, Op)
    lowering = LOWERINGS.get(op.name)
    if op.name.startswith("random_"):
        raise ExportError(
            f"op {op.name!r}: other runtimes draw other numbers; draw them outside, and pass them"
        )
    xp.answer = ANSWERS.get(op.name)
    try:
        arrays, params = node.settled(given)
        found = NotImplemented if lowering is None else lowering(xp, *arrays, **params)
        if found is NotImplemented:
            found = xp.bind(op.kernel)(*arrays, **params)
    except TraceError as error:
        raise ExportError(
            f"op {op.name!r}: its kernel decides by a size that is open; give its TensorSpec the "
            "size, or equal sizes one name"
        ) from error
    except Exception as error:  # of the kernel's or of the libraries'
        raise ExportError(f"op {op.name!r}: {error}") from error
    return list(found) if node.several else [found]


def _checked(node: Node, symbol: Symbol, value: Array) -> Array:
    """Return a result, of the dtype that the op's shape rule says."""
    if value.dtype != symbol.dtype:
        raise ExportError(f"op {node.op.name!r}: its kernel gives {value.dtype}, not {symbol.dtype}")
    if symbol.shape is not None and len(symbol.shape) != value.ndim:
        raise ExportError(f"op {node.op.name!r}: its kernel gives {value.ndim} axes")
    return value
