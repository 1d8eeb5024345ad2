"""Graph rewriting: removes dead nodes, merges common subexpressions, and folds constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from operator import is_
from typing import Any

import numpy as np

from ..base.sizes import has_unknown_sizes
from ..ops.backend import Backend
from ..ops.dispatch import backend_for_type, is_transformed
from ..tensors.op import Op
from .graph import Graph
from .nodes import CustomGradient, Node, Read, Symbol, Written


def prune(graph: Graph) -> Graph:
    """Remove the nodes and constants on which no output, update or effect depends, in place."""
    needed: set[Symbol] = {*graph.outputs, *graph.updates.values()}
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if any(symbol in needed for symbol in node.outputs) or node.acts:
            kept.append(node)
            needed.update(x for x in node.inputs if type(x) is Symbol)
    graph.nodes = kept[::-1]
    graph.constants = {s: array for s, array in graph.constants.items() if s in needed}
    return graph


def forward_only(graph: Graph) -> Graph:
    """Return a graph that computes the same values, for runs without gradients.

    Custom gradients are removed, because they do nothing in the forward direction. Equal
    subexpressions are computed once. Do not differentiate the result instead of the original:
    merging changes the order in which gradients are summed.
    """
    result = Graph(graph.name, graph.parent)
    result.inputs, result.constants = list(graph.inputs), dict(graph.constants)
    alias: dict[Symbol, Symbol] = {}
    seen: dict[Any, tuple[Symbol, ...]] = {}

    def look(x: Any) -> Any:
        return alias.get(x, x) if type(x) is Symbol else x

    for node in graph.nodes:
        inputs = tuple(look(x) for x in node.inputs)
        if isinstance(node.op, CustomGradient):
            alias.update(zip(node.outputs, inputs[: node.op.results], strict=True))
            continue
        same = isinstance(node.op, Op) and node.op.identity and type(inputs[0]) is Symbol
        if same or isinstance(node.op, Written):
            alias[node.outputs[0]] = inputs[0]
            continue
        key = (
            _identity(node.op),
            tuple(id(x) if type(x) is Symbol else (type(x), repr(x)) for x in inputs),
            tuple((name, _identity(value)) for name, value in sorted(node.params.items())),
        )
        if key in seen and not node.acts:
            alias.update(zip(node.outputs, seen[key], strict=True))
        else:
            seen[key] = node.outputs
            copied = Node(node.op, inputs, node.params, node.outputs, node.several, node.witnesses)
            result.nodes.append(copied)
    result.outputs = [look(symbol) for symbol in graph.outputs]
    result.updates = {variable: look(symbol) for variable, symbol in graph.updates.items()}
    return prune(result)


def joined_pulls(graph: Graph) -> Graph:
    """Let gradients use results of the ops before them, if these ops support it; in place."""
    nodes: list[Node] = []
    places: dict[Any, list[int]] = {}  # of ops with gradients to join, by op and first input
    for node in graph.nodes:
        op: Any = node.op
        key = op, id(node.inputs[0]) if node.inputs else 0
        joins = hasattr(op, "joint")
        i = _forward_of(node, nodes, places.get(key, ())) if joins else -1
        found = op.joint(nodes[i], node) if i >= 0 else None
        if found is None:
            if joins:
                places.setdefault(key, []).append(len(nodes))
            nodes.append(node)
        else:
            nodes[i] = found[0]
            nodes += found[1:]
    graph.nodes = nodes
    return graph


def _forward_of(pull: Node, nodes: list[Node], places: Sequence[int]) -> int:
    """Return the place of the node whose gradient ``pull`` is; -1 if there is none."""
    if pull.params.get("order") == 1:
        wanted = {**pull.params, "order": 0}
        for i in places:
            if nodes[i].params == wanted and all(map(is_, nodes[i].inputs, pull.inputs)):
                return i
    return -1


def _identity(value: Any) -> Any:
    """Return a key that distinguishes ops, and values of parameters."""
    if isinstance(value, Read):
        return ("read", value.variable)
    return value if isinstance(value, (Op, CustomGradient, Graph)) else repr(value)


# -- constants -------------------------------------------------------------------------------------


# larger values are computed when needed: a program should not hold more memory than a run
_LARGEST_FOLDED = 2**16


def folded(node: Node, known: Mapping[Symbol, Any], owner: Backend) -> Any:
    """Return a node's value if it is the same in every run, and cheap to keep; or None.

    Parameters
    ----------
    node
        A step of a program.
    known
        The values known so far: constants and values that were folded before.
    owner
        The backend that the program runs on.
    """
    op = node.op
    if not isinstance(op, Op) or op.effect or node.graphs or len(node.outputs) != 1:
        return None
    if node.several or node.witnesses:
        return None
    (symbol,) = node.outputs
    if has_unknown_sizes(symbol.shape) or prod(symbol.shape) > _LARGEST_FOLDED:  # type: ignore[arg-type]
        return None
    given = []
    for x in node.inputs:
        if type(x) is not Symbol:
            given.append(x)
        elif x in known:
            given.append(known[x])
        elif op.reads == "shapes" and not has_unknown_sizes(x.shape):
            given.append(owner.shape_witness(owner.asarray(np.zeros(x.shape, x.dtype))))
        else:
            return None
    if not node.inputs or all(type(x) is not Symbol for x in node.inputs):
        return None
    try:
        with np.errstate(all="raise"):
            return op.kernel_for(owner)(*given, **node.params)
    except Exception:  # runs that reach this node raise it, or warn
        return None


def local_constants(graph: Graph, arrays: Sequence[Any]) -> dict[Symbol, Any]:
    """Return a graph's constants on the backend and device of its inputs or variables.

    Parameters
    ----------
    graph
        The program.
    arrays
        The arrays of its inputs.

    Returns
    -------
    dict
        Symbols of constants, with their arrays.

    Raises
    ------
    TypeError
        If no backend owns one of the arrays.

    Examples
    --------
    >>> from gradtape.plugin import local_constants
    >>> shift = gt.function(lambda x: x + np.array([1.0, 2.0], "float32"))
    >>> graph = shift.get_concrete_function(gt.TensorSpec([2])).graph
    >>> [array.tolist() for array in local_constants(graph, [np.zeros(2)]).values()]
    [[1.0, 2.0]]
    """
    constants = graph.constants
    if not constants:
        return constants
    candidates = [*arrays, *(variable.array for variable in graph.variables)]
    for array in candidates:
        if is_transformed(array):
            continue
        here = backend_for_type(type(array))
        moved = {}
        for symbol, constant in constants.items():
            owner = backend_for_type(type(constant))
            if owner is not here:
                constant = here.asarray(owner.to_numpy(constant), device=here.device(array))
            elif here.waits and here.device(constant) != here.device(array):
                constant = here.asarray(constant, device=here.device(array))
            moved[symbol] = constant
        return moved
    return constants
