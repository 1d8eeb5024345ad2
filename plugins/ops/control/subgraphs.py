"""Helpers of ops that run graphs: checks, shapes, assignments, and the steps of loops.

A scan and its gradient also run as one program, in which the scan keeps what the gradient needs.
"""

from __future__ import annotations

import inspect
import operator
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

import numpy as np

from ....core.errors import TraceError
from ....core.extend import (
    NONDIFF,
    Batched,
    Branch,
    Graph,
    Node,
    Op,
    Symbol,
    Tensor,
    TensorSpec,
    active_graph,
    as_batched,
    as_tensor,
    evaluated,
    flatten,
    halved,
    has_level,
    has_unknown_sizes,
    is_differentiable,
    is_open,
    known_size,
    leave,
    lowered,
    ops,
    pack_like,
    same_shape,
    same_size,
    seen_rows,
    trace_branch,
)
from ..common.kernels import SCALARS, as_like
from ..common.op_builders import op

REQUIRED = inspect.Parameter.empty


def batch_size(arrays: Sequence[Any], level: int) -> Any:
    """Return the number of examples."""
    like = next(x for x in arrays if type(x) is Batched and x.level == level)
    rows = seen_rows(like)
    if rows.shape is None:
        raise TraceError(
            f"vmap needs to know the number of axes of {like!r}; give its TensorSpec a shape, with "
            "None for unknown sizes"
        )
    return rows.shape[0]


def specs_of(graph: Graph, given: Sequence[Any]) -> list[TensorSpec]:
    """Return the specs of a graph's outputs for inputs of the given specs.

    Sizes are expressions of the inputs' sizes; those that depend on anything else are unknown.
    """
    places = {symbol: i for i, symbol in enumerate(graph.inputs)}

    def place(dim: Any) -> tuple[Any, ...]:
        symbol, axis = graph.homes[dim]
        i = places[symbol]
        if axis is None or given[i].shape is None or given[i].shape[axis] is None:
            raise LookupError
        return ("size", i, axis)

    def size(n: Any) -> Any:
        try:
            return evaluated(lowered(n, place), [x.shape for x in given], operator.index)
        except (LookupError, ArithmeticError):
            return None

    return [
        TensorSpec(None if x.shape is None else [size(n) for n in x.shape], x.dtype)
        for x in graph.outputs
    ]


def carried_specs(graph: Graph, given: Sequence[Any], carried: int) -> list[TensorSpec]:
    """Return the specs of a step's outputs; its first inputs have the specs common to all steps."""
    given = list(given)
    while True:
        after = specs_of(graph, given)
        common = [
            TensorSpec(common_shape(x.shape, y.shape), y.dtype)
            for x, y in zip(given[:carried], after, strict=False)
        ]
        if not any(map(widened, given, common)):
            return [*common, *after[carried:]]
        given[:carried] = common


def check_graph(name: str, graph: Any, specs: Sequence[Any]) -> None:
    """Raise if a parameter is not a graph with such inputs: a file may contain anything."""
    if not isinstance(graph, Graph) or len(graph.inputs) != len(specs):
        raise ValueError(f"{name}: {len(specs)} inputs do not fit its graphs")
    for symbol, spec in zip(graph.inputs, specs, strict=True):
        want = TensorSpec(symbol.shape, symbol.dtype)
        if spec.dtype != want.dtype or not want.admits(spec.shape):
            raise ValueError(f"{name}: an input is {spec}, but its graph needs {want}")


def common_shape(a: Any, b: Any) -> Any:
    """Return a shape that admits both."""
    if a is None or b is None or len(a) != len(b):
        return None
    return tuple(n if same_size(n, m) else None for n, m in zip(a, b, strict=True))


def widened(before: Any, after: Any) -> bool:
    """Return whether less of a spec's shape is known than before."""
    if before.shape is None or after.shape is None:
        return before.shape is not after.shape
    return [n is None for n in before.shape] != [n is None for n in after.shape]


def pack_outputs(tree: Any, leaves: Sequence[Any]) -> Any:
    """Return leaves in the structure of ``tree``, where None is not a leaf."""
    rest = iter(leaves)
    return pack_like(tree, [None if leaf is None else next(rest) for leaf in flatten(tree)])


