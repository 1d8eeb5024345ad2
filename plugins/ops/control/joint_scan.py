"""A scan and its gradient in one program: the first keeps what the second needs.

By itself, the gradient of a scan does all steps again, to know what it needs of them.
"""

from __future__ import annotations

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
    upstream, given = back.inputs[len(kept) :], pull.inputs[len(run.inputs) :]
    returning = _graph(back, [], [])
    totals = [Symbol(returning, x.shape, x.dtype) for x in back.outputs[b:]]
    sums = [Symbol(returning, x.shape, x.dtype) for x in totals]
    returning.inputs = [*upstream[:a], *totals, *made, *seen, *upstream[a:], *fixed]
    returning.nodes += [
        _node("add", (total, x), y)
        for total, x, y in zip(totals, back.outputs[b:], sums, strict=True)
    ]
    returning.outputs = [*back.outputs[:a], *sums, *back.outputs[a:b]]
    zeros = [Symbol(x.graph, x.shape, x.dtype) for x in pull.outputs[b:]]
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
    outputs = (*pull.outputs[:a], *pull.outputs[b:], *pull.outputs[a:b])
    like = [x for x in run.inputs[end:] if is_differentiable(x.dtype)]
    return [
        first,
        *(_node("zeros_like", (x,), zero) for x, zero in zip(like, zeros, strict=True)),
        Node(run.op, inputs, settings, outputs, True),
    ]


def _graph(like: Graph, inputs: list[Symbol], outputs: list[Symbol]) -> Graph:
    """Return a graph of the same nodes."""
    graph = Graph(like.name)
    graph.inputs, graph.nodes, graph.outputs = list(inputs), list(like.nodes), outputs
    graph.constants = dict(like.constants)
    return graph


def _node(name: str, inputs: tuple[Symbol, ...], output: Symbol) -> Node:
    op: Any = ops[name]
    return Node(op, inputs, dict(op.defaults), (output,))
