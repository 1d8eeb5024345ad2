"""``cond`` and ``while_loop``: on values, Python's own ``if`` and ``while``.

In a trace, or where a decision differs between the examples of a batch, they become one op that
runs graphs.
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
    describe,
    exclusive,
    flatten,
    has_level,
    holding,
    is_transformed,
    joined,
    loop_limit,
    mask_effects,
    nodes_within,
    ops,
    outline,
    pack_like,
    replay,
    run_with_masked_effects,
    structure,
    trace_branch,
    tracing_into,
)
from ..common.op_builders import OPS
from .subgraphs import (
    REQUIRED,
    any_chosen,
    assign_variables,
    batch_size,
    carried_specs,
    check_dtype,
    check_graph,
    chosen_only,
    common_shape,
    each_its_own,
    pack_outputs,
    specs_of,
    traced_step,
    with_wide_start,
)
from .tensor_array import KnownElements, with_memory


class _Cond(Program):
    __slots__ = ()
    fixed = 1

    def quick_run(self, xp: Any, arrays: Sequence[Any], **params: Any) -> list[Any]:
        pred, *operands = arrays
        return compiled(params["true"] if bool(pred) else params["false"])(operands)

    def forward(self, tensors: Sequence[Tensor], **params: Any) -> list[Tensor]:
        pred, *operands = tensors
        if not is_transformed(pred.array):
            return replay(params["true"] if bool(pred) else params["false"], operands)
        found = []
        for key, chosen in (("true", pred), ("false", ops["logical_not"](pred))):
            with mask_effects(chosen):
                found.append(_run_for(chosen, operands, **_first(key, **params)))
        return [each_its_own("cond", pred, a, b) for a, b in zip(*found, strict=True)]

    def results(self, specs: Sequence[Any], **params: Any) -> list[tuple[Any, Any]]:
        pred, *operands = specs
        if pred.dtype.kind != "b" or pred.shape not in ((), None):
            raise ValueError(f"cond: the predicate must be one boolean, got {pred}")
        for graph in (params["true"], params["false"]):
            check_graph("cond", graph, operands)
        found = [specs_of(params[key], operands) for key in ("true", "false")]
        pairs = zip(*found, strict=True)
        return [(common_shape(a.shape, b.shape), a.dtype) for a, b in pairs]

    def layout(self, **params: Any) -> tuple[list[bool], list[bool]]:
        graph = params["true"]
        return [False] * (1 + len(graph.inputs)), [False] * len(graph.outputs)

    def result_dtypes(self, **params: Any) -> list[Any]:
        return [x.dtype for x in params["true"].outputs]

    def in_batch(
        self, arrays: Sequence[Any], level: int, batched: list[bool], **params: Any
    ) -> dict[str, Any] | None:
        if has_level(arrays[0], level):
            return None
        size, given = batch_size(arrays, level), batched[1 : 1 + len(params["true"].inputs)]
        return {key: batched_graph(graph, size, given) for key, graph in params.items()}


def _first(key: str, true: Graph, false: Graph) -> dict[str, Graph]:
    """Return the graph of a key and the other one."""
    return {"graph": true, "other": false} if key == "true" else {"graph": false, "other": true}


def _run_for(
    chosen: Tensor, operands: Sequence[Tensor], graph: Graph, other: Graph
) -> list[Tensor]:
    """Run a graph for the chosen examples.

    Its results for the others do not matter. If none is chosen, a loop in it might not end for
    them, and NumPy would warn of what the choice avoids: the other graph, which is for them all,
    takes its place.
    """
    given = chosen_only(chosen, operands)
    some = any_chosen(chosen)
    if not is_transformed(some.array):
        return replay(graph if bool(some) else other, given)
    if any(not getattr(node.op, "ends", True) for node in nodes_within(graph)):
        return list(
            run_with_masked_effects(ops["cond"], [some, *given], {"true": graph, "false": other})
        )
    return replay(graph, given)


_cond = _Cond(
    "cond",
    {"true": REQUIRED, "false": REQUIRED},
    "Run one of two graphs, by a boolean.",
)
OPS.append(_cond)


def cond(
    pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], *operands: Any
) -> Any:
    """Return ``true_fn(*operands)`` if ``pred`` holds, otherwise ``false_fn(*operands)``.

    Only the selected function runs, and gradients of every order pass through it. Inside ``vmap``,
    where ``pred`` may differ between examples, both functions run, and each example takes its own
    result and gradients, whatever the other function returns for it. A function that no example
    selects does not run if that is known, or if there is a loop in it.

    Parameters
    ----------
    pred
        One boolean (or a number, which is true if it is not 0).
    true_fn, false_fn
        Functions of the operands. In a trace both are traced: they must return the same structure,
        of the same dtypes. They may assign variables.
    operands
        Tensors in any nested containers. The functions may also use tensors and variables that they
        capture.

    Returns
    -------
    object
        The function's result.

    Raises
    ------
    ValueError
        If ``pred`` is not one value, or the functions return different structures.
    TypeError
        If the results differ in dtype.

    Examples
    --------
    >>> x = gt.constant(-2.0)
    >>> gt.cond(x > 0, lambda: x, lambda: -x).item()
    2.0
    """
    for which, fn in (("true_fn", true_fn), ("false_fn", false_fn)):
        if not callable(fn):
            raise TypeError(
                f"cond: {which} must be a function of the operands, got {fn!r}; for values, use "
                "gradtape.where"
            )
    choice = as_tensor(pred)
    if choice.shape not in ((), None):
        raise ValueError(f"cond: pred must be one value, got shape {choice.shape}")
    if not is_transformed(choice.array):
        for leaf in flatten(operands):
            if type(leaf) is Tensor:
                as_tensor(leaf)  # raises if its trace or batch has ended
        return (true_fn if bool(choice) else false_fn)(*operands)
    if choice.dtype.kind != "b":
        choice = ops["not_equal"](choice, 0)
    given = [as_tensor(leaf) for leaf in flatten(operands)]
    specs = [TensorSpec(x.shape, x.dtype) for x in given]
    parent = active_graph.get()

    def flat(fn: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *leaves: fn(*pack_like(operands, list(leaves)))

    branches, held = holding(
        lambda held: [
            trace_branch("cond", flat(fn), specs, parent, held) for fn in (true_fn, false_fn)
        ]
    )
    _check_alike(*branches)
    with exclusive(held):
        given += [variable.handle() for variable in held]
        (true, false), taken = joined(branches, len(given))
        found = assign_variables(ops["cond"](choice, *given, *taken, true=true, false=false), held)
    return pack_outputs(branches[0].result, found)


def _check_alike(a: Branch, b: Branch) -> None:
    nones = [[leaf is None for leaf in flatten(branch.result)] for branch in (a, b)]
    if structure(a.result) != structure(b.result) or nones[0] != nones[1]:
        raise ValueError(
            "cond: true_fn and false_fn must return the same structure, got "
            f"{outline(a.result)} and {outline(b.result)}"
        )
    for i, (x, y) in enumerate(zip(a.outputs, b.outputs, strict=True)):
        if x.dtype != y.dtype:
            raise TypeError(
                f"cond: result {i} is {describe(x.shape, x.dtype)} from true_fn and "
                f"{describe(y.shape, y.dtype)} from false_fn; cast one with astype"
            )
        if x.shape is not None and y.shape is not None and len(x.shape) != len(y.shape):
            raise ValueError(
                f"cond: result {i} has shape {x.shape} from true_fn and {y.shape} from false_fn"
            )


# -- while_loop ------------------------------------------------------------------------------------


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
            with mask_effects(go_on):
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
    return leaf if type(leaf) is KnownElements else as_tensor(leaf)


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