def chosen_only(chosen: Tensor, tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return the same values, with gradients for the chosen examples only.

    A function that runs for all examples may have infinite derivatives at those not chosen. Times a
    zero gradient they give nan. So the others get the values of a chosen example, and what all
    examples share stays one array, without a gradient if none is chosen.
    """
    level = chosen.array.level
    flags = leave(chosen, chosen, level)
    some = any_chosen(chosen)
    found = []
    for x in tensors:
        if x.shape is None:
            found.append(ops["where"](chosen, x, ops["stop_gradient"](x)))
        elif has_level(x.array, level):
            row = _first_chosen(flags, leave(x, x, level))
            found.append(ops["where"](chosen, x, ops["stop_gradient"](row)))
        elif is_differentiable(x.dtype):
            found.append(ops["where"](some, x, ops["stop_gradient"](x)))
        else:
            found.append(x)
    return found


def any_chosen(chosen: Tensor) -> Tensor:
    """Return whether any example is chosen."""
    flags = leave(chosen, chosen, chosen.array.level)
    found: Tensor = ops["any"](flags, axis=0, keepdims=False)
    return found


def _first_chosen(flags: Tensor, rows: Tensor) -> Tensor:
    """Return the first row whose flag is true; without one, any values of its shape."""
    size = None if flags.shape is None else flags.shape[0]
    if known_size(size) and size:
        first = ops["argmax"](ops["cast"](flags, dtype="int64"), axis=0, keepdims=False)
        row: Tensor = ops["take"](rows, first, axis=0)
        return row
    # there may be no rows
    count = ops["cumsum"](ops["cast"](flags, dtype="int64"), axis=0, reverse=False)
    others = ops["logical_or"](ops["logical_not"](flags), ops["not_equal"](count, 1))
    if len(rows.shape or ()) > 1:
        others = ops["expand_dims"](others, axis=tuple(range(1, len(rows.shape or ()))))
    kept = ops["where"](others, ops["zeros_like"](rows), rows)
    return ops["cast_like"](ops["sum"](kept, axis=0, keepdims=False), rows)


_PATHS = "examples of a vmap take different paths"


def each_its_own(name: str, chosen: Tensor, a: Tensor, b: Tensor) -> Any:
    """Return ``a`` for the chosen examples and ``b`` for the others, in one shape."""
    if not TensorSpec(a.shape, a.dtype).admits(b.shape):
        raise ValueError(
            f"{name}: {_PATHS}, whose results must have one shape, got {a.shape} and {b.shape}"
        )
    if not same_shape(a.shape, b.shape):
        b = ops["shaped_like"](b, a, what=f"{name}: {_PATHS}, and that of one path")
    return ops["where"](chosen, a, b)


# -- variables that a graph assigns ----------------------------------------------------------------


def assign_variables(found: Sequence[Any], held: list[Any]) -> list[Any]:
    """Assign the variables that an op's graphs assign; return the other results."""
    count = len(found) - len(held)
    for variable, value in zip(held, found[count:], strict=True):
        if type(value.array) is Batched and type(variable.array) is not Batched:
            raise TraceError(
                f"variable {variable.name!r} is assigned where the examples of a vmap take "
                "different paths, so it would have many values; return the value instead (draw "
                "random numbers before, and pass them in)"
            )
        variable.assign(value)
    return list(found[:count])


def _assigned_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    beside = xs[batched.index(True)]
    return op.raw(*(x if b else as_batched(x, beside) for x, b in zip(xs, batched, strict=True)))


op(
    "assigned",
    lambda xp, x, variable: x,
    gradients={"x": NONDIFF, "variable": lambda g, variable_like: as_like(g, variable_like)},
    infer=lambda x, variable: (x.shape, x.dtype),
    batch=_assigned_rule,
    doc="Return ``x``, which was assigned to a variable; gradients reach the variable, not ``x``.",
)


# -- loops -----------------------------------------------------------------------------------------


class StackedRows:
    """The results of a loop's steps, to be stacked.

    NumPy arrays are copied into their stack at once, while a step's memory is in the cache, and the
    next step reuses that memory.

    Parameters
    ----------
    length
        The number of steps.
    """

    __slots__ = ("_length", "_lists", "_wholes")

    def __init__(self, length: int) -> None:
        self._length = length
        self._wholes: list[Any] = []
        self._lists: list[list[Any]] = []

    def put(self, i: int, found: Sequence[Any]) -> None:
        """Add the results of step ``i``."""
        if not self._lists:
            self._lists = [[None] * self._length for _ in found]
            self._wholes = [
                np.empty((self._length, *x.shape), x.dtype) if type(x) is np.ndarray else None
                for x in found
            ]
        for x, whole, rows in zip(found, self._wholes, self._lists, strict=True):
            if whole is None:
                rows[i] = x
            else:
                whole[i] = x

    def stacked(self, xp: Any) -> list[Any]:
        """Return the stacks."""
        return [
            xp.stack(rows, axis=0) if whole is None else whole
            for rows, whole in zip(self._lists, self._wholes, strict=True)
        ]


class _Wider(Exception):
    """Raised if a Python number, whose dtype is weak, must start with a wider dtype."""

    def __init__(self, index: int, dtype: Any) -> None:
        self.index = index
        self.dtype = dtype


def with_wide_start(run: Callable[[Any], Any], start: Any) -> Any:
    """Run a loop that may start from Python numbers: they take the dtype that a step returns."""
    leaves = flatten(start)
    while True:
        try:
            return run(pack_like(start, list(leaves)))
        except _Wider as need:
            leaves[need.index] = as_tensor(leaves[need.index], need.dtype)


def check_dtype(what: str, i: int, before: Tensor, after: Tensor, first: Any) -> None:
    """Raise if a step changes a value's dtype; restart a loop that began with a Python number."""
    if before.dtype == after.dtype:
        return
    weak = type(first) in SCALARS or is_open(first)
    if weak and np.result_type(before.dtype, after.dtype) == after.dtype:
        raise _Wider(i, after.dtype)
    raise TypeError(f"{what} is {before.dtype} and becomes {after.dtype}; cast it with astype")


def _kept(known: Any, before: Any, after: Any) -> Any:
    """Return the known part of a shape, without the sizes that a step changes."""
    common = common_shape(before, after)
    return common and tuple(None if n is None else m for n, m in zip(known, common, strict=True))


def traced_step(
    name: str, step: Any, specs: list[TensorSpec], carried: int, held: list[Any]
) -> Branch:
    """Return the graph of a step; sizes that change from step to step are unknown in it."""
    for _ in range(3):
        body = trace_branch(name, step, specs, active_graph.get(), held)
        after = [
            TensorSpec(_kept(spec.shape, x.shape, y.shape), spec.dtype)
            for spec, x, y in zip(specs[:carried], body.inputs, body.outputs, strict=False)
        ]
        if not any(map(widened, specs, after)):
            break
        specs[:carried] = after
    return body


# -- a scan with its gradient ----------------------------------------------------------------------
#
# On its own, the gradient of a scan repeats all steps to compute what it needs of them.


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
    if any(type(x) is not Symbol or has_unknown_sizes(x.shape) for x in symbols):
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
    rows = {node.inputs[0] for node in products.values()}.union(back.outputs[a:b])
    products.update(_sums(back, set(back.outputs[b:]), rows))
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
            Node(
                node.op,
                (stacks[node.inputs[0]], *(stacked[s] for s in node.inputs[1:-1]), like),
                node.params,
                (y,),
            )
            for x, like, y in results
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


def _sums(back: Graph, totals: Set[Symbol], rows: Set[Symbol]) -> dict[Symbol, Node]:
    """Return the totals that are sums of rows, which are kept anyway: one sum adds all steps."""
    uses = Counter(x for node in back.nodes for x in node.inputs if type(x) is Symbol)
    uses.update(back.outputs)
    return {
        node.outputs[0]: node
        for node in back.nodes
        if getattr(node.op, "name", None) == "unbroadcast_like"
        and node.outputs[0] in totals
        and uses[node.outputs[0]] == 1
        and node.inputs[0] in rows
        and len(node.inputs) == 2
    }


def _graph(like: Graph, inputs: list[Symbol], outputs: list[Symbol]) -> Graph:
    """Return a graph with the same nodes."""
    graph = Graph(like.name)
    graph.inputs, graph.nodes, graph.outputs = list(inputs), list(like.nodes), outputs
    graph.constants = dict(like.constants)
    return graph


def _node(name: str, inputs: tuple[Symbol, ...], output: Symbol) -> Node:
    op: Any = ops[name]
    return Node(op, inputs, dict(op.defaults), (output,))
