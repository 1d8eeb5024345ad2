"""How an op runs on batches: by its batching rule, on arrays or on tensors.

The rule receives the arrays inside the batch. If a tape that was opened outside the batch follows
an input that all examples share, the rule receives tensors instead, and this tape records the ops
on whole batches that the rule runs. Their gradient rules sum over the examples as they go: that of
``matmul`` is one product, and that of ``getitem`` adds all examples' rows to one array. The
gradient rule of the op itself would give one gradient per example.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from math import nan
from typing import Any
from weakref import WeakKeyDictionary

from ..base.context import active_graph, active_tapes, recording_to
from ..base.dtypes import SCALARS
from ..base.sizes import known_size, sizes_differ
from ..base.table import F
from ..errors import PluginError, TraceError
from ..ops.dispatch import check_alive, register_array_type, scope_of
from ..ops.rule import Composed
from ..tensors.op import BinaryOp, Op
from ..tensors.tensor import Tensor
from .batched import (
    HIDE,
    UNHIDE,
    Batched,
    Shared,
    as_batched,
    has_level,
    outermost,
    rank_of,
    running_levels,
    seen_rows,
)
from .checks import CheckedRule

__all__: list[str] = []


def elementwise(op: Op, arrays: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Run an op whose inputs broadcast: align the examples' axes at the right, as usual."""
    if len(arrays) == 1:
        return op.raw(arrays[0], **params)
    ranks = [
        0 if type(x) in SCALARS else len(x.shape) - b if x.shape is not None else None
        for x, b in zip(arrays, batched, strict=True)
    ]
    known = [n for n in ranks if n is not None]
    most = max(known, default=0)
    if len(known) < len(ranks) and sum(type(x) not in SCALARS for x in arrays) > 1:
        for x in arrays:
            if type(x) not in SCALARS:
                rank_of(x, op)
    for i, rank in enumerate(ranks):
        if batched[i] and rank is not None and rank < most:
            arrays[i] = F.expand_dims(arrays[i], axis=tuple(range(1, 1 + most - rank)))
    results = op.raw(*arrays, **params)
    if isinstance(results, (list, tuple)):
        check_elementwise(op, arrays, results)
    return results


def check_elementwise(op: Op, arrays: Sequence[Any], results: Sequence[Any]) -> None:
    """Raise if one of several outputs of an elementwise op has not the shape of all inputs.

    An output that depends on some inputs only would have no axis of the examples, or another one.
    """
    shapes = [x.shape for x in arrays if type(x) not in SCALARS]
    if any(shape is None for shape in shapes):
        return
    rank = max(map(len, shapes))
    for i, result in enumerate(results):
        for shape in shapes:
            whole = (1,) * (rank - len(shape)) + tuple(shape)
            if result.shape is not None and (
                len(result.shape) != rank
                or any(sizes_differ(n, m) for n, m in zip(whole, result.shape) if n != 1)
            ):
                raise PluginError(
                    f"op {op.name!r}: output {i} has shape {result.shape} for inputs of shapes "
                    f"{shapes}; batch='elementwise' is for outputs that have the shape to which "
                    "all inputs broadcast, so write a batching rule"
                )


