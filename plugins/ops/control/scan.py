"""Loops over the rows of arrays: ``scan`` and ``map``.

A trace has one op that runs the graph of a step; its gradient scans in reverse.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....core.extend import (
    Graph,
    Node,
    Program,
    Size,
    Tensor,
    TensorSpec,
    active_graph,
    as_size,
    as_tensor,
    batched_graph,
    common_size,
    compiled,
    exclusive,
    flatten,
    halved,
    has_unknown_sizes,
    holding,
    is_differentiable,
    joined,
    known_size,
    ops,
    outline,
    pack_like,
    replay,
    shape_in_run,
    sizes_differ,
    structure,
)
from ..common.op_builders import OPS
from .subgraphs import (
    REQUIRED,
    StackedRows,
    assign_variables,
    batch_size,
    carried_specs,
    check_dtype,
    check_graph,
    joint_scan,
    pack_outputs,
    traced_step,
    with_wide_start,
)


class _Scan(Program):
    __slots__ = ()

    def _parts(self, items: Sequence[Any], params: Any) -> tuple[list[Any], list[Any], list[Any]]:
        a, b = params["carried"], params["carried"] + params["scanned"]
        return list(items[:a]), list(items[a:b]), list(items[b:])

    def _steps(self, length: int, params: Any) -> Sequence[int]:
        steps = range(length)
        return steps[::-1] if params["reverse"] else steps

    def quick_run(self, xp: Any, arrays: Sequence[Any], **params: Any) -> list[Any]:
        carry, xs, around = self._parts(arrays, params)
        length = _common_length(xs, params["length"])
        run, rows = compiled(params["body"]), StackedRows(length)
        for i in self._steps(length, params):
            found = run([*carry, *(x[i, ...] for x in xs), *around])
            carry = found[: len(carry)]
            rows.put(i, found[len(carry) :])
        if length:
            return [*carry, *rows.stacked(xp)]
        outputs = params["body"].outputs[len(carry) :]
        names = [str(y.dtype).rpartition(".")[2] for y in outputs]
        return [
            *carry,
            *(
                xp.zeros((0, *shape), dtype=getattr(xp, name))
                for shape, name in zip(self._row_shapes(xp, arrays, params), names, strict=True)
            ),
        ]

    def quick_pull(self, xp: Any, arrays: Sequence[Any], **params: Any) -> list[Any] | None:
        carry, xs, rest = self._parts(arrays, params)
        body, carried = params["body"], len(carry)
        count = len(body.inputs) - carried - len(xs)
        around, upstream = rest[:count], rest[count:]
        length = _common_length(xs, params["length"])
        if not length or not _as_traced([*carry, *xs, *around], body):
            return None
        halves = halved(body, [*carry, *(x[0, ...] for x in xs), *around])
        if halves is None:
            return None
        run, back = compiled(halves.forward), compiled(halves.back)
        kept = []
        for i in self._steps(length, params):
            found = run([*carry, *(x[i, ...] for x in xs), *around])
            carry = found[:carried]
            kept.append(found[len(body.outputs) :])
        a = sum(is_differentiable(x.dtype) for x in body.inputs[:carried])
        b = a + sum(is_differentiable(x.dtype) for x in body.inputs[carried : carried + len(xs)])
        gradients, of_rows = upstream[:a], upstream[a:]
        rows = StackedRows(length)
        totals: list[Any] = []
        for i in reversed(self._steps(length, params)):
            found = back([*kept.pop(), *gradients, *(g[i, ...] for g in of_rows)])
            gradients = found[:a]
            rows.put(i, found[a:b])
            totals = [x + y for x, y in zip(totals, found[b:])] or found[b:]
        return [*gradients, *rows.stacked(xp), *totals]

    def joint(self, run: Node, pull: Node) -> list[Node] | None:
        return joint_scan(run, pull)

    def _row_shapes(self, xp: Any, arrays: Sequence[Any], params: Any) -> list[Any]:
        """Return the shapes of outputs without having run a step."""
        carry, xs, around = self._parts(arrays, params)
        body, zeros = params["body"], [xp.zeros(x.shape[1:], dtype=x.dtype) for x in xs]
        given = [*carry, *zeros, *around]
        found = dict(zip(body.inputs, given, strict=True))
        shapes = [shape_in_run(y, found) for y in body.outputs[len(carry) :]]
        if any(has_unknown_sizes(shape) for shape in shapes):  # one step on zeros shows them
            with np.errstate(all="ignore"):
                return [y.shape for y in compiled(body)(given)[len(carry) :]]
        return shapes

    def forward(self, tensors: Sequence[Tensor], **params: Any) -> list[Tensor]:
        carry, xs, around = self._parts(tensors, params)
        carry = [ops["identity"](x) for x in carry]
        length = _common_length(xs, params["length"])
        if not length:
            return [
                *carry,
                *[Tensor(y) for y in self.raw(*[x.array for x in tensors], **params)[len(carry) :]],
            ]
        # one op splits and one joins, each with a gradient of one op
        cut = [ops["unstack"](x, axis=0, num=length) for x in xs]
        rows = []
        for i in self._steps(length, params):
            found = replay(params["body"], [*carry, *(parts[i] for parts in cut), *around])
            carry = found[: len(carry)]
            rows.append(found[len(carry) :])
        if params["reverse"]:
            rows.reverse()
        return [*carry, *(ops["stack"](*column, axis=0) for column in zip(*rows, strict=True))]

    def results(self, specs: Sequence[Any], **params: Any) -> list[tuple[Any, Any]]:
        counts = [params["carried"], params["scanned"]]
        length = params["length"]
        if any(type(n) is not int or n < 0 for n in counts) or sum(counts) > len(specs):
            raise ValueError("scan: its counts do not fit its inputs")
        carry, xs, around = self._parts(specs, params)
        given = type(length) in (int, Size) and (length < 0) is not True
        if not given and not (xs and length is None):
            raise ValueError(f"scan: its length must be an integer, got {length!r}")
        rows = []
        for x in xs:
            if x.shape == ():
                raise ValueError("scan: each scanned input needs at least one axis")
            rows.append(TensorSpec(None if x.shape is None else x.shape[1:], x.dtype))
        length = _known_length(xs, length)
        check_graph("scan", params["body"], [*carry, *rows, *around])
        if len(params["body"].outputs) < len(carry):
            raise ValueError("scan: its graph returns no carry")
        after = carried_specs(params["body"], [*carry, *rows, *around], len(carry))
        check_graph("scan", params["body"], [*after[: len(carry)], *rows, *around])
        return [
            *((x.shape, x.dtype) for x in after[: len(carry)]),
            *(
                (None if y.shape is None else (length, *y.shape), y.dtype)
                for y in after[len(carry) :]
            ),
        ]

    def layout(self, **params: Any) -> tuple[list[bool], list[bool]]:
        carried, scanned, body = params["carried"], params["scanned"], params["body"]
        rest = len(body.inputs) - carried - scanned
        return (
            [False] * carried + [True] * scanned + [False] * rest,
            [False] * carried + [True] * (len(body.outputs) - carried),
        )

    def result_dtypes(self, **params: Any) -> list[Any]:
        return [x.dtype for x in params["body"].outputs]

    def in_batch(
        self, arrays: Sequence[Any], level: int, batched: list[bool], **params: Any
    ) -> dict[str, Any] | None:
        size, body = batch_size(arrays, level), params["body"]
        return {**params, "body": batched_graph(body, size, batched[: len(body.inputs)])}

    def carried(self, **params: Any) -> int:
        count: int = params["carried"]
        return count


_scan = _Scan(
    "scan",
    {
        "body": REQUIRED,
        "carried": REQUIRED,
        "scanned": REQUIRED,
        "reverse": False,
        "length": None,
    },
    "Run a graph along the first axis of arrays, with a carry from step to step.",
)
OPS.append(_scan)


def scan(
    fn: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
) -> tuple[Any, Any]:
    """Run ``carry, y = fn(carry, x)`` along the first axis of ``xs``, and stack the outputs.

    The interface is that of ``jax.lax.scan``. Gradients of every order pass through it. In a trace
    it is one op, however long ``xs`` is; in eager code it is a loop.

    Parameters
    ----------
    fn
        A function of the carry and of one entry of ``xs``, in their structures. It returns the next
        carry, of the structure, shapes and dtypes of ``init``, and an output (or ``None``) in any
        structure. It may assign variables.
    init
        The first carry: tensors in any nested containers. A Python number takes the dtype of its
        next value.
    xs
        Tensors whose first axes are the steps, in any nested containers; ``None`` for no inputs.
    length
        The number of steps; needed only without ``xs``.
    reverse
        Run from the last entry to the first; each output keeps the position of its entry.

    Returns
    -------
    carry
        The last carry, in the structure of ``init``.
    outputs
        The outputs of all steps, in their structure, with a new first axis.

    Raises
    ------
    ValueError
        If lengths differ, are unknown or negative, or ``fn`` changes the carry's structure or a
        shape.
    TypeError
        If ``fn`` does not return a pair, or changes a dtype of the carry.

    Examples
    --------
    >>> total, sums = gt.scan(lambda c, x: (c + x, c + x), 0.0, gt.constant([1.0, 2.0, 3.0]))
    >>> sums.tolist()
    [1.0, 3.0, 6.0]
    """
    return with_wide_start(lambda start: _scan_from(fn, start, xs, length, reverse), init)


def _scan_from(
    fn: Callable[[Any, Any], Any], init: Any, xs: Any, length: Any, reverse: bool
) -> tuple[Any, Any]:
    first = flatten(init)
    carry = [as_tensor(leaf) for leaf in first]
    rows = [] if xs is None else [as_tensor(leaf) for leaf in flatten(xs)]
    steps = _length(rows, length)
    shape: list[Any] = []  # of an output, once it is known

    def step(*leaves: Any) -> list[Tensor]:
        before, x = leaves[: len(carry)], list(leaves[len(carry) :])
        returned = fn(pack_like(init, list(before)), None if xs is None else pack_like(xs, x))
        if not isinstance(returned, (tuple, list)) or len(returned) != 2:
            raise TypeError(
                "scan: fn must return a pair, the next carry and an output (or None), got "
                f"{outline(returned) if isinstance(returned, (tuple, list)) else returned!r}"
            )
        if structure(returned[0]) != structure(init):
            raise ValueError(
                f"scan: fn must return a carry of the structure {outline(init)}, got "
                f"{outline(returned[0])}"
            )
        after = [as_tensor(leaf) for leaf in flatten(returned[0])]
        for i, (a, b) in enumerate(zip(before, after, strict=True)):
            check_dtype(f"scan: carry {i}", i, a, b, first[i])
            if not TensorSpec(a.shape, a.dtype).admits(b.shape):
                raise ValueError(f"scan: carry {i} has shape {a.shape} and becomes {b.shape}")
        shape[:] = [returned[1]]
        return [*after, *[as_tensor(x) for x in flatten(returned[1]) if x is not None]]

    if active_graph.get() is None and steps:
        values, stacked = _run_steps(step, carry, rows, steps, reverse)
    else:
        values, stacked = _run_as_op(step, carry, rows, steps, reverse)
    (output,) = shape
    return pack_like(init, values), pack_outputs(output, stacked)


def _run_steps(
    step: Any, carry: list[Tensor], rows: list[Tensor], steps: int, reverse: bool
) -> tuple[list[Tensor], list[Tensor]]:
    """Return the last carry and the stacked outputs of a loop that runs eagerly."""
    values, found = carry, []
    cut = [ops["unstack"](x, axis=0, num=steps) for x in rows]
    for i in range(steps)[::-1] if reverse else range(steps):
        results = step(*values, *(parts[i] for parts in cut))
        values = results[: len(carry)]
        found.append(results[len(carry) :])
    if reverse:
        found.reverse()
    return values, [ops["stack"](*column, axis=0) for column in zip(*found, strict=True)]


def _run_as_op(
    step: Any, carry: list[Tensor], rows: list[Tensor], steps: Any, reverse: bool
) -> tuple[list[Tensor], list[Tensor]]:
    """Return the last carry and the stacked outputs of one op that runs the graph of a step."""
    specs = [
        *(TensorSpec(x.shape, x.dtype) for x in carry),
        *(TensorSpec(None if x.shape is None else x.shape[1:], x.dtype) for x in rows),
    ]
    count = len(carry)
    branches, held = holding(lambda held: [traced_step("scan", step, specs, count, held)])
    (graph,), taken = joined(branches, len(specs) + len(held))
    _carry_first(graph, count, len(rows), len(held))
    with exclusive(held):
        found = ops["scan"](
            *carry,
            *(variable.handle() for variable in held),
            *rows,
            *taken,
            body=graph,
            carried=count + len(held),
            scanned=len(rows),
            reverse=bool(reverse),
            length=steps,
        )
        assign_variables(found[count : count + len(held)], held)
    return list(found[:count]), list(found[count + len(held) :])


def _carry_first(graph: Graph, count: int, rows: int, held: int) -> None:
    """Make the variables that a step assigns part of its carry, before the scanned inputs."""
    ins, outs = graph.inputs, graph.outputs
    place = count + rows
    graph.inputs = [
        *ins[:count],
        *ins[place : place + held],
        *ins[count:place],
        *ins[place + held :],
    ]
    graph.outputs = [*outs[:count], *outs[len(outs) - held :], *outs[count : len(outs) - held]]


def _length(rows: list[Tensor], length: Any) -> Any:
    """Return the number of steps; None if a run must take it from the rows."""
    steps = None if length is None else as_size(length, "scan: length")
    if steps is not None and (steps < 0) is True:
        raise ValueError(f"scan: length must be at least 0, got {steps}")
    if any(x.shape == () for x in rows):
        raise ValueError("scan: xs must have a first axis to run along, got shape ()")
    if not rows and steps is None:
        raise ValueError("scan: without xs, the number of steps must be given as length")
    known = _known_length(rows, steps)
    return known if known_size(known) else steps


def _known_length(rows: Sequence[Any], length: Any) -> Any:
    """Return the number of steps if rows and ``length`` determine it."""
    sizes = [*(x.shape[0] for x in rows if x.shape is not None), length]
    best = common_size(*sizes)
    for n in sizes:
        if sizes_differ(n, best):
            raise ValueError(f"scan: the lengths differ: {n} and {best}")
    return best


def _as_traced(arrays: Sequence[Any], body: Graph) -> bool:
    """Return whether arrays have the dtypes for which a step's gradient would be traced."""
    return all(
        x.dtype == y.dtype or str(x.dtype).rpartition(".")[2] == str(y.dtype)
        for x, y in zip(arrays, body.inputs, strict=True)
    )


