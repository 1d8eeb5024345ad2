"""Runs a graph on arrays that build ONNX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..core.errors import TraceError
from ..core.extend import (
    Graph,
    Node,
    Op,
    Read,
    Symbol,
    Variable,
    forward_only,
    registry,
    shape_in_run,
    to_numpy,
)
from .errors import ExportError, for_the_host
from .onnx_arrays import Array
from .onnx_namespace import Namespace
from .onnx_patterns import as_one_node


def run(
    program: Graph,
    xp: Namespace,
    inputs: Sequence[Array],
    read: Callable[[Variable], Array] | None = None,
) -> dict[Symbol, Array]:
    """Return the array of each symbol in a program.

    Parameters
    ----------
    program
        A graph after ``forward_only``.
    xp
        The namespace of the arrays.
    inputs
        The arrays of its inputs.
    read
        Returns the array of a variable. Nested graphs read no variables.
    """
    xp.outputs = partial(_outputs, xp)
    values: dict[Symbol, Any] = dict(zip(program.inputs, inputs, strict=True))
    makers: dict[Symbol, Node] = {}
    for symbol, array in program.constants.items():
        if symbol.dtype.kind not in "biuf":
            raise ExportError(
                f"a constant has dtype {symbol.dtype}, which ONNX's nodes do not support; compute "
                "with real values"
            )
        values[symbol] = xp.asarray(to_numpy(array))
    for node in program.nodes:
        if isinstance(node.op, Read):
            assert read is not None
            values[node.outputs[0]] = read(node.op.variable)
            continue
        one = as_one_node(node, makers, values)
        given = [values[x] if type(x) is Symbol else x for x in node.inputs]
        found = _applied(node, xp, given) if one is None else [one]
        makers.update(dict.fromkeys(node.outputs, node))
        for symbol, value in zip(node.outputs, found, strict=True):
            values[symbol] = _checked(node, symbol, xp.asarray(value))
            _tell(symbol, values)
    return values


def _outputs(xp: Namespace, graph: Graph, inputs: Sequence[Array]) -> list[Array]:
    """Run a nested graph."""
    program = forward_only(graph)
    values = run(program, xp, inputs)
    return [values[symbol] for symbol in program.outputs]


def _applied(node: Node, xp: Namespace, given: Sequence[Any]) -> Sequence[Any]:
    op = node.op
    assert isinstance(op, Op)
    if op.random:
        raise ExportError(
            f"op {op.name!r}: other runtimes draw different random numbers; draw them outside and "
            "pass them as an argument"
        )
    lowering = registry().lowering(op.original.name, "onnx")
    if op.host and lowering is None:
        raise for_the_host(op.name, "ONNX")
    try:
        arrays, params = node.settled(given)
        found = NotImplemented if lowering is None else lowering(xp, *arrays, **params)
        if found is NotImplemented:
            found = xp.bind(op.kernel)(*arrays, **params)
    except ExportError:
        raise
    except TraceError as error:
        raise ExportError(
            f"op {op.name!r}: its kernel depends on an unknown size; give its TensorSpec the size, "
            "or give equal sizes the same name"
        ) from error
    except Exception as error:  # from the kernel or the libraries
        raise ExportError(
            f"op {op.name!r} cannot be exported to ONNX: {str(error) or type(error).__name__}; "
            "compute it outside the exported function"
        ) from error
    return list(found) if node.several else [found]


def _checked(node: Node, symbol: Symbol, value: Array) -> Array:
    """Return a result; raise if its dtype or rank differs from what the op inferred."""
    if value.dtype != symbol.dtype:
        raise ExportError(
            f"op {node.op.name!r}: its kernel returns {value.dtype} in ONNX, expected "
            f"{symbol.dtype}; compute it outside the exported function"
        )
    if symbol.shape is not None and len(symbol.shape) != value.ndim:
        raise ExportError(
            f"op {node.op.name!r}: its kernel returns {value.ndim} axes in ONNX, expected "
            f"{len(symbol.shape)}; compute it outside the exported function"
        )
    return value


def _tell(symbol: Symbol, values: dict[Symbol, Array]) -> None:
    """Give a value the sizes known in the trace, if ONNX's shape inference knows less."""
    value = values[symbol]
    if symbol.shape is None or None not in value.inner.shape:
        return
    try:
        shape = shape_in_run(symbol, values)
    except TypeError:  # a size is the value of an array
        return
    value.xp.sizes.tell(value.inner, shape or ())
