"""A scan and its gradient in one program: the first keeps what the second needs.

By itself, the gradient of a scan does all steps again, to know what it needs of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
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

__all__ = ["joint_scan"]


def joint_scan(run: Node, pull: Node) -> list[Node] | None:
    """Return what takes the place of a scan, and what takes that of its gradient.

    Parameters
    ----------
    run, pull
        A scan and the gradient of it, of first order.

    Returns
    -------
    list of Node or None
        The first replaces ``run``, the others ``pull``: two scans, one of which runs backwards.
        None if shapes are not known, or part of the gradient is lost.
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
    count = len(body.outputs)
    outside = dict(zip(forward.inputs[carried:], run.inputs[carried:], strict=True))
    rows = set(forward.inputs[carried:end])
    kept = forward.outputs[count:]
    made = [x for x in kept if x not in outside]
    seen = [x for x in kept if x in rows]
    fixed = [x for x in kept if x in outside and x not in rows]
    stacks = [Symbol(run.outputs[0].graph, (length, *x.shape), x.dtype) for x in made]
    keeping = _graph(forward, forward.inputs, [*forward.outputs[:count], *made])
    first = Node(run.op, run.inputs, {**run.params, "body": keeping}, (*run.outputs, *stacks), True)

    a = sum(is_differentiable(x.dtype) for x in run.inputs[:carried])
    b = a + sum(is_differentiable(x.dtype) for x in run.inputs[carried:end])
    like = [x for x in run.inputs[end:] if is_differentiable(x.dtype)]
    upstream, given = back.inputs[len(kept) :], pull.inputs[len(run.inputs) :]
    returning = _graph(back, [], [])
    stacked = {**{x: outside[x] for x in seen}, **dict(zip(made, stacks, strict=True))}
    products = _products(back, back.outputs[b:], stacked)
    returning.nodes = [node for node in returning.nodes if node not in products.values()]
    summed = [x for x in back.outputs[b:] if x not in products]
    totals = [Symbol(returning, x.shape, x.dtype) for x in summed]
    sums = [Symbol(returning, x.shape, x.dtype) for x in summed]
    returning.inputs = [*upstream[:a], *totals, *made, *seen, *upstream[a:], *fixed]
    returning.nodes += [
        _node("add", (total, x), y) for total, x, y in zip(totals, summed, sums, strict=True)
    ]
    factors = list(dict.fromkeys(node.inputs[0] for node in products.values()))
    returning.outputs = [*back.outputs[:a], *sums, *back.outputs[a:b], *factors]
    graph = run.outputs[0].graph
    zeros = [Symbol(graph, x.shape, x.dtype) for x in summed]
    columns = {x: Symbol(graph, (length, *x.shape), x.dtype) for x in factors}
    settings = {
        "body": returning,
        "carried": a + len(zeros),
        "scanned": len(made) + len(seen) + len(given) - a,
        "reverse": not run.params["reverse"],
        "length": length,
        "order": 0,
    }
    inputs = (
        *given[:a],
        *zeros,
        *stacks,
        *(outside[x] for x in seen),
        *given[a:],
        *(outside[x] for x in fixed),
    )
    results = list(zip(back.outputs[b:], like, pull.outputs[b:], strict=True))
    outputs = (
        *pull.outputs[:a],
        *(y for x, _, y in results if x not in products),
        *pull.outputs[a:b],
        *columns.values(),
    )
    begin = [w for x, w, _ in results if x not in products]
    return [
        first,
        *(_node("zeros_like", (x,), zero) for x, zero in zip(begin, zeros, strict=True)),
        Node(run.op, inputs, settings, outputs, True),
        *(
            _node("matmul_adjoint_y", (columns[node.inputs[0]], stacked[node.inputs[1]], w), y)
            for x, w, y in results
            if (node := products.get(x)) is not None
        ),
    ]


def _products(
    back: Graph, totals: Sequence[Symbol], stacked: Mapping[Symbol, Symbol]
) -> dict[Symbol, Node]:
    """Return the totals that are sums of products of matrices: one product does for all steps."""
    uses = Counter(x for node in back.nodes for x in node.inputs if type(x) is Symbol)
    uses.update(back.outputs)
    found = {}
    for node in back.nodes:
        if getattr(node.op, "name", None) != "matmul_adjoint_y" or uses[node.outputs[0]] != 1:
            continue
        g, x, like = node.inputs
        matrices = all(type(s) is Symbol and len(s.shape) == 2 for s in (g, x, like))
        if matrices and node.outputs[0] in totals and x in stacked:
            found[node.outputs[0]] = node
    return found


def _graph(like: Graph, inputs: list[Symbol], outputs: list[Symbol]) -> Graph:
    """Return a graph of the same nodes."""
    graph = Graph(like.name)
    graph.inputs, graph.nodes, graph.outputs = list(inputs), list(like.nodes), outputs
    graph.constants = dict(like.constants)
    return graph


def _node(name: str, inputs: tuple[Symbol, ...], output: Symbol) -> Node:
    op: Any = ops[name]
    return Node(op, inputs, dict(op.defaults), (output,))
