"""What ops that run graphs share: what the graphs must be, their shapes, what they assign."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from ....core.errors import TraceError
from ....core.extend import (
    NONDIFF,
    Batched,
    Graph,
    Op,
    Tensor,
    TensorSpec,
    as_batched,
    flatten,
    is_differentiable,
    ops,
    pack_like,
)
from ..common.gradients import as_like
from ..common.op_builders import op

__all__: list[str] = []

REQUIRED = inspect.Parameter.empty


def batch_size(arrays: Sequence[Any], level: int) -> int | None:
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
    """Return the specs of a graph's outputs."""
    return [TensorSpec(x.shape, x.dtype) for x in graph.outputs]


def check_graph(name: str, graph: Any, specs: Sequence[Any]) -> None:
    """Raise if a parameter is no graph of such inputs; a file may say anything."""
    if not isinstance(graph, Graph) or len(graph.inputs) != len(specs):
        raise ValueError(f"{name}: {len(specs)} inputs do not fit its graphs")
    for symbol, spec in zip(graph.inputs, specs, strict=True):
        want = TensorSpec(symbol.shape, symbol.dtype)
        if spec.dtype != want.dtype or not want.admits(spec.shape):
            raise ValueError(f"{name}: an input is {spec}, its graph wants {want}")


def common_shape(a: Any, b: Any) -> Any:
    """Return a shape that admits two."""
    if a is None or b is None or len(a) != len(b):
        return None
    return tuple(n if n == m else None for n, m in zip(a, b, strict=True))


def pack_outputs(tree: Any, leaves: Sequence[Any]) -> Any:
    """Return leaves in the structure of ``tree``, whose None are no leaves."""
    rest = iter(leaves)
    return pack_like(tree, [None if leaf is None else next(rest) for leaf in flatten(tree)])


def chosen_only(chosen: Tensor, tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return the same values, with gradients for the chosen examples alone.

    What runs for all examples may have infinite slopes at those that it is not meant for; times a
    gradient of zero they are nan, which goes no further than here.
    """
    return [
        ops["where"](chosen, x, ops["stop_gradient"](x)) if is_differentiable(x.dtype) else x
        for x in tensors
    ]


# -- variables that a graph assigns ----------------------------------------------------------------


def assign_variables(found: Sequence[Any], held: list[Any]) -> list[Any]:
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


def _assigned_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    beside = xs[batched.index(True)]
    return op.raw(*(x if b else as_batched(x, beside) for x, b in zip(xs, batched, strict=True)))


op(
    "assigned",
    lambda xp, x, variable: x,
    gradients={"x": NONDIFF, "variable": lambda g, variable_like: as_like(g, variable_like)},
    infer=lambda x, variable: (x.shape, x.dtype),
    batch=_assigned_rule,
    doc="Return ``x``, which was assigned to a variable: gradients reach the variable, not ``x``.",
)
