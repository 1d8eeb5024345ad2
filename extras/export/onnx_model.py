"""Builds an ONNX model from a trace: runs its graph on arrays that build ONNX."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import ndonnx as ndx
import onnx
import spox.opset.ai.onnx.v21 as nodes
from onnx import helper, numpy_helper
from spox import _value_prop as constants
from spox import build

from ..core.errors import TraceError
from ..core.extend import (
    Graph,
    Node,
    Op,
    Read,
    Symbol,
    Variable,
    forward_only,
    public_package,
    registry,
    shape_in_run,
    to_numpy,
)
from .onnx_arrays import Array
from .onnx_lowerings import as_one_node
from .onnx_namespace import Namespace
from .tracing import ExportError, Traced, for_the_host


def model_of(traced: Traced) -> Any:
    """Return the ``onnx.ModelProto`` of a trace.

    A variable that the trace assigns becomes an input and an output named ``..._next``. Other
    variables are initializers.
    """
    program, xp = traced.program, Namespace()
    inputs = [_argument(xp, x, name) for x, name in zip(program.inputs, traced.inputs, strict=True)]
    given = {name: x.inner for name, x in zip(traced.inputs, inputs, strict=True)}
    for variable, name in traced.variables.items():
        given[name] = _argument(xp, variable, name).inner
    with warnings.catch_warnings(), _quick_constants():
        warnings.filterwarnings("error", "(?s).*lossy")  # a runtime would compute in another dtype
        values = run(program, xp, inputs, lambda v: Array(xp, given[traced.variables[v]]))
    results: dict[str, tuple[Array, Any]] = {
        name: (values[x], x) for name, x in traced.outputs.items()
    }
    updates = {name: f"{name}_next" for v, name in traced.variables.items() if v in program.updates}
    for variable, symbol in program.updates.items():
        results[updates[traced.variables[variable]]] = values[symbol], variable
    if not results:
        raise ExportError(
            f"{traced.name}: a model needs an output, but the function returns no tensor and "
            "assigns no variable; return a tensor"
        )
    model = build(
        {name: x.unwrap_spox() for name, x in given.items()},
        # an output must not be another value too
        {name: nodes.identity(value.var) for name, (value, _) in results.items()},
    )
    _finish(model, traced, updates)
    for info, (_, like) in zip(model.graph.output, results.values(), strict=True):
        _set_output_shape(info, like)
    return model


@contextmanager
def _quick_constants() -> Iterator[None]:
    """Make spox compute the values of constants without an onnxruntime session for each."""
    before = constants._VALUE_PROP_BACKEND
    constants._VALUE_PROP_BACKEND = constants.ValuePropBackend.REFERENCE
    try:
        yield
    finally:
        constants._VALUE_PROP_BACKEND = before


def _argument(xp: Namespace, like: Any, name: str) -> Array:
    """Return an input for a symbol or a variable."""
    if like.shape is None:
        raise ExportError(
            f"argument {name!r}: ONNX needs to know the number of its axes; give its TensorSpec a "
            "shape"
        )
    shape = tuple([n if type(n) is int else str(n) for n in like.shape])
    if like.dtype.kind not in "biuf":
        raise ExportError(
            f"{name!r} has dtype {like.dtype}, which ONNX's nodes do not support; pass real values"
        )
    inner = ndx.argument(shape=shape, dtype=getattr(ndx, like.dtype.name))
    xp.sizes.argument(inner)
    return Array(xp, inner)


def _finish(model: Any, traced: Traced, updates: dict[str, str]) -> None:
    """Turn constant variables into initializers, and set the producer and metadata."""
    graph = model.graph
    graph.name = traced.name
    _tidy(graph)
    model.producer_name, model.producer_version = "gradtape", public_package().__version__
    if updates:
        helper.set_model_props(model, {"gradtape.updates": json.dumps(updates)})
    constant = {name: v for v, name in traced.variables.items() if name not in updates}
    for name, variable in constant.items():
        graph.initializer.append(numpy_helper.from_array(to_numpy(variable.array), name))
    kept = [info for info in graph.input if info.name not in constant]
    del graph.input[:]
    graph.input.extend(kept)
    onnx.checker.check_model(model, full_check=model.ByteSize() < onnx.checker.MAXIMUM_PROTOBUF)


def _tidy(graph: Any) -> None:
    """Remove nodes that only rename a value."""
    results = {info.name for info in graph.output}
    made = {name for node in graph.node for name in node.output}
    names: dict[str, str] = {}
    for node in [node for node in graph.node if node.op_type == "Identity"]:
        (before,), (after,) = node.input, node.output
        before = names.get(before, before)
        if after not in results:
            names[after] = before
        elif before in made and before not in results:
            names[before] = after
        else:
            node.input[0] = before
            continue
        graph.node.remove(node)
    while any(new in names for new in names.values()):
        names = {old: names.get(new, new) for old, new in names.items()}
    _rename(graph, names)


def _rename(graph: Any, names: dict[str, str]) -> None:
    for node in graph.node:
        for part in (node.input, node.output):
            part[:] = [names.get(name, name) for name in part]
        for attribute in node.attribute:
            if attribute.HasField("g"):
                for info in attribute.g.output:
                    info.name = names.get(info.name, info.name)
                _rename(attribute.g, names)


def _set_output_shape(info: Any, like: Symbol | Variable) -> None:
    """Give an output the sizes known in the trace, with the names that inputs have for them."""
    if like.shape is None:
        return
    sizes = info.type.tensor_type.shape
    del sizes.dim[:]
    for n in like.shape:
        dim = sizes.dim.add()
        if type(n) is int:
            dim.dim_value = n
        else:
            dim.dim_param = str(n)


# -- running the graph -----------------------------------------------------------------------------


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
            _set_value_shape(symbol, values)
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


def _set_value_shape(symbol: Symbol, values: dict[Symbol, Array]) -> None:
    """Give a value the sizes known in the trace, if ONNX's shape inference knows less."""
    value = values[symbol]
    if symbol.shape is None or None not in value.inner.shape:
        return
    try:
        shape = shape_in_run(symbol, values)
    except TypeError:  # a size is the value of an array
        return
    value.xp.sizes.set_shape(value.inner, shape or ())