def by_loop(op: Op, arrays: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Run an op without a batching rule: one example after another."""
    sizes = [x.shape[0] for x, b in zip(arrays, batched, strict=True) if b and x.shape]
    size = next(filter(known_size, sizes), None)
    if size is None:
        raise TraceError(
            f"op {op.name!r} has no batching rule (batch=), and the batch size is unknown in "
            "this trace, so its examples cannot be run one by one"
        )
    if op not in _looped:
        _looped.add(op)
        warnings.warn(
            f"op {op.name!r} has no batching rule (batch=): vmap runs it once per example",
            stacklevel=2,
        )
    rows = []
    for i in range(size):
        example = [
            F.getitem(x, index=(i,)) if b else x for x, b in zip(arrays, batched, strict=True)
        ]
        rows.append(op.raw(*example, **params))
    if isinstance(rows[0], (list, tuple)):
        return [F.stack(*column, axis=0) for column in zip(*rows, strict=True)]
    return F.stack(*rows, axis=0)


_looped: set[Op] = set()


def _batch(op: Op) -> Callable[..., Any]:
    """Return a function that runs an op on batches."""
    apply = _applied(op)
    several = len(op.inputs) > 1 or op.variadic
    if several and op.batch != "elementwise":
        return BatchedRun(op, _in_branches(op, apply))
    if op.batch == "elementwise" and isinstance(op, BinaryOp):
        apply = _pairwise(op, apply)
    return _in_branches(op, apply)


def _in_branches(op: Op, apply: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``apply``, preceded by the capture of batches from outside a traced branch."""

    def run(*arrays: Any, **params: Any) -> Any:
        graph = active_graph.get()
        if graph is not None and outermost(arrays) < graph.level:
            # a batch from outside a branch: the branch captures one example's value
            taken = [graph.adopt(x) if type(x) is Batched else x for x in arrays]
            return op.raw(*taken, **params)
        return apply(*arrays, **params)

    return run


class BatchedRun:
    """Runs an op of several inputs on batches.

    It is looked up for every call, not remembered, because what it does depends on the tapes.
    """

    __slots__ = ("apply", "op")

    def __init__(self, op: Op, apply: Callable[..., Any]) -> None:
        self.op = op
        self.apply = apply

    def __call__(self, *arrays: Any, **params: Any) -> Any:
        """Return the op's result on arrays."""
        return self.apply(*arrays, **params)

    def on_tensors(self, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
        """Run the op on tensors, if a tape outside the batch follows an input that examples share.

        Parameters
        ----------
        inputs
            The op's inputs: tensors and Python scalars.
        params
            Its parameters.

        Returns
        -------
        Tensor, list of Tensor or None
            The op's result, which all recorders have received. None if no such tape is active.
        """
        recorders = active_tapes.get()
        if not recorders:
            return None
        arrays = [x.array if type(x) is Tensor else x for x in inputs]
        level, graph = outermost(arrays), active_graph.get()
        outside = tuple(x for x in recorders if level not in x.levels)
        if not any(x.sums_over(level, inputs) for x in outside):
            return None
        if (graph is not None and level < graph.level) or not _holds_for_batches(self.op):
            return None
        try:
            with recording_to(outside), scope_of(arrays):
                results = _followed(self.op, inputs, level, params)
        except Exception:
            self.apply(*arrays, **params)  # raises the error for one example
            raise
        for recorder in recorders:
            if level not in recorder.levels:
                continue
            if isinstance(results, list):
                recorder.record_joint(self.op, tuple(inputs), results, params)
            else:
                recorder.record(self.op, tuple(inputs), results, params)
        return results


def _holds_for_batches(op: Op) -> bool:
    """Return whether the gradient rules hold for the arrays that the batching rule runs the op on.

    A user's rule may be only for the shapes of one example.
    """
    return op.batch is None or (op.stored is None and op.has_own_rules)


def _followed(op: Op, inputs: Sequence[Any], level: int, params: dict[str, Any]) -> Any:
    """Return an op's results as tensors; the active recorders receive what the rule runs."""
    settings = {**op.defaults, **params}
    if type(op.batch) is Composed:
        return op.batch.fn(*inputs, **settings)
    batched = [type(x) is Tensor and has_level(x.array, level) for x in inputs]
    inner = [UNHIDE(x, x, level=level) if b else x for x, b in zip(inputs, batched, strict=True)]
    rule: Any = _rule_of(op)
    found = rule(op, inner, batched, settings)
    if type(found) is not list and type(found) is not tuple:
        return found.array if type(found) is Shared else Op.__call__(HIDE, found, level=level)
    like = next((y for y in found if type(y) is not Shared), None)
    if like is None:
        return [y.array for y in found]
    whole = [as_batched(y.array, like) if type(y) is Shared else y for y in found]
    return [Op.__call__(HIDE, y, level=level) for y in whole]


# the batching rules of ops that are not verified, by op
_checked_rules: WeakKeyDictionary[Any, CheckedRule] = WeakKeyDictionary()


def _rule_of(op: Op) -> Callable[..., Any]:
    """Return the function that is the batching rule of an op, with checks of what it returns."""
    rule: Any = op.batch or by_loop
    if op.verified or rule is by_loop or not callable(rule):
        return rule
    known = _checked_rules.get(op.original)
    if known is None or known.rule is not rule:
        known = _checked_rules[op.original] = CheckedRule(rule)
    return known


def _applied(op: Op) -> Callable[..., Any]:
    if type(op.batch) is Composed:
        words, settings = op.batch.fn, op.defaults
        return lambda *arrays, **params: _alike(words(*arrays, **{**settings, **params}))
    rule: Any = elementwise if op.batch == "elementwise" else _rule_of(op)
    plain = rule is elementwise
    defaults = op.defaults

    def alone(x: Batched, **params: Any) -> Any:
        level, array = x.level, x.array
        if level not in running_levels:
            array = seen_rows(check_alive(x))
        result = op.raw(array, **params)
        if type(result) is list or type(result) is tuple:
            if plain:
                check_elementwise(op, (array,), result)
            return [Batched(part, level) for part in result]
        return Batched(result, level)

    if plain and len(op.inputs) == 1:
        return alone

    def run(*arrays: Any, **params: Any) -> Any:
        level = 0
        for x in arrays:
            if type(x) is Batched and x.level > level:
                level = x.level
        inner, batched = [], []
        for x in arrays:
            here = type(x) is Batched and x.level == level
            batched.append(here)
            inner.append(x.array if here else x)
        if level not in running_levels:
            inner = [
                seen_rows(x) if here else x
                for x, here in zip(map(check_alive, arrays), batched, strict=True)
            ]
        graph = active_graph.get()
        if graph is not None and any(map(_is_traced, inner)):
            # constants join the trace before a rule reshapes them, so that it knows the originals
            inner = [x if type(x) is Batched else graph.adopt(x) for x in inner]
        with scope_of(inner):
            result = rule(op, inner, batched, params if plain else {**defaults, **params})
        if type(result) is list or type(result) is tuple:
            return _alike([_wrapped(part, level) for part in result])
        return _wrapped(result, level)

    return run


def _pairwise(op: BinaryOp, general: Callable[..., Any]) -> Callable[..., Any]:
    """Return the same for two operands, with a quick path if they broadcast unchanged."""
    kernels = op._kernels

    def run(x: Any, y: Any) -> Any:
        a = x.array if type(x) is Batched else x
        b = y.array if type(y) is Batched else y
        if a is x:
            level, lined_up = y.level, type(a) in SCALARS or _rank(a) < _rank(b)
        elif b is y:
            level, lined_up = x.level, type(b) in SCALARS or _rank(b) < _rank(a)
        else:
            level, lined_up = x.level, x.level == y.level and _rank(a) == _rank(b)
        if not lined_up:
            return general(x, y)
        if level not in running_levels:
            return general(x, y)
        kernel = kernels.get((type(a), type(b))) or op.resolve((a, b))
        return Batched(kernel(a, b), level)

    return run


def _rank(array: Any) -> float:
    """Return the number of axes; NaN if unknown, for which every comparison is false."""
    shape = array.shape
    return len(shape) if shape is not None else nan


def _is_traced(array: Any) -> bool:
    while type(array) is Batched:
        array = array.array
    return getattr(array, "traced", False)


def _wrapped(result: Any, level: int) -> Any:
    if type(result) is Tensor:  # of a rule that calls public functions
        result = result.array
    return result.array if type(result) is Shared else Batched(result, level)


def _alike(results: Any) -> Any:
    """Return an op's results, all batched if one is, because they share a gradient rule."""
    if not isinstance(results, (list, tuple)):
        return results
    level = max((x.level for x in results if type(x) is Batched), default=0)
    like = next((x for x in results if type(x) is Batched and x.level == level), None)
    if like is None:
        return list(results)
    return [
        x if type(x) is Batched and x.level == level else Batched(as_batched(x, like.array), level)
        for x in results
    ]


register_array_type(Batched, 50, _batch)
