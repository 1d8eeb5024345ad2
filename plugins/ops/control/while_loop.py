"""``while_loop``: on values, Python's own ``while``.

In a trace, or where its end differs between the examples of a batch, it becomes one op that runs
graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....core.errors import EndlessLoop
from ....core.extend import (
    Batched,
    Branch,
    Graph,
    Program,
    Size,
    Tensor,
    TensorSpec,
    active_graph,
    as_size,
    as_tensor,
    batched_graph,
    compiled,
    exclusive,
    flatten,
    holding,
    is_transformed,
    joined,
    loop_limit,
    meant_for,
    ops,
    outline,
    pack_like,
    replay,
    structure,
    trace_branch,
    tracing_into,
)
from ..common.op_builders import OPS
from .loops import check_dtype, traced_step, with_wide_start
from .subgraphs import (
    REQUIRED,
    assign_variables,
    batch_size,
    carried_specs,
    check_graph,
    chosen_only,
    each_its_own,
)
from .tensor_array import Cells, with_memory


def _check_limit(done: int, limit: int | None) -> None:
    if limit is not None and done >= limit:
        raise EndlessLoop(f"while_loop: did not end after {limit:,} steps")


class _While(Program):
    __slots__ = ()
    ends = False

    def quick_run(self, xp: Any, arrays: Sequence[Any], **params: Any) -> list[Any]:
        holds, step = compiled(params["cond"]), compiled(params["body"])
        values, around = list(arrays[: params["count"]]), list(arrays[params["count"] :])
        done, most, limit = 0, params["most"], loop_limit.get()
        while (most is None or done < most) and bool(holds([*values, *around])[0]):
            _check_limit(done, limit)
            values = step([*values, *around])
            done += 1
        return values

    def forward(self, tensors: Sequence[Tensor], **params: Any) -> list[Tensor]:
        values, around = list(tensors[: params["count"]]), list(tensors[params["count"] :])
        # a result is never one of the inputs: even an unchanged variable has its own gradient
        values = [ops["identity"](x) for x in values]
        done, most, limit = 0, params["most"], loop_limit.get()
        while (most is None or done < most) and bool(replay(params["cond"], [*values, *around])[0]):
            _check_limit(done, limit)
            values = replay(params["body"], [*values, *around])
            done += 1
        return values

    def results(self, specs: Sequence[Any], **params: Any) -> list[tuple[Any, Any]]:
        count, most = params["count"], params["most"]
        if type(count) is not int or type(most) not in (int, Size, type(None)):
            raise ValueError("while_loop: its counts must be integers")
        for graph in (params["cond"], params["body"]):
            check_graph("while_loop", graph, specs)
        (holds,), fits = params["cond"].outputs, len(params["body"].outputs) == count
        if holds.dtype.kind != "b" or holds.shape not in ((), None) or not fits:
            raise ValueError("while_loop: its graphs do not fit together")
        after = carried_specs(params["body"], specs, count)
        check_graph("while_loop", params["body"], [*after, *specs[count:]])
        return [(x.shape, x.dtype) for x in after]

    def layout(self, **params: Any) -> tuple[list[bool], list[bool]]:
        graph = params["body"]
        return [False] * len(graph.inputs), [False] * len(graph.outputs)

    def result_dtypes(self, **params: Any) -> list[Any]:
        return [x.dtype for x in params["body"].outputs]

    def carried(self, **params: Any) -> int:
        count: int = params["count"]
        return count

    def in_batch(
        self, arrays: Sequence[Any], level: int, batched: list[bool], **params: Any
    ) -> dict[str, Any] | None:
        size, holds, body = batch_size(arrays, level), params["cond"], params["body"]
        given = batched[: len(body.inputs)]

        def step(tensors: list[Tensor]) -> list[Tensor]:
            (go_on,) = replay(holds, tensors)
            if type(go_on.array) is not Batched:  # sizes decide, which all examples share
                return replay(body, tensors)
            with meant_for(go_on):
                found = replay(body, chosen_only(go_on, tensors))
            pairs = zip(tensors, found, strict=False)
            return [each_its_own("while_loop", go_on, y, x) for x, y in pairs]

        return {
            **params,
            "cond": _any(batched_graph(holds, size, given)),
            "body": batched_graph(body, size, given, step),
        }


def _any(graph: Graph) -> Graph:
    """Return a graph of one boolean per example as one for all: whether any continues."""
    with tracing_into(graph):
        (each,) = graph.outputs
        graph.outputs = [ops["any"](Tensor(each), axis=None, keepdims=False).array]
    return graph


_while = _While(
    "while_loop",
    {"cond": REQUIRED, "body": REQUIRED, "count": REQUIRED, "most": None},
    "Run a graph repeatedly, while another returns true.",
)
OPS.append(_while)


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    maximum_iterations: int | None = None,
) -> Any:
    """Repeat ``loop_vars = body(*loop_vars)`` while ``cond(*loop_vars)`` holds.

    Gradients of every order pass through it; they keep what every step needs. Inside ``vmap``, the
    body runs for all examples while any condition holds, and each example keeps the values that it
    had when its own condition failed.

    Parameters
    ----------
    cond, body
        Functions of the loop variables: of each of them if ``loop_vars`` is a list or tuple,
        otherwise of ``loop_vars`` itself. ``cond`` returns one boolean. ``body`` returns new loop
        variables of the same structure and dtypes (a Python number at the start takes the dtype of
        its next value), and may assign variables.
    loop_vars
        Tensors in any nested containers.
    maximum_iterations
        The maximum number of steps; no limit by default.

    Returns
    -------
    object
        The last loop variables, in their structure.

    Raises
    ------
    ValueError
        If ``cond`` does not return one value, or ``body`` returns another structure.
    TypeError
        If ``body`` changes a dtype.

    Examples
    --------
    >>> gt.while_loop(lambda x: x < 100.0, lambda x: x * x, gt.constant(2.0)).item()
    256.0
    """
    if active_graph.get() is not None:
        loop_vars = with_memory(body, loop_vars)
    return with_wide_start(
        lambda start: _while_loop(cond, body, start, maximum_iterations), loop_vars
    )


def _while_loop(
    cond: Callable[..., Any], body: Callable[..., Any], loop_vars: Any, maximum_iterations: Any
) -> Any:
    spread = isinstance(loop_vars, (list, tuple))
    given = flatten(loop_vars)
    values = [_value(leaf) for leaf in given]
    most = maximum_iterations
    if most is not None:
        most = as_size(most, "while_loop: maximum_iterations")

    def called(fn: Callable[..., Any], leaves: Sequence[Any]) -> Any:
        packed = pack_like(loop_vars, list(leaves))
        return fn(*packed) if spread else fn(packed)

    def holds(*leaves: Any) -> Tensor:
        result = as_tensor(called(cond, leaves))
        if result.shape not in ((), None):
            raise ValueError(f"while_loop: cond must return one value, got shape {result.shape}")
        return result if result.dtype.kind == "b" else ops["not_equal"](result, 0)

    def step(*leaves: Any) -> list[Tensor]:
        returned = called(body, leaves)
        if spread and not isinstance(returned, (list, tuple)) and len(loop_vars) == 1:
            returned = [returned]
        if spread and isinstance(returned, (list, tuple)):  # a list for a tuple is fine
            returned = type(loop_vars)(returned) if type(loop_vars) in (list, tuple) else returned
        if structure(returned) != structure(loop_vars):
            raise ValueError(
                f"while_loop: body must return the structure of loop_vars, {outline(loop_vars)}, "
                f"got {outline(returned)}"
            )
        found = [_value(leaf) for leaf in flatten(returned)]
        for i, (before, after) in enumerate(zip(leaves, found, strict=True)):
            check_dtype(f"while_loop: loop variable {i}", i, before, after, given[i])
        return found

    done = 0
    if active_graph.get() is None:
        while most is None or done < most:
            go_on = holds(*values)
            if is_transformed(go_on.array):
                break  # the condition differs between examples
            if not bool(go_on):
                return pack_like(loop_vars, values)
            _check_limit(done, loop_limit.get())
            values = step(*values)
            done += 1
        else:
            return pack_like(loop_vars, values)
    found = _looped(holds, step, values, None if most is None else most - done)
    return pack_like(loop_vars, found)


def _value(leaf: Any) -> Any:
    """Return a loop variable as a tensor; cells of an array in a Python loop stay as they are."""
    return leaf if type(leaf) is Cells else as_tensor(leaf)


def _looped(holds: Any, step: Any, values: list[Tensor], most: Any) -> list[Tensor]:
    """Run a loop as one op."""
    parent = active_graph.get()
    specs = [TensorSpec(x.shape, x.dtype) for x in values]

    def trace(held: list[Any]) -> list[Branch]:
        body = traced_step("while_loop", step, specs, len(specs), held)
        return [trace_branch("while_loop", holds, specs, parent, held), body]

    branches, held = holding(trace)
    branches[0].outputs = branches[0].outputs[:1]  # the condition assigns nothing
    with exclusive(held):
        values = [*values, *(variable.handle() for variable in held)]
        graphs, taken = joined(branches, len(values))
        settings = {"cond": graphs[0], "body": graphs[1], "count": len(values), "most": most}
        return assign_variables(ops["while_loop"](*values, *taken, **settings), held)
