"""``cond``: on values, Python's own ``if``.

In a trace, or where the decision differs between the examples of a batch, it becomes one op that
runs graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....core.extend import (
    Branch,
    Graph,
    Program,
    Tensor,
    TensorSpec,
    active_graph,
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
    meant_for,
    nodes_within,
    ops,
    outline,
    pack_like,
    replay,
    run_for_meant,
    structure,
    trace_branch,
)
from ..common.op_builders import OPS
from .subgraphs import (
    REQUIRED,
    any_chosen,
    assign_variables,
    batch_size,
    check_graph,
    chosen_only,
    common_shape,
    each_its_own,
    pack_outputs,
    specs_of,
)


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
            with meant_for(chosen):
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
        return list(run_for_meant(ops["cond"], [some, *given], {"true": graph, "false": other}))
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
