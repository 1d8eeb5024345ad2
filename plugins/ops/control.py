"""Control flow as ops: ``cond``, ``while_loop``, ``scan`` and ``map``.

On values, these are Python's own ``if`` and loops. In a trace, or where a decision differs from
example to example of a batch, they become one op that runs graphs.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.batched import Batched, has_level
from ...core.branch import Branch, holding, joined, trace_branch
from ...core.convert import as_tensor
from ...core.dtypes import is_differentiable
from ...core.errors import EndlessLoop, TraceError
from ...core.extend import Graph, TensorSpec, ops
from ...core.op import is_transformed, unsure
from ...core.program import Program, batched_graph, compiled
from ...core.replay import replay
from ...core.spec import describe
from ...core.state import active_graph, loop_limit, tracing_into
from ...core.tensor import Tensor
from ...core.tree import flatten, pack_like, structure
from .families import OPS, SCALARS, named

__all__ = ["cond", "map", "scan", "while_loop"]

REQUIRED = inspect.Parameter.empty


def _size_of(arrays: Sequence[Any], level: int) -> int | None:
    """Return the number of examples."""
    like = next(x for x in arrays if type(x) is Batched and x.level == level)
    if like.array.shape is None:
        raise TraceError(
            f"vmap needs to know the number of axes of {like!r}; give its TensorSpec a shape, with "
            "None for unknown sizes"
        )
    size: int | None = like.array.shape[0]
    return size


def _specs_of(graph: Graph) -> list[TensorSpec]:
    return [TensorSpec(x.shape, x.dtype) for x in graph.outputs]


def _check_graph(name: str, graph: Any, specs: Sequence[Any]) -> None:
    """Raise if a parameter is no graph of such inputs; a file may say anything."""
    if not isinstance(graph, Graph) or len(graph.inputs) != len(specs):
        raise ValueError(f"{name}: {len(specs)} inputs do not fit its graphs")
    for symbol, spec in zip(graph.inputs, specs, strict=True):
        want = TensorSpec(symbol.shape, symbol.dtype)
        if spec.dtype != want.dtype or not want.admits(spec.shape):
            raise ValueError(f"{name}: an input is {spec}, its graph wants {want}")


def _merged(a: Any, b: Any) -> Any:
    """Return a shape that admits two."""
    if a is None or b is None or len(a) != len(b):
        return None
    return tuple(n if n == m else None for n, m in zip(a, b, strict=True))


# -- cond ------------------------------------------------------------------------------------------


def _only(chosen: Tensor, tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return the same values, with gradients for the chosen examples alone.

    What runs for all examples may have infinite slopes at those that it is not meant for; times a
    gradient of zero they are nan, which goes no further than here.
    """
    return [
        ops["where"](chosen, x, ops["stop_gradient"](x)) if is_differentiable(x.dtype) else x
        for x in tensors
    ]


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
        found = zip(
            replay(params["true"], _only(pred, operands)),
            replay(params["false"], _only(ops["logical_not"](pred), operands)),
            strict=True,
        )
        return [ops["where"](pred, a, b) for a, b in found]

    def results(self, specs: Sequence[Any], **params: Any) -> list[tuple[Any, Any]]:
        pred, *operands = specs
        if pred.dtype.kind != "b" or pred.shape not in ((), None):
            raise ValueError(f"cond: the predicate must be one boolean, got {pred}")
        for graph in (params["true"], params["false"]):
            _check_graph("cond", graph, operands)
        pairs = zip(_specs_of(params["true"]), _specs_of(params["false"]), strict=True)
        return [(_merged(a.shape, b.shape), a.dtype) for a, b in pairs]

    def layout(self, **params: Any) -> tuple[list[bool], list[bool]]:
        graph = params["true"]
        return [False] * (1 + len(graph.inputs)), [False] * len(graph.outputs)

    def result_dtypes(self, **params: Any) -> list[Any]:
        return [x.dtype for x in params["true"].outputs]

    def in_batch(self, arrays: Sequence[Any], level: int, **params: Any) -> dict[str, Any] | None:
        if has_level(arrays[0], level):
            return None
        size = _size_of(arrays, level)
        return {key: batched_graph(graph, size) for key, graph in params.items()}


_cond = _Cond(
    "cond",
    {"true": REQUIRED, "false": REQUIRED},
    "Run one of two graphs, by a boolean.",
)
OPS.append(_cond)