def _common_length(rows: Sequence[Any], length: Any) -> int:
    """Return the number of steps of a run."""
    steps: int = rows[0].shape[0] if rows else length
    if length not in (None, steps) or any(x.shape[0] != steps for x in rows):
        raise ValueError(f"scan: the lengths differ: {[x.shape[0] for x in rows]}, {length}")
    if steps < 0:
        raise ValueError(f"scan: length must be at least 0, got {steps}")
    return steps


def map(fn: Callable[..., Any], xs: Any) -> Any:
    """Apply ``fn`` to each entry along the first axis of ``xs``, in order; stack the results.

    Where ``fn`` can run on all entries at once, :func:`gradtape.vmap` is faster; this function
    needs memory for one entry at a time, and lets ``fn`` branch on values.

    Parameters
    ----------
    fn
        A function of one entry, in the structure of ``xs``. It may assign variables.
    xs
        Tensors in any nested containers, whose first axes have the same size.

    Returns
    -------
    object
        The results with a new first axis, in their structure.

    Raises
    ------
    ValueError
        If a tensor has no axes, or the sizes of the first axes differ.

    Examples
    --------
    >>> gt.map(lambda x: x * x, gt.constant([1.0, 2.0, 3.0])).tolist()
    [1.0, 4.0, 9.0]
    """
    return scan(lambda carry, x: (carry, fn(x)), (), xs)[1]
