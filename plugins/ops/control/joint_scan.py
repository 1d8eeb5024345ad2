"""A scan and its gradient in one program: the scan keeps what the gradient needs.

On its own, the gradient of a scan repeats all steps to compute what it needs of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Set
from typing import Any

from ....core.extend import (
    Graph,
    Node,
    Symbol,
    TensorSpec,
    halved,
    is_differentiable,
    ops,
    unsure,
)


def joint_scan(run: Node, pull: Node) -> list[Node] | None:
    """Return the nodes that replace a scan and its gradient.

    Parameters
    ----------
    run, pull
        A scan and its first-order gradient.

    Returns
    -------
    list of Node or None
        The first replaces ``run``, the others ``pull``: two scans, one of which runs backwards.
        None if shapes are unknown, or part of the gradient is lost.
    """
    symbols = (*pull.inputs, *run.outputs, *pull.outputs)
    if any(type(x) is not Symbol or unsure(x.shape) for x in symbols):
        return None
    body, carried = run.params["body"], run.params["carried"]
    end = carried + run.params["scanned"]
    specs = [
        TensorSpec(x.shape[1:] if carried <= i < end else x.shape, x.dtype)
        for i, x in enumerate(run.inputs)
    ]
    halves = halved(body, specs)
    length = run.inputs[carried].shape[0] if end > carried else run.params["length"]
    if halves is None or type(length) is not int or not length:
        return None
    forward, back = halves
    outside = dict(zip(forward.inputs[carried:], run.inputs[carried:], strict=True))
    rows = set(forward.inputs[carried:end])
    kept = forward.outputs[len(body.outputs) :]
    made = [x for x in kept if x not in outside]
    graph = run.outputs[0].graph
    stacks = {x: Symbol(graph, (length, *(x.shape or ())), x.dtype) for x in made}
    keeping = _graph(forward, forward.inputs, [*forward.outputs[: len(body.outputs)], *made])
    outputs = (*run.outputs, *stacks.values())
    first = Node(run.op, run.inputs, {**run.params, "body": keeping}, outputs, True)
    stacked = {**stacks, **{x: outside[x] for x in kept if x in rows}}
    fixed = {x: outside[x] for x in kept if x in outside and x not in rows}
    return [first, *_backwards(run, pull, back, stacked, fixed, length)]


def _backwards(
    run: Node,
    pull: Node,
    back: Graph,
    stacked: Mapping[Symbol, Symbol],
    fixed: Mapping[Symbol, Symbol],
    length: int,
) -> list[Node]:
    """Return the nodes that compute the gradient from values that the scan kept.

    Parameters
    ----------
    run, pull
        A scan and its gradient.
    back
        The gradient of a step.
    stacked, fixed
        The inputs of ``back`` that differ between steps, with their stacks; and those that do not.
    length
        The number of steps.
    """
    carried = run.params["carried"]
    end = carried + run.params["scanned"]
    a = sum(is_differentiable(x.dtype) for x in run.inputs[:carried])
    b = a + sum(is_differentiable(x.dtype) for x in run.inputs[carried:end])
    like = [x for x in run.inputs[end:] if is_differentiable(x.dtype)]
    upstream = back.inputs[len(stacked) + len(fixed) :]
    given = pull.inputs[len(run.inputs) :]
    products = _products(back, set(back.outputs[b:]), stacked)
    summed = [x for x in back.outputs[b:] if x not in products]
    stacks = dict(zip(back.outputs[a:b], pull.outputs[a:b], strict=True))
    needed = dict.fromkeys(node.inputs[0] for node in products.values())
    factors = [x for x in needed if x not in stacks]
    body = _graph(back, [], [])
    totals, sums = ([Symbol(body, x.shape, x.dtype) for x in summed] for _ in range(2))
    body.inputs = [*upstream[:a], *totals, *stacked, *upstream[a:], *fixed]
    body.nodes = [node for node in back.nodes if node not in products.values()]
    body.nodes += [
        _node("add", (total, x), y) for total, x, y in zip(totals, summed, sums, strict=True)
    ]
    body.outputs = [*back.outputs[:a], *sums, *back.outputs[a:b], *factors]

    graph = run.outputs[0].graph
    columns = {x: Symbol(graph, (length, *(x.shape or ())), x.dtype) for x in factors}
    stacks.update(columns)
    results = list(zip(back.outputs[b:], like, pull.outputs[b:], strict=True))
    alone = [(like, y) for x, like, y in results if x not in products]
    zeros = [Symbol(graph, y.shape, y.dtype) for _, y in alone]
    settings = {
        "body": body,
        "carried": a + len(zeros),
        "scanned": len(stacked) + len(given) - a,
        "reverse": not run.params["reverse"],
        "length": length,
        "order": 0,
    }
    inputs = (*given[:a], *zeros, *stacked.values(), *given[a:], *fixed.values())
    ends = [y for _, y in alone]
    outputs = (*pull.outputs[:a], *ends, *pull.outputs[a:b], *columns.values())
    return [
        *(_node("zeros_like", (x,), zero) for (x, _), zero in zip(alone, zeros, strict=True)),
        Node(run.op, inputs, settings, outputs, True),
        *(
            _node("matmul_adjoint_y", (stacks[node.inputs[0]], stacked[node.inputs[1]], w), y)
            for x, w, y in results
            if (node := products.get(x)) is not None
        ),
    ]


def _products(
    back: Graph, totals: Set[Symbol], stacked: Mapping[Symbol, Symbol]
) -> dict[Symbol, Node]:
    """Return the totals that are sums of matrix products: one product computes all steps."""
    uses = Counter(x for node in back.nodes for x in node.inputs if type(x) is Symbol)
    uses.update(back.outputs)
    found = {}
    for node in back.nodes:
        if getattr(node.op, "name", None) != "matmul_adjoint_y" or uses[node.outputs[0]] != 1:
            continue
        g, x, like = node.inputs
        matrices = all(type(s) is Symbol and len(s.shape or ()) == 2 for s in (g, x, like))
        if matrices and node.outputs[0] in totals and x in stacked:
            found[node.outputs[0]] = node
    return found


def _graph(like: Graph, inputs: list[Symbol], outputs: list[Symbol]) -> Graph:
    """Return a graph with the same nodes."""
    graph = Graph(like.name)
    graph.inputs, graph.nodes, graph.outputs = list(inputs), list(like.nodes), outputs
    graph.constants = dict(like.constants)
    return graph


def _node(name: str, inputs: tuple[Symbol, ...], output: Symbol) -> Node:
    op: Any = ops[name]
    return Node(op, inputs, dict(op.defaults), (output,))