@named
def cond(
    pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], *operands: Any
) -> Any:
    """Return ``true_fn(*operands)`` if ``pred`` holds, else ``false_fn(*operands)``.

    Only the function that is chosen runs; gradients of every order go through it. Inside ``vmap``,
    where ``pred`` may differ from example to example, both run and each example takes its own (with
    its gradients, whatever the other function makes of it; NumPy may warn of that).

    Parameters
    ----------
    pred
        One boolean (or a number, which is true if it is not 0).
    true_fn, false_fn
        Functions of the operands. In a trace both are traced: they must return the same structure,
        of the same dtypes. They may assign variables.
    operands
        Tensors in any nested containers. The functions may also use tensors and variables from
        around them.

    Returns
    -------
    What the function returns.

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
    choice = as_tensor(pred)
    if choice.shape not in ((), None):
        raise ValueError(f"cond: pred must be one value, got shape {choice.shape}")
    if not is_transformed(choice.array):
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
    given += [variable.handle() for variable in held]
    (true, false), taken = joined(branches, len(given))
    found = _assigned(ops["cond"](choice, *given, *taken, true=true, false=false), held)
    return _packed(branches[0].result, found)


def _assigned(found: Sequence[Any], held: list[Any]) -> list[Any]:
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


def _packed(tree: Any, leaves: Sequence[Any]) -> Any:
    """Return leaves in the structure of ``tree``, whose None are no leaves."""
    rest = iter(leaves)
    return pack_like(tree, [None if leaf is None else next(rest) for leaf in flatten(tree)])


def _check_alike(a: Branch, b: Branch) -> None:
    nones = [[leaf is None for leaf in flatten(branch.result)] for branch in (a, b)]
    if structure(a.result) != structure(b.result) or nones[0] != nones[1]:
        raise ValueError(
            "cond: true_fn and false_fn must return the same structure, got "
            f"{structure(a.result)} and {structure(b.result)}"
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


# -- while -----------------------------------------------------------------------------------------


def _check_limit(done: int, limit: int | None) -> None:
    if limit is not None and done >= limit:
        raise EndlessLoop(f"while_loop: no end after {limit:,} steps")


class _While(Program):
    __slots__ = ()

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
        # a result is never one of the inputs: what a loop leaves alone has a gradient of its own
        values = [ops["identity"](x) for x in values]
        done, most, limit = 0, params["most"], loop_limit.get()
        while (most is None or done < most) and bool(replay(params["cond"], [*values, *around])[0]):
            _check_limit(done, limit)
            values = replay(params["body"], [*values, *around])
            done += 1
        return values

    def results(self, specs: Sequence[Any], **params: Any) -> list[tuple[Any, Any]]:
        count, most = params["count"], params["most"]
        if type(count) is not int or not (most is None or type(most) is int):
            raise ValueError("while_loop: its counts must be integers")
        for graph in (params["cond"], params["body"]):
            _check_graph("while_loop", graph, specs)
        (holds,), after = _specs_of(params["cond"]), _specs_of(params["body"])
        if holds.dtype.kind != "b" or holds.shape not in ((), None) or len(after) != count:
            raise ValueError("while_loop: its graphs do not fit together")
        _check_graph("while_loop", params["body"], [*after, *specs[count:]])
        return [(_merged(x.shape, y.shape), y.dtype) for x, y in zip(specs, after)]

    def layout(self, **params: Any) -> tuple[list[bool], list[bool]]:
        graph = params["body"]
        return [False] * len(graph.inputs), [False] * len(graph.outputs)

    def result_dtypes(self, **params: Any) -> list[Any]:
        return [x.dtype for x in params["body"].outputs]

    def in_batch(self, arrays: Sequence[Any], level: int, **params: Any) -> dict[str, Any] | None:
        size, holds, body = _size_of(arrays, level), params["cond"], params["body"]

        def step(given: list[Tensor]) -> list[Tensor]:
            (go_on,) = replay(holds, given)
            found = replay(body, _only(go_on, given))
            return [ops["where"](go_on, y, x) for x, y in zip(given, found, strict=False)]

        return {
            **params,
            "cond": _any(batched_graph(holds, size)),
            "body": batched_graph(body, size, step),
        }


def _any(graph: Graph) -> Graph:
    """Return a graph of one boolean per example as one for all: whether any goes on."""
    with tracing_into(graph):
        (each,) = graph.outputs
        graph.outputs = [ops["any"](Tensor(each), axis=None, keepdims=False).array]
    return graph


_while = _While(
    "while_loop",
    {"cond": REQUIRED, "body": REQUIRED, "count": REQUIRED, "most": None},
    "Run a graph again and again, while another gives true.",
)
OPS.append(_while)


@named
def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    maximum_iterations: int | None = None,
) -> Any:
    """Repeat ``loop_vars = body(*loop_vars)`` while ``cond(*loop_vars)`` holds.

    Gradients of every order go through it; they keep what every step needs. Inside ``vmap`` each
    example keeps what it has when its condition fails; the body goes on for all while any goes on.

    Parameters
    ----------
    cond, body
        Functions of the loop variables: of each, if ``loop_vars`` is a list or tuple, else of it.
        ``cond`` returns one boolean, ``body`` new loop variables of the same structure and dtypes
        (a Python number to start from takes the dtype that it becomes), and may assign variables.
    loop_vars
        Tensors in any nested containers.
    maximum_iterations
        The most steps to run; no limit by default.

    Returns
    -------
    The last loop variables, in their structure.

    Raises
    ------
    ValueError
        If ``cond`` does not return one value, or ``body`` another structure.
    TypeError
        If ``body`` changes a dtype.

    Examples
    --------
    >>> gt.while_loop(lambda x: x < 100.0, lambda x: x * x, gt.constant(2.0)).item()
    256.0
    """
    return _widening(lambda start: _while_loop(cond, body, start, maximum_iterations), loop_vars)


def _while_loop(
    cond: Callable[..., Any], body: Callable[..., Any], loop_vars: Any, maximum_iterations: Any
) -> Any:
    spread = isinstance(loop_vars, (list, tuple))
    given = flatten(loop_vars)
    values = [as_tensor(leaf) for leaf in given]
    most = None if maximum_iterations is None else operator.index(maximum_iterations)

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
                f"while_loop: body must return the structure of loop_vars, {structure(loop_vars)}, "
                f"got {structure(returned)}"
            )
        found = [as_tensor(leaf) for leaf in flatten(returned)]
        for i, (before, after) in enumerate(zip(leaves, found, strict=True)):
            _check_dtype(f"while_loop: loop variable {i}", i, before, after, given[i])
        return found

    done = 0
    if active_graph.get() is None:
        while most is None or done < most:
            go_on = holds(*values)
            if is_transformed(go_on.array):
                break  # it differs from example to example
            if not bool(go_on):
                return pack_like(loop_vars, values)
            _check_limit(done, loop_limit.get())
            values = step(*values)
            done += 1
        else:
            return pack_like(loop_vars, values)
    found = _looped(holds, step, values, None if most is None else most - done)
    return pack_like(loop_vars, found)


class _Wider(Exception):
    """A Python number, whose dtype is weak, must start with a wider dtype."""

    def __init__(self, index: int, dtype: Any) -> None:
        self.index = index
        self.dtype = dtype


def _widening(run: Callable[[Any], Any], start: Any) -> Any:
    """Run a loop whose first values may be Python numbers: they take the dtype of what follows."""
    leaves = flatten(start)
    while True:
        try:
            return run(pack_like(start, list(leaves)))
        except _Wider as need:
            leaves[need.index] = as_tensor(leaves[need.index], need.dtype)


def _check_dtype(what: str, i: int, before: Tensor, after: Tensor, first: Any) -> None:
    if before.dtype == after.dtype:
        return
    if type(first) in SCALARS and np.result_type(before.dtype, after.dtype) == after.dtype:
        raise _Wider(i, after.dtype)
    raise TypeError(f"{what} is {before.dtype} and becomes {after.dtype}; cast it with astype")


def _looped(holds: Any, step: Any, values: list[Tensor], most: int | None) -> list[Tensor]:
    """Run a loop as one op."""
    parent = active_graph.get()
    specs = [TensorSpec(x.shape, x.dtype) for x in values]

    def trace(held: list[Any]) -> list[Branch]:
        body = _traced_step("while_loop", step, specs, len(specs), held)
        return [trace_branch("while_loop", holds, specs, parent, held), body]

    branches, held = holding(trace)
    branches[0].outputs = branches[0].outputs[:1]  # the condition assigns nothing
    values = [*values, *(variable.handle() for variable in held)]
    graphs, taken = joined(branches, len(values))
    settings = {"cond": graphs[0], "body": graphs[1], "count": len(values), "most": most}
    return _assigned(ops["while_loop"](*values, *taken, **settings), held)


def _traced_step(
    name: str, step: Any, specs: list[TensorSpec], carried: int, held: list[Any]
) -> Branch:
    """Return the graph of a step; what changes its size from step to step is unknown in it."""
    for _ in range(3):
        body = trace_branch(name, step, specs, active_graph.get(), held)
        after = [
            _merged(x.shape, y.shape) for x, y in zip(specs[:carried], body.outputs, strict=False)
        ]
        if after == [x.shape for x in specs[:carried]]:
            break
        specs[:carried] = [
            TensorSpec(shape, x.dtype) for shape, x in zip(after, specs, strict=False)
        ]
    return body


# -- scan ------------------------------------------------------------------------------------------


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
        length = xs[0].shape[0] if xs else params["length"]
        run, rows = compiled(params["body"]), []
        for i in self._steps(length, params):
            found = run([*carry, *(x[i, ...] for x in xs), *around])
            carry = found[: len(carry)]
            rows.append(found[len(carry) :])
        if params["reverse"]:
            rows.reverse()
        if rows:
            return [*carry, *(xp.stack(column, axis=0) for column in zip(*rows, strict=True))]
        outputs = params["body"].outputs[len(carry) :]
        if any(unsure(y.shape) for y in outputs):
            # one step on zeros tells the sizes of what no step has made
            zeros = [xp.zeros(x.shape[1:], dtype=x.dtype) for x in xs]
            with np.errstate(all="ignore"):
                outputs = run([*carry, *zeros, *around])[len(carry) :]
        names = [str(y.dtype).rpartition(".")[2] for y in outputs]
        return [
            *carry,
            *(
                xp.zeros((0, *y.shape), dtype=getattr(xp, name))
                for y, name in zip(outputs, names, strict=True)
            ),
        ]

    def forward(self, tensors: Sequence[Tensor], **params: Any) -> list[Tensor]:
        carry, xs, around = self._parts(tensors, params)
        carry = [ops["identity"](x) for x in carry]
        length = xs[0].shape[0] if xs else params["length"]
        if not length:
            return [
                *carry,
                *[Tensor(y) for y in self.raw(*[x.array for x in tensors], **params)[len(carry) :]],
            ]
        # one op cuts and one joins, whose gradients are one op each
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
        if not (type(length) is int and length >= 0) and not (xs and length is None):
            raise ValueError(f"scan: its length must be an integer, got {length!r}")
        rows = []
        for x in xs:
            if x.shape == ():
                raise ValueError("scan: what is scanned has no axis")
            known = None if x.shape is None else x.shape[0]
            if None not in (known, length) and known != length:
                raise ValueError(f"scan: lengths differ: {known} and {length}")
            length = length if known is None else known
            rows.append(TensorSpec(None if x.shape is None else x.shape[1:], x.dtype))
        _check_graph("scan", params["body"], [*carry, *rows, *around])
        after = _specs_of(params["body"])
        if len(after) < len(carry):
            raise ValueError("scan: its graph returns no carry")
        _check_graph("scan", params["body"], [*after[: len(carry)], *rows, *around])
        return [
            *((_merged(x.shape, y.shape), y.dtype) for x, y in zip(carry, after)),
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

    def in_batch(self, arrays: Sequence[Any], level: int, **params: Any) -> dict[str, Any] | None:
        return {**params, "body": batched_graph(params["body"], _size_of(arrays, level))}


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


@named
def scan(
    fn: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
) -> tuple[Any, Any]:
    """Run ``carry, y = fn(carry, x)`` along the first axis of ``xs``, and stack what it returns.

    The interface is that of ``jax.lax.scan``. Gradients of every order go through it. In a trace it
    is one op, however long ``xs`` is; eagerly it is a loop.

    Parameters
    ----------
    fn
        A function of the carry and of one entry of ``xs``, in their structures. It returns the next
        carry, of the structure, shapes and dtypes of ``init``, and an output (or ``None``) in any
        structure. It may assign variables.
    init
        The first carry: tensors in any nested containers. A Python number takes the dtype that it
        becomes.
    xs
        Tensors whose first axes are the steps, in any nested containers; ``None`` without any.
    length
        The number of steps; needed without ``xs`` only.
    reverse
        Run from the last entry to the first; outputs stay beside their entries.

    Returns
    -------
    The last carry, and the outputs with a new first axis.

    Raises
    ------
    ValueError
        If lengths differ or are unknown, or ``fn`` changes the carry's structure or a shape.
    TypeError
        If ``fn`` does not return a pair, or changes a dtype of the carry.

    Examples
    --------
    >>> total, sums = gt.scan(lambda c, x: (c + x, c + x), 0.0, gt.constant([1.0, 2.0, 3.0]))
    >>> sums.tolist()
    [1.0, 3.0, 6.0]
    """
    return _widening(lambda start: _scan_from(fn, start, xs, length, reverse), init)


def _scan_from(
    fn: Callable[[Any, Any], Any], init: Any, xs: Any, length: int | None, reverse: bool
) -> tuple[Any, Any]:
    first = flatten(init)
    carry = [as_tensor(leaf) for leaf in first]
    rows = [] if xs is None else [as_tensor(leaf) for leaf in flatten(xs)]
    steps = _length(rows, length)
    shape: list[Any] = []  # of an output, once one is known

    def step(*leaves: Any) -> list[Tensor]:
        before, x = leaves[: len(carry)], list(leaves[len(carry) :])
        returned = fn(pack_like(init, list(before)), None if xs is None else pack_like(xs, x))
        if not isinstance(returned, (tuple, list)) or len(returned) != 2:
            raise TypeError("scan: fn must return a pair, the next carry and an output (or None)")
        if structure(returned[0]) != structure(init):
            raise ValueError(
                f"scan: fn must return a carry of the structure {structure(init)}, got "
                f"{structure(returned[0])}"
            )
        after = [as_tensor(leaf) for leaf in flatten(returned[0])]
        for i, (a, b) in enumerate(zip(before, after, strict=True)):
            _check_dtype(f"scan: carry {i}", i, a, b, first[i])
            if a.shape != b.shape and not unsure(a.shape) and not unsure(b.shape):
                raise ValueError(f"scan: carry {i} has shape {a.shape} and becomes {b.shape}")
        shape[:] = [returned[1]]
        return [*after, *[as_tensor(x) for x in flatten(returned[1]) if x is not None]]

    if active_graph.get() is None and steps:
        values, found = carry, []
        cut = [ops["unstack"](x, axis=0, num=steps) for x in rows]
        for i in range(steps)[::-1] if reverse else range(steps):
            results = step(*values, *(parts[i] for parts in cut))
            values = results[: len(carry)]
            found.append(results[len(carry) :])
        if reverse:
            found.reverse()
        stacked = [ops["stack"](*column, axis=0) for column in zip(*found, strict=True)]
    else:
        specs = [
            *(TensorSpec(x.shape, x.dtype) for x in carry),
            *(TensorSpec(None if x.shape is None else x.shape[1:], x.dtype) for x in rows),
        ]
        count = len(carry)
        branches, held = holding(lambda held: [_traced_step("scan", step, specs, count, held)])
        (graph,), taken = joined(branches, len(specs) + len(held))
        _carry_first(graph, count, len(rows), len(held))
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
        values, stacked = list(found[:count]), list(found[count + len(held) :])
        _assigned(found[count : count + len(held)], held)
    (output,) = shape
    return pack_like(init, values), _packed(output, stacked)


def _carry_first(graph: Graph, count: int, rows: int, held: int) -> None:
    """Let the variables that a step assigns be part of its carry, before what is scanned."""
    ins, outs = graph.inputs, graph.outputs
    place = count + rows
    graph.inputs = [
        *ins[:count],
        *ins[place : place + held],
        *ins[count:place],
        *ins[place + held :],
    ]
    graph.outputs = [*outs[:count], *outs[len(outs) - held :], *outs[count : len(outs) - held]]


def _length(rows: list[Tensor], length: int | None) -> int | None:
    steps = None if length is None else operator.index(length)
    for x in rows:
        if x.shape == ():
            raise ValueError("scan: xs must have a first axis to run along, got shape ()")
        known = None if x.shape is None else x.shape[0]
        if None not in (known, steps) and known != steps:
            raise ValueError(f"scan: the lengths differ: {known} and {steps}")
        steps = steps if known is None else known
    if not rows and steps is None:
        raise ValueError("scan: without xs, the number of steps must be given as length")
    return steps


@named
def map(fn: Callable[..., Any], xs: Any) -> Any:
    """Apply ``fn`` to each entry along the first axis of ``xs``, one after another; stack results.

    Where ``fn`` can run on all entries at once, :func:`gradtape.vmap` is quicker; this takes the
    memory of one entry at a time, and lets ``fn`` decide by values.

    Parameters
    ----------
    fn
        A function of one entry, in the structure of ``xs``.
    xs
        Tensors in any nested containers.

    Returns
    -------
    The results with a new first axis, in their structure.
    """
    return scan(lambda carry, x: (carry, fn(x)), (), xs)[1]
