"""``Batched``: an array with a hidden leading axis, on which ops run once for all examples.

``vmap`` and Jacobians pass such arrays to functions and gradient rules written for one example. An
op that receives one applies its batching rule. The rule adapts parameters to the hidden axis and
runs the op on the array inside, which may be of any type.

Every transformation has a level. Later ones have higher levels, and the highest level among an op's
arrays is the outermost.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from itertools import count
from math import nan
from typing import Any

from ..base.context import active_graph, after_batches
from ..base.dtypes import SCALARS, numpy_dtype
from ..base.operators import ArrayOperators
from ..base.sizes import known_size
from ..base.spec import describe
from ..base.table import F
from ..errors import TraceError
from ..ops.backend import scope_of
from ..ops.dispatch import check_alive, register_array_type
from ..ops.rule import Composed
from ..tensors.op import Op
from ..tensors.quick import BinaryOp

__all__ = [
    "Batched",
    "Shared",
    "as_batched",
    "has_level",
    "in_words",
    "levels_of",
    "new_level",
    "outermost",
    "rank_of",
    "row_of",
    "running_level",
    "whole_shape",
]

new_level = count(1).__next__
#: The levels of running batches.
running_levels: set[int] = set()


class running_level:
    """Run a block with a new level; arrays of this level can be used only inside the block."""

    __slots__ = ("_level",)

    def __enter__(self) -> int:
        self._level = new_level()
        running_levels.add(self._level)
        return self._level

    def __exit__(self, *error: object) -> None:
        running_levels.discard(self._level)


class Batched(ArrayOperators):
    """One array per example, along the first axis of ``array``, which other code does not see."""

    __slots__ = ("array", "level")
    batched = True

    def __init__(self, array: Any, level: int) -> None:
        self.array = array
        self.level = level

    @property
    def shape(self) -> Any:
        """The shape of one example."""
        shape = self.array.shape
        return None if shape is None else shape[1:]

    @property
    def ndim(self) -> int:
        """The number of axes of one example."""
        return len(self.array.shape) - 1

    @property
    def dtype(self) -> Any:
        """The dtype."""
        return numpy_dtype(self.array.dtype)

    def gone(self) -> str | None:
        """Return a message if the batch has ended; None while it runs."""
        array: Any = self
        while type(array) is Batched:
            if array.level not in running_levels and not after_batches.get():
                return self.used_after()
            array = array.array
        return None

    def used_after(self) -> str:
        """Return the message for a use after the batch."""
        return (
            f"{self!r} was made inside a vmap and is used after it; return it from the function "
            "instead"
        )

    def why_unknown(self) -> str:
        gone = self.gone()
        if gone is not None:
            return f"any more: {gone}"
        return (
            f"inside vmap, where it may differ from example to example ({self!r}). Compute with "
            "gradtape ops instead (gradtape.where or gradtape.cond for a choice), or loop over the "
            "examples."
        )

    def __repr__(self) -> str:
        return f"a batch of {describe(self.shape, self.dtype)}"


class Shared:
    """What a batching rule returns for a result that is the same for all examples."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array


def as_batched(x: Any, beside: Any) -> Any:
    """Return ``x``, the same for all examples, with a first axis as long as that of ``beside``."""
    return F.spread_like(x, beside)


def row_of(x: Any) -> Any:
    """Return an array of the shape and dtype of one example of a batch, which may be empty."""
    if x.shape and known_size(x.shape[0]) and x.shape[0]:
        return F.getitem(x, index=(0,))
    return F.cast_like(F.sum(F.getitem(x, index=(("slice", 0, 1, None),)), axis=0), x)


def rank_of(x: Any, op: Op) -> int:
    """Return the number of axes, for a batching rule that must know it."""
    if x.shape is None:
        raise TraceError(
            f"{op.name}: vmap needs to know the number of axes; give the TensorSpec of "
            f"{x!r} a shape, with None for unknown sizes"
        )
    return len(x.shape)


def in_words(fn: Callable[..., Any], arrays: list[Any], batched: list[bool]) -> Any:
    """Return a batching rule's result from ``fn``, which composes the op for one example."""
    level = new_level()
    running_levels.add(level)  # by hand, since this runs for single ops
    try:
        result = fn(*[Batched(x, level) if b else x for x, b in zip(arrays, batched, strict=True)])
    finally:
        running_levels.discard(level)
    return result.array if has_level(result, level) else Shared(result)


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
    return op.raw(*arrays, **params)


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
    if op.batch == "elementwise" and isinstance(op, BinaryOp):
        apply = _pairwise(op, apply)

    def run(*arrays: Any, **params: Any) -> Any:
        graph = active_graph.get()
        if graph is not None and outermost(arrays) < graph.level:
            # a batch from outside a branch: the branch captures one example's value
            taken = [graph.adopt(x) if type(x) is Batched else x for x in arrays]
            return op.raw(*taken, **params)
        return apply(*arrays, **params)

    return run


def _applied(op: Op) -> Callable[..., Any]:
    if type(op.batch) is Composed:
        words, settings = op.batch.fn, op.defaults
        return lambda *arrays, **params: _alike(words(*arrays, **{**settings, **params}))
    rule: Any = elementwise if op.batch == "elementwise" else op.batch or by_loop
    plain = rule is elementwise
    defaults = op.defaults

    def alone(x: Batched, **params: Any) -> Any:
        level = x.level
        if level not in running_levels:
            check_alive(x)
        result = op.raw(x.array, **params)
        if type(result) is list or type(result) is tuple:
            return [Batched(part, level) for part in result]
        return Batched(result, level)

    if plain and len(op.inputs) == 1:
        return alone

    def run(*arrays: Any, **params: Any) -> Any:
        level = 0
        for x in arrays:
            if type(x) is Batched and x.level > level:
                level = x.level
        if level not in running_levels:
            for x in arrays:
                check_alive(x)
        inner, batched = [], []
        for x in arrays:
            here = type(x) is Batched and x.level == level
            batched.append(here)
            inner.append(x.array if here else x)
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


def has_level(array: Any, level: int) -> bool:
    """Return whether an array differs from example to example at a level."""
    while type(array) is Batched:
        if array.level == level:
            return True
        array = array.array
    return False


def whole_shape(array: Any) -> Any:
    """Return the shape of the values behind an array, hidden axes included."""
    while type(array) is Batched:
        array = array.array
    return array.shape


def levels_of(array: Any) -> frozenset[int]:
    """Return the levels at which an array differs from example to example."""
    levels = []
    while type(array) is Batched:
        levels.append(array.level)
        array = array.array
    return frozenset(levels)


def outermost(arrays: Sequence[Any]) -> int:
    """Return the highest level among arrays, 0 if none of them is a batch."""
    return max((x.level for x in arrays if type(x) is Batched), default=0)


register_array_type(Batched, 50, _batch)
