"""Retracing: programs for the sizes of a call, and the portable kernels of ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.extend import (
    SCALARS,
    F,
    Graph,
    Node,
    Op,
    Read,
    Symbol,
    TensorSpec,
    forward_only,
    has_unknown_sizes,
    joined_pulls,
    ops,
    registry,
    tracing_into,
)


def has_dtypes(program: Graph, arrays: Sequence[Any]) -> bool:
    """Return whether arrays, or specs, have the dtypes that a program was traced for."""
    return [x.dtype for x in program.inputs] == [array.dtype for array in arrays]


def retraced(program: Graph, arrays: Sequence[Any]) -> Graph:
    """Return a program as if it had been traced with inputs of known shapes.

    It is the program itself if it was. Sizes that depend on values remain unknown.

    Parameters
    ----------
    program
        The graph, as returned by ``forward_only``.
    arrays
        Arrays with these shapes, or specs.
    """
    pairs = zip(program.inputs, arrays, strict=True)
    if not any(has_unknown_sizes(x.shape) or x.shape != array.shape for x, array in pairs):
        return program
    graph = Graph(program.name)
    values: dict[Symbol, Any] = {}
    for symbol, array in zip(program.inputs, arrays, strict=True):
        values[symbol] = graph.input(TensorSpec(array.shape, symbol.dtype, symbol.name))
    for symbol, constant in program.constants.items():
        values[symbol] = graph.constant(constant)
    for node in program.nodes:
        if isinstance(node.op, Read):
            values[node.outputs[0]] = graph.read(node.op.variable)
            continue
        assert isinstance(node.op, Op)
        given = [values[x] if type(x) is Symbol else x for x in node.inputs]
        inputs, params = node.settled(given)
        result = graph.add(node.op, inputs, params)
        results = result if isinstance(result, list) else [result]
        values.update(zip(node.outputs, results, strict=True))
    graph.outputs = [values[symbol] for symbol in program.outputs]
    graph.updates = {variable: values[symbol] for variable, symbol in program.updates.items()}
    return graph


def scan_body(node: Node) -> dict[str, Any] | None:
    """Return the parameters of a scan with known shapes; ``program`` is its body, for them.

    None if the body's shapes are still unknown.

    Parameters
    ----------
    node
        A scan whose inputs and outputs have known shapes.
    """
    op: Any = node.op
    params = {**op.defaults, **node.params}
    body, carried = params["body"], params["carried"]
    end = carried + params["scanned"]
    shapes: list[Any] = [x.shape for x in node.inputs]
    shapes[carried:end] = [shape[1:] for shape in shapes[carried:end]]
    stacks: list[Any] = [*node.inputs[carried:end], *node.outputs[carried:]]
    lengths = {x.shape[0] for x in stacks} or {params["length"]}
    specs = [TensorSpec(shape, x.dtype) for shape, x in zip(shapes, node.inputs, strict=True)]
    if len(lengths) > 1 or body.updates or not has_dtypes(body, specs):
        return None
    program = forward_only(body)
    try:
        program = retraced(program, specs)
    except Exception:  # its kernel gives a better message
        return None
    (params["length"],) = lengths
    if type(params["length"]) is not int or any(
        has_unknown_sizes(y.shape) for y in program.outputs
    ):
        return None
    rows = [(x.shape[1:], x.dtype) for x in stacks[end - carried :]]
    after = [*((x.shape, x.dtype) for x in specs[:carried]), *rows]
    if [(y.shape, y.dtype) for y in program.outputs] != after:
        return None
    params["program"] = joined_pulls(program)
    return params


def kernel_graph(node: Node) -> Graph | None:
    """Return a graph of a node's portable kernel, whose outputs are the node's results.

    The graph's inputs are the node's own symbols. It is None if a graph cannot hold what the kernel
    does: the kernel reads values, writes to arrays, or uses functions that are not ops here. It is
    also None if the op itself is such a function.
    """
    op = node.op
    assert isinstance(op, Op)
    graph = Graph(op.name)
    own = {x: graph.input(TensorSpec(x.shape, x.dtype)) for x in node.inputs if type(x) is Symbol}
    given = [own.get(x, x) if type(x) is Symbol else x for x in node.inputs]
    try:
        with tracing_into(graph):
            kernel = op.kernel
            run = getattr(_NAMESPACE, kernel) if isinstance(kernel, str) else kernel
            results = (
                run(*given, **node.params)
                if isinstance(kernel, str)
                else run(_NAMESPACE, *given, **node.params)
            )
    except Exception:  # whatever the error is, the kernel runs on arrays, and may raise it again
        return None
    listed = list(results) if isinstance(results, (list, tuple)) else [results]
    for symbol, result in zip(node.outputs, listed, strict=False):
        if type(result) is not Symbol or result.graph is not graph:
            return None
        if result.shape != symbol.shape or result.dtype != symbol.dtype:
            return None
    if len(listed) != len(node.outputs) or graph.constants:
        return None
    if any(n.op is op for n in graph.nodes):
        return None
    back = {mine: theirs for theirs, mine in own.items()}

    def look(x: Any) -> Any:
        return back.get(x, x) if type(x) is Symbol else x

    graph.nodes = [
        Node(n.op, tuple(map(look, n.inputs)), n.params, n.outputs, n.several, n.witnesses)
        for n in graph.nodes
    ]
    graph.outputs = list(map(look, listed))
    return graph


#: Functions of the array namespace with parameters: the op's name, and its parameters in order.
_FUNCTIONS: dict[str, tuple[str, Sequence[str]]] = {
    "sum": ("sum", ("axis",)),
    "mean": ("mean", ("axis",)),
    "max": ("max", ("axis",)),
    "min": ("min", ("axis",)),
    "reshape": ("reshape", ("shape",)),
    "expand_dims": ("expand_dims", ("axis",)),
    "where": ("where", ()),
    "zeros_like": ("zeros_like", ()),
    "ones_like": ("ones_like", ()),
}


class _Namespace:
    """An array namespace of ops."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if not hasattr(np, name):  # kernels check for it, and do without
            raise AttributeError(name)
        op, params = _FUNCTIONS.get(name, (name, ()))
        if name not in _FUNCTIONS:
            known = registry()
            kernel = known.op(op).kernel_for(known.host_backend) if op in known.ops else None
            if not isinstance(kernel, np.ufunc):
                raise NotImplementedError(name)
        count = len(ops[op].inputs)
        function = F[op]

        def call(*args: Any, **named: Any) -> Any:
            if any(type(x) is not Symbol and type(x) not in SCALARS for x in args[:count]):
                raise TypeError(f"{name}: an operand is not a value of the graph")
            return function(*args[:count], **dict(zip(params, args[count:])), **named)

        return call


_NAMESPACE = _Namespace()
