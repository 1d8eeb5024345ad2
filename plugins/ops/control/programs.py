"""What ops that run graphs share: ``cond``, ``while_loop``, ``scan``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....core.errors import TraceError
from ....core.extend import (
    NONDIFF,
    Batched,
    Branch,
    Graph,
    Op,
    Tensor,
    TensorSpec,
    active_graph,
    as_batched,
    as_tensor,
    flatten,
    pack_like,
    trace_branch,
)
from ..common.dtypes import SCALARS
from ..common.op_builders import op

__all__: list[str] = []

REQUIRED = inspect.Parameter.empty


def size_of(arrays: Sequence[Any], level: int) -> int | None:
    """Return the number of examples."""
    like = next(x for x in arrays if type(x) is Batched and x.level == level)
    if like.array.shape is None:
        raise TraceError(
            f"vmap needs to know the number of axes of {like!r}; give its TensorSpec a shape, with "
            "None for unknown sizes"
        )
    size: int | None = like.array.shape[0]
    return size


def specs_of(graph: Graph) -> list[TensorSpec]:
    return [TensorSpec(x.shape, x.dtype) for x in graph.outputs]


def check_graph(name: str, graph: Any, specs: Sequence[Any]) -> None:
    """Raise if a parameter is no graph of such inputs; a file may say anything."""
    if not isinstance(graph, Graph) or len(graph.inputs) != len(specs):
        raise ValueError(f"{name}: {len(specs)} inputs do not fit its graphs")
    for symbol, spec in zip(graph.inputs, specs, strict=True):
        want = TensorSpec(symbol.shape, symbol.dtype)
        if spec.dtype != want.dtype or not want.admits(spec.shape):
            raise ValueError(f"{name}: an input is {spec}, its graph wants {want}")


def merged(a: Any, b: Any) -> Any:
    """Return a shape that admits two."""
    if a is None or b is None or len(a) != len(b):
        return None
    return tuple(n if n == m else None for n, m in zip(a, b, strict=True))


def assigned(found: Sequence[Any], held: list[Any]) -> list[Any]:
    """Assign the variables that an op's graphs assign; return the other results."""
    count = len(found) - len(held)
    for variable, value in zip(held, found[count:], strict=True):
        if type(value.array) is Batched and type(variable.array) is not Batched:
            raise TraceError(
                f"variable {variable.name!r} is assigned where each example of a vmap goes a way "
                "of its own, so it would have many values; return the value instead (random "
                "numbers: draw them before, and pass them in)"
            )
        variable.assign(value)
    return list(found[:count])


def packed(tree: Any, leaves: Sequence[Any]) -> Any:
    """Return leaves in the structure of ``tree``, whose None are no leaves."""
    rest = iter(leaves)
    return pack_like(tree, [None if leaf is None else next(rest) for leaf in flatten(tree)])


class Wider(Exception):
    """A Python number, whose dtype is weak, must start with a wider dtype."""

    def __init__(self, index: int, dtype: Any) -> None:
        self.index = index
        self.dtype = dtype


def widening(run: Callable[[Any], Any], start: Any) -> Any:
    """Run a loop whose first values may be Python numbers: they take the dtype of what follows."""
    leaves = flatten(start)
    while True:
        try:
            return run(pack_like(start, list(leaves)))
        except Wider as need:
            leaves[need.index] = as_tensor(leaves[need.index], need.dtype)


def check_dtype(what: str, i: int, before: Tensor, after: Tensor, first: Any) -> None:
    if before.dtype == after.dtype:
        return
    if type(first) in SCALARS and np.result_type(before.dtype, after.dtype) == after.dtype:
        raise Wider(i, after.dtype)
    raise TypeError(f"{what} is {before.dtype} and becomes {after.dtype}; cast it with astype")


def traced_step(
    name: str, step: Any, specs: list[TensorSpec], carried: int, held: list[Any]
) -> Branch:
    """Return the graph of a step; what changes its size from step to step is unknown in it."""
    for _ in range(3):
        body = trace_branch(name, step, specs, active_graph.get(), held)
        after = [
            merged(x.shape, y.shape) for x, y in zip(specs[:carried], body.outputs, strict=False)
        ]
        if after == [x.shape for x in specs[:carried]]:
            break
        specs[:carried] = [
            TensorSpec(shape, x.dtype) for shape, x in zip(after, specs, strict=False)
        ]
    return body


def _assigned_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    beside = xs[batched.index(True)]
    return op.raw(*(x if b else as_batched(x, beside) for x, b in zip(xs, batched, strict=True)))


op(
    "assigned",
    lambda xp, x, variable: x,
    gradients={"x": NONDIFF, "variable": lambda g: g},
    infer=lambda x, variable: (x.shape, x.dtype),
    batch=_assigned_rule,
    doc="Return ``x``, which was assigned to a variable: gradients reach the variable, not ``x``.",
)
